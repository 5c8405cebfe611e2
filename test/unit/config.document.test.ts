// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the configuration's own expansion is what is tested.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { readDocument } from '../../src/config/document.ts';
import { loadText } from '../support/config.ts';

const plain = (text: string) =>
  readDocument(text, (value) => ({ kind: 'text', text: value, expanded: false }));

describe('positions in a document', () => {
  const reading = plain('# first\na:\n  - b: 1\n  -   c: two\n');
  assert.equal(reading.kind, 'read');
  const document = reading.kind === 'read' ? reading.document : assert.fail();

  test('a value stands where it begins', () => {
    assert.deepEqual(document.at(['a', 1, 'c']), { line: 4, column: 10 });
  });

  test('a key stands where it begins', () => {
    assert.deepEqual(document.atKey(['a', 1, 'c']), { line: 4, column: 7 });
  });

  test('an absent value stands at the nearest key above it', () => {
    assert.deepEqual(document.at(['a', 'x', 'y']), { line: 2, column: 1 });
    assert.deepEqual(document.at(['z']), { line: 1, column: 1 });
  });
});

describe('what a document may hold', () => {
  test('values are those of YAML 1.2', () => {
    const reading = plain('a: yes\nb: 0o17\nc: 1_000\nd: 22:22\n1: !!str 2\n');
    assert.deepEqual(reading.kind === 'read' && reading.document.data, {
      1: '2',
      a: 'yes',
      b: 15,
      c: '1_000',
      d: '22:22',
    });
  });

  test('a key named __proto__ changes no prototype', () => {
    const reading = plain('a: { __proto__: { polluted: true }, constructor: 1 }');
    assert.ok(reading.kind === 'read');
    const { a } = reading.document.data as { a: Record<string, unknown> };
    assert.equal(a.polluted, undefined);
    assert.equal(Object.getPrototypeOf(a), Object.prototype);
    assert.equal(reading.problems.length, 1);
  });

  const REFUSED: Readonly<Record<string, string>> = {
    'brackets without end': '['.repeat(200_000),
    'braces without end': '{a: '.repeat(50_000),
    'indicators without end': '- '.repeat(100_000),
    'aliases that multiply': `a: &a [x]\n${'bcdefghijklmnopq'.replaceAll(/./g, (key) => `${key}: &${key} [${`*${String.fromCharCode(key.charCodeAt(0) - 1)},`.repeat(9)}]\n`)}`,
    'an alias to its own parent': 'a: &a { b: *a }',
    'an alias to nothing': 'a: *nothing',
    'a tag of its own': 'a: !env HOME',
    'a binary tag': 'a: !!binary aGVhZGdhdGU=',
    'a second document': 'a: 1\n---\nb: 1',
    'another version of YAML': '%YAML 1.1\n---\na: yes',
    'a key that is a list': '? [a]\n: 1',
    'nothing at all': '',
  };
  for (const [what, text] of Object.entries(REFUSED)) {
    test(`${what} is refused`, () => {
      const reading = plain(text);
      assert.ok(reading.problems.length > 0);
      for (const problem of reading.problems) assert.ok(problem.line > 0 && problem.column > 0);
    });
  }
});

describe('bad input in general', () => {
  const words = fc.constantFrom(
    ...[
      'version',
      ': ',
      '1',
      '\n',
      '  ',
      '- ',
      'upstreams',
      'routes',
      'docs',
      '{',
      '}',
      '[',
      ']',
      ',',
      '"',
      "'",
    ],
    ...[
      '&a',
      '*a',
      '!x',
      '|',
      '>',
      '#',
      '---',
      '\t',
      '${A}',
      '${',
      'listen',
      'null',
      '~',
      '\u0000',
      '\ud800',
      '?',
    ],
  );
  const texts = fc.oneof(
    fc.array(words, { maxLength: 60 }).map((parts) => parts.join('')),
    fc.string({ unit: 'binary', maxLength: 60 }),
  );

  test('no text raises, and every refusal names a line and something to do', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const result = loadText(text, {});
        assert.equal(result.kind, 'invalid');
        assert.ok(result.kind === 'invalid' && result.problems.length > 0);
        for (const { line, column, message } of result.problems) {
          assert.ok(line >= 1 && column >= 1 && message.length > 0);
          assert.ok(!message.includes('\n'), 'one line each');
        }
      }),
      { numRuns: 300 },
    );
  });

  test('no value in place of another raises', () => {
    const upstream = fc.dictionary(
      fc.constantFrom(
        'url',
        'resources',
        'tools',
        'auth',
        'forwardHeaders',
        'timeouts',
        'connections',
        'cache',
        'endpoints',
        'command',
        'args',
        'env',
        'cwd',
        'shared',
        'protocol',
      ),
      fc.jsonValue({ maxDepth: 3 }),
    );
    const route = fc.dictionary(
      fc.constantFrom('path', 'upstreams', 'rules', 'pageSize', 'cache'),
      fc.jsonValue({ maxDepth: 3 }),
    );
    const file = fc.record(
      {
        version: fc.constantFrom<unknown>(1, 2, '1', null),
        listen: fc.jsonValue({ maxDepth: 2 }),
        admin: fc.jsonValue({ maxDepth: 1 }),
        secrets: fc.jsonValue({ maxDepth: 2 }),
        upstreams: fc.oneof(
          fc.dictionary(fc.constantFrom('a', 'b', 'A'), fc.oneof(upstream, fc.jsonValue())),
          fc.jsonValue(),
        ),
        routes: fc.oneof(fc.array(fc.oneof(route, fc.jsonValue()), { maxLength: 3 }), fc.jsonValue()),
        cache: fc.jsonValue({ maxDepth: 3 }),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(file, (data) => {
        const result = loadText(JSON.stringify(data), {});
        if (result.kind === 'invalid')
          assert.ok(result.problems.some(({ severity }) => severity === 'error'));
      }),
      { numRuns: 150 },
    );
  });
});

test('a configuration of many members between brackets is no deep one, real depth still is', () => {
  const upstreams = Array.from(
    { length: 150 },
    (_, i) => `u${i}: { url: "http://127.0.0.1:${3000 + i}/mcp" }`,
  );
  const names = Array.from({ length: 150 }, (_, i) => `u${i}`);
  const text = `{ version: 1, upstreams: { ${upstreams.join(', ')} }, routes: [{ path: /mcp, upstreams: [${names.join(', ')}] }] }`;
  assert.equal(loadText(text).kind, 'ok');
  for (const deep of ['['.repeat(200), '{a: '.repeat(200), '- '.repeat(200)])
    assert.equal(loadText(deep).kind, 'invalid');
});
