/**
 * Takes an upstream's JSON-RPC answer apart: what may be said again, and to whom, is decided elsewhere.
 *
 * Values are cut out as bytes. `id`, `resultType`, `ttlMs` and `cacheScope` are the gateway's to write, so an
 * upstream's own copies at the top level of `result` are cut out. *Never* throws.
 */
import {
  kindAt,
  type Member,
  memberOf,
  membersFrom,
  objectMembers,
  type Span,
  stringValue,
  textOf,
  wholeObject,
} from './json.ts';
import { META_OF_ONE_REQUEST } from './meta.ts';

/** Caching hints as received: nothing is checked yet. */
export interface RawHints {
  /** The number an upstream wrote; undefined when absent, NaN for anything but one number. */
  readonly ttlMs: number | undefined;
  readonly cacheScope: string | undefined;
}

/**
 * A result, ready to be spliced behind a head that the gateway writes:
 * `,"contents":[…],"_meta":{…}}}`, or `}}` when nothing but reserved members was there.
 */
export interface ResultTail {
  readonly tail: Uint8Array;
  /** The same without what belongs to one request only (trace context, progress token, subscription id). */
  readonly storable: Uint8Array;
  /** For a head without hints: with the upstream's own `ttlMs` and `cacheScope`, if it has them (R21). */
  plain(): Uint8Array;
}

export type Answer =
  | {
      readonly kind: 'result';
      readonly resultType: string;
      readonly hints: RawHints;
      readonly result: ResultTail;
    }
  | {
      readonly kind: 'error';
      readonly code: number;
      readonly message: string;
      /** JSON text of `data`, verbatim. */
      readonly data: string | undefined;
    }
  /** Not an answer: not JSON, no or both of `result` and `error`, another id, wrong types. */
  | { readonly kind: 'broken'; readonly reason: string };

/** Members of a result that the gateway writes itself. */
export const RESERVED: ReadonlySet<string> = new Set(['resultType', 'ttlMs', 'cacheScope']);
/** What is decided by these (complete? empty? whose?) must hold for what the client's parser reads: not twice. */
export const DECISIVE: ReadonlySet<string> = new Set([
  'resultType',
  'contents',
  'resources',
  'resourceTemplates',
  'prompts',
  'tools',
  'nextCursor',
  'supportedVersions',
  'capabilities',
]);
const encoder = new TextEncoder();
const COMMA = encoder.encode(',');
const END = encoder.encode('}}');
const broken = (reason: string): Answer => ({ kind: 'broken', reason });

/**
 * Reads one JSON-RPC response.
 * @param expectedId the JSON text of the id the request went out with.
 */
export function readAnswer(bytes: Uint8Array, expectedId: string): Answer {
  const members = wholeObject(bytes, 'result');
  if (members === undefined) return broken('not a JSON object');
  const result = memberOf(members, 'result');
  const error = memberOf(members, 'error');
  if (anyTwice(members)) return broken('a member came twice');
  const id = memberOf(members, 'id');
  if (id === undefined && error === undefined) return broken('no id');
  if (
    id !== undefined &&
    textOf(bytes, id) !== expectedId &&
    !(error && kindAt(bytes, id.start) === 'null')
  ) {
    return broken('the id of another request');
  }
  if (result !== undefined && error !== undefined) return broken('both result and error');
  if (error !== undefined) return readError(bytes, error);
  return result === undefined ? broken('neither result nor error') : readResult(bytes, result);
}

function anyTwice(members: readonly Member[]): boolean {
  return new Set(members.map((member) => member.key)).size !== members.length;
}

function readError(bytes: Uint8Array, span: Span): Answer {
  const members = objectMembers(bytes, span.start);
  const code = members && memberOf(members, 'code');
  const message = members && memberOf(members, 'message');
  if (members === undefined || code === undefined) return broken('an error without a code');
  const number = kindAt(bytes, code.start) === 'number' ? Number(textOf(bytes, code)) : Number.NaN;
  if (!Number.isSafeInteger(number)) return broken('an error code that is no integer');
  const data = memberOf(members, 'data');
  return {
    kind: 'error',
    code: number,
    message: (message && stringValue(bytes, message)) ?? '',
    data: data && textOf(bytes, data),
  };
}

function readResult(bytes: Uint8Array, { members }: Member): Answer {
  if (members === undefined) return broken('a result that is no object');
  if (anyTwice(members.filter((member) => DECISIVE.has(member.key)))) return broken('a member came twice');
  const resultType = memberOf(members, 'resultType');
  const type = resultType === undefined ? 'complete' : stringValue(bytes, resultType);
  if (type === undefined) return broken('a resultType that is no string');
  const scope = only(members, 'cacheScope');
  return {
    kind: 'result',
    resultType: type,
    hints: {
      ttlMs: ttlOf(bytes, members),
      cacheScope: scope && stringValue(bytes, scope),
    },
    result: resultTail(bytes, members),
  };
}

function ttlOf(bytes: Uint8Array, members: readonly Member[]): number | undefined {
  if (memberOf(members, 'ttlMs') === undefined) return undefined;
  const ttl = only(members, 'ttlMs');
  return ttl !== undefined && kindAt(bytes, ttl.start) === 'number' ? Number(textOf(bytes, ttl)) : Number.NaN;
}

/** A hint that comes twice is no hint: two parsers would read two values. */
function only(members: readonly Member[], key: string): Member | undefined {
  const found = members.filter((member) => member.key === key);
  return found.length === 1 ? found[0] : undefined;
}

function resultTail(bytes: Uint8Array, members: readonly Member[]): ResultTail {
  const pairOf = (member: Member): Uint8Array[] => pair(member.key, bytes.subarray(member.start, member.end));
  const kept = members.filter((member) => !RESERVED.has(member.key));
  const parts = kept.map(pairOf);
  const tail = joinTail(parts);
  const storableParts = kept.map((member, i) =>
    member.key === '_meta' ? pair('_meta', withoutOneRequest(bytes, member)) : (parts[i] as Uint8Array[]),
  );
  const changed = kept.some((member) => member.key === '_meta' && holdsOneRequest(bytes, member));
  return {
    tail,
    storable: changed ? joinTail(storableParts) : tail,
    // Made when asked for: hardly any answer is written so.
    plain: () => joinTail(members.filter((member) => member.key !== 'resultType').map(pairOf)),
  };
}

function pair(key: string, value: Uint8Array): Uint8Array[] {
  return [encoder.encode(`${JSON.stringify(key)}:`), value];
}

function holdsOneRequest(bytes: Uint8Array, meta: Span): boolean {
  return objectMembers(bytes, meta.start)?.some((member) => META_OF_ONE_REQUEST.has(member.key)) ?? false;
}

function withoutOneRequest(bytes: Uint8Array, meta: Span): Uint8Array {
  const members = objectMembers(bytes, meta.start);
  if (members === undefined) return bytes.subarray(meta.start, meta.end);
  const kept = members
    .filter((member) => !META_OF_ONE_REQUEST.has(member.key))
    .map((member) => `${JSON.stringify(member.key)}:${textOf(bytes, member)}`);
  return encoder.encode(`{${kept.join(',')}}`);
}

function joinTail(pairs: readonly Uint8Array[][]): Uint8Array {
  return joinBytes([...pairs.flatMap((parts) => [COMMA, ...parts]), END]);
}

/** One array of bytes out of many. */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const out = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** The members of a {@link ResultTail}'s bytes. */
export function tailMembers(tail: Uint8Array): Member[] {
  return tail[0] === 0x2c ? (membersFrom(tail, 1) ?? []) : [];
}
