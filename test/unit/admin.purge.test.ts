import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { PURGEABLE, readPurge } from '../../src/admin/purge.ts';

const UPSTREAMS = new Set(['docs', 'city']);
const read = (value: unknown) =>
  readPurge(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), UPSTREAMS);

describe('what a purge is to drop', () => {
  const GOOD = [
    [{ all: true }, { kind: 'all' }],
    [{ upstream: 'docs' }, { kind: 'upstream', upstream: 'docs' }],
    [
      { upstream: 'docs', uri: 'docs://x' },
      { kind: 'resource', upstream: 'docs', uri: 'docs://x' },
    ],
    [
      { method: 'tools/list', upstream: 'city' },
      { kind: 'method', upstream: 'city', method: 'tools/list' },
    ],
  ] as const;
  for (const [body, request] of GOOD) {
    test(JSON.stringify(body), () => assert.deepEqual(read(body), { kind: 'read', request }));
  }

  const BAD: readonly (readonly [unknown, RegExp])[] = [
    ['', /write \{"all":true\}/],
    ['{"all":true', /write \{"all":true\}/],
    ['null', /write \{"all":true\}/],
    [[{ all: true }], /write \{"all":true\}/],
    [{}, /write \{"all":true\}/],
    [{ all: false }, /write \{"all":true\}/],
    [{ all: 'true' }, /write \{"all":true\}/],
    [{ all: true, upstream: 'docs' }, /write \{"all":true\}/],
    [{ uri: 'docs://x' }, /write \{"all":true\}/],
    [{ method: 'tools/list' }, /write \{"all":true\}/],
    [{ upstream: ['docs'] }, /write \{"all":true\}/],
    [{ upstream: 'dosc' }, /no such upstream; known: docs, city/],
    [{ upstream: '__proto__' }, /no such upstream/],
    [{ upstream: 'docs', url: 'docs://x' }, /unknown key "url"/],
    ['{"upstream":"docs","__proto__":{"uri":"x"}}', /unknown key "__proto__"/],
    [{ upstream: 'docs', uri: 'docs://x', method: 'resources/read' }, /uri or method, not both/],
    [{ upstream: 'docs', uri: '' }, /uri of a resource/],
    [{ upstream: 'docs', uri: null }, /uri of a resource/],
    [{ upstream: 'docs', method: 'tools/call' }, /a method that is cached: /],
    [{ upstream: 'docs', method: 1 }, /a method that is cached: /],
  ];
  for (const [body, message] of BAD) {
    test(`not ${typeof body === 'string' ? body || 'nothing' : JSON.stringify(body)}`, () => {
      const answer = read(body);
      assert.ok(answer.kind === 'bad');
      assert.match(answer.message, message);
    });
  }

  test('not what is no UTF-8', () => {
    const body = Buffer.from('{"upstream":"docs","uri":"docs://\xff"}', 'latin1');
    assert.equal(readPurge(body, UPSTREAMS).kind, 'bad');
  });

  test('a method that is cached is each of the six', () => {
    assert.deepEqual([...PURGEABLE].sort(), [
      'prompts/list',
      'resources/list',
      'resources/read',
      'resources/templates/list',
      'server/discover',
      'tools/list',
    ]);
  });

  test('no body raises, and no misspelt one drops everything', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        const answer = read(text);
        assert.ok(answer.kind === 'bad' || JSON.stringify(JSON.parse(text)) === '{"all":true}');
      }),
    );
  });
});
