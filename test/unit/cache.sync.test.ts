/** Asking what was missed, by a clock that is moved by hand. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createCall } from '../../src/cache/redis/calls.ts';
import { Ledger } from '../../src/cache/redis/ledger.ts';
import { namesOf } from '../../src/cache/redis/names.ts';
import type { SyncReply } from '../../src/cache/redis/scripts.ts';
import { createSync } from '../../src/cache/redis/sync.ts';
import type { Upstream } from '../../src/cache/redis/upstream.ts';
import { turn } from '../support/cache.ts';

const BORN = 1_764_000_000_000_000;
const LAST = BORN + 5_000_000;
const NOW = BORN + 3_600_000_000;
/** As `sync.ts` has it. */
const LOOK_AGAIN_MS = 250;
const SYNC_MS = 1_000;

/** A Redis whose last bump is what the test says, and one upstream that has synchronised with it. */
async function scene(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let last = LAST;
  let raised = false;
  let epoch = 1;
  let answer: 'at once' | 'never' | 'refused' = 'at once';
  const asked: number[] = [];
  const told: string[] = [];
  const upstream: Upstream = {
    name: 'docs',
    names: namesOf('headgate:', 'docs'),
    ledger: new Ledger(0),
    syncedIn: -1,
    writingCount: 0,
    unwrittenCount: 0,
  };
  const observer = {
    redisError: (_: string, reason: string) => void told.push(`error ${reason}`),
    redisOperation: () => undefined,
    busResync: (reason: string) => void told.push(`resync ${reason}`),
  };
  const sync = createSync({
    scripts: {
      async sync(_names, seen): Promise<SyncReply> {
        asked.push(seen);
        if (answer === 'never') return new Promise(() => undefined);
        if (answer === 'refused') throw Object.assign(new Error('NOPERM'), { name: 'ReplyError' });
        return { last, lastFound: last, born: BORN, now: NOW, raised };
      },
    },
    call: createCall(
      observer,
      () => 0,
      () => void told.push('silence'),
    ),
    epoch: () => epoch,
    now: () => 60_000,
    observer,
    onMissed: ({ name }) => void told.push(`missed ${name}`),
  });
  const poll = () => sync.run([upstream], 'poll', 'first');
  assert.equal(await sync.run([upstream], 'connect', 'first'), 'done');
  told.length = 0;
  return {
    sync,
    upstream,
    asked,
    told,
    poll,
    /** Redis has these bumps after `LAST`. */
    bumpedTo: (token: number, how: 'bumped' | 'raised' = 'bumped') => {
      last = token;
      raised = how === 'raised';
    },
    answers: (how: typeof answer) => {
      answer = how;
    },
    reconnected: () => void epoch++,
    step: async (ms: number): Promise<void> => {
      t.mock.timers.tick(ms);
      await turn();
    },
  };
}

describe('R28: asking what was missed', () => {
  test('what is known already is nothing', async (t) => {
    const { poll, told, step, upstream } = await scene(t);
    assert.equal(await poll(), 'done');
    await step(10 * LOOK_AGAIN_MS);
    assert.deepEqual(told, []);
    assert.equal(upstream.syncedIn, 1);
  });

  test('a bump that no message told of is missed: a quarter of a second later, no sooner, and once', async (t) => {
    const { poll, told, step, bumpedTo, upstream } = await scene(t);
    bumpedTo(LAST + 10);
    assert.equal(await poll(), 'done');
    await step(LOOK_AGAIN_MS - 1);
    assert.deepEqual(told, []);
    await step(1);
    assert.deepEqual(told, ['resync poll', 'missed docs']);
    assert.equal(upstream.ledger.caughtUp(LAST + 10), true);
    await poll();
    await step(LOOK_AGAIN_MS);
    assert.equal(told.length, 2);
  });

  test('a message that comes meanwhile leaves nothing missed', async (t) => {
    const { poll, told, step, bumpedTo, upstream } = await scene(t);
    bumpedTo(LAST + 10);
    await poll();
    await step(LOOK_AGAIN_MS - 1);
    upstream.ledger.bumped(LAST + 10, LAST);
    await step(1);
    assert.deepEqual(told, []);
  });

  test('polls while it is looked again add no looks: one for each upstream', async (t) => {
    const { poll, told, step, bumpedTo } = await scene(t);
    bumpedTo(LAST + 10);
    await poll();
    await step(100);
    await poll();
    await poll();
    await step(LOOK_AGAIN_MS);
    await step(LOOK_AGAIN_MS);
    assert.deepEqual(told, ['resync poll', 'missed docs']);
  });

  test('a gap that a later message leaves is looked after, and what is behind it too', async (t) => {
    const { sync, told, step, upstream } = await scene(t);
    upstream.ledger.bumped(LAST + 20, LAST + 10);
    sync.watchGap(upstream);
    await step(LOOK_AGAIN_MS - 1);
    // Another gap, while the first is looked after.
    upstream.ledger.bumped(LAST + 40, LAST + 30);
    sync.watchGap(upstream);
    await step(1);
    assert.deepEqual(told, ['resync gap', 'missed docs']);
    await step(LOOK_AGAIN_MS);
    assert.deepEqual(told, ['resync gap', 'missed docs', 'resync gap', 'missed docs']);
    assert.equal(upstream.ledger.hasGap, false);
    await step(LOOK_AGAIN_MS);
    assert.equal(told.length, 4);
  });

  test('who could not listen has missed it at once', async (t) => {
    const { sync, told, bumpedTo, upstream } = await scene(t);
    bumpedTo(LAST + 10);
    assert.equal(await sync.run([upstream], 'connect', 'last'), 'done');
    assert.deepEqual(told, ['resync connect', 'missed docs']);
  });

  test('R29: a server that has lost bumps has ended everything, at once', async (t) => {
    const { poll, told, bumpedTo } = await scene(t);
    bumpedTo(LAST + 10, 'raised');
    assert.equal(await poll(), 'done');
    assert.deepEqual(told, ['resync poll', 'missed docs']);
  });

  test('R29: silence and refusals are no answer: nothing is taken for missed, and the next poll asks again', async (t) => {
    const { poll, told, asked, step, answers, bumpedTo } = await scene(t);
    bumpedTo(LAST + 10);
    answers('never');
    const silent = poll();
    await step(SYNC_MS - 1);
    assert.deepEqual(told, []);
    await step(1);
    assert.equal(await silent, 'failed');
    assert.deepEqual(told, ['error timeout', 'silence']);
    answers('refused');
    assert.equal(await poll(), 'failed');
    assert.deepEqual(told, ['error timeout', 'silence', 'error reply']);
    answers('at once');
    assert.equal(await poll(), 'done');
    await step(LOOK_AGAIN_MS);
    assert.deepEqual(told.slice(3), ['resync poll', 'missed docs']);
    assert.deepEqual(asked, [0, LAST, LAST, LAST]);
  });

  test('R29: an answer from before a lost connection does not count after it', async (t) => {
    const { poll, told, step, upstream, bumpedTo, reconnected } = await scene(t);
    bumpedTo(LAST + 10);
    const asking = poll();
    reconnected();
    assert.equal(await asking, 'failed');
    await step(LOOK_AGAIN_MS);
    assert.deepEqual(told, []);
    assert.equal(upstream.syncedIn, 1);
    assert.equal(upstream.ledger.caughtUp(LAST + 10), false);
  });

  test('after its end it tells nothing', async (t) => {
    const { sync, poll, told, step, bumpedTo } = await scene(t);
    bumpedTo(LAST + 10);
    await poll();
    sync.close();
    await step(10 * LOOK_AGAIN_MS);
    assert.deepEqual(told, []);
  });
});
