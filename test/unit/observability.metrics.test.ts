import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { OPERATION_BOUNDS } from '../../src/observability/labels.ts';
import { createMetrics, type Metrics } from '../../src/observability/metrics.ts';

/** The metrics that part 1 has, with their types. */
const FAMILIES: Readonly<Record<string, string>> = {
  mcp_server_operation_duration_seconds: 'histogram',
  mcp_client_operation_duration_seconds: 'histogram',
  headgate_http_requests_total: 'counter',
  headgate_http_requests_in_flight: 'gauge',
  headgate_http_request_bytes_total: 'counter',
  headgate_http_response_bytes_total: 'counter',
  headgate_requests_rejected_total: 'counter',
  headgate_request_processing_seconds: 'histogram',
  headgate_streams_open: 'gauge',
  headgate_cache_requests_total: 'counter',
  headgate_cache_bypasses_total: 'counter',
  headgate_cache_collapsed_requests_total: 'counter',
  headgate_cache_stores_total: 'counter',
  headgate_cache_evictions_total: 'counter',
  headgate_cache_invalidations_total: 'counter',
  headgate_cache_entries: 'gauge',
  headgate_cache_size_bytes: 'gauge',
  headgate_cache_max_size_bytes: 'gauge',
  headgate_cache_operation_duration_seconds: 'histogram',
  headgate_redis_up: 'gauge',
  headgate_redis_circuit_open: 'gauge',
  headgate_redis_errors_total: 'counter',
  headgate_bus_messages_total: 'counter',
  headgate_bus_resyncs_total: 'counter',
  headgate_upstream_up: 'gauge',
  headgate_upstream_circuit_open: 'gauge',
  headgate_upstream_attempts_total: 'counter',
  headgate_upstream_retries_total: 'counter',
  headgate_upstream_connections: 'gauge',
  headgate_list_items_dropped_total: 'counter',
  headgate_upstream_notifications_total: 'counter',
  headgate_upstream_subscription_up: 'gauge',
  headgate_build_info: 'gauge',
  headgate_ready: 'gauge',
};

const IDLE = { connected: 0, free: 0, pending: 0, queued: 0, running: 0 };

function make(): Metrics {
  return createMetrics({ upstreams: ['docs', 'city'], routes: ['/mcp'], version: '1.2.3' });
}

/** The exposition as series → value, without what prom-client adds about the process. */
async function seriesOf(metrics: Metrics): Promise<ReadonlyMap<string, number>> {
  const { body } = await metrics.render();
  const lines = body.split('\n').filter((line) => /^(headgate|mcp)_/.test(line));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

describe('metrics', () => {
  test('the families are those documented, with their types and a help text', async () => {
    const { body, contentType } = await make().render();
    const types = [...body.matchAll(/^# TYPE ((?:headgate|mcp)_\w+) (\w+)$/gm)].map(([, name, type]) => [
      name,
      type,
    ]);
    assert.deepEqual(Object.fromEntries(types), FAMILIES);
    for (const name of Object.keys(FAMILIES)) assert.match(body, new RegExp(`^# HELP ${name} \\S`, 'm'));
    assert.match(contentType, /^text\/plain; version=0\.0\.4/);
  });

  test('the process and Node itself are told about', async () => {
    const { body } = await make().render();
    for (const name of [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'nodejs_eventloop_lag_p99_seconds',
    ]) {
      assert.match(body, new RegExp(`^${name} `, 'm'));
    }
  });

  test('what the configuration foretells starts at 0; histograms do not', async () => {
    const series = await seriesOf(make());
    for (const name of [
      'headgate_cache_requests_total{upstream="docs",mcp_method_name="resources/read",status="hit",tier="memory"}',
      'headgate_cache_requests_total{upstream="city",mcp_method_name="tools/list",status="miss",tier="none"}',
      'headgate_cache_bypasses_total{upstream="docs",reason="mrtr"}',
      'headgate_cache_stores_total{tier="memory",result="too_large"}',
      'headgate_upstream_attempts_total{upstream="city",outcome="circuit_open"}',
      'headgate_requests_rejected_total{reason="header_mismatch"}',
      'headgate_list_items_dropped_total{upstream="docs",reason="duplicate"}',
      'headgate_upstream_up{upstream="docs"}',
      'headgate_streams_open{route="/mcp",kind="listen"}',
      'headgate_ready',
    ]) {
      assert.equal(series.get(name), 0, name);
    }
    assert.deepEqual(
      [...series.keys()].filter((name) => name.includes('_bucket')),
      [],
    );
    assert.deepEqual(
      [...series.keys()].filter((name) => name.includes('="other"')),
      [],
    );
  });

  test('every recording function moves its own series', async () => {
    const metrics = make();
    metrics.httpOpened();
    metrics.httpRequest('POST', 200);
    metrics.httpBytes(10, 20);
    metrics.rejected('origin');
    metrics.operation('/mcp', 'tools/call', -32602, 0.2);
    metrics.processing('/mcp', 0.001);
    metrics.streamOpened('/mcp', 'response');
    metrics.cacheRequest('docs', 'resources/read', 'hit', 'memory');
    metrics.cacheBypass('docs', 'ttl_zero');
    metrics.collapsed('city');
    metrics.cacheStore('memory', 'ok');
    metrics.cacheEviction('memory', 'expired');
    metrics.cacheOperation('memory', 'get', 0.0002);
    metrics.upstreamOperation('city', 'resources/list', 'timeout', 31);
    metrics.attempt('docs', 'http_5xx');
    metrics.retry('docs', 'reset');
    metrics.upstreamUp('docs', 'up');
    metrics.circuitOpen('city', 'open');
    metrics.cacheInvalidated('docs', 'notification', 'uri');
    metrics.upstreamNotified('docs', 'notifications/resources/updated');
    metrics.cacheRequest('docs', 'resources/read', 'hit', 'redis');
    metrics.itemDropped('docs', 'invalid');
    metrics.ready('ready');
    const series = await seriesOf(metrics);
    const expected: Readonly<Record<string, number>> = {
      headgate_http_requests_in_flight: 1,
      'headgate_http_requests_total{method="POST",code="200"}': 1,
      headgate_http_request_bytes_total: 10,
      headgate_http_response_bytes_total: 20,
      'headgate_requests_rejected_total{reason="origin"}': 1,
      'mcp_server_operation_duration_seconds_count{route="/mcp",mcp_method_name="tools/call",error_type="-32602"}': 1,
      'headgate_request_processing_seconds_sum{route="/mcp"}': 0.001,
      'headgate_streams_open{route="/mcp",kind="response"}': 1,
      'headgate_cache_requests_total{upstream="docs",mcp_method_name="resources/read",status="hit",tier="memory"}': 1,
      'headgate_cache_bypasses_total{upstream="docs",reason="ttl_zero"}': 1,
      'headgate_cache_collapsed_requests_total{upstream="city"}': 1,
      'headgate_cache_stores_total{tier="memory",result="ok"}': 1,
      'headgate_cache_evictions_total{tier="memory",reason="expired"}': 1,
      'headgate_cache_operation_duration_seconds_count{tier="memory",operation="get"}': 1,
      'mcp_client_operation_duration_seconds_sum{upstream="city",mcp_method_name="resources/list",error_type="timeout"}': 31,
      'headgate_upstream_attempts_total{upstream="docs",outcome="http_5xx"}': 1,
      'headgate_upstream_retries_total{upstream="docs",reason="reset"}': 1,
      'headgate_upstream_up{upstream="docs"}': 1,
      'headgate_upstream_circuit_open{upstream="city"}': 1,
      'headgate_cache_invalidations_total{upstream="docs",source="notification",scope="uri"}': 1,
      'headgate_upstream_notifications_total{upstream="docs",notification="notifications/resources/updated"}': 1,
      'headgate_cache_requests_total{upstream="docs",mcp_method_name="resources/read",status="hit",tier="redis"}': 1,
      'headgate_list_items_dropped_total{upstream="docs",reason="invalid"}': 1,
      headgate_ready: 1,
      [`headgate_build_info{version="1.2.3",node_version="${process.version}"}`]: 1,
    };
    for (const [name, value] of Object.entries(expected)) assert.equal(series.get(name), value, name);
  });

  test('buckets are cumulative and have the documented bounds', async () => {
    const metrics = make();
    for (const seconds of [0.00005, 0.0003, 0.25, 7]) metrics.processing('/mcp', seconds);
    const series = await seriesOf(metrics);
    const buckets = [...series].flatMap(([name, value]) => {
      const bound = /^headgate_request_processing_seconds_bucket\{route="\/mcp",le="([^"]+)"\}$/.exec(
        name,
      )?.[1];
      return bound === undefined ? [] : [[bound, value]];
    });
    assert.deepEqual(buckets, [
      ['0.00005', 1],
      ['0.0001', 1],
      ['0.00025', 1],
      ['0.0005', 2],
      ['0.001', 2],
      ['0.0025', 2],
      ['0.005', 2],
      ['0.01', 2],
      ['0.05', 2],
      ['0.25', 3],
      ['+Inf', 4],
    ]);
    assert.equal(series.get('headgate_request_processing_seconds_count{route="/mcp"}'), 4);
  });

  test('a duration that is no duration counts as 0', async () => {
    const metrics = make();
    for (const seconds of [Number.NaN, -1, Number.POSITIVE_INFINITY]) metrics.processing('/mcp', seconds);
    const series = await seriesOf(metrics);
    assert.equal(series.get('headgate_request_processing_seconds_sum{route="/mcp"}'), 0);
    assert.equal(series.get('headgate_request_processing_seconds_bucket{route="/mcp",le="0.00005"}'), 3);
  });

  test('what was opened closes once, whoever says so how often', async () => {
    const metrics = make();
    const closes = [metrics.httpOpened(), metrics.streamOpened('/mcp', 'listen')];
    for (const close of [...closes, ...closes]) close();
    const series = await seriesOf(metrics);
    assert.equal(series.get('headgate_http_requests_in_flight'), 0);
    assert.equal(series.get('headgate_streams_open{route="/mcp",kind="listen"}'), 0);
  });

  test('R45: 50,000 random methods add no series', async () => {
    const metrics = make();
    const record = (method: string): void => {
      metrics.operation('/mcp', method, '', 0.01);
      metrics.upstreamOperation('docs', method, '', 0.01);
      metrics.cacheRequest('docs', method, 'miss', 'none');
      metrics.httpRequest(method, 200);
    };
    record('nothing/known');
    const before = [...(await seriesOf(metrics)).keys()];
    for (let i = 0; i < 50_000; i++) record(randomBytes(1 + (i % 40)).toString('latin1'));
    for (const odd of ['__proto__', 'constructor', 'toString', '', 'other', 'tools/call ', 'TOOLS/CALL'])
      record(odd);
    const after = await seriesOf(metrics);
    assert.deepEqual([...after.keys()], before);
    const other =
      'mcp_server_operation_duration_seconds_count{route="/mcp",mcp_method_name="other",error_type=""}';
    assert.equal(after.get(other), 50_008);
  });

  test('R45: a value outside its set is "other" for every label', async () => {
    const metrics = make();
    const stray = 'https://user:secret@example.com/' as never;
    metrics.httpRequest(stray, 299);
    metrics.rejected(stray);
    metrics.operation(stray, stray, -31999, 0.1);
    metrics.upstreamOperation(stray, stray, stray, 0.1);
    metrics.processing(stray, 0.1);
    metrics.streamOpened(stray, stray);
    metrics.cacheRequest(stray, stray, stray, stray);
    metrics.cacheBypass(stray, stray);
    metrics.collapsed(stray);
    metrics.cacheStore(stray, stray);
    metrics.cacheEviction(stray, stray);
    metrics.cacheOperation(stray, stray, 0.1);
    metrics.attempt(stray, stray);
    metrics.retry(stray, stray);
    metrics.upstreamUp(stray, 'up');
    metrics.circuitOpen(stray, 'open');
    metrics.itemDropped(stray, stray);
    metrics.onScrape((gauges) => {
      gauges.cache(stray, { entryCount: 1, sizeBytes: 1, maxSizeBytes: 1 });
      gauges.connections(stray, IDLE);
    });
    const { body } = await metrics.render();
    // The labels only: a sample's value may be any number.
    assert.doesNotMatch(body.replaceAll(/\} \S+$/gm, '}'), /secret|example|="(299|31999)"/);
    assert.match(body, /^headgate_http_requests_total\{method="other",code="other"\} 1$/m);
    assert.match(
      body,
      /^headgate_cache_requests_total\{upstream="other",mcp_method_name="other",status="other",tier="other"\} 1$/m,
    );
  });

  test('a scrape asks for what only a look can tell, until told not to', async () => {
    const metrics = make();
    let entryCount = 3;
    const stop = metrics.onScrape((gauges) => {
      gauges.cache('memory', { entryCount, sizeBytes: 300, maxSizeBytes: 1000 });
      gauges.connections('docs', { ...IDLE, connected: 2, queued: 1 });
    });
    assert.equal((await seriesOf(metrics)).get('headgate_cache_entries{tier="memory"}'), 3);
    entryCount = 4;
    const series = await seriesOf(metrics);
    assert.equal(series.get('headgate_cache_entries{tier="memory"}'), 4);
    assert.equal(series.get('headgate_cache_max_size_bytes{tier="memory"}'), 1000);
    assert.equal(series.get('headgate_upstream_connections{upstream="docs",state="queued"}'), 1);
    stop();
    entryCount = 5;
    assert.equal((await seriesOf(metrics)).get('headgate_cache_entries{tier="memory"}'), 4);
  });

  test('a report that throws does not cost the other figures', async () => {
    const metrics = make();
    metrics.onScrape(() => {
      throw new Error('no pool');
    });
    metrics.onScrape((gauges) => gauges.cache('memory', { entryCount: 1, sizeBytes: 1, maxSizeBytes: 1 }));
    assert.equal((await seriesOf(metrics)).get('headgate_cache_entries{tier="memory"}'), 1);
  });

  test('two gateways in one process do not share figures', async () => {
    const [one, other] = [make(), make()];
    one.ready('ready');
    assert.equal((await seriesOf(other)).get('headgate_ready'), 0);
  });
});

describe('what is read back', () => {
  test('is the exposition, added up by the labels that are asked for, in their order', () => {
    const metrics = make();
    metrics.cacheRequest('docs', 'resources/read', 'hit', 'memory');
    metrics.cacheRequest('docs', 'resources/list', 'hit', 'memory');
    metrics.cacheRequest('docs', 'resources/read', 'miss', 'none');
    metrics.cacheRequest('city', 'resources/read', 'hit', 'memory');
    const told = metrics
      .sums('cacheRequests', 'status', 'upstream')
      .filter(({ sum }) => sum > 0)
      .map(({ values, sum }) => [...values, sum]);
    assert.deepEqual(told.sort(), [
      ['hit', 'city', 1],
      ['hit', 'docs', 2],
      ['miss', 'docs', 1],
    ]);
    assert.deepEqual(metrics.sums('cacheRequests'), [{ values: [], sum: 4 }]);
  });

  test('holds the series at 0 that the exposition begins with, and gauges as they stand', () => {
    const metrics = make();
    metrics.upstreamUp('city', 'up');
    assert.deepEqual(metrics.sums('up', 'upstream'), [
      { values: ['docs'], sum: 0 },
      { values: ['city'], sum: 1 },
    ]);
    assert.deepEqual(metrics.sums('attempts', 'upstream'), [
      { values: ['docs'], sum: 0 },
      { values: ['city'], sum: 0 },
    ]);
  });

  test('of operations at upstreams leaves out what the upstream had no part in', () => {
    const metrics = make();
    metrics.upstreamOperation('docs', 'resources/read', '', 0.004);
    metrics.upstreamOperation('docs', 'tools/call', 'timeout', 1_000);
    metrics.upstreamOperation('docs', 'resources/read', 'connect', 0.001);
    metrics.upstreamOperation('docs', 'resources/read', 'cancelled', 0.001);
    const counts = metrics.upstreamOperations();
    assert.deepEqual([...counts.keys()], ['docs']);
    const docs = counts.get('docs') ?? [];
    assert.equal(docs.length, OPERATION_BOUNDS.length + 1);
    assert.equal(docs[OPERATION_BOUNDS.indexOf(0.005)], 1);
    assert.equal(docs.at(-1), 1);
    assert.equal(
      docs.reduce((sum, count) => sum + count, 0),
      2,
    );
  });
});
