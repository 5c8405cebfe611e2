/** The span scanner: accepts what JSON.parse accepts, and gives back the bytes that were sent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  arrayElements,
  kindAt,
  MAX_JSON_DEPTH,
  membersFrom,
  objectMembers,
  stringValue,
  textOf,
  valueEnd,
  wholeObject,
  wholeValue,
} from '../../src/protocol/json.ts';

const RUNS = Number(process.env.FC_RUNS ?? 300);
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** What JSON.parse thinks of bytes that must be UTF-8. */
function accepts(all: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(all));
    return true;
  } catch {
    return false;
  }
}

const SPACE = fc.constantFrom('', '', '', ' ', '\t', '\n', '\r\n', '  ');
const STRING_TEXT = fc
  .array(
    fc.oneof(
      {
        weight: 3,
        arbitrary: fc
          .string({ unit: 'grapheme', maxLength: 4 })
          .map((text) => JSON.stringify(text).slice(1, -1)),
      },
      fc.constantFrom(
        '\\ud800',
        '\\uDC00',
        '\\u0000',
        '\\/',
        '\\\\',
        '\\"',
        '\\b',
        'ü',
        '🌍',
        '\u2028',
        '\ufeff',
        '\u007f',
      ),
    ),
    { maxLength: 4 },
  )
  .map((parts) => `"${parts.join('')}"`);
const NUMBER_TEXT = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.bigInt().map(String),
  fc.constantFrom('-0', '1e400', '-1E-400', '0.10', '1.0e+05', '123456789012345678901234567890', '0'),
);
const { document: DOCUMENT } = fc.letrec<{ document: string; scalar: string; array: string; object: string }>(
  (tie) => ({
    document: fc.oneof({ maxDepth: 4, withCrossShrink: true }, tie('scalar'), tie('array'), tie('object')),
    scalar: fc.oneof(STRING_TEXT, NUMBER_TEXT, fc.constantFrom('true', 'false', 'null')),
    array: fc
      .tuple(fc.array(tie('document'), { maxLength: 4 }), SPACE)
      .map(([items, pad]) => `[${pad}${items.join(`${pad},${pad}`)}${pad}]`),
    object: fc
      .tuple(
        fc.array(fc.tuple(fc.oneof(STRING_TEXT, fc.constantFrom('"a"', '"__proto__"')), tie('document')), {
          maxLength: 4,
        }),
        SPACE,
      )
      .map(
        ([pairs, pad]) =>
          `{${pad}${pairs.map(([key, value]) => `${key}${pad}:${pad}${value}`).join(`${pad},`)}${pad}}`,
      ),
  }),
);

/** Takes a document apart into spans and puts it together again from those alone. */
function rebuilt(all: Uint8Array, at: number): string {
  switch (kindAt(all, at)) {
    case 'object': {
      const members = objectMembers(all, at) ?? assert.fail('no object');
      return `{${members.map((member) => `${JSON.stringify(member.key)}:${rebuilt(all, member.start)}`).join(',')}}`;
    }
    case 'array': {
      const elements = arrayElements(all, at) ?? assert.fail('no array');
      return `[${elements.map((element) => rebuilt(all, element.start)).join(',')}]`;
    }
    default:
      return textOf(all, { start: at, end: valueEnd(all, at) });
  }
}

/** The same by splitting the text: white space outside strings goes, keys are respelled, values stay as they are. */
function expected(document: string): string {
  const tokens = document.match(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/gsu) ?? [];
  return tokens
    .map((token, i) => (tokens[i + 1] === ':' ? JSON.stringify(JSON.parse(token)) : token))
    .join('');
}

test('a span-scanned value equals the bytes sent', () => {
  fc.assert(
    fc.property(DOCUMENT, SPACE, SPACE, (document, before, after) => {
      const all = bytes(before + document + after);
      const whole = wholeValue(all) ?? assert.fail('refused');
      assert.equal(textOf(all, whole), document);
      assert.equal(rebuilt(all, whole.start), expected(document));
    }),
    { numRuns: RUNS },
  );
});

test('what no number or string of a program survives is cut out as it came', () => {
  const values = [
    '12345678901234567890123',
    '1e400',
    '-0',
    '1.10',
    '"\\ud800"',
    '"\\u0061"',
    '"\\/"',
    '{"a":1,"a":2}',
    '[ 1 ,\n2]',
  ];
  for (const value of values) {
    const all = bytes(`{"x": ${value} , "x":null}`);
    const [first] = objectMembers(all, 0) ?? [];
    assert.equal(first && textOf(all, first), value);
  }
});

test('R6: duplicate keys, escaped keys and __proto__ are all seen, in order', () => {
  const members = objectMembers(bytes('{"a":1,"\\u0061":2,"__proto__":3,"A":4}'), 0);
  assert.deepEqual(
    members?.map((member) => member.key),
    ['a', 'a', '__proto__', 'A'],
  );
  assert.deepEqual(membersFrom(bytes('}'), 0), []);
});

test('R6: accepts exactly what JSON.parse accepts, also of mutated documents, and never throws', () => {
  const MUTATION = fc.tuple(
    fc.nat(),
    fc.constantFrom('replace', 'insert', 'delete', 'truncate', 'double'),
    fc.oneof(fc.constantFrom(...bytes('"\\{}[]:,0-.eEu \n\t')), fc.integer({ min: 0, max: 255 })),
  );
  fc.assert(
    fc.property(DOCUMENT, fc.array(MUTATION, { maxLength: 3 }), (document, mutations) => {
      let all = bytes(document);
      for (const [where, how, byte] of mutations) {
        const at = all.length === 0 ? 0 : where % all.length;
        const [head, tail] = [all.slice(0, at), all.slice(at)];
        const parts = {
          replace: [head, Uint8Array.of(byte), tail.slice(1)],
          insert: [head, Uint8Array.of(byte), tail],
          delete: [head, tail.slice(1)],
          truncate: [head],
          double: [head, tail, tail],
        }[how];
        all = Uint8Array.from(parts.flatMap((part) => [...part]));
      }
      assert.equal(
        wholeValue(all) !== undefined,
        accepts(all),
        JSON.stringify(Buffer.from(all).toString('latin1')),
      );
      // From any position: a span or nothing, never an exception.
      for (let at = 0; at <= all.length; at++) {
        void [valueEnd(all, at), objectMembers(all, at), arrayElements(all, at)];
      }
    }),
    { numRuns: RUNS * 3 },
  );
});

test('R6: arbitrary bytes are accepted exactly when JSON.parse accepts them', () => {
  const BYTES = fc.array(
    fc.oneof(fc.constantFrom(...bytes('"\\{}[]:,01-.eEutrfalsn \n')), fc.integer({ min: 0, max: 255 })),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(BYTES, (list) => {
      const all = Uint8Array.from(list);
      assert.equal(
        wholeValue(all) !== undefined,
        accepts(all),
        JSON.stringify(Buffer.from(all).toString('latin1')),
      );
    }),
    { numRuns: RUNS * 3 },
  );
});

test('R6: a byte order mark, bad UTF-8 and encoded surrogates are refused', () => {
  for (const list of [
    [0xef, 0xbb, 0xbf, 0x31],
    [0x22, 0xc0, 0xaf, 0x22],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
    [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22],
    [0x22, 0xff, 0x22],
  ]) {
    assert.equal(wholeValue(Uint8Array.from(list)), undefined);
  }
});

test('R6: nesting is bounded, at its edge', () => {
  const nested = (depth: number): Uint8Array => bytes('['.repeat(depth) + ']'.repeat(depth));
  assert.ok(wholeValue(nested(MAX_JSON_DEPTH)));
  assert.equal(wholeValue(nested(MAX_JSON_DEPTH + 1)), undefined);
  assert.equal(wholeValue(bytes('['.repeat(1_000_000))), undefined);
});

test('an object taken apart in one pass has the members that two passes find', () => {
  const OBJECT = fc.array(fc.tuple(fc.constantFrom('"a"', '"result"', '"\\u0072esult"', '"b"'), DOCUMENT), {
    maxLength: 4,
  });
  fc.assert(
    fc.property(OBJECT, SPACE, fc.constantFrom('', '', '}', 'x'), (pairs, pad, after) => {
      const all = bytes(
        `${pad}{${pairs.map(([key, value]) => `${pad}${key}:${value}`).join(',')}}${pad}${after}`,
      );
      const whole = wholeValue(all);
      const found = wholeObject(all, 'result');
      if (whole === undefined) {
        assert.equal(found, undefined);
        return;
      }
      const twice = objectMembers(all, whole.start)?.map((member) => {
        const inner = member.key === 'result' ? objectMembers(all, member.start) : undefined;
        return inner === undefined ? member : { ...member, members: inner };
      });
      assert.deepEqual(found, twice);
    }),
    { numRuns: RUNS },
  );
  for (const text of ['[1]', '1', '"{}"', '']) assert.equal(wholeObject(bytes(text), 'result'), undefined);
});

test('a string is unescaped as JSON.parse does', () => {
  fc.assert(
    fc.property(STRING_TEXT, (text) => {
      const all = bytes(text);
      assert.equal(stringValue(all, { start: 0, end: all.length }), JSON.parse(text));
    }),
    { numRuns: RUNS },
  );
});
