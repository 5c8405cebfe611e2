/** One upstream as the rest of the gateway sees it: pools, circuit, what it reports. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createUpstream } from '../../src/upstream/upstream.ts';
import { answer, errorText, type FaultServer, startFaultServer, until } from '../support/fault-server.ts';
import {
  bodyOf,
  now,
  readRequest,
  recorder,
  rig,
  streamRequest,
  textOf,
  upstreamConfig,
} from '../support/upstream-kit.ts';

let server: FaultServer;
before(async () => {
  server = await startFaultServer();
});
after(() => server.close());

test('R38: an open circuit turns calls away at once, and closes when the upstream is back', async () => {
  let skew = 0;
  const { upstream, seen } = rig(server.url, { clock: () => now() + skew });
  server.fault = 'htmlBadGateway';
  for (let n = 0; n < 5; n++) await upstream.read(readRequest());
  assert.equal(upstream.available(), false);
  const from = server.requests.length;
  for (const outcome of [await upstream.read(readRequest()), await upstream.stream(streamRequest())]) {
    assert.ok(outcome.kind === 'failure');
    assert.equal(outcome.failure.kind, 'circuit_open');
    assert.equal(outcome.failure.retryAfterSeconds, 5);
  }
  assert.equal(server.requests.length, from);
  skew = 5_000;
  assert.ok(upstream.available());
  server.fault = 'ok';
  assert.equal((await upstream.read(readRequest())).kind, 'answer');
  assert.deepEqual(seen.attempts, [...Array(5).fill('http_5xx'), 'circuit_open', 'circuit_open', 'ok']);
  assert.deepEqual(seen.states, ['circuit open', 'down', 'circuit closed', 'up']);
  await upstream.close();
});

test('R38: a hanging upstream costs a list its deadline once', async () => {
  let skew = 0;
  const { upstream } = rig(server.url, { clock: () => now() + skew });
  server.fault = 'neverAnswers';
  const from = server.requests.length;
  const reading = upstream.read(readRequest({ method: 'resources/list', deadlineMs: 100 }));
  await until(() => server.requests.length > from, 'the request');
  skew = 5_000;
  const outcome = await reading;
  assert.equal(outcome.kind === 'failure' && outcome.failure.kind, 'timeout');
  assert.equal(upstream.available(), false);
  const next = await upstream.read(readRequest());
  assert.equal(next.kind === 'failure' && next.failure.kind, 'circuit_open');
  assert.equal(server.requests.length, from + 1);
  await upstream.close();
});

test('R38: an upstream that is slow to start is not taken for a hanging one', async () => {
  const { upstream } = rig(server.url);
  server.fault = 'neverAnswers';
  await upstream.read(readRequest({ method: 'server/discover', deadlineMs: 50 }));
  assert.ok(upstream.available());
  await upstream.close();
});

test('R38: slow tools weigh less than reads that time out', async () => {
  const { upstream } = rig(server.url, { responseMs: 60 });
  server.fault = 'neverAnswers';
  for (let n = 0; n < 4; n++) await upstream.stream(streamRequest());
  assert.ok(upstream.available());
  await upstream.stream(streamRequest());
  assert.equal(upstream.available(), false);
  await upstream.close();
});

test('R38: cancelled calls do not open the circuit', async () => {
  const { upstream } = rig(server.url);
  server.fault = 'neverAnswers';
  for (let n = 0; n < 10; n++) {
    const from = server.requests.length;
    const controller = new AbortController();
    const reading = upstream.read(readRequest({ signal: controller.signal, deadlineMs: 1_000 }));
    await until(() => server.requests.length > from, 'the request');
    controller.abort();
    await reading;
  }
  assert.ok(upstream.available());
  await upstream.close();
});

test('R45: error types are a closed set, whatever number an upstream sends', async () => {
  const { upstream, seen } = rig(server.url);
  for (const code of [-32602, -32099, 7]) {
    server.fault = async (request) => answer(request, errorText(await request.id(), code));
    await upstream.read(readRequest());
  }
  server.fault = 'unauthorized';
  await upstream.read(readRequest());
  server.fault = 'ok';
  await upstream.read(readRequest());
  assert.deepEqual(
    seen.operations.map(({ errorType }) => errorType),
    ['-32602', 'other', 'other', 'other', ''],
  );
  assert.deepEqual(seen.attempts, ['rpc_error', 'rpc_error', 'rpc_error', 'http_4xx', 'ok']);
  assert.deepEqual(seen.states, ['up']);
  await upstream.close();
});

test('reads never use more connections than their bound, and all are answered', async () => {
  const { upstream } = rig(server.url, { connections: 4 });
  let running = 0;
  let most = 0;
  server.fault = async (request) => {
    running++;
    most = Math.max(most, running);
    await new Promise((resolve) => setTimeout(resolve, 2));
    running--;
    answer(request, `{"jsonrpc":"2.0","id":${await request.id()},"result":{}}`);
  };
  const from = server.accepted;
  const outcomes = await Promise.all(Array.from({ length: 64 }, () => upstream.read(readRequest())));
  assert.ok(outcomes.every((outcome) => outcome.kind === 'answer'));
  assert.ok(
    most <= 4 && server.accepted - from <= 4,
    `${most} at once, ${server.accepted - from} connections`,
  );
  await upstream.close();
});

test('reads beyond what may wait are told so', async () => {
  const { upstream } = rig(server.url, { connections: 1, responseMs: 200 });
  server.fault = 'neverAnswers';
  const outcomes = await Promise.all(Array.from({ length: 18 }, () => upstream.read(readRequest())));
  const kinds = outcomes.map((outcome) => (outcome.kind === 'failure' ? outcome.failure.kind : outcome.kind));
  assert.deepEqual([...new Set(kinds)].sort(), ['full', 'timeout']);
  assert.equal(kinds.filter((kind) => kind === 'full').length, 1);
  await upstream.close();
});

test('streams do not starve reads', async () => {
  const { upstream } = rig(server.url, { connections: 2 });
  server.fault = 'eventsSilent';
  await Promise.all([1, 2].map(() => bodyOf(upstream, streamRequest())));
  server.fault = 'ok';
  assert.equal((await upstream.read(readRequest())).kind, 'answer');
  await upstream.close();
});

test('closing breaks off what runs, with a name', async () => {
  const { upstream } = rig(server.url);
  server.fault = 'neverAnswers';
  const from = server.requests.length;
  const reading = upstream.read(readRequest());
  await until(() => server.requests.length > from, 'the request');
  server.fault = 'eventsSilent';
  const body = await bodyOf(upstream, streamRequest());
  const ending = assert.rejects(textOf(body), { name: 'UpstreamError' });
  await upstream.close();
  const outcome = await reading;
  assert.equal(outcome.kind === 'failure' && outcome.failure.kind, 'cancelled');
  await ending;
  const late = await upstream.read(readRequest());
  assert.equal(late.kind === 'failure' && late.failure.kind, 'cancelled');
});

test('R46: the log of an opening circuit names the upstream and the reason, no header', async () => {
  const lines: unknown[] = [];
  const upstream = createUpstream(upstreamConfig(server.url), {
    now,
    observer: recorder(),
    log: (level, message, fields) => lines.push({ level, message, fields }),
  });
  server.fault = 'htmlBadGateway';
  for (let n = 0; n < 5; n++)
    await upstream.read(readRequest({ headers: { authorization: 'Bearer canary' } }));
  assert.equal(lines.length, 1);
  assert.match(JSON.stringify(lines), /"warn".*"docs".*"http_5xx"/);
  assert.ok(!JSON.stringify(lines).includes('canary'));
  await upstream.close();
});
