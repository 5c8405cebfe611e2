/** R35: a client that leaves cancels its upstream work at once, in every phase; nothing leaks. */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import {
  answer,
  chunk,
  event,
  type FaultServer,
  head,
  openEvents,
  PROGRESS,
  resultText,
  startFaultServer,
  until,
} from '../support/fault-server.ts';
import { bodyOf, type Rig, readRequest, rig, streamRequest } from '../support/upstream-kit.ts';

let server: FaultServer;
let docs: Rig;
before(async () => {
  server = await startFaultServer();
});
beforeEach(() => {
  docs = rig(server.url);
});
afterEach(async () => {
  const { running, pending, queued } = docs.upstream.stats();
  await docs.upstream.close();
  assert.deepEqual({ running, pending, queued }, { running: 0, pending: 0, queued: 0 });
  await until(() => server.open.size === 0, 'all connections to close');
});
after(() => server.close());

const gone = (): Promise<void> =>
  until(() => server.open.size === 0, 'the upstream to see the connection close');
const idle = (): Promise<void> =>
  until(() => {
    const { running, pending, queued } = docs.upstream.stats();
    return running + pending + queued === 0;
  }, 'undici to be idle');

test('R35: gone before the request: nothing is sent', async () => {
  const accepted = server.accepted;
  const outcome = await docs.upstream.read(readRequest({ signal: AbortSignal.abort() }));
  assert.equal(outcome.kind === 'failure' && outcome.failure.kind, 'cancelled');
  const streamed = await docs.upstream.stream(streamRequest({ signal: AbortSignal.abort() }));
  assert.equal(streamed.kind === 'failure' && streamed.failure.kind, 'cancelled');
  assert.equal(server.accepted, accepted);
});

for (const phase of ['neverAnswers', 'stallsInBody', 'eventsSilent'] as const) {
  test(`R35: a read that is left while its upstream "${phase}" is aborted at once`, async () => {
    server.fault = phase;
    const from = server.requests.length;
    const controller = new AbortController();
    const reading = docs.upstream.read(readRequest({ signal: controller.signal }));
    await until(() => server.requests.length > from, 'the request');
    controller.abort();
    const outcome = await reading;
    assert.equal(outcome.kind === 'failure' && outcome.failure.kind, 'cancelled');
    await gone();
    await idle();
    assert.deepEqual(docs.seen.attempts, ['cancelled']);
    assert.deepEqual(
      docs.seen.operations.map((operation) => operation.errorType),
      ['cancelled'],
    );
  });
}

test('R35: an aborted request does not make undici connect anew', async () => {
  server.fault = 'neverAnswers';
  const accepted = server.accepted;
  const controller = new AbortController();
  const reading = docs.upstream.read(readRequest({ signal: controller.signal }));
  await until(() => server.accepted > accepted, 'the connection');
  controller.abort();
  await reading;
  await gone();
  // The same pool still works, and it was the next request that connected.
  server.fault = 'ok';
  assert.equal((await docs.upstream.read(readRequest())).kind, 'answer');
  assert.equal(server.accepted, accepted + 2);
});

test('R35: gone while the connection is made', async () => {
  // Accepts and says nothing: a TLS handshake that never ends is a connection that is never made.
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as { port: number };
  const slow = rig(new URL(`https://127.0.0.1:${port}/mcp`), { connectMs: 300 });
  const controller = new AbortController();
  const reading = slow.upstream.read(readRequest({ signal: controller.signal }));
  await until(() => slow.upstream.stats().pending === 1, 'the request to wait');
  const startedAt = performance.now();
  controller.abort();
  const outcome = await reading;
  assert.equal(outcome.kind === 'failure' && outcome.failure.kind, 'cancelled');
  assert.ok(performance.now() - startedAt < 200);
  await slow.upstream.close();
  silent.close();
});

test('R35: gone while waiting for a connection: the slot is not lost', async () => {
  docs = rig(server.url, { connections: 1 });
  server.fault = 'neverAnswers';
  const first = new AbortController();
  const second = new AbortController();
  const from = server.requests.length;
  const one = docs.upstream.read(readRequest({ signal: first.signal }));
  const two = docs.upstream.read(readRequest({ signal: second.signal }));
  await until(() => server.requests.length > from, 'the first request');
  assert.equal(docs.upstream.stats().queued, 1);
  second.abort();
  await two;
  assert.equal(docs.upstream.stats().queued, 0);
  server.fault = 'ok';
  const three = docs.upstream.read(readRequest());
  first.abort();
  await one;
  assert.equal((await three).kind, 'answer');
});

test('R35: a streamed call that is left before its answer', async () => {
  server.fault = 'neverAnswers';
  const from = server.requests.length;
  const controller = new AbortController();
  const calling = docs.upstream.stream(streamRequest({ signal: controller.signal }));
  await until(() => server.requests.length > from, 'the request');
  controller.abort();
  const outcome = await calling;
  assert.equal(outcome.kind === 'failure' && outcome.failure.kind, 'cancelled');
  await gone();
});

for (const coding of ['plain', 'coded'] as const) {
  test(`R35: a streamed body (${coding}) that is left: by its signal, or by leaving the loop`, async () => {
    server.fault = coding === 'coded' ? 'eventsGzip' : 'eventsSilent';
    if (coding === 'coded') {
      const { gzipSync } = await import('node:zlib');
      server.fault = async (request) => {
        await request.body();
        openEvents(request, { 'Content-Encoding': 'gzip' });
        request.socket.write(chunk(gzipSync(event(PROGRESS))));
      };
    }
    const controller = new AbortController();
    const body = await bodyOf(docs.upstream, streamRequest({ signal: controller.signal }));
    const iterator = body[Symbol.asyncIterator]();
    assert.equal((await iterator.next()).done, false);
    const waiting = iterator.next();
    controller.abort();
    await assert.rejects(waiting, { name: 'UpstreamError' });
    await gone();

    for await (const part of await bodyOf(docs.upstream, streamRequest())) {
      assert.ok(part.length > 0);
      break;
    }
    await gone();

    // Never even begun.
    await (await bodyOf(docs.upstream, streamRequest()))[Symbol.asyncIterator]().return?.();
    await gone();

    // Left while a chunk is awaited.
    const third = (await bodyOf(docs.upstream, streamRequest()))[Symbol.asyncIterator]();
    await third.next();
    const pending = third.next().catch(() => undefined);
    await third.return?.();
    await pending;
    await gone();
    await idle();
  });
}

test('R35: a client that leaves in its upload: the upstream sees a broken request, never a whole one', async () => {
  server.fault = 'neverAnswers';
  const from = server.requests.length;
  async function* upload(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('{"jsonrpc":');
    await until(() => (server.requests[from]?.received ?? 0) > 0, 'the first bytes');
    throw new Error('the client has gone');
  }
  const outcome = await docs.upstream.stream(streamRequest({ body: upload() }));
  assert.equal(outcome.kind === 'failure' && outcome.failure.kind, 'cancelled');
  await gone();
  await assert.rejects(server.requests[from]?.body() ?? Promise.resolve(), /gone/);
});

test('R35: an upload whose call is cancelled is stopped, though its client never sends again', async () => {
  server.fault = 'neverAnswers';
  const from = server.requests.length;
  let returned = 0;
  const body: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => {
      let n = 0;
      return {
        next: () =>
          n++ === 0 ? Promise.resolve({ done: false, value: Buffer.from('{') }) : new Promise(() => {}),
        return: () => {
          returned++;
          return Promise.resolve({ done: true, value: undefined });
        },
      };
    },
  };
  const controller = new AbortController();
  const calling = docs.upstream.stream(streamRequest({ body, signal: controller.signal }));
  await until(() => (server.requests[from]?.received ?? 0) > 0, 'the first bytes');
  controller.abort();
  const outcome = await calling;
  assert.equal(outcome.kind === 'failure' && outcome.failure.kind, 'cancelled');
  await gone();
  await idle();
  assert.equal(returned, 1);
});

test('R35: an answer that is complete before the upload ends it', async () => {
  server.fault = (request) => answer(request, '{"error":"too large"}', { status: 413 });
  let returned = 0;
  const body: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => {
      let n = 0;
      return {
        next: () =>
          n++ === 0 ? Promise.resolve({ done: false, value: Buffer.from('{') }) : new Promise(() => {}),
        return: () => {
          returned++;
          return Promise.resolve({ done: true, value: undefined });
        },
      };
    },
  };
  const outcome = await docs.upstream.stream(streamRequest({ body }));
  assert.ok(outcome.kind === 'response');
  assert.equal(outcome.status, 413);
  for await (const part of outcome.body) assert.ok(part.length > 0);
  await until(() => returned === 1, 'the upload to stop');
  await gone();
});

test('R35: a thousand cancelled requests leave nothing behind', async () => {
  server.fault = (request) => {
    request.socket.write(head(200, { 'Content-Type': 'text/event-stream', 'Transfer-Encoding': 'chunked' }));
  };
  docs = rig(server.url, { connections: 16 });
  const controller = new AbortController();
  for (let n = 0; n < 1000; n += 50) {
    const batch = Array.from({ length: 50 }, () => {
      const one = new AbortController();
      const reading = docs.upstream.read(readRequest({ signal: one.signal }));
      return { one, reading };
    });
    await new Promise((resolve) => setImmediate(resolve));
    for (const { one } of batch) one.abort();
    await Promise.all(batch.map(({ reading }) => reading));
  }
  controller.abort();
  await gone();
  await idle();
  server.fault = async (request) => answer(request, resultText(await request.id()));
  assert.equal((await docs.upstream.read(readRequest())).kind, 'answer');
});
