/** Which era a server is of: what decides it, what does not, and when it is found out again. */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { Abort } from '../../src/protocol/signal.ts';
import type { ListenEvent, ReadOutcome, Upstream } from '../../src/upstream/types.ts';
import { createUpstream } from '../../src/upstream/upstream.ts';
import { answer, type FaultRequest, startFaultServer, until } from '../support/fault-server.ts';
import { startLegacy } from '../support/legacy-server.ts';
import { asking, listenRequest, TIMES } from '../support/listen-kit.ts';
import { now, recorder, upstreamConfig, VERSION } from '../support/upstream-kit.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type Said = readonly [status: number, members: string];
const DISCOVERED: Said = [
  200,
  `"result":{"resultType":"complete","supportedVersions":["${VERSION}"],"capabilities":{}}`,
];
const INITIALIZED: Said = [
  200,
  '"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{}}',
];
const READ: Said = [200, '"result":{"contents":[{"uri":"old://1","text":"x"}]}'];

/** A server that says this. */
async function saying(say: (method: string, request: FaultRequest) => Said | Promise<Said>) {
  const server = await startFaultServer(async (request) => {
    const id = await request.id();
    const [status, members] = await say(String(request.headers['mcp-method']), request);
    if (id === undefined) return answer(request, '', { status: 202 });
    return answer(request, `{"jsonrpc":"2.0","id":${id},${members}}`, { status });
  });
  closers.push(() => server.close());
  const asked = () => server.requests.map(({ headers }) => headers['mcp-method']);
  return { ...opened(server.url), server, asked };
}

function opened(url: URL) {
  const upstream = createUpstream(
    { ...upstreamConfig(url), protocol: 'auto' },
    { now, observer: recorder(), random: () => 0.5, listenTimes: TIMES },
  );
  closers.push(() => upstream.close());
  return { upstream };
}

const read = (upstream: Upstream, method: string, deadlineMs?: number): Promise<ReadOutcome> =>
  upstream.read({
    ...{ method, name: undefined, params: '{"uri":"old://1"}', version: VERSION },
    ...{ headers: {}, idempotent: true, signal: new Abort(), maxBytes: 1 << 20 },
    ...(deadlineMs !== undefined && { deadlineMs }),
  });

const isResult = (outcome: ReadOutcome): boolean =>
  outcome.kind === 'answer' && outcome.answer.kind === 'result';

describe('the era of a server', () => {
  test('is an older one where it supports older revisions only', async () => {
    for (const refused of [
      [400, '"error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25"],"requested":"x"}}'],
      [200, '"result":{"supportedVersions":["2025-06-18","2025-11-25"],"capabilities":{}}'],
    ] as const) {
      const { upstream, asked } = await saying((method) => {
        if (method === 'server/discover') return refused;
        return method === 'initialize' ? INITIALIZED : READ;
      });
      assert.ok(isResult(await read(upstream, 'server/discover')));
      assert.ok(isResult(await read(upstream, 'resources/read')));
      assert.ok(asked().includes('initialize'));
    }
  });

  test('is this one where an error says so', async () => {
    for (const error of [
      '"code":-32020,"message":"no"',
      '"code":-32021,"message":"no"',
      '"code":-32022,"message":"no"',
      `"code":-32022,"message":"no","data":{"supported":["${VERSION}","2025-11-25"]}`,
      '"code":-32022,"message":"no","data":{"supported":["2027-01-01"]}',
    ]) {
      const { upstream, asked } = await saying(() => [400, `"error":{${error}}`]);
      await read(upstream, 'server/discover');
      assert.deepEqual(asked(), ['server/discover']);
    }
  });

  test('is not decided by what is said about the caller or the moment, nor by what is no answer', async () => {
    for (const [status, members] of [
      ...[401, 403, 408, 421, 425, 429, 500, 503].map(
        (one) => [one, '"error":{"code":-32000,"message":"no"}'] as const,
      ),
      [200, '"result":{"hello":1}'],
    ] as const) {
      const { upstream, asked } = await saying(() => [status, members]);
      await read(upstream, 'server/discover');
      assert.ok(!asked().includes('initialize'), `${status}`);
    }
  });

  test('is found out when it was not before, and nothing is asked of a healthy one in vain', async () => {
    const older = await startLegacy();
    closers.push(() => older.close());
    assert.ok(isResult(await read(opened(older.url).upstream, 'resources/read')));
    const { upstream, asked } = await saying((method) => (method === 'server/discover' ? DISCOVERED : READ));
    await read(upstream, 'resources/read');
    await Promise.all([read(upstream, 'server/discover'), read(upstream, 'resources/read')]);
    assert.deepEqual(asked().sort(), ['resources/read', 'resources/read', 'server/discover']);
  });

  test('that is being found out is waited for', async () => {
    const older = await startLegacy();
    closers.push(() => older.close());
    const { upstream } = opened(older.url);
    const [, outcome] = await Promise.all([
      read(upstream, 'server/discover'),
      read(upstream, 'resources/read'),
    ]);
    assert.ok(isResult(outcome));
    assert.equal(older.of('initialize').length, 1);
  });

  test('is found out again when a newer server has become an older one, once for a while', async () => {
    let isOld = false;
    const { upstream, asked } = await saying((method, { headers }) => {
      if (!isOld) return method === 'server/discover' ? DISCOVERED : READ;
      if (method === 'initialize') return INITIALIZED;
      const isTheirs = headers['mcp-protocol-version'] === '2025-11-25';
      return isTheirs ? READ : [400, '"error":{"code":-32000,"message":"Server not initialized"}'];
    });
    await read(upstream, 'server/discover');
    isOld = true;
    assert.ok(isResult(await read(upstream, 'resources/read')));
    assert.equal(asked().filter((method) => method === 'server/discover').length, 2);
  });

  test('R36: is doubted by a call, too, which is never made twice', async () => {
    let isOld = true;
    const { upstream, asked } = await saying((method, { headers }) => {
      const isTheirs = headers['mcp-protocol-version'] === '2025-11-25';
      if (method === 'initialize')
        return isOld ? INITIALIZED : [400, '"error":{"code":-32022,"message":"no"}'];
      if (isOld && !isTheirs) return [400, '"error":{"code":-32000,"message":"Server not initialized"}'];
      if (!isOld && isTheirs) return [400, '"error":{"code":-32020,"message":"no"}'];
      return method === 'server/discover' ? DISCOVERED : READ;
    });
    const call = () =>
      upstream.stream({
        ...{ method: 'tools/call', name: 'x', version: VERSION, headers: {}, idempotent: false },
        body: Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}'),
        signal: new Abort(),
      });
    const first = await call();
    assert.ok(first.kind === 'response' && first.status === 400);
    await until(() => asked().includes('notifications/initialized'), 'the verdict');
    await read(upstream, 'server/discover');
    assert.equal((await call()).kind, 'whole');
    isOld = false;
    const calls = asked().filter((method) => method === 'tools/call').length;
    const outcome = await call();
    assert.match(outcome.kind === 'whole' ? Buffer.concat(outcome.chunks).toString() : '', /contents/);
    // Refused as of another era, it was not made.
    assert.equal(asked().filter((method) => method === 'tools/call').length, calls + 2);
  });

  test('takes those along who listen', async () => {
    const older = await startLegacy();
    closers.push(() => older.close());
    const { upstream } = opened(older.url);
    const events: ListenEvent[] = [];
    const listen = upstream.listen(listenRequest(asking({ resourceSubscriptions: ['old://1'] })), (event) =>
      events.push(event),
    );
    await until(() => events.length > 0, 'a refusal');
    assert.equal(events[0]?.kind, 'not-offered');
    await read(upstream, 'server/discover');
    await until(() => events.some(({ kind }) => kind === 'acknowledged'), 'the acknowledgment');
    older.notify('notifications/resources/updated', { uri: 'old://1' });
    await until(() => events.some(({ kind }) => kind === 'updated'), 'the change');
    listen.close();
    assert.equal(listen.state, 'closed');
  });
});
