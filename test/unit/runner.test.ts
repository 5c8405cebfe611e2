import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { REQUIREMENTS } from '../requirements.ts';
import { type Ending, judge } from '../runner/file.ts';
import type { TestRecord } from '../runner/reporter.ts';

const FINE: Ending = { code: 0, signal: null, timedOut: 'no', leftBehind: [] };
const BROKEN: Ending = { ...FINE, code: 1 };

function settled(
  kind: 'passed' | 'failed',
  name: string,
  rest: Partial<TestRecord> = {},
): readonly TestRecord[] {
  const at = { nesting: 0, name };
  return [
    { kind: 'enqueued', ...at },
    { kind: 'running', ...at },
    { kind: 'settled', ...at },
    { kind: 'started', ...at },
    { kind, ...at, what: 'test', durationMs: 1, ...rest } as TestRecord,
  ];
}
const cutOff: readonly TestRecord[] = [
  { kind: 'enqueued', nesting: 0, name: 'slow' },
  { kind: 'running', nesting: 0, name: 'slow' },
];
const titles = (records: readonly TestRecord[], ending: Ending): readonly string[] =>
  judge(records, ending).failures.map(({ title }) => title);

describe('the test runner', () => {
  test('a test is named with its suites', () => {
    const records: TestRecord[] = [
      { kind: 'enqueued', nesting: 0, name: 'R7 limits' },
      { kind: 'enqueued', nesting: 1, name: 'a body' },
      { kind: 'started', nesting: 0, name: 'R7 limits' },
      { kind: 'started', nesting: 1, name: 'a body' },
      { kind: 'passed', nesting: 1, name: 'a body', what: 'test', durationMs: 1 },
      { kind: 'passed', nesting: 0, name: 'R7 limits', what: 'suite', durationMs: 1 },
      { kind: 'ended' },
    ];
    assert.deepEqual(judge(records, FINE).passed, ['R7 limits › a body']);
    assert.deepEqual(judge(records, FINE).failures, []);
  });

  test('a failing test is one failure, and its suite none', () => {
    const records: readonly TestRecord[] = [
      ...settled('failed', 'a', { error: 'Error: no' }),
      ...settled('failed', 'suite'),
      { kind: 'ended' },
    ];
    assert.deepEqual(judge(records, BROKEN).failures, [{ title: 'a', detail: 'Error: no' }]);
  });

  test('a skipped test proves nothing', () => {
    const report = judge(
      [...settled('passed', 'R29 redis', { skip: 'install redis-server' }), { kind: 'ended' }],
      FINE,
    );
    assert.deepEqual(report.passed, []);
    assert.deepEqual(report.skipped, [{ title: 'R29 redis', reason: 'install redis-server' }]);
    assert.deepEqual(report.failures, []);
  });

  test('a file that says nothing has failed', () => {
    assert.deepEqual(titles([], FINE), ['the file ran no test']);
    assert.deepEqual(titles([], BROKEN), ['the file failed before its first test']);
  });

  test('a file that leaves in the middle has failed, however it left', () => {
    const begun = [...settled('passed', 'first'), ...cutOff];
    assert.deepEqual(judge(begun, FINE).failures, [
      { title: 'the file ended before its tests did', detail: 'in: slow' },
    ]);
    assert.deepEqual(titles(begun, { ...FINE, signal: 'SIGSEGV' }), ['the file was ended by SIGSEGV']);
    assert.deepEqual(judge(begun, { ...FINE, signal: 'SIGKILL', timedOut: 'yes' }).failures, [
      { title: 'the file timed out', detail: 'still running: slow' },
    ]);
  });

  test('an error after the last test, and a process left behind, are failures', () => {
    const whole: readonly TestRecord[] = [...settled('passed', 'first'), { kind: 'ended' }];
    assert.deepEqual(titles(whole, BROKEN), ['the file exited with 1 though no test failed']);
    assert.deepEqual(titles(whole, { ...FINE, leftBehind: ['sleep 300'] }), [
      'the file left processes behind',
    ]);
  });
});

describe('requirements', () => {
  test('the rules are R1 to R48, each once and in order', () => {
    assert.deepEqual(
      REQUIREMENTS.map(({ id }) => id),
      Array.from({ length: 48 }, (_, at) => `R${at + 1}`),
    );
  });

  test('31 are due with part 1, and each part adds what its issue names', () => {
    const dueWith = (part: number): string =>
      REQUIREMENTS.flatMap(({ id, due }) => (due === part ? [id] : [])).join(' ');
    assert.equal(REQUIREMENTS.filter(({ due }) => due === 1).length, 31);
    assert.equal(dueWith(2), 'R6 R15 R25 R26 R28 R30 R38 R46');
    assert.equal(dueWith(3), 'R29 R39 R40 R41 R42 R43');
    assert.equal(dueWith(5), 'R44 R47 R48');
  });
});
