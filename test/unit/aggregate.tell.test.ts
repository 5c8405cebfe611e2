/** Answers that are no cacheable results: theirs is everything but the id and the resultType. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { catalogue, fleet, type Scripted, type Told } from '../support/scripted.ts';

function asked(method: string, params: Record<string, unknown>, answer: Scripted): Promise<Told> {
  const f = fleet({
    upstreams: [{ name: 'a', script: (m, p, r) => (m === method ? answer : catalogue({})(m, p, r)) }],
  });
  return f.ask(method, params);
}
const complete = (answer: Scripted): Promise<Told> =>
  asked(
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'x', value: '' } },
    answer,
  );

test('R21: members of a completion that are named like hints are not removed', async () => {
  const { result } = await complete({
    result: { ttlMs: 7, cacheScope: 'public', completion: { values: [] } },
  });
  assert.deepEqual(result, {
    resultType: 'complete',
    ttlMs: 7,
    cacheScope: 'public',
    completion: { values: [] },
  });
});

test('R21: members of a question back that are named like hints are not removed', async () => {
  const said = { resultType: 'input_required', inputRequests: {}, ttlMs: 7, cacheScope: 'public' };
  const { result } = await asked('resources/read', { uri: 'res://x' }, { result: said });
  assert.deepEqual(result, said);
});

test('R37: an upstream’s resultType is written as the string it is', async () => {
  const said = { resultType: 'x","evil":"1\n', completion: { values: [] } };
  const { result } = await complete({ result: said });
  assert.deepEqual(result, said);
});
