/** Sessions with servers of an older era: whose they are, when they begin and end, and what is not lost with them. */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { Abort } from '../../src/protocol/signal.ts';
import type { UpstreamDeps } from '../../src/upstream/http.ts';
import { LegacySessions } from '../../src/upstream/legacy-sessions.ts';
import type { ReadOutcome, Upstream } from '../../src/upstream/types.ts';
import { createUpstream } from '../../src/upstream/upstream.ts';
import { until } from '../support/fault-server.ts';
import { type LegacyOptions, type LegacyServer, startLegacy } from '../support/legacy-server.ts';
import { TIMES } from '../support/listen-kit.ts';
import { now, recorder, upstreamConfig, VERSION } from '../support/upstream-kit.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function old(options: LegacyOptions = {}, deps: Partial<UpstreamDeps> = {}) {
  const server = await startLegacy(options);
  closers.push(() => server.close());
  const upstream = createUpstream(
    { ...upstreamConfig(server.url), protocol: 'legacy' },
    { now, observer: recorder(), random: () => 0.5, listenTimes: TIMES, ...deps },
  );
  closers.push(() => upstream.close());
  return { server, upstream };
}

const read = (
  upstream: Upstream,
  { deadlineMs, headers = {} }: { deadlineMs?: number; headers?: Record<string, string> } = {},
): Promise<ReadOutcome> =>
  upstream.read({
    method: 'resources/read',
    name: 'old://1',
    params: '{"uri":"old://1"}',
    version: VERSION,
    headers,
    idempotent: true,
    signal: new Abort(),
    maxBytes: 1 << 20,
    ...(deadlineMs !== undefined && { deadlineMs }),
  });

const never = (): Promise<never> => new Promise(() => undefined);

describe('a session with a server of an older era', () => {
  test('is not used by anybody before the server has heard that it is open', async () => {
    let accept: () => void = () => undefined;
    const accepted = new Promise<void>((resolve) => {
      accept = resolve;
    });
    const { server, upstream } = await old({ onTold: () => accepted });
    const first = read(upstream);
    await until(() => server.of('notifications/initialized').length === 1, 'the word');
    const second = read(upstream);
    await new Promise((resolve) => setTimeout(resolve, 30));
    assert.equal(server.of('resources/read').length, 0);
    accept();
    assert.deepEqual([(await first).kind, (await second).kind], ['answer', 'answer']);
    assert.equal(server.of('initialize').length, 1);
  });

  test('R38: that does not open is waited for as long as there is time', async () => {
    const { upstream } = await old({ onInitialize: never });
    const begun = now();
    const outcome = await read(upstream, { deadlineMs: 100 });
    assert.equal(outcome.kind === 'failure' && outcome.failure.kind, 'timeout');
    assert.ok(now() - begun < 1_000);
  });

  test('R17, R37: that is refused says nothing of what was asked', async () => {
    for (const code of [-32601, -32602, -32603]) {
      const { upstream } = await old({ onInitialize: () => ({ code, message: 'not so' }) });
      const outcome = await read(upstream);
      assert.equal(outcome.kind === 'failure' && outcome.failure.kind, 'broken', String(code));
    }
  });

  test('speaks 2024-11-05, too', async () => {
    const { upstream } = await old({ version: '2024-11-05' });
    assert.equal((await read(upstream)).kind, 'answer');
  });

  test('R48: is ended when nobody uses it', async () => {
    const { server, upstream } = await old({}, { sessionIdleMs: 60 });
    await read(upstream, { headers: { authorization: 'a' } });
    await until(() => server.ended.includes('s-1'), 'its end');
    assert.equal((await read(upstream, { headers: { authorization: 'a' } })).kind, 'answer');
    assert.equal(server.of('initialize').length, 2);
  });

  test('that is in use is not ended for want of use', async () => {
    let finish: () => void = () => undefined;
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const { server, upstream } = await old(
      { on: async () => finished.then(() => ({ contents: [] })) },
      { sessionIdleMs: 40 },
    );
    const slow = read(upstream);
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.deepEqual(server.ended, []);
    finish();
    assert.equal((await slow).kind, 'answer');
  });

  test('R30: is one of a bounded number, and what is in use is not lost to those who come', async () => {
    const ended: string[] = [];
    let slow: (outcome: ReadOutcome) => void = () => undefined;
    const answer = (members: string): ReadOutcome => {
      const tail = new TextEncoder().encode(`${members}}}`);
      return {
        ...{ kind: 'answer', status: 200, receivedAt: now(), session: `s-${ids++}` },
        answer: {
          ...{ kind: 'result', resultType: 'complete' },
          hints: { ttlMs: undefined, cacheScope: undefined },
          result: { tail, storable: tail, plain: () => tail },
        },
      };
    };
    let ids = 0;
    const sessions = new LegacySessions(
      {
        read: async ({ method, headers }) => {
          if (method === 'initialize') return answer(',"protocolVersion":"2025-11-25","capabilities":{}');
          if (headers.authorization === 'slow')
            return new Promise<ReadOutcome>((resolve) => {
              slow = resolve;
            });
          return answer('');
        },
        tell: async () => true,
        end: async ({ headers }) => void ended.push(String(headers.authorization)),
      },
      now,
      { telling: [] },
    );
    closers.push(() => sessions.close());
    const ask = (who: string): Promise<ReadOutcome> =>
      sessions.of({ authorization: who }).read({
        ...{ method: 'tools/list', name: undefined, params: '{}', version: VERSION, idempotent: true },
        ...{ headers: { authorization: who }, signal: new Abort(), maxBytes: 1_000 },
      });
    const held = ask('slow');
    for (let i = 0; i < 1_010; i++) await ask(`caller ${i}`);
    assert.equal(ended.length, 10);
    assert.ok(!ended.includes('slow'));
    slow(answer(''));
    assert.equal((await held).kind, 'answer');
    assert.ok(ended.includes('slow'));
  });

  test('R22: is not shared by callers who differ in a header that the operator lets the server see', async () => {
    const sessions = new LegacySessions({ read: never, tell: never, end: never }, now, {
      telling: ['baggage'],
    });
    const [a, b, traced] = [{ baggage: 'a' }, { baggage: 'b' }, { baggage: 'a', traceparent: 't' }];
    assert.notEqual(sessions.of(a), sessions.of(b));
    assert.equal(sessions.of(a), sessions.of(traced));
  });

  test('stays with the one of several endpoints that opened it', async () => {
    const servers = await Promise.all([startLegacy(), startLegacy()]);
    closers.push(...servers.map((server) => () => server.close()));
    const [first, second] = servers as [LegacyServer, LegacyServer];
    const config = {
      ...upstreamConfig(first.url),
      endpoints: [first.url, second.url],
      protocol: 'auto',
    } as const;
    const upstream = createUpstream(config, { now, observer: recorder(), listenTimes: TIMES });
    closers.push(() => upstream.close());
    const outcomes = await Promise.all(Array.from({ length: 40 }, () => read(upstream)));
    assert.ok(outcomes.every(({ kind }) => kind === 'answer'));
    const asked = [...first.of('initialize'), ...second.of('initialize')];
    assert.equal(asked.length, 1);
  });

  test('R31: is not over because something in it was not found', async () => {
    for (const code of [-32601, -32602, -32002]) {
      const { server, upstream } = await old({
        errorStatus: 404,
        on: () => ({ code, message: 'not found' }),
      });
      const outcome = await read(upstream);
      assert.ok(outcome.kind === 'answer' && outcome.answer.kind === 'error');
      assert.equal(outcome.answer.code, code);
      assert.equal(server.of('resources/read').length, 1);
      assert.equal(server.of('initialize').length, 1);
    }
  });

  test('that is refused with nothing but 400 is opened anew where everything is refused in it', async () => {
    const { server, upstream } = await old({ unknown: 'plain' });
    await read(upstream);
    server.restart();
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => read(upstream)));
    assert.ok(outcomes.every(({ kind }) => kind === 'answer'));
    assert.equal(server.of('initialize').length, 2);
  });

  test('that the server never knows costs one further initialize a request', async () => {
    const { server, upstream } = await old({ onTold: async () => undefined });
    await read(upstream);
    const before = server.of('initialize').length;
    const forgetful = setInterval(() => server.restart('kept'), 0);
    const outcome = await read(upstream);
    clearInterval(forgetful);
    assert.ok(outcome.kind === 'answer');
    assert.ok(server.of('initialize').length - before <= 2);
  });
});

describe('a call to a server of an older era', () => {
  const call = (upstream: Upstream, body: Uint8Array | AsyncIterable<Uint8Array>) =>
    upstream.stream({
      ...{ method: 'tools/call', name: 'x', version: VERSION, headers: {}, body, idempotent: false },
      signal: new Abort(),
    });
  const CALL = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}');

  test('R30: that tells more than is taken is not held without bound', async () => {
    const note = { method: 'notifications/progress', params: { message: 'x'.repeat(64 * 1024) } };
    let told = 0;
    const { upstream } = await old({
      on: ({ say }) => {
        for (; told < 200; told++) say(note);
        return { content: [] };
      },
    });
    const outcome = await call(upstream, CALL);
    assert.ok(outcome.kind === 'response');
    // Nobody reads yet. What has not come by then, on a busy machine, is taken as it comes: it was never held.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    let bytes = 0;
    let last = '';
    for await (const chunk of outcome.body) {
      bytes += chunk.length;
      last = Buffer.from(chunk).toString();
    }
    assert.match(last, /"content":\[\]/);
    assert.ok(bytes < (200 * 64 * 1024) / 2, `${bytes}`);
  });

  test('R35: whose client leaves while it is sending is cancelled', async () => {
    const { upstream } = await old();
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield CALL.subarray(0, 10);
      throw new Error('gone');
    }
    const outcome = await call(upstream, broken());
    assert.equal(outcome.kind === 'failure' && outcome.failure.kind, 'cancelled');
  });

  test('R38: that takes too long is taken back', async () => {
    const server = await startLegacy({ on: never });
    closers.push(() => server.close());
    const upstream = createUpstream(
      { ...upstreamConfig(server.url, { callMs: 100 }), protocol: 'legacy' },
      { now, observer: recorder() },
    );
    closers.push(() => upstream.close());
    const outcome = await call(upstream, CALL);
    assert.equal(outcome.kind === 'failure' && outcome.failure.kind, 'timeout');
    await until(() => server.of('notifications/cancelled').length === 1, 'word of it');
  });

  test('R41: a storm of questions in mid-call is answered a few at a time, and the call is answered', async () => {
    let most = 0;
    let atOnce = 0;
    const { upstream } = await old({
      onTold: async ({ method }) => {
        if (method !== '') return;
        most = Math.max(most, ++atOnce);
        await new Promise((resolve) => setTimeout(resolve, 20));
        atOnce--;
      },
      on: ({ say }) => {
        for (let i = 0; i < 5_000; i++) say({ id: i, method: 'elicitation/create', params: {} });
        return { content: [] };
      },
    });
    const outcome = await call(upstream, CALL);
    assert.equal(outcome.kind, 'whole');
    assert.ok(most <= 64, `${most}`);
  });
});
