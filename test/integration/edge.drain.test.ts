/** Opening and closing the ports: readiness, the order of a drain, what is cut, and what a taken port says. */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { describe, test } from 'node:test';
import { createEdge } from '../../src/edge/server.ts';
import { createLogger } from '../../src/observability/log.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import type { Exchange, Outlet, Reply } from '../../src/protocol/exchange.ts';
import { configOf } from '../support/config.ts';
import {
  answer,
  head,
  listenReply,
  openEdge,
  request,
  type TestEdge,
  type TestEdgeOptions,
  Wire,
} from '../support/edge-kit.ts';
import { until } from '../support/mcp.ts';

interface Got {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

async function get(edge: TestEdge, path: string, method = 'GET'): Promise<Got> {
  const response = await fetch(`${edge.status}${path}`, { method });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

/** An edge whose calls wait until they are told. */
async function openHeld(options: TestEdgeOptions) {
  const held: { exchange: Exchange; reply: (reply: Reply) => void }[] = [];
  const edge = await openEdge(
    (inbound, exchange) =>
      inbound.head.headers.get('mcp-method') === 'subscriptions/listen'
        ? listenReply()
        : new Promise((reply) => held.push({ exchange, reply })),
    options,
  );
  return { edge, held };
}

describe('the status port', () => {
  test('says what it is asked for, to GET and HEAD only', async () => {
    const edge = await openEdge(async () => answer());
    try {
      assert.deepEqual(
        [(await get(edge, '/livez')).text, (await get(edge, '/readyz')).text],
        ['ok\n', 'ok\n'],
      );
      assert.equal(
        (await get(edge, '/readyz?verbose')).text,
        '[+]configuration ok\n[+]listening ok\n[+]not-draining ok\nreadyz check passed\n',
      );
      const metrics = await get(edge, '/metrics');
      assert.match(metrics.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
      assert.match(metrics.text, /^headgate_ready 1$/m);
      assert.deepEqual(
        [(await get(edge, '/livez', 'HEAD')).status, (await get(edge, '/other')).status],
        [200, 404],
      );
      const wrong = await get(edge, '/readyz', 'POST');
      assert.deepEqual([wrong.status, wrong.headers.get('allow')], [405, 'GET, HEAD']);
      assert.equal(edge.access.length, 0, 'it has access lines');
    } finally {
      await edge.close();
    }
  });
});

describe('R43: a drain', () => {
  test('is not ready at once, takes work until its delay is over, ends listens, and finishes calls', async () => {
    const { edge, held } = await openHeld({ shutdown: 'delay: 300ms, grace: 10s' });
    const [listen, call] = [
      await Wire.open(edge.port, request('subscriptions/listen')),
      await Wire.open(edge.port, request()),
    ];
    await listen.sees('opening');
    await until(() => held.length === 1, 'the call');

    const drained = edge.edge.drain();
    assert.equal(edge.edge.drain(), drained);
    const unready = await get(edge, '/readyz?verbose');
    assert.deepEqual([unready.status, unready.text.split('\n').at(-3)], [503, '[-]not-draining failed']);
    const late = await Wire.open(edge.port, request());
    await until(() => held.length === 2, 'work that came during the delay');

    assert.match(await listen.end(), /data: \{"closing":1\}\n\n\r\n0\r\n\r\n$/);
    await assert.rejects(Wire.open(edge.port), { code: 'ECONNREFUSED' });
    for (const { reply } of held) reply(answer());
    for (const wire of [call, late]) assert.match(await wire.end(), /connection: close[\s\S]*"ok":true/i);
    assert.deepEqual(await drained, { cutOff: 0 });
    await assert.rejects(get(edge, '/livez'));
  });

  test('refuses what still comes over a connection it has not closed yet', async () => {
    const { edge, held } = await openHeld({ shutdown: 'grace: 10s' });
    const wire = await Wire.open(edge.port, request());
    await until(() => held.length === 1, 'the call');
    const drained = edge.edge.drain();
    await until(
      () =>
        Wire.open(edge.port).then(
          () => false,
          () => true,
        ),
      'the port to be closed',
    );
    wire.send(request());
    held[0]?.reply(answer());
    const text = await wire.end();
    assert.equal(held.length, 1);
    assert.match(text, /"ok":true/);
    assert.deepEqual(await drained, { cutOff: 0 });
  });

  test('cuts what is left at the end of its grace, and lets it say so', async () => {
    const edge = await openEdge(
      async (_inbound, { signal }) => ({
        kind: 'relay',
        status: 200,
        media: 'sse',
        headers: {},
        body: (async function* () {
          yield Buffer.from('data: 1\n\n');
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
          yield Buffer.from(`data: ${(signal.reason as { code: string }).code}\n\n`);
        })(),
      }),
      { shutdown: 'grace: 200ms' },
    );
    const wire = await Wire.open(edge.port, request());
    await wire.sees('data: 1');
    assert.deepEqual(await edge.edge.drain(), { cutOff: 1 });
    assert.match(await wire.end(), /data: shutdown\n\n\r\n0\r\n\r\n$/);
    await until(() => edge.access.at(-1)?.error === 'shutdown', 'its line');
  });

  test('cuts also who does not listen', async () => {
    const { edge, held } = await openHeld({ shutdown: 'grace: 100ms' });
    const wire = await Wire.open(edge.port, request());
    await until(() => held.length === 1, 'the call');
    assert.deepEqual(await edge.edge.drain(), { cutOff: 1 });
    assert.equal(await wire.end(), '');
  });

  test('R41: is not held up by a listen whose client does not read', async () => {
    const text = JSON.stringify('x'.repeat(1 << 20));
    let behind = false;
    const start = (outlet: Outlet): void => {
      const more = (): void => {
        behind = !outlet.write(text);
        if (!behind) setImmediate(more);
      };
      more();
    };
    const edge = await openEdge(async () => listenReply({ start }), { shutdown: 'grace: 30s' });
    const wire = await Wire.open(edge.port, request('subscriptions/listen'));
    await wire.sees('opening');
    wire.socket.pause();
    await until(() => behind, 'a client that is behind');
    const startedAt = performance.now();
    assert.deepEqual(await edge.edge.drain(), { cutOff: 0 });
    assert.ok(performance.now() - startedAt < 10_000);
  });

  test('does not count a client that has its answer and still sends', async () => {
    const edge = await openEdge(async () => answer(), { shutdown: 'grace: 200ms' });
    const wire = await Wire.open(edge.port, head({ 'Content-Length': 1 << 30 }));
    await wire.sees('too large');
    assert.deepEqual(await edge.edge.drain(), { cutOff: 0 });
    await wire.end();
  });

  test('is over at once when it is forced', async () => {
    const { edge, held } = await openHeld({ shutdown: 'delay: 5m, grace: 5m' });
    const wire = await Wire.open(edge.port, request());
    await until(() => held.length === 1, 'the call');
    const drained = edge.edge.drain();
    edge.edge.force();
    assert.deepEqual(await drained, { cutOff: 1 });
    await wire.end();
  });
});

test('a port that is taken is told with its address, and nothing stays open', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => taken.once('listening', resolve));
  const { port } = taken.address() as { port: number };
  const open = (listen: string, status: string) => {
    const config = configOf(`
version: 1
listen: ${listen}
status: ${status}
upstreams: { docs: { url: http://127.0.0.1:1/mcp } }
routes: [{ path: /mcp, upstreams: [docs] }]
`);
    const metrics = createMetrics({ upstreams: [], routes: [], version: '0' });
    const log = createLogger({ ...config.log, sink: { write: () => {} } });
    return createEdge({ config, handle: async () => answer(), metrics, log, now: () => performance.now() });
  };
  const expected = { code: 'EADDRINUSE', address: `127.0.0.1:${port}`, port };
  try {
    await assert.rejects(open(`127.0.0.1:${port}`, '127.0.0.1:0').listen(), expected);
    const probe = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => probe.once('listening', resolve));
    const free = (probe.address() as { port: number }).port;
    await new Promise((resolve) => probe.close(resolve));
    await assert.rejects(open(`127.0.0.1:${free}`, `127.0.0.1:${port}`).listen(), expected);
    await assert.rejects(Wire.open(free), { code: 'ECONNREFUSED' });
  } finally {
    taken.close();
  }
});
