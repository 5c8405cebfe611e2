/**
 * What becomes of an answer that came: kept or not, and for whom. The store side of `through.ts`.
 *
 * A key has a slot for each partition and a public one. An answer goes into its own caller's slot or into the
 * public one, and only while nothing asked for later has come for it: what is older is *never* brought back.
 */
import { LRUCache } from 'lru-cache';
import type { Generations } from './generations.ts';
import { keptMsUnder, sanitise, scopeUnder, ttlUnder } from './hints.ts';
import type { Audience } from './inflight.ts';
import { privateKey, publicKey } from './key.ts';
import type { CacheObserver, CacheOutcome, CacheRequest, Loaded, Scope, Store } from './types.ts';
import { dependsOn, uriField } from './uris.ts';

/** Keys whose last answer is remembered: forgetting one costs shared flights, never correctness. */
export const RECENT_MAX = 10_000;

/** What was read before its changes were told is used for so long at most, from when they are told. */
export const UNWATCHED_MS = 60_000;

type Complete = Extract<Loaded<unknown>, { kind: 'complete' }>;

/** What was done with an answer. */
export type Stored = Extract<CacheOutcome, { kind: 'miss' }>['stored'];

/** An answer and its terms. */
export interface Kept<T> {
  readonly loaded: Loaded<T>;
  readonly stored: Stored;
  readonly scope: Scope;
  /** From receipt; 0 for what is not to be reused. */
  readonly ttlMs: number;
  /** Who may be handed it. */
  readonly audience: Audience;
  /** It came from there, and not from the upstream. */
  readonly tier?: 'redis';
  /** It is not for everybody, and what came before it may have been. */
  readonly turned?: boolean;
}

/** An answer that another replica's load brought, as the shared store has it. */
export interface Adopted {
  readonly tail: Uint8Array;
  readonly ttlMs: number | undefined;
  readonly scope: Scope;
  /** Monotonic milliseconds. */
  readonly receivedAt: number;
  readonly uris: readonly string[];
}

/** Who could have been served the last answer for a key; `nobody`: it could not be stored, or not be held. */
export type LastAnswer = 'public' | 'private' | 'nobody';

export interface Keeper {
  /** Stores what may be stored. *Never* throws. `order`: the load's, see `generations.ts`. */
  keep<T>(request: CacheRequest, order: number, loaded: Loaded<T>): Kept<T>;
  /**
   * Takes an answer of the shared store into this one. Undefined: something came here since, and it is not to be used.
   * @param scope whose slot it comes from. `order`: that of the look-up.
   */
  adopt(request: CacheRequest, order: number, answer: Adopted, scope: Scope): Kept<never> | undefined;
  /** Lets go of what a load stored: the shared store knows of an invalidation that has not been told here yet. */
  disown(request: CacheRequest, order: number, scope: Scope): void;
  /** What came last for that key, as far as it is remembered. */
  lastAnswer(baseKey: string): LastAnswer | undefined;
}

export interface KeeperOptions {
  readonly store: Store;
  readonly generations: Generations;
  readonly observer: CacheObserver;
}

/** *Bounded by* {@link RECENT_MAX} keys. */
export function createKeeper({ store, generations, observer }: KeeperOptions): Keeper {
  const last = new LRUCache<string, LastAnswer>({ max: RECENT_MAX });
  // Keys that have had no public answer since the last private one: who turned is told once, not at every answer.
  const privately = new LRUCache<string, true>({ max: RECENT_MAX });
  // The newest load that has brought an answer for a slot, stored or not.
  const landed = new LRUCache<string, number>({ max: RECENT_MAX });

  /** Everything of this key that is not for one context alone is over, and so are the pages behind it. */
  function turnPrivate({ upstream, baseKey, chain }: CacheRequest): void {
    const was = store.delete(publicKey(baseKey)) || last.get(baseKey) === 'public';
    privately.set(baseKey, true);
    generations.turnPrivate(upstream, baseKey);
    if (was && chain?.position === 'first') generations.renewChain(chain.id, undefined);
  }

  function renewChain({ chain, partition }: CacheRequest, scope: Scope): void {
    if (chain?.position !== 'first') return;
    generations.renewChain(chain.id, partition);
    if (scope === 'public') generations.renewChain(chain.id, undefined);
  }

  function newestOf(slot: string): number {
    return Math.max(landed.get(slot) ?? 0, store.get(slot)?.loadOrder ?? 0);
  }

  /** True when an invalidation, or an answer that was asked for later, came first. */
  function isOutrun(request: CacheRequest, order: number, scope: Scope, uris: readonly string[]): boolean {
    if (order <= generations.uriFloor(request.upstream, uris)) return true;
    const floor =
      scope === 'private'
        ? generations.ownFloor(request)
        : Math.max(generations.publicFloor(request), generations.turnedPrivateAt(request));
    if (order <= floor) return true;
    const newest = Math.max(
      newestOf(privateKey(request.baseKey, request.partition)),
      newestOf(publicKey(request.baseKey)),
    );
    return order < newest;
  }

  function write(
    request: CacheRequest,
    order: number,
    answer: Complete,
    ttlMs: number,
    scope: Scope,
    uris: readonly string[],
  ): Stored {
    if (!answer.storableAtAll) return 'not-storable';
    if (ttlMs === 0) {
      observer.cacheBypass(request.upstream, 'ttl_zero');
      return 'ttl-zero';
    }
    const isPublic = scope === 'public';
    const { baseKey, partition, policy, upstream } = request;
    const hints = sanitise(answer.hints);
    const { receivedAt } = answer;
    const result = store.set(
      isPublic ? publicKey(baseKey) : privateKey(baseKey, partition),
      {
        tail: answer.storable,
        upstream,
        scope: hints.scope,
        ttlMs: hints.ttlMs,
        receivedAt,
        deleteAt: receivedAt + keptMsUnder(policy, { ttlMs: hints.ttlMs, receivedAt }, scope),
        loadOrder: order,
        ...(uris.length > 0 && { uris }),
        ...(request.uri !== undefined && { uri: request.uri }),
        ...(isUnwatched(request, order, ttlMs) && { doubted: true }),
      },
      isPublic ? undefined : partition,
    );
    observer.cacheStore('memory', result);
    if (result === 'ok') return 'stored';
    observer.cacheBypass(upstream, 'too_large');
    return 'too-large';
  }

  /** Read before changes of it were told, and lasting: one between the reading and the telling would stay unseen. */
  function isUnwatched({ upstream, uri }: CacheRequest, order: number, ttlMs: number): boolean {
    return (
      uri !== undefined && ttlMs > UNWATCHED_MS && order < generations.watchedAt(upstream, uriField(uri))
    );
  }

  /** What a slot holds from before this load is over, whether or not this load's answer is stored. */
  function endOlder(slot: string, order: number): void {
    if (order < newestOf(slot)) return;
    landed.set(slot, order);
    store.delete(slot);
  }

  function settle(request: CacheRequest, order: number, scope: Scope, stored: Stored): void {
    const own = privateKey(request.baseKey, request.partition);
    const shared = publicKey(request.baseKey);
    const written = stored === 'stored' ? scope : undefined;
    if (written !== undefined) landed.set(written === 'public' ? shared : own, order);
    if (written !== 'private') endOlder(own, order);
    if (written === undefined && scope === 'public') endOlder(shared, order);
    last.set(request.baseKey, written ?? 'nobody');
  }

  function keepComplete(
    request: CacheRequest,
    order: number,
    answer: Complete,
  ): Omit<Kept<unknown>, 'loaded'> {
    const hints = sanitise(answer.hints);
    const scope = scopeUnder(request.policy, hints.scope);
    const ttlMs = ttlUnder(request.policy, { ttlMs: hints.ttlMs, receivedAt: answer.receivedAt }, scope);
    if (scope === 'public') privately.delete(request.baseKey);
    const turned = scope === 'private' && !privately.has(request.baseKey);
    renewChain(request, scope);
    if (scope === 'private') turnPrivate(request);
    const uris = fieldsOf(request, answer);
    if (isOutrun(request, order, scope, uris)) {
      observer.cacheStore('memory', 'superseded');
      if (scope === 'private') last.set(request.baseKey, 'private');
      endOlder(privateKey(request.baseKey, request.partition), order);
      // Never labelled looser than what came after it.
      const overtaken = order <= generations.turnedPrivateAt(request);
      return {
        stored: 'superseded',
        scope: overtaken ? 'private' : scope,
        ttlMs: 0,
        audience: 'leader',
        turned,
      };
    }
    const stored = write(request, order, answer, ttlMs, scope, uris);
    settle(request, order, scope, stored);
    if (stored !== 'stored') return { stored, scope, ttlMs, audience: 'leader', turned };
    return { stored, scope, ttlMs, audience: scope === 'public' ? 'everyone' : 'context', turned };
  }

  /** Its scope came by too late: private, as all that is unknown, and nothing older stands in for it. */
  function keepLarge(request: CacheRequest, order: number): Omit<Kept<unknown>, 'loaded'> {
    observer.cacheBypass(request.upstream, 'too_large');
    const turned = !privately.has(request.baseKey);
    turnPrivate(request);
    endOlder(privateKey(request.baseKey, request.partition), order);
    last.set(request.baseKey, 'nobody');
    return { stored: 'too-large', scope: 'private', ttlMs: 0, audience: 'leader', turned };
  }

  return {
    keep<T>(request: CacheRequest, order: number, loaded: Loaded<T>): Kept<T> {
      const nothing = { loaded, stored: 'not-storable', scope: 'private', ttlMs: 0 } as const;
      switch (loaded.kind) {
        case 'failed':
          return { ...nothing, audience: 'context' };
        case 'uncacheable':
          last.set(request.baseKey, loaded.share === 'context' ? 'private' : 'nobody');
          return { ...nothing, audience: loaded.share };
        case 'large':
          return { loaded, ...keepLarge(request, order) };
        case 'complete':
          try {
            return { loaded, ...keepComplete(request, order, loaded) };
          } catch {
            // A helper that fails costs the entry, not the answer.
            observer.cacheStore('memory', 'error');
            return { ...nothing, audience: 'leader' };
          }
      }
    },
    adopt(request, order, answer, scope) {
      const { upstream, baseKey, partition, policy } = request;
      if (isOutrun(request, order, scope, answer.uris)) return undefined;
      const { tail, ttlMs, receivedAt, uris } = answer;
      const slot = slotKey(request, scope);
      const result = store.set(
        slot,
        {
          ...{ tail, upstream, scope: answer.scope, ttlMs, receivedAt, uris },
          ...(request.uri !== undefined && { uri: request.uri }),
          deleteAt: receivedAt + keptMsUnder(policy, answer, scope),
          loadOrder: order,
        },
        scope === 'public' ? undefined : partition,
      );
      observer.cacheStore('memory', result);
      landed.set(slot, order);
      last.set(baseKey, scope);
      if (scope === 'public') privately.delete(baseKey);
      const hints = { ttlMs, cacheScope: scope };
      return {
        loaded: { kind: 'complete', tail, storable: tail, hints, receivedAt, storableAtAll: true },
        stored: 'stored',
        scope,
        ttlMs: ttlUnder(policy, answer, scope),
        audience: scope === 'public' ? 'everyone' : 'context',
        tier: 'redis',
      };
    },
    disown(request, order, scope) {
      const slot = slotKey(request, scope);
      if (store.get(slot)?.loadOrder === order) store.delete(slot);
    },
    lastAnswer: (baseKey) => last.get(baseKey),
  };
}

function slotKey({ baseKey, partition }: CacheRequest, scope: Scope): string {
  return scope === 'public' ? publicKey(baseKey) : privateKey(baseKey, partition);
}

/** The resources that an answer depends on. */
function fieldsOf({ uri }: CacheRequest, { uris = [] }: Complete): readonly string[] {
  return uri === undefined ? [] : dependsOn(uri, uris);
}
