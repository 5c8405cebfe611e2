/** The watcher agrees with JSON.parse about the members of the outermost object, however the bytes come. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { JsonWatch, MAX_ID_BYTES, sameId } from '../../src/protocol/json-watch.ts';

const RUNS = Number(process.env.FC_RUNS ?? 300);
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

function watch(text: string, size = Number.POSITIVE_INFINITY): JsonWatch {
  const watcher = new JsonWatch();
  const all = bytes(text);
  for (let at = 0; at < all.length; at += Math.min(size, all.length))
    watcher.push(all.subarray(at, at + size));
  return watcher;
}

const SPACE = fc.constantFrom('', '', '', ' ', '\n\t', '\r\n  ');

/** JSON text of a value, spelled in an arbitrary way: white space, escapes. */
function spelled(value: unknown, pad: () => string, quote: (text: string) => string): string {
  const inner = (part: unknown): string => `${pad()}${spelled(part, pad, quote)}${pad()}`;
  if (typeof value === 'string') return quote(value);
  if (Array.isArray(value)) return `[${value.map(inner).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, part]) => `${pad()}${quote(key)}${pad()}:${inner(part)}`);
  return `{${members.length === 0 ? pad() : members.join(',')}}`;
}

const asEscapes = (text: string): string =>
  `"${Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`;

const KEY = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('id', 'method', 'result', 'error', 'params', 'jsonrpc') },
  fc.constantFrom('Id', 'ids', '"id"', '\\id', '__proto__', ''),
  fc.string({ unit: 'grapheme', maxLength: 6 }),
);
const ID = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom('"', '\\', '\\"', '{"id":1}', '🌍', 'ü\u0000'),
  fc.integer(),
  fc.constantFrom(null, true, 1.5, -0, 1e21),
);
const MESSAGE = fc
  .array(fc.tuple(KEY, fc.oneof(ID, fc.jsonValue({ maxDepth: 3 }))), { maxLength: 7 })
  .map((pairs) => {
    const object = Object.create(null) as Record<string, unknown>;
    for (const [key, value] of pairs) object[key] = value;
    return object;
  });

test('agrees with JSON.parse for arbitrary documents and chunkings', () => {
  fc.assert(
    fc.property(
      MESSAGE,
      fc.array(SPACE, { minLength: 1 }),
      fc.boolean(),
      fc.integer({ min: 1, max: 9 }),
      (message, pads, escapes, size) => {
        let n = 0;
        const pad = (): string => pads[n++ % pads.length] as string;
        const document = spelled(message, pad, escapes ? asEscapes : JSON.stringify);
        const parsed = JSON.parse(document) as Record<string, unknown>;
        const watcher = watch(` ${document}\n`, size);
        assert.equal(watcher.state, 'complete');
        const has = (key: string): boolean => Object.hasOwn(parsed, key);
        assert.equal(watcher.hasId, has('id'));
        assert.equal(watcher.isError, has('error'));
        assert.equal(
          watcher.kind,
          has('method')
            ? has('id')
              ? 'request'
              : 'notification'
            : has('result') || has('error')
              ? 'response'
              : 'unknown',
        );
        const id = parsed.id;
        if (has('id') && (typeof id !== 'object' || id === null)) {
          assert.deepEqual(JSON.parse(watcher.id ?? 'undefined'), id);
          assert.ok(document.includes(watcher.id ?? 'nothing'));
        } else {
          assert.equal(watcher.id, undefined);
        }
      },
    ),
    { numRuns: RUNS },
  );
});

test('is complete exactly when the document is, at every prefix', () => {
  fc.assert(
    fc.property(MESSAGE, (message) => {
      const all = bytes(JSON.stringify(message));
      const watcher = new JsonWatch();
      for (let i = 0; i < all.length; i++) {
        assert.equal(watcher.state, 'open', `before byte ${i}`);
        watcher.push(all.subarray(i, i + 1));
      }
      assert.equal(watcher.state, 'complete');
    }),
    { numRuns: RUNS },
  );
});

test('never throws, whatever the bytes', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 6 }), (chunks) => {
      const watcher = new JsonWatch();
      for (const chunk of [bytes('{"id"'), ...chunks]) watcher.push(chunk);
      void [watcher.id, watcher.kind, watcher.state];
    }),
    { numRuns: RUNS },
  );
});

test('R8: the id is kept as it was spelled', () => {
  for (const id of ['12345678901234567890', '"1"', '1', '-0', '"\\u0061\\"b"', '"grüße"', 'null', '1e3']) {
    for (const size of [1, 3, 1000]) {
      assert.equal(watch(`{"params":{"id":9,"a":["}"]},"id":${id},"method":"x"}`, size).id, id);
      assert.equal(watch(`{"id" : ${id} }`, size).id, id);
    }
  }
});

test('R8: an id that is no scalar, too long, cut off or twice there is none', () => {
  assert.equal(watch('{"id":{"a":1}}').id, undefined);
  assert.equal(watch('{"id":[1]}').id, undefined);
  assert.equal(watch('{"id":1,"id":1}').id, undefined);
  assert.equal(watch('{"id":"abc').id, undefined);
  assert.equal(watch(`{"id":"${'x'.repeat(MAX_ID_BYTES - 2)}"}`, 100).id?.length, MAX_ID_BYTES);
  assert.equal(watch(`{"id":"${'x'.repeat(MAX_ID_BYTES)}"}`, 100).id, undefined);
  assert.ok(watch(`{"id":"${'x'.repeat(MAX_ID_BYTES)}","method":"m"}`).kind === 'request');
});

test('the id of a large body is there before the body ends', () => {
  const watcher = new JsonWatch();
  watcher.push(bytes('{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"arguments":{"blob":"AAA'));
  assert.equal(watcher.id, '5');
  assert.equal(watcher.state, 'open');
});

test('what is no single object is broken', () => {
  for (const text of [
    '[1]',
    '1',
    '{"a":1}{',
    '{"a" 1}',
    '{,}',
    '{"a":1,}',
    '{1:2}',
    '{"a":,}',
    '\ufeff{}',
    '{"a":1]',
  ]) {
    assert.equal(watch(text).state, 'broken', text);
  }
});

test('R8: ids are the same by value, and never across types', () => {
  assert.ok(sameId('1', '1'));
  assert.ok(sameId('"\\u0061"', '"a"'));
  assert.ok(sameId('100', '1E2'));
  assert.ok(sameId('12345678901234567890', '12345678901234567890'));
  assert.ok(!sameId('12345678901234567890', '12345678901234567891'));
  assert.ok(!sameId('1', '"1"'));
  assert.ok(!sameId('null', '0'));
  assert.ok(!sameId('"a', '"a"'));
});
