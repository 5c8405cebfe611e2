/** A gateway with more expensive lists than it has time for: some requests are refused, none of those it took is lost. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, test } from 'node:test';
import { projectRoot, startGateway } from '../demo/gateway.ts';
import { call, type Got, until } from '../support/mcp.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/**
 * One page of half a megabyte that may not be kept: each caller who asks makes the gateway take it apart again. Many
 * small ones rather than few large ones: what was taken must be done within the 5 s that a list has.
 */
const ITEM_COUNT = 3_000;
const LIST = JSON.stringify(
  Array.from({ length: ITEM_COUNT }, (_, n) => ({
    uri: `heavy://collection/of/many/items/${n}`,
    name: `item ${n}`,
    description: 'a line of text that somebody wrote so that people know what it is',
  })),
);

const READERS = 2;
/** A lister more, each so often, up to this many: more than any machine has time for, and done soon afterwards. */
const RAMP_MS = 250;
const MOST_LISTERS = 60;
const ENOUGH_REFUSED = 10;
/** However slow the machine is. */
const PATIENCE_MS = 120_000;

async function heavyUpstream(): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { id, method } = JSON.parse(Buffer.concat(chunks).toString()) as { id: string; method: string };
    response.writeHead(200, { 'Content-Type': 'application/json' });
    const result =
      method === 'resources/list'
        ? `"resources":${LIST}`
        : method === 'server/discover'
          ? '"supportedVersions":["2026-07-28"],"capabilities":{"resources":{}},"ttlMs":60000,"cacheScope":"public"'
          : '"contents":[{"uri":"a:b","text":"x"}],"ttlMs":60000,"cacheScope":"public"';
    response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"resultType":"complete",${result}}}`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

test('many expensive lists: some are refused with Retry-After, what was taken is finished, and it recovers', async (t) => {
  const upstream = await heavyUpstream();
  const running = await startGateway({
    root: projectRoot(import.meta.dirname),
    args: ['serve', '--listen', '127.0.0.1:0', '--status', '127.0.0.1:0', '--admin', 'false', upstream],
    env: { NO_COLOR: '1' },
  });
  closers.push(() => running.stop());
  const url = `${running.mcp}/mcp`;
  const counts = { list: { taken: 0, refused: 0 }, read: { taken: 0, refused: 0 } };
  const others: string[] = [];
  const discovers: number[] = [];
  const retryAfters = new Set<string>();
  let pressing = true;
  let caller = 0;
  const note = (kind: keyof typeof counts, got: Got): void => {
    if (got.status === 200) counts[kind].taken++;
    else if (got.status === 503 && /too much to do/.test(got.json.error?.message ?? '')) {
      counts[kind].refused++;
      retryAfters.add(String(got.headers['retry-after']));
    } else others.push(`${kind}: ${got.status} ${got.text.slice(0, 200)}`);
  };
  // Contexts of their own: no flight is shared, each is taken apart alone.
  const lister = async (agent: Agent): Promise<void> => {
    while (pressing) {
      const headers = { authorization: `Bearer ${caller++}` };
      note('list', await call(url, 'resources/list', {}, { headers, agent }));
    }
  };
  const reader = async (agent: Agent): Promise<void> => {
    while (pressing) {
      note('read', await call(url, 'resources/read', { uri: 'a:b' }, { agent }));
      discovers.push((await call(url, 'server/discover', {}, { agent })).status);
    }
  };
  // Connected while it is calm: of new connections Node accepts one a turn, and the others wait in the kernel, where
  // nobody counts them.
  const agents: Agent[] = [];
  for (let n = 0; n < READERS + MOST_LISTERS; n++) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    closers.push(() => agent.destroy());
    agents.push(agent);
    assert.equal((await call(url, 'server/discover', {}, { agent })).status, 200);
  }
  const startedAt = performance.now();
  // One more at a time, as load grows: those who were there first have their answers.
  const pressure = agents.splice(0, READERS).map(reader);
  await until(
    () => {
      const due = READERS + (performance.now() - startedAt) / RAMP_MS;
      if (pressure.length < due) pressure.push(...agents.splice(0, 1).map(lister));
      return counts.list.refused + counts.read.refused >= ENOUGH_REFUSED;
    },
    'requests that are refused',
    PATIENCE_MS,
  );
  const refusingAfterMs = performance.now() - startedAt;
  pressing = false;
  await Promise.all(pressure);
  const endedAt = performance.now();
  await until(
    async () => (await call(url, 'resources/read', { uri: 'a:b' })).status === 200,
    'the recovery',
    PATIENCE_MS,
  );
  const recoveredMs = performance.now() - endedAt;
  for (let n = 0; n < 20; n++) assert.equal((await call(url, 'resources/read', { uri: 'a:b' })).status, 200);
  const text = await (await fetch(`${running.status}/metrics`)).text();
  const shed = Number(
    /^headgate_http_requests_total\{method="POST",code="503"\} (\d+)/m.exec(text)?.[1] ?? 0,
  );
  t.diagnostic(
    `lists: ${counts.list.taken} taken, ${counts.list.refused} refused; reads: ${counts.read.taken} taken, ${counts.read.refused} refused; ` +
      `${ENOUGH_REFUSED} refused after ${Math.round(refusingAfterMs)} ms, taken again ${Math.round(recoveredMs)} ms after the pressure ended`,
  );
  assert.deepEqual(others, [], 'nothing but answers and refusals');
  assert.ok(counts.list.taken > 0);
  assert.deepEqual([...retryAfters], ['3']);
  assert.ok(discovers.length > 0 && discovers.every((status) => status === 200), 'discover is never refused');
  assert.ok(shed >= counts.list.refused + counts.read.refused);
});
