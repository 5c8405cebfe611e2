/**
 * The soak's oracle: what an answer may show, judged by what was true and what was in trouble. Pure.
 *
 * **Wrong caller.** The bytes say which resource they are of and for whom they were made. Another resource is never
 * right; another caller only where that version was public.
 *
 * **Stale.** A version that was replaced may still be shown until there was a stretch of {@link HEAL_MS}, between its
 * end and the request, without trouble: the upstream up, listened to by as many gateways as run, Redis up and not just
 * flushed, this gateway running. So the bound counts from the return of whatever was away (design, section 6). For
 * `gamma`, which the gateway cannot watch without a caller's credential, there is no such bound.
 *
 * **Stale after told.** A client that hears `updated` and reads is shown what it was told of, by the gateway that told
 * it at once, by another one `PASSED_ON_MS` later (README, "Fresh, then told"): checked where it is plain which
 * change it heard of, and nothing was in trouble. What it hears when a broken stream is back is not checked: of what came
 * between, a caller's own stream frees only the replica that holds it, and another may show the old answer until its
 * time is over.
 *
 * **Past its time.** Whatever is in trouble, it is not shown beyond its time to live after its end: an answer that
 * began to live when the version was the newest is over by then. Under a forwarded credential, private answers live
 * for {@link FORWARDED_MS} at most.
 *
 * Neither holds for an answer that says `stale-if-error` with `ttlMs` 0 while its upstream is down, or was a moment ago.
 *
 * **Lost item.** Where an upstream's list has settled before a walk and nothing changed during it, the walk shows
 * each of its items exactly once, and none besides. An upstream may be left out, and said to be, while it is down.
 *
 * **Unexpected error.** No error while all upstreams of the route are up, {@link CIRCUIT_MS} after a return. Trouble
 * of Redis is no excuse. That a resource is not there is an answer like any other.
 */
import { CIRCUIT_MS, FORWARDED_MS, HEAL_MS, REOPEN_MS, SLACK_MS } from './bounds.ts';
import type { Finding } from './findings.ts';
import type { Part, Troubles } from './troubles.ts';
import {
  newest,
  type Resource,
  readStamp,
  scopeOf,
  type Truth,
  type UpstreamName,
  visible,
} from './truth.ts';

/** The upstreams of each route, in order. */
export const ROUTES = { '/mcp': ['alpha', 'beta'], '/own': ['gamma'] } as const satisfies Record<
  string,
  readonly UpstreamName[]
>;
export type Route = keyof typeof ROUTES;

/** What the gateway can listen to on its own behalf. */
export const WATCHED: readonly UpstreamName[] = ['alpha', 'beta'];

/** A request and when it was sent and answered. */
export interface Asked {
  readonly caller: string;
  readonly gateway: string;
  readonly route: Route;
  readonly startedAt: number;
  readonly endedAt: number;
}

/** What came, as far as it is judged. */
export interface Answer {
  /** 0: none came. */
  readonly status: number;
  readonly cacheStatus: string;
  readonly code?: number;
  readonly message?: string;
  readonly ttlMs?: number;
  readonly texts: readonly string[];
}

/** One item of a list. */
export interface Item {
  readonly uri: string;
  /** The caller that its bytes were made for. */
  readonly madeFor: string;
}

/** When a client heard `updated`, and from which gateway. */
export interface Told {
  readonly at: number;
  readonly by: string;
}

export interface Walk extends Asked {
  readonly items: readonly Item[];

  readonly incomplete: readonly string[];
  /** What ended it before its end. */
  readonly failure?: Answer;
}

const NOT_FOUND = -32602;
const GATEWAYS = ['gateway:a', 'gateway:b'] as const satisfies readonly Part[];
/** A change so long after the one before is the one that is heard of. */
const ALONE_MS = 1_500;

export class Oracle {
  readonly #truth: Truth;
  readonly #troubles: Troubles;

  constructor(truth: Truth, troubles: Troubles) {
    this.#truth = truth;
    this.#troubles = troubles;
  }

  /** Judges a read. */
  read(asked: Asked, uri: string, answer: Answer): readonly Finding[] {
    const resource = this.#truth.resource(uri);
    const what = `${uri} for ${asked.caller} on ${asked.gateway}: ${told(answer)}`;
    if (answer.code === NOT_FOUND && answer.status === 200) return this.#absent(asked, resource, what);
    if (answer.status !== 200 || answer.code !== undefined) return this.error(asked, what);
    const stamp = readStamp(answer.texts[0]);
    if (stamp === undefined || answer.texts.length !== 1 || stamp.uri !== uri)
      return [{ kind: 'wrong caller', what: `${what}: not of this resource` }];
    const version = resource.versions[stamp.version];
    if (version?.state !== 'there' || version.from > asked.endedAt)
      return [{ kind: 'wrong caller', what: `${what}: a version that never was` }];
    const isForAll = scopeOf(resource, stamp.version) === 'public';
    if (!visible(resource, asked.caller) || (!isForAll && stamp.madeFor !== asked.caller))
      return [{ kind: 'wrong caller', what: `${what}: made for ${stamp.madeFor}` }];
    if (this.#standsIn(asked, resource, answer)) return [];
    return this.#late(asked, resource, version.until, what);
  }

  /** Judges a walk from the first page to its end. */
  walk(walk: Walk): readonly Finding[] {
    const what = `list of ${walk.route} for ${walk.caller}`;
    const members: readonly UpstreamName[] = ROUTES[walk.route];
    const foreign = walk.items.filter((item) => this.#isForeign(walk, item));
    const findings: Finding[] = foreign.map(({ uri, madeFor }) => ({
      kind: 'wrong caller',
      what: `${what} shows ${uri}, made for ${madeFor}`,
    }));
    if (walk.failure !== undefined) {
      // A cursor is refused, too, when the list that it came from has changed.
      const isChanged = members.some((upstream) => !this.#isSettled(walk, upstream));
      if (isChanged && walk.failure.code === NOT_FOUND) return findings;
      return [...findings, ...this.error(walk, `${what} broke off: ${told(walk.failure)}`)];
    }
    for (const upstream of members) {
      if (this.#isDisturbed(walk, [upstream])) continue;
      if (walk.incomplete.includes(upstream)) {
        findings.push({ kind: 'lost item', what: `${what} without ${upstream}, which is up` });
      } else if (this.#isSettled(walk, upstream)) findings.push(...this.#exact(walk, upstream, what));
    }
    return findings;
  }

  /** Whether a walk of that upstream's list must be exact. */
  mustBeExact(walk: Walk, upstream: UpstreamName): boolean {
    return (
      walk.failure === undefined && !this.#isDisturbed(walk, [upstream]) && this.#isSettled(walk, upstream)
    );
  }

  /**
   * Judges a read that was made because of an `updated`.
   * @returns undefined where it cannot be told what it must show.
   */
  readAfterTold(
    asked: Asked,
    uri: string,
    answer: Answer,
    { at: toldAt, by }: Told,
  ): readonly Finding[] | undefined {
    const { upstream, versions } = this.#truth.resource(uri);
    const last = versions.findLast(({ from }) => from <= toldAt);
    const before = versions[(last?.number ?? 0) - 1];
    if (last?.state !== 'there' || before === undefined || last.from - before.from < ALONE_MS)
      return undefined;
    const parts: readonly Part[] = [`unwatched:${upstream}`, 'redis', ...GATEWAYS];
    if (this.#troubles.touch(parts, last.from - HEAL_MS, asked.endedAt)) return undefined;
    if (this.#troubles.touch([`down:${upstream}`], last.from - REOPEN_MS - HEAL_MS, asked.endedAt))
      return undefined;
    const stamp = readStamp(answer.texts[0]);
    if (stamp === undefined) return undefined;
    const sinceMs = (at: number): string => `${(at - last.from).toFixed(1)} ms`;
    const when = `told of ${last.number} by ${by} after ${sinceMs(toldAt)}, answered after ${sinceMs(asked.endedAt)}`;
    const what = `${uri} for ${asked.caller} on ${asked.gateway}: ${told(answer)}: ${when}`;
    return stamp.version >= last.number ? [] : [{ kind: 'stale', what }];
  }

  /** Whether nothing but the newest version may be shown: a soak that never asks for that proves nothing. */
  mustBeNewest(asked: Asked, uri: string): boolean {
    const resource = this.#truth.resource(uri);
    const { from } = newest(resource);
    return from < asked.startedAt && this.#late(asked, resource, from, '').length > 0;
  }

  /** Judges what is an error whatever was asked. */
  error(asked: Asked, what: string): readonly Finding[] {
    return this.#isDisturbed(asked, ROUTES[asked.route]) ? [] : [{ kind: 'unexpected error', what }];
  }

  /** Judges a call, which is never cached: its own echo or an error. */
  call(asked: Asked, echo: string, answer: Answer): readonly Finding[] {
    const what = `call of ${asked.caller} on ${asked.gateway}: ${told(answer)}`;
    if (answer.status !== 200 || answer.code !== undefined) return this.error(asked, what);
    return answer.texts.length === 1 && answer.texts[0] === echo ? [] : [{ kind: 'wrong caller', what }];
  }

  #absent(asked: Asked, resource: Resource, what: string): readonly Finding[] {
    if (!visible(resource, asked.caller)) return [];
    const fits = resource.versions.some(
      ({ state, from, until }) =>
        state === 'absent' && from <= asked.endedAt && this.#late(asked, resource, until, what).length === 0,
    );
    return fits ? [] : this.error(asked, `${what}: it was there`);
  }

  /** What is wrong with showing what ended then. */
  #late(asked: Asked, resource: Resource, until: number, what: string): readonly Finding[] {
    if (until >= asked.startedAt) return [];
    const { upstream } = resource;
    const lateMs = Math.round(asked.startedAt - until);
    const late = `${what}: replaced ${lateMs} ms before, now ${newest(resource).number}`;
    const isHealed = WATCHED.includes(upstream) && this.#isQuiet(asked, upstream, until);
    if (isHealed) return [{ kind: 'stale', what: late }];
    const lifeMs = upstream === 'gamma' ? Math.min(resource.ttlMs, FORWARDED_MS) : resource.ttlMs;
    return lateMs > lifeMs + SLACK_MS ? [{ kind: 'past its time', what: late }] : [];
  }

  /** Whether nothing was in trouble for long enough between then and the request. */
  #isQuiet({ gateway, startedAt }: Asked, upstream: UpstreamName, since: number): boolean {
    const parts: readonly Part[] = [
      `down:${upstream}`,
      `unwatched:${upstream}`,
      `gateway:${gateway}`,
      'redis',
    ];
    return this.#troubles.quietFor(HEAL_MS, parts, since, startedAt);
  }

  #isDisturbed({ startedAt, endedAt }: Asked, upstreams: readonly UpstreamName[]): boolean {
    const parts = upstreams.map((upstream): Part => `down:${upstream}`);
    return this.#troubles.touch(parts, startedAt - CIRCUIT_MS, endedAt);
  }

  #standsIn(asked: Asked, { upstream }: Resource, { cacheStatus, ttlMs }: Answer): boolean {
    return cacheStatus.includes('stale-if-error') && ttlMs === 0 && this.#isDisturbed(asked, [upstream]);
  }

  /** Whether a list is the newest one in every cache, and stayed so. */
  #isSettled(walk: Asked, upstream: UpstreamName): boolean {
    const lastAt = this.#truth.listChanges(upstream).findLast((at) => at <= walk.endedAt) ?? 0;
    if (lastAt >= walk.startedAt) return false;
    // Gamma's list lives by its time alone.
    if (!WATCHED.includes(upstream)) return walk.startedAt - lastAt > LIST_TTL_MS.gamma + SLACK_MS;
    return (['a', 'b'] as const).every((gateway) => this.#isQuiet({ ...walk, gateway }, upstream, lastAt));
  }

  #isForeign({ caller }: Walk, { uri, madeFor }: Item): boolean {
    const resource = this.#truth.find(uri);
    if (resource === undefined || !visible(resource, caller)) return true;
    return LIST_SCOPE[resource.upstream] === 'private' && madeFor !== caller;
  }

  #exact(walk: Walk, upstream: UpstreamName, what: string): readonly Finding[] {
    const counts = new Map<string, number>();
    for (const { uri } of walk.items) counts.set(uri, (counts.get(uri) ?? 0) + 1);
    const expected = new Set(
      this.#truth
        .of(upstream)
        .filter((resource) => visible(resource, walk.caller) && wasThere(resource, walk.startedAt))
        .map(({ uri }) => uri),
    );
    const findings: Finding[] = [];
    for (const uri of expected) {
      const count = counts.get(uri) ?? 0;
      if (count !== 1) findings.push({ kind: 'lost item', what: `${what} has ${uri} ${count} times` });
    }
    for (const uri of counts.keys()) {
      const known = this.#truth.find(uri);
      if (known?.upstream === upstream && visible(known, walk.caller) && !expected.has(uri))
        findings.push({ kind: 'lost item', what: `${what} has ${uri}, which was removed` });
    }
    return findings;
  }
}

/** Lists: for whom, and for how long. */
export const LIST_SCOPE = { alpha: 'public', beta: 'private', gamma: 'private' } as const;
export const LIST_TTL_MS = { alpha: 600_000, beta: 600_000, gamma: 3_000 } as const;

function wasThere({ versions }: Resource, at: number): boolean {
  return versions.some(({ state, from, until }) => state === 'there' && from <= at && at < until);
}

function told({ status, code, message, cacheStatus, texts }: Answer): string {
  const error = code === undefined ? '' : ` ${code} ${message ?? ''}`;
  return `${status}${error} [${cacheStatus}] ${texts.join(' ').slice(0, 200)}`;
}
