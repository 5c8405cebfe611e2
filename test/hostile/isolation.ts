/**
 * Isolation, model-based: callers with every kind of credential, alone and mixed, ask for everything cacheable
 * through the real pipeline, while upstreams answer late, in any order, with changing scopes, or fail.
 *
 * Every answer's bytes name the question that made them (`<<7>>`), and the model knows of each question for whom it
 * was asked, what came of it, and when. The caller's mark travels in `clientInfo`, which is part of no key and tells
 * nobody apart: what a caller is handed shows whom it was made for.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RUN } from '../fuzz/isolation-moves.ts';
import { seen } from '../fuzz/isolation-oracle.ts';
import { World } from '../fuzz/isolation-world.ts';

const RUNS = Number(process.env.FC_RUNS ?? 60);

describe('isolation', () => {
  test('R22 R23 R24 R27: nobody is handed what was made for another, whatever is asked, answered, lost and late', async (t) => {
    await fc.assert(
      fc.asyncProperty(RUN, async ({ moves, ...start }) => {
        const world = new World(start);
        for (const move of moves) await world.move(move);
        await world.drain();
      }),
      { numRuns: RUNS, includeErrorInReport: true, interruptAfterTimeLimit: 25_000 },
    );
    t.diagnostic(JSON.stringify(seen));
    for (const [what, count] of Object.entries(seen)) assert.ok(count > 0, `the model never saw: ${what}`);
  });
});
