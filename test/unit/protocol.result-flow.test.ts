/** R25, R30: a result taken apart while it flows is the one that the buffered path reads, or it is broken. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { DECISIVE, readAnswer, tailMembers } from '../../src/protocol/answer.ts';
import { wholeValue } from '../../src/protocol/json.ts';
import { ValueScan } from '../../src/protocol/json-flow.ts';
import { ResultFlow } from '../../src/protocol/result-flow.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const ID = '"hg-1"';

/** Cuts bytes at the given places, modulo their length. */
function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [...at, bytes.length].map((end, i) => bytes.subarray(i === 0 ? 0 : at[i - 1], end));
}

/** What the flow makes of it: the members of a complete tail, or why there is none. */
function flowed(chunks: readonly Uint8Array[]): readonly (readonly [string, string])[] | string {
  const flow = new ResultFlow({ id: ID, array: 'contents' });
  const out: Uint8Array[] = [];
  for (const chunk of chunks) {
    const pieces = flow.push(chunk);
    assert.ok(flow.begun || pieces.length === 0);
    // Copied, as a client would have it: what follows must not change what went out.
    out.push(...pieces.map((piece) => Uint8Array.from(piece)));
  }
  if (flow.state !== 'complete') return flow.reason;
  return membersOf(Buffer.concat([...out, flow.end]));
}

/** What the buffered path makes of it, under the same demands. */
function buffered(bytes: Uint8Array): readonly (readonly [string, string])[] | string {
  const answer = readAnswer(bytes, ID);
  if (answer.kind !== 'result') return answer.kind;
  if (answer.resultType !== 'complete') return answer.resultType;
  const { tail } = answer.result;
  const contents = tailMembers(tail).find((member) => member.key === 'contents');
  if (contents === undefined || tail[contents.start] !== 0x5b) return 'no contents';
  return membersOf(tail);
}

function membersOf(tail: Uint8Array): readonly (readonly [string, string])[] {
  return tailMembers(tail).map(({ key, start, end }) => [key, decoder.decode(tail.subarray(start, end))]);
}

const space = fc.constantFrom('', '', '', ' ', '\n', '\t\r ');
/** JSON texts that a parse and a stringify would not give back. */
const odd = fc.constantFrom(
  '1e400',
  '-0',
  '0.10',
  '12345678901234567890',
  '"\\u0041\\/"',
  '"\\ud800"',
  '{"a":1,"a":2}',
  '[ [ ] , { } ]',
  '"grüße 🌍 \u2028"',
  '""',
  '0',
);
const json = fc.oneof(
  odd,
  fc.json({ maxDepth: 3 }),
  fc.string({ unit: 'grapheme' }).map((s) => JSON.stringify(s)),
);
/** Keys, some with an escape in their spelling. */
const spelling = (key: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(key, fc.boolean()).map(([text, escaped]) => {
    const plain = JSON.stringify(text);
    const first = text.codePointAt(0) ?? 0;
    if (!escaped || first > 0x7e || first < 0x21) return plain;
    return `"\\u00${first.toString(16).padStart(2, '0')}${plain.slice(text[0] === '"' || text[0] === '\\' ? 3 : 2)}`;
  });
const member = (key: fc.Arbitrary<string>, value: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(space, key, space, space, value, space).map(([a, k, b, c, v, d]) => `${a}${k}${b}:${c}${v}${d}`);
const free = fc
  .oneof(fc.string(), fc.constantFrom('_meta', 'uri', 'x'.repeat(102), 'x'.repeat(103), 'é'.repeat(200)))
  .filter((key) => !['jsonrpc', 'id', 'result', 'error', 'resultType'].includes(key));

const resultMembers = fc
  .tuple(
    fc.array(member(spelling(free), json), { maxLength: 4 }),
    fc.option(
      member(
        spelling(fc.constant('contents')),
        fc.oneof(
          fc.array(json, { maxLength: 3 }).map((all) => `[${all.join(' , ')}]`),
          odd,
        ),
      ),
      { freq: 8, nil: undefined },
    ),
    fc.option(
      member(
        spelling(fc.constant('resultType')),
        fc.constantFrom('"complete"', '"complete"', '"\\u0063omplete"', '"input_required"', '1', 'null'),
      ),
      { nil: undefined },
    ),
    fc.option(member(spelling(fc.constantFrom('ttlMs', 'cacheScope')), json), { nil: undefined }),
  )
  .chain(([others, ...ours]) => {
    const all = [...others, ...ours.filter((one) => one !== undefined)];
    return fc.shuffledSubarray(all, { minLength: all.length });
  });
const result = fc.oneof(
  { weight: 9, arbitrary: resultMembers.map((members) => `{${members.join(',')}}`) },
  { weight: 1, arbitrary: json },
);
const message = fc
  .tuple(
    result.chain((text) => member(spelling(fc.constant('result')), fc.constant(text))),
    member(
      spelling(fc.constant('id')),
      fc.constantFrom(ID, ID, ID, ID, '"hg-2"', '7', 'null', '"hg-\\u0031"'),
    ),
    fc.option(member(fc.constantFrom('"jsonrpc"', '"extra"', '"error"'), json), { nil: undefined }),
  )
  .chain((members) => {
    const all = members.filter((one) => one !== undefined);
    return fc.shuffledSubarray(all, { minLength: all.length });
  })
  .map((members) => ` {${members.join(',')}} `);
const places = fc.array(fc.nat(), { maxLength: 12 });

describe('R25 R30: a result that flows', () => {
  test('is, in any chunking, what the buffered path reads, or nothing', (t) => {
    let complete = 0;
    fc.assert(
      fc.property(message, places, (text, where) => {
        const bytes = encoder.encode(text);
        const expected = buffered(bytes);
        const seen = flowed(cut(bytes, where));
        if (typeof expected === 'string') assert.equal(typeof seen, 'string', text);
        else {
          complete++;
          assert.deepEqual(seen, expected, text);
        }
      }),
      { numRuns: 3_000 },
    );
    t.diagnostic(`${complete} of 3000 messages were complete`);
    assert.ok(complete > 150, `${complete}`);
  });

  test('is refused, in any chunking, exactly where a damaged document is', () => {
    fc.assert(
      fc.property(
        message,
        fc.nat(),
        fc.nat(255),
        fc.constantFrom('cut', 'set', 'insert'),
        places,
        (text, at, byte, how, where) => {
          const whole = encoder.encode(text);
          const place = at % whole.length;
          const damaged =
            how === 'cut'
              ? whole.subarray(0, place)
              : Buffer.concat([
                  whole.subarray(0, place),
                  Uint8Array.of(byte),
                  whole.subarray(how === 'set' ? place + 1 : place),
                ]);
          const expected = buffered(damaged);
          const seen = flowed(cut(damaged, where));
          if (typeof expected === 'string') assert.equal(typeof seen, 'string', decoder.decode(damaged));
          else assert.deepEqual(seen, expected);
        },
      ),
      { numRuns: 3_000 },
    );
  });

  test('is broken by each thing that its head has already denied', () => {
    const tail = '"contents":[]';
    for (const [text, reason] of [
      [`{"id":${ID},"result":{${tail},"resultType":"input_required"}}`, /resultType/],
      [`{"id":${ID},"result":{${tail},"resultType":"complete","resultType":"task"}}`, /twice/],
      [`{"id":${ID},"result":{${tail},"resultType":"${'c'.repeat(100)}"}}`, /resultType/],
      [`{"result":{${tail}},"id":"hg-2"}`, /another request/],
      [`{"result":{${tail}}}`, /no id/],
      [`{"id":${ID},"result":{${tail}},"error":{"code":1}}`, /error/],
      [`{"id":${ID},"result":{${tail}},"result":{}}`, /twice/],
      [`{"id":${ID},"result":{"contents":{}}}`, /no array/],
      [`{"id":${ID},"result":{}}`, /no contents/],
      [`{"id":${ID},"result":{${tail}}}{}`, /more than one/],
      [`{"id":${ID},"result":{${tail}}`, /too soon/],
    ] as const) {
      assert.match(String(flowed([encoder.encode(text)])), reason, text);
    }
  });

  test('is broken when a member that decides something comes twice, wherever and however spelled', () => {
    const escaped = (name: string): string =>
      [...name].map((char) => `\\u00${char.charCodeAt(0).toString(16)}`).join('');
    for (const name of DECISIVE) {
      const value = name === 'resultType' ? '"complete"' : '[]';
      const wanted = name === 'contents' ? '' : '"contents":[],';
      for (const second of [name, escaped(name)]) {
        for (const text of [
          `{"id":${ID},"result":{${wanted}"${name}":${value},"${second}":${value}}}`,
          `{"result":{"${second}":${value},${wanted}"text":"x","${name}":${value}},"id":${ID}}`,
        ]) {
          const bytes = encoder.encode(text);
          assert.equal(flowed([bytes]), 'a member came twice', text);
          assert.equal(flowed(cut(bytes, [...bytes.keys()])), 'a member came twice', text);
          assert.equal(buffered(bytes), 'broken', text);
        }
      }
    }
  });

  test('passes on what decides nothing as often as it comes', () => {
    const text = `{"id":${ID},"result":{"x":1,"ttlMs":1,"x":2,"contents":[],"ttlMs":2,"cacheScope":"public","cacheScope":1}}`;
    const expected = [
      ['x', '1'],
      ['x', '2'],
      ['contents', '[]'],
    ];
    assert.deepEqual(flowed([encoder.encode(text)]), expected);
    assert.deepEqual(buffered(encoder.encode(text)), expected);
  });

  test('is broken when a member of the message comes twice, spelled in bytes and in escapes', () => {
    const bytes = encoder.encode(`{"id":${ID},"é":1,"result":{"contents":[]},"\\u00e9":2}`);
    assert.equal(flowed([bytes]), 'a member came twice');
    assert.equal(buffered(bytes), 'broken');
    const other = encoder.encode(`{"id":${ID},"é":1,"result":{"contents":[]},"\\u00c3\\u00a9":2}`);
    assert.deepEqual(flowed([other]), buffered(other));
  });

  test('is as deep as what is read whole may be', () => {
    for (const [depth, verdict] of [
      [510, 'object'],
      [511, 'string'],
    ] as const) {
      const deep = `${'['.repeat(depth)}${']'.repeat(depth)}`;
      const bytes = encoder.encode(`{"id":${ID},"result":{"contents":${deep}}}`);
      assert.equal(typeof buffered(bytes), verdict, `${depth}`);
      assert.equal(typeof flowed([bytes]), verdict, `${depth}`);
    }
    for (const [depth, verdict] of [
      [511, 'object'],
      [512, 'string'],
    ] as const) {
      const deep = `${'['.repeat(depth)}${']'.repeat(depth)}`;
      const bytes = encoder.encode(`{"id":${ID},"extra":${deep},"result":{"contents":[]}}`);
      assert.equal(typeof buffered(bytes), verdict, `${depth}`);
      assert.equal(typeof flowed([bytes]), verdict, `${depth}`);
    }
  });

  test('holds no more than a key, however the bytes come', () => {
    const flow = new ResultFlow({ id: ID, array: 'contents' });
    flow.push(encoder.encode(`{"id":${ID},"result":{"contents":["`));
    const block = new Uint8Array(64 * 1024).fill(0x61);
    for (let n = 0; n < 100; n++) {
      const pieces = flow.push(block);
      assert.equal(pieces.length, 1);
      assert.equal(pieces[0]?.buffer, block.buffer, 'a view, not a copy');
    }
    const key = flow.push(encoder.encode(`"],"${'k'.repeat(100_000)}`));
    assert.ok(key.reduce((sum, piece) => sum + piece.length, 0) > 99_900);
  });
});

test('the flowing scanner ends a value where the span scanner does, in any chunking', () => {
  const texts = fc.oneof(
    json,
    fc.constantFrom(
      '-',
      '01',
      '1.',
      '1e',
      '1e+',
      '-0.5E-3',
      'tru',
      'nulls',
      '"\\x"',
      '"\\u12g4"',
      '[1,]',
      '{"a"}',
    ),
    fc.tuple(json, fc.nat(), fc.nat(255)).map(([text, at, byte]) => {
      const bytes = Buffer.from(text);
      bytes[at % Math.max(1, bytes.length)] = byte;
      return bytes.toString('latin1');
    }),
  );
  fc.assert(
    fc.property(texts, places, (text, where) => {
      const bytes = Buffer.from(text, 'latin1');
      const scan = new ValueScan();
      let stopped: number | undefined;
      let passed = 0;
      for (const chunk of cut(Buffer.concat([bytes, Buffer.from(' ')]), where)) {
        const i = scan.push(chunk, 0);
        if (i < chunk.length) stopped ??= passed + i;
        passed += chunk.length;
      }
      const span = wholeValue(bytes);
      const rest = bytes.subarray(stopped ?? bytes.length).toString('latin1');
      const whole = scan.state === 'done' && /^[ \t\r\n]*$/.test(rest);
      assert.equal(whole, span !== undefined, text);
      if (span !== undefined) assert.equal(stopped, span.end, text);
    }),
    { numRuns: 3_000 },
  );
});

test('nesting is bounded as in the span scanner', () => {
  for (const depth of [511, 512, 513]) {
    const text = `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const scan = new ValueScan();
    scan.push(encoder.encode(text), 0);
    assert.equal(scan.state === 'done', wholeValue(encoder.encode(text)) !== undefined, `${depth}`);
  }
});
