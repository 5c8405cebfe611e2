import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { explain } from '../../src/admin/how.ts';
import { cut, printable } from '../../src/admin/printable.ts';
import { cacheHeaders, MISS_HEADERS } from '../../src/aggregate/reply.ts';
import type { CacheOutcome } from '../../src/cache/types.ts';

const miss = (
  rest: Partial<Extract<CacheOutcome, { kind: 'miss' }>>,
): Extract<CacheOutcome, { kind: 'miss' }> => ({
  ...{ kind: 'miss', why: 'uri-miss', stored: 'stored', collapsed: false },
  ...rest,
});

describe('how an answer came about', () => {
  const TOLD: readonly (readonly [CacheOutcome, string, RegExp])[] = [
    [{ kind: 'hit', tier: 'memory', ageMs: 3_000, ttlMs: 9 }, 'hit', /from memory; no upstream was asked/],
    [{ kind: 'hit', tier: 'redis', ageMs: 3_000, ttlMs: 9 }, 'hit', /from Redis/],
    [{ kind: 'stale', ageMs: 3_000 }, 'stale', /the last good answer stands in/],
    [{ kind: 'bypass', why: 'disabled' }, 'bypass', /cache: false/],
    [{ kind: 'bypass', why: 'mrtr' }, 'bypass', /answer to a question/],
    [miss({}), 'miss', /the upstream was asked\. The answer is kept\./],
    [miss({ stored: 'ttl-zero' }), 'miss', /not kept: it has no time to live/],
    [miss({ stored: 'too-large' }), 'miss', /not kept: it is too large/],
    [miss({ stored: 'superseded' }), 'miss', /something newer came first/],
    [miss({ stored: 'not-storable' }), 'miss', /It is not kept\.$/],
    [miss({ collapsed: true }), 'miss', /was under way; its answer was shared/],
    [miss({ why: 'stale' }), 'miss', /had had its time/],
    [miss({ why: 'rewatch' }), 'miss', /may have changed unnoticed/],
  ];
  for (const [outcome, kind, means] of TOLD) {
    const headers = cacheHeaders(outcome);
    test(`${headers['cache-status']} is a ${kind}`, () => {
      const told = explain(headers);
      assert.equal(told.kind, kind);
      assert.match(told.means, means);
      assert.equal(told.cacheStatus, headers['cache-status']);
      assert.equal(told.ageSeconds, 'ageMs' in outcome ? 3 : undefined);
    });
  }

  test('of a merged list is a miss of its own, and of nothing the gateway', () => {
    assert.equal(explain(MISS_HEADERS).means, 'At least one upstream was asked.');
    assert.match(explain({ 'cache-status': 'headgate; fwd=miss; detail=incomplete' }).means, /missing in it/);
    assert.deepEqual([explain({}).kind, explain({}).ageSeconds], ['none', undefined]);
  });
});

describe('text that somebody else chose', () => {
  test('is on one line in visible ASCII, and cut', () => {
    assert.equal(printable('a\nb\u001b[2Jc\u202ed\u00e9', 100), 'a?b?[2Jc?d?');
    assert.equal(printable('abcdef', 3), 'abc...');
  });

  test('is never cut in the middle of a character', () => {
    assert.equal(cut('ab\u{1f600}', 3), 'ab');
    assert.equal(cut('ab\u{1f600}', 4), 'ab\u{1f600}');
  });
});
