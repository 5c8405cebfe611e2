/**
 * `server/discover` of the gateway: what can be had through it, whoever happens to be up.
 *
 * Clients read capabilities once, at connect, and take a failed discover for a server of an older era: so this
 * answers from what is known, waits little, and counts an upstream not seen yet as offering everything.
 * *Spec:* server/discover. Design, section 5.
 */

import type { Cached } from '../cache/types.ts';
import { readHead } from '../protocol/headers.ts';
import { objectMembers } from '../protocol/json.ts';
import { CURRENT_VERSION, GATEWAY_META, META_SERVER_INFO, SUPPORTED_VERSIONS } from '../protocol/meta.ts';
import { methodRow, type Primitive } from '../protocol/methods.ts';
import { keyTexts, type Params, paramsText } from '../protocol/params.ts';
import { Abort, type Signal } from '../protocol/signal.ts';
import { type AskDeps, type Asking, ask, audienceOf, type Member, type Told } from './ask.ts';
import {
  learnt,
  mergeCapabilities,
  type Pupil,
  type Saying,
  type Standing,
  sayingOf,
  TELLS_NOTHING,
  type Tells,
  toCaller,
  toldBy,
} from './standing.ts';

/** How long a discover waits for upstreams: longer, and a client's connect looks hung. */
export const DISCOVER_WAIT_MS = 2_000;
/** A discover result larger than this is none. */
const MAX_DISCOVER_BYTES = 1024 * 1024;
const FIRST_RETRY_MS = 1_000;
/** An upstream that never answered is asked again at most this seldom: an idle gateway is quiet (R48). */
const LAST_RETRY_MS = 60_000;

const ROW = methodRow('server/discover');
/** The gateway's own context, when it asks for nobody. */
const GATEWAY = 'gateway';

const NOT_ASKED: Standing = { kind: 'unseen', why: 'not asked yet' };

export type { Standing } from './standing.ts';

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
  /** What was known of an upstream before this route was made, by its name. */
  readonly known?: (upstream: string) => Standing | undefined;
  /** Told when more, or something else, is known of an upstream. */
  readonly onStanding?: (member: Member, standing: Standing, before: Standing) => void;
}

/** An answer, and what it says. */
interface Heard {
  readonly cached: Cached<Told>;
  readonly said: Saying;
}

export class Discovery {
  readonly #deps: DiscoveryDeps;
  readonly #standing: Standing[];
  readonly #stop = new Abort();
  readonly #retries = new Set<NodeJS.Timeout>();
  #started: Promise<void> | undefined;

  constructor(deps: DiscoveryDeps) {
    this.#deps = deps;
    this.#standing = deps.members.map(({ config }) => deps.known?.(config.name) ?? NOT_ASKED);
  }

  /** Probes every upstream once; those that do not answer are tried again, ever more seldom. Resolves after the first round or the wait. */
  start(): Promise<void> {
    const probeAll = async (): Promise<void> => {
      await Promise.all(this.#deps.members.map((member) => this.#probe(member, FIRST_RETRY_MS)));
    };
    this.#started ??= withinWait(probeAll(), undefined);
    return this.#started;
  }

  stop(): void {
    this.#stop.abort(new Error('shutting down'));
    for (const timer of this.#retries) clearTimeout(timer);
    this.#retries.clear();
  }

  /** What everybody may know of an upstream: *never* what it showed to one caller alone. */
  standing(rank: number): Standing {
    return this.#standing[rank] ?? { kind: 'unseen', why: 'unknown' };
  }

  /**
   * What an upstream tells this caller: what everybody may know, or what it says to this one. *Never* waits for more
   * than {@link DISCOVER_WAIT_MS}.
   */
  async tells(member: Member, asking: Asking): Promise<Tells> {
    if (!member.config.subscribe) return TELLS_NOTHING;
    const shared = this.standing(member.rank);
    // One that takes no stranger is unseen until a caller asks, and clients ask once, at connect, some other replica.
    const isForCallers = shared.kind === 'unseen' || (shared.kind === 'seen' && shared.seen.assumed === true);
    const known = isForCallers
      ? toCaller((await withinWait(this.#askOne(member, asking), LATE)).said, shared)
      : shared;
    return known.kind === 'seen' ? toldBy(known.seen) : TELLS_NOTHING;
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
    const { members } = this.#deps;
    // Beside the probes, not behind them: together they may take no longer than one of them.
    const started = this.start();
    const heard = await Promise.all(members.map((member) => withinWait(this.#askOne(member, asking), LATE)));
    await started;
    const cached = heard.map((one) => one.cached);
    const refusals = cached.flatMap((one) =>
      one.kind === 'other' && one.value.kind === 'refused' ? [one.value] : [],
    );
    const challenge = refusals.find((told) => told.status === 401 || told.status === 403);
    const forwarded = members.some((member) => member.config.auth.type === 'forward');
    if (challenge !== undefined && forwarded && refusals.length === cached.length)
      return { kind: 'challenge', told: challenge };
    const complete = heard.flatMap(({ cached: one, said }) =>
      one.kind === 'complete' && said.kind === 'seen' ? [one] : [],
    );
    const all = complete.length === members.length;
    return {
      kind: 'result',
      tail: this.#tail(heard.map(({ said }, rank) => toCaller(said, this.standing(rank)))),
      ttlMs: all ? Math.min(...complete.map((one) => one.ttlMs)) : 0,
      scope: all && complete.every((one) => one.scope === 'public') ? 'public' : 'private',
      cached,
    };
  }

  async #probe(member: Member, retryMs: number): Promise<void> {
    await this.#askOne(member, probing(this.#stop)).catch(() => undefined);
    const { kind } = this.standing(member.rank);
    if (kind === 'seen' || this.#stop.aborted) return;
    // A server of an older revision may be replaced by a newer one, but not within a second.
    const waitMs = kind === 'legacy' ? LAST_RETRY_MS : retryMs;
    const timer = setTimeout(() => {
      this.#retries.delete(timer);
      void this.#probe(member, Math.min(retryMs * 2, LAST_RETRY_MS));
    }, waitMs);
    timer.unref();
    this.#retries.add(timer);
  }

  async #askOne(member: Member, asking: Asking): Promise<Heard> {
    const cached = await ask(this.#deps, member, asking, {
      row: ROW,
      paramsText: () => paramsText(asking.params),
      maxBytes: MAX_DISCOVER_BYTES,
      deadlineMs: DISCOVER_WAIT_MS,
    });
    const said = sayingOf(cached);
    this.#learn(member, said, pupilOf(member, cached, asking));
    return { cached, said };
  }

  #learn(member: Member, said: Saying, pupil: Pupil): void {
    const before = this.standing(member.rank);
    const after = learnt(before, said, pupil);
    this.#standing[member.rank] = after;
    if (after !== before) this.#deps.onStanding?.(member, after, before);
  }

  #tail(standings: readonly Standing[]): string {
    const { members, version } = this.#deps;
    const instructions = members.flatMap(({ rank, config }) => {
      const standing = standings[rank];
      const text = standing?.kind === 'seen' ? standing.seen.instructions : undefined;
      return text === undefined || text === '' ? [] : [`## ${config.name}\n\n${text}`];
    });
    const parts = [
      `,"supportedVersions":${JSON.stringify(SUPPORTED_VERSIONS)}`,
      `,"capabilities":${mergeCapabilities(
        standings,
        members.map(({ config }) => config.subscribe),
      )}`,
      ...(instructions.length > 0 ? [`,"instructions":${JSON.stringify(instructions.join('\n\n'))}`] : []),
      `,"_meta":{${JSON.stringify(META_SERVER_INFO)}:${JSON.stringify(serverInfo(version))}}}}`,
    ];
    return parts.join('');
  }
}

/** Whom an answer teaches: what is no result has no scope, and may be about the caller's credentials. */
function pupilOf(member: Member, cached: Cached<Told>, { partition }: Asking): Pupil {
  const scope = cached.kind === 'complete' ? cached.scope : 'private';
  if (audienceOf(member, scope, partition).kind === 'everybody') return 'everybody';
  return partition === GATEWAY ? 'gateway' : 'caller';
}

/** How the gateway names itself to clients. */
export function serverInfo(version: string): { name: string; title: string; version: string } {
  return { name: 'headgate', title: 'Headgate', version };
}

/** The gateway asking on its own behalf: an anonymous caller without capabilities. */
function probing(signal: Signal): Asking {
  const params = gatewayParams();
  return {
    partition: GATEWAY,
    head: readHead([]),
    params,
    texts: keyTexts(params),
    keys: undefined,
    version: CURRENT_VERSION,
    signal,
    caching: 'on',
    waiting: () => () => undefined,
  };
}

/** The members of `_meta` where the gateway asks on its own, as JSON. */
export function gatewayMeta(): string {
  return GATEWAY_META.slice(1, -1);
}

/** What the gateway says of itself where it asks on its own. */
export function gatewayParams(): Params {
  const bytes = new TextEncoder().encode(GATEWAY_META);
  return { bytes, members: [], meta: objectMembers(bytes, 0) ?? [] };
}

/** What an upstream has said that says nothing in time. */
const LATE: Heard = {
  cached: {
    kind: 'other',
    value: {
      kind: 'failure',
      failure: { kind: 'timeout', proxyError: 'http_response_timeout', detail: 'late for a discover' },
    },
    outcome: { kind: 'miss', why: 'uri-miss', stored: 'not-storable', collapsed: false },
  },
  said: { kind: 'nothing', why: 'timeout' },
};

/** `late` after the wait; the work goes on, and ends by its own deadline. */
function withinWait<T>(work: Promise<T>, late: T): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(late), DISCOVER_WAIT_MS);
    void work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
