import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createRemainders, REMAINDER_LIVES_MS } from '../../src/cache/remainders.ts';
import { createClock } from '../support/cache.ts';

const create = (budgetBytes = 10_000) => {
  const clock = createClock();
  return { clock, kept: createRemainders<string>({ now: clock.now, budgetBytes }) };
};

describe('remainders', () => {
  it('gives back what was put, and the newest of a key', () => {
    const { kept } = create();
    assert.equal(kept.get('a'), undefined);
    assert.ok(kept.put('a', 'one', 100));
    assert.ok(kept.put('a', 'two', 100));
    assert.equal(kept.get('a'), 'two');
    assert.equal(kept.get('b'), undefined);
  });

  it('R18: keeps a remainder for a minute and no longer, however often it is asked for', () => {
    const { clock, kept } = create();
    kept.put('a', 'rest', 100);
    clock.advance(REMAINDER_LIVES_MS - 1);
    assert.equal(kept.get('a'), 'rest');
    clock.advance(1);
    assert.equal(kept.get('a'), undefined);
    assert.equal(kept.sizeBytes, 0);
  });

  it('R30: stays within its budget; the oldest goes first, whoever was asked for last', () => {
    const { kept } = create(10_000);
    for (const key of ['a', 'b', 'c']) kept.put(key, key, 2_500);
    kept.get('a');
    kept.put('d', 'd', 2_500);
    assert.deepEqual(
      ['a', 'b', 'c', 'd'].map((key) => kept.get(key)),
      [undefined, 'b', 'c', 'd'],
    );
    assert.ok(kept.sizeBytes <= 10_000);
  });

  it('R30: what is larger than the budget is not kept, nor is what it was to replace', () => {
    const { kept } = create(10_000);
    kept.put('a', 'old', 100);
    kept.put('b', 'other', 100);
    assert.equal(kept.put('a', 'new', 10_001), false);
    assert.equal(kept.put('c', 'odd', Number.NaN), false);
    assert.equal(kept.get('a'), undefined);
    assert.equal(kept.get('b'), 'other');
  });

  it('frees what is over when something else is put', () => {
    const { clock, kept } = create();
    kept.put('a', 'one', 4_000);
    clock.advance(REMAINDER_LIVES_MS);
    kept.put('b', 'two', 100);
    assert.ok(kept.sizeBytes < 1_000);
  });
});
