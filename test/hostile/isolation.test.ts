/**
 * Isolation, model-based: callers with every kind of credential, alone and mixed, ask for everything cacheable
 * through the real pipeline, while upstreams answer late, in any order, with changing scopes, or fail.
 *
 * Every answer's bytes name the question that made them (`<<7>>`), and the model knows of each question for whom it
 * was asked, what came of it, and when. The caller's mark travels in `clientInfo`, which is part of no key and tells
 * nobody apart: what a caller is handed shows whom it was made for.
 *
 * `FUZZ_SEED` gives it the runs of another time; `npm run fuzz` makes more of them.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { isolate } from '../fuzz/isolation.ts';
import { seen } from '../fuzz/isolation-oracle.ts';

const SEED = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 1e9));
/** As many as there are, or as many as fit in this time. */
const RUN_COUNT = 60;
const FOR_MS = 20_000;

describe('isolation', () => {
  test('R22 R23 R24 R27: nobody is handed what was made for another, whatever is asked, answered, lost and late', async (t) => {
    const details = await isolate({ seed: SEED, runCount: RUN_COUNT, forMs: FOR_MS });
    t.diagnostic(`seed ${SEED}, ${details.numRuns} runs: ${JSON.stringify(seen)}`);
    assert.ok(!details.failed, fc.defaultReportMessage(details));
    for (const [what, count] of Object.entries(seen)) assert.ok(count > 0, `the model never saw: ${what}`);
  });
});
