/** Taking answers apart: what two parsers would read differently is no answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readAnswer } from '../../src/protocol/answer.ts';

const kindOf = (result: string): string =>
  readAnswer(new TextEncoder().encode(`{"jsonrpc":"2.0","id":1,"result":${result}}`), '1').kind;

for (const [what, result] of [
  ['contents', '{"contents":[{"uri":"a:b","text":"x"}],"contents":[]}'],
  ['resultType', '{"resultType":"complete","contents":[],"resultType":"input_required"}'],
  ['resources, once with an escape', '{"resources":[],"resour\\u0063es":[{"uri":"a:b","name":"x"}]}'],
  ['nextCursor', '{"tools":[],"nextCursor":"a","nextCursor":"b"}'],
] as const) {
  test(`R25: a result with ${what} twice is no answer: the client would read another value than the one checked`, () => {
    assert.equal(kindOf(result), 'broken');
  });
}

test('R20: unknown members of a result that come twice are passed on as they came', () => {
  assert.equal(kindOf('{"contents":[],"novel":1,"novel":2}'), 'result');
});

test('R26: a hint that comes twice is no hint, and the answer is still one', () => {
  assert.equal(kindOf('{"ttlMs":1,"ttlMs":60000,"cacheScope":"public","cacheScope":"private"}'), 'result');
});
