import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { cacheKey, type KeyParts, keyText, privateKey, publicKey } from '../../src/cache/key.ts';

const PARTS: KeyParts = {
  upstream: 'docs',
  upstreamDigest: 'd1',
  revision: '2026-07-28',
  method: 'resources/read',
  forwarded: [['x-region', 'eu']],
  uri: 'file:///a',
  cursor: undefined,
  params: undefined,
  capabilities: '{}',
  meta: undefined,
};

// Texts that look like the encoding itself, and neighbours of each other, are where a join would collide.
const text = fc.oneof(
  fc.constantFrom(
    '',
    '-',
    '0:',
    '1:a',
    '-1:a',
    'a',
    'aa',
    ':',
    ',',
    '\u0000',
    '\ud800',
    '\udc00',
    '\ufffd',
    '😀',
  ),
  fc.string({ unit: 'binary', maxLength: 5 }),
);
const maybe = fc.option(text, { nil: undefined });
const parts: fc.Arbitrary<KeyParts> = fc.record({
  upstream: text,
  upstreamDigest: text,
  revision: text,
  method: text,
  forwarded: fc.array(fc.tuple(text, maybe), { maxLength: 2 }),
  uri: maybe,
  cursor: maybe,
  params: maybe,
  capabilities: maybe,
  meta: maybe,
});

const canonical = (tuple: KeyParts): string =>
  JSON.stringify([...Object.keys(PARTS).map((name) => tuple[name as keyof KeyParts])], (_, value) =>
    value === undefined ? { absent: true } : value,
  );

/** Reads a key's text the only way it can be read. */
function readBack(key: string): (string | undefined)[] {
  const found: (string | undefined)[] = [];
  let at = key.indexOf(',') + 1;
  while (at < key.length) {
    if (key[at] === '-') {
      found.push(undefined);
      at++;
      continue;
    }
    const colon = key.indexOf(':', at);
    const length = Number(key.slice(at, colon));
    found.push(key.slice(colon + 1, colon + 1 + length));
    at = colon + 1 + length;
  }
  return found;
}

describe('key', () => {
  it('R22 R24: no two different tuples have one text', () => {
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        assert.equal(keyText(one) === keyText(other), canonical(one) === canonical(other));
      }),
      { numRuns: 3_000 },
    );
  });

  it('R22 R24: a text can be read back into the tuple it was made of', () => {
    fc.assert(
      fc.property(parts, (tuple) => {
        const [upstream, upstreamDigest, revision, method, uri, cursor, params, capabilities, meta, ...rest] =
          readBack(keyText(tuple));
        const forwarded = Array.from({ length: rest.length / 2 }, (_, i) => [rest[2 * i], rest[2 * i + 1]]);
        const read = {
          upstream,
          upstreamDigest,
          revision,
          method,
          forwarded,
          uri,
          cursor,
          params,
          capabilities,
          meta,
        };
        assert.deepEqual(read, { ...tuple });
      }),
      { numRuns: 2_000 },
    );
  });

  it('every part counts', () => {
    const others: Partial<KeyParts>[] = [
      { upstream: 'city' },
      { upstreamDigest: 'd2' },
      { revision: '2027-01-01' },
      { method: 'tools/list' },
      { forwarded: [] },
      { forwarded: [['x-region', undefined]] },
      { forwarded: [['x-region', '']] },
      { forwarded: [['x-region', 'us']] },
      { uri: undefined },
      { uri: '' },
      { cursor: '' },
      { cursor: 'a' },
      { params: '{}' },
      { capabilities: undefined },
      { capabilities: '{"x":1}' },
      { meta: '{}' },
    ];
    const keys = [PARTS, ...others.map((other) => ({ ...PARTS, ...other }))].map(cacheKey);
    assert.equal(new Set(keys).size, others.length + 1);
  });

  it('R10: spellings of a URI are different URIs', () => {
    const uris = [
      'file:///a%2Fb',
      'file:///a/b',
      'file:///A/b',
      'file:///\u00e9',
      'file:///e\u0301',
      'file:///a/b/',
    ];
    assert.equal(new Set(uris.map((uri) => cacheKey({ ...PARTS, uri }))).size, uris.length);
  });

  it('lone surrogates are told apart, also by the hash', () => {
    const cursors = ['\ud800', '\ud801', '\udc00', '\ufffd'];
    assert.equal(new Set(cursors.map((cursor) => cacheKey({ ...PARTS, cursor }))).size, cursors.length);
  });

  it('R22: shows nothing of what it was made of, and has one length', () => {
    const key = cacheKey({ ...PARTS, uri: `file:///${'secret/'.repeat(5_000)}`, meta: '"canary-token"' });
    assert.match(key, /^[\w-]{43}$/);
  });

  it('R22: no private key is a public one or that of another context', () => {
    const key = fc.tuple(text, maybe);
    const made = ([base, partition]: readonly [string, string | undefined]): string =>
      partition === undefined ? publicKey(base) : privateKey(base, partition);
    fc.assert(
      fc.property(key, key, (one, other) => {
        assert.equal(made(one) === made(other), one[0] === other[0] && one[1] === other[1]);
      }),
      { numRuns: 1_000 },
    );
  });
});
