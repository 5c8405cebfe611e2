/** Relaying an event stream: whole events as they came, and never a silent end. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { failure, UpstreamError } from '../../src/upstream/failure.ts';
import { MAX_HELD_EVENT_BYTES, relaySse } from '../../src/upstream/relay.ts';
import type { Failure } from '../../src/upstream/types.ts';
import {
  chunk,
  errorText,
  event,
  type FaultServer,
  openEvents,
  PROGRESS,
  resultText,
  SERVER_REQUEST,
  startFaultServer,
  until,
} from '../support/fault-server.ts';
import { bodyOf, rig, streamRequest, textOf } from '../support/upstream-kit.ts';

const RESET = failure('reset', 'http_response_incomplete', 'ECONNRESET at 10.0.0.7:3000');

/** A body made of these chunks, that ends, or breaks, or hangs. */
async function* body(
  chunks: readonly (string | Uint8Array)[],
  ending: 'end' | Failure = 'end',
): AsyncGenerator<Uint8Array> {
  for (const part of chunks) yield Buffer.from(part);
  if (ending !== 'end') throw new UpstreamError(ending);
}

/** The messages that a client reads: events without a type or of type `message`. */
function read(stream: string): unknown[] {
  const out: unknown[] = [];
  const parser = createParser({
    onEvent: ({ event: type, data }) => {
      if ((type === undefined || type === 'message') && data !== '') out.push(JSON.parse(data));
    },
  });
  parser.feed(stream);
  return out;
}

const brokenFrame = (id: string | undefined, message = 'The upstream server broke off its answer'): string =>
  event(
    `{"jsonrpc":"2.0",${id === undefined ? '' : `"id":${id},`}"error":{"code":-32603,"message":"${message}"}}`,
  );

test('R34: events are relayed as they came, and the stream ends behind the response', async () => {
  const stream = [': hi\n\n', event(PROGRESS), `data:${resultText('42')}\r\n\r\n`, event(PROGRESS)];
  let left = false;
  async function* upstream(): AsyncGenerator<Uint8Array> {
    try {
      yield* body(stream);
      await new Promise(() => {});
    } finally {
      left = true;
    }
  }
  assert.equal(await textOf(relaySse(upstream(), { id: '42' })), stream.slice(0, 3).join(''));
  assert.ok(left, 'the upstream was stopped');
});

test('R34: an event is relayed as soon as it is whole', async () => {
  const relayed = relaySse(
    body([': ping\n', event(PROGRESS).slice(0, 20), event(PROGRESS).slice(20), event(resultText('1'))]),
    { id: '1' },
  );
  assert.equal(Buffer.from((await relayed.next()).value ?? []).toString(), ': ping\n');
  assert.equal(Buffer.from((await relayed.next()).value ?? []).toString(), event(PROGRESS));
  await relayed.return(undefined);
});

test('R32: a request of the server is not relayed, an answer to another request is', async () => {
  const relayed = await textOf(
    relaySse(
      body([event(SERVER_REQUEST) + event(resultText('41')) + event(PROGRESS), event(resultText('42'))]),
      { id: '42' },
    ),
  );
  assert.equal(relayed, event(resultText('41')) + event(PROGRESS) + event(resultText('42')));
});

test('id and retry lines are not relayed: a client would try to resume', async () => {
  const relayed = await textOf(
    relaySse(body([`id: 5\nretry: 100\nevent: message\ndata: ${resultText('1')}\nid\n\n`]), { id: '1' }),
  );
  assert.equal(relayed, event(resultText('1')));
});

test('an error answer ends the stream as a result does', async () => {
  assert.equal(
    await textOf(relaySse(body([event(errorText('"a"')), ': more\n\n']), { id: '"a"' })),
    event(errorText('"a"')),
  );
});

for (const [how, ending, message] of [
  ['ends', 'end', 'The upstream server broke off its answer'],
  ['is reset', RESET, 'The upstream server broke off its answer'],
  ['falls silent', failure('timeout', 'http_response_timeout', 'x'), 'The upstream server stopped answering'],
  [
    'is cut by the gateway',
    failure('cancelled', 'connection_terminated', 'x'),
    'The call was cut off by the gateway',
  ],
] as const) {
  test(`R37: a stream that ${how} without a response ends with an error event in our words`, async () => {
    const reasons: Failure[] = [];
    const relayed = await textOf(
      relaySse(body([event(PROGRESS), 'data: {"jsonrpc":"2.0","id":4'], ending), {
        id: '42',
        onBroken: (reason) => reasons.push(reason),
      }),
    );
    assert.equal(relayed, event(PROGRESS) + brokenFrame('42', message));
    assert.equal(reasons.length, 1);
    assert.ok(!relayed.includes('10.0.0.7'));
  });
}

test('R8: the error event carries the id as it was spelled; without a known id it has none', async () => {
  for (const id of ['12345678901234567890', '"\\u0061"', '"1"']) {
    assert.equal(await textOf(relaySse(body([]), { id })), brokenFrame(id));
    assert.equal(await textOf(relaySse(body([]), { id: () => id })), brokenFrame(id));
  }
  assert.equal(await textOf(relaySse(body([]), { id: () => undefined })), brokenFrame(undefined));
});

test('R8: the response is known by the value of its id, not by its spelling', async () => {
  assert.equal(
    await textOf(relaySse(body([event(resultText('"a/b"')), ': x\n\n']), { id: '"a\\/b"' })),
    event(resultText('"a/b"')),
  );
  // The number 1 is not the string "1".
  assert.equal(
    await textOf(relaySse(body([event(resultText('1'))]), { id: '"1"' })),
    event(resultText('1')) + brokenFrame('"1"'),
  );
});

test('a response whose id nobody knows yet ends the stream', async () => {
  assert.equal(
    await textOf(relaySse(body([event(resultText('9')), ': x\n\n']), { id: () => undefined })),
    event(resultText('9')),
  );
});

test('an event of a type that clients ignore is not the response', async () => {
  const odd = `event: result\ndata: ${resultText('1')}\n\n`;
  assert.equal(await textOf(relaySse(body([odd]), { id: '1' })), odd + brokenFrame('1'));
});

test('an unfinished event is held up to the bound, at its edge', async () => {
  for (const [size, relayedBytes] of [
    [MAX_HELD_EVENT_BYTES, 0],
    [MAX_HELD_EVENT_BYTES + 1, MAX_HELD_EVENT_BYTES + 1],
  ] as const) {
    const part = `data: ${'x'.repeat(size - 6)}`;
    const relayed = await textOf(relaySse(body([part]), { id: '1' }));
    assert.equal(relayed.indexOf('event: '), relayedBytes === 0 ? 0 : relayedBytes + 1);
  }
});

test('a large response flows, is recognised, and ends the stream', async () => {
  const large = event(resultText('42', 'x'.repeat(300_000)));
  const parts = large.match(/.{1,10000}/gs) ?? [];
  assert.equal(await textOf(relaySse(body([...parts, ': never\n\n']), { id: '42' })), large);
});

test('a large event that is cut is not read as a message, and the error is', async () => {
  const large = event(resultText('42', 'x'.repeat(300_000)));
  for (const end of [200_000, large.length - 2, large.length - 1]) {
    const relayed = await textOf(relaySse(body([event(PROGRESS), large.slice(0, end)], RESET), { id: '42' }));
    assert.deepEqual(
      read(relayed),
      [JSON.parse(PROGRESS), JSON.parse(brokenFrame('42').slice(21))],
      `cut at ${end}`,
    );
  }
});

test('R34: any stream cut at any byte: whole events as they came, then one error event', () => {
  const stream = Buffer.from(
    `: hi\r\n\r\n${event(PROGRESS)}id: 3\rdata: {"jsonrpc":"2.0",\rdata: "method":"notifications/x"}\r\r${event(PROGRESS)}`,
  );
  return fc.assert(
    fc.asyncProperty(fc.nat(stream.length), fc.integer({ min: 1, max: 40 }), async (end, size) => {
      const parts: Buffer[] = [];
      for (let at = 0; at < end; at += size) parts.push(stream.subarray(at, Math.min(end, at + size)));
      const relayed = await textOf(relaySse(body(parts, RESET), { id: '42' }));
      assert.ok(relayed.endsWith(brokenFrame('42')));
      const messages = read(relayed);
      assert.deepEqual(messages.at(-1), {
        jsonrpc: '2.0',
        id: 42,
        error: { code: -32603, message: 'The upstream server broke off its answer' },
      });
      // On a trailing CR eventsource-parser waits for what comes next.
      assert.deepEqual(messages.slice(0, -1), read(`${stream.subarray(0, end)}`.replace(/\r$/, '\r\n')));
    }),
    { numRuns: 150 },
  );
});

test('what the body throws that is no upstream failure is broken, too', async () => {
  async function* bug(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(': x\n\n');
    throw new TypeError('secret');
  }
  assert.equal(await textOf(relaySse(bug(), { id: '1' })), `: x\n\n${brokenFrame('1')}`);
});

let server: FaultServer;
before(async () => {
  server = await startFaultServer();
});
after(() => server.close());

test('R35: whoever stops reading the relay stops the upstream', async () => {
  const docs = rig(server.url);
  server.fault = async (request) => {
    await request.body();
    openEvents(request);
    request.socket.write(chunk(event(PROGRESS)));
  };
  for await (const part of relaySse(await bodyOf(docs.upstream, streamRequest()), { id: '42' })) {
    assert.equal(Buffer.from(part).toString(), event(PROGRESS));
    break;
  }
  await until(() => server.open.size === 0, 'the connection to close');
  await docs.upstream.close();
});

test('R32: an upstream that goes on behind its response is left soon, one that ends keeps its connection', async () => {
  const docs = rig(server.url);
  server.fault = 'eventsGoOn';
  const from = server.accepted;
  assert.equal(
    await textOf(relaySse(await bodyOf(docs.upstream, streamRequest()), { id: '42' })),
    event(resultText('42')),
  );
  await until(() => server.open.size === 0, 'the connection to close');
  server.fault = 'events';
  for (let n = 0; n < 3; n++) {
    await textOf(relaySse(await bodyOf(docs.upstream, streamRequest()), { id: '42' }));
    await until(() => docs.upstream.stats().free === 1, 'the connection to be free');
  }
  assert.equal(server.accepted - from, 2);
  assert.deepEqual(docs.seen.attempts, ['ok', 'ok', 'ok', 'ok']);
  await docs.upstream.close();
});

test('R37: a cut on the wire reaches the client as an error within a moment', async () => {
  const docs = rig(server.url);
  server.fault = 'eventsCut';
  const relayed = await textOf(relaySse(await bodyOf(docs.upstream, streamRequest()), { id: '42' }));
  assert.equal(relayed, event(PROGRESS) + brokenFrame('42'));
  await docs.upstream.close();
});

for (const [what, chunks] of [
  ['CR alone', [`data:${resultText('42')}\r\r`]],
  ['a CR LF that is split', [`data:${resultText('42')}\r\n\r`, '\n']],
] as const) {
  test(`R32: a response whose last line ends in ${what} is dispatched by a client that waits for a LF`, async () => {
    const stream = await textOf(relaySse(body(chunks), { id: '42' }));
    assert.deepEqual(read(stream), [JSON.parse(resultText('42'))]);
  });
}

test('R32: events that end in CR alone reach a client that waits for a LF one by one', async () => {
  const relayed = relaySse(body([`data:${PROGRESS}\r\r`, `data:${resultText('42')}\r\n\r`, '\n']), {
    id: '42',
  });
  const first = (await relayed.next()).value ?? new Uint8Array();
  assert.deepEqual(read(Buffer.from(first).toString()), [JSON.parse(PROGRESS)]);
  await relayed.return(undefined);
});
