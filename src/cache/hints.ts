/**
 * What an upstream's hints and the operator's policy allow: pure arithmetic, used at store and again at lookup.
 *
 * Times are monotonic milliseconds. *Never* throws, whatever a hint holds. *Spec:* server/utilities/caching.
 */
import type { RawHints } from '../protocol/answer.ts';
import type { CachePolicy, Scope } from './types.ts';

/** Hints that are safe to calculate with. */
export interface Hints {
  /** A whole number ≥ 0; undefined when the result carried no hint. */
  readonly ttlMs: number | undefined;
  readonly scope: Scope;
}

/** What of a stored or received answer its time depends on. */
interface Timed {
  readonly ttlMs: number | undefined;
  readonly receivedAt: number;
}

/** Makes received hints safe: a ttl that is no whole number ≥ 0 is 0, a scope but exactly `public` is private. */
export function sanitise(raw: RawHints): Hints {
  return {
    ttlMs: raw.ttlMs === undefined ? undefined : wholeMs(raw.ttlMs),
    scope: raw.cacheScope === 'public' ? 'public' : 'private',
  };
}

function wholeMs(value: number): number {
  if (!Number.isInteger(value) || value <= 0) return 0;
  return Math.min(value, Number.MAX_SAFE_INTEGER);
}

/** Who may be served, under the operator's policy, what came with this scope. */
export function scopeUnder(policy: CachePolicy, scope: Scope): Scope {
  return policy.scope === 'respect' ? scope : policy.scope;
}

/**
 * How long an answer is fresh from its receipt, in whole milliseconds ≥ 0. *Bounded by* `policy.ttlMaxMs`.
 * @param scope who it is served to: private answers may have a limit of their own.
 */
export function ttlUnder(policy: CachePolicy, answer: Timed, scope: Scope): number {
  const ttlMs = Math.min(answer.ttlMs ?? policy.ttlDefaultMs, policy.ttlMaxMs);
  return wholeMs(Math.floor(Math.min(ttlMs, limitMs(policy, answer, scope))));
}

/** How long an answer may be handed out from its receipt when a refetch fails: its ttl and `staleIfErrorMs`. */
export function keptMsUnder(policy: CachePolicy, answer: Timed, scope: Scope): number {
  const ttlMs = ttlUnder(policy, answer, scope);
  if (ttlMs === 0) return 0;
  return Math.min(ttlMs + policy.staleIfErrorMs, limitMs(policy, answer, scope));
}

function limitMs(policy: CachePolicy, answer: Timed, scope: Scope): number {
  const limit = policy.privateLimit;
  if (limit === undefined || scope === 'public') return Number.POSITIVE_INFINITY;
  return limit.kind === 'ttl' ? limit.maxMs : limit.at - answer.receivedAt;
}

/** Whole milliseconds since the receipt, ≥ 0. */
export function ageMs(receivedAt: number, now: number): number {
  return Math.max(0, Math.floor(now - receivedAt));
}

/**
 * What is left of a ttl, in whole milliseconds: above 0 exactly while `now < receivedAt + ttlMs`.
 * *Never* negative, fractional, or growing with time.
 */
export function leftMs(ttlMs: number, receivedAt: number, now: number): number {
  return Math.max(0, ttlMs - ageMs(receivedAt, now));
}
