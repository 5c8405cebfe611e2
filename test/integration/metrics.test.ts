/**
 * What a gateway counts, on real servers: every metric that the README names and no other, in a form that Prometheus
 * takes; and what the alerts, the dashboard and the runbooks ask for is there.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parse, stringify } from 'yaml';
import { ERROR_TYPES } from '../../src/observability/labels.ts';
import { KNOWN_METHODS } from '../../src/protocol/methods.ts';
import { documentedFamilies, type Exposition, labelsOf, parseExposition } from '../support/exposition.ts';
import { type Metered, startMetered, total } from '../support/metered.ts';
import { askedBy } from '../support/promql.ts';
import { missingPromtool, promtool } from '../support/promtool.ts';
import { missingRedis } from '../support/redis.ts';

const DEPLOY = join(process.cwd(), 'deploy');
const RULES = join(DEPLOY, 'prometheus/rules/headgate.rules.yml');
const DASHBOARD = join(DEPLOY, 'grafana/dashboards/headgate.json');
const RUNBOOKS = join(DEPLOY, 'runbooks');
const tool = { skip: missingPromtool() ?? false };

interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
}

const rules = (parse(readFileSync(RULES, 'utf8')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);
const recorded = new Set(rules.flatMap(({ record }) => record ?? []));

/** An expression, and where it stands. */
interface Query {
  readonly at: string;
  readonly expr: string;
  /** Labels that its legend shows. */
  readonly shown: readonly string[];
}

/** Of Grafana's variables, those that stand where PromQL wants a duration. */
const plain = (expr: string): string => expr.replaceAll('$__rate_interval', '5m');

function dashboardQueries(): readonly Query[] {
  interface Panel {
    readonly title: string;
    readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
  }
  const board = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as {
    panels: readonly Panel[];
    annotations: { list: readonly { name: string; expr: string }[] };
    templating: { list: readonly { name: string; type: string; query: { query: string } }[] };
  };
  const panels = board.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({
      at: `dashboard: ${title}`,
      expr: plain(expr),
      shown: [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label as string),
    })),
  );
  const variables = board.templating.list.flatMap(({ name, type, query }) => {
    const [, expr = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(query.query ?? '') ?? [];
    return type === 'query' ? [{ at: `dashboard: $${name}`, expr, shown: [label] }] : [];
  });
  const notes = board.annotations.list.map(({ name, expr }) => ({
    at: `dashboard: ${name}`,
    expr,
    shown: [],
  }));
  return [...panels, ...variables, ...notes];
}

function runbookQueries(): readonly Query[] {
  return readdirSync(RUNBOOKS).flatMap((file) =>
    [...readFileSync(join(RUNBOOKS, file), 'utf8').matchAll(/^```promql\n([\s\S]*?)^```$/gm)]
      .flatMap(([, block = '']) => block.trim().split('\n'))
      .map((expr) => ({ at: file, expr, shown: [] })),
  );
}

const queries: readonly Query[] = [
  ...rules.map(({ record, alert, expr }) => ({ at: record ?? alert ?? '', expr, shown: [] })),
  ...dashboardQueries(),
  ...runbookQueries(),
];

/** Prometheus adds the first two, a histogram has the third. */
const ADDED = ['job', 'instance', 'le'];
/** Labels of a recorded series: the first part of its name. */
const LEVELS: Readonly<Record<string, string>> = { method: 'mcp_method_name' };

describe('the metrics of a gateway that has done a bit of everything', {
  skip: missingRedis() ?? false,
}, () => {
  let metered: Metered;
  let text = '';
  let seen: Exposition;

  before(async () => {
    metered = await startMetered();
    text = await metered.scrape();
    seen = parseExposition(text);
  });
  after(() => metered?.close());

  test('are those that the README names, each with its type, and no others', () => {
    const ours = [...seen.types].filter(([name]) => /^(headgate|mcp)_/.test(name));
    const documented = [...documentedFamilies()].map(([name, { type }]) => [name, type]);
    assert.deepEqual(ours.sort(), documented.sort());
    assert.ok(documented.length > 30);
  });

  test('have the labels that the README names, and every series of a metric has all of them', () => {
    for (const [name, { labels }] of documentedFamilies()) {
      const series = seen.series.filter(({ family }) => family === name);
      assert.ok(series.length > 0, name);
      for (const one of series)
        assert.deepEqual(
          Object.keys(one.labels)
            .filter((label) => label !== 'le')
            .sort(),
          labels,
          name,
        );
    }
  });

  test('have moved: traffic, cache, upstreams, Redis, the bus and streams', () => {
    for (const [family, labels] of [
      ['headgate_cache_requests_total', { status: 'hit', tier: 'memory' }],
      ['headgate_cache_requests_total', { status: 'hit', tier: 'redis' }],
      ['headgate_cache_requests_total', { status: 'miss' }],
      ['headgate_cache_stores_total', { tier: 'redis', result: 'ok' }],
      ['headgate_cache_invalidations_total', { source: 'notification', upstream: 'wiki' }],
      ['headgate_cache_invalidations_total', { source: 'admin', scope: 'upstream', upstream: 'library' }],
      ['headgate_cache_operation_duration_seconds_count', { tier: 'memory', operation: 'set' }],
      ['headgate_cache_operation_duration_seconds_count', { tier: 'redis', operation: 'get' }],
      ['headgate_requests_rejected_total', { reason: 'parse' }],
      ['headgate_requests_rejected_total', { reason: 'origin' }],
      ['headgate_requests_rejected_total', { reason: 'no_route' }],
      ['headgate_requests_rejected_total', { reason: 'method_not_allowed' }],
      ['headgate_upstream_attempts_total', { upstream: 'library', outcome: 'ok' }],
      ['headgate_upstream_attempts_total', { upstream: 'dead', outcome: 'connect' }],
      ['headgate_upstream_notifications_total', { upstream: 'wiki' }],
      ['headgate_upstream_subscription_up', { upstream: 'wiki' }],
      ['headgate_streams_open', { route: '/mcp', kind: 'listen' }],
      ['headgate_bus_messages_total', { direction: 'in' }],
      ['headgate_bus_messages_total', { direction: 'out' }],
      ['mcp_server_operation_duration_seconds_count', { mcp_method_name: 'tools/call', route: '/mcp' }],
      ['mcp_server_operation_duration_seconds_count', { route: '/dead', error_type: 'connect' }],
      ['headgate_upstream_up', { upstream: 'library' }],
      ['headgate_ready', {}],
      ['headgate_redis_up', {}],
      ['headgate_config_last_reload_successful', {}],
    ] as const)
      assert.ok(total(seen, family, labels) > 0, `${family} ${JSON.stringify(labels)}`);
    assert.equal(total(seen, 'headgate_upstream_up', { upstream: 'dead' }), 0);
    assert.equal(
      seen.series.some(
        ({ family, labels }) => family === 'headgate_upstream_subscription_up' && labels.upstream === 'dead',
      ),
      false,
    );
  });

  test('are taken by promtool as they are', tool, () => {
    const ours = text.split('\n').filter((line) => !/(^|# (HELP|TYPE) )(process|nodejs)_/.test(line));
    assert.deepEqual(promtool(['check', 'metrics'], ours.join('\n')), { code: 0, said: '' });
    // prom-client's own names are not Prometheus' taste; that it can read them is what counts.
    assert.doesNotMatch(promtool(['check', 'metrics'], text).said, /error while linting|parse/i);
  });

  test('are all that alerts, dashboard and runbooks ask for, with labels and values that there are', () => {
    const known: Readonly<Record<string, readonly string[]>> = {
      error_type: ERROR_TYPES.map(String),
      mcp_method_name: KNOWN_METHODS,
    };
    const values = (label: string): readonly string[] => [
      ...(known[label] ?? []),
      ...seen.series.flatMap(({ labels }) => labels[label] ?? []),
    ];
    for (const { at, expr, shown } of queries) {
      const { selectors, labels } = askedBy(expr);
      assert.ok(selectors.length > 0, `${at}: ${expr}`);
      const has = new Set(ADDED);
      for (const { metric, matchers } of selectors) {
        for (const label of labelsAskable(seen, metric)) has.add(label);
        assert.ok(
          recorded.has(metric) || seen.series.some(({ name }) => name === metric),
          `${at}: ${metric}`,
        );
        for (const { label, values: wanted } of matchers) {
          assert.ok(has.has(label), `${at}: ${metric} has no ${label}`);
          for (const value of wanted) {
            if (ADDED.includes(label) || label === 'upstream' || /[$.*+]|^$/.test(value)) continue;
            assert.ok(values(label).includes(value), `${at}: ${label}="${value}"`);
          }
        }
      }
      for (const label of [...labels, ...shown]) assert.ok(has.has(label), `${at}: no ${label} in ${expr}`);
    }
    assert.ok(queries.length > 60, `${queries.length}`);
  });
});

/** The labels of a metric in a scrape, or of what is recorded. */
function labelsAskable(seen: Exposition, metric: string): Iterable<string> {
  const family = seen.series.find(({ name }) => name === metric)?.family;
  if (family !== undefined) return labelsOf(seen, family);
  const [level = ''] = metric.split(':');
  return level.split('_').map((label) => LEVELS[label] ?? label);
}

test('promtool takes every expression of the dashboard and the runbooks', tool, () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-queries-'));
  try {
    const file = join(folder, 'queries.yml');
    const asRules = queries.map(({ expr }, i) => ({ record: `query:number_${i}`, expr }));
    writeFileSync(file, stringify({ groups: [{ name: 'queries', rules: asRules }] }));
    const { code, said } = promtool(['check', 'rules', file]);
    assert.equal(code, 0, said);
    assert.match(said, new RegExp(`SUCCESS: ${queries.length} rules found`));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a name that nobody counts is found, in whatever part of an expression it stands', () => {
  const { selectors, labels } = askedBy(
    'sum by (a, b) (rate(x_total{c="1",d!~"2|3"}[5m])) / on (e) group_left (f) y or 0 * z:w:rate5m > bool 1',
  );
  assert.deepEqual(
    selectors.map(({ metric }) => metric),
    ['x_total', 'y', 'z:w:rate5m'],
  );
  assert.deepEqual(selectors[0]?.matchers, [
    { label: 'c', values: ['1'] },
    { label: 'd', values: ['2', '3'] },
  ]);
  assert.deepEqual(labels, ['a', 'b', 'e', 'f']);
});
