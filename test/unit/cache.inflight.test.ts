import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Boarding, createInflight, type Landing, PATIENCE_MS } from '../../src/cache/inflight.ts';
import type { Signal } from '../../src/protocol/signal.ts';
import { createClock, turn } from '../support/cache.ts';

interface Run {
  readonly order: number;
  readonly signal: Signal;
  readonly land: (landing: Landing<string>) => void;
  readonly crash: (error: Error) => void;
}

function create() {
  const clock = createClock();
  let order = 0;
  const inflight = createInflight({ nextOrder: () => ++order, schedule: clock.schedule });
  const runs: Run[] = [];
  const settled = new Map<string, string>();

  /** Boards as `who` of `context`; how it ends is written down under `who`. */
  function board(who: string, { context = 'alice', floor = 0, key = 'k' } = {}): AbortController {
    const controller = new AbortController();
    const run = (signal: Signal, at: number): Promise<Landing<string>> =>
      new Promise((land, crash) => runs.push({ order: at, signal, land, crash }));
    inflight.board(key, { context, signal: controller.signal, floor }, run).then(
      (boarding: Boarding<string>) =>
        settled.set(who, boarding.kind === 'landed' ? `${boarding.value} by ${boarding.by}` : 'refused'),
      (reason: unknown) => settled.set(who, `rejected: ${reason instanceof Error ? reason.message : reason}`),
    );
    return controller;
  }
  const nth = (n: number): Run => {
    const run = runs[n];
    if (run === undefined) throw new Error(`only ${runs.length} runs`);
    return run;
  };
  const ended = async () => {
    await turn();
    return Object.fromEntries(settled);
  };
  return { clock, inflight, runs, nth, board, ended, nextOrder: () => ++order };
}

describe('single flight', () => {
  it('R23: one run for all who ask while it is under way; each gets what its audience allows', async () => {
    const expected = {
      leader: { leader: 'v by self', mate: 'refused', other: 'refused' },
      context: { leader: 'v by self', mate: 'v by another', other: 'refused' },
      everyone: { leader: 'v by self', mate: 'v by another', other: 'v by another' },
    };
    for (const audience of ['leader', 'context', 'everyone'] as const) {
      const { board, nth, runs, ended, inflight } = create();
      board('leader');
      board('mate');
      board('other', { context: 'bob' });
      assert.deepEqual(await ended(), {});
      nth(0).land({ audience, value: 'v' });
      assert.deepEqual(await ended(), expected[audience]);
      assert.equal(runs.length, 1);
      assert.equal(inflight.flightCount, 0);
    }
  });

  it('another key is another flight, and so is what comes after a landing', async () => {
    const { board, nth, runs } = create();
    board('a');
    board('b', { key: 'other' });
    nth(0).land({ audience: 'everyone', value: 'v' });
    await turn();
    board('c');
    assert.equal(runs.length, 3);
  });

  it('R28: who comes after an invalidation does not join; who came before keeps waiting', async () => {
    const { board, nth, runs, ended, nextOrder } = create();
    board('before');
    const invalidated = nextOrder();
    board('after', { floor: invalidated });
    board('after too', { floor: invalidated });
    assert.equal(runs.length, 2);
    nth(1).land({ audience: 'context', value: 'new' });
    assert.deepEqual(await ended(), { after: 'new by self', 'after too': 'new by another' });
    nth(0).land({ audience: 'context', value: 'old' });
    assert.deepEqual((await ended()).before, 'old by self');
  });

  it('R28: the landing of an overtaken flight leaves the newer one joinable', async () => {
    const { board, nth, runs, nextOrder, inflight } = create();
    board('before');
    const floor = nextOrder();
    board('after', { floor });
    nth(0).land({ audience: 'context', value: 'old' });
    await turn();
    assert.equal(inflight.flightCount, 1);
    board('later', { floor });
    assert.equal(runs.length, 2);
  });

  it('R23: a waiter who leaves is told at once and costs nobody else anything', async () => {
    const { board, nth, ended } = create();
    board('leader');
    const mate = board('mate');
    board('third');
    mate.abort(new Error('gone'));
    assert.deepEqual(await ended(), { mate: 'rejected: gone' });
    assert.equal(nth(0).signal.aborted, false);
    nth(0).land({ audience: 'context', value: 'v' });
    assert.deepEqual(await ended(), { mate: 'rejected: gone', leader: 'v by self', third: 'v by another' });
  });

  it('R23: a leader who leaves is told at once; the others still get what comes', async () => {
    for (const audience of ['leader', 'context'] as const) {
      const { board, nth, ended } = create();
      const leader = board('leader');
      board('mate');
      leader.abort(new Error('gone'));
      assert.deepEqual(await ended(), { leader: 'rejected: gone' });
      assert.equal(nth(0).signal.aborted, false);
      nth(0).land({ audience, value: 'v' });
      assert.equal((await ended()).mate, audience === 'leader' ? 'refused' : 'v by another');
    }
  });

  it('R23 R35: the run is aborted when the last has left, with its reason, and nobody joins it any more', async () => {
    const { board, nth, runs, ended, inflight } = create();
    const leader = board('leader');
    const mate = board('mate');
    leader.abort(new Error('first'));
    assert.equal(nth(0).signal.aborted, false);
    mate.abort(new Error('last'));
    assert.equal(nth(0).signal.aborted, true);
    assert.equal((nth(0).signal.reason as Error).message, 'last');
    assert.equal(inflight.flightCount, 0);
    board('next');
    assert.equal(runs.length, 2);
    nth(0).crash(new Error('aborted'));
    nth(1).land({ audience: 'leader', value: 'v' });
    assert.equal((await ended()).next, 'v by self');
  });

  it('who has left before it came starts nothing', async () => {
    const { inflight, runs } = create();
    const passenger = { context: 'a', signal: AbortSignal.abort(new Error('gone')), floor: 0 };
    await assert.rejects(
      inflight.board('k', passenger, async () => assert.fail()),
      /gone/,
    );
    assert.equal(runs.length, 0);
    assert.equal(inflight.flightCount, 0);
  });

  it('R23: an unexpected rejection is the leader’s alone', async () => {
    const { board, nth, ended } = create();
    board('leader');
    board('mate');
    board('other', { context: 'bob' });
    nth(0).crash(new Error('bug'));
    assert.deepEqual(await ended(), { leader: 'rejected: bug', mate: 'refused', other: 'refused' });
  });

  it('R23: a slow flight keeps other contexts waiting for so long and no longer', async () => {
    const { board, nth, runs, ended, clock } = create();
    board('leader');
    board('mate');
    clock.advance(PATIENCE_MS);
    board('other', { context: 'bob' });
    clock.advance(PATIENCE_MS - 1);
    assert.deepEqual(await ended(), {});
    clock.advance(1);
    assert.deepEqual(await ended(), { other: 'refused' });
    board('other again', { context: 'bob' });
    assert.equal(runs.length, 2);
    nth(0).land({ audience: 'everyone', value: 'slow' });
    nth(1).land({ audience: 'everyone', value: 'quick' });
    assert.deepEqual(await ended(), {
      other: 'refused',
      leader: 'slow by self',
      mate: 'slow by another',
      'other again': 'quick by self',
    });
  });

  it('R35: a slow flight whose own context has left is cancelled when the others lose patience', async () => {
    const { board, nth, ended, clock, inflight } = create();
    const leader = board('leader');
    board('other', { context: 'bob' });
    leader.abort(new Error('gone'));
    assert.equal(nth(0).signal.aborted, false);
    clock.advance(PATIENCE_MS);
    assert.equal(nth(0).signal.aborted, true);
    assert.equal(inflight.flightCount, 0);
    assert.equal((await ended()).other, 'refused');
  });

  it('R48: no timer is left behind', async () => {
    const { board, nth, clock } = create();
    const leader = board('leader');
    assert.equal(clock.timerCount(), 0);
    const other = board('other', { context: 'bob' });
    assert.equal(clock.timerCount(), 1);
    leader.abort();
    other.abort();
    assert.equal(clock.timerCount(), 0);
    board('leader');
    board('other', { context: 'bob' });
    nth(1).land({ audience: 'everyone', value: 'v' });
    await turn();
    assert.equal(clock.timerCount(), 0);
  });
});
