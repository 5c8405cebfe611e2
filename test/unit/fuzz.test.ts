/**
 * A few thousand cases for everything that takes what others write, and what longer runs have found.
 * `npm run fuzz -- --seconds 120` looks longer; `FUZZ_SEED` gives this file the cases of another run.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { judgeItem } from '../../src/aggregate/item.ts';
import { formatProblem } from '../../src/config/problems.ts';
import { classify } from '../../src/protocol/classify.ts';
import { readHead } from '../../src/protocol/headers.ts';
import { wholeValue } from '../../src/protocol/json.ts';
import { LIST_METHODS } from '../../src/protocol/methods.ts';
import { type Case, emptyTally, judge, runCases, shrink, type Target, toldFinding } from '../fuzz/engine.ts';
import { TARGETS } from '../fuzz/targets.ts';
import { CANARY, loadText } from '../support/config.ts';

const SEED = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 1e9));
/** For each target: as many as there are, or as many as fit in this time. */
const CASES = 2_000;
const MS = 350;
/** A configuration takes milliseconds to read. */
const SLOW_MS: Readonly<Record<string, number>> = { 'config-file': 900 };

/** What each target is there to prove. */
const RULES: Readonly<Record<string, string>> = {
  classifier: 'R5 R6 R8',
  repeats: 'R3 R6 R8',
  'header-codec': 'R1 R2',
  'lane-shape': 'R4',
  'span-scanner': 'R6',
  'answer-reader': 'R20',
  'json-watch': 'R8',
  'flow-scanner': 'R6',
  'result-flow': 'R25 R30',
  'sse-framer': 'R32 R34',
  'notice-reader': 'R39',
  cursor: 'R14',
  'cache-key': 'R22 R24',
  'caller-context': 'R22',
  template: 'R10',
  glob: 'R10',
  'config-file': 'R46',
  'list-item': 'R16',
};

describe('fuzzing', () => {
  for (const target of TARGETS) {
    test(`${RULES[target.name]}: ${target.name}: ${target.about}`, (t) => {
      const tally = emptyTally(target.name);
      const until = performance.now() + (SLOW_MS[target.name] ?? MS);
      while (tally.caseCount < CASES && performance.now() < until) {
        runCases(target, SEED, tally.caseCount, 10, tally);
        if (tally.findings.length > 0) break;
      }
      t.diagnostic(`${target.name}: seed ${SEED}, ${tally.caseCount} cases, ${tally.outcomes.size} outcomes`);
      assert.deepEqual(tally.findings.map(toldFinding), []);
    });
  }

  test('every target has a rule it proves', () => {
    assert.deepEqual(
      Object.keys(RULES),
      TARGETS.map(({ name }) => name),
    );
  });

  test('the same seed makes the same cases', () => {
    const noted: string[][] = [[], []];
    for (const notes of noted) {
      const target: Target = {
        name: 'noted',
        about: '',
        generate: (random) => ({ text: random.text(20), n: random.uint32() }),
        check: (given) => String(notes.push(JSON.stringify(given))),
      };
      runCases(target, 5, 0, 50, emptyTally('noted'));
    }
    assert.deepEqual(noted[0], noted[1]);
    assert.equal(new Set(noted[0]).size, 50);
  });

  test('a failing case is made small, and fails in the same way', () => {
    const target: Target = {
      name: 'picky',
      about: 'no text holds an x behind a y',
      generate: () => ({}),
      check: ({ text, list }) => {
        assert.doesNotMatch(String(text), /y.*x/s);
        assert.ok(!(list as readonly unknown[]).includes(3));
        return 'fine';
      },
    };
    const first: Case = { text: 'aaaybbbbxcc', list: [1, 2, 3, 4], bytes: new Uint8Array(40) };
    const { reproducer } = shrink(target, first);
    assert.equal(judge(target, reproducer).kind, 'fault');
    assert.ok(JSON.stringify(reproducer).length < 40, JSON.stringify(reproducer));
  });
});

/** Judges an item of this list as its upstream spelled it. */
function verdict(field: string, text: string): string {
  const shape = LIST_METHODS.flatMap((row) => row.list ?? []).find((one) => one.field === field);
  const bytes = new TextEncoder().encode(text);
  const span = wholeValue(bytes);
  assert.ok(shape !== undefined && span !== undefined);
  const judged = judgeItem(bytes, span, shape);
  return judged.kind === 'good' ? 'good' : judged.why;
}

describe('found by fuzzing', () => {
  for (const [what, field, text, why] of [
    ['an icon without a src', 'resources', '{"uri":"a:b","name":"x","icons":[{}]}', 'icons'],
    [
      'an audience that nobody is',
      'resources',
      '{"uri":"a:b","name":"x","annotations":{"audience":["x"]}}',
      'annotations',
    ],
    [
      'a priority above 1',
      'resourceTemplates',
      '{"uriTemplate":"a:{b}","name":"x","annotations":{"priority":2}}',
      'annotations',
    ],
    [
      'a date that is none',
      'resources',
      '{"uri":"a:b","name":"x","annotations":{"lastModified":"2026-02-30T00:00:00Z"}}',
      'annotations',
    ],
    [
      'a time without seconds',
      'resources',
      '{"uri":"a:b","name":"x","annotations":{"lastModified":"2026-01-12T15:58Z"}}',
      'annotations',
    ],
    ['an argument without a name', 'prompts', '{"name":"x","arguments":[{"description":"y"}]}', 'arguments'],
    [
      'a hint that is no boolean',
      'tools',
      '{"name":"x","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":1}}',
      'annotations',
    ],
    [
      'an output schema of a dialect that is no string',
      'tools',
      '{"name":"x","inputSchema":{"type":"object"},"outputSchema":{"$schema":1}}',
      'outputSchema',
    ],
  ] as const) {
    test(`R16: an item with ${what} goes alone: the official client would lose the whole list over it`, () => {
      assert.equal(verdict(field, text), `${why} is not what the schema says`);
    });
  }

  test('R6 R16: an item whose identifying member comes twice goes alone: a client reads the other one', () => {
    assert.equal(verdict('resources', '{"uri":"a:b","uri":"c:d","name":"x"}'), 'uri comes twice');
    assert.equal(verdict('prompts', '{"name":"x","\\u006eame":null}'), 'name comes twice');
    assert.equal(verdict('resources', '{"uri":"a:b","name":"x","own":1,"own":2}'), 'good');
  });

  test('R16: an x-mcp-header that is spelled with escapes is looked at', () => {
    const schema = '{"type":"object","properties":{"a":{"type":"array","x-mcp-\\u0068eader":"A"}}}';
    assert.match(verdict('tools', `{"name":"x","inputSchema":${schema}}`), /x-mcp-header/);
  });

  test('R8: a request with two ids is refused without either', () => {
    const bytes = new TextEncoder().encode('{"jsonrpc":"2.0","id":3,"id":1,"method":"tools/list"}');
    const message = classify(readHead([]), { kind: 'whole', bytes });
    assert.ok(message.kind === 'refused');
    assert.deepEqual([message.refusal.code, message.id], [-32600, undefined]);
  });

  test('R46: a key of a configuration cannot make a terminal do anything', () => {
    const result = loadText('version: 1\n"a\\u009b2J\\u202e\\u007f": 1\n');
    const lines =
      result.kind === 'invalid' ? result.problems.map((problem) => formatProblem('f', problem)) : [];
    assert.ok(
      lines.some((line) => line.includes('a\\u009b2J\\u202e\\u007f')),
      lines.join('\n'),
    );
  });

  test('R46: a warning about an address out of the environment does not show it', () => {
    const result = loadText(
      `version: 1\nlisten: "\${TOKEN}:9"\nupstreams: { docs: { url: "http://x/" } }\nroutes: [{ path: /mcp, upstreams: [docs] }]\n`,
    );
    assert.equal(result.kind, 'ok');
    const lines = result.kind === 'ok' ? result.warnings.map((problem) => formatProblem('f', problem)) : [];
    assert.ok(
      lines.some((line) => line.includes('the address is reachable from other machines')),
      lines.join(),
    );
    assert.ok(!lines.join().includes(CANARY.slice(0, 20)));
  });

  test('R46: names of upstreams that are none are not listed as known', () => {
    const result = loadText(
      'version: 1\nupstreams: { "a\\nb": {}, docs: {} }\nroutes: [{ path: /mcp, upstreams: [zzz] }]\n',
    );
    const lines =
      result.kind === 'invalid' ? result.problems.map((problem) => formatProblem('f', problem)) : [];
    assert.ok(
      lines.some((line) => line.endsWith('known: docs')),
      lines.join('\n'),
    );
    assert.ok(lines.every((line) => !line.includes('\n')));
  });
});
