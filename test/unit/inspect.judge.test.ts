import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Facts, HintFacts, ListFacts, ReadFacts, Trouble } from '../../src/inspect/facts.ts';
import { FINDINGS, type FindingId, finding } from '../../src/inspect/findings.ts';
import { judge } from '../../src/inspect/judge.ts';
import { countsOf, jsonReport, keptWords, textReport } from '../../src/inspect/report.ts';
import { cleaned, durationWords, printable, sizeWords } from '../../src/inspect/words.ts';

const HINTS: HintFacts = {
  ttl: { kind: 'given', ms: 60_000 },
  scope: 'public',
  kept: { ttlMs: 60_000, scope: 'public' },
};
const NONE = { count: 0, first: [] };
const LIST: Extract<ListFacts, { kind: 'walked' }> = {
  ...{ method: 'tools/list', kind: 'walked', pages: 1, items: 1, bytes: 10, largestPageBytes: 10 },
  ...{ firstMs: 1, medianMs: 1, totalMs: 1, hints: HINTS, hintsDiffer: false, end: 'end' },
  ...{ dropped: NONE, duplicates: NONE, unowning: NONE, unmatched: NONE },
};
const READ: Extract<ReadFacts, { kind: 'read' }> = {
  ...{ uri: 'a:b', kind: 'read', ms: 1, bytes: 10, hints: HINTS, contents: 'own-uri' },
};
const MET: Extract<Facts['hello'], { kind: 'met' }> = {
  ...{ kind: 'met', era: 'modern', revision: '2026-07-28', versions: ['2026-07-28'], media: 'json' },
  ...{ serverInfo: { name: 'good', version: '1' }, capabilities: { tools: ['listChanged'] } },
  ...{ instructionsChars: 0, hints: HINTS, firstMs: 2, medianMs: 1 },
};
const GOOD: Facts = {
  target: { name: 'docs', address: 'http://docs/mcp', over: 'http', credential: 'none', subscribe: true },
  hello: MET,
  lists: [LIST],
  reads: [READ],
  checks: [{ name: 'method-header', outcome: 'refused', came: 'error -32020' }],
  listen: { kind: 'acknowledged', ms: 3, asked: ['tools list'], honoured: ['tools list'] },
};

const trouble = (kind: Trouble['kind'], rest: Partial<Trouble> = {}): Trouble => ({
  kind,
  words: 'w',
  ...rest,
});
const unmet = (kind: Trouble['kind'], rest: Partial<Trouble> = {}): Partial<Facts> => ({
  hello: { kind: 'unmet', trouble: trouble(kind, rest), excerpt: undefined },
});
const hinted = (rest: Partial<HintFacts>): Partial<Facts> => ({
  reads: [{ ...READ, hints: { ...HINTS, ...rest } }],
});
const listed = (rest: Partial<typeof LIST>): Partial<Facts> => ({ lists: [{ ...LIST, ...rest }] });
const some = { count: 1, first: ['x'] };

describe('judge', () => {
  test('finds nothing where nothing is wrong', () => {
    assert.deepEqual(judge(GOOD), []);
  });

  const cases: readonly (readonly [string, Partial<Facts>, readonly FindingId[]])[] = [
    ['nobody there', unmet('connect'), ['unreachable']],
    ['too slow', unmet('timeout'), ['unreachable']],
    ['a server error', unmet('http_5xx', { status: 500 }), ['unreachable']],
    ['bad TLS', unmet('tls'), ['bad-certificate']],
    ['401', unmet('refused', { status: 401 }), ['unauthorized']],
    ['an error under 403', unmet('error', { status: 403 }), ['unauthorized']],
    ['404', unmet('refused', { status: 404 }), ['not-mcp']],
    ['a web page', unmet('broken'), ['not-mcp']],
    ['an older server', { hello: { ...MET, era: 'older', revision: '2025-06-18' } }, ['older-revision']],
    ['other revisions', { hello: { ...MET, versions: ['2027-01-01'] } }, ['no-common-revision']],
    ['2 s for an answer', { hello: { ...MET, medianMs: 2_000 } }, []],
    ['more than 2 s', { hello: { ...MET, medianMs: 2_001 } }, ['slow-answers']],
    ['no ttl', hinted({ ttl: { kind: 'absent' } }), ['ttl-missing']],
    ['a wrong ttl', hinted({ ttl: { kind: 'wrong' } }), ['ttl-wrong']],
    ['ttl 0', hinted({ ttl: { kind: 'given', ms: 0 } }), ['ttl-zero']],
    ['a day', hinted({ ttl: { kind: 'given', ms: 86_400_000 } }), []],
    ['more than a day', hinted({ ttl: { kind: 'given', ms: 86_400_001 } }), ['ttl-long']],
    ['no scope', hinted({ scope: 'absent' }), ['scope-missing']],
    ['a wrong scope', hinted({ scope: 'wrong' }), ['scope-wrong']],
    [
      'public with a credential',
      { target: { ...GOOD.target, credential: 'bearer' } },
      ['public-with-credential'],
    ],
    ['5 s of walking', listed({ totalMs: 5_000 }), []],
    ['more than 5 s', listed({ totalMs: 5_001 }), ['list-slow']],
    ['other hints', listed({ hintsDiffer: true }), ['hints-differ']],
    ['the same cursor', listed({ end: 'same-cursor' }), ['cursor-repeats']],
    ['a cursor again', listed({ end: 'repeated-cursor' }), ['cursor-repeats']],
    ['a long cursor', listed({ end: 'long-cursor' }), ['cursor-wrong']],
    ['no string', listed({ end: 'odd-cursor' }), ['cursor-wrong']],
    ['a refused cursor', listed({ end: 'refused-cursor' }), ['cursor-refused']],
    ['many pages', listed({ end: 'pages' }), ['list-unfinished']],
    ['many items', listed({ end: 'items' }), ['list-unfinished']],
    ['many bytes', listed({ end: 'bytes' }), ['list-unfinished']],
    ['bad items', listed({ dropped: some }), ['items-dropped']],
    ['twice', listed({ duplicates: some }), ['duplicate-ids']],
    ['no prefix', listed({ unowning: some }), ['template-owns-nothing']],
    ['fits nothing', listed({ unmatched: some }), ['template-unmatched']],
    [
      'no such list',
      { lists: [{ method: 'm', kind: 'absent', trouble: trouble('error') }] },
      ['list-absent'],
    ],
    [
      'no list',
      { lists: [{ method: 'm', kind: 'failed', trouble: trouble('broken'), pages: 0 }] },
      ['list-failed'],
    ],
    ['too large', { reads: [{ uri: 'a:b', kind: 'large', aboveBytes: 9 }] }, ['read-large']],
    ['a question', { reads: [{ uri: 'a:b', kind: 'asks' }] }, ['read-asks']],
    ['an error', { reads: [{ uri: 'a:b', kind: 'failed', trouble: trouble('error') }] }, ['read-failed']],
    ['other contents', { reads: [{ ...READ, contents: 'other-uri' }] }, ['read-other-uri']],
    ['no contents', { reads: [{ ...READ, contents: 'none' }] }, ['read-empty']],
    ['wrong contents', { reads: [{ ...READ, contents: 'invalid' }] }, ['read-invalid']],
    [
      'taken',
      { checks: [{ name: 'name-header', outcome: 'accepted', came: '' }] },
      ['name-header-unchecked'],
    ],
    [
      'otherwise',
      { checks: [{ name: 'name-header', outcome: 'refused-otherwise', came: '' }] },
      ['refused-otherwise'],
    ],
    [
      'unanswered',
      { checks: [{ name: 'name-header', outcome: 'unanswered', came: '' }] },
      ['check-unanswered'],
    ],
    ['nothing announced', { listen: { kind: 'not-announced' } }, ['no-notifications']],
    ['refused', { listen: { kind: 'refused', asked: [], words: '' } }, ['listen-refused']],
    ['not acknowledged', { listen: { kind: 'failed', asked: [], words: '' } }, ['listen-failed']],
    [
      'partly',
      { listen: { kind: 'acknowledged', ms: 1, asked: ['a', 'b'], honoured: ['a'] } },
      ['listen-partly'],
    ],
    ['not listened to', { listen: undefined }, []],
  ];
  for (const [name, change, ids] of cases)
    test(`${name}: ${ids.join(', ') || 'nothing'}`, () => {
      assert.deepEqual(
        judge({ ...GOOD, ...change }).map(({ id }) => id),
        ids,
      );
    });

  test('says once what is true of many, and the worst first', () => {
    const bad: HintFacts = { ...HINTS, ttl: { kind: 'absent' } };
    const facts = { ...GOOD, ...listed({ hints: bad, unmatched: some }), reads: [{ ...READ, hints: bad }] };
    const findings = judge(facts);
    assert.deepEqual(
      findings.map(({ id, where }) => [id, where]),
      [
        ['ttl-missing', ['tools/list', 'a:b']],
        ['template-unmatched', ['tools/list']],
      ],
    );
    assert.deepEqual(countsOf(findings), { violations: 1, warnings: 0, notes: 1 });
  });
});

describe('the report', () => {
  test('of a good server fits on a screen', () => {
    const text = textReport(GOOD, judge(GOOD), (line) => line);
    const lines = text.split('\n');
    assert.ok(lines.length < 24, text);
    assert.ok(
      lines.every((line) => line.length <= 100),
      text,
    );
    assert.match(text, /tools +1 +1 +10 B +1 ms +60 s, for everybody/);
  });

  test('says of every finding what it is, what the gateway does and what to do', () => {
    for (const id of Object.keys(FINDINGS) as FindingId[]) {
      const one = finding(id, ['somewhere'], 'this came');
      const text = textReport(GOOD, [one], (line) => line).replaceAll(/\s+/g, ' ');
      assert.ok(text.includes(`${one.severity} ${id}: ${one.says} (somewhere)`), text);
      assert.ok(text.includes(`gateway: ${one.gateway}`), text);
      assert.equal(text.includes(`to do: ${one.remedy}`), !one.remedy.startsWith('nothing'), text);
    }
  });

  test('for machines holds the facts, the findings and their counts', () => {
    const { version, counts, hello } = JSON.parse(jsonReport(GOOD, [])) as Record<string, unknown>;
    assert.deepEqual([version, counts, hello], [1, { violations: 0, warnings: 0, notes: 0 }, MET]);
  });

  test('says for how long and for whom an answer is kept, or why not', () => {
    const kept = (rest: Partial<HintFacts>): string => keptWords({ ...HINTS, ...rest });
    const not = { ttlMs: 0, scope: 'public' } as const;
    assert.equal(kept({}), '60 s, for everybody');
    assert.equal(kept({ kept: { ttlMs: 5_000, scope: 'private' } }), '5 s, for each caller apart');
    assert.equal(kept({ ttl: { kind: 'absent' } }), '60 s, for everybody, by your configuration');
    assert.equal(kept({ ttl: { kind: 'absent' }, kept: not }), 'no: without ttlMs');
    assert.equal(kept({ ttl: { kind: 'wrong' }, kept: not }), 'no: ttlMs is wrong');
    assert.equal(kept({ ttl: { kind: 'given', ms: 0 }, kept: not }), 'no: ttlMs is 0');
  });
});

describe('words', () => {
  test('what a server says is on one line, bounded, and without what a terminal obeys', () => {
    assert.equal(printable('a\u001b[31m\nb\u202ec'), 'a?[31m?b?c');
    assert.equal(printable('größe 🌍'), 'größe 🌍');
    assert.equal(printable('x'.repeat(200)).length, 200);
    assert.equal(printable('x'.repeat(201)), `${'x'.repeat(200)}…`);
  });

  test('secrets are gone from keys and values, also where the cut would have halved one', () => {
    const value = { [`k-${'s3cret'}`]: [`a s3cret`, { deep: `${'x'.repeat(197)}s3cret` }], at: 1.23456 };
    const text = JSON.stringify(cleaned(value, ['s3cret']));
    assert.ok(!text.includes('s3c'), text);
    assert.match(text, /"at":1\.2}/);
  });

  test('times and sizes are said in the largest unit that fits', () => {
    assert.deepEqual([0.12, 8, 250, 1_500, 60_000, 300_000, 3_600_000].map(durationWords), [
      ...['0.1 ms', '8 ms', '250 ms', '1.5 s', '60 s', '5 m', '1 h'],
    ]);
    assert.deepEqual([0, 1_023, 1_536, 41_943_040].map(sizeWords), ['0 B', '1023 B', '1.5 KiB', '40 MiB']);
  });
});
