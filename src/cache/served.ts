/**
 * What is served of an entry, and of an answer that is not kept: fresh, stale, passed on. Pure arithmetic over the
 * policy of now. *Never* I/O. *Spec:* server/utilities/caching.
 */
import { ageMs, keptMsUnder, leftMs, sanitise, scopeUnder, ttlUnder } from './hints.ts';
import { UNWATCHED_MS } from './keep.ts';
import type { Cached, CacheOutcome, CacheRequest, Entry, Loaded, Lookup, Scope } from './types.ts';

export function isDoubted(entry: Entry | undefined, floor: number): boolean {
  return entry?.doubted === true || (entry !== undefined && entry.loadOrder <= floor);
}

/** Whether it may still be fresh when its changes have been told for a while. */
export function lasts({ ttlMs, receivedAt }: Entry, at: number): boolean {
  return ttlMs === undefined || receivedAt + ttlMs > at + UNWATCHED_MS;
}

export function freshHit(
  entry: Entry,
  { policy }: Lookup,
  scope: Scope,
  at: number,
): Cached<never> | undefined {
  const ttlMs = leftMs(ttlUnder(policy, entry, scope), entry.receivedAt, at);
  if (ttlMs === 0) return undefined;
  const outcome: CacheOutcome = { kind: 'hit', tier: 'memory', ageMs: ageMs(entry.receivedAt, at), ttlMs };
  return { kind: 'complete', tail: entry.tail, ttlMs, scope, outcome };
}

export function staleHit(
  entry: Entry,
  { policy }: CacheRequest,
  scope: Scope,
  at: number,
): Cached<never> | undefined {
  if (at >= entry.receivedAt + keptMsUnder(policy, entry, scope)) return undefined;
  const outcome: CacheOutcome = { kind: 'stale', ageMs: ageMs(entry.receivedAt, at) };
  return { kind: 'complete', tail: entry.tail, ttlMs: 0, scope, outcome };
}

export function passed<T>(
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
