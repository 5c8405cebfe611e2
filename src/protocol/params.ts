/**
 * The `params` of a request that was read and checked, kept as spans: what goes upstream, and what counts
 * for a cache key, is put together from the very bytes that were compared with the headers (R6).
 */
import { kindAt, type Member, memberOf, objectMembers, stringValue, textOf } from './json.ts';
import { META_CAPABILITIES, META_WITHOUT_EFFECT } from './meta.ts';

export interface Params {
  readonly bytes: Uint8Array;
  /** Members of `params` without `_meta`; no key twice. */
  readonly members: readonly Member[];
  /** Members of `_meta`; no key twice. */
  readonly meta: readonly Member[];
}

/** The texts of a request that can change its answer, for the cache key. Each is injective in what it stands for. */
export interface KeyTexts {
  /** All params but `uri`, `cursor` and `_meta`. */
  readonly params: string;
  readonly capabilities: string;
  /** Unknown keys of `_meta`. */
  readonly meta: string;
}

const KEYED_APART: ReadonlySet<string> = new Set(['uri', 'cursor']);

/** A string member of `params`; undefined when absent or no string. */
export function stringParam(params: Params, key: string): string | undefined {
  const member = memberOf(params.members, key);
  return member && stringValue(params.bytes, member);
}

/** Whether `params` has the key at all. */
export function hasParam(params: Params, key: string): boolean {
  return memberOf(params.members, key) !== undefined;
}

/** A string member of an object member, e.g. `ref.uri`. */
export function nestedStringParam(params: Params, key: string, nested: string): string | undefined {
  const member = memberOf(params.members, key);
  const members =
    member && kindAt(params.bytes, member.start) === 'object' && objectMembers(params.bytes, member.start);
  if (!members) return undefined;
  const found = members.filter((entry) => entry.key === nested);
  return found.length === 1 ? stringValue(params.bytes, found[0] as Member) : undefined;
}

/** True for the second leg of a multi round-trip: the keys' presence counts. *Spec:* basic/patterns/mrtr. */
export function isRoundTrip(params: Params): boolean {
  return hasParam(params, 'inputResponses') || hasParam(params, 'requestState');
}

/** The members as JSON object text, keys spelled canonically, values verbatim. */
function objectText(bytes: Uint8Array, members: readonly Member[], extra: readonly string[] = []): string {
  const texts = members.map((member) => `${JSON.stringify(member.key)}:${textOf(bytes, member)}`);
  return `{${[...texts, ...extra].join(',')}}`;
}

/** `params` for an upstream, with another cursor than the client's (undefined: none). */
export function paramsWithCursor(params: Params, cursor: string | undefined): string {
  const members = params.members.filter((member) => member.key !== 'cursor');
  const meta = `"_meta":${objectText(params.bytes, params.meta)}`;
  return objectText(
    params.bytes,
    members,
    cursor === undefined ? [meta] : [`"cursor":${JSON.stringify(cursor)}`, meta],
  );
}

/** `params` for an upstream, as checked. */
export function paramsText(params: Params): string {
  return objectText(params.bytes, params.members, [`"_meta":${objectText(params.bytes, params.meta)}`]);
}

const byKey = (a: Member, b: Member): number => (a.key < b.key ? -1 : 1);

/** What of the params and `_meta` counts for the cache key, beside `uri` and `cursor`. */
export function keyTexts(params: Params): KeyTexts {
  const { bytes, members, meta } = params;
  const capabilities = memberOf(meta, META_CAPABILITIES);
  const rest = members.filter((member) => !KEYED_APART.has(member.key)).sort(byKey);
  const unknown = meta
    .filter((member) => member.key !== META_CAPABILITIES && !META_WITHOUT_EFFECT.has(member.key))
    .sort(byKey);
  return {
    params: rest.length === 0 ? '' : objectText(bytes, rest),
    capabilities: capabilities === undefined ? '' : textOf(bytes, capabilities),
    meta: unknown.length === 0 ? '' : objectText(bytes, unknown),
  };
}
