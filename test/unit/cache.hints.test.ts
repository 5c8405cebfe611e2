import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ageMs, keptMsUnder, leftMs, sanitise, scopeUnder, ttlUnder } from '../../src/cache/hints.ts';
import type { CachePolicy } from '../../src/cache/types.ts';
import { POLICY } from '../support/cache.ts';

const ttlOf = (ttlMs: number | undefined, policy: Partial<CachePolicy> = {}): number =>
  ttlUnder(
    { ...POLICY, ...policy },
    { ttlMs: sanitise({ ttlMs, cacheScope: 'public' }).ttlMs, receivedAt: 0 },
    'public',
  );

describe('hints', () => {
  const day = POLICY.ttlMaxMs;
  const table: readonly (readonly [string, number | undefined, number])[] = [
    ['a whole number', 60_000, 60_000],
    ['one', 1, 1],
    ['zero', 0, 0],
    ['minus zero', -0, 0],
    ['negative', -1, 0],
    ['very negative', -1e300, 0],
    ['fractional', 1.5, 0],
    ['just under one', 0.999, 0],
    ['not a number: a string, a boolean, null', Number.NaN, 0],
    ['1e400', Number.POSITIVE_INFINITY, 0],
    ['-1e400', Number.NEGATIVE_INFINITY, 0],
    ['over 2^31', 2 ** 31 + 1, day],
    ['over 2^53', 2 ** 53 + 2, day],
    ['1e300', 1e300, day],
    ['at the maximum', day, day],
    ['over the maximum', day + 1, day],
    ['absent', undefined, 0],
  ];
  for (const [name, ttlMs, expected] of table) {
    it(`R26 R21: a ttlMs that is ${name} counts as ${expected}`, () => {
      assert.ok(Object.is(ttlOf(ttlMs), expected));
    });
  }

  it('R26: the default counts only where no hint came, and within the maximum', () => {
    assert.equal(ttlOf(undefined, { ttlDefaultMs: 5_000 }), 5_000);
    assert.equal(ttlOf(undefined, { ttlDefaultMs: 5_000, ttlMaxMs: 3_000 }), 3_000);
    for (const ttlMs of [0, -1, 1.5, Number.NaN]) assert.equal(ttlOf(ttlMs, { ttlDefaultMs: 5_000 }), 0);
  });

  it('R26: any number gives a whole number between 0 and the maximum', () => {
    fc.assert(
      fc.property(fc.double(), fc.nat(), (ttlMs, max) => {
        const ttl = ttlOf(ttlMs, { ttlMaxMs: max });
        assert.ok(Number.isInteger(ttl) && ttl >= 0 && ttl <= max && !Object.is(ttl, -0));
      }),
    );
  });

  it('R21: a scope but exactly public is private', () => {
    for (const cacheScope of [undefined, '', 'Public', 'PUBLIC', ' public', 'public ', 'private', 'shared']) {
      assert.equal(sanitise({ ttlMs: 1, cacheScope }).scope, 'private');
    }
    assert.equal(sanitise({ ttlMs: 1, cacheScope: 'public' }).scope, 'public');
  });

  it('the operator may narrow or widen the scope', () => {
    assert.equal(scopeUnder(POLICY, 'public'), 'public');
    assert.equal(scopeUnder(POLICY, 'private'), 'private');
    assert.equal(scopeUnder({ ...POLICY, scope: 'private' }, 'public'), 'private');
    assert.equal(scopeUnder({ ...POLICY, scope: 'public' }, 'private'), 'public');
  });

  it('what has no ttl is kept for no time, whatever staleIfError says', () => {
    assert.equal(keptMsUnder(POLICY, { ttlMs: 0, receivedAt: 0 }, 'public'), 0);
    assert.equal(keptMsUnder(POLICY, { ttlMs: 1_000, receivedAt: 0 }, 'public'), 61_000);
    assert.equal(
      keptMsUnder({ ...POLICY, staleIfErrorMs: 0 }, { ttlMs: 1_000, receivedAt: 0 }, 'public'),
      1_000,
    );
  });

  it('a limit on private answers binds them fresh and stale, and leaves public ones alone', () => {
    const answer = { ttlMs: 600_000, receivedAt: 100 };
    const ttl: CachePolicy = { ...POLICY, privateLimit: { kind: 'ttl', maxMs: 60_000 } };
    const until: CachePolicy = { ...POLICY, privateLimit: { kind: 'until', at: 5_100 } };
    const over: CachePolicy = { ...POLICY, privateLimit: { kind: 'until', at: 50 } };
    assert.equal(ttlUnder(ttl, answer, 'private'), 60_000);
    assert.equal(keptMsUnder(ttl, answer, 'private'), 60_000);
    assert.equal(ttlUnder(ttl, answer, 'public'), 600_000);
    assert.equal(ttlUnder(until, answer, 'private'), 5_000);
    assert.equal(keptMsUnder(until, answer, 'private'), 5_000);
    assert.equal(ttlUnder(over, answer, 'private'), 0);
    assert.equal(keptMsUnder(over, answer, 'private'), 0);
  });

  it('R27: what is left is whole, above 0 exactly while fresh, and never grows', () => {
    const time = fc.double({ min: 0, max: 1e7, noNaN: true });
    fc.assert(
      fc.property(fc.nat(1_000_000), time, time, time, (ttlMs, receivedAt, one, other) => {
        const earlier = receivedAt + Math.min(one, other);
        const later = receivedAt + Math.max(one, other);
        const left = leftMs(ttlMs, receivedAt, earlier);
        assert.ok(Number.isInteger(left) && left >= 0 && left <= ttlMs);
        assert.equal(left > 0, earlier - receivedAt < ttlMs);
        assert.ok(leftMs(ttlMs, receivedAt, later) <= left);
      }),
    );
  });

  it('R27: a clock that stands before the receipt gives no more than the ttl', () => {
    assert.equal(leftMs(1_000, 500, 200), 1_000);
    assert.equal(ageMs(500, 200), 0);
  });
});
