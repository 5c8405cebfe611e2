/** Another configuration while the gateway runs: what changes, what stays, and what is refused (R44). */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, type TestContext, test } from 'node:test';
import { type Gateway, projectRoot, startGateway } from '../demo/gateway.ts';
import type { Fault } from '../support/fault-server.ts';
import { openListener } from '../support/listener-client.ts';
import { call, until } from '../support/mcp.ts';
import { startTeller, type Teller } from '../support/teller.ts';

const root = projectRoot(import.meta.dirname);
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** YAML of an upstream. */
type Entry = readonly [name: string, teller: Teller, rest?: string];

async function tellers<const Names extends readonly string[]>(
  ...names: Names
): Promise<{ readonly [K in keyof Names]: Teller }> {
  const started = await Promise.all(names.map((name) => startTeller(name)));
  for (const one of started) closers.push(() => one.close());
  return started as { readonly [K in keyof Names]: Teller };
}

function yaml(
  upstreams: readonly Entry[],
  { more = '', path = '/mcp', listen = '127.0.0.1:0' } = {},
): string {
  return `version: 1
listen: ${listen}
status: 127.0.0.1:0
admin: false
shutdown: { grace: 5s }
upstreams:
${upstreams.map(([name, { url }, rest = '']) => `  ${name}: { url: "${url}"${rest} }`).join('\n')}
routes:
  - { path: ${path}, upstreams: [${upstreams.map(([name]) => name).join(', ')}] }
${more}`;
}

interface Reloadable extends Gateway {
  readonly url: string;
  readonly file: string;
  /** Puts another file in its place, at once. */
  write(text: string): void;
  /** The log, as far as it speaks of the configuration. */
  readonly told: readonly Readonly<Record<string, unknown>>[];
  /** The next that it says of the configuration. */
  next(act: () => void, message: RegExp): Promise<Readonly<Record<string, unknown>>>;
  metric(name: string): Promise<number>;
}

async function gateway(text: string, env: Readonly<Record<string, string>> = {}): Promise<Reloadable> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-reload-'));
  closers.push(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'headgate.yaml');
  writeFileSync(file, text);
  return watched(file, env);
}

async function watched(file: string, env: Readonly<Record<string, string>> = {}): Promise<Reloadable> {
  const told: Readonly<Record<string, unknown>>[] = [];
  const onLine = (line: string): void => {
    if (line.startsWith('{') && line.includes('"msg":"configuration')) told.push(JSON.parse(line));
  };
  const running = await startGateway({ root, args: ['serve', '-c', file], env, onLine });
  closers.push(() => running.stop());
  return {
    ...running,
    url: `${running.mcp}/mcp`,
    file,
    write(next) {
      writeFileSync(`${file}.next`, next);
      renameSync(`${file}.next`, file);
    },
    told,
    async next(act, message) {
      const before = told.length;
      act();
      await until(() => told.length > before, 'a word on the configuration', 10_000);
      const said = told.at(-1) ?? {};
      assert.match(String(said.msg), message, JSON.stringify(said));
      return said;
    },
    async metric(name) {
      const text = await (await fetch(`${running.status}/metrics`)).text();
      const line = text.split('\n').find((one) => one.startsWith(`${name} `));
      return Number(line?.split(' ')[1] ?? Number.NaN);
    },
  };
}

const RELOADED = /^configuration reloaded$/;
const REFUSED = /^configuration not taken up: the last good one stays$/;
const SAME = /nothing in it has changed$/;

/** What is not its own it has not, also where it is the only one. */
const claimed = (a: Teller): Entry => ['a', a, ', resources: ["a://**"]'];

const read = (url: string, uri: string) => call(url, 'resources/read', { uri });
const textOf = async (url: string, uri: string): Promise<string | undefined> =>
  (await read(url, uri)).json.result?.contents?.[0]?.text;
const isHit = async (url: string, uri: string): Promise<boolean> =>
  /; hit/.test(String((await read(url, uri)).headers['cache-status']));

describe('what is new', () => {
  test('R44: a third upstream is added under load without one failed request', async (t: TestContext) => {
    const [a, b, c] = await tellers('a', 'b', 'c');
    const running = await gateway(
      yaml([
        ['a', a],
        ['b', b],
      ]),
    );
    const { url } = running;
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    closers.push(() => agent.destroy());
    const counts = { ok: 0, failed: 0 };
    const failures: string[] = [];
    let over = false;
    closers.push(() => {
      over = true;
    });
    const ask = async (i: number): Promise<void> => {
      const asked =
        i % 4 === 0
          ? call(url, 'resources/list', {}, { agent })
          : i % 4 === 1
            ? call(url, 'tools/call', { name: 'a-tool', arguments: {} }, { agent })
            : call(url, 'resources/read', { uri: i % 4 === 2 ? 'a://1' : 'b://2' }, { agent });
      const { status, json, text } = await asked;
      if (status === 200 && json.result !== undefined && !/incomplete/.test(text)) counts.ok++;
      else {
        counts.failed++;
        failures.push(`${status} ${text.slice(0, 200)}`);
      }
    };
    const load = Promise.all(
      Array.from({ length: 16 }, async (_, worker) => {
        for (let i = worker; !over; i++)
          await ask(i).catch((error: Error) => {
            counts.failed++;
            failures.push(String(error));
          });
      }),
    );
    await until(() => counts.ok > 200, 'load');
    const said = await running.next(
      () =>
        running.write(
          yaml([
            ['a', a],
            ['b', b],
            ['c', c],
          ]),
        ),
      RELOADED,
    );
    assert.deepEqual([said.upstreamsAdded, said.routesChanged], [['c'], ['/mcp']]);
    await until(async () => (await textOf(url, 'c://1')) === '0', 'the new upstream');
    const behind = counts.ok;
    await until(() => counts.ok > behind + 200, 'load behind it');
    over = true;
    await load;
    t.diagnostic(`${counts.ok} requests answered during the reload, ${counts.failed} failed`);
    assert.deepEqual(failures, []);
    const listed = (await call(url, 'resources/list')).json.result.resources as { uri: string }[];
    assert.deepEqual(
      listed.map(({ uri }) => uri.slice(0, 4)),
      ['a://', 'a://', 'a://', 'b://', 'b://', 'b://', 'c://', 'c://', 'c://'],
    );
    assert.equal(await running.metric('headgate_upstream_up{upstream="c"}'), 1);
  });

  test('R44: those that did not change keep their sockets, their streams and what is cached', async () => {
    const [a, b] = await tellers('a', 'b');
    const running = await gateway(yaml([['a', a]]));
    const { url } = running;
    await read(url, 'a://1');
    await until(
      () => a.open.length > 0 && a.open.some(({ filter }) => filter.resourceSubscriptions.includes('a://1')),
      'it listens',
    );
    await until(() => isHit(url, 'a://1'), 'a hit');
    const [discovers, streams] = [a.asked('server/discover'), a.streams.length];
    const open = a.open.map(({ socket }) => socket);
    const reads = a.asked('resources/read');
    await running.next(
      () =>
        running.write(
          yaml([
            ['a', a],
            ['b', b],
          ]),
        ),
      RELOADED,
    );
    assert.equal(await textOf(url, 'b://1'), '0');
    assert.equal(await isHit(url, 'a://1'), true);
    assert.deepEqual(
      [a.asked('server/discover'), a.streams.length, a.asked('resources/read')],
      [discovers, streams, reads],
    );
    assert.ok(open.length > 0 && open.every(({ destroyed }) => !destroyed));
    a.change('a://1');
    await until(async () => (await textOf(url, 'a://1')) === '1', 'its stream is heard as before');
  });

  test('a cache rule that is tightened binds what is kept', async () => {
    const [a] = await tellers('a');
    const running = await gateway(yaml([['a', a]]));
    await read(running.url, 'a://1');
    await until(() => isHit(running.url, 'a://1'), 'a hit');
    const open = a.open.map(({ socket }) => socket);
    const said = await running.next(
      () => running.write(yaml([['a', a, ', cache: { scope: private }']])),
      RELOADED,
    );
    assert.deepEqual([said.upstreamsRetuned, said.routesChanged], [['a'], ['/mcp']]);
    const asked = a.asked('resources/read');
    await call(running.url, 'resources/read', { uri: 'a://1' }, { headers: { authorization: 'Bearer x' } });
    assert.equal(a.asked('resources/read'), asked + 1);
    assert.ok(open.length > 0 && open.every(({ destroyed }) => !destroyed));
  });

  test('a route comes and goes with its path; the listens of one that goes end as they should', async () => {
    const [a] = await tellers('a');
    const running = await gateway(yaml([['a', a]]));
    const heard = await openListener(running.url, { toolsListChanged: true });
    closers.push(() => heard.close());
    const said = await running.next(() => running.write(yaml([['a', a]], { path: '/other' })), RELOADED);
    assert.deepEqual([said.routesAdded, said.routesRemoved], [['/other'], ['/mcp']]);
    await until(() => heard.ended === 'whole', 'the end of the listen');
    assert.equal(heard.messages.at(-1)?.result?.resultType, 'complete');
    assert.equal((await read(running.url, 'a://1')).status, 404);
    assert.equal(await textOf(`${running.mcp}/other`, 'a://1'), '0');
    const preflight = await fetch(`${running.mcp}/other`, {
      method: 'OPTIONS',
      headers: { origin: 'http://localhost:1', 'access-control-request-method': 'POST' },
    });
    assert.equal(preflight.status, 204);
    assert.equal((await fetch(running.url, { method: 'OPTIONS' })).status, 404);
  });
});

describe('what goes', () => {
  test('R44: one that is removed loses its entries, its sockets and its series', async () => {
    const [a, b] = await tellers('a', 'b');
    const running = await gateway(yaml([claimed(a), ['b', b]]));
    const { url } = running;
    await read(url, 'b://1');
    await until(() => isHit(url, 'b://1'), 'a hit');
    await running.next(() => running.write(yaml([claimed(a)])), RELOADED);
    assert.equal((await read(url, 'b://1')).json.error?.code, -32602);
    await until(() => b.server.open.size === 0, 'no socket to it');
    const metrics = await (await fetch(`${running.status}/metrics`)).text();
    assert.doesNotMatch(metrics, /="b"/);
    const asked = b.asked('resources/read');
    await running.next(() => running.write(yaml([claimed(a), ['b', b]])), RELOADED);
    assert.equal(await isHit(url, 'b://1'), false);
    assert.equal(b.asked('resources/read'), asked + 1);
  });

  test('a call under way at one that is removed ends as it would have', async () => {
    const [a, b] = await tellers('a', 'b');
    const running = await gateway(yaml([claimed(a), ['b', b]]));
    await read(running.url, 'b://1');
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const usual = b.server.fault as Fault;
    let came = false;
    b.server.fault = async (request) => {
      if (request.headers['mcp-method'] === 'tools/call') {
        came = true;
        await held;
      }
      return usual(request);
    };
    const called = call(running.url, 'tools/call', { name: 'b-tool', arguments: {} });
    await until(() => came, 'the call');
    await running.next(() => running.write(yaml([claimed(a)])), RELOADED);
    release();
    assert.equal((await called).json.result?.content?.[0]?.text, 'b');
    await until(() => b.server.open.size === 0, 'no socket to it');
  });

  test('R44: one that is re-pointed loses its entries, and its listeners are told and hear the new one', async () => {
    const [old, next] = await tellers('b', 'b');
    next.change('b://1');
    const running = await gateway(yaml([['b', old]]));
    const { url } = running;
    assert.equal(await textOf(url, 'b://1'), '0');
    await until(() => isHit(url, 'b://1'), 'a hit');
    const heard = await openListener(url, {
      toolsListChanged: true,
      resourceSubscriptions: ['b://1', 'b://2'],
    });
    closers.push(() => heard.close());
    assert.deepEqual(heard.honoured, { toolsListChanged: true, resourceSubscriptions: ['b://1', 'b://2'] });
    const said = await running.next(() => running.write(yaml([['b', next]])), RELOADED);
    assert.deepEqual(said.upstreamsReopened, ['b']);
    assert.equal(await textOf(url, 'b://1'), '1');
    await until(() => heard.updated.length >= 2, 'the listener is told');
    assert.deepEqual([...new Set(heard.updated)].sort(), ['b://1', 'b://2']);
    assert.ok(heard.messages.some(({ method }) => method === 'notifications/tools/list_changed'));
    await until(
      () => next.open.some(({ filter }) => filter.resourceSubscriptions.includes('b://2')),
      'it is listened to',
    );
    await until(() => old.open.length === 0, 'the old one is not');
    const before = heard.updated.length;
    next.change('b://2');
    await until(() => heard.updated.length > before, 'what the new one tells');
    assert.equal(heard.ended, 'no');
  });

  test('listeners of an upstream that is down when it is re-pointed hear it when it comes', async () => {
    const [old, next] = await tellers('b', 'b');
    const running = await gateway(yaml([['b', old]]));
    await read(running.url, 'b://1');
    const heard = await openListener(running.url, { resourceSubscriptions: ['b://1'] });
    closers.push(() => heard.close());
    const usual = next.server.fault as Fault;
    next.server.fault = ({ socket }) => void socket.resetAndDestroy();
    await running.next(() => running.write(yaml([['b', next]])), RELOADED);
    await until(() => heard.updated.length > 0, 'it may have changed');
    next.server.fault = usual;
    await until(
      () => next.open.some(({ filter }) => filter.resourceSubscriptions.includes('b://1')),
      'it is listened to',
      15_000,
    );
    const before = heard.updated.length;
    next.change('b://1');
    await until(() => heard.updated.length > before, 'what the new one tells');
  });
});

describe('what is refused', () => {
  test('R44: a file that is no good changes nothing, and is told with its place; a good one heals', async () => {
    const [a] = await tellers('a');
    const running = await gateway(yaml([['a', a]]));
    const { url } = running;
    assert.equal(await running.metric('headgate_config_last_reload_successful'), 1);
    const said = await running.next(
      () => running.write(yaml([['a', a]]).replace('routes:', 'rotes:')),
      REFUSED,
    );
    assert.match(String(said.problems), /headgate\.yaml:8:1: rotes: unknown key/);
    assert.equal(await textOf(url, 'a://1'), '0');
    assert.equal(await running.metric('headgate_config_last_reload_successful'), 0);
    assert.equal(await running.metric('headgate_config_reloads_total{result="refused"}'), 1);
    rmSync(running.file);
    await until(() => running.told.length > 1, 'a missing file is told', 10_000);
    assert.match(String(running.told.at(-1)?.problems), /no such file/);
    await running.next(() => running.write(yaml([['a', a]], { more: 'log: { level: warn }' })), RELOADED);
    assert.equal(await running.metric('headgate_config_last_reload_successful'), 1);
  });

  test('what holds for the life of a process is named, and nothing else of that file is taken up', async () => {
    const [a, b] = await tellers('a', 'b');
    const running = await gateway(yaml([claimed(a)]));
    const next = yaml([claimed(a), ['b', b]], {
      listen: '{ address: "127.0.0.1:1", limits: { headers: 16KiB } }',
      more: 'cache: { memory: { size: 32MiB } }',
    });
    const said = await running.next(() => running.write(next), REFUSED);
    assert.deepEqual(said.needsRestart, ['listen.address', 'listen.limits.headers', 'cache.memory']);
    assert.equal((await read(running.url, 'b://1')).json.error?.code, -32602);
  });

  test('a file that is being written is waited for', async () => {
    const [a, b] = await tellers('a', 'b');
    const running = await gateway(yaml([['a', a]]));
    const next = yaml([
      ['a', a],
      ['b', b],
    ]);
    await running.next(() => {
      writeFileSync(running.file, '');
      for (const [i, share] of [0.3, 0.6, 1].entries())
        setTimeout(
          () => writeFileSync(running.file, next.slice(0, Math.ceil(next.length * share))),
          200 * (i + 1),
        );
    }, RELOADED);
    assert.equal(running.told.length, 1);
  });
});

describe('how it is noticed', () => {
  test('SIGHUP reads it again, and says so when nothing has changed', async () => {
    const [a] = await tellers('a');
    const running = await gateway(yaml([['a', a]]));
    const said = await running.next(() => process.kill(running.pid, 'SIGHUP'), SAME);
    assert.equal(said.why, 'SIGHUP');
    assert.equal(await running.metric('headgate_config_reloads_total{result="unchanged"}'), 1);
    assert.equal(await textOf(running.url, 'a://1'), '0');
  });

  test('R44: a link that is swapped, as Kubernetes does, is seen every time', async () => {
    const [a, b] = await tellers('a', 'b');
    const folder = mkdtempSync(join(tmpdir(), 'headgate-mount-'));
    closers.push(() => rmSync(folder, { recursive: true, force: true }));
    /** As kubelet: a folder of its own for each version, and a link that is renamed over the last. */
    let version = 0;
    const mount = (text: string): void => {
      const data = `..version-${++version}`;
      mkdirSync(join(folder, data));
      writeFileSync(join(folder, data, 'headgate.yaml'), text);
      symlinkSync(data, join(folder, '..data_tmp'));
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
      if (version > 1) rmSync(join(folder, `..version-${version - 1}`), { recursive: true });
    };
    mount(yaml([['a', a]]));
    symlinkSync('..data/headgate.yaml', join(folder, 'headgate.yaml'));
    const running = await watched(join(folder, 'headgate.yaml'));
    for (let round = 0; round < 4; round++) {
      const upstreams: Entry[] =
        round % 2 === 0
          ? [
              ['a', a],
              ['b', b],
            ]
          : [['a', a]];
      await running.next(() => mount(yaml(upstreams)), RELOADED);
    }
    assert.equal(running.told.length, 4);
  });

  test('a credential in a file of its own is followed, and never told', async () => {
    const [a] = await tellers('a');
    const folder = mkdtempSync(join(tmpdir(), 'headgate-secret-'));
    closers.push(() => rmSync(folder, { recursive: true, force: true }));
    const secret = join(folder, 'token');
    writeFileSync(secret, 'canary-first-0123456789');
    const seen: (string | undefined)[] = [];
    const usual = a.server.fault as Fault;
    a.server.fault = (request) => {
      seen.push(request.headers.authorization);
      return usual(request);
    };
    const running = await gateway(yaml([['a', a, `, auth: { type: bearer, token: "\${file:${secret}}" }`]]));
    await read(running.url, 'a://1');
    assert.equal(seen.at(-1), 'Bearer canary-first-0123456789');
    const said = await running.next(() => writeFileSync(secret, 'canary-second-0123456789'), RELOADED);
    assert.deepEqual(said.upstreamsReopened, ['a']);
    await read(running.url, 'a://2');
    await until(() => seen.at(-1) === 'Bearer canary-second-0123456789', 'the new credential');
    assert.doesNotMatch(running.output(), /canary/);
  });

  test('many changes at once end with the last of them', async () => {
    const [a, b] = await tellers('a', 'b');
    const running = await gateway(yaml([['a', a]]));
    for (let i = 0; i < 20; i++) {
      running.write(
        yaml([
          ['a', a],
          ['b', b, `, timeouts: { call: ${i + 1}m }`],
        ]),
      );
      process.kill(running.pid, 'SIGHUP');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    running.write(yaml([['b', b, ', resources: ["b://**"]']]));
    await until(
      async () => (await read(running.url, 'a://1')).json.error?.code === -32602,
      'the last',
      10_000,
    );
    assert.equal(await textOf(running.url, 'b://1'), '0');
    assert.equal(await running.metric('headgate_config_reloads_total{result="refused"}'), 0);
  });

  for (const what of ['standard input', 'a pipe'] as const)
    test(`${what} cannot be read again: SIGHUP says so and changes nothing`, async () => {
      const [a] = await tellers('a');
      const folder = mkdtempSync(join(tmpdir(), 'headgate-pipe-'));
      closers.push(() => rmSync(folder, { recursive: true, force: true }));
      const pipe = join(folder, 'pipe');
      spawnSync('mkfifo', [pipe]);
      const source = what === 'a pipe' ? pipe : '-';
      const child = spawn(process.execPath, [join(root, 'dist', 'main.js'), 'serve', '-c', source], {
        cwd: root,
      });
      closers.push(() => child.kill('SIGKILL'));
      let output = '';
      for (const stream of [child.stderr, child.stdout])
        stream.setEncoding('utf8').on('data', (text: string) => {
          output += text;
        });
      if (what === 'a pipe') await writeFile(pipe, yaml([['a', a]]));
      else child.stdin.end(yaml([['a', a]]));
      await until(() => output.includes('\ntry'), 'the summary', 20_000);
      child.kill('SIGHUP');
      await until(() => output.includes('there is no file that could be read again'), 'the word');
      const mcp = /listening {2}mcp {5}(\S+)/.exec(output)?.[1];
      assert.equal(await textOf(`${mcp}/mcp`, 'a://1'), '0');
    });
});

describe('what comes between', () => {
  /** Holds the lists of an upstream back. */
  const slowLists = (teller: Teller, ms: number): void => {
    const usual = teller.server.fault as Fault;
    teller.server.fault = async (request) => {
      if (/list$/.test(request.headers['mcp-method'] ?? ''))
        await new Promise((resolve) => setTimeout(resolve, ms));
      return usual(request);
    };
  };
  const pair = (a: Teller, b: Teller, rest = ''): string =>
    yaml([
      ['a', a],
      ['b', b, rest],
    ]);

  test('R44: a listen that meets two reloads is planned by the last, and nothing of it goes wrong', async () => {
    const [a, b] = [await startTeller('a', undefined, 0), await startTeller('b', undefined, 0)];
    closers.push(
      () => a.close(),
      () => b.close(),
    );
    const running = await gateway(pair(a, b));
    slowLists(b, 345);
    const opening = openListener(running.url, { toolsListChanged: true, resourceSubscriptions: ['b://1'] });
    await until(() => b.asked('resources/list') > 0 || b.server.requests.length > 2, 'it is being planned');
    await running.next(() => running.write(pair(a, b, ', cache: { ttl: { max: 1h } }')), RELOADED);
    await running.next(() => running.write(yaml([claimed(a)])), RELOADED);
    const heard = await opening;
    closers.push(() => heard.close());
    for (const text of [pair(a, b), yaml([claimed(a)]), pair(a, b)])
      await running.next(() => running.write(text), RELOADED);
    assert.equal(await textOf(running.url, 'b://1'), '0');
    assert.doesNotMatch(running.output(), /"level":"error"/);
    assert.equal(await running.metric('headgate_config_reloads_total{result="refused"}'), 0);
  });

  test('R40: who listens to a server with slow lists goes on to hear it', async () => {
    const a = await startTeller('a', undefined, 0);
    const c = await startTeller('c', undefined, 0);
    closers.push(
      () => a.close(),
      () => c.close(),
    );
    slowLists(a, 600);
    const running = await gateway(yaml([['a', a]]));
    assert.equal(await textOf(running.url, 'a://1'), '0');
    const heard = await openListener(running.url, { resourceSubscriptions: ['a://1'] });
    closers.push(() => heard.close());
    assert.deepEqual(heard.honoured, { resourceSubscriptions: ['a://1'] });
    await running.next(
      () =>
        running.write(
          yaml([
            ['c', c],
            ['a', a],
          ]),
        ),
      RELOADED,
    );
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const before = heard.updated.length;
    a.change('a://1');
    await until(() => heard.updated.length > before, 'what it tells');
  });

  test('a listen whose route goes while it is acknowledged ends as it should', async () => {
    const [a, b] = [await startTeller('a', undefined, 0), await startTeller('b', undefined, 0)];
    closers.push(
      () => a.close(),
      () => b.close(),
    );
    const running = await gateway(pair(a, b).replace('path: /mcp', 'path: /two'));
    slowLists(a, 340);
    const opening = openListener(`${running.mcp}/two`, { resourceSubscriptions: ['a://1'] });
    await until(() => a.server.requests.length > 2, 'it is being planned');
    await running.next(() => running.write(pair(a, b)), RELOADED);
    const heard = await opening;
    closers.push(() => heard.close());
    await until(() => heard.ended === 'whole', 'the end');
  });

  test('who may hear of a resource follows the claims of the moment', async () => {
    const [a, b] = await tellers('a', 'b');
    const text = (claims: string): string =>
      yaml([
        ['a', a, `, resources: [${claims}]`],
        ['b', b],
      ]);
    const running = await gateway(text('"a://dir", "a://dir/one"'));
    const heard = await openListener(running.url, { resourceSubscriptions: ['a://dir'] });
    closers.push(() => heard.close());
    a.change('a://dir/two');
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.deepEqual(heard.updated, []);
    await running.next(() => running.write(text('"a://dir/**", "a://dir"')), RELOADED);
    await until(() => {
      a.change('a://dir/two');
      return heard.updated.includes('a://dir/two');
    }, 'wider');
    await running.next(() => running.write(text('"a://dir", "a://dir/one"')), RELOADED);
    await new Promise((resolve) => setTimeout(resolve, 500));
    const before = heard.updated.length;
    a.change('a://dir/two');
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.deepEqual(heard.updated.slice(before), []);
  });

  test('R44: of a re-pointed upstream the figures are its own, whatever becomes of the old one', async () => {
    const [a, next, z] = await tellers('a', 'a', 'z');
    const running = await gateway(
      yaml([
        ['a', a],
        ['z', z],
      ]),
    );
    a.server.fault = ({ socket }) => void socket.resetAndDestroy();
    for (let i = 0; i < 8; i++) await read(running.url, 'a://1').catch(() => undefined);
    assert.equal(await running.metric('headgate_upstream_circuit_open{upstream="a"}'), 1);
    await running.next(
      () =>
        running.write(
          yaml([
            ['a', next],
            ['z', z],
          ]),
        ),
      RELOADED,
    );
    assert.equal(await textOf(running.url, 'a://1'), '0');
    assert.deepEqual(
      [
        await running.metric('headgate_upstream_circuit_open{upstream="a"}'),
        await running.metric('headgate_upstream_up{upstream="a"}'),
      ],
      [0, 1],
    );
  });

  test('R22: what a caller was given before one more header told callers apart is found by nobody after it', async () => {
    const a = await startTeller('a');
    closers.push(() => a.close());
    const scoped = ', cache: { scope: private }';
    const running = await gateway(yaml([['a', a, scoped]]));
    const asTenant = { headers: { 'x-tenant': 'A' } };
    await call(running.url, 'resources/read', { uri: 'a://1' }, asTenant);
    await until(() => isHit(running.url, 'a://1'), 'one of the crowd');
    const asked = a.asked('resources/read');
    const more = 'cache: { partition: { headers: [X-Tenant] } }';
    await running.next(() => running.write(yaml([['a', a, scoped]], { more })), RELOADED);
    assert.equal(await isHit(running.url, 'a://1'), false);
    assert.equal(a.asked('resources/read'), asked + 1);
  });

  test('R44: a command that is replaced ends, whatever runs at others', async () => {
    const [a] = await tellers('a');
    const server = join(root, 'build', 'test', 'support', 'stdio-server.js');
    const text = (version: number): string =>
      `${yaml([['a', a]]).replace('upstreams: [a]', 'upstreams: [a, b]')}`.replace(
        'routes:',
        `  b: { command: ${process.execPath}, args: [${server}, modern, v${version}] }\nroutes:`,
      );
    const running = await gateway(text(0));
    const usual = a.server.fault as Fault;
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let came = false;
    a.server.fault = async (request) => {
      if (request.headers['mcp-method'] === 'tools/call') {
        came = true;
        await held;
      }
      return usual(request);
    };
    await call(running.url, 'resources/list');
    const called = call(running.url, 'tools/call', { name: 'a-tool', arguments: {} });
    await until(() => came, 'the call');
    for (let version = 1; version <= 4; version++) {
      await running.next(() => running.write(text(version)), RELOADED);
      await call(running.url, 'resources/list');
    }
    await until(() => childrenOf(running.pid) === 1, 'one process is left');
    release();
    assert.equal((await called).status, 200);
  });
});

function childrenOf(pid: number): number {
  const found = spawnSync('ps', ['--ppid', String(pid), '-o', 'pid=']);
  return found.stdout.toString().trim().split('\n').filter(Boolean).length;
}
