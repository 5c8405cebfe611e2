/**
 * The cache: the only place that decides whether an answer is served from store, loaded, shared or kept.
 *
 * Lookup takes the caller's own entry, then the public one, under the policy of now. A miss boards a flight; what
 * it brings goes to `keep.ts`. *Never* hands a caller bytes that were made for another, unless they came public.
 * *Spec:* server/utilities/caching.
 */
import { createGenerations } from './generations.ts';
import { ageMs, keptMsUnder, leftMs, sanitise, scopeUnder, ttlUnder } from './hints.ts';
import { type Boarding, createInflight, type Schedule, scheduleTimeout } from './inflight.ts';
import { createKeeper, type Kept, type LastAnswer } from './keep.ts';
import { privateKey, publicKey } from './key.ts';
import type {
  Cached,
  CacheObserver,
  CacheOutcome,
  CacheRequest,
  Entry,
  Load,
  Loaded,
  Lookup,
  Scope,
  Store,
} from './types.ts';

export interface CacheOptions {
  readonly store: Store;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly observer: CacheObserver;
  /** Default: the clock's own timers. */
  readonly schedule?: Schedule;
}

/** See the file's head. Everything is over at once for requests that come after an `invalidate…`. */
export interface Cache {
  /**
   * Answers from the store, at once where it is fresh, or by `load`, alone or together with others. Rejects with the signal's reason when the
   * caller leaves, and with what `load` rejects with where this request led. Reports to the observer once.
   *
   * Requests of one `baseKey` must have loads of one `T`.
   */
  through<T>(request: CacheRequest, load: Load<T>): Cached<T> | Promise<Cached<T>>;
  /** What `through` would answer at once; undefined where it would have to wait: then nothing has happened. */
  fresh(request: Lookup): Cached<never> | undefined;
  /** Drops everything of an upstream. */
  invalidateUpstream(upstream: string): void;
  /** Drops an upstream's answers to one method. */
  invalidateMethod(upstream: string, method: string): void;
  /** Drops one key for every caller. */
  invalidateKey(upstream: string, baseKey: string): void;
  /** Drops all pages of an upstream's list, as that caller sees it: it refused its own cursor. */
  dropChain(id: string, partition: string): void;
  /** Loads that requests can still join. */
  readonly flightCount: number;
}

/** Whether an entry was there whose time is over. */
type MissWhy = Extract<CacheOutcome, { kind: 'miss' }>['why'];

/** *Bounded by* the store, and by the bounds that `keep.ts`, `generations.ts` and `inflight.ts` name. */
export function createCache({ store, now, observer, schedule = scheduleTimeout }: CacheOptions): Cache {
  const generations = createGenerations();
  const keeper = createKeeper({ store, generations, observer });
  const inflight = createInflight({ nextOrder: generations.next, schedule });

  /** A stored entry that no invalidation concerns. */
  function living(key: string, floor: number): Entry | undefined {
    const entry = store.get(key);
    if (entry === undefined || entry.loadOrder > floor) return entry;
    store.delete(key);
    return undefined;
  }

  function ownEntry(request: Lookup): Entry | undefined {
    return living(privateKey(request.baseKey, request.partition), generations.ownFloor(request));
  }

  function publicEntry(request: Lookup): Entry | undefined {
    const entry = living(publicKey(request.baseKey), generations.publicFloor(request));
    // Stored under a policy that has been tightened since.
    return entry && scopeUnder(request.policy, entry.scope) === 'public' ? entry : undefined;
  }

  function lookup(request: Lookup): Cached<never> | MissWhy {
    const at = now();
    const own = ownEntry(request);
    const ownHit = own && freshHit(own, request, 'private', at);
    if (ownHit !== undefined) return ownHit;
    const shared = publicEntry(request);
    const sharedHit = shared && freshHit(shared, request, 'public', at);
    if (sharedHit !== undefined) return sharedHit;
    return own === undefined && shared === undefined ? 'uri-miss' : 'stale';
  }

  /** The newest entry that may still be served although its time is over. */
  function lastGood(request: CacheRequest): Cached<never> | undefined {
    const own = ownEntry(request);
    const shared = publicEntry(request);
    if (own !== undefined && (shared === undefined || own.loadOrder > shared.loadOrder)) {
      return staleHit(own, request, 'private', now());
    }
    return shared && staleHit(shared, request, 'public', now());
  }

  function deliver<T>(request: CacheRequest, kept: Kept<T>, why: MissWhy, by: 'self' | 'another'): Cached<T> {
    const { loaded, scope, stored } = kept;
    const collapsed = by === 'another';
    const outcome: CacheOutcome = { kind: 'miss', why, stored, collapsed };
    if (collapsed) observer.collapsed(request.upstream);
    switch (loaded.kind) {
      case 'complete': {
        const ttlMs = leftMs(kept.ttlMs, loaded.receivedAt, now());
        return { kind: 'complete', tail: collapsed ? loaded.storable : loaded.tail, ttlMs, scope, outcome };
      }
      case 'uncacheable':
      case 'large':
        return { kind: 'other', value: loaded.value, outcome };
      case 'failed': {
        const good = loaded.stale === 'allowed' ? lastGood(request) : undefined;
        if (good?.kind !== 'complete') return { kind: 'other', value: loaded.value, outcome };
        return { ...good, failed: loaded.value };
      }
    }
  }

  /**
   * Boards the flight that the last answer allows: everybody's, or the own context's. A refused request asks for
   * itself: at once, together with its own context, and after that alone.
   */
  async function ask<T>(request: CacheRequest, load: Load<T>, why: MissWhy): Promise<Cached<T>> {
    let last = keeper.lastAnswer(request.baseKey);
    // What could not be stored last time would be refused to all but the leader: nobody waits for it.
    for (let tries = 0; tries < 2 && last !== 'nobody'; tries++) {
      const boarding = await board(request, load, tries === 0 ? sharingOf(request, last) : 'private');
      if (boarding.kind === 'landed') return deliver(request, boarding.value, why, boarding.by);
      const found = lookup(request);
      if (typeof found !== 'string') return found;
      last = keeper.lastAnswer(request.baseKey);
    }
    request.signal.throwIfAborted();
    const order = generations.next();
    return deliver(request, keeper.keep(request, order, await load(request.signal)), why, 'self');
  }

  function board<T>(request: CacheRequest, load: Load<T>, sharing: Scope): Promise<Boarding<Kept<T>>> {
    const { baseKey, partition, policy, signal } = request;
    const isPublic = sharing === 'public';
    // What is public to one policy may not be to another: at a reload, both have requests in flight.
    const key = isPublic ? policy.scope + publicKey(baseKey) : privateKey(baseKey, partition);
    const floor = isPublic
      ? Math.max(generations.publicFloor(request), generations.turnedPrivateAt(request))
      : generations.ownFloor(request);
    return inflight.board(key, { context: partition, signal, floor }, async (flightSignal, order) => {
      const kept = keeper.keep(request, order, await load(flightSignal));
      return { audience: kept.audience, value: kept };
    });
  }

  function sharingOf({ policy }: CacheRequest, last: LastAnswer | undefined): Scope {
    return last === 'public' && policy.scope !== 'private' ? 'public' : 'private';
  }

  async function askAndReport<T>(request: CacheRequest, load: Load<T>, why: MissWhy): Promise<Cached<T>> {
    let status: 'hit' | 'stale' | 'miss' = 'miss';
    try {
      const cached = await ask(request, load, why);
      if (cached.outcome.kind !== 'bypass') status = cached.outcome.kind;
      return cached;
    } finally {
      observer.cacheRequest(request.upstream, request.method, status, status === 'miss' ? 'none' : 'memory');
    }
  }

  async function pass<T>(
    request: CacheRequest,
    load: Load<T>,
    why: Extract<CacheOutcome, { kind: 'bypass' }>['why'],
  ): Promise<Cached<T>> {
    observer.cacheRequest(request.upstream, request.method, 'bypass', 'none');
    observer.cacheBypass(request.upstream, why);
    request.signal.throwIfAborted();
    return passed(await load(request.signal), request, why, now());
  }

  function reported(request: Lookup, hit: Cached<never>): Cached<never> {
    observer.cacheRequest(request.upstream, request.method, 'hit', 'memory');
    return hit;
  }

  return {
    through<T>(request: CacheRequest, load: Load<T>): Cached<T> | Promise<Cached<T>> {
      if (request.use !== 'normal') return pass(request, load, request.use.bypass);
      const found = lookup(request);
      if (typeof found === 'string') return askAndReport(request, load, found);
      return reported(request, found);
    },
    fresh(request) {
      const found = lookup(request);
      return typeof found === 'string' ? undefined : reported(request, found);
    },
    invalidateUpstream: generations.invalidateUpstream,
    invalidateMethod: generations.invalidateMethod,
    invalidateKey(upstream, baseKey) {
      generations.invalidateKey(upstream, baseKey);
      store.delete(publicKey(baseKey));
    },
    dropChain(id, partition) {
      generations.dropChain(id, partition);
      generations.dropChain(id, undefined);
    },
    get flightCount() {
      return inflight.flightCount;
    },
  };
}

function freshHit(entry: Entry, { policy }: Lookup, scope: Scope, at: number): Cached<never> | undefined {
  const ttlMs = leftMs(ttlUnder(policy, entry, scope), entry.receivedAt, at);
  if (ttlMs === 0) return undefined;
  const outcome: CacheOutcome = { kind: 'hit', tier: 'memory', ageMs: ageMs(entry.receivedAt, at), ttlMs };
  return { kind: 'complete', tail: entry.tail, ttlMs, scope, outcome };
}

function staleHit(
  entry: Entry,
  { policy }: CacheRequest,
  scope: Scope,
  at: number,
): Cached<never> | undefined {
  if (at >= entry.receivedAt + keptMsUnder(policy, entry, scope)) return undefined;
  const outcome: CacheOutcome = { kind: 'stale', ageMs: ageMs(entry.receivedAt, at) };
  return { kind: 'complete', tail: entry.tail, ttlMs: 0, scope, outcome };
}

function passed<T>(
  loaded: Loaded<T>,
  { policy }: CacheRequest,
  why: Extract<CacheOutcome, { kind: 'bypass' }>['why'],
  at: number,
): Cached<T> {
  const outcome: CacheOutcome = { kind: 'bypass', why };
  if (loaded.kind !== 'complete') return { kind: 'other', value: loaded.value, outcome };
  const hints = sanitise(loaded.hints);
  const scope = scopeUnder(policy, hints.scope);
  const { receivedAt, tail } = loaded;
  const ttlMs = leftMs(ttlUnder(policy, { ttlMs: hints.ttlMs, receivedAt }, scope), receivedAt, at);
  return { kind: 'complete', tail, ttlMs, scope, outcome };
}
