import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Happenings } from '../../src/admin/happenings.ts';
import { MAX_SAMPLES, quantile, Recent } from '../../src/admin/recent.ts';
import { OPERATION_BOUNDS } from '../../src/observability/labels.ts';
import { createMetrics, type Metrics } from '../../src/observability/metrics.ts';

function metricsOf(): Metrics {
  return createMetrics({ upstreams: ['docs', 'city'], routes: ['/mcp'], version: '1' });
}

describe('the last minutes', () => {
  test('are what was counted in each step, the one under way included', () => {
    const metrics = metricsOf();
    metrics.cacheRequest('docs', 'resources/read', 'hit', 'memory');
    const recent = new Recent(metrics);
    metrics.cacheRequest('docs', 'resources/read', 'hit', 'memory');
    metrics.cacheRequest('city', 'resources/read', 'hit', 'memory');
    metrics.cacheRequest('docs', 'resources/read', 'miss', 'none');
    recent.sample();
    metrics.cacheRequest('docs', 'resources/read', 'bypass', 'none');
    assert.deepEqual(recent.samples(), [
      { hit: 2, stale: 0, miss: 1, bypass: 0 },
      { hit: 0, stale: 0, miss: 0, bypass: 1 },
    ]);
  });

  test('are ten, and what is older is forgotten', () => {
    const metrics = metricsOf();
    const recent = new Recent(metrics);
    metrics.cacheRequest('docs', 'resources/read', 'hit', 'memory');
    for (let i = 0; i < MAX_SAMPLES; i++) recent.sample();
    assert.deepEqual([recent.samples().length, recent.samples()[0]?.hit], [MAX_SAMPLES + 1, 1]);
    recent.sample();
    assert.deepEqual([recent.samples().length, recent.samples()[0]?.hit], [MAX_SAMPLES + 1, 0]);
  });

  test('have latencies of five minutes, and none where nothing ended', () => {
    const metrics = metricsOf();
    const recent = new Recent(metrics);
    for (let i = 0; i < 99; i++) metrics.upstreamOperation('docs', 'resources/read', '', 0.015);
    metrics.upstreamOperation('docs', 'resources/read', '', 9);
    const docs = recent.latencies().get('docs');
    assert.deepEqual([[...recent.latencies().keys()], docs?.count], [['docs'], 100]);
    assert.ok(docs !== undefined && docs.p50Ms > 10 && docs.p50Ms < 20 && docs.p95Ms < 20);
    for (let i = 0; i < 59; i++) recent.sample();
    assert.equal(recent.latencies().get('docs')?.count, 100);
    recent.sample();
    assert.equal(recent.latencies().size, 0);
  });
});

describe('a quantile', () => {
  const counts = (seconds: Readonly<Record<number, number>>) =>
    [...OPERATION_BOUNDS, Number.POSITIVE_INFINITY].map((bound) => seconds[bound] ?? 0);

  test('lies where its share of a bucket does', () => {
    assert.equal(quantile(counts({ 0.02: 10 }), 0.5), 15);
    assert.equal(quantile(counts({ 0.02: 5, 0.05: 5 }), 0.5), 20);
    assert.equal(Math.round(quantile(counts({ 0.0005: 1 }), 1) * 10), 5);
  });

  test('of what is beyond the last bound is that bound, and of nothing 0', () => {
    assert.equal(quantile(counts({ [Number.POSITIVE_INFINITY]: 3 }), 0.5), 300_000);
    assert.equal(quantile(counts({}), 0.5), 0);
  });
});

describe('happenings', () => {
  function heard() {
    const clock = { at: 1_000 };
    const happenings = new Happenings(() => clock.at);
    return { clock, happenings, metrics: happenings.beside(metricsOf()) };
  }

  test('are told the newest first, and the same again counts', () => {
    const { clock, happenings, metrics } = heard();
    metrics.upstreamUp('docs', 'up');
    metrics.cacheInvalidated('docs', 'notification', 'uri');
    clock.at = 2_000;
    metrics.cacheInvalidated('docs', 'notification', 'uri');
    metrics.circuitOpen('city', 'open');
    metrics.redisUp('down');
    assert.deepEqual(happenings.recent(), [
      { at: 2_000, count: 1, what: { kind: 'redis', state: 'down' } },
      { at: 2_000, count: 1, what: { kind: 'circuit', upstream: 'city', state: 'open' } },
      {
        ...{ at: 2_000, count: 2 },
        what: { kind: 'invalidated', upstream: 'docs', source: 'notification', scope: 'uri' },
      },
      { at: 1_000, count: 1, what: { kind: 'upstream', upstream: 'docs', state: 'up' } },
    ]);
  });

  test('are fifty at most', () => {
    const { happenings, metrics } = heard();
    for (let i = 0; i < 60; i++) metrics.upstreamUp('docs', i % 2 === 0 ? 'up' : 'down');
    assert.equal(happenings.recent().length, 50);
  });

  test('hold the last error of each upstream, and what is none does not count', () => {
    const { clock, happenings, metrics } = heard();
    metrics.attempt('docs', 'timeout');
    clock.at = 2_000;
    for (const outcome of ['ok', 'rpc_error', 'cancelled', 'circuit_open'] as const)
      metrics.attempt('docs', outcome);
    assert.deepEqual(happenings.lastError('docs'), { kind: 'timeout', at: 1_000 });
    assert.equal(happenings.lastError('city'), undefined);
  });

  test('are heard beside the metrics, which count as before', () => {
    const { metrics } = heard();
    metrics.attempt('docs', 'timeout');
    metrics.cacheInvalidated('docs', 'admin', 'upstream');
    const total = (family: 'attempts' | 'invalidations') => metrics.sums(family)[0]?.sum;
    assert.deepEqual([total('attempts'), total('invalidations')], [1, 1]);
  });
});
