/**
 * What is left of upstream pages that were cut for a walk and whose ttl allows no caching.
 *
 * Not a cache: a remainder belongs to one walk of one caller, which its key must name.
 */
import { LRUCache } from 'lru-cache';

/** Bound on all remainders together. */
export const REMAINDERS_BYTES = 64 * 1024 * 1024;
/** How long a walk may take to come back for the rest. */
export const REMAINDER_LIVES_MS = 60_000;

export interface RemaindersOptions {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Default {@link REMAINDERS_BYTES}. */
  readonly budgetBytes?: number;
}

/** Remainders of type `V` by key. */
export interface Remainders<V> {
  /** Keeps `value`, which costs `sizeBytes`, in place of what the key had; false when it is too large to keep. */
  put(key: string, value: V, sizeBytes: number): boolean;
  get(key: string): V | undefined;
  readonly sizeBytes: number;
}

interface Kept<V> {
  readonly value: V;
  readonly until: number;
}

/** What a remainder costs beside its value and key. */
const OVERHEAD_BYTES = 512;

/** *Bounded by* `budgetBytes` and {@link REMAINDER_LIVES_MS}; the oldest goes first. *Never* sets a timer. */
export function createRemainders<V>({
  now,
  budgetBytes = REMAINDERS_BYTES,
}: RemaindersOptions): Remainders<V> {
  const kept = new LRUCache<string, Kept<V>>({ maxSize: budgetBytes });

  // `peek` everywhere: the order stays that of time, so the oldest is the first whose time is over.
  function dropOver(at: number): void {
    for (const key of kept.rkeys()) {
      if ((kept.peek(key)?.until ?? 0) > at) return;
      kept.delete(key);
    }
  }

  return {
    put(key, value, sizeBytes) {
      const at = now();
      dropOver(at);
      kept.delete(key);
      const size = Math.ceil(sizeBytes) + 2 * key.length + OVERHEAD_BYTES;
      if (!(size <= budgetBytes)) return false;
      kept.set(key, { value, until: at + REMAINDER_LIVES_MS }, { size });
      return true;
    },
    get(key) {
      dropOver(now());
      return kept.peek(key)?.value;
    },
    get sizeBytes() {
      return kept.calculatedSize;
    },
  };
}
