/** The contract of the cache room. `through.ts` is the only decider; stores are dumb. */

import type { RawHints } from '../protocol/answer.ts';
import type { Signal } from '../protocol/signal.ts';

export type Scope = 'public' | 'private';

/** What the operator allows for an upstream's answers; applied at store and again at lookup. */
export interface CachePolicy {
  readonly ttlDefaultMs: number;
  readonly ttlMaxMs: number;
  readonly scope: 'respect' | 'private' | 'public';
  readonly staleIfErrorMs: number;
  /**
   * How long private answers may be handed out at most, fresh or stale, for callers whose credential is passed
   * on: `ttl` counts from receipt, `until` is a monotonic time (the token's `exp`). Absent: no further limit.
   */
  readonly privateLimit?:
    | { readonly kind: 'ttl'; readonly maxMs: number }
    | { readonly kind: 'until'; readonly at: number };
}

/** What is looked for, and for whom. */
export interface Lookup {
  readonly upstream: string;
  readonly method: string;
  /** Everything that makes the answer but the caller: see `key.ts`. */
  readonly baseKey: string;
  /** The caller's context; `anonymous` for callers without credentials. */
  readonly partition: string;
  readonly policy: CachePolicy;
  /** Of a read: what is read. */
  readonly uri?: string;
  /** Pages of one upstream list: a first page loaded anew drops the later pages stored before it. */
  readonly chain?: { readonly id: string; readonly position: 'first' | 'later' };
}

export interface CacheRequest extends Lookup {
  /** `bypass`: neither lookup nor store nor sharing. */
  readonly use: 'normal' | { readonly bypass: 'mrtr' | 'disabled' };
  readonly signal: Signal;
}

/** What a load brings back. `T` is whatever the caller of `through` needs for what is not cacheable. */
export type Loaded<T> =
  | {
      readonly kind: 'complete';
      /** For the one who asked: see `ResultTail`. */
      readonly tail: Uint8Array;
      /** For everybody else. */
      readonly storable: Uint8Array;
      readonly hints: RawHints;
      /** Monotonic milliseconds. */
      readonly receivedAt: number;
      /** `false` for an answer that is not kept whatever its hints say (`contents: []`). */
      readonly storableAtAll: boolean;
      /** Of a read: the URIs that its contents name. */
      readonly uris?: readonly string[];
    }
  /** `input_required` and the like go to the leader alone; a JSON-RPC error to its own context. */
  | { readonly kind: 'uncacheable'; readonly value: T; readonly share: 'leader' | 'context' }
  /** Complete, and too large to be kept or shared: it flows to the one who asked, hints and all unread. */
  | { readonly kind: 'large'; readonly value: T }
  /** No answer. `stale: allowed` on connect failure, timeout, open circuit, 5xx. */
  | { readonly kind: 'failed'; readonly value: T; readonly stale: 'allowed' | 'never' };

/** Asks the upstream. The signal is the flight's: it fires when the last waiter has left. */
export type Load<T> = (signal: Signal) => Promise<Loaded<T>>;

/** How an answer came about, for `Cache-Status`, `Age`, metrics and the access log. */
export type CacheOutcome =
  | {
      readonly kind: 'hit';
      readonly tier: 'memory' | 'redis';
      readonly ageMs: number;
      readonly ttlMs: number;
    }
  /** Served after its time because the refetch failed. */
  | { readonly kind: 'stale'; readonly ageMs: number }
  | {
      readonly kind: 'miss';
      /** `stale`: an entry was there but its time was over; `rewatch`: it may have changed unnoticed. */
      readonly why: 'uri-miss' | 'stale' | 'rewatch';
      readonly stored: 'stored' | 'ttl-zero' | 'too-large' | 'superseded' | 'not-storable';
      /** True when another's flight brought it. */
      readonly collapsed: boolean;
    }
  | { readonly kind: 'bypass'; readonly why: 'mrtr' | 'disabled' };

export type Cached<T> =
  | {
      readonly kind: 'complete';
      readonly tail: Uint8Array;
      /** What is left, whole milliseconds ≥ 0. */
      readonly ttlMs: number;
      readonly scope: Scope;
      readonly outcome: CacheOutcome;
      /** Of a stale answer: what the refetch brought instead. */
      readonly failed?: T;
    }
  | { readonly kind: 'other'; readonly value: T; readonly outcome: CacheOutcome };

/** One stored answer. Times are monotonic milliseconds of this process. */
export interface Entry {
  readonly tail: Uint8Array;
  readonly upstream: string;
  readonly scope: Scope;
  /** The hints as received (sanitised, not yet clamped by policy): policy is applied again at lookup. */
  readonly ttlMs: number | undefined;
  readonly receivedAt: number;
  /** Kept until then at the latest, for staleIfError. */
  readonly deleteAt: number;
  /** Of a read: what was read. */
  readonly uri?: string;
  /** The resources it depends on: see `uris.ts`. */
  readonly uris?: readonly string[];
  /** It was read before changes of it were told, and is not to be used for long: read again at its next use. */
  readonly doubted?: boolean;
  /** Place of its load's start in the one order of loads and invalidations: see `generations.ts`. */
  readonly loadOrder: number;
}

/** A store: a handful of methods over entries. Knows nothing of freshness. */
export interface Store {
  get(key: string): Entry | undefined;
  /** `account` is the partition of a private entry. */
  set(key: string, entry: Entry, account: string | undefined): 'ok' | 'too_large';
  delete(key: string): boolean;
  /** Drops the entries of an upstream that depend on a resource: see `uris.ts`. */
  deleteUri(upstream: string, field: string): void;
  /** Drops all entries of an upstream. */
  deleteUpstream(upstream: string): void;
  /** What was read of an upstream and is held. */
  heldUris(upstream: string): Iterable<string>;
  /** Marks the entries of an upstream that depend on a resource and pass `which` as doubted. */
  doubtUri(upstream: string, field: string, which: (entry: Entry) => boolean): void;
  readonly entryCount: number;
  readonly sizeBytes: number;
}

/** What the cache reports; metrics implement it. */
export interface CacheObserver {
  cacheRequest(
    upstream: string,
    method: string,
    status: 'hit' | 'stale' | 'miss' | 'bypass',
    tier: 'memory' | 'redis' | 'none',
  ): void;
  cacheBypass(upstream: string, reason: 'disabled' | 'mrtr' | 'too_large' | 'ttl_zero'): void;
  collapsed(upstream: string): void;
  cacheStore(tier: 'memory' | 'redis', result: 'ok' | 'too_large' | 'superseded' | 'error'): void;
  cacheEviction(tier: 'memory', reason: 'size' | 'expired' | 'invalidated'): void;
  /** Of the operations in memory only those that write are timed. */
  cacheOperation(tier: 'memory', operation: 'set', seconds: number): void;
  cacheInvalidated(
    upstream: string,
    source: Invalidator | 'replica' | 'resync' | 'reload',
    scope: 'uri' | 'method' | 'key' | 'upstream',
  ): void;
}

/** Who says here that something is over. */
export type Invalidator = 'notification' | 'admin';
