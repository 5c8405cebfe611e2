import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  createCursorCodec,
  MAX_CURSOR_LENGTH,
  MAX_UPSTREAM_CURSOR_LENGTH,
  type Position,
  routeDigest,
} from '../../src/aggregate/cursor.ts';

const RANKS = 5;
const METHOD = 'resources/list';
const digest = routeDigest('/mcp', ['a', 'b', 'c', 'd', 'e']);
const keys = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];

const position: fc.Arbitrary<Position> = fc
  .record({
    method: fc.constant(METHOD),
    scope: fc.constantFrom('public' as const, 'private' as const),
    rank: fc.nat(RANKS - 1),
    excluded: fc.uniqueArray(fc.nat(RANKS - 1), { maxLength: RANKS }),
    cursor: fc.option(fc.string({ unit: 'binary', maxLength: 200 }), { nil: undefined }),
    offset: fc.nat(500_000),
    digest: fc.stringMatching(/^[A-Za-z0-9_-]{12}$/),
    pages: fc.nat(10_000),
  })
  .map((made) => ({
    ...made,
    excluded: made.excluded.filter((rank) => rank !== made.rank).sort((a, b) => a - b),
  }));

for (const [what, sealing] of [
  ['with secrets', keys],
  ['without secrets', []],
] as const) {
  const codec = createCursorCodec(digest, RANKS, sealing);

  test(`R14: ${what}, what was encoded is decoded, on any replica`, () => {
    const replica = createCursorCodec(digest, RANKS, sealing);
    fc.assert(
      fc.property(position, (made) =>
        assert.deepEqual(replica.decode(codec.encode(made), METHOD), { kind: 'position', position: made }),
      ),
    );
  });

  test(`R14: ${what}, no text whatever makes decoding throw, and none but a real cursor yields a position`, () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.base64String(),
          fc.stringMatching(/^[A-Za-z0-9_-]{0,80}$/),
        ),
        (text) => codec.decode(text, METHOD).kind === 'invalid',
      ),
      { numRuns: 2_000 },
    );
  });

  test(`R14: ${what}, a cursor that was changed anywhere yields no slice at all`, () => {
    fc.assert(
      fc.property(
        position,
        fc.nat(),
        fc.constantFrom('replace', 'drop', 'double'),
        fc.stringMatching(/^[A-Za-z0-9_-]$/),
        (made, where, how, letter) => {
          const text = codec.encode(made);
          const at = where % text.length;
          const put = { replace: letter, drop: '', double: `${text[at]}${letter}` }[how];
          const changed = `${text.slice(0, at)}${put}${text.slice(at + 1)}`;
          return changed === text || codec.decode(changed, METHOD).kind === 'invalid';
        },
      ),
      { numRuns: 1_000 },
    );
  });

  test(`R14: ${what}, a cursor of another method, route, order or number of upstreams is foreign`, () => {
    const others = [
      createCursorCodec(routeDigest('/other', ['a', 'b', 'c', 'd', 'e']), RANKS, sealing),
      createCursorCodec(routeDigest('/mcp', ['b', 'a', 'c', 'd', 'e']), RANKS, sealing),
      createCursorCodec(routeDigest('/mcp', ['a', 'b']), 2, sealing),
    ];
    fc.assert(
      fc.property(position, (made) => {
        const text = codec.encode(made);
        return (
          codec.decode(text, 'tools/list').kind === 'invalid' &&
          others.every((other) => other.decode(text, METHOD).kind === 'invalid')
        );
      }),
    );
  });
}

test('R14: secrets can be rotated: the first seals, all open, a stranger’s opens nothing', () => {
  const [old, fresh] = keys as [Buffer, Buffer];
  const made: Position = {
    method: METHOD,
    scope: 'public',
    excluded: [],
    rank: 0,
    cursor: 'x',
    offset: 0,
    digest: '',
    pages: 1,
  };
  const before = createCursorCodec(digest, RANKS, [old]).encode(made);
  assert.equal(createCursorCodec(digest, RANKS, [fresh, old]).decode(before, METHOD).kind, 'position');
  assert.equal(createCursorCodec(digest, RANKS, [fresh]).decode(before, METHOD).kind, 'invalid');
});

test('R14: a cursor longer than the bound is refused unread; the longest that is made fits', () => {
  const codec = createCursorCodec(digest, RANKS, keys);
  const longest: Position = {
    method: METHOD,
    scope: 'private',
    excluded: [1, 2, 3, 4],
    rank: 0,
    cursor: '\u0000'.repeat(MAX_UPSTREAM_CURSOR_LENGTH),
    offset: 1,
    digest: 'x'.repeat(12),
    pages: 9,
  };
  const escaped = codec.encode(longest);
  assert.ok(escaped.length <= MAX_CURSOR_LENGTH, `${escaped.length}`);
  assert.equal(codec.decode(escaped, METHOD).kind, 'position');
  assert.equal(codec.decode('A'.repeat(MAX_CURSOR_LENGTH + 1), METHOD).kind, 'invalid');
  const text = codec.encode({ ...longest, cursor: 'é'.repeat(MAX_UPSTREAM_CURSOR_LENGTH) });
  assert.equal(codec.decode(text, METHOD).kind, 'position');
});
