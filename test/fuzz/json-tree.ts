/**
 * A JSON reader and writer of the tests' own, written from RFC 8259; it shares nothing with the span scanner.
 * A tree keeps how everything was spelled, so that two parsers' readings of it can be compared, and it can be
 * spelled in other ways than `JSON.stringify` would.
 */
import type { Random } from './random.ts';

export type Tree =
  | { readonly kind: 'scalar'; readonly text: string }
  | { readonly kind: 'object'; readonly members: readonly Pair[] }
  | { readonly kind: 'array'; readonly items: readonly Tree[] };

export interface Pair {
  /** As spelled, quotes included. */
  readonly keyText: string;
  readonly value: Tree;
}

const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SCALAR = /true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;
const SPACE = /[ \t\r\n]*/y;

/** Reads exactly one value, at most `depth` objects and arrays deep; undefined for anything else. */
export function readTree(text: string, depth = Number.POSITIVE_INFINITY): Tree | undefined {
  let at = 0;
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) at += found.length;
    return found;
  };
  const token = (char: string): boolean => {
    match(SPACE);
    if (text[at] !== char) return false;
    at++;
    return true;
  };
  const value = (left: number): Tree | undefined => {
    match(SPACE);
    const opening = text[at];
    if (opening === '{' || opening === '[') {
      if (left === 0) return undefined;
      at++;
      return opening === '{' ? object(left - 1) : array(left - 1);
    }
    const scalar = opening === '"' ? match(STRING) : match(SCALAR);
    return scalar === undefined ? undefined : { kind: 'scalar', text: scalar };
  };
  const object = (left: number): Tree | undefined => {
    const members: Pair[] = [];
    if (token('}')) return { kind: 'object', members };
    do {
      match(SPACE);
      const keyText = match(STRING);
      if (keyText === undefined || !token(':')) return undefined;
      const member = value(left);
      if (member === undefined) return undefined;
      members.push({ keyText, value: member });
    } while (token(','));
    return token('}') ? { kind: 'object', members } : undefined;
  };
  const array = (left: number): Tree | undefined => {
    const items: Tree[] = [];
    if (token(']')) return { kind: 'array', items };
    do {
      const item = value(left);
      if (item === undefined) return undefined;
      items.push(item);
    } while (token(','));
    return token(']') ? { kind: 'array', items } : undefined;
  };
  const tree = value(depth);
  match(SPACE);
  return tree !== undefined && at === text.length ? tree : undefined;
}

/** The key that a pair's text spells. */
export function keyOf({ keyText }: Pair): string {
  return JSON.parse(keyText) as string;
}

/** The members with this key, in order. */
export function valuesOf(tree: Tree | undefined, key: string): readonly Tree[] {
  if (tree?.kind !== 'object') return [];
  return tree.members.filter((pair) => keyOf(pair) === key).map(({ value }) => value);
}

/** The string that a tree is; undefined when it is none. */
export function stringOf(tree: Tree | undefined): string | undefined {
  return tree?.kind === 'scalar' && tree.text.startsWith('"') ? (JSON.parse(tree.text) as string) : undefined;
}

/** Spells a tree; with a source of chance, with white space in odd places. */
export function spell(tree: Tree, random?: Random): string {
  const gap = (): string => (random?.once(12) ? random.pick([' ', '\n', '\t', '\r\n  ']) : '');
  const go = (one: Tree): string => {
    switch (one.kind) {
      case 'scalar':
        return one.text;
      case 'object':
        return `{${gap()}${one.members.map((pair) => `${pair.keyText}${gap()}:${gap()}${go(pair.value)}${gap()}`).join(`,${gap()}`)}}`;
      case 'array':
        return `[${gap()}${one.items.map((item) => `${go(item)}${gap()}`).join(`,${gap()}`)}]`;
    }
  };
  return gap() + go(tree) + gap();
}

/** The tree of a plain value. */
export function treeOf(value: unknown): Tree {
  return readTree(JSON.stringify(value)) as Tree;
}

/** A tree to be compared: scalars as spelled, keys by value, since the gateway may spell those in its own way. */
export function plain(tree: Tree): unknown {
  switch (tree.kind) {
    case 'scalar':
      return tree.text;
    case 'array':
      return tree.items.map(plain);
    case 'object':
      return tree.members.map((pair) => [keyOf(pair), plain(pair.value)]);
  }
}
