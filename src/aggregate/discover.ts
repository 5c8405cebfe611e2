/**
 * `server/discover` of the gateway: what can be had through it, whoever happens to be up.
 *
 * Clients read capabilities once, at connect, and take a failed discover for a server of an older era: so this
 * answers from what is known, waits little, and counts an upstream not seen yet as offering everything.
 * *Spec:* server/discover. Design, section 5.
 */
import type { Cached } from '../cache/types.ts';
import { tailMembers } from '../protocol/answer.ts';
import { arrayElements, memberOf, objectMembers, stringValue, textOf } from '../protocol/json.ts';
import {
  CURRENT_VERSION,
  META_CAPABILITIES,
  META_CLIENT_INFO,
  META_SERVER_INFO,
  META_VERSION,
  SUPPORTED_VERSIONS,
} from '../protocol/meta.ts';
import { methodRow, type Primitive } from '../protocol/methods.ts';
import { keyTexts, type Params, paramsText } from '../protocol/params.ts';
import { type AskDeps, type Asking, ask, type Member, type Told } from './ask.ts';

/** How long a discover waits for upstreams: longer, and a client's connect looks hung. */
export const DISCOVER_WAIT_MS = 2_000;
/** A discover result larger than this is none. */
const MAX_DISCOVER_BYTES = 1024 * 1024;
const FIRST_RETRY_MS = 1_000;
/** An upstream that never answered is asked again at most this seldom: an idle gateway is quiet (R48). */
const LAST_RETRY_MS = 60_000;

const ROW = methodRow('server/discover');

/** What an upstream said of itself. */
interface Seen {
  /** Capability → JSON text of its value. */
  readonly capabilities: ReadonlyMap<string, string>;
  readonly instructions: string | undefined;
  readonly versions: readonly string[];
}

export type Standing =
  | { readonly kind: 'seen'; readonly seen: Seen }
  | { readonly kind: 'unseen'; readonly why: string }
  /** Speaks only an older revision. */
  | { readonly kind: 'legacy' };

export type Discovered =
  | {
      readonly kind: 'result';
      readonly tail: string;
      readonly ttlMs: number;
      readonly scope: 'public' | 'private';
      readonly cached: readonly Cached<Told>[];
    }
  /** Every upstream that sees callers refused this one. */
  | { readonly kind: 'challenge'; readonly told: Extract<Told, { kind: 'refused' }> };

export interface DiscoveryDeps extends AskDeps {
  readonly members: readonly Member[];
  readonly version: string;
  readonly onStanding?: (member: Member, standing: Standing) => void;
}

export class Discovery {
  readonly #deps: DiscoveryDeps;
  readonly #standing: Standing[];
  readonly #stop = new AbortController();
  #started: Promise<void> | undefined;

  constructor(deps: DiscoveryDeps) {
    this.#deps = deps;
    this.#standing = deps.members.map(() => ({ kind: 'unseen', why: 'not asked yet' }));
  }

  /** Probes every upstream once; those that do not answer are tried again, ever more seldom. Resolves after the first round or the wait. */
  start(): Promise<void> {
    this.#started ??= withinWait(
      Promise.all(this.#deps.members.map((member) => this.#probe(member, FIRST_RETRY_MS))),
    );
    return this.#started;
  }

  stop(): void {
    this.#stop.abort(new Error('shutting down'));
  }

  standing(rank: number): Standing {
    return this.#standing[rank] ?? { kind: 'unseen', why: 'unknown' };
  }

  /** What is not announced is not asked for (R17). */
  announces(rank: number, primitive: Primitive): boolean {
    const standing = this.standing(rank);
    return (
      standing.kind === 'unseen' || (standing.kind === 'seen' && standing.seen.capabilities.has(primitive))
    );
  }

  /** The gateway's own discover result for this caller. */
  async discover(asking: Asking): Promise<Discovered> {
    await this.start();
    const { members } = this.#deps;
    const asked = await Promise.all(members.map((member) => this.#askOne(member, asking)));
    const refusals = asked.flatMap((cached) =>
      cached.kind === 'other' && cached.value.kind === 'refused' ? [cached.value] : [],
    );
    const challenge = refusals.find((told) => told.status === 401 || told.status === 403);
    const forwarded = members.some((member) => member.config.auth.type === 'forward');
    if (challenge !== undefined && forwarded && refusals.length === asked.length)
      return { kind: 'challenge', told: challenge };
    const complete = asked.filter((cached) => cached.kind === 'complete');
    const known = this.#standing.every((standing) => standing.kind === 'seen');
    const all = known && complete.length === members.length;
    return {
      kind: 'result',
      tail: this.#tail(),
      ttlMs: all ? Math.min(...complete.map((cached) => cached.ttlMs)) : 0,
      scope: all && complete.every((cached) => cached.scope === 'public') ? 'public' : 'private',
      cached: asked,
    };
  }

  async #probe(member: Member, retryMs: number): Promise<void> {
    await this.#askOne(member, probing(this.#stop.signal)).catch(() => undefined);
    const { kind } = this.standing(member.rank);
    if (kind === 'seen' || this.#stop.signal.aborted) return;
    // A server of an older revision may be replaced by a newer one, but not within a second.
    const waitMs = kind === 'legacy' ? LAST_RETRY_MS : retryMs;
    const timer = setTimeout(() => void this.#probe(member, Math.min(retryMs * 2, LAST_RETRY_MS)), waitMs);
    timer.unref();
    this.#stop.signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  }

  async #askOne(member: Member, asking: Asking): Promise<Cached<Told>> {
    const cached = await ask(this.#deps, member, asking, {
      row: ROW,
      paramsText: paramsText(asking.params),
      maxBytes: MAX_DISCOVER_BYTES,
      deadlineMs: DISCOVER_WAIT_MS,
    });
    this.#note(member, cached);
    return cached;
  }

  #note(member: Member, cached: Cached<Told>): void {
    const before = this.standing(member.rank);
    const after = standingOf(cached, before);
    if (after === before) return;
    this.#standing[member.rank] = after;
    if (after.kind !== before.kind) this.#deps.onStanding?.(member, after);
  }

  #tail(): string {
    const { members, version } = this.#deps;
    const capabilities = mergeCapabilities(this.#standing);
    const instructions = members.flatMap((member) => {
      const standing = this.standing(member.rank);
      const text = standing.kind === 'seen' ? standing.seen.instructions : undefined;
      return text === undefined || text === '' ? [] : [`## ${member.config.name}\n\n${text}`];
    });
    const parts = [
      `,"supportedVersions":${JSON.stringify(SUPPORTED_VERSIONS)}`,
      `,"capabilities":${capabilities}`,
      ...(instructions.length > 0 ? [`,"instructions":${JSON.stringify(instructions.join('\n\n'))}`] : []),
      `,"_meta":{${JSON.stringify(META_SERVER_INFO)}:${JSON.stringify(serverInfo(version))}}}}`,
    ];
    return parts.join('');
  }
}

/** How the gateway names itself to clients. */
export function serverInfo(version: string): { name: string; title: string; version: string } {
  return { name: 'headgate', title: 'Headgate', version };
}

/** What to assume of an upstream that has not been seen: more than it may have, so that no client misses anything. */
const ASSUMED: readonly (readonly [string, string])[] = [
  ['resources', '{}'],
  ['tools', '{}'],
  ['prompts', '{}'],
  ['completions', '{}'],
];

/** Capabilities whose methods reach an upstream from a route of several. */
const SERVABLE: ReadonlySet<string> = new Set(['resources', 'tools', 'prompts', 'completions', 'logging']);

function mergeCapabilities(standings: readonly Standing[]): string {
  const merged = new Map<string, string>();
  for (const standing of standings) {
    if (standing.kind === 'legacy') continue;
    const offered = standing.kind === 'seen' ? standing.seen.capabilities : ASSUMED;
    for (const [key, value] of offered) {
      // Methods of other capabilities have an owner only where there is one upstream (design, section 4).
      if (standings.length > 1 && !SERVABLE.has(key)) continue;
      if (!merged.has(key)) merged.set(key, value);
    }
  }
  return `{${[...merged].map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`;
}

/** `subscribe` and `listChanged` are promises about streams that the gateway does not relay yet. */
const UNSERVED: ReadonlySet<string> = new Set(['subscribe', 'listChanged']);

function standingOf(cached: Cached<Told>, before: Standing): Standing {
  if (cached.kind === 'complete') {
    const seen = readSeen(cached.tail);
    if (seen === undefined)
      return before.kind === 'seen' ? before : { kind: 'unseen', why: 'not a discover result' };
    return seen.versions.includes(CURRENT_VERSION) ? { kind: 'seen', seen } : { kind: 'legacy' };
  }
  if (before.kind === 'seen') return before;
  const told = cached.value;
  switch (told.kind) {
    case 'error':
      return told.code === -32022 || told.code === -32601 || told.status === 400
        ? { kind: 'legacy' }
        : { kind: 'unseen', why: `error ${told.code}` };
    case 'refused':
      return LEGACY_STATUS.has(told.status)
        ? { kind: 'legacy' }
        : { kind: 'unseen', why: `HTTP ${told.status}` };
    case 'failure':
      return { kind: 'unseen', why: told.failure.kind };
    case 'input_required':
      return { kind: 'unseen', why: 'not a discover result' };
  }
}

/** Statuses by which a server of an older era answers a discover. *Spec:* basic/versioning. */
const LEGACY_STATUS: ReadonlySet<number> = new Set([400, 404, 405, 406, 415]);

function readSeen(tail: Uint8Array): Seen | undefined {
  const members = tailMembers(tail);
  const capabilities = memberOf(members, 'capabilities');
  const versions = memberOf(members, 'supportedVersions');
  const entries = capabilities && objectMembers(tail, capabilities.start);
  const spans = versions && arrayElements(tail, versions.start);
  if (entries === undefined || spans === undefined) return undefined;
  const instructions = memberOf(members, 'instructions');
  return {
    capabilities: new Map(
      entries.map((entry) => [entry.key, servedPart(tail, entry.start) ?? textOf(tail, entry)]),
    ),
    instructions: instructions && stringValue(tail, instructions),
    versions: spans.flatMap((span) => stringValue(tail, span) ?? []),
  };
}

function servedPart(tail: Uint8Array, at: number): string | undefined {
  const members = objectMembers(tail, at);
  if (members === undefined) return undefined;
  const kept = members.filter((member) => !UNSERVED.has(member.key));
  return `{${kept.map((member) => `${JSON.stringify(member.key)}:${textOf(tail, member)}`).join(',')}}`;
}

/** The gateway asking on its own behalf: an anonymous caller without capabilities. */
function probing(signal: AbortSignal): Asking {
  const params = gatewayParams();
  return {
    partition: 'gateway',
    head: { headers: new Map(), duplicated: undefined },
    params,
    texts: keyTexts(params),
    version: CURRENT_VERSION,
    signal,
    caching: 'on',
    waiting: () => () => undefined,
  };
}

/** What the gateway says of itself where it asks on its own. */
export function gatewayParams(): Params {
  const meta = {
    [META_VERSION]: CURRENT_VERSION,
    [META_CLIENT_INFO]: { name: 'headgate', version: '1' },
    [META_CAPABILITIES]: {},
  };
  const bytes = new TextEncoder().encode(JSON.stringify(meta));
  return { bytes, members: [], meta: objectMembers(bytes, 0) ?? [] };
}

function withinWait(work: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, DISCOVER_WAIT_MS);
    void work.finally(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
