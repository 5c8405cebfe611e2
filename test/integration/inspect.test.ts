/** `headgate inspect` in front of servers that are good, bad and no servers at all. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Secret } from '../../src/config/secret.ts';
import type { Facts } from '../../src/inspect/facts.ts';
import type { FindingId } from '../../src/inspect/findings.ts';
import { judge } from '../../src/inspect/judge.ts';
import { type Inspection, inspect } from '../../src/inspect/probe.ts';
import { jsonReport, textReport } from '../../src/inspect/report.ts';
import { start as startCity } from '../demo/servers/city.ts';
import { start as startLibrary } from '../demo/servers/library.ts';
import { until } from '../support/fault-server.ts';
import {
  GOOD_HINTS,
  type InspectedAnswer,
  type InspectedRequest,
  RESOURCE,
  startInspected,
} from '../support/inspected.ts';
import { startLegacy } from '../support/legacy-server.ts';
import { selfSigned } from '../support/self-signed.ts';
import { html, startSimulator } from '../support/simulator.ts';
import { upstreamConfig } from '../support/upstream-kit.ts';

const CANARY = 'canary-token-0123456789';
const FOLDER = mkdtempSync(join(tmpdir(), 'headgate-inspect-'));
after(() => rmSync(FOLDER, { recursive: true }));

const plain = (text: string): string => text;

function look(url: string, rest: Partial<Inspection> = {}): Promise<Facts> {
  return inspect({
    config: { ...upstreamConfig(new URL(url)), protocol: 'auto' },
    bearer: undefined,
    uri: undefined,
    maxEntryBytes: 1 << 20,
    now: () => performance.now(),
    ...rest,
  });
}

async function foundAt(url: string, rest: Partial<Inspection> = {}): Promise<readonly FindingId[]> {
  return judge(await look(url, rest)).map(({ id }) => id);
}

type Wrong = (request: InspectedRequest) => InspectedAnswer | Promise<InspectedAnswer>;

async function foundIn(wrong: Wrong, rest: Partial<Inspection> = {}): Promise<readonly FindingId[]> {
  const server = await startInspected(wrong);
  try {
    return await foundAt(server.url, rest);
  } finally {
    await server.close();
  }
}

/** A result in the place of the good one. */
const says =
  (method: string, result: Record<string, unknown>, hints: object = GOOD_HINTS): Wrong =>
  (request) =>
    request.method === method ? { result: { resultType: 'complete', ...result, ...hints } } : undefined;

describe('a server that is as it should be', () => {
  test('has no finding, is asked for no tool and no prompt, and is left without a listen', async () => {
    const server = await startInspected();
    const facts = await look(server.url);
    assert.deepEqual(judge(facts), []);
    const harmless =
      /^(server\/discover|(resources|resources\/templates|tools)\/list|resources\/read|subscriptions\/listen|dev\.headgate\/inspect)$/;
    assert.deepEqual(
      server.asked.filter((method) => !harmless.test(method)),
      [],
    );
    assert.equal(facts.listen?.kind, 'acknowledged');
    assert.equal(facts.checks.length, 5);
    await until(() => server.listens === 0, 'the listen to end');
    await server.close();
  });

  for (const [name, start] of [
    ['city', startCity],
    ['library', startLibrary],
  ] as const)
    test(`the demo server ${name} has no violation`, async () => {
      const server = await start({});
      const findings = judge(await look(server.url));
      assert.deepEqual(
        findings.filter(({ severity }) => severity !== 'note'),
        [],
      );
      await server.close();
    });

  test('of an older revision is translated, and its hints are not missed', async () => {
    const server = await startLegacy();
    const facts = await look(server.url.href);
    assert.ok(facts.hello.kind === 'met' && facts.hello.era === 'older');
    assert.equal(facts.hello.revision, '2025-11-25');
    const ids = judge(facts).map(({ id }) => id);
    assert.ok(ids.includes('older-revision') && !ids.includes('ttl-missing'), ids.join());
    await server.close();
  });

  test('one URI that is named is read in place of a sample', async () => {
    const server = await startInspected();
    const facts = await look(server.url, { uri: 'good://other' });
    assert.deepEqual(
      facts.reads.map(({ uri, kind }) => [uri, kind]),
      [['good://other', 'failed']],
    );
    await server.close();
  });
});

describe('a server with something wrong', () => {
  const read = (contents: unknown, hints?: object): Wrong => says('resources/read', { contents }, hints);
  const contents = [{ uri: RESOURCE, text: 'x' }];
  const resources = [{ uri: RESOURCE, name: 'one' }];
  const cases: readonly (readonly [FindingId, Wrong])[] = [
    ['ttl-missing', read(contents, { cacheScope: 'public' })],
    ['ttl-wrong', read(contents, { ttlMs: 1.5, cacheScope: 'public' })],
    ['ttl-zero', read(contents, { ttlMs: 0, cacheScope: 'public' })],
    ['ttl-long', read(contents, { ttlMs: 90_000_000, cacheScope: 'public' })],
    ['scope-missing', read(contents, { ttlMs: 5 })],
    ['scope-wrong', read(contents, { ttlMs: 5, cacheScope: 'shared' })],
    ['read-empty', read([])],
    ['read-other-uri', read([{ uri: 'good://two', text: 'x' }])],
    ['read-invalid', read([{ text: 'x' }])],
    ['read-large', read([{ uri: RESOURCE, text: 'x'.repeat(2 << 20) }])],
    [
      'read-asks',
      (request) =>
        request.method === 'resources/read' && request.params.uri === RESOURCE
          ? { result: { resultType: 'input_required', inputRequests: {} } }
          : undefined,
    ],
    [
      'read-failed',
      (request) => (request.params.uri === RESOURCE ? { error: { code: -32603, message: 'no' } } : undefined),
    ],
    ['unknown-resource-answered', read(contents)],
    [
      'list-absent',
      ({ method }) =>
        method === 'tools/list' ? { status: 404, error: { code: -32601, message: 'no' } } : undefined,
    ],
    ['list-failed', says('tools/list', { tools: 7 })],
    ['items-dropped', says('resources/list', { resources: [...resources, { uri: 'no uri', name: 'x' }] })],
    ['duplicate-ids', says('resources/list', { resources: [...resources, ...resources] })],
    ['cursor-repeats', says('resources/list', { resources, nextCursor: 'again' })],
    ['cursor-wrong', says('resources/list', { resources, nextCursor: 7 })],
    [
      'template-owns-nothing',
      says('resources/templates/list', { resourceTemplates: [{ uriTemplate: '{+any}', name: 'x' }] }),
    ],
    [
      'template-unmatched',
      says('resources/templates/list', { resourceTemplates: [{ uriTemplate: 'other://{x}', name: 'x' }] }),
    ],
    [
      'cursor-refused',
      ({ method, params }) =>
        method !== 'resources/list'
          ? undefined
          : params.cursor === undefined
            ? { result: { resultType: 'complete', resources, nextCursor: 'x', ...GOOD_HINTS } }
            : { error: { code: -32602, message: 'no' } },
    ],
    [
      'hints-differ',
      ({ method, params }) =>
        method === 'resources/list' && params.cursor === undefined
          ? {
              result: {
                resultType: 'complete',
                resources: [],
                nextCursor: 'x',
                ttlMs: 5,
                cacheScope: 'private',
              },
            }
          : undefined,
    ],
    [
      'listen-refused',
      ({ method }) =>
        method === 'subscriptions/listen'
          ? { status: 404, error: { code: -32601, message: 'no' } }
          : undefined,
    ],
    [
      'listen-partly',
      (request) => (request.method === 'subscriptions/listen' ? acknowledgeLess(request) : undefined),
    ],
    [
      'no-notifications',
      says('server/discover', { supportedVersions: ['2026-07-28'], capabilities: { resources: {} } }),
    ],
    ['no-common-revision', says('server/discover', { supportedVersions: ['2027-01-01'], capabilities: {} })],
    ['unknown-method-answered', says('dev.headgate/inspect', {})],
    [
      'refused-otherwise',
      ({ method }) =>
        method === 'dev.headgate/inspect' ? { error: { code: -32601, message: 'no' } } : undefined,
    ],
    [
      'check-unanswered',
      ({ method, response }) => (method === 'dev.headgate/inspect' ? hangUp(response) : undefined),
    ],
  ];
  for (const [id, wrong] of cases)
    test(`is told of ${id}`, async () => {
      const ids = await foundIn(wrong);
      assert.ok(ids.includes(id), ids.join());
    });

  test('a listen that is not acknowledged is waited for no longer than an answer', async () => {
    const ids = await foundIn(({ method }) => (method === 'subscriptions/listen' ? 'sent' : undefined), {
      config: { ...upstreamConfig(new URL('http://127.0.0.1:1/')) },
    });
    assert.deepEqual(ids, ['unreachable']);
    const server = await startInspected(({ method }) =>
      method === 'subscriptions/listen' ? 'sent' : undefined,
    );
    const config = upstreamConfig(new URL(server.url), { responseMs: 300 });
    assert.ok((await foundAt(server.url, { config })).includes('listen-failed'));
    await server.close();
  });

  test('a revision that is refused without those that are supported is refused otherwise', async () => {
    const server = await startInspected(({ headers }) =>
      headers['mcp-protocol-version'] === '1900-01-01'
        ? { status: 400, error: { code: -32022, message: 'no', data: {} } }
        : undefined,
    );
    const { checks } = await look(server.url);
    const outcomes = checks.flatMap(({ name, outcome }) => (name === 'unknown-version' ? [outcome] : []));
    assert.deepEqual(outcomes, ['refused-otherwise']);
    await server.close();
  });

  test('one that checks nothing is told so, header by header', async () => {
    const server = await startInspected(() => undefined, 'lax');
    const ids = await foundAt(server.url);
    for (const id of ['method-header-unchecked', 'name-header-unchecked', 'version-unchecked'] as const)
      assert.ok(ids.includes(id), `${id} is not among ${ids.join()}`);
    await server.close();
  });

  test('cursors without end are walked for a bounded time', async () => {
    let pages = 0;
    const server = await startInspected(({ method }) =>
      method === 'resources/list'
        ? { result: { resultType: 'complete', resources: [], nextCursor: `c${pages++}`, ...GOOD_HINTS } }
        : undefined,
    );
    const startedAt = performance.now();
    const config = upstreamConfig(new URL(server.url), { responseMs: 400 });
    assert.ok((await foundAt(server.url, { config })).includes('list-unfinished'));
    assert.ok(performance.now() - startedAt < 10_000);
    assert.ok(pages > 1);
    await server.close();
  });

  test('cursors that go round are noticed at the first that comes again', async () => {
    const server = await startInspected(({ method, params }) =>
      method === 'resources/list'
        ? {
            result: {
              resultType: 'complete',
              resources: [],
              nextCursor: params.cursor === 'a' ? 'b' : 'a',
              ...GOOD_HINTS,
            },
          }
        : undefined,
    );
    const facts = await look(server.url);
    assert.ok(judge(facts).some(({ id }) => id === 'cursor-repeats'));
    assert.ok(server.asked.filter((method) => method === 'resources/list').length <= 3);
    await server.close();
  });

  test('a page of a hundred thousand items is counted', async () => {
    const resources = Array.from({ length: 100_000 }, (_, index) => ({ uri: `good://${index}`, name: 'x' }));
    const server = await startInspected(says('resources/list', { resources }));
    const config = {
      ...upstreamConfig(new URL(server.url), { responseMs: 30_000 }),
      protocol: 'auto' as const,
    };
    const [list] = (await look(server.url, { config })).lists;
    assert.ok(list?.kind === 'walked' && list.items === 100_000, JSON.stringify(list));
    await server.close();
  });

  test('what it says moves no cursor, makes no line, and shows no token', async () => {
    const evil = `\u001b[2J\u0007\nviolation\u202e${CANARY}`;
    const server = await startInspected(async (request) => {
      if (request.method === 'server/discover')
        return {
          result: {
            resultType: 'complete',
            supportedVersions: ['2026-07-28', evil],
            capabilities: { [evil]: { [evil]: true }, tools: {}, resources: {} },
            _meta: { 'io.modelcontextprotocol/serverInfo': { name: evil, version: evil } },
            ...GOOD_HINTS,
          },
        };
      if (request.method === 'tools/list')
        return { error: { code: -32603, message: `${evil} ${request.headers.authorization}` } };
      return request.method === 'resources/list'
        ? says(request.method, {
            resources: [
              { uri: `x:${CANARY}`, name: evil },
              { uri: evil, name: evil },
            ],
          })(request)
        : undefined;
    });
    const facts = await look(server.url, { bearer: new Secret(CANARY) });
    const findings = judge(facts);
    for (const text of [textReport(facts, findings, plain), jsonReport(facts, findings)]) {
      assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
      assert.ok(!text.includes(CANARY));
      assert.doesNotMatch(text, /^violation[^ ]/m);
    }
    await server.close();
  });
});

describe('what is no MCP server', () => {
  test('a web page is told as such, with how it begins', async () => {
    const server = createServer((_, response) =>
      response.setHeader('Content-Type', 'text/html').end('<!doctype html>welcome'),
    );
    const url = await listening(server);
    const [finding] = judge(await look(url));
    assert.equal(finding?.id, 'not-mcp');
    assert.match(finding.says, /<!doctype html>welcome/);
    server.close();
  });

  test('401 asks for a credential', async () => {
    const server = createServer((_, response) =>
      response.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end(),
    );
    assert.deepEqual(await foundAt(await listening(server)), ['unauthorized']);
    server.close();
  });

  test('a certificate that nobody signed is told as such', async () => {
    const server = createTlsServer(selfSigned(), (_, response) => response.end());
    const url = await listening(server);
    assert.deepEqual(await foundAt(url.replace('http://127.0.0.1', 'https://localhost')), [
      'bad-certificate',
    ]);
    server.close();
  });

  test('one that hangs is waited for no longer than its time', async () => {
    const server = createServer(() => undefined);
    const url = await listening(server);
    const config = upstreamConfig(new URL(url), { responseMs: 300 });
    assert.deepEqual(await foundAt(url, { config }), ['unreachable']);
    server.closeAllConnections();
    server.close();
  });

  test('faults of lists and reads are told, whatever else works', async () => {
    const simulator = await startSimulator(new Map([['page', { run: html(500) }]]));
    simulator.turn('page', 'on');
    const ids = await foundAt(simulator.url('page'));
    assert.ok(ids.includes('list-failed'), ids.join());
    await simulator.close();
  });
});

async function listening(
  server: ReturnType<typeof createServer> | ReturnType<typeof createTlsServer>,
): Promise<string> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

function hangUp(response: InspectedRequest['response']): 'sent' {
  response.destroy();
  return 'sent';
}

function acknowledgeLess({ response, id }: InspectedRequest): 'sent' {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  const params = {
    notifications: { toolsListChanged: true },
    _meta: { 'io.modelcontextprotocol/subscriptionId': id },
  };
  response.write(
    `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params })}\n\n`,
  );
  return 'sent';
}

describe('the command', () => {
  async function headgate(
    args: readonly string[],
    env: Record<string, string> = {},
    onStart?: (pid: number) => void,
  ) {
    const child = spawn(process.execPath, [join(process.cwd(), 'dist/main.js'), 'inspect', ...args], {
      cwd: FOLDER,
      env: { PATH: process.env.PATH, ...env },
    });
    const said = { stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => (said.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said.stderr += text));
    if (child.pid !== undefined) onStart?.(child.pid);
    const [code, signal] = await new Promise<[number | null, string | null]>((done) =>
      child.on('close', (...ended) => done(ended)),
    );
    return { code, signal, ...said };
  }

  test('exits with 0 for a good server, with 1 for one that is not there, with 2 for a bad line', async () => {
    const server = await startInspected();
    const good = await headgate([server.url]);
    assert.equal(good.code, 0, good.stderr);
    assert.match(good.stdout, /^good 1 {2}MCP 2026-07-28$/m);
    assert.match(good.stdout, /0 violations, 0 warnings, 0 notes/);
    assert.doesNotMatch(good.stdout, /\u001b/);
    await server.close();
    assert.equal((await headgate([server.url])).code, 1);
    for (const args of [
      [],
      ['ftp://x'],
      [server.url, server.url],
      [server.url, '--timeout', 'soon'],
      [server.url, '--upstream', 'x'],
      [server.url, '--bearer-file', 'none'],
    ])
      assert.equal((await headgate(args)).code, 2, args.join(' '));
  });

  test('--json says the same for machines', async () => {
    const server = await startInspected(
      says('resources/read', { contents: [{ uri: RESOURCE, text: 'x' }] }, {}),
    );
    const { code, stdout } = await headgate(['--json', server.url]);
    const report = JSON.parse(stdout) as {
      version: number;
      findings: { id: string; where: string[] }[];
      counts: { violations: number };
    };
    assert.equal(code, 1);
    assert.equal(report.version, 1);
    assert.deepEqual(report.findings.find(({ id }) => id === 'ttl-missing')?.where, [RESOURCE]);
    assert.equal(
      report.counts.violations,
      report.findings.filter((one) => 'severity' in one && one.severity === 'violation').length,
    );
    await server.close();
  });

  test('an upstream of a configuration is asked with its credential, and a token comes from a file or the environment', async () => {
    const tokens = new Set<string | undefined>();
    const server = await startInspected(({ headers }) => void tokens.add(headers.authorization));
    writeFileSync(
      join(FOLDER, 'c.yaml'),
      `version: 1\nupstreams: { docs: { url: ${server.url}, auth: { type: bearer, token: "\${T}" } } }\nroutes: [{ path: /mcp, upstreams: [docs] }]\n`,
    );
    writeFileSync(join(FOLDER, 'token'), 'of-a-file\n');
    const runs = [
      [['-c', 'c.yaml', '--upstream', 'docs'], { T: CANARY }],
      [['--bearer-file', 'token', server.url], {}],
      [[server.url], { HEADGATE_BEARER: 'of-the-environment' }],
    ] as const;
    for (const [args, env] of runs) {
      const { code, stdout, stderr } = await headgate(args, env);
      assert.equal(code, 0, stderr);
      assert.ok(!(stdout + stderr).includes(CANARY));
    }
    assert.deepEqual([...tokens], [`Bearer ${CANARY}`, 'Bearer of-a-file', 'Bearer of-the-environment']);
    await server.close();
  });

  test('Ctrl-C ends it at once', async () => {
    let pid = 0;
    const server = createServer(() => process.kill(pid, 'SIGINT'));
    const url = await listening(server);
    const { signal } = await headgate([url], {}, (started) => {
      pid = started;
    });
    assert.equal(signal, 'SIGINT');
    server.closeAllConnections();
    server.close();
  });
});
