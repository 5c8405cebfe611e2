/** R36, R38: several endpoints of one upstream: who is asked, who is left alone, and where a request goes next. */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import type { ReadOutcome } from '../../src/upstream/types.ts';
import { createUpstream } from '../../src/upstream/upstream.ts';
import { type Fault, type FaultServer, startFaultServer, until } from '../support/fault-server.ts';
import {
  bodyOf,
  CALL,
  now,
  readRequest,
  recorder,
  streamRequest,
  textOf,
  upstreamConfig,
} from '../support/upstream-kit.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

interface Group {
  readonly servers: readonly FaultServer[];
  readonly upstream: ReturnType<typeof createUpstream>;
  readonly seen: ReturnType<typeof recorder>;
  readonly logged: [string, unknown][];
  /** Requests that each server has got. */
  counts(): number[];
  /** Moves the clock of circuits on. */
  skip(ms: number): void;
}

async function group(faults: readonly FaultServer['fault'][], connectMs = 500): Promise<Group> {
  const servers = await Promise.all(faults.map((fault) => startFaultServer(fault)));
  const seen = recorder();
  const logged: [string, unknown][] = [];
  let skew = 0;
  const config = {
    ...upstreamConfig(servers[0]?.url as URL, { connectMs }),
    endpoints: servers.map(({ url }) => url),
  };
  const upstream = createUpstream(config, {
    now: () => now() + skew,
    observer: seen,
    log: (_, message, { endpoint }) => logged.push([message, endpoint]),
  });
  closers.push(async () => {
    await upstream.close();
    for (const server of servers) await server.close();
  });
  return {
    servers,
    upstream,
    seen,
    logged,
    counts: () => servers.map(({ requests }) => requests.length),
    skip: (ms) => {
      skew += ms;
    },
  };
}

const kindOf = (outcome: ReadOutcome): string =>
  outcome.kind === 'failure' ? outcome.failure.kind : outcome.kind;

describe('the next request goes', () => {
  test('round where nobody has more to do', async () => {
    const { upstream, counts } = await group(['ok', 'ok', 'ok']);
    for (let n = 0; n < 9; n++) await upstream.read(readRequest());
    assert.deepEqual(counts(), [3, 3, 3]);
  });

  test('to whoever has the fewest under way, reads and calls together', async () => {
    const { upstream, servers, counts } = await group(['neverAnswers', 'ok']);
    const leaving = new AbortController();
    const hanging = [
      upstream.read(readRequest({ signal: leaving.signal })),
      upstream.read(readRequest({ signal: leaving.signal })),
    ];
    await until(() => servers[0]?.requests.length === 1, 'the first request');
    await hanging[1];
    for (let n = 0; n < 6; n++) await upstream.read(readRequest());
    assert.deepEqual(counts(), [1, 7]);
    const call = await bodyOf(upstream, streamRequest());
    assert.match(await textOf(call), /hello/);
    assert.deepEqual(counts(), [1, 8]);
    leaving.abort();
    await Promise.all(hanging);
  });
});

describe('R36: a request that was not answered', () => {
  const refusing = async (group: Group, index = 0): Promise<void> => {
    await group.servers[index]?.close();
  };

  test('goes to another endpoint when its connection was refused, a call too', async () => {
    const rig = await group(['ok', 'ok']);
    await refusing(rig);
    assert.equal((await rig.upstream.read(readRequest())).kind, 'answer');
    assert.match(await textOf(await bodyOf(rig.upstream, streamRequest())), /hello/);
    assert.match(await textOf(await bodyOf(rig.upstream, streamRequest())), /hello/);
    assert.ok(rig.seen.retries.length > 0 && rig.seen.retries.every((reason) => reason === 'connect'));
    assert.equal(rig.seen.attempts.filter((outcome) => outcome === 'ok').length, 3);
    closers.splice(
      0,
      1,
      () => rig.upstream.close(),
      () => rig.servers[1]?.close() as Promise<void>,
    );
  });

  test('goes there whole, when it flows up', async () => {
    const rig = await group(['ok', 'ok']);
    await refusing(rig);
    async function* body(): AsyncGenerator<Uint8Array> {
      yield Buffer.from(CALL.slice(0, 20));
      yield Buffer.from(CALL.slice(20));
    }
    for (let n = 0; n < 2; n++) {
      const answer = await bodyOf(rig.upstream, streamRequest({ body: body() }));
      assert.match(await textOf(answer), /"id":42/);
    }
    closers.splice(
      0,
      1,
      () => rig.upstream.close(),
      () => rig.servers[1]?.close() as Promise<void>,
    );
  });

  test('goes to another, once, when the connection broke, but never a call', async () => {
    const rig = await group(['reset', 'reset', 'ok']);
    assert.equal(kindOf(await rig.upstream.read(readRequest())), 'reset', 'two of three were asked');
    assert.deepEqual(rig.counts(), [1, 1, 0]);
    assert.equal((await rig.upstream.read(readRequest())).kind, 'answer');
    const outcome = await rig.upstream.stream(streamRequest());
    assert.equal(outcome.kind === 'failure' && outcome.failure.kind, 'reset');
    assert.deepEqual(rig.counts(), [2, 1, 1]);
  });

  test('is a failure when every endpoint refuses it', async () => {
    const rig = await group(['ok', 'ok']);
    for (const server of rig.servers) await server.close();
    assert.equal(kindOf(await rig.upstream.read(readRequest())), 'connect');
    assert.deepEqual(rig.seen.attempts, ['connect', 'connect']);
    assert.deepEqual(rig.seen.states, ['down']);
    closers.splice(0, 1, () => rig.upstream.close());
  });
});

/** Reads until one is left alone. */
async function eject(upstream: Group['upstream'], logged: Group['logged']): Promise<void> {
  for (let n = 0; n < 30 && logged.length === 0; n++) await upstream.read(readRequest());
  assert.equal(logged.length, 1);
}

describe('R38: an endpoint that keeps failing', () => {
  test('is left alone while the others are asked; the upstream stays up', async () => {
    const { upstream, servers, counts, seen, logged } = await group(['htmlBadGateway', 'ok']);
    const outcomes: string[] = [];
    for (let n = 0; n < 20; n++) outcomes.push(kindOf(await upstream.read(readRequest())));
    assert.deepEqual(counts(), [5, 15]);
    assert.equal(outcomes.filter((kind) => kind === 'http_5xx').length, 5);
    assert.deepEqual(seen.states, ['up']);
    assert.deepEqual(logged, [['upstream left alone for a while', String(servers[0]?.url)]]);
  });

  test('is tried by one read, and comes back with it', async () => {
    const { upstream, servers, counts, skip, logged } = await group(['htmlBadGateway', 'ok']);
    await eject(upstream, logged);
    skip(5_000);
    (servers[0] as FaultServer).fault = 'ok';
    const from = counts();
    for (let n = 0; n < 6; n++) assert.equal((await upstream.read(readRequest())).kind, 'answer');
    assert.deepEqual(
      counts().map((count, i) => count - (from[i] as number)),
      [3, 3],
    );
    assert.deepEqual(logged.at(-1), ['upstream answers again', String(servers[0]?.url)]);
  });

  test('is not tried by a call while another is well', async () => {
    const { upstream, servers, counts, skip, logged } = await group(['htmlBadGateway', 'ok']);
    await eject(upstream, logged);
    skip(5_000);
    (servers[0] as FaultServer).fault = 'reset';
    for (let n = 0; n < 5; n++) await textOf(await bodyOf(upstream, streamRequest()));
    assert.equal(counts()[0], 5);
  });

  test('costs the read that tries it a moment, not its answer', async (t) => {
    const { upstream, servers, skip, seen, logged } = await group(['htmlBadGateway', 'ok']);
    await eject(upstream, logged);
    skip(5_000);
    const hanging: Fault = () => undefined;
    (servers[0] as FaultServer).fault = hanging;
    const startedAt = now();
    // Another waits for nothing meanwhile.
    const trial = upstream.read(readRequest({ deadlineMs: 10_000 }));
    assert.equal((await upstream.read(readRequest())).kind, 'answer');
    assert.ok(now() - startedAt < 1_000);
    assert.equal(kindOf(await trial), 'answer');
    t.diagnostic(`answered by another after ${Math.round(now() - startedAt)} ms`);
    assert.equal(seen.attempts.at(-2), 'timeout');
  });

  test('makes the upstream unavailable only together with all others', async () => {
    const { upstream, seen, skip, servers } = await group(['htmlBadGateway', 'htmlBadGateway']);
    for (let n = 0; n < 9; n++) await upstream.read(readRequest());
    assert.ok(upstream.available());
    await upstream.read(readRequest());
    assert.equal(upstream.available(), false);
    const outcome = await upstream.read(readRequest());
    assert.ok(outcome.kind === 'failure');
    assert.deepEqual([outcome.failure.kind, outcome.failure.retryAfterSeconds], ['circuit_open', 5]);
    skip(5_000);
    assert.ok(upstream.available());
    (servers[1] as FaultServer).fault = 'ok';
    (servers[0] as FaultServer).fault = 'ok';
    assert.equal((await upstream.read(readRequest())).kind, 'answer');
    assert.deepEqual(seen.states, ['circuit open', 'down', 'circuit closed', 'up']);
  });
});
