/** Bytes that flow: the scanner and the reader of results that are too large to be held, against those of whole bytes. */
import assert from 'node:assert/strict';
import { type Answer, joinBytes, readAnswer, tailMembers } from '../../../src/protocol/answer.ts';
import { MAX_JSON_DEPTH, skipSpace, valueEnd, wholeObject } from '../../../src/protocol/json.ts';
import { ValueScan } from '../../../src/protocol/json-flow.ts';
import { MAX_KEY_BYTES } from '../../../src/protocol/json-watch.ts';
import { ResultFlow } from '../../../src/protocol/result-flow.ts';
import { ANSWERS } from '../corpus.ts';
import type { Target } from '../engine.ts';
import { readTree, spell, type Tree, treeOf } from '../json-tree.ts';
import { anyTree, mutateBytes, mutatedJson } from '../mutate.ts';
import type { Random } from '../random.ts';
import { chunksOf } from './json.ts';

const ARRAY = 'contents';
const ARRAY_START = 0x5b;
const QUOTE = 0x22;
/** Members of a message that `ResultFlow` remembers at least. */
const MEMBERS_REMEMBERED = 64;
const encoder = new TextEncoder();

const escaped = (name: string): string =>
  [...name].map((char) => `\\u00${char.charCodeAt(0).toString(16).padStart(2, '0')}`).join('');
const LONG = 'k'.repeat(MAX_KEY_BYTES);
const TOKENS: readonly string[] = [
  ...[
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\\',
    '\\u00',
    '\\ud83c',
    'nul',
    '1e',
    '-',
    '.5',
    '\ufeff',
    ' ',
    'é',
    '🌍',
  ],
  '"id":1,',
  '"id":"hg-1",',
  '"error":null,',
  '"result":{"contents":[]},',
  '"contents":[],',
  '"contents":{},',
  `"${escaped('contents')}":[],`,
  '"resources":[],',
  `"${escaped('resourceTemplates')}":[],`,
  '"nextCursor":"x",',
  '"resultType":"complete",',
  `"${escaped('resultType')}":"${escaped('complete')}",`,
  '"resultType":"input_required",',
  '"ttlMs":1,',
  '"cacheScope":"private",',
  '"_meta":{"traceparent":"x"},',
  '"__proto__":1,',
  '"é":1,',
  '"\\u00e9":2,',
  `"${LONG}":1,`,
  `"${LONG}k":1,`,
  `"${'é'.repeat(MAX_KEY_BYTES / 2)}é":1,`,
  '['.repeat(MAX_JSON_DEPTH - 3),
];
const MEMBERS = TOKENS.filter((token) => token.startsWith('"') && token.endsWith(','));
/** The same name in another spelling. */
const TWINS: ReadonlyMap<string, string> = new Map([
  ['"é":1,', '"\\u00e9":2,'],
  ['"contents":[],', `"${escaped('contents')}":[],`],
]);
/** UTF-8 at its edges (Unicode, table 3-7), on both sides of each. */
const SEQUENCES: readonly (readonly number[])[] = [
  [0xc2, 0x80],
  [0xc1, 0xbf],
  [0xe0, 0xa0, 0x80],
  [0xe0, 0x9f, 0xbf],
  [0xe2, 0x82],
  [0xed, 0x9f, 0xbf],
  [0xed, 0xa0, 0x80],
  [0xf0, 0x90, 0x80, 0x80],
  [0xf0, 0x8f, 0xbf, 0xbf],
  [0xf4, 0x8f, 0xbf, 0xbf],
  [0xf4, 0x90, 0x80, 0x80],
  [0xf5, 0x80, 0x80, 0x80],
  [0x80],
];
/** Reads, the last with what is decided behind what flows. */
const READS: readonly Tree[] = [
  ...ANSWERS.slice(0, 2),
  treeOf({
    result: {
      contents: [
        { uri: 'file:///a', blob: 'AAAA'.repeat(20) },
        { uri: 'file:///b', text: '"\\\n\u2028' },
      ],
      'acme/own': { a: [1, 2.5e-7, null, true], '': {} },
      ttlMs: 5,
      cacheScope: 'private',
      resultType: 'complete',
    },
    jsonrpc: '2.0',
    id: 1,
  }),
];
const SEED_BYTES = ANSWERS.map((tree) => encoder.encode(spell(tree)));

interface Flowing extends Readonly<Record<string, Uint8Array | string | readonly number[]>> {
  readonly bytes: Uint8Array;
  /** JSON text of the id that is waited for. */
  readonly id: string;
  readonly cuts: readonly number[];
}

const cutsOf = (random: Random): number[] => random.many(random.between(1, 6), () => random.between(1, 24));

function answerBytes(random: Random): Uint8Array {
  const tree = random.once(20) ? anyTree(random) : random.once(6) ? random.pick(ANSWERS) : random.pick(READS);
  return spoilt(random, tree, 5);
}

/** The bytes of a changed tree, with members and characters at the edges of what may be; damaged once in `times`. */
function spoilt(random: Random, tree: Tree, times: number): Uint8Array {
  let text = mutatedJson(random, tree);
  if (random.once(3)) text = withMembers(random, text);
  let bytes = encoder.encode(text);
  if (random.once(8)) bytes = withSequence(random, bytes);
  return random.once(times) ? mutateBytes(random, bytes, TOKENS, SEED_BYTES) : bytes;
}

/** With one member about as deep as any may lie, or with one or two others, which may be the same. */
function withMembers(random: Random, text: string): string {
  const places = [...text.matchAll(/[{,](?=\s*")/g)].map(({ index }) => index + 1);
  const place = (): number => random.pick(places.length === 0 ? [0] : places);
  if (random.once(5)) {
    const depth = MAX_JSON_DEPTH - random.between(0, 4);
    return inserted(text, place(), `"deep":${'['.repeat(depth)}${']'.repeat(depth)},`);
  }
  const member = random.pick(MEMBERS);
  const second = random.once(2) ? (TWINS.get(member) ?? member) : random.pick(MEMBERS);
  const [first = 0, last = 0] = [place(), place()].sort((a, b) => a - b);
  return inserted(random.once(3) ? text : inserted(text, last, second), first, member);
}

function inserted(text: string, at: number, member: string): string {
  return text.slice(0, at) + member + text.slice(at);
}

/** With bytes that are UTF-8 in a string, or nearly. */
function withSequence(random: Random, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const quotes = [...bytes.keys()].filter((at) => bytes[at] === QUOTE);
  const at = quotes.length === 0 ? 0 : random.pick(quotes) + 1;
  const sequence = Uint8Array.from(random.pick(SEQUENCES));
  return Uint8Array.from([...bytes.subarray(0, at), ...sequence, ...bytes.subarray(at)]);
}

interface Flowed {
  readonly state: ResultFlow['state'];
  readonly reason: string;
  /** What the client has been given, its end included where there is one. */
  readonly said: Buffer;
}

function flowed(chunks: readonly Uint8Array[], id: string): Flowed {
  const flow = new ResultFlow({ id, array: ARRAY });
  const said: Uint8Array[] = [];
  let isBroken = false;
  for (const chunk of chunks) {
    const pieces = flow.push(chunk);
    assert.ok(pieces.length === 0 || (flow.begun && !isBroken), 'says something that it must not');
    isBroken ||= flow.state === 'broken';
    assert.equal(flow.state === 'broken', isBroken, 'is whole again');
    said.push(...pieces);
  }
  if (flow.state === 'complete') said.push(flow.end);
  return { state: flow.state, reason: flow.reason, said: Buffer.from(joinBytes(said)) };
}

/** The tail of a read that the reader of whole answers finds, and that may be a large one's; or why there is none. */
function wholeTail(answer: Answer): Uint8Array | string {
  if (answer.kind === 'broken') return `broken: ${answer.reason}`;
  // An error is small. Were it not, it would be too large to be read.
  if (answer.kind === 'error') return 'an error';
  // The head of a large answer says `complete`, and whoever asks for it reads an array.
  if (answer.resultType !== 'complete') return 'another result type';
  const { tail } = answer.result;
  const array = tailMembers(tail).find(({ key }) => key === ARRAY);
  return array !== undefined && tail[array.start] === ARRAY_START ? tail : `no ${ARRAY}`;
}

/** The same tail with its keys as `JSON.stringify` spells them, as `readAnswer` does: what flows keeps their spelling. */
function respelled(tail: Uint8Array): Buffer {
  const pairs = tailMembers(tail).flatMap(({ key, start, end }) => [
    encoder.encode(`,${JSON.stringify(key)}:`),
    tail.subarray(start, end),
  ]);
  return Buffer.from(joinBytes([...pairs, encoder.encode('}}')]));
}

/** True when a member of the message has a name that is too long, as it is spelled, to be one that is remembered. */
function hasLongName(bytes: Uint8Array): boolean {
  const tree = readTree(Buffer.from(bytes).toString('utf8'));
  if (tree?.kind !== 'object') return false;
  return tree.members.some(({ keyText }) => Buffer.byteLength(keyText) > MAX_KEY_BYTES + 2);
}

/**
 * What flows is what is read whole, and is refused for the same. Three things differ, each for want of holding it:
 * keys keep their spelling; more than {@link MEMBERS_REMEMBERED} members beside the result are refused; and of those
 * members one with a name above {@link MAX_KEY_BYTES} may come twice: no part of it is passed on.
 */
export const resultFlow: Target<Flowing> = {
  name: 'result-flow',
  about: 'in any chunks the result that the reader of whole answers finds, byte for byte, or no end',
  generate: (random) => ({
    bytes: answerBytes(random),
    id: random.once(40) ? '"hg-1"' : '1',
    cuts: cutsOf(random),
  }),
  check({ bytes, id, cuts }) {
    const whole = flowed([bytes], id);
    const single = flowed(chunksOf(bytes, [1]), id);
    for (const other of [flowed(chunksOf(bytes, cuts), id), single]) {
      assert.equal(other.state, whole.state, 'the chunks matter');
      if (whole.state === 'complete') assert.deepEqual(other.said, whole.said, 'the chunks matter');
      else assert.ok(single.said.indexOf(other.said) === 0, 'the chunks matter');
    }
    const expected = wholeTail(readAnswer(bytes, id));
    if (typeof expected === 'string') {
      if (whole.state !== 'complete') return expected;
      assert.equal(expected, 'broken: a member came twice');
      assert.ok(hasLongName(bytes), 'is given an end, and is no answer');
      return 'a long name twice';
    }
    if (whole.state !== 'complete') {
      assert.ok((wholeObject(bytes)?.length ?? 0) > MEMBERS_REMEMBERED, `refused: ${whole.reason}`);
      return 'many members';
    }
    JSON.parse(`{"result":{"resultType":"complete"${whole.said}`);
    assert.deepEqual(respelled(whole.said), Buffer.from(expected), 'says something else');
    return whole.said.equals(expected) ? 'the same' : 'the same but for the spelling of keys';
  },
};

/** Finds the end of a value where the span scanner finds it, and none where it finds none. */
export const flowScanner: Target<{
  readonly bytes: Uint8Array;
  readonly depth: number;
  readonly cuts: readonly number[];
}> = {
  name: 'flow-scanner',
  about: 'in any chunks a value ends where the span scanner says, or is none',
  generate(random) {
    const tree = random.once(2) ? anyTree(random) : random.pick(ANSWERS);
    return {
      bytes: spoilt(random, tree, 2),
      depth: random.below(3),
      cuts: cutsOf(random),
    };
  },
  check({ bytes, depth, cuts }) {
    // A number ends with what follows it: at the end of the bytes it is not known to be whole.
    const ended = joinBytes([bytes, Uint8Array.of(0x20)]);
    const end = valueEnd(bytes, skipSpace(bytes, 0), depth);
    for (const chunks of [[ended], chunksOf(ended, cuts), chunksOf(ended, [1])]) {
      const found = scanned(chunks, depth);
      if (end < 0) assert.notEqual(found.state, 'done', 'ends what is no value');
      else assert.deepEqual(found, { state: 'done', end });
    }
    return end < 0 ? 'no value' : end === bytes.length ? 'a value' : 'a value and more';
  },
};

function scanned(
  chunks: readonly Uint8Array[],
  depth: number,
): { readonly state: string; readonly end: number } {
  const scan = new ValueScan();
  scan.reset(depth);
  let end = 0;
  for (const chunk of chunks) {
    const at = scan.push(chunk, 0);
    end += at;
    if (at < chunk.length) break;
  }
  return { state: scan.state, end };
}
