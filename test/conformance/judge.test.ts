import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Check, judge, type Results, readExpected } from './judge.ts';

const check = (id: string, status = 'SUCCESS'): Check => ({ id, name: id, status });
const results = (scenarios: Record<string, Check[]>): Results => new Map(Object.entries(scenarios));
const ACK = 'sep-2575-server-sends-subscription-ack';
const expected = [{ run: 'r', scenario: 's', check: ACK, reason: 'part 3' }];
const baseline = results({ s: [check(ACK), check('a'), check('a')], t: [check('b')] });

test('a run like the baseline passes every scenario', () => {
  const { passed, failed, losses } = judge(baseline, baseline, []);
  assert.deepEqual([passed, failed, losses], [['s', 't'], [], []]);
});

test('a failure, a skip, a lost repetition and a scenario that did not run are losses', () => {
  const run = (scenarios: Record<string, Check[]>) =>
    judge(baseline, results(scenarios), []).losses.map(({ scenario, check: id, status }) => [
      scenario,
      id,
      status,
    ]);
  const t = [check('b')];
  assert.deepEqual(run({ s: [check(ACK), check('a'), check('a', 'FAILURE')], t }), [['s', 'a', 'FAILURE']]);
  assert.deepEqual(run({ s: [check(ACK, 'SKIPPED'), check('a'), check('a')], t }), [['s', ACK, 'SKIPPED']]);
  assert.deepEqual(run({ s: [check(ACK), check('a')], t }), [['s', 'a', 'MISSING']]);
  assert.deepEqual(run({ s: [check(ACK), check('a'), check('a')] }), [['t', 'not-run', 'MISSING']]);
});

test('an expected failure does not fail its scenario', () => {
  const run = results({ s: [check(ACK, 'SKIPPED'), check('a'), check('a')], t: [check('b')] });
  const { failed, stale, losses } = judge(baseline, run, expected);
  assert.deepEqual([failed, stale, losses[0]?.reason], [[], [], 'part 3']);
});

test('an expected failure that passes fails its scenario', () => {
  const { failed, stale } = judge(baseline, baseline, expected);
  assert.deepEqual([failed, stale], [['s'], expected]);
});

test('only runs in which revisions meet may be expected to lose something, and only with a reason', () => {
  const entry = { run: 'r', scenario: 's', check: ACK, reason: 'x' };
  assert.deepEqual(readExpected(JSON.stringify([entry]), ['r']), [entry]);
  assert.throws(() => readExpected(JSON.stringify([entry]), ['other']), /nothing may be lost in r/);
  assert.throws(() => readExpected(JSON.stringify([{ ...entry, reason: undefined }]), ['r']), /reason/);
});
