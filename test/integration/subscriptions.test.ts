/** Clients that listen through a gateway process, to upstreams that say when they change. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { type Gateway, projectRoot, startGateway } from '../demo/gateway.ts';
import type { Fault } from '../support/fault-server.ts';
import { type ListenerClient, openListener } from '../support/listener-client.ts';
import { call, until } from '../support/mcp.ts';
import { startTeller, type Teller } from '../support/teller.ts';

const root = projectRoot(import.meta.dirname);
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function tellers(...names: string[]): Promise<Teller[]> {
  const started = await Promise.all(names.map((name) => startTeller(name)));
  for (const one of started) closers.push(() => one.close());
  return started;
}

/** @param upstreams YAML of each upstream beside its URL. */
async function gateway(
  upstreams: readonly (readonly [name: string, teller: Teller, rest?: string])[],
  more = '',
): Promise<Gateway & { url: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-listen-'));
  closers.push(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'headgate.yaml');
  writeFileSync(
    file,
    `version: 1
listen: 127.0.0.1:0
status: 127.0.0.1:0
admin: false
shutdown: { grace: 5s }
upstreams:
${upstreams.map(([name, { url }, rest = '']) => `  ${name}: { url: "${url}"${rest} }`).join('\n')}
routes:
  - { path: /mcp, upstreams: [${upstreams.map(([name]) => name).join(', ')}] }
${more}`,
  );
  const probe = pathToFileURL(join(import.meta.dirname, '..', 'support', 'memory-probe.js')).href;
  const running = await startGateway({
    root,
    args: ['serve', '-c', file],
    env: { NODE_OPTIONS: `--import ${probe}` },
  });
  closers.push(() => running.stop());
  return { ...running, url: `${running.mcp}/mcp` };
}

async function listener(...args: Parameters<typeof openListener>): Promise<ListenerClient> {
  const opened = await openListener(...args);
  closers.push(() => opened.close());
  return opened;
}

/** Bytes of heap and external memory behind a collection. */
async function memory(running: Gateway): Promise<number> {
  const said = () => [...running.output().matchAll(/^memory (\d+)$/gm)].map(([, bytes]) => Number(bytes));
  const before = running.output().length === 0 ? 0 : said().length;
  const mark = said().at(-1);
  process.kill(running.pid, 'SIGUSR2');
  await until(() => said().length > before || said().at(-1) !== mark, 'the memory', 10_000);
  return said().at(-1) as number;
}

const mib = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
const read = async (url: string, uri: string): Promise<string> =>
  (await call(url, 'resources/read', { uri })).json.result?.contents?.[0]?.text;

describe('listening through the gateway', () => {
  test('R39: one acknowledgment of what both upstreams honour, within 500 ms; what nobody has is left out', async () => {
    const [a, b] = (await tellers('a', 'b')) as [Teller, Teller];
    const { url } = await gateway([
      ['a', a],
      ['b', b],
    ]);
    const heard = await listener(url, {
      toolsListChanged: true,
      promptsListChanged: true,
      resourceSubscriptions: ['b://2', 'a://1', 'nobody://1'],
    });
    assert.deepEqual(heard.honoured, { toolsListChanged: true, resourceSubscriptions: ['a://1', 'b://2'] });
    assert.ok(heard.acknowledgedMs < 1_000, `${heard.acknowledgedMs} ms`);
    await until(async () => (await read(url, 'b://2')) === '0', 'warm');
    b.change('b://2');
    // What the other upstream says of it counts for nothing.
    a.change('b://2');
    await until(() => heard.updated.length > 0, 'the update');
    // Whoever was told reads what is new.
    assert.equal(await read(url, 'b://2'), '1');
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.deepEqual(heard.updated, ['b://2']);
  });

  test('R40: a dead upstream counts as honoured where it announced it, and its return is told', async () => {
    const [a, b] = (await tellers('a', 'b')) as [Teller, Teller];
    const { url } = await gateway([
      ['a', a],
      ['b', b],
    ]);
    assert.equal(await read(url, 'a://1'), '0');
    assert.equal(await read(url, 'b://1'), '0');
    const alive = b.server.fault;
    b.server.fault = ({ socket }) => void socket.destroy();
    b.cut();
    const heard = await listener(url, { toolsListChanged: true, resourceSubscriptions: ['a://1', 'b://1'] });
    assert.deepEqual(heard.honoured, { toolsListChanged: true, resourceSubscriptions: ['a://1', 'b://1'] });
    assert.ok(heard.acknowledgedMs < 1_000, `${heard.acknowledgedMs} ms`);
    a.change('a://1');
    await until(() => heard.updated.includes('a://1'), 'the other upstream');
    assert.ok(!heard.updated.includes('b://1'));
    b.server.fault = alive;
    // As changes that nobody could hear: the list, which both have, and the resource.
    await until(() => heard.updated.includes('b://1'), 'its return', 10_000);
    assert.ok(heard.messages.some(({ method }) => method === 'notifications/tools/list_changed'));
    b.change('b://1');
    await until(async () => (await read(url, 'b://1')) === '1', 'what is new');
  });

  test('R40: an upstream that was not there at first is told of, and so are its changes from then on', async () => {
    const [a, b] = (await tellers('a', 'b')) as [Teller, Teller];
    const alive = b.server.fault;
    b.server.fault = ({ socket }) => void socket.destroy();
    const { url } = await gateway([
      ['a', a],
      ['b', b],
    ]);
    const heard = await listener(url, { toolsListChanged: true });
    assert.deepEqual(heard.honoured, { toolsListChanged: true });
    b.server.fault = alive;
    await until(() => heard.messages.length > 1, 'its arrival', 10_000);
    await until(() => b.open.length > 0, 'a stream of it');
    await new Promise((resolve) => setTimeout(resolve, 500));
    const before = heard.messages.length;
    b.addTool('later');
    await until(() => heard.messages.length > before, 'its change');
  });

  test('R40: whoever is told what a gap may have hidden reads what is new', async () => {
    const a = await startTeller('a', undefined, 50_000);
    closers.push(() => a.close());
    const { url } = await gateway([['a', a]]);
    const heard = await listener(url, { resourceSubscriptions: ['a://1'] });
    const alive = a.server.fault as Fault;
    a.server.fault = (request) =>
      request.headers['mcp-method'] === 'subscriptions/listen'
        ? void request.socket.destroy()
        : alive(request);
    a.cut();
    await until(() => a.open.length === 0, 'the gap');
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(await read(url, 'a://1'), '0');
    a.change('a://1');
    a.server.fault = alive;
    await until(() => heard.updated.length > 0, 'what may have changed', 10_000);
    assert.equal(await read(url, 'a://1'), '1');
  });

  test('R39: a filter of absurd size is refused, and what is no filter is told what one is', async () => {
    const [a] = (await tellers('a')) as [Teller];
    const { url } = await gateway([['a', a]]);
    const many = (count: number): string[] => Array.from({ length: count }, (_, i) => `a://${i}`);
    const refused = async (notifications: unknown): Promise<unknown> =>
      (await call(url, 'subscriptions/listen', { notifications })).json.error?.code;
    assert.equal(await refused({ resourceSubscriptions: many(1_001) }), -32602);
    assert.equal(await refused({ resourceSubscriptions: ['a'.repeat(8_193)] }), -32602);
    assert.equal(
      await refused({ resourceSubscriptions: many(65).map((uri) => uri.padEnd(8_192, 'x')) }),
      -32602,
    );
    assert.equal(await refused({ taskIds: many(101) }), -32602);
    for (const uri of ['', 'no scheme', 'a://\n'])
      assert.equal(await refused({ resourceSubscriptions: ['a://1', uri] }), -32602, JSON.stringify(uri));
    for (const odd of [undefined, [], { toolsListChanged: 1 }, { resourceSubscriptions: [1] }, 'all'])
      assert.equal(await refused(odd), -32602, JSON.stringify(odd));
    const most = await listener(url, { resourceSubscriptions: many(1_000) });
    assert.equal((most.honoured as { resourceSubscriptions: unknown[] }).resourceSubscriptions.length, 1_000);
  });

  test('R28: a name that was unknown is looked for again when a list has changed', async () => {
    const [a, b] = (await tellers('a', 'b')) as [Teller, Teller];
    const { url } = await gateway([
      ['a', a],
      ['b', b],
    ]);
    const heard = await listener(url, { toolsListChanged: true });
    const called = async (name: string) => (await call(url, 'tools/call', { name })).json;
    assert.equal((await called('later')).error?.code, -32602);
    const listed = b.asked('tools/list');
    assert.equal((await called('later')).error?.code, -32602);
    assert.equal(b.asked('tools/list'), listed, 'what is known is not asked for');
    b.addTool('later');
    await until(() => heard.messages.length > 1, 'the change');
    assert.equal((await called('later')).result?.content?.[0]?.text, 'b');
  });

  test('R39: without a connection to listen on nothing is promised', async () => {
    const [a] = (await tellers('a')) as [Teller];
    const { url } = await gateway([['a', a, ', auth: { type: forward }, connections: 1']]);
    await until(() => a.open.length === 1, "the gateway's own stream");
    const filter = { toolsListChanged: true };
    const headers = { authorization: 'Bearer alice' };
    assert.deepEqual((await listener(url, filter, { headers })).honoured, {});
    assert.deepEqual((await listener(url, filter)).honoured, filter);
  });

  test('R42: callers with tokens of their own share no stream of an upstream that sees them', async () => {
    const [a] = (await tellers('a')) as [Teller];
    const { url } = await gateway([['a', a, ', auth: { type: forward }']]);
    const filter = { resourceSubscriptions: ['a://1'] };
    const [alice, bob] = await Promise.all(
      ['alice', 'bob'].map((token) =>
        listener(url, filter, { headers: { authorization: `Bearer ${token}` } }),
      ),
    );
    const forAlice = a.open.find(({ request }) => request.headers.authorization === 'Bearer alice');
    forAlice?.updated('a://1');
    await until(() => alice?.updated.length === 1, 'the one');
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.deepEqual(bob?.updated, []);
    alice?.close();
    bob?.close();
    await until(
      () => a.open.every(({ request }) => request.headers.authorization === undefined),
      'the end of both',
    );
  });

  test('R39: an upstream that takes no stranger tells callers who never asked what it offers', async () => {
    const a = await startTeller('a', undefined, undefined, 'callers');
    closers.push(() => a.close());
    const { url } = await gateway([['a', a, ', auth: { type: forward }']]);
    const filter = { resourcesListChanged: true, resourceSubscriptions: ['a://1'] };
    const alice = await listener(url, filter, { headers: { authorization: 'Bearer alice' } });
    assert.deepEqual(alice.honoured, filter);
    a.change('a://1');
    await until(() => alice.updated.length === 1, 'the change');
    const stranger = await listener(url, filter);
    assert.deepEqual(stranger.honoured, {});
  });

  test('R43: drained, it ends each listen with its result and exits with 0', async () => {
    const [a] = (await tellers('a')) as [Teller];
    const running = await gateway([['a', a]]);
    const heard = await listener(running.url, { toolsListChanged: true }, { id: 'mine' });
    assert.equal(await running.stop(), 0);
    await until(() => heard.ended === 'whole', 'the end');
    const last = heard.messages.at(-1);
    assert.equal(last?.id, 'mine');
    assert.equal(last?.result?.resultType, 'complete');
    assert.ok(!heard.messages.some(({ method }) => method === 'notifications/cancelled'));
  });

  test('R41: 200 listeners, 20 of which do not read, and 10,000 notifications: the last reaches all, memory is flat', async (t) => {
    const [a] = (await tellers('a')) as [Teller];
    const running = await gateway([['a', a]]);
    const { url } = running;
    const readers = await Promise.all(
      Array.from({ length: 180 }, (_, i) => listener(url, { resourceSubscriptions: ['a://1'] }, { id: i })),
    );
    const idlers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        listener(url, { resourceSubscriptions: ['a://1', 'a://2'] }, { id: `s${i}` }),
      ),
    );
    for (const idler of idlers) idler.pause();
    await until(() => a.open.length === 1, 'one stream for all');
    const [stream] = a.open;
    assert.equal(await read(url, 'a://1'), '0');
    const asked = a.asked('resources/read');
    const before = await memory(running);
    const startedAt = performance.now();
    const pad = { _meta: { padding: 'x'.repeat(2_000) } };
    for (let i = 0; i < 10_000; i++) {
      if (i % 2 === 0) a.change('a://1');
      else stream?.notify('notifications/resources/updated', { uri: `a://2/${i}`, ...pad });
      if (i % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    a.change('a://1');
    const sentAt = performance.now();
    await until(
      () => readers.every(({ messages }) => (messages.at(-1)?.at ?? 0) > sentAt),
      'the last of it, everywhere',
      20_000,
    );
    const allAt = performance.now();
    assert.equal(await read(url, 'a://1'), '5001');
    assert.ok(a.asked('resources/read') - asked <= 2, 'no notification makes a request');
    assert.equal(a.open.length, 1);
    const counts = readers.map(({ updated }) => updated.length);
    assert.ok(readers.every(({ updated }) => updated.every((uri) => uri === 'a://1')));
    const during = await memory(running);
    for (const idler of idlers) idler.resume();
    await until(
      () =>
        idlers.every(
          ({ updated }) => updated.includes('a://1') && updated.some((uri) => uri.startsWith('a://2')),
        ),
      'those that did not read',
      20_000,
    );
    await until(async () => (await memory(running)) - before < 16 << 20, 'memory as before', 20_000);
    const after = await memory(running);
    t.diagnostic(
      `10,000 notifications sent in ${(sentAt - startedAt).toFixed(0)} ms, the last heard by 180 after ${(allAt - sentAt).toFixed(0)} ms; ` +
        `${Math.min(...counts)} to ${Math.max(...counts)} messages each; ` +
        `heap + external ${mib(before)} before, ${mib(during)} with 20 behind, ${mib(after)} after`,
    );
    assert.ok(during - before < 64 << 20, `${mib(during - before)} more while 20 do not read`);
  });
});
