/** Structure-aware mutation: what is nearly right finds more than what is wholly wrong. */
import { type Pair, spell, type Tree } from './json-tree.ts';
import type { Random } from './random.ts';

const EDGE_BYTES: readonly number[] = [
  0, 9, 10, 13, 32, 34, 44, 47, 58, 91, 92, 93, 123, 125, 127, 128, 192, 237, 240, 255,
];

/** Flips, inserts, deletes, doubles and splices bytes, one to four times. */
export function mutateBytes(
  random: Random,
  seed: Uint8Array,
  tokens: readonly string[],
  others: readonly Uint8Array[],
): Uint8Array {
  let bytes = Buffer.from(seed);
  for (let round = random.between(1, 4); round > 0; round--)
    bytes = mutateOnce(random, bytes, tokens, others);
  return new Uint8Array(bytes);
}

function mutateOnce(
  random: Random,
  bytes: Buffer,
  tokens: readonly string[],
  others: readonly Uint8Array[],
): Buffer<ArrayBuffer> {
  const at = random.below(bytes.length + 1);
  const end = Math.min(bytes.length, at + 1 + random.size(40));
  const head = bytes.subarray(0, at);
  switch (random.below(8)) {
    case 0: {
      const out = Buffer.from(bytes);
      if (at < out.length) out[at] = (out[at] as number) ^ (1 << random.below(8));
      return out;
    }
    case 1: {
      const out = Buffer.from(bytes);
      if (at < out.length) out[at] = random.pick(EDGE_BYTES);
      return out;
    }
    case 2:
      return Buffer.concat([head, Buffer.from([random.pick(EDGE_BYTES)]), bytes.subarray(at)]);
    case 3:
      return Buffer.concat([head, Buffer.from(random.pick(tokens)), bytes.subarray(at)]);
    case 4:
      return Buffer.concat([head, bytes.subarray(end)]);
    case 5:
      return Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)]);
    case 6: {
      const other = Buffer.from(random.pick(others));
      return Buffer.concat([head, other.subarray(random.below(other.length + 1))]);
    }
    default:
      return random.once(3) ? Buffer.from(head) : Buffer.concat([bytes.subarray(at, end), bytes]);
  }
}

/** The same for text, by characters of UTF-16. */
export function mutateText(
  random: Random,
  seed: string,
  tokens: readonly string[],
  others: readonly string[],
): string {
  let text = seed;
  for (let round = random.between(1, 4); round > 0; round--) {
    const at = random.below(text.length + 1);
    const end = Math.min(text.length, at + 1 + random.size(40));
    switch (random.below(6)) {
      case 0:
        text = text.slice(0, at) + random.pick(tokens) + text.slice(at);
        break;
      case 1:
        text = text.slice(0, at) + text.slice(end);
        break;
      case 2:
        text = text.slice(0, end) + text.slice(at);
        break;
      case 3:
        text = text.slice(0, at) + random.text(3) + text.slice(end);
        break;
      case 4: {
        const other = random.pick(others);
        const from = random.below(other.length + 1);
        text = text.slice(0, at) + other.slice(from, from + random.size(200)) + text.slice(at);
        break;
      }
      default:
        text = text.slice(0, at) + random.pick(tokens) + text.slice(end);
    }
  }
  return text;
}

const ODD_SCALARS: readonly string[] = [
  'null',
  'true',
  '0',
  '-0',
  '-1',
  '1.5',
  '1e400',
  '9007199254740993',
  '123456789012345678901234567890',
  '2147483648',
  '""',
  '"x"',
  '"2026-07-28"',
  '"2.0"',
  '"\\u0000"',
  '"\\ud800"',
  '"\\ud83c\\udf0d"',
  '"\\u202e"',
  '"a\\nb"',
  '"🌍"',
  '[]',
  '{}',
  '[null]',
  '{"":null}',
  '{"__proto__":{"x":1}}',
].map(String);

const ODD_KEYS: readonly string[] = [
  '"__proto__"',
  '"constructor"',
  '""',
  '"toString"',
  '"\\u0000"',
  '"\\ud800"',
];

/** An odd value that is valid JSON. */
export function oddTree(random: Random): Tree {
  if (random.once(200)) return { kind: 'scalar', text: `${'['.repeat(500)}${']'.repeat(500)}` };
  if (random.once(10)) return { kind: 'scalar', text: JSON.stringify(random.text(20)) };
  return { kind: 'scalar', text: random.pick(ODD_SCALARS) };
}

/** Another way to spell a key: escapes, other case. */
function respelled(random: Random, keyText: string): string {
  const key = JSON.parse(keyText) as string;
  const at = random.below(key.length);
  const char = key[at] ?? '';
  switch (random.below(4)) {
    case 0:
      return JSON.stringify(key.toUpperCase());
    case 1:
      return JSON.stringify(
        key.slice(0, at) +
          (char === char.toLowerCase() ? char.toUpperCase() : char.toLowerCase()) +
          key.slice(at + 1),
      );
    case 2:
      // Folds to a plain letter in some parsers: the Kelvin sign, the long s.
      return JSON.stringify(key.replace('k', '\u212a').replace('s', '\u017f'));
    default: {
      if (char === '') return keyText;
      const escaped = `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
      return `${JSON.stringify(key.slice(0, at)).slice(0, -1)}${escaped}${JSON.stringify(key.slice(at + 1)).slice(1)}`;
    }
  }
}

/** Changes one place of a tree: the result is still JSON. */
export function mutateTree(random: Random, tree: Tree): Tree {
  if (tree.kind === 'scalar' || random.once(12)) return oddTree(random);
  if (tree.kind === 'array') {
    if (tree.items.length === 0) return { kind: 'array', items: [oddTree(random)] };
    const at = random.below(tree.items.length);
    const item = tree.items[at] as Tree;
    if (random.once(4)) return { kind: 'array', items: tree.items.toSpliced(at, random.below(2), item) };
    return { kind: 'array', items: tree.items.with(at, mutateTree(random, item)) };
  }
  const { members } = tree;
  if (members.length === 0) return { kind: 'object', members: [{ keyText: '"a"', value: oddTree(random) }] };
  const at = random.below(members.length);
  const pair = members[at] as Pair;
  switch (random.below(10)) {
    case 0:
      return { kind: 'object', members: members.toSpliced(at, 1) };
    case 1:
      return { kind: 'object', members: [...members, pair] };
    case 2:
      return { kind: 'object', members: [...members, { ...pair, value: oddTree(random) }] };
    case 3:
      return {
        kind: 'object',
        members: members.with(at, { ...pair, keyText: respelled(random, pair.keyText) }),
      };
    case 4: {
      const added = {
        keyText: respelled(random, pair.keyText),
        value: random.once(2) ? pair.value : oddTree(random),
      };
      return { kind: 'object', members: members.toSpliced(random.below(members.length + 1), 0, added) };
    }
    case 5:
      return {
        kind: 'object',
        members: members.toSpliced(at, 0, { keyText: random.pick(ODD_KEYS), value: oddTree(random) }),
      };
    default:
      return {
        kind: 'object',
        members: members.with(at, { ...pair, value: mutateTree(random, pair.value) }),
      };
  }
}

/** Text of a tree after up to three changes. */
export function mutatedJson(random: Random, tree: Tree): string {
  let changed = tree;
  for (let round = random.below(4); round > 0; round--) changed = mutateTree(random, changed);
  return spell(changed, random);
}

/** A tree out of nothing. */
export function anyTree(random: Random, depth = 4): Tree {
  const kind = depth === 0 ? 2 : random.below(4);
  if (kind === 0) {
    const members = random.many(random.size(8), () => ({
      keyText: random.once(4) ? random.pick(ODD_KEYS) : JSON.stringify(random.text(5)),
      value: anyTree(random, depth - 1),
    }));
    return { kind: 'object', members };
  }
  if (kind === 1)
    return { kind: 'array', items: random.many(random.size(8), () => anyTree(random, depth - 1)) };
  return oddTree(random);
}
