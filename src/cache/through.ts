/**
 * The cache: the only place that decides whether an answer is served from store, loaded, shared or kept.
 *
 * Lookup takes the caller's own entry, then the public one, under the policy of now. A miss boards a flight; what
 * it brings goes to `keep.ts`. *Never* hands a caller bytes that were made for another, unless they came public.
 * *Spec:* server/utilities/caching.
 */
import type { Signal } from '../protocol/signal.ts';
import { createGenerations } from './generations.ts';
import { ageMs, keptMsUnder, leftMs, sanitise, scopeUnder } from './hints.ts';
import { type Boarding, createInflight, type Schedule, scheduleTimeout } from './inflight.ts';
import { createKeeper, type Kept, type LastAnswer } from './keep.ts';
import { privateKey, publicKey } from './key.ts';
import { EVERYTHING, type RemoteFound, type RemoteStore } from './remote-types.ts';
import { freshHit, isDoubted, lasts, passed, staleHit } from './served.ts';
import {
  droppedField,
  endedBy,
  keyField,
  lookupOf,
  methodField,
  readField,
  type Scoped,
  scopesOf,
  slotOf,
} from './shared.ts';
import { Trailing } from './trailing.ts';
import type {
  Cached,
  CacheObserver,
  CacheOutcome,
  CacheRequest,
  Entry,
  Invalidator,
  Load,
  Lookup,
  Scope,
  Store,
} from './types.ts';
import { dependsOn, updatedFields, uriField } from './uris.ts';

export interface CacheOptions {
  readonly store: Store;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly observer: CacheObserver;
  /** Default: the clock's own timers. */
  readonly schedule?: Schedule;
  /** The tier that all replicas share. */
  readonly remote?: RemoteStore;
  /**
   * Told when what an upstream answered to a method, or to all (undefined), is over or in doubt, here or on another
   * replica: what was learnt of it is no more certain.
   */
  readonly onOver?: (upstream: string, method: string | undefined) => void;
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
  /**
   * Drops everything of an upstream. Like all of these: here at once, and for all replicas when the promise is
   * fulfilled. *Never* rejects. @param by default: a notification.
   * @returns whether there are others, and they have been told.
   */
  invalidateUpstream(upstream: string, by?: Invalidator): Promise<boolean>;
  /** Drops an upstream's answers to one method. */
  invalidateMethod(upstream: string, method: string, by?: Invalidator): Promise<boolean>;
  /** Drops one key for every caller. */
  invalidateKey(upstream: string, baseKey: string, by?: Invalidator): Promise<boolean>;
  /** Drops what an update of that resource ends, for every caller: see `uris.ts`. */
  invalidateUri(upstream: string, uri: string, by?: Invalidator): Promise<boolean>;
  /**
   * Drops everything of an upstream here alone, and its place with it: the configuration has another one or none by this
   * name. Other replicas have configurations of their own.
   */
  forget(upstream: string): void;
  /**
   * What is kept of an upstream's answers, to these methods or all, may be out of date: it is read again at its next
   * use, and only stands in when the upstream fails. Of the other replicas each knows for itself.
   */
  doubt(upstream: string, methods?: readonly string[]): void;
  /**
   * Updates of these resources are told from now on; what was read before and lasts is read again at its next use.
   * @param promised those of them that others are told of, too: of these all that was read before is read again.
   */
  watch(upstream: string, uris: readonly string[], promised?: readonly string[]): void;
  /** Drops all pages of an upstream's list, as that caller sees it: it refused its own cursor. */
  dropChain(upstream: string, id: string, partition: string): void;
  /** Loads that requests can still join. */
  readonly flightCount: number;
}

const READ = 'resources/read';

type RemoteAnswers = Extract<RemoteFound, { kind: 'asked' }>;

/** Whether an entry was there whose time is over. */
type MissWhy = Extract<CacheOutcome, { kind: 'miss' }>['why'];

/** What becomes of an answer in the shared store, as it is counted. */
const STORED = {
  stored: 'ok',
  too_large: 'too_large',
  superseded: 'superseded',
  unavailable: 'error',
} as const;

/** *Bounded by* the store, and by the bounds that `keep.ts`, `generations.ts` and `inflight.ts` name. */
export function createCache(options: CacheOptions): Cache {
  const { store, now, observer, schedule = scheduleTimeout, remote, onOver } = options;
  const generations = createGenerations();
  const keeper = createKeeper({ store, generations, observer });
  const bumps = new Trailing<boolean>();
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
    const floor = generations.doubtFloor(request);
    const own = ownEntry(request);
    const ownHit = own && freshHit(own, request, 'private', at);
    if (ownHit !== undefined && !isDoubted(own, floor)) return ownHit;
    const shared = publicEntry(request);
    const sharedHit = shared && freshHit(shared, request, 'public', at);
    if (sharedHit !== undefined && !isDoubted(shared, floor)) return sharedHit;
    if ((ownHit ?? sharedHit) !== undefined) return 'rewatch';
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
    if (kept.tier === 'redis') return fromRedis(kept);
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
      const boarding = await board(request, load, why, tries === 0 ? sharingOf(request, last) : 'private');
      if (boarding.kind === 'landed') return deliver(request, boarding.value, why, boarding.by);
      const found = lookup(request);
      if (typeof found !== 'string') return found;
      last = keeper.lastAnswer(request.baseKey);
    }
    request.signal.throwIfAborted();
    return deliver(request, await fetch(request, generations.next(), request.signal, load, why), why, 'self');
  }

  /** Asks Redis, where there is one, and then the upstream. @param order taken before either is asked. */
  async function fetch<T>(
    request: CacheRequest,
    order: number,
    signal: Signal,
    load: Load<T>,
    why: MissWhy,
  ): Promise<Kept<T>> {
    if (remote === undefined) return keeper.keep(request, order, await load(signal));
    const found = await remote.lookup(lookupOf(request, remote.sealsPrivate));
    // What is doubted here is what was shared there.
    const adopted = found.kind === 'asked' && why !== 'rewatch' ? adopt(request, order, found) : undefined;
    if (adopted !== undefined) return adopted;
    const kept = keeper.keep(request, order, await load(signal));
    void share(remote, request, order, found.kind === 'asked' ? found.token : undefined, kept);
    return kept;
  }

  /** Takes in what Redis has; what is fresh is the answer, what is not stays for `staleIfError`. */
  function adopt(request: CacheRequest, order: number, found: RemoteAnswers): Kept<never> | undefined {
    const at = now();
    for (const scope of ['private', 'public'] as const) {
      const entry = scope === 'private' ? found.own : found.shared;
      if (entry === undefined || (scope === 'public' && scopeUnder(request.policy, entry.scope) !== 'public'))
        continue;
      // By the operator's promise: whoever stops making it has no public answer here.
      const said = request.policy.scope === 'public' ? 'private' : scope;
      const kept = keeper.adopt(
        request,
        order,
        { ...entry, scope: said, receivedAt: at - entry.ageMs },
        scope,
      );
      if (kept !== undefined && leftMs(kept.ttlMs, at - entry.ageMs, at) > 0) return kept;
    }
    return undefined;
  }

  /**
   * Lets the other replicas have what a load brought, and end what it ended: that also where Redis could not be asked
   * before (`token` undefined), for it is made good when it can be told.
   */
  async function share<T>(
    to: RemoteStore,
    request: CacheRequest,
    order: number,
    token: number | undefined,
    { loaded, scope, stored, turned }: Kept<T>,
  ): Promise<void> {
    if (loaded.kind !== 'complete' && loaded.kind !== 'large') return;
    const { upstream, policy, uri } = request;
    const ended = endedBy(request, turned === true);
    if (ended.length > 0) await to.bump(upstream, ended, turned === true ? 'told' : 'quietly');
    if (
      token === undefined ||
      loaded.kind === 'large' ||
      stored !== 'stored' ||
      (scope === 'private' && !to.sealsPrivate)
    )
      return;
    const { ttlMs } = sanitise(loaded.hints);
    const { receivedAt } = loaded;
    const age = ageMs(receivedAt, now());
    const result = await to.store({
      ...{ upstream, slot: slotOf(request, scope), token, tail: loaded.storable, scope, ttlMs },
      ageMs: age,
      keepMs: Math.floor(keptMsUnder(policy, { ttlMs, receivedAt }, scope)) - age,
      uris: uri === undefined ? [] : dependsOn(uri, loaded.uris ?? []),
    });
    observer.cacheStore('redis', STORED[result]);
    if (result === 'superseded') keeper.disown(request, order, scope);
  }

  function fromRedis<T>({ loaded, scope, ttlMs }: Kept<T>): Cached<T> {
    if (loaded.kind !== 'complete') throw new Error('only complete answers come from Redis');
    const at = now();
    const left = leftMs(ttlMs, loaded.receivedAt, at);
    const outcome: CacheOutcome = {
      ...{ kind: 'hit', tier: 'redis', ttlMs: left },
      ageMs: ageMs(loaded.receivedAt, at),
    };
    return { kind: 'complete', tail: loaded.tail, ttlMs: left, scope, outcome };
  }

  function board<T>(
    request: CacheRequest,
    load: Load<T>,
    why: MissWhy,
    sharing: Scope,
  ): Promise<Boarding<Kept<T>>> {
    const { baseKey, partition, policy, signal } = request;
    const isPublic = sharing === 'public';
    // What is public to one policy may not be to another: at a reload, both have requests in flight.
    const key = isPublic ? policy.scope + publicKey(baseKey) : privateKey(baseKey, partition);
    const floor = Math.max(
      isPublic
        ? Math.max(generations.publicFloor(request), generations.turnedPrivateAt(request))
        : generations.ownFloor(request),
      request.uri === undefined ? 0 : generations.uriFloor(request.upstream, [uriField(request.uri)]),
      generations.doubtFloor(request),
    );
    return inflight.board(key, { context: partition, signal, floor }, async (flightSignal, order) => {
      const kept = await fetch(request, order, flightSignal, load, why);
      return { audience: kept.audience, value: kept };
    });
  }

  function sharingOf({ policy }: CacheRequest, last: LastAnswer | undefined): Scope {
    return last === 'public' && policy.scope !== 'private' ? 'public' : 'private';
  }

  async function askAndReport<T>(request: CacheRequest, load: Load<T>, why: MissWhy): Promise<Cached<T>> {
    let outcome: CacheOutcome | undefined;
    try {
      const cached = await ask(request, load, why);
      ({ outcome } = cached);
      return cached;
    } finally {
      const status = outcome === undefined || outcome.kind === 'bypass' ? 'miss' : outcome.kind;
      const tier = outcome?.kind === 'hit' ? outcome.tier : status === 'stale' ? 'memory' : 'none';
      observer.cacheRequest(request.upstream, request.method, status, tier);
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

  /** Ends what these fields cover: here at once, then for all replicas. In a storm of the same not each is told. */
  function end(
    upstream: string,
    fields: readonly string[],
    scope: Scoped,
    by: Invalidator = 'notification',
  ): Promise<boolean> {
    endHere(upstream, fields);
    observer.cacheInvalidated(upstream, by, scope);
    if (remote === undefined) return Promise.resolve(false);
    return bumps.run(JSON.stringify([upstream, fields]), () => remote.bump(upstream, fields, 'told'));
  }

  function endHere(upstream: string, fields: readonly string[]): void {
    const uris: string[] = [];
    for (const field of fields) {
      const told = readField(field);
      switch (told.kind) {
        case 'everything':
          generations.invalidateUpstream(upstream);
          onOver?.(upstream, undefined);
          break;
        case 'method':
          generations.invalidateMethod(upstream, told.method);
          onOver?.(upstream, told.method);
          break;
        case 'key':
          generations.invalidateKey(upstream, told.baseKey);
          store.delete(publicKey(told.baseKey));
          break;
        case 'turned':
          generations.turnPrivate(upstream, told.baseKey);
          store.delete(publicKey(told.baseKey));
          break;
        case 'uri':
          uris.push(told.field);
          break;
        case 'nothing':
          break;
      }
    }
    if (uris.length > 0) generations.invalidateUris(upstream, uris);
    for (const uri of uris) store.deleteUri(upstream, uri);
  }

  remote?.onChange(({ upstream, fields, source }) => {
    endHere(upstream, fields);
    for (const scope of scopesOf(fields)) observer.cacheInvalidated(upstream, source, scope);
  });

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
    invalidateUpstream: (upstream, by) => end(upstream, [EVERYTHING], 'upstream', by),
    invalidateMethod: (upstream, method, by) => end(upstream, [methodField(method)], 'method', by),
    invalidateKey: (upstream, baseKey, by) => end(upstream, [keyField(baseKey)], 'key', by),
    invalidateUri: (upstream, uri, by) => end(upstream, updatedFields(uri) ?? [methodField(READ)], 'uri', by),
    forget(upstream) {
      endHere(upstream, [EVERYTHING]);
      store.deleteUpstream(upstream);
      observer.cacheInvalidated(upstream, 'reload', 'upstream');
    },
    doubt(upstream, methods) {
      for (const method of methods ?? [undefined]) {
        generations.doubt(upstream, method);
        onOver?.(upstream, method);
      }
      // Of what is shared nothing stands in for a failed answer: what is in memory does.
      void remote?.bump(upstream, methods?.map(methodField) ?? [EVERYTHING], 'quietly');
    },
    watch(upstream, uris, promised = []) {
      const fields = uris.map(uriField);
      generations.watch(upstream, fields);
      const at = now();
      for (const field of fields) store.doubtUri(upstream, field, (entry) => lasts(entry, at));
      const theirs = promised.map(uriField);
      generations.invalidateUris(upstream, theirs);
      for (const field of theirs) store.doubtUri(upstream, field, () => true);
      if (theirs.length > 0) void remote?.bump(upstream, theirs, 'quietly');
    },
    dropChain(upstream, id, partition) {
      generations.dropChain(id, partition);
      generations.dropChain(id, undefined);
      void remote?.bump(upstream, [droppedField(id, partition), droppedField(id, undefined)], 'quietly');
    },
    get flightCount() {
      return inflight.flightCount;
    },
  };
}
