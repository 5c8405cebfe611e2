/**
 * The span scanner: finds where JSON values begin and end in received bytes, without making them.
 *
 * What the gateway passes on is cut out of the bytes it received, so that big integers, `1e400`, `-0`,
 * duplicate keys and escapes survive; `JSON.parse` would lose them. The scanner is strict (RFC 8259, UTF-8
 * validated, no BOM): what it accepts, every conforming parser accepts with the same structure.
 * *Never* throws. *Bounded by* {@link MAX_JSON_DEPTH}; linear in the bytes.
 */

/** Deepest nesting accepted: far above any real message, far below what overflows a recursive parser. */
export const MAX_JSON_DEPTH = 512;

/** A value's place in the bytes: `[start, end)`. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** One member of an object; the span is the value's. */
export interface Member extends Span {
  /** The key, unescaped. */
  readonly key: string;
  /** The value's own members, where they were asked for. */
  readonly members?: readonly Member[] | undefined;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** 1 for every byte that stands in a string for itself, alone. */
const PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte < 0x80 && byte !== QUOTE && byte !== BACKSLASH ? 1 : 0,
);

// A BOM inside a string is data: the decoder must not swallow it.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The first byte at or after `at` that is not JSON white space. */
export function skipSpace(bytes: Uint8Array, at: number): number {
  let i = at;
  for (;;) {
    const byte = bytes[i];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return i;
    i++;
  }
}

/** The span of the one value that the bytes hold, or undefined when they are not exactly one valid JSON value. */
export function wholeValue(bytes: Uint8Array): Span | undefined {
  const start = skipSpace(bytes, 0);
  const end = valueEnd(bytes, start);
  if (end < 0 || skipSpace(bytes, end) !== bytes.length) return undefined;
  return { start, end };
}

/**
 * The index just past the value that starts at `at`, or -1 when no valid value starts there.
 * Iterative: nesting costs no stack. `depth`: how deep the value itself lies.
 */
export function valueEnd(bytes: Uint8Array, at: number, depth = 0): number {
  const first = bytes[at];
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return scalarEnd(bytes, at);
  const closers: number[] = [];
  let i = at;
  for (;;) {
    // Here `i` stands at the first byte of a value.
    const byte = bytes[i];
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (closers.length + depth >= MAX_JSON_DEPTH) return -1;
      const closer = byte === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET;
      i = skipSpace(bytes, i + 1);
      if (bytes[i] !== closer) {
        closers.push(closer);
        if (closer === CLOSE_BRACE) i = keyEnd(bytes, i);
        if (i < 0) return -1;
        continue;
      }
      i++;
    } else {
      i = scalarEnd(bytes, i);
      if (i < 0) return -1;
    }
    // A value has just ended: close what ends with it, or go to the next member.
    for (;;) {
      const closer = closers.at(-1);
      if (closer === undefined) return i;
      i = skipSpace(bytes, i);
      if (bytes[i] === closer) {
        closers.pop();
        i++;
        continue;
      }
      if (bytes[i] !== COMMA) return -1;
      i = skipSpace(bytes, i + 1);
      if (closer === CLOSE_BRACE) i = keyEnd(bytes, i);
      if (i < 0) return -1;
      break;
    }
  }
}

/** From the quote of a key to the first byte of its value, or -1. */
function keyEnd(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== QUOTE) return -1;
  const end = stringEnd(bytes, at);
  if (end < 0) return -1;
  const colon = skipSpace(bytes, end);
  return bytes[colon] === COLON ? skipSpace(bytes, colon + 1) : -1;
}

function scalarEnd(bytes: Uint8Array, at: number): number {
  switch (bytes[at]) {
    case QUOTE:
      return stringEnd(bytes, at);
    case 0x74: // true
      return bytes[at + 1] === 0x72 && bytes[at + 2] === 0x75 && bytes[at + 3] === 0x65 ? at + 4 : -1;
    case 0x66: // false
      return bytes[at + 1] === 0x61 &&
        bytes[at + 2] === 0x6c &&
        bytes[at + 3] === 0x73 &&
        bytes[at + 4] === 0x65
        ? at + 5
        : -1;
    case 0x6e: // null
      return bytes[at + 1] === 0x75 && bytes[at + 2] === 0x6c && bytes[at + 3] === 0x6c ? at + 4 : -1;
    default:
      return numberEnd(bytes, at);
  }
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function digitsEnd(bytes: Uint8Array, at: number): number {
  let i = at;
  while (isDigit(bytes[i])) i++;
  return i === at ? -1 : i;
}

function numberEnd(bytes: Uint8Array, at: number): number {
  let i = bytes[at] === 0x2d ? at + 1 : at;
  i = bytes[i] === 0x30 ? i + 1 : digitsEnd(bytes, i);
  if (i < 0) return -1;
  if (bytes[i] === 0x2e) {
    i = digitsEnd(bytes, i + 1);
    if (i < 0) return -1;
  }
  if (bytes[i] === 0x65 || bytes[i] === 0x45) {
    i++;
    if (bytes[i] === 0x2b || bytes[i] === 0x2d) i++;
    i = digitsEnd(bytes, i);
  }
  return i;
}

/** From the opening quote at `at` to just past the closing one, or -1. */
function stringEnd(bytes: Uint8Array, at: number): number {
  const { length } = bytes;
  let i = at + 1;
  while (i < length) {
    // Nearly every byte of an answer is plain: this loop is the price of the whole scan.
    while (i + 4 <= length && isPlain4(bytes, i)) i += 4;
    const byte = bytes[i];
    if (byte === undefined) return -1;
    if (PLAIN[byte] === 1) {
      i++;
      continue;
    }
    if (byte === QUOTE) return i + 1;
    if (byte < 0x20) return -1;
    i = byte === BACKSLASH ? escapeEnd(bytes, i + 1) : utf8End(bytes, i);
    if (i < 0) return -1;
  }
  return -1;
}

function isPlain4(bytes: Uint8Array, i: number): boolean {
  return (
    PLAIN[bytes[i] as number] === 1 &&
    PLAIN[bytes[i + 1] as number] === 1 &&
    PLAIN[bytes[i + 2] as number] === 1 &&
    PLAIN[bytes[i + 3] as number] === 1
  );
}

function escapeEnd(bytes: Uint8Array, at: number): number {
  switch (bytes[at]) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return at + 1;
    case 0x75: {
      for (let i = at + 1; i < at + 5; i++) {
        const hex = (bytes[i] ?? 0) | 0x20;
        if (!isDigit(bytes[i]) && (hex < 0x61 || hex > 0x66)) return -1;
      }
      return at + 5;
    }
    default:
      return -1;
  }
}

function isTail(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** Past one well-formed UTF-8 sequence of two to four bytes (Unicode, table 3-7), or -1. */
function utf8End(bytes: Uint8Array, at: number): number {
  const lead = bytes[at] ?? 0;
  const second = bytes[at + 1] ?? 0;
  if (lead >= 0xc2 && lead <= 0xdf) return isTail(second) ? at + 2 : -1;
  if (lead >= 0xe0 && lead <= 0xef) {
    const low = lead === 0xe0 ? 0xa0 : 0x80;
    const high = lead === 0xed ? 0x9f : 0xbf;
    return second >= low && second <= high && isTail(bytes[at + 2]) ? at + 3 : -1;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const low = lead === 0xf0 ? 0x90 : 0x80;
    const high = lead === 0xf4 ? 0x8f : 0xbf;
    return second >= low && second <= high && isTail(bytes[at + 2]) && isTail(bytes[at + 3]) ? at + 4 : -1;
  }
  return -1;
}

/** The members of the object at `at`, in order, duplicates included; undefined when it is no valid object. */
export function objectMembers(bytes: Uint8Array, at: number): Member[] | undefined {
  return bytes[at] === OPEN_BRACE ? membersFrom(bytes, at + 1) : undefined;
}

/** Like {@link objectMembers}, from just behind the opening brace (or behind a comma between members). */
export function membersFrom(bytes: Uint8Array, at: number): Member[] | undefined {
  return scanMembers(bytes, at, NO_PATH, 0)?.members;
}

const NO_PATH: readonly string[] = [];

/**
 * The members of the one object that the bytes hold; along `path`, of each member that is an object its own
 * members too: all in one pass, since passes are what large answers and small requests cost. Undefined when the
 * bytes are anything else.
 */
export function wholeObject(bytes: Uint8Array, ...path: readonly string[]): Member[] | undefined {
  const start = skipSpace(bytes, 0);
  if (bytes[start] !== OPEN_BRACE) return undefined;
  const scan = scanMembers(bytes, start + 1, path, 0);
  return scan !== undefined && skipSpace(bytes, scan.end) === bytes.length ? scan.members : undefined;
}

function scanMembers(
  bytes: Uint8Array,
  at: number,
  path: readonly string[],
  depth: number,
): { readonly members: Member[]; readonly end: number } | undefined {
  const members: Member[] = [];
  const inner = path[depth];
  let i = skipSpace(bytes, at);
  if (bytes[i] === CLOSE_BRACE) return { members, end: i + 1 };
  for (;;) {
    if (bytes[i] !== QUOTE) return undefined;
    const known = usualKeyAt(bytes, i + 1);
    const keyStop = known === undefined ? stringEnd(bytes, i) : i + 1 + known.bytes.length;
    if (keyStop < 0) return undefined;
    const colon = skipSpace(bytes, keyStop);
    if (bytes[colon] !== COLON) return undefined;
    const key = known?.text ?? stringValue(bytes, { start: i, end: keyStop }) ?? '';
    const start = skipSpace(bytes, colon + 1);
    if (key === inner && bytes[start] === OPEN_BRACE) {
      const scan = scanMembers(bytes, start + 1, path, depth + 1);
      if (scan === undefined) return undefined;
      members.push({ key, start, end: scan.end, members: scan.members });
      i = scan.end;
    } else {
      i = valueEnd(bytes, start, depth + 1);
      if (i < 0) return undefined;
      members.push({ key, start, end: i, members: undefined });
    }
    i = skipSpace(bytes, i);
    if (bytes[i] === CLOSE_BRACE) return { members, end: i + 1 };
    if (bytes[i] !== COMMA) return undefined;
    i = skipSpace(bytes, i + 1);
  }
}

/** Keys of every request: compared byte by byte they need no decoding, and are one string each. By their first byte. */
const USUAL_KEYS: readonly (readonly UsualKey[] | undefined)[] = usual([
  'jsonrpc',
  'id',
  'method',
  'params',
  'result',
  'name',
  'uri',
  'cursor',
  'arguments',
  '_meta',
  'io.modelcontextprotocol/protocolVersion',
  'io.modelcontextprotocol/clientInfo',
  'io.modelcontextprotocol/clientCapabilities',
]);

interface UsualKey {
  readonly text: string;
  /** As it stands in JSON, and the quote behind it. */
  readonly bytes: Uint8Array;
}

function usual(keys: readonly string[]): UsualKey[][] {
  const byFirst: UsualKey[][] = [];
  for (const text of keys) {
    const bytes = new TextEncoder().encode(`${text}"`);
    const first = bytes[0] as number;
    byFirst[first] = [...(byFirst[first] ?? []), { text, bytes }];
  }
  return byFirst;
}

/** The usual key whose text begins at `at`, if one does. */
function usualKeyAt(bytes: Uint8Array, at: number): UsualKey | undefined {
  const keys = USUAL_KEYS[bytes[at] as number];
  if (keys === undefined) return undefined;
  for (const key of keys) if (spells(bytes, at, key.bytes)) return key;
  return undefined;
}

/** From the end: keys that begin alike are alike for long. */
function spells(bytes: Uint8Array, at: number, text: Uint8Array): boolean {
  for (let i = text.length - 1; i >= 0; i--) if (bytes[at + i] !== text[i]) return false;
  return true;
}

/** The elements of the array at `at`, in order; undefined when it is no valid array. */
export function arrayElements(bytes: Uint8Array, at: number): Span[] | undefined {
  if (bytes[at] !== OPEN_BRACKET) return undefined;
  const elements: Span[] = [];
  let i = skipSpace(bytes, at + 1);
  if (bytes[i] === CLOSE_BRACKET) return elements;
  for (;;) {
    const end = valueEnd(bytes, i);
    if (end < 0) return undefined;
    elements.push({ start: i, end });
    i = skipSpace(bytes, end);
    if (bytes[i] === CLOSE_BRACKET) return elements;
    if (bytes[i] !== COMMA) return undefined;
    i = skipSpace(bytes, i + 1);
  }
}

/** The first member with this exact key. */
export function memberOf(members: readonly Member[], key: string): Member | undefined {
  return members.find((member) => member.key === key);
}

/** What kind of value a span holds, by its first byte. */
export function kindAt(
  bytes: Uint8Array,
  at: number,
): 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null' {
  switch (bytes[at]) {
    case OPEN_BRACE:
      return 'object';
    case OPEN_BRACKET:
      return 'array';
    case QUOTE:
      return 'string';
    case 0x74:
    case 0x66:
      return 'boolean';
    case 0x6e:
      return 'null';
    default:
      return 'number';
  }
}

/** The JSON text of a span of validated bytes. */
export function textOf(bytes: Uint8Array, span: Span): string {
  return decode(bytes, span.start, span.end);
}

/** Up to here a loop over plain bytes is faster than calling a decoder: keys and ids. */
const SHORT_BYTES = 32;

function decode(bytes: Uint8Array, start: number, end: number): string {
  if (end - start > SHORT_BYTES) return decoder.decode(bytes.subarray(start, end));
  let text = '';
  for (let i = start; i < end; i++) {
    const byte = bytes[i] as number;
    if (byte >= 0x80) return decoder.decode(bytes.subarray(start, end));
    text += String.fromCharCode(byte);
  }
  return text;
}

/** The string that a span of validated bytes spells, unescaped; undefined when it holds no string. */
export function stringValue(bytes: Uint8Array, span: Span): string | undefined {
  if (bytes[span.start] !== QUOTE) return undefined;
  const text = decode(bytes, span.start + 1, span.end - 1);
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
}
