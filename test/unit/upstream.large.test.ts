/** R30: who holds how much of an answer that is still coming, and when it begins to flow. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { HeldBytes, SMALL_READ_BYTES } from '../../src/upstream/held.ts';
import type { FlowingTail, ReadOutcome } from '../../src/upstream/types.ts';
import { createUpstream } from '../../src/upstream/upstream.ts';
import {
  chunk,
  event,
  type Fault,
  type FaultServer,
  head,
  LAST_CHUNK,
  startFaultServer,
  until,
} from '../support/fault-server.ts';
import { now, readRequest, recorder, textOf, upstreamConfig } from '../support/upstream-kit.ts';

let server: FaultServer;
before(async () => {
  server = await startFaultServer();
});
after(() => server.close());

const FLOW = { flow: { array: 'contents' } } as const;

function answerOf(id: string, size: number): string {
  return `{"jsonrpc":"2.0","id":${id},"result":{"contents":["${'x'.repeat(size)}"],"ttlMs":5}}`;
}

const inOne =
  (size: number): Fault =>
  async ({ id, socket }) => {
    const text = answerOf(await id(), size);
    socket.write(head(200, { 'Content-Type': 'application/json', 'Content-Length': text.length }) + text);
  };

/** The first half at once, the rest when told. */
function inHalves(size: number, media: 'json' | 'sse'): { fault: Fault; go: () => void } {
  let go: () => void = () => undefined;
  const told = new Promise<void>((resolve) => {
    go = resolve;
  });
  const fault: Fault = async ({ id, socket }) => {
    const json = answerOf(await id(), size);
    const text = media === 'json' ? json : event(json);
    const type = media === 'json' ? 'application/json' : 'text/event-stream';
    socket.write(head(200, { 'Content-Type': type, 'Transfer-Encoding': 'chunked' }));
    socket.write(chunk(text.slice(0, text.length / 2)));
    await told;
    socket.write(chunk(text.slice(text.length / 2)));
    socket.write(LAST_CHUNK);
  };
  return { fault, go };
}

function open(heldBytes = 1 << 30) {
  const held = new HeldBytes(heldBytes);
  const seen = recorder();
  return { held, seen, upstream: createUpstream(upstreamConfig(server.url), { now, observer: seen, held }) };
}

function tailOf(outcome: ReadOutcome): FlowingTail {
  assert.equal(outcome.kind, 'large', JSON.stringify(outcome));
  return (outcome as Extract<ReadOutcome, { kind: 'large' }>).tail;
}

describe('R30: a read', () => {
  test('is held up to its bound, and flows beyond it where that was asked for', async () => {
    const { upstream, held, seen } = open();
    const size = answerOf('"hg-1"', 100_000).length;
    server.fault = inOne(100_000);
    assert.equal((await upstream.read(readRequest({ ...FLOW, maxBytes: size }))).kind, 'answer');
    const refused = await upstream.read(readRequest({ maxBytes: size - 1 }));
    assert.equal(refused.kind === 'failure' && refused.failure.kind, 'too_large');
    assert.equal(held.bytes, 0);
    const tail = tailOf(await upstream.read(readRequest({ ...FLOW, maxBytes: size - 1 })));
    assert.equal(await textOf(tail), `,"contents":["${'x'.repeat(100_000)}"]}}`);
    assert.equal(held.bytes, 0);
    assert.deepEqual(seen.attempts, ['ok', 'reset', 'ok']);
    assert.deepEqual(
      seen.operations.map(({ errorType }) => errorType),
      ['', 'other', ''],
    );
    await upstream.close();
  });

  for (const media of ['json', 'sse'] as const) {
    test(`that comes as ${media} flows sooner when all reads together hold too much`, async () => {
      const { upstream, held } = open(2 * SMALL_READ_BYTES);
      const size = 4 * SMALL_READ_BYTES;
      const { fault, go } = inHalves(size, media);
      server.fault = fault;
      const waiting = upstream.read(readRequest({ ...FLOW, maxBytes: 1 << 30 }));
      await until(() => held.bytes > SMALL_READ_BYTES, 'what is held');
      // Another one takes what may be held.
      const other = held.open();
      other.set(2 * SMALL_READ_BYTES);
      go();
      const tail = tailOf(await waiting);
      assert.equal(await textOf(tail), `,"contents":["${'x'.repeat(size)}"]}}`);
      other.release();
      assert.equal(held.bytes, 0);
      await upstream.close();
    });
  }

  test('that is small is always held', async () => {
    const { upstream, held } = open(0);
    held.open().set(1);
    server.fault = inOne(SMALL_READ_BYTES / 2);
    assert.equal((await upstream.read(readRequest({ ...FLOW, maxBytes: 1 << 20 }))).kind, 'answer');
    await upstream.close();
  });

  test('R35: that flows and is aborted, or left, ends its request, and is counted once', async () => {
    const { upstream, held, seen } = open();
    for (const give of [
      (tail: FlowingTail) => tail.abort(),
      (tail: FlowingTail) => tail[Symbol.asyncIterator]().return?.(),
    ]) {
      const { fault } = inHalves(1 << 20, 'json');
      server.fault = fault;
      const tail = tailOf(await upstream.read(readRequest({ ...FLOW, maxBytes: 100_000 })));
      assert.ok(held.bytes > 0);
      await give(tail);
      tail.abort();
      await until(() => server.open.size === 0, 'the end of the connection');
      assert.equal(held.bytes, 0);
    }
    const { fault } = inHalves(1 << 20, 'json');
    server.fault = fault;
    const tail = tailOf(await upstream.read(readRequest({ ...FLOW, maxBytes: 100_000 })));
    const reading = textOf(tail);
    tail.abort();
    await assert.rejects(reading, { name: 'UpstreamError' });
    assert.deepEqual(seen.attempts, ['cancelled', 'cancelled', 'cancelled']);
    await upstream.close();
  });
});
