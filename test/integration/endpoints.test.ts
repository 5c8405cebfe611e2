/** R36, R38: replicas killed under steady reads, through the gateway as a process: who notices, and when. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { type Gateway, projectRoot, startGateway } from '../demo/gateway.ts';
import { call, until } from '../support/mcp.ts';
import { type Replica, startReplica } from '../support/replica.ts';

const root = projectRoot(import.meta.dirname);
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function replica(name: string, port?: number): Promise<Replica> {
  const started = await startReplica(name, port);
  closers.push(() => started.kill());
  return started;
}

async function gateway(endpoints: readonly Replica[]): Promise<Gateway & { url: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-endpoints-'));
  closers.push(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'headgate.yaml');
  writeFileSync(
    file,
    `version: 1
listen: 127.0.0.1:0
status: 127.0.0.1:0
admin: false
upstreams: { docs: { endpoints: [${endpoints.map(({ url }) => `"${url}"`).join(', ')}] } }
routes: [{ path: /mcp, upstreams: [docs] }]
log: { format: json, access: false }
`,
  );
  const running = await startGateway({ root, args: ['serve', '-c', file] });
  closers.push(() => running.stop());
  return { ...running, url: `${running.mcp}/mcp` };
}

interface Load {
  readonly counts: { total: number; failed: number; stale: number };
  /** Texts of the answers since the last look: the replicas that gave them. */
  seen(): ReadonlySet<string>;
  stop(): Promise<void>;
}

const URIS = Array.from({ length: 16 }, (_, n) => `steady://${n}`);

/** Six readers, one after the other without a pause each, over a few resources that are fresh for a moment. */
function steadyReads(url: string): Load {
  const counts = { total: 0, failed: 0, stale: 0 };
  let texts = new Set<string>();
  let running = true;
  const reader = async (from: number): Promise<void> => {
    for (let n = from; running; n++) {
      const uri = URIS[n % URIS.length] as string;
      const got = await call(url, 'resources/read', { uri }).catch(() => undefined);
      counts.total++;
      if (got?.status !== 200 || got.json.result === undefined) counts.failed++;
      else texts.add(got.json.result.contents[0].text);
      if (String(got?.headers['cache-status']).includes('stale-if-error')) counts.stale++;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  const readers = Array.from({ length: 6 }, (_, n) => reader(n * 2));
  const stop = async (): Promise<void> => {
    running = false;
    await Promise.all(readers);
  };
  closers.push(stop);
  return {
    counts,
    seen: () => {
      const before = texts;
      texts = new Set();
      return before;
    },
    stop,
  };
}

/** When the gateway logged this of an endpoint, in wall-clock milliseconds; undefined if it did not yet. */
function loggedAt(output: string, message: string, port: number, after: number): number | undefined {
  for (const line of output.split('\n')) {
    if (!line.startsWith('{') || !line.endsWith('}')) continue;
    const entry = JSON.parse(line) as { msg: string; time: string; endpoint?: string };
    const at = Date.parse(entry.time);
    if (entry.msg === message && at >= after && entry.endpoint?.includes(`:${port}/`)) return at;
  }
  return undefined;
}

async function waitForLog(running: Gateway, message: string, port: number, after: number): Promise<number> {
  let at: number | undefined;
  await until(
    () => {
      at = loggedAt(running.output(), message, port, after);
      return at !== undefined;
    },
    `${message} of ${port}`,
    60_000,
  );
  return (at as number) - after;
}

async function circuit(running: Gateway): Promise<string> {
  const text = await (await fetch(`${running.status}/metrics`)).text();
  return /^headgate_upstream_circuit_open\{upstream="docs"\} (\d)/m.exec(text)?.[1] ?? '';
}

test('R36 R38: kill -9 of one of two endpoints under steady reads fails nobody', async (t) => {
  const [one, two] = [await replica('one'), await replica('two')];
  const running = await gateway([one, two]);
  const load = steadyReads(running.url);
  await until(() => load.counts.total > 200, 'some reads');
  assert.deepEqual([...load.seen()].sort(), ['one', 'two']);
  const killedAt = Date.now();
  await one.kill();
  const ejectedMs = await waitForLog(running, 'upstream left alone for a while', one.port, killedAt);
  assert.equal(await circuit(running), '0', 'the upstream is not down');
  const backAt = Date.now();
  await replica('one again', one.port);
  const readmittedMs = await waitForLog(running, 'upstream answers again', one.port, backAt);
  load.seen();
  const before = load.counts.total;
  await until(() => load.counts.total > before + 200, 'more reads');
  assert.ok(load.seen().has('one again'), 'it gets its share again');
  await load.stop();
  const { total, failed, stale } = load.counts;
  t.diagnostic(
    `one of two killed: ${failed} of ${total} reads failed, ${stale} stale; left alone after ${ejectedMs} ms, asked again ${readmittedMs} ms after its return`,
  );
  assert.equal(failed, 0);
  // Five seconds alone, and on a busy machine the doubling after a trial that met nobody yet.
  assert.ok(ejectedMs < 5_000 && readmittedMs < 30_000, `${ejectedMs} ${readmittedMs}`);
});

test('R36 R38: kill -9 of the whole upstream fails nothing that may be served stale', async (t) => {
  const [one, two] = [await replica('one'), await replica('two')];
  const running = await gateway([one, two]);
  const load = steadyReads(running.url);
  await until(() => load.counts.total > 200, 'some reads');
  const killedAt = Date.now();
  await Promise.all([one.kill(), two.kill()]);
  await until(async () => (await circuit(running)) === '1', 'the circuit', 30_000);
  const openMs = Date.now() - killedAt;
  const unknown = await call(running.url, 'resources/read', { uri: 'never://seen' });
  assert.equal(unknown.status, 503);
  assert.ok(Number(unknown.headers['retry-after']) >= 1);
  const backAt = Date.now();
  await replica('one again', one.port);
  await until(async () => (await circuit(running)) === '0', 'the circuit closed', 60_000);
  const backMs = Date.now() - backAt;
  load.seen();
  await until(() => load.seen().has('one again'), 'fresh answers');
  await load.stop();
  const { total, failed, stale } = load.counts;
  t.diagnostic(
    `both killed: ${failed} of ${total} reads failed, ${stale} stale; circuit open after ${openMs} ms, closed ${backMs} ms after one returned`,
  );
  assert.equal(failed, 0);
  assert.ok(stale > 0);
});

test('R36: calls of which nothing was sent go to the other endpoint', async (t) => {
  const [one, two] = [await replica('one'), await replica('two')];
  const running = await gateway([one, two]);
  await one.kill();
  const calls = await Promise.all(
    Array.from({ length: 10 }, () => call(running.url, 'tools/call', { name: 'who', arguments: {} })),
  );
  assert.deepEqual([...new Set(calls.map((got) => got.json.result?.content[0].text))], ['two']);
  t.diagnostic('ten calls with one of two endpoints gone: all answered by the other');
});
