import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Ledger } from '../../src/cache/redis/ledger.ts';
import { beat, beginning, parseMessage } from '../../src/cache/redis/messages.ts';
import type { SyncReply } from '../../src/cache/redis/scripts.ts';

/** An hour after the order was made, a minute after its last bump. Microseconds. */
const BORN = 1_764_000_000_000_000;
const LAST = BORN + 3_540_000_000;
const NOW = BORN + 3_600_000_000;

const reply = (rest: Partial<SyncReply> = {}): SyncReply => ({
  last: LAST,
  lastFound: LAST,
  born: BORN,
  now: NOW,
  raised: false,
  ...rest,
});

/** Of a replica that started at 0 and synchronised at 10 ms. */
function synced(): Ledger {
  const ledger = new Ledger(0);
  assert.equal(ledger.synchronised(reply(), 'first', 10), 'nothing');
  return ledger;
}

describe('what a replica knows of the order', () => {
  test('R28: loads from before a lost connection are not stored after it', () => {
    const ledger = synced();
    ledger.loaded(NOW + 1, BORN, 20);
    assert.equal(ledger.mayStore(NOW + 1), true);
    ledger.interrupted();
    assert.equal(ledger.mayStore(NOW + 1), false);
    ledger.loaded(NOW + 2, BORN, 30);
    assert.equal(ledger.mayStore(NOW + 2), true);
  });

  test('R29: loads from before a new order are not stored in it', () => {
    const ledger = synced();
    ledger.loaded(NOW + 1, BORN, 20);
    ledger.loaded(NOW + 9, NOW + 8, 30);
    assert.equal(ledger.mayStore(NOW + 1), false);
    assert.equal(ledger.mayStore(NOW + 9), true);
    assert.equal(ledger.born, NOW + 8);
  });

  test('what Redis knows no more of raises the floor', () => {
    const ledger = synced();
    ledger.loaded(NOW + 5, BORN, 20);
    assert.deepEqual([ledger.floor, ledger.seen, ledger.given], [NOW + 5, LAST, NOW + 5]);
    ledger.bumped(NOW + 7, LAST);
    assert.equal(ledger.floor, NOW + 7);
  });

  test('bumps that come in any order leave no gap once all are there', () => {
    const tokens = Array.from({ length: 20 }, (_, i) => NOW + 10 * (i + 1));
    fc.assert(
      fc.property(fc.shuffledSubarray(tokens, { minLength: 20 }), (order) => {
        const ledger = synced();
        for (const token of order) ledger.bumped(token, token === NOW + 10 ? LAST : token - 10);
        assert.equal(ledger.hasGap, false);
        assert.equal(ledger.caughtUp(NOW + 200), true);
      }),
    );
  });

  test('R28: a missing bump is a gap that later ones do not hide', () => {
    const tokens = Array.from({ length: 20 }, (_, i) => NOW + 10 * (i + 1));
    fc.assert(
      fc.property(fc.shuffledSubarray(tokens, { minLength: 20 }), fc.nat(18), (order, missing) => {
        const ledger = synced();
        const lost = tokens[missing] as number;
        for (const token of order) {
          if (token !== lost) ledger.bumped(token, token === NOW + 10 ? LAST : token - 10);
        }
        assert.equal(ledger.hasGap, true);
        assert.equal(ledger.caughtUp(lost), false);
        assert.equal(ledger.synchronised(reply({ last: NOW + 200 }), 'first', 40), 'behind');
        ledger.skipTo(NOW + 200);
        assert.equal(ledger.hasGap, false);
        assert.equal(ledger.synchronised(reply({ last: NOW + 200 }), 'first', 50), 'nothing');
      }),
    );
  });

  test('a bump that is not known is waited for, unless nothing can be on its way', () => {
    const last = NOW + 100;
    assert.equal(synced().synchronised(reply({ last, lastFound: last }), 'last', 20), 'changed');
    const ledger = synced();
    assert.equal(ledger.synchronised(reply({ last, lastFound: last }), 'first', 20), 'behind');
    assert.equal(ledger.caughtUp(last), false);
    ledger.bumped(last, LAST);
    assert.equal(ledger.caughtUp(last), true);
  });

  test('R29: a server that lost bumps has changed everything', () => {
    const ledger = synced();
    const raised = reply({ last: NOW + 100, lastFound: LAST - 5, raised: true });
    assert.equal(ledger.synchronised(raised, 'first', 20), 'changed');
    assert.equal(ledger.seen, NOW + 100);
  });

  test('R28: a replica that synchronises late is told when something was bumped in its time', () => {
    const bumpedAgo = (ms: number, aliveMs: number, born = BORN) => {
      const last = NOW - ms * 1_000;
      return new Ledger(0).synchronised(reply({ last, lastFound: last, born }), 'first', aliveMs);
    };
    assert.equal(bumpedAgo(60_000, 50), 'nothing');
    assert.equal(bumpedAgo(60_000, 58_000), 'nothing');
    assert.equal(bumpedAgo(60_000, 61_000), 'changed');
    assert.equal(bumpedAgo(20, 50), 'changed');
    // An order without a bump: made as the replicas started, or by a server that lost everything.
    assert.equal(bumpedAgo(20, 50, NOW - 20_000), 'nothing');
    assert.equal(bumpedAgo(20, 60_000, NOW - 20_000), 'changed');
  });

  test("Redis' clock goes on between two looks at it", () => {
    const ledger = synced();
    ledger.loaded(NOW + 50, BORN, 20.5);
    assert.equal(ledger.clockUs(23), NOW + 50 + 2_500);
  });
});

describe('what replicas tell each other', () => {
  test('is read as it was written', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.nat(),
        fc.string(),
        fc.array(fc.string()),
        (origin, sequence, upstream, fields) => {
          const text = `${beginning(origin, sequence, upstream, fields)},"t":"${NOW}","p":"${LAST}"}`;
          const bumped = { upstream, fields, token: NOW, previous: LAST };
          assert.deepEqual(parseMessage(text), { origin, sequence, bumped });
          assert.deepEqual(parseMessage(beat(origin, sequence)), { origin, sequence, bumped: undefined });
        },
      ),
    );
  });

  test('is nothing when no replica says it', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        parseMessage(text);
      }),
    );
    const bumped = (rest: object) =>
      JSON.stringify({ o: 'a', s: 1, u: 'docs', f: ['*'], t: '5', p: '4', ...rest });
    assert.notEqual(parseMessage(bumped({})), undefined);
    for (const rest of [
      { t: 5 },
      { t: '9000000000000000' },
      { p: '-1' },
      { f: '*' },
      { f: [1] },
      { s: 0.5 },
      { u: 1 },
    ])
      assert.equal(parseMessage(bumped(rest)), undefined, JSON.stringify(rest));
  });
});
