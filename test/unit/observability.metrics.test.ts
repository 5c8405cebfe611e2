import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { OPERATION_BOUNDS } from '../../src/observability/labels.ts';
import { createMetrics, type Metrics } from '../../src/observability/metrics.ts';
import { documentedFamilies } from '../support/exposition.ts';

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
    const documented = [...documentedFamilies()].map(([name, { type }]) => [name, type]);
    assert.deepEqual(types.sort(), documented.sort());
    for (const [name] of documented) assert.match(body, new RegExp(`^# HELP ${name} \\S`, 'm'));
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

test('without Redis nothing is said of it', async () => {
  const metrics = make();
  const names = async (): Promise<readonly string[]> =>
    [...(await seriesOf(metrics)).keys()].filter((name) => /^headgate_redis_(up|circuit)/.test(name));
  assert.deepEqual(await names(), []);
  metrics.redisUp('down');
  metrics.redisCircuit('closed');
  assert.deepEqual(await names(), ['headgate_redis_up', 'headgate_redis_circuit_open']);
});

describe('metrics of reloads', () => {
  test('the configuration of the start counts as accepted, then', async () => {
    const metrics = createMetrics({ upstreams: [], routes: [], version: '1', now: () => 1_796_000_000_500 });
    const series = await seriesOf(metrics);
    assert.equal(series.get('headgate_config_last_reload_successful'), 1);
    assert.equal(series.get('headgate_config_last_reload_success_timestamp_seconds'), 1_796_000_000.5);
    for (const result of ['applied', 'unchanged', 'refused'])
      assert.equal(series.get(`headgate_config_reloads_total{result="${result}"}`), 0);
  });

  test('a refused one says so until the next that is not, and leaves the time alone', async () => {
    let nowMs = 10_000;
    const metrics = createMetrics({ upstreams: [], routes: [], version: '1', now: () => nowMs });
    const told = async (): Promise<readonly (number | undefined)[]> => {
      const series = await seriesOf(metrics);
      return [
        series.get('headgate_config_last_reload_successful'),
        series.get('headgate_config_last_reload_success_timestamp_seconds'),
      ];
    };
    nowMs = 20_000;
    metrics.reloaded('refused');
    assert.deepEqual(await told(), [0, 10]);
    nowMs = 30_000;
    metrics.reloaded('unchanged');
    assert.deepEqual(await told(), [1, 30]);
    metrics.reloaded('refused');
    nowMs = 40_000;
    metrics.reloaded('applied');
    assert.deepEqual(await told(), [1, 40]);
    const series = await seriesOf(metrics);
    assert.equal(series.get('headgate_config_reloads_total{result="refused"}'), 2);
    assert.equal(series.get('headgate_config_reloads_total{result="applied"}'), 1);
  });
});

describe('metrics of another configuration', () => {
  const NEXT = { upstreams: ['new', 'city'], routes: ['/other', '/mcp'] };

  test('names that stay keep their numbers, in counters, gauges and histograms', async () => {
    const metrics = make();
    metrics.attempt('city', 'ok');
    metrics.upstreamUp('city', 'up');
    metrics.rejected('origin');
    metrics.operation('/mcp', 'tools/call', '', 0.2);
    metrics.processing('/mcp', 0.001);
    metrics.upstreamOperation('city', 'resources/read', 'timeout', 31);
    metrics.cacheRequest('city', 'resources/read', 'hit', 'memory');
    const before = await seriesOf(metrics);
    metrics.configure(NEXT);
    const after = await seriesOf(metrics);
    const kept = [...before].filter(([name]) => !name.includes('="docs"'));
    for (const [name, value] of kept) assert.equal(after.get(name), value, name);
    assert.equal(after.get('headgate_upstream_attempts_total{upstream="city",outcome="ok"}'), 1);
    metrics.attempt('city', 'ok');
    metrics.processing('/mcp', 0.001);
    const later = await seriesOf(metrics);
    assert.equal(later.get('headgate_upstream_attempts_total{upstream="city",outcome="ok"}'), 2);
    assert.equal(later.get('headgate_request_processing_seconds_count{route="/mcp"}'), 2);
  });

  test('names that are gone have no series, and those of new names are those of a start', async () => {
    const metrics = make();
    metrics.upstreamOperation('docs', 'resources/read', '', 0.1);
    metrics.attempt('docs', 'ok');
    metrics.configure(NEXT);
    const after = [...(await seriesOf(metrics)).keys()].sort();
    const fresh = createMetrics({ ...NEXT, version: '1.2.3' });
    assert.deepEqual(after, [...(await seriesOf(fresh)).keys()].sort());
    assert.ok(after.includes('headgate_upstream_attempts_total{upstream="new",outcome="ok"}'));
  });

  test('what comes late for a name that is gone is "other"', async () => {
    const metrics = make();
    metrics.configure(NEXT);
    metrics.attempt('docs', 'cancelled');
    metrics.upstreamOperation('docs', 'tools/call', 'cancelled', 0.1);
    metrics.upstreamUp('docs', 'down');
    metrics.circuitOpen('docs', 'open');
    const series = await seriesOf(metrics);
    assert.equal(series.get('headgate_upstream_attempts_total{upstream="other",outcome="cancelled"}'), 1);
    assert.deepEqual(
      [...series.keys()].filter((name) => /docs|_(up|open)\{upstream="other"/.test(name)),
      [],
    );
  });

  test('a name that was gone begins anew, and what is still open of before is not taken off it', async () => {
    const metrics = make();
    const [closeEarly, closeLate] = [
      metrics.streamOpened('/mcp', 'listen'),
      metrics.streamOpened('/mcp', 'listen'),
    ];
    const open = async (): Promise<number | undefined> =>
      (await seriesOf(metrics)).get('headgate_streams_open{route="/mcp",kind="listen"}');
    metrics.configure(NEXT);
    assert.equal(await open(), 2);
    closeEarly();
    assert.equal(await open(), 1);
    metrics.configure({ ...NEXT, routes: ['/other'] });
    assert.equal(await open(), undefined);
    metrics.configure(NEXT);
    metrics.streamOpened('/mcp', 'listen');
    closeLate();
    assert.equal(await open(), 1);
  });

  test('whose changes are not listened for any more is neither heard nor unheard', async () => {
    const metrics = make();
    let listened = ['docs', 'city'];
    metrics.onScrape((gauges) => {
      for (const name of listened) gauges.subscription(name, 'up');
    });
    assert.equal((await seriesOf(metrics)).get('headgate_upstream_subscription_up{upstream="docs"}'), 1);
    listened = ['city'];
    const series = await seriesOf(metrics);
    assert.equal(series.has('headgate_upstream_subscription_up{upstream="docs"}'), false);
    assert.equal(series.get('headgate_upstream_subscription_up{upstream="city"}'), 1);
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
