/** What stands in deploy/prometheus, deploy/grafana and deploy/runbooks: promtool takes it, and it fits together. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { COMMANDS } from '../../src/cli/args.ts';
import { missingPromtool, promtool } from '../support/promtool.ts';

const ROOT = process.cwd();
const PROMETHEUS = join(ROOT, 'deploy/prometheus');
const RULES = join(PROMETHEUS, 'rules/headgate.rules.yml');
const TESTS = join(PROMETHEUS, 'rules/tests');
const RUNBOOKS = join(ROOT, 'deploy/runbooks');
const tool = { skip: missingPromtool() ?? false };
const read = (path: string): string => readFileSync(path, 'utf8');

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const alerts = (parse(read(RULES)) as { groups: { rules: Partial<Alert>[] }[] }).groups
  .flatMap((group) => group.rules)
  .filter((rule): rule is Alert => rule.alert !== undefined);

const ALERTS = [
  'HeadgateErrorRatioHigh',
  'HeadgateLatencyHigh',
  'HeadgateUpstreamDown',
  'HeadgateUpstreamCircuitOpen',
  'HeadgateCacheHitRatioLow',
  'HeadgateRedisDown',
  'HeadgateInvalidationStreamDown',
  'HeadgateBusSilent',
  'HeadgateConfigReloadFailed',
  'HeadgateEventLoopLagHigh',
];
const SECTIONS = ['What it means', 'What users notice', 'First look', 'Causes and what to do'];

describe('what Prometheus is given', () => {
  for (const file of ['prometheus.yml', 'local.yml'])
    test(`is a configuration that promtool takes, with these rules in it: ${file}`, tool, () => {
      const { code, said } = promtool(['check', 'config', join(PROMETHEUS, file)]);
      assert.equal(code, 0, said);
      assert.match(said, /SUCCESS: 1 rule files found/);
    });

  test('has rules that promtool takes', tool, () => {
    const { code, said } = promtool(['check', 'rules', RULES]);
    assert.equal(code, 0, said);
  });

  test('fires when it should, and not when it should not', tool, () => {
    const files = readdirSync(TESTS).map((file) => join(TESTS, file));
    const { code, said } = promtool(['test', 'rules', ...files]);
    assert.equal(code, 0, said);
    assert.equal(said.match(/SUCCESS/g)?.length, files.length);
  });

  test('has the ten alerts, each tested both firing and not firing', () => {
    assert.deepEqual(
      alerts.map(({ alert }) => alert),
      ALERTS,
    );
    interface Tested {
      readonly alertname: string;
      readonly exp_alerts: readonly unknown[];
    }
    const tested = readdirSync(TESTS)
      .map((file) => parse(read(join(TESTS, file))) as { tests: { alert_rule_test?: readonly Tested[] }[] })
      .flatMap(({ tests }) => tests.flatMap((one) => one.alert_rule_test ?? []));
    for (const name of ALERTS) {
      const cases = tested.filter(({ alertname }) => alertname === name);
      assert.ok(
        cases.some(({ exp_alerts }) => exp_alerts.length > 0),
        `${name} firing`,
      );
      assert.ok(
        cases.some(({ exp_alerts }) => exp_alerts.length === 0),
        `${name} not firing`,
      );
    }
  });

  test('says of each alert how bad it is, in words, and where its page is; none fires on one look', () => {
    for (const { alert, labels, annotations, for: lasts } of alerts) {
      assert.match(labels.severity ?? '', /^(critical|warning)$/, alert);
      assert.match(lasts ?? '', /^[1-9]\d*m$/, alert);
      for (const name of ['summary', 'description']) assert.ok((annotations[name] ?? '').length > 10, alert);
      assert.equal(annotations.runbook_url, `deploy/runbooks/${alert}.md`);
    }
  });
});

describe('the runbooks', () => {
  const pages = readdirSync(RUNBOOKS).filter((file) => file !== 'README.md');

  test('are one for each alert, with the same sections, and are listed', () => {
    assert.deepEqual(pages.toSorted(), ALERTS.map((name) => `${name}.md`).toSorted());
    const list = read(join(RUNBOOKS, 'README.md'));
    for (const { alert, labels } of alerts) {
      const page = read(join(RUNBOOKS, `${alert}.md`));
      assert.ok(page.startsWith(`# ${alert}\n`), alert);
      const sections = [...page.matchAll(/^## (.+)$/gm)].map(([, title]) => title);
      assert.deepEqual(sections, SECTIONS, alert);
      const look = page.slice(page.indexOf('## First look'), page.indexOf('## Causes'));
      assert.match(look, /^```(sh|promql)\n\S/m, `${alert}: nothing to type`);
      assert.ok(list.includes(`| [${alert}](${alert}.md) | ${labels.severity} |`), alert);
    }
  });

  test('link to pages that are there', () => {
    for (const page of [...pages, 'README.md'])
      for (const [, target = ''] of read(join(RUNBOOKS, page)).matchAll(/\]\(([^)#]+)\)/g))
        assert.ok(existsSync(join(RUNBOOKS, target)), `${page}: ${target}`);
  });

  test('run commands of headgate that there are', () => {
    const known = COMMANDS.map(({ name }) => name);
    const named = pages.flatMap((page) =>
      [...read(join(RUNBOOKS, page)).matchAll(/dist\/main\.js ([a-z-]+)/g)].map(([, name]) => name),
    );
    assert.ok(named.includes('purge') && named.includes('validate'));
    for (const name of named) assert.ok(known.includes(name as (typeof known)[number]), name);
  });

  test('quote log messages that there are', () => {
    const source = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => read(join(ROOT, 'src', path)))
      .join('\n');
    const message =
      /`((?:upstream|redis:|changes of|new requests|requests are|no connection|configuration) [a-z][^`]*)`/g;
    const spans = pages.flatMap((page) =>
      [...read(join(RUNBOOKS, page)).replaceAll(/\n\s*/g, ' ').matchAll(message)].map(
        ([, span = '']) => span,
      ),
    );
    assert.ok(new Set(spans).size >= 8, spans.join('\n'));
    for (const span of spans) assert.ok(source.includes(span), span);
  });
});

describe('what Grafana is given', () => {
  const board = JSON.parse(read(join(ROOT, 'deploy/grafana/dashboards/headgate.json'))) as {
    readonly id: null;
    readonly uid: string;
    readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
    readonly panels: readonly {
      readonly id: number;
      readonly type: string;
      readonly title: string;
      readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
      readonly datasource?: { readonly uid: string };
      readonly targets?: readonly { readonly datasource: { readonly uid: string } }[];
    }[];
  };

  test('is a dashboard that can be imported anywhere, and stays the same one', () => {
    assert.equal(board.id, null);
    assert.equal(board.uid, 'headgate');
    assert.deepEqual(
      board.templating.list.map(({ name, type }) => [name, type]),
      [
        ['DS_PROMETHEUS', 'datasource'],
        ...['job', 'instance', 'route', 'upstream'].map((name) => [name, 'query']),
      ],
    );
    const variable = board.templating.list[0]?.name;
    for (const { title, type, datasource, targets = [] } of board.panels) {
      if (type === 'row') continue;
      for (const one of [datasource, ...targets.map((target) => target.datasource)])
        assert.equal(one?.uid, `\${${variable}}`, title);
    }
  });

  test('has its rows, and panels that do not lie on each other', () => {
    assert.deepEqual(
      board.panels.filter(({ type }) => type === 'row').map(({ title }) => title),
      ['Traffic', 'Cache', 'Upstreams', 'Redis and the bus', 'Streams', 'Runtime', 'Configuration'],
    );
    assert.equal(new Set(board.panels.map(({ id }) => id)).size, board.panels.length);
    const taken = new Set<string>();
    for (const { title, gridPos } of board.panels) {
      assert.ok(gridPos.x + gridPos.w <= 24, title);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          assert.ok(!taken.has(`${x} ${y}`), title);
          taken.add(`${x} ${y}`);
        }
    }
  });

  test('is provisioned from where it is', () => {
    const provisioning = join(ROOT, 'deploy/grafana/provisioning');
    const { datasources } = parse(read(join(provisioning, 'datasources/prometheus.yml'))) as {
      datasources: readonly { readonly type: string; readonly url: string }[];
    };
    assert.deepEqual(
      datasources.map(({ type, url }) => [type, url]),
      [['prometheus', 'http://prometheus:9090']],
    );
    const { providers } = parse(read(join(provisioning, 'dashboards/headgate.yml'))) as {
      providers: readonly { readonly options: { readonly path: string } }[];
    };
    assert.deepEqual(
      providers.map(({ options }) => options.path),
      ['/var/lib/grafana/dashboards'],
    );
  });
});
