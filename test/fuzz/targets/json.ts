/** Bytes that are JSON, or nearly: the span scanner, the answer reader and the watcher. */
import assert from 'node:assert/strict';
import { readAnswer, tailMembers } from '../../../src/protocol/answer.ts';
import {
  arrayElements,
  MAX_JSON_DEPTH,
  type Member,
  objectMembers,
  type Span,
  stringValue,
  textOf,
  wholeObject,
  wholeValue,
} from '../../../src/protocol/json.ts';
import { JsonWatch } from '../../../src/protocol/json-watch.ts';
import { META_OF_ONE_REQUEST } from '../../../src/protocol/meta.ts';
import { ANSWERS, BODIES } from '../corpus.ts';
import type { Target } from '../engine.ts';
import { keyOf, plain, readTree, spell, type Tree, valuesOf } from '../json-tree.ts';
import { anyTree, mutateBytes, mutatedJson } from '../mutate.ts';
import type { Random } from '../random.ts';

const OPEN_BRACE = 0x7b;
const encoder = new TextEncoder();
const TOKENS: readonly string[] = [
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"',
  '\\',
  '\\u00',
  'nul',
  '1e',
  '-',
  '0',
  '.5',
  '\ufeff',
  '"ttlMs":1,',
  '"result":{},',
  '"id":1,',
  '"resultType":"complete",',
  '"_meta":{"traceparent":"x"},',
  '"error":{"code":1},',
  '"__proto__":1,',
  ' ',
];
const SEEDS = [...ANSWERS, ...BODIES];
const SEED_BYTES = SEEDS.map((tree) => encoder.encode(spell(tree)));

function document(random: Random): Uint8Array {
  const tree = random.once(4) ? anyTree(random) : random.pick(SEEDS);
  const text = encoder.encode(mutatedJson(random, tree));
  return random.once(2) ? mutateBytes(random, text, TOKENS, SEED_BYTES) : text;
}

type Bytes = { readonly bytes: Uint8Array };

function decoded(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Accepts what `JSON.parse` accepts, and finds what another reader finds, where it finds it (R6). */
export const scanner: Target<Bytes> = {
  name: 'span-scanner',
  about: 'accepts exactly what JSON.parse accepts, with the same values in the same places',
  generate: (random) => ({ bytes: document(random) }),
  check({ bytes }) {
    const text = decoded(bytes);
    const whole = wholeValue(bytes);
    if (text === undefined || !isJson(text)) {
      assert.equal(whole, undefined, 'accepts what is no JSON');
      assert.equal(wholeObject(bytes, 'result'), undefined, 'takes apart what is no JSON');
      return text === undefined ? 'not UTF-8' : 'no JSON';
    }
    const tree = readTree(text, MAX_JSON_DEPTH);
    assert.equal(whole !== undefined, tree !== undefined, 'refuses what is JSON');
    if (whole === undefined || tree === undefined) return 'too deep';
    compare(bytes, whole, tree);
    onePass(bytes, whole, tree, ['result']);
    onePass(bytes, whole, tree, ['params', '_meta']);
    return tree.kind;
  },
};

/** One pass along `path` finds what one pass for each level finds. */
function onePass(bytes: Uint8Array, whole: Span, tree: Tree, path: readonly string[]): void {
  const taken = wholeObject(bytes, ...path);
  assert.equal(taken !== undefined, tree.kind === 'object', 'an object or not?');
  if (taken !== undefined) sameMembers(bytes, taken, whole, path);
}

function sameMembers(
  bytes: Uint8Array,
  taken: readonly Member[],
  span: Span,
  [inner, ...path]: readonly string[],
): void {
  const bare = ({ key, start, end }: Member): object => ({ key, start, end });
  assert.deepEqual(taken.map(bare), objectMembers(bytes, span.start)?.map(bare));
  for (const member of taken) {
    assert.equal(member.members !== undefined, member.key === inner && bytes[member.start] === OPEN_BRACE);
    if (member.members !== undefined) sameMembers(bytes, member.members, member, path);
  }
}

/** The spans of a value are those of the tree, all the way down. */
function compare(bytes: Uint8Array, span: Span, tree: Tree): void {
  const text = textOf(bytes, span);
  switch (tree.kind) {
    case 'scalar':
      assert.equal(text, tree.text);
      if (text.startsWith('"')) assert.equal(stringValue(bytes, span), JSON.parse(text));
      else assert.equal(stringValue(bytes, span), undefined);
      return;
    case 'array': {
      const elements = arrayElements(bytes, span.start);
      assert.equal(elements?.length, tree.items.length);
      for (const [index, item] of tree.items.entries()) compare(bytes, elements?.[index] as Span, item);
      return;
    }
    case 'object': {
      const members = objectMembers(bytes, span.start);
      assert.equal(JSON.stringify(members?.map(({ key }) => key)), JSON.stringify(tree.members.map(keyOf)));
      for (const [index, pair] of tree.members.entries())
        compare(bytes, members?.[index] as Span, pair.value);
    }
  }
}

const RESERVED: ReadonlySet<string> = new Set(['resultType', 'ttlMs', 'cacheScope']);

/** What it takes for a result can be spliced, and says what was received but for what is the gateway's to say. */
export const answerReader: Target<Bytes> = {
  name: 'answer-reader',
  about:
    'never throws; a tail splices back into valid JSON that says what was received, minus reserved members',
  generate(random) {
    const tree = random.once(10) ? anyTree(random) : random.pick(ANSWERS);
    const bytes = encoder.encode(mutatedJson(random, tree));
    return { bytes: random.once(4) ? mutateBytes(random, bytes, TOKENS, SEED_BYTES) : bytes };
  },
  check({ bytes }) {
    const answer = readAnswer(bytes, '1');
    if (answer.kind === 'broken') return `broken: ${answer.reason}`;
    const tree = readTree(decoded(bytes) ?? '', MAX_JSON_DEPTH + 4);
    assert.ok(tree !== undefined, 'read an answer in what is no JSON');
    if (answer.kind === 'error') {
      const error = valuesOf(tree, 'error')[0];
      assert.ok(Number.isSafeInteger(answer.code));
      assert.deepEqual(valuesOf(tree, 'result'), [], 'an error with a result');
      const data = valuesOf(error, 'data')[0];
      assert.equal(answer.data === undefined, data === undefined);
      if (answer.data !== undefined) assert.deepEqual(readTree(answer.data, MAX_JSON_DEPTH + 4), data);
      JSON.parse(`{"code":${answer.code},"message":${JSON.stringify(answer.message)}}`);
      return 'error';
    }
    const [result, second] = valuesOf(tree, 'result');
    assert.ok(result?.kind === 'object' && second === undefined && valuesOf(tree, 'error').length === 0);
    const kept = result.members.filter((pair) => !RESERVED.has(keyOf(pair)));
    checkTail(
      answer.result.tail,
      kept.map((pair) => [keyOf(pair), pair.value]),
    );
    const storable = kept.map(
      (pair) => [keyOf(pair), keyOf(pair) === '_meta' ? withoutOneRequest(pair.value) : pair.value] as const,
    );
    checkTail(answer.result.storable, storable);
    const ttl = valuesOf(result, 'ttlMs');
    assert.equal(answer.hints.ttlMs === undefined, ttl.length === 0);
    assert.equal(typeof (answer.hints.cacheScope ?? ''), 'string');
    return `result ${answer.resultType === 'complete' ? 'complete' : 'other'}`;
  },
};

function withoutOneRequest(meta: Tree): Tree {
  if (meta.kind !== 'object') return meta;
  return { kind: 'object', members: meta.members.filter((pair) => !META_OF_ONE_REQUEST.has(keyOf(pair))) };
}

function checkTail(tail: Uint8Array, expected: readonly (readonly [string, Tree])[]): void {
  const spliced = `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","ttlMs":5,"cacheScope":"private"${decoded(tail) ?? '!'}`;
  assert.ok(isJson(spliced), 'a spliced answer is no JSON');
  const result = valuesOf(readTree(spliced, MAX_JSON_DEPTH + 4), 'result')[0];
  assert.ok(result?.kind === 'object');
  assert.deepEqual(
    result.members.slice(3).map((pair) => [keyOf(pair), plain(pair.value)]),
    expected.map(([key, value]) => [key, plain(value)]),
    'a spliced answer says something else',
  );
  assert.deepEqual(
    tailMembers(tail).map(({ key }) => key),
    expected.map(([key]) => key),
  );
}

/** What is seen of a message that goes by does not depend on how it was cut, and is what is there (R8). */
export const jsonWatch: Target<{ readonly bytes: Uint8Array; readonly cuts: readonly number[] }> = {
  name: 'json-watch',
  about: 'the same whatever the chunks; of a valid object the id, kind and end that a parser finds',
  generate: (random) => ({
    bytes: document(random),
    cuts: random.many(random.between(1, 5), () => random.between(1, 9)),
  }),
  check({ bytes, cuts }) {
    const seen = watched([bytes]);
    assert.deepEqual(watched(chunksOf(bytes, cuts)), seen, 'the chunks matter');
    const text = decoded(bytes);
    const tree = text === undefined ? undefined : readTree(text, MAX_JSON_DEPTH);
    if (tree?.kind !== 'object') {
      if (tree !== undefined) assert.equal(seen.state, 'broken', 'takes another value for an object');
      return seen.state;
    }
    const ids = valuesOf(tree, 'id');
    const [id] = ids;
    assert.equal(seen.state, 'complete');
    assert.equal(seen.hasId, ids.length > 0);
    assert.equal(seen.isError, valuesOf(tree, 'error').length > 0);
    const expected =
      ids.length === 1 && id?.kind === 'scalar' && !/^[[{]/.test(id.text) ? id.text : undefined;
    if (expected === undefined || Buffer.byteLength(expected) <= 1000) assert.equal(seen.id, expected);
    const method = valuesOf(tree, 'method').length > 0;
    const response = valuesOf(tree, 'result').length + valuesOf(tree, 'error').length > 0;
    const kind = method ? (ids.length > 0 ? 'request' : 'notification') : response ? 'response' : 'unknown';
    assert.equal(seen.kind, kind);
    return `complete ${kind}`;
  },
};

function watched(chunks: readonly Uint8Array[]) {
  const watch = new JsonWatch();
  for (const chunk of chunks) watch.push(chunk);
  const { state, id, kind, isError, hasId } = watch;
  return { state, id, kind, isError, hasId };
}

/** Cuts bytes; the sizes come over and over. Copies, as a socket gives them. */
export function chunksOf(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const out: Uint8Array[] = [];
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const size = Math.max(1, sizes[n % Math.max(1, sizes.length)] ?? 1);
    out.push(bytes.slice(at, at + size));
    at += size;
  }
  return out;
}
