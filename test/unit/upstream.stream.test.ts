/** The streamed call: bytes through, in both directions. */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { WHOLE_BYTES } from '../../src/upstream/exchange.ts';
import { UpstreamError } from '../../src/upstream/failure.ts';
import type { StreamOutcome } from '../../src/upstream/types.ts';
import {
  answer,
  chunk,
  errorText,
  event,
  type FAULTS,
  type FaultServer,
  head,
  LAST_CHUNK,
  openEvents,
  PROGRESS,
  resultText,
  startFaultServer,
  until,
} from '../support/fault-server.ts';
import { bodyIn, bodyOf, CALL, type Rig, rig, streamRequest, textOf } from '../support/upstream-kit.ts';

let server: FaultServer;
let docs: Rig;
before(async () => {
  server = await startFaultServer();
});
beforeEach(() => {
  docs = rig(server.url);
});
afterEach(() => docs.upstream.close());
after(() => server.close());

async function use(options: Parameters<typeof rig>[1]): Promise<void> {
  await docs.upstream.close();
  docs = rig(server.url, options);
}

const failureOf = (outcome: StreamOutcome): string =>
  outcome.kind === 'failure'
    ? `${outcome.failure.kind} ${outcome.failure.proxyError}`
    : `status ${outcome.kind === 'whole' ? 200 : outcome.status}`;

/** The failure that ends a body. */
async function ending(body: AsyncIterable<Uint8Array>): Promise<string> {
  try {
    return `whole: ${await textOf(body)}`;
  } catch (error) {
    assert.ok(error instanceof UpstreamError);
    return `${error.failure.kind} ${error.failure.proxyError}`;
  }
}

test('R8: the bytes of a small body go up as they are, in one piece', async () => {
  server.fault = 'ok';
  const body = `{ "jsonrpc":"2.0", "big":12345678901234567890,"e":1e400,\n"id" : 42}`;
  const outcome = await docs.upstream.stream(
    streamRequest({
      body: Buffer.from(body),
      headers: { 'mcp-param-region': 'eu', connection: 'x', 'transfer-encoding': 'chunked' },
    }),
  );
  assert.ok(outcome.kind === 'whole');
  assert.equal(Buffer.concat(outcome.chunks).toString(), resultText('42'));
  const request = server.requests.at(-1);
  assert.ok(request);
  assert.equal((await request.body()).toString(), body);
  assert.equal(request.headers['content-length'], String(body.length));
  assert.equal(request.headers['transfer-encoding'], undefined);
  assert.equal(request.headers['mcp-param-region'], 'eu');
  assert.equal(request.headers['mcp-method'], 'tools/call');
  assert.equal(request.headers['mcp-name'], 't');
});

test('a large body is streamed up, with back-pressure', async () => {
  const total = 8 * 1024 * 1024;
  const piece = Buffer.alloc(64 * 1024, 0x61);
  let taken = 0;
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  server.fault = async (request) => {
    request.socket.pause();
    await opened;
    request.socket.resume();
    const { length } = await request.body();
    answer(request, `{"id":1,"result":{"got":${length}}}`);
  };
  async function* upload(): AsyncGenerator<Uint8Array> {
    for (; taken < total; taken += piece.length) yield piece;
  }
  const calling = docs.upstream.stream(streamRequest({ body: upload() }));
  let before = -1;
  await until(() => {
    const still = taken === before;
    before = taken;
    return still && taken > 0;
  }, 'the upload to stall');
  assert.ok(taken < total, `${taken} bytes taken from the client while the upstream reads nothing`);
  open();
  const outcome = await calling;
  assert.equal(await textOf(bodyIn(outcome)), `{"id":1,"result":{"got":${total}}}`);
  assert.equal(server.requests.at(-1)?.headers['transfer-encoding'], 'chunked');
});

test('a large answer comes down with back-pressure', async () => {
  const total = 32 * 1024 * 1024;
  let written = 0;
  server.fault = async (request) => {
    await request.body();
    const piece = Buffer.alloc(256 * 1024, 0x20);
    request.socket.write(head(200, { 'Content-Type': 'application/json', 'Content-Length': total }));
    while (written < total && !request.socket.destroyed) {
      written += piece.length;
      if (!request.socket.write(piece)) await new Promise((resolve) => request.socket.once('drain', resolve));
    }
  };
  const iterator = (await bodyOf(docs.upstream, streamRequest()))[Symbol.asyncIterator]();
  let size = (await iterator.next()).value?.length ?? 0;
  let before = -1;
  await until(() => {
    const still = written === before;
    before = written;
    return still;
  }, 'the upstream to stall');
  assert.ok(written < total, `${written} bytes written to a reader that has stopped`);
  for (let step = await iterator.next(); !step.done; step = await iterator.next()) size += step.value.length;
  assert.equal(size, total);
});

test('R34: events come down as they are written', async () => {
  const gates: (() => void)[] = [];
  server.fault = async (request) => {
    const id = await request.id();
    openEvents(request);
    for (const json of [PROGRESS, PROGRESS, resultText(id)]) {
      request.socket.write(chunk(event(json)));
      await new Promise<void>((resolve) => gates.push(resolve));
    }
    request.socket.write(LAST_CHUNK);
  };
  const outcome = await docs.upstream.stream(streamRequest());
  assert.ok(outcome.kind === 'response');
  assert.equal(outcome.media, 'sse');
  const iterator = outcome.body[Symbol.asyncIterator]();
  for (const json of [PROGRESS, PROGRESS, resultText('42')]) {
    assert.equal(Buffer.from((await iterator.next()).value ?? []).toString(), event(json));
    gates.shift()?.();
  }
  assert.equal((await iterator.next()).done, true);
});

for (const fault of ['gzip', 'upperGzip', 'deflate', 'rawDeflate', 'brotli', 'twice'] as const) {
  test(`R33: "${fault}" is taken off a streamed answer`, async () => {
    server.fault = fault;
    assert.equal(await textOf(await bodyOf(docs.upstream, streamRequest())), resultText('42'));
  });
}

test('R33 R34: compressed events come down one by one', async () => {
  const { createGzip, constants } = await import('node:zlib');
  let go = (): void => {};
  server.fault = async (request) => {
    await request.body();
    openEvents(request, { 'Content-Encoding': 'gzip' });
    const gzip = createGzip({ flush: constants.Z_SYNC_FLUSH });
    gzip.on('data', (bytes: Buffer) => request.socket.write(chunk(bytes)));
    gzip.on('end', () => request.socket.write(LAST_CHUNK));
    gzip.write(event(PROGRESS));
    await new Promise<void>((resolve) => {
      go = resolve;
    });
    gzip.end(event(resultText('42')));
  };
  const iterator = (await bodyOf(docs.upstream, streamRequest()))[Symbol.asyncIterator]();
  assert.equal(Buffer.from((await iterator.next()).value ?? []).toString(), event(PROGRESS));
  go();
  assert.equal(Buffer.from((await iterator.next()).value ?? []).toString(), event(resultText('42')));
  assert.equal((await iterator.next()).done, true);
});

const CUT: readonly (readonly [keyof typeof FAULTS, string])[] = [
  ['halfAnAnswerUntilClose', 'reset http_response_incomplete'],
  ['eventsCut', 'reset http_response_incomplete'],
  ['cutGzip', 'broken http_response_content_coding'],
];
for (const [fault, expected] of CUT) {
  test(`R32: a body that ends as "${fault}" never just ends`, async () => {
    server.fault = fault;
    const outcome = await docs.upstream.stream(streamRequest());
    assert.equal(outcome.kind === 'response' ? await ending(outcome.body) : failureOf(outcome), expected);
  });
}

test('R32 R37: half a small answer is a failure, half a large one a body that breaks', async () => {
  server.fault = 'halfAnAnswer';
  assert.equal(failureOf(await docs.upstream.stream(streamRequest())), 'reset http_response_incomplete');
  server.fault = async (request) => {
    await request.body();
    request.socket.write(head(200, { 'Content-Type': 'application/json', 'Content-Length': 500_000 }));
    request.socket.end(`{"jsonrpc":"2.0","big":"${'x'.repeat(200_000)}`);
  };
  const outcome = await docs.upstream.stream(streamRequest());
  assert.ok(outcome.kind === 'response');
  assert.equal(outcome.lengthBytes, 500_000);
  assert.equal(await ending(outcome.body), 'reset http_response_incomplete');
});

test('R30: an answer goes in one piece below 128 KiB, and as it comes from there on', async () => {
  for (const [over, kind] of [
    [-1, 'whole'],
    [0, 'response'],
  ] as const) {
    const text = `"${'x'.repeat(WHOLE_BYTES - 2 + over)}"`;
    server.fault = async (request) => {
      await request.body();
      answer(request, text);
    };
    const outcome = await docs.upstream.stream(streamRequest());
    assert.equal(outcome.kind, kind);
    assert.equal((await textOf(bodyIn(outcome))).length, text.length);
  }
});

test('R32: an answer that only the end of the connection ends is whole when its JSON is', async () => {
  server.fault = 'wholeAnswerUntilClose';
  assert.equal(await ending(await bodyOf(docs.upstream, streamRequest())), `whole: ${resultText('42')}`);
});

test('R36 R37: redirects and 5xx are failures, other refusals are handed on with their head', async () => {
  server.fault = 'redirect';
  assert.equal(failureOf(await docs.upstream.stream(streamRequest())), 'broken http_protocol_error');
  server.fault = 'unavailable';
  const unavailable = await docs.upstream.stream(streamRequest());
  assert.ok(unavailable.kind === 'failure');
  assert.equal(unavailable.failure.kind, 'http_5xx');
  assert.equal(unavailable.failure.retryAfterSeconds, 7);
  server.fault = 'unauthorized';
  const refused = await docs.upstream.stream(streamRequest());
  assert.ok(refused.kind === 'response');
  assert.equal(refused.status, 401);
  assert.equal(refused.challenge, 'Bearer realm="x"');
  server.fault = async (request) => answer(request, errorText(await request.id(), -32601), { status: 404 });
  const unknown = await docs.upstream.stream(streamRequest());
  assert.ok(unknown.kind === 'response');
  assert.equal(await textOf(unknown.body), errorText('42', -32601));
  assert.deepEqual(
    docs.seen.attempts.filter((attempt) => attempt !== 'http_4xx'),
    ['reset', 'http_5xx'],
  );
});

test('R36: tools/call is never sent twice', async () => {
  server.fault = 'resetWhenReused';
  await textOf(await bodyOf(docs.upstream, streamRequest()));
  await until(() => docs.upstream.stats().free === 1, 'the connection to be free');
  const from = server.requests.length;
  assert.equal(failureOf(await docs.upstream.stream(streamRequest())), 'reset connection_terminated');
  assert.equal(server.requests.length - from, 1);
});

test('R36: an idempotent streamed call is sent twice, if its body is in hand', async () => {
  server.fault = 'resetWhenReused';
  const once = { method: 'prompts/get', idempotent: true };
  await textOf(await bodyOf(docs.upstream, streamRequest(once)));
  await until(() => docs.upstream.stats().free === 1, 'the connection to be free');
  assert.equal(await textOf(await bodyOf(docs.upstream, streamRequest(once))), resultText('42'));
  assert.deepEqual(docs.seen.retries, ['reset']);
  async function* upload(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(CALL);
  }
  await until(() => docs.upstream.stats().free > 0, 'the connection to be free');
  server.fault = 'reset';
  assert.equal(
    failureOf(await docs.upstream.stream(streamRequest({ ...once, body: upload() }))),
    'reset connection_terminated',
  );
  assert.equal(docs.seen.retries.length, 1);
});

test('R38: a call may take longer to be answered than a read: its own maximum counts', async () => {
  await use({ responseMs: 50, callMs: 600 });
  server.fault = async (request) => {
    await request.body();
    await new Promise((resolve) => setTimeout(resolve, 200));
    answer(request, resultText('42'));
  };
  assert.equal(await textOf(await bodyOf(docs.upstream, streamRequest())), resultText('42'));
  server.fault = 'neverAnswers';
  assert.equal(failureOf(await docs.upstream.stream(streamRequest())), 'timeout http_response_timeout');
});

test('R38: a call has a maximum, whatever phase it is in', async () => {
  await use({ callMs: 200 });
  server.fault = 'neverAnswers';
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) {
      yield Buffer.from(' ');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  assert.equal(
    failureOf(await docs.upstream.stream(streamRequest({ body: endless() }))),
    'timeout http_response_timeout',
  );
  server.fault = async (request) => {
    await request.body();
    openEvents(request);
    while (!request.socket.destroyed) {
      request.socket.write(chunk(event(PROGRESS)));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  assert.equal(await ending(await bodyOf(docs.upstream, streamRequest())), 'timeout http_response_timeout');
});

test('R38: a stream that falls silent is ended, a slow reader is no silence', async () => {
  await use({ streamIdleMs: 150 });
  server.fault = 'eventsSilent';
  assert.equal(await ending(await bodyOf(docs.upstream, streamRequest())), 'timeout http_response_timeout');
  server.fault = 'events';
  const body = await bodyOf(docs.upstream, streamRequest());
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal(await textOf(body), event(resultText('42')));
});

test('R38: a JSON body that stalls is ended', async () => {
  await use({ streamIdleMs: 150 });
  server.fault = 'stallsInBody';
  assert.equal(failureOf(await docs.upstream.stream(streamRequest())), 'timeout http_response_timeout');
});

test('streamed calls have a bound of their own: one more is told to come back, reads go on', async () => {
  await use({ connections: 2 });
  server.fault = 'eventsSilent';
  const bodies = await Promise.all([1, 2].map(() => bodyOf(docs.upstream, streamRequest())));
  const outcome = await docs.upstream.stream(streamRequest());
  assert.ok(outcome.kind === 'failure');
  assert.equal(outcome.failure.kind, 'full');
  assert.equal(outcome.failure.retryAfterSeconds, 1);
  server.fault = 'ok';
  const { readRequest } = await import('../support/upstream-kit.ts');
  assert.equal((await docs.upstream.read(readRequest())).kind, 'answer');
  await bodies[0]?.[Symbol.asyncIterator]().return?.();
  assert.equal(await textOf(await bodyOf(docs.upstream, streamRequest())), resultText('42'));
  await bodies[1]?.[Symbol.asyncIterator]().return?.();
});

test('the operation is told when the body has ended, with the attempt', async () => {
  server.fault = 'events';
  const body = await bodyOf(docs.upstream, streamRequest());
  await textOf(body);
  assert.deepEqual(docs.seen.attempts, ['ok']);
  assert.deepEqual(
    docs.seen.operations.map(({ method, errorType }) => [method, errorType]),
    [['tools/call', '']],
  );
  server.fault = 'eventsCut';
  await ending(await bodyOf(docs.upstream, streamRequest()));
  assert.deepEqual(docs.seen.attempts, ['ok', 'reset']);
  server.fault = 'htmlBadGateway';
  await docs.upstream.stream(streamRequest());
  await until(() => docs.seen.operations.length === 3, 'the third operation');
  assert.deepEqual(
    docs.seen.operations.map(({ errorType }) => errorType),
    ['', 'other', 'other'],
  );
});

test('a compressed answer of a content length that fits the compressed bytes is whole', async () => {
  const text = resultText('42', 'x'.repeat(200_000));
  server.fault = async (request) => {
    await request.body();
    answer(request, gzipSync(text), { headers: { 'Content-Encoding': 'gzip' } });
  };
  assert.equal(await textOf(await bodyOf(docs.upstream, streamRequest())), text);
});

test('R37: a JSON answer that fails before its first byte is a failure, not a broken body', async () => {
  await use({ streamIdleMs: 100 });
  const stalling = 'broken off, stalled and mislabelled before anything could have been passed on';
  const seen: string[] = [];
  for (const fault of [
    async (request) => {
      await request.body();
      request.socket.end(head(200, { 'Content-Type': 'application/json', 'Content-Length': 5 }));
    },
    async (request) => {
      await request.body();
      request.socket.write(head(200, { 'Content-Type': 'application/json', 'Content-Length': 5 }));
    },
    async (request) => {
      await request.body();
      answer(request, '', { status: 200 });
    },
  ] satisfies FaultServer['fault'][]) {
    server.fault = fault;
    seen.push(failureOf(await docs.upstream.stream(streamRequest())));
  }
  server.fault = 'lyingGzip';
  seen.push(failureOf(await docs.upstream.stream(streamRequest())));
  assert.deepEqual(
    seen,
    [
      'reset http_response_incomplete',
      'timeout http_response_timeout',
      'broken http_response_incomplete',
      'broken http_response_content_coding',
    ],
    stalling,
  );
});
