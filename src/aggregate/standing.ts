/**
 * What is known of an upstream, and what an answer to `server/discover` adds to that. *Never* I/O.
 *
 * One answer says one thing to the caller it was made for, and often less to everybody else: a caller's credentials
 * may decide what it shows (R22). *Spec:* basic/versioning; server/discover. Protocol digest, "Eras".
 */
import type { Cached } from '../cache/types.ts';
import { tailMembers } from '../protocol/answer.ts';
import {
  HEADER_MISMATCH,
  METHOD_NOT_FOUND,
  MISSING_CLIENT_CAPABILITY,
  UNSUPPORTED_VERSION,
} from '../protocol/errors.ts';
import { arrayElements, memberOf, objectMembers, stringValue, textOf } from '../protocol/json.ts';
import { LIST_FLAGS, type ListName } from '../protocol/listen-filter.ts';
import { CURRENT_VERSION, META_TRANSLATED } from '../protocol/meta.ts';
import type { Told } from './ask.ts';

/** The value of a capability: of an object its members by name, of anything else its JSON text. */
export type Capability = string | ReadonlyMap<string, string>;

/** What an upstream says of itself. */
export interface Seen {
  readonly capabilities: ReadonlyMap<string, Capability>;
  readonly instructions: string | undefined;
  readonly versions: readonly string[];
  /** The older revision it really speaks. */
  readonly translated?: string;
  /** It answers, but what it offers is for each caller to see: the capabilities are assumed. */
  readonly assumed?: true;
}

/** What is told by `subscriptions/listen`. */
export interface Tells {
  readonly lists: ReadonlySet<ListName>;
  /** `resources.subscribe`. */
  readonly resources: boolean;
}

/** Of an upstream that has not said so. */
export const TELLS_NOTHING: Tells = { lists: new Set(), resources: false };

/** What an upstream says it tells. */
export function toldBy({ capabilities, assumed }: Seen): Tells {
  if (assumed === true) return TELLS_NOTHING;
  const says = (kind: ListName, what: string): boolean => {
    const capability = capabilities.get(kind);
    return capability instanceof Map && capability.get(what) === 'true';
  };
  const lists = (Object.keys(LIST_FLAGS) as ListName[]).filter((kind) => says(kind, 'listChanged'));
  return { lists: new Set(lists), resources: says('resources', 'subscribe') };
}

/** What everybody may know of an upstream. */
export type Standing =
  | { readonly kind: 'seen'; readonly seen: Seen }
  | { readonly kind: 'unseen'; readonly why: string }
  /** Speaks other revisions only. `why`: what it answered. */
  | { readonly kind: 'legacy'; readonly why: string };

/** What one answer says of the upstream it came from. */
export type Saying =
  | { readonly kind: 'seen'; readonly seen: Seen }
  /** Of this era, and yet no discover result. */
  | { readonly kind: 'modern'; readonly why: string }
  /** `stated`: it named the revisions it speaks; `guessed` from the way it refused. */
  | { readonly kind: 'legacy'; readonly proof: 'stated' | 'guessed'; readonly why: string }
  | { readonly kind: 'nothing'; readonly why: string };

/** Whom an answer teaches: the gateway's own question shows the era, but not what a caller would be shown. */
export type Pupil = 'everybody' | 'gateway' | 'caller';

/** What to assume of an upstream that has not been seen: more than it may have, so that no client misses anything. */
const ASSUMED: ReadonlyMap<string, Capability> = new Map(
  ['resources', 'tools', 'prompts', 'completions'].map((key) => [key, new Map()]),
);

const SEEN_BY_CALLERS: Standing = {
  kind: 'seen',
  seen: { capabilities: ASSUMED, instructions: undefined, versions: [CURRENT_VERSION], assumed: true },
};

/** What is known to everybody after an answer; `before` itself where nothing changes. */
export function learnt(before: Standing, said: Saying, pupil: Pupil): Standing {
  const isSeen = before.kind === 'seen';
  switch (said.kind) {
    case 'seen':
      if (pupil === 'everybody') return said;
      return isSeen ? before : SEEN_BY_CALLERS;
    case 'modern':
      return isSeen ? before : { kind: 'unseen', why: said.why };
    case 'legacy': {
      const isStated = pupil === 'everybody' && said.proof === 'stated';
      // What was seen is remembered through outages; and a caller's own headers can be what a server refuses.
      return !isStated && (isSeen || pupil === 'caller') ? before : { kind: 'legacy', why: said.why };
    }
    case 'nothing':
      return before.kind === 'unseen' && pupil !== 'caller' ? { kind: 'unseen', why: said.why } : before;
  }
}

/** What stands in the answer to the caller for whom this was said; `shared` where it says too little. */
export function toCaller(said: Saying, shared: Standing): Standing {
  if (said.kind === 'seen') return said;
  return said.kind === 'legacy' && said.proof === 'stated' ? { kind: 'legacy', why: said.why } : shared;
}

/** Reads what came of a discover. */
export function sayingOf(cached: Cached<Told>): Saying {
  if (cached.kind === 'other') return saidInstead(cached.value);
  const seen = readSeen(cached.tail);
  if (seen === undefined) return { kind: 'nothing', why: 'not a discover result' };
  return seen.versions.includes(CURRENT_VERSION)
    ? { kind: 'seen', seen }
    : { kind: 'legacy', proof: 'stated', why: `revisions ${seen.versions.join(', ').slice(0, 100)}` };
}

/** Statuses by which a server of an older era answers a discover. *Spec:* basic/versioning. */
const LEGACY_STATUS: ReadonlySet<number> = new Set([400, 404, 405, 406, 415]);

function saidInstead(told: Told): Saying {
  switch (told.kind) {
    case 'error':
      return saidByError(told);
    case 'refused':
      return LEGACY_STATUS.has(told.status)
        ? { kind: 'legacy', proof: 'guessed', why: `HTTP ${told.status}` }
        : { kind: 'nothing', why: `HTTP ${told.status}` };
    case 'failure':
      return { kind: 'nothing', why: told.failure.kind };
    case 'input_required':
    case 'large':
      return { kind: 'nothing', why: 'not a discover result' };
  }
}

function saidByError({ code, status, data }: Extract<Told, { kind: 'error' }>): Saying {
  const why = `error ${code}`;
  switch (code) {
    case HEADER_MISMATCH:
    case MISSING_CLIENT_CAPABILITY:
      return { kind: 'modern', why };
    case UNSUPPORTED_VERSION: {
      const supported = supportedOf(data);
      if (supported === undefined) return { kind: 'legacy', proof: 'guessed', why };
      return supported.includes(CURRENT_VERSION)
        ? { kind: 'modern', why }
        : { kind: 'legacy', proof: 'stated', why };
    }
    default: {
      // Every server of this era knows the method, whatever the status of its answer.
      const isUnknown = code === METHOD_NOT_FOUND && status < 300;
      return isUnknown || LEGACY_STATUS.has(status)
        ? { kind: 'legacy', proof: 'guessed', why }
        : { kind: 'nothing', why };
    }
  }
}

function supportedOf(data: string | undefined): readonly unknown[] | undefined {
  const parsed: unknown = data === undefined ? undefined : JSON.parse(data);
  const supported =
    typeof parsed === 'object' && parsed !== null && (parsed as { supported?: unknown }).supported;
  return Array.isArray(supported) ? supported : undefined;
}

/** What a discover result says; undefined when it is none. */
export function readSeen(tail: Uint8Array): Seen | undefined {
  const members = tailMembers(tail);
  const capabilities = memberOf(members, 'capabilities');
  const versions = memberOf(members, 'supportedVersions');
  const entries = capabilities && objectMembers(tail, capabilities.start);
  const spans = versions && arrayElements(tail, versions.start);
  if (entries === undefined || spans === undefined) return undefined;
  const instructions = memberOf(members, 'instructions');
  const meta = memberOf(members, '_meta');
  const older = meta && memberOf(objectMembers(tail, meta.start) ?? [], META_TRANSLATED);
  const translated = older && stringValue(tail, older);
  return {
    ...(translated !== undefined && { translated }),
    capabilities: new Map(
      entries.map((entry) => [entry.key, partsOf(tail, entry.start) ?? textOf(tail, entry)]),
    ),
    instructions: instructions && stringValue(tail, instructions),
    versions: spans.flatMap((span) => stringValue(tail, span) ?? []),
  };
}

/** The lists that an upstream has, by its capabilities. */
export function listsOf({ capabilities }: Seen): readonly ListName[] {
  return (Object.keys(LIST_FLAGS) as ListName[]).filter((list) => capabilities.has(list));
}

/** Promises about streams: kept where one upstream keeps them. */
const TOLD: ReadonlySet<string> = new Set(['subscribe', 'listChanged']);

/** What clients are promised of a capability. @param listened whether the upstream may be listened to. */
function served(capability: Capability, listened: boolean): Capability {
  if (typeof capability === 'string' || listened) return capability;
  return new Map([...capability].filter(([key]) => !TOLD.has(key)));
}

function partsOf(tail: Uint8Array, at: number): ReadonlyMap<string, string> | undefined {
  const members = objectMembers(tail, at);
  return members && new Map(members.map((member) => [member.key, textOf(tail, member)]));
}

/** Capabilities whose methods reach an upstream from a route of several. */
const SERVABLE: ReadonlySet<string> = new Set(['resources', 'tools', 'prompts', 'completions', 'logging']);

/**
 * JSON text of the union; of what two say differently, the earlier one's.
 * @param listened by rank: whether the upstream may be listened to.
 */
export function mergeCapabilities(standings: readonly Standing[], listened: readonly boolean[]): string {
  const merged = new Map<string, Capability>();
  for (const [rank, standing] of standings.entries()) {
    if (standing.kind === 'legacy') continue;
    for (const [key, value] of standing.kind === 'seen' ? standing.seen.capabilities : ASSUMED) {
      // Methods of other capabilities have an owner only where there is one upstream (design, section 4).
      if (standings.length > 1 && !SERVABLE.has(key)) continue;
      merged.set(key, united(merged.get(key), served(value, listened[rank] === true)));
    }
  }
  return objectText(merged, (value) => (typeof value === 'string' ? value : objectText(value, String)));
}

function united(earlier: Capability | undefined, later: Capability): Capability {
  if (earlier === undefined) return later;
  if (typeof earlier === 'string' || typeof later === 'string') return earlier;
  const adds = ([key, value]: readonly [string, string]): boolean =>
    !earlier.has(key) || (TOLD.has(key) && value === 'true');
  return new Map([...earlier, ...[...later].filter(adds)]);
}

function objectText<T>(members: ReadonlyMap<string, T>, text: (value: T) => string): string {
  return `{${[...members].map(([key, value]) => `${JSON.stringify(key)}:${text(value)}`).join(',')}}`;
}
