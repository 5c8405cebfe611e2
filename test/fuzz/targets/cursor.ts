/** Cursors that come back, from clients that may do anything with them (R14). */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import {
  createCursorCodec,
  MAX_CURSOR_LENGTH,
  MAX_UPSTREAM_CURSOR_LENGTH,
  type Position,
  routeDigest,
} from '../../../src/aggregate/cursor.ts';
import type { Target } from '../engine.ts';
import { treeOf } from '../json-tree.ts';
import { mutatedJson, mutateText } from '../mutate.ts';
import type { Random } from '../random.ts';

const RANKS = 4;
const DIGEST = routeDigest('/mcp', ['a', 'b', 'c', 'd']);
const METHODS = ['resources/list', 'tools/list', 'prompts/list', 'resources/templates/list'];
const KEY = new TextEncoder().encode('headgate cursor checksum');
const codec = createCursorCodec(DIGEST, RANKS, []);
const sealed = createCursorCodec(DIGEST, RANKS, [Buffer.alloc(32, 7)]);
const elsewhere = createCursorCodec(routeDigest('/mcp', ['b', 'a', 'c', 'd']), RANKS, []);

function position(random: Random): Position {
  const rank = random.below(RANKS);
  const begun = random.once(2);
  return {
    method: random.pick(METHODS),
    scope: random.pick(['public', 'private']),
    excluded: [0, 1, 2, 3].filter((other) => other !== rank && random.once(3)),
    rank,
    cursor: random.once(3)
      ? undefined
      : random.once(20)
        ? 'x'.repeat(MAX_UPSTREAM_CURSOR_LENGTH)
        : random.text(40),
    offset: begun ? random.size(100_000) : 0,
    digest: begun ? 'abcdefgh1234' : '',
    pages: random.size(10_000),
  };
}

function tuple({ method, scope, excluded, rank, cursor, offset, digest, pages }: Position): unknown[] {
  return [1, method, scope === 'public' ? 1 : 0, excluded, rank, cursor ?? null, offset, digest, pages];
}

/** What anybody can make where no secret is configured: a right seal on any payload. */
function forge(payload: string): string {
  const bytes = Buffer.from(payload);
  const mac = createHmac('sha256', KEY).update('headgate cursor').update(DIGEST).update(bytes).digest();
  return Buffer.concat([mac.subarray(0, 12), bytes]).toString('base64url');
}

type CursorCase = {
  readonly good: string;
  readonly method: string;
  readonly bad: string;
  readonly payload: string;
};

/** A cursor is ours for this list, or it is refused; a forged one at least stands within the route. */
export const cursor: Target<CursorCase> = {
  name: 'cursor',
  about: 'comes back as it went; anything else is refused, or where it can be forged stays within the route',
  generate(random) {
    const given = position(random);
    const good = codec.encode(given);
    const bad = random.once(4)
      ? random.text(60)
      : mutateText(random, good, ['A', '-', '_', '=', '+', '/', ' ', '\u0000', 'é'], [good]);
    const payload = random.once(8) ? random.text(30) : mutatedJson(random, treeOf(tuple(given)));
    return { good, method: given.method, bad, payload };
  },
  check({ good, method, bad, payload }) {
    const decoded = codec.decode(good, method);
    // A good cursor that was made small is no good cursor any more.
    if (decoded.kind === 'position') {
      assert.equal(codec.encode(decoded.position), good, 'goes out otherwise than it came');
      assert.ok(good.length <= MAX_CURSOR_LENGTH, 'longer than what is accepted');
      for (const other of METHODS)
        if (other !== method) assert.equal(codec.decode(good, other).kind, 'invalid');
      assert.equal(elsewhere.decode(good, method).kind, 'invalid', 'good on another route');
      assert.equal(sealed.decode(good, method).kind, 'invalid', 'good under another key');
      const own = sealed.encode(decoded.position);
      assert.deepEqual(sealed.decode(own, method), decoded);
      if (bad !== good) assert.equal(codec.decode(bad, method).kind, 'invalid', 'a tampered cursor is taken');
    }
    const forged = codec.decode(forge(payload), method);
    assert.equal(sealed.decode(forge(payload), method).kind, 'invalid');
    if (forged.kind === 'invalid') return 'forged: invalid';
    const { rank, excluded, offset, pages, cursor: inner, digest } = forged.position;
    for (const index of [rank, ...excluded])
      assert.ok(Number.isInteger(index) && index >= 0 && index < RANKS);
    assert.ok(!excluded.includes(rank) && new Set(excluded).size === excluded.length);
    for (const count of [offset, pages]) assert.ok(Number.isSafeInteger(count) && count >= 0);
    assert.ok((inner ?? '').length <= MAX_UPSTREAM_CURSOR_LENGTH && digest.length <= 64);
    return 'forged: within the route';
  },
};
