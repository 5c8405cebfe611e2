/** The read call against an upstream with a switch per fault. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { ReadOutcome } from '../../src/upstream/types.ts';
import {
  answer,
  chunk,
  errorText,
  event,
  type Fault,
  type FaultName,
  type FaultServer,
  LAST_CHUNK,
  openEvents,
  PROGRESS,
  resultText,
  startFaultServer,
  until,
} from '../support/fault-server.ts';
import { type Rig, readRequest, rig } from '../support/upstream-kit.ts';

let server: FaultServer;
let docs: Rig;
before(async () => {
  server = await startFaultServer();
});
beforeEach(() => use());

/** Another upstream room in front of the same server. */
async function use(options: Parameters<typeof rig>[1] = {}): Promise<void> {
  await docs?.upstream.close();
  docs = rig(server.url, options);
}

const settled = (): Promise<void> =>
  until(() => docs.upstream.stats().free === docs.upstream.stats().connected, 'the connections to be free');

after(async () => {
  await docs.upstream.close();
  await server.close();
});

const read = (
  fault: FaultName | Fault,
  rest: Parameters<typeof readRequest>[0] = {},
): Promise<ReadOutcome> => {
  server.fault = fault;
  return docs.upstream.read(readRequest(rest));
};

/** The result's members, as text, or why there are none. */
function shown(outcome: ReadOutcome): string {
  if (outcome.kind === 'refused') return `refused ${outcome.status}`;
  if (outcome.kind === 'large') return 'large';
  if (outcome.kind === 'failure') return `${outcome.failure.kind} ${outcome.failure.proxyError}`;
  const { answer } = outcome;
  return answer.kind === 'error' ? `error ${answer.code}` : new TextDecoder().decode(answer.result.tail);
}

const HELLO = ',"contents":[{"uri":"a:b","text":"hello"}]}}';

for (const fault of [
  'ok',
  'oddType',
  'wholeAnswerUntilClose',
  'gzip',
  'upperGzip',
  'deflate',
  'rawDeflate',
  'brotli',
  'twice',
  'events',
  'eventsOddType',
  'eventsGzip',
  'eventsBusy',
  'eventsCrLf',
  'eventsCr',
  'eventsManyLines',
  'eventsGoOn',
] satisfies FaultName[]) {
  test(`R32: an answer that comes as "${fault}" is read`, async () => {
    const shownAs = shown(await read(fault)).replace(/[ \n]/g, '');
    assert.equal(shownAs, HELLO);
  });
}

test('R32: an event stream that comes byte by byte is read', async () => {
  assert.match(shown(await read('eventsByteByByte')), /grüße 🌍/);
});

const BROKEN: Readonly<Partial<Record<FaultName, string>>> = {
  stallsInBody: 'timeout http_response_timeout',
  neverAnswers: 'timeout http_response_timeout',
  eventsSilent: 'timeout http_response_timeout',
  halfAnAnswer: 'reset http_response_incomplete',
  eventsCut: 'reset http_response_incomplete',
  halfAnAnswerUntilClose: 'broken http_protocol_error',
  badJson: 'broken http_protocol_error',
  bom: 'broken http_protocol_error',
  wrongId: 'broken http_protocol_error',
  twoAnswers: 'broken http_protocol_error',
  wrongType: 'broken http_protocol_error',
  garbage: 'broken http_protocol_error',
  redirect: 'broken http_protocol_error',
  eventsEndWithout: 'broken http_response_incomplete',
  eventsNoBlankLine: 'broken http_response_incomplete',
  lyingGzip: 'broken http_response_content_coding',
  cutGzip: 'broken http_response_content_coding',
  unknownCoding: 'broken http_response_content_coding',
  gzipBomb: 'too_large http_response_body_size',
  htmlBadGateway: 'http_5xx destination_unavailable',
};

for (const [fault, expected] of Object.entries(BROKEN)) {
  test(`R32 R37: "${fault}" is ${expected}`, async () => {
    await use({ responseMs: expected.startsWith('timeout') ? 150 : 5_000 });
    assert.equal(shown(await read(fault as FaultName)), expected);
  });
}

test('R31: not found, empty and failed are three things', async () => {
  assert.equal(shown(await read('rpcError')), 'error -32602');
  const empty: Fault = async (request) => answer(request, resultText(await request.id(), ''));
  assert.match(shown(await read(empty)), /"text":""/);
  assert.equal(shown(await read('htmlBadGateway')), 'http_5xx destination_unavailable');
});

test('R37: an error of the method is passed on with its code, message, data and status', async () => {
  const outcome = await read(async (request) =>
    answer(request, errorText(await request.id()), { status: 404 }),
  );
  assert.ok(outcome.kind === 'answer' && outcome.answer.kind === 'error');
  assert.equal(outcome.status, 404);
  assert.deepEqual(outcome.answer, {
    kind: 'error',
    code: -32602,
    message: 'no such thing',
    data: '{"uri":"a:b"}',
  });
});

test('R37: an error without a readable id is taken, also on an event stream', async () => {
  const text = errorText('null', -32600);
  assert.equal(shown(await read((request) => answer(request, text, { status: 400 }))), 'error -32600');
  assert.equal(
    shown(await read((request) => answer(request, text.replace('"id":null,', ''), { status: 400 }))),
    'error -32600',
  );
  const streamed: Fault = (request) => {
    openEvents(request);
    request.socket.write(chunk(event(text)) + LAST_CHUNK);
  };
  assert.equal(shown(await read(streamed)), 'error -32600');
});

test('R37: a refusal keeps its challenge and its Retry-After', async () => {
  assert.deepEqual(await read('unauthorized'), {
    kind: 'refused',
    status: 401,
    challenge: 'Bearer realm="x"',
    retryAfter: undefined,
  });
  const outcome = await read((request) =>
    answer(request, 'slow down', { status: 429, headers: { 'Retry-After': '3' } }),
  );
  assert.deepEqual(outcome, { kind: 'refused', status: 429, challenge: undefined, retryAfter: '3' });
});

test('R37: several challenges are kept in order', async () => {
  const outcome = await read((request) => {
    request.socket.write(
      'HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer a="b"\r\nwww-authenticate: Basic\r\nContent-Length: 0\r\n\r\n',
    );
  });
  assert.equal(outcome.kind === 'refused' && outcome.challenge, 'Bearer a="b", Basic');
});

test('R17: 501 is a refusal, as 404 and 405 are', async () => {
  for (const status of [404, 405, 501]) {
    assert.equal(shown(await read((request) => answer(request, '', { status }))), `refused ${status}`);
  }
});

test('a 5xx is a failure even with a JSON-RPC error in it, and its Retry-After is kept', async () => {
  assert.equal(
    shown(
      await read(async (request) => answer(request, errorText(await request.id(), -32603), { status: 500 })),
    ),
    'http_5xx destination_unavailable',
  );
  const outcome = await read('unavailable');
  assert.ok(outcome.kind === 'failure');
  assert.equal(outcome.failure.retryAfterSeconds, 7);
  assert.equal(outcome.failure.status, 503);
});

test('what goes upstream: a JSON-RPC request under an own id, and the mirrored headers', async () => {
  await read('ok', {
    name: 'file:///ü',
    headers: { authorization: 'Bearer t', 'mcp-name': 'evil', host: 'evil', 'content-length': '1' },
  });
  const request = server.requests.at(-1);
  assert.ok(request);
  assert.deepEqual(JSON.parse((await request.body()).toString()), {
    jsonrpc: '2.0',
    id: JSON.parse(await request.id()),
    method: 'resources/read',
    params: { uri: 'a:b' },
  });
  const { headers } = request;
  assert.equal(headers['mcp-method'], 'resources/read');
  assert.equal(headers['mcp-name'], '=?base64?ZmlsZTovLy/DvA==?=');
  assert.equal(headers['mcp-protocol-version'], '2026-07-28');
  assert.equal(headers['content-type'], 'application/json');
  assert.equal(headers.accept, 'application/json, text/event-stream');
  assert.equal(headers.authorization, 'Bearer t');
  assert.equal(headers.host, server.url.host);
});

test('R8: every request has an id of its own', async () => {
  const from = server.requests.length;
  await Promise.all([read('ok'), read('ok'), read('ok')]);
  const ids = await Promise.all(server.requests.slice(from).map((request) => request.id()));
  assert.equal(new Set(ids).size, 3);
  assert.ok(ids.every((id) => id.startsWith('"')));
});

test('R36 R8: a reset on a kept-alive connection is retried once, under a new id', async () => {
  await read('resetWhenReused');
  await settled();
  const from = server.requests.length;
  assert.equal(shown(await read('resetWhenReused')), HELLO);
  const ids = await Promise.all(server.requests.slice(from).map((request) => request.id()));
  assert.equal(ids.length, 2);
  assert.notEqual(ids[0], ids[1]);
  assert.deepEqual(docs.seen.retries, ['reset']);
  assert.deepEqual(docs.seen.attempts, ['ok', 'reset', 'ok']);
});

test('R36: a second reset is a failure, and nothing is retried once an answer began', async () => {
  const from = server.requests.length;
  assert.equal(shown(await read('reset')), 'reset connection_terminated');
  assert.equal(server.requests.length - from, 2);
  assert.equal(shown(await read('halfAnAnswer')), 'reset http_response_incomplete');
  assert.equal(server.requests.length - from, 3);
});

test('R36: what is not idempotent is not sent again', async () => {
  const from = server.requests.length;
  assert.equal(shown(await read('reset', { idempotent: false })), 'reset connection_terminated');
  assert.equal(server.requests.length - from, 1);
  assert.deepEqual(docs.seen.retries, []);
});

test('R36: a redirect is an error, and nothing is asked where it points', async () => {
  const other = await startFaultServer();
  const outcome = await read((request) =>
    answer(request, '', { status: 308, headers: { Location: String(other.url) } }),
  );
  assert.equal(shown(outcome), 'broken http_protocol_error');
  assert.equal(other.accepted, 0);
  await other.close();
});

test('R38: one deadline covers the headers and a stalled body', async () => {
  await use({ responseMs: 5_000 });
  const startedAt = performance.now();
  assert.equal(shown(await read('stallsInBody', { deadlineMs: 100 })), 'timeout http_response_timeout');
  await use({ responseMs: 5_000 });
  assert.equal(shown(await read('neverAnswers', { deadlineMs: 100 })), 'timeout http_response_timeout');
  assert.ok(performance.now() - startedAt < 2_000);
});

test('R38: a deadline longer than the response timeout is cut to it', async () => {
  await use({ responseMs: 100 });
  assert.equal(shown(await read('neverAnswers', { deadlineMs: 60_000 })), 'timeout http_response_timeout');
});

test('R38: progress extends the deadline, up to the maximum', async () => {
  await use({ responseMs: 150, callMs: 600 });
  const drip =
    (times: number): Fault =>
    async (request) => {
      const id = await request.id();
      openEvents(request);
      for (let n = 0; n < times && !request.socket.destroyed; n++) {
        request.socket.write(chunk(event(PROGRESS)));
        await new Promise((resolve) => setTimeout(resolve, 60));
      }
      request.socket.write(chunk(event(resultText(id))) + LAST_CHUNK);
    };
  const notes: string[] = [];
  const onNotification = (message: Uint8Array): void => void notes.push(new TextDecoder().decode(message));
  assert.equal(shown(await read(drip(5), { onNotification })), HELLO);
  assert.deepEqual(notes, Array(5).fill(PROGRESS));
  const startedAt = performance.now();
  assert.equal(shown(await read(drip(100), { onNotification })), 'timeout http_response_timeout');
  assert.ok(performance.now() - startedAt >= 590, 'not before the maximum');
  // A deadline of the caller's is a limit, not a patience.
  assert.equal(shown(await read(drip(5), { deadlineMs: 100 })), 'timeout http_response_timeout');
});

test('R32: notifications are handed on as they came, requests of the server and foreign answers are not', async () => {
  const notes: string[] = [];
  await read('eventsBusy', {
    onNotification: (message) => void notes.push(new TextDecoder().decode(message)),
  });
  assert.deepEqual(notes, [PROGRESS]);
});

test('R32: an event of another type is not an answer', async () => {
  const outcome = await read(async (request) => {
    openEvents(request);
    request.socket.write(chunk(`event: other\ndata: ${resultText(await request.id())}\n\n`) + LAST_CHUNK);
  });
  assert.equal(shown(outcome), 'broken http_response_incomplete');
});

test('a stream that goes on after the response is left, and its connection closed', async () => {
  assert.equal(shown(await read('eventsGoOn')), HELLO);
  await until(() => server.open.size === 0, 'the connection to close');
});

test('a stream that ends with its response leaves its connection for the next request', async () => {
  const from = server.accepted;
  for (let n = 0; n < 3; n++) {
    await read('events');
    await until(
      () => docs.upstream.stats().running === 0 && docs.upstream.stats().free === 1,
      'the connection to be free',
    );
  }
  assert.equal(server.accepted - from, 1);
});

test('the bound on an answer holds at its edge, as JSON, as events, and after decoding', async () => {
  const size = Buffer.byteLength(resultText('"hg-1"'));
  for (const fault of ['ok', 'events', 'gzip'] satisfies FaultName[]) {
    await use();
    assert.equal(shown(await read(fault, { maxBytes: size })), HELLO);
    await use();
    assert.equal(shown(await read(fault, { maxBytes: size - 1 })), 'too_large http_response_body_size');
  }
  const huge: Fault = (request) => {
    openEvents(request);
    request.socket.write(chunk(`data: ${'x'.repeat(300_000)}`));
  };
  assert.equal(shown(await read(huge, { maxBytes: 1000 })), 'too_large http_response_body_size');
});

test('the bounds on a refusal, on headers and on codings hold at their edges', async () => {
  const refusal =
    (size: number): Fault =>
    async (request) => {
      const text = errorText(await request.id());
      answer(request, text.padEnd(size), { status: 404 });
    };
  const mebibyte = 1024 * 1024;
  assert.equal(shown(await read(refusal(mebibyte), { maxBytes: 8 * mebibyte })), 'error -32602');
  assert.equal(shown(await read(refusal(mebibyte + 1), { maxBytes: 8 * mebibyte })), 'refused 404');

  const headed =
    (size: number): Fault =>
    async (request) =>
      answer(request, resultText(await request.id()), { headers: { 'X-A': 'x'.repeat(size) } });
  assert.equal(shown(await read(headed(31 * 1024))), HELLO);
  assert.equal(shown(await read(headed(32 * 1024))), 'broken http_response_header_section_size');

  const coded: Fault = (request) =>
    answer(request, '{}', { headers: { 'Content-Encoding': 'gzip, gzip, gzip' } });
  assert.equal(shown(await read(coded)), 'broken http_response_content_coding');
  assert.equal(
    shown(
      await read(async (request) =>
        answer(request, resultText(await request.id()), { headers: { 'Content-Encoding': 'identity' } }),
      ),
    ),
    HELLO,
  );
});

test('R30: a compressed bomb is left before it is unpacked', async () => {
  const before = process.memoryUsage();
  assert.equal(shown(await read('gzipBomb', { maxBytes: 1 << 20 })), 'too_large http_response_body_size');
  const grown =
    process.memoryUsage().arrayBuffers +
    process.memoryUsage().external -
    before.arrayBuffers -
    before.external;
  assert.ok(grown < 16 * 1024 * 1024, `${grown} bytes`);
});

test('R37: nothing that the upstream said is in the words for a client', async () => {
  const outcome = await read('htmlBadGateway');
  assert.ok(outcome.kind === 'failure');
  assert.ok(!JSON.stringify(outcome.failure).includes('10.0.0.7'));
});
