/**
 * The store in this process's memory: bounded in bytes, by account, so that nobody fills what is another's.
 *
 * Public entries have an account for each upstream, private ones for each partition and, within it, upstream.
 * Whoever is over the budget pays with its own least recently used entries:
 * - one partition: a quarter of the whole (its largest upstream pays);
 * - all partitions together: half (the partition that nobody has used for longest pays);
 * - the public entries of one upstream, where there are several: half;
 * - everything: the whole (the upstream with the most public bytes pays: private entries are within their half).
 *
 * *Never* sets a timer: entries whose time is over go when they are asked for, and a few at every write.
 */
import { LRUCache } from 'lru-cache';
import type { CacheObserver, Entry, Store } from './types.ts';

export interface MemoryOptions {
  /** Bound on everything, overhead included. */
  readonly sizeBytes: number;
  /** Bound on one answer. */
  readonly maxEntryBytes: number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** How many upstreams share the store at present. */
  readonly upstreamCount: () => number;
  readonly observer: Pick<CacheObserver, 'cacheEviction' | 'cacheOperation'>;
  /** Told when a resource of an upstream is held for the first time, or not any more. */
  readonly onHeld?: (upstream: string) => void;
}

/** What an entry costs beside its tail and two bytes a character of its key: measured on Node 20, within 2 %. */
export const ENTRY_OVERHEAD_BYTES = 512;
/** What an account costs while it holds something, most of it an LRUCache: measured 2,240 bytes on Node 20. */
export const ACCOUNT_OVERHEAD_BYTES = 2_560;
/** What it costs to find an entry by a resource it depends on: the names, a set of its own, two places. */
export const URI_OVERHEAD_BYTES = 512;
/** Entries looked at, at every write, for those whose time is over. */
const SWEEP_COUNT = 4;

/** An entry in its account. */
interface Slot {
  readonly key: string;
  entry: Entry;
  readonly bytes: number;
  readonly account: Account;
}

/** The entries of one upstream: the public ones, or those of one partition. */
interface Account {
  readonly upstream: string;
  readonly partition: Partition | undefined;
  readonly slots: LRUCache<string, Slot>;
  bytes: number;
}

interface Partition {
  readonly name: string;
  readonly accounts: Map<string, Account>;
  bytes: number;
}

type Eviction = Parameters<CacheObserver['cacheEviction']>[1];

/** *Bounded by* `sizeBytes`; emptied accounts and partitions are forgotten. */
export function createMemoryStore(options: MemoryOptions): Store {
  const { sizeBytes, maxEntryBytes, now, observer } = options;
  const quarterBytes = Math.floor(sizeBytes / 4);
  const halfBytes = Math.floor(sizeBytes / 2);
  const index = new Map<string, Slot>();
  // By upstream and resource: the slots that depend on it.
  const byUri = new Map<string, Set<Slot>>();
  // By upstream: what was read, and how many slots hold it.
  const held = new Map<string, Map<string, number>>();
  const publicAccounts = new Map<string, Account>();
  // Its own bound counts partitions and is never reached: each of them has bytes, and those are bounded.
  const partitions = new LRUCache<string, Partition>({ maxSize: Number.MAX_SAFE_INTEGER });
  let privateBytes = 0;
  let totalBytes = 0;
  let sweeping = index.values();

  const publicLimit = (): number => (options.upstreamCount() > 1 ? halfBytes : sizeBytes);

  function tally(account: Account, bytes: number): void {
    account.bytes += bytes;
    totalBytes += bytes;
    if (account.partition === undefined) return;
    account.partition.bytes += bytes;
    privateBytes += bytes;
  }

  function openAccount(upstream: string, name: string | undefined): Account {
    const partition = name === undefined ? undefined : openPartition(name);
    const accounts = partition?.accounts ?? publicAccounts;
    const open = accounts.get(upstream);
    if (open !== undefined) return open;
    const slots = new LRUCache<string, Slot>({ maxSize: Number.MAX_SAFE_INTEGER });
    const account: Account = { upstream, partition, slots, bytes: 0 };
    accounts.set(upstream, account);
    tally(account, ACCOUNT_OVERHEAD_BYTES);
    return account;
  }

  function openPartition(name: string): Partition {
    const open = partitions.get(name);
    if (open !== undefined) return open;
    const partition: Partition = { name, accounts: new Map(), bytes: 0 };
    partitions.set(name, partition, { size: 1 });
    return partition;
  }

  function hold(upstream: string, uri: string, change: 1 | -1): void {
    let uris = held.get(upstream);
    if (uris === undefined) {
      uris = new Map();
      held.set(upstream, uris);
    }
    const count = (uris.get(uri) ?? 0) + change;
    if (count > 0) uris.set(uri, count);
    else uris.delete(uri);
    if (count === 0 || (count === 1 && change === 1)) options.onHeld?.(upstream);
  }

  function noteUris(slot: Slot): void {
    const { upstream, uri, uris = [] } = slot.entry;
    if (uri !== undefined) hold(upstream, uri, 1);
    for (const field of uris) {
      const name = uriName(upstream, field);
      const dependent = byUri.get(name);
      if (dependent === undefined) byUri.set(name, new Set([slot]));
      else dependent.add(slot);
    }
  }

  function forgetUris(slot: Slot): void {
    const { upstream, uri, uris = [] } = slot.entry;
    if (uri !== undefined) hold(upstream, uri, -1);
    for (const field of uris) {
      const name = uriName(upstream, field);
      const dependent = byUri.get(name);
      dependent?.delete(slot);
      if (dependent?.size === 0) byUri.delete(name);
    }
  }

  function remove(slot: Slot): void {
    const { account } = slot;
    index.delete(slot.key);
    forgetUris(slot);
    account.slots.delete(slot.key);
    tally(account, -slot.bytes);
    if (account.slots.size > 0) return;
    tally(account, -ACCOUNT_OVERHEAD_BYTES);
    const { partition } = account;
    (partition?.accounts ?? publicAccounts).delete(account.upstream);
    if (partition !== undefined && partition.accounts.size === 0) partitions.delete(partition.name);
  }

  function evict(slot: Slot, reason: Eviction): void {
    remove(slot);
    observer.cacheEviction('memory', reason);
  }

  function evictOldest(account: Account | undefined): void {
    const oldest = account?.slots.rkeys().next().value;
    const slot = oldest === undefined ? undefined : index.get(oldest);
    if (slot === undefined) throw new Error('memory store: an account over its budget holds nothing');
    evict(slot, 'size');
  }

  function evictFromIdlest(): void {
    const idlest = partitions.peek(partitions.rkeys().next().value ?? '');
    evictOldest(idlest && largest(idlest.accounts));
  }

  function keepBudgets(written: Account): void {
    const { partition } = written;
    if (partition === undefined) {
      while (written.bytes > publicLimit()) evictOldest(written);
    } else {
      while (partition.bytes > quarterBytes) evictOldest(largest(partition.accounts));
      while (privateBytes > halfBytes) evictFromIdlest();
    }
    while (totalBytes > sizeBytes) evictOldest(largest(publicAccounts));
  }

  function sweep(): void {
    const at = now();
    for (let i = 0; i < SWEEP_COUNT; i++) {
      const step = sweeping.next();
      if (step.done) {
        sweeping = index.values();
        return;
      }
      if (step.value.entry.deleteAt <= at) evict(step.value, 'expired');
    }
  }

  function put(key: string, entry: Entry, partition: string | undefined): 'ok' | 'too_large' {
    const bytes =
      entry.tail.byteLength +
      2 * key.length +
      ENTRY_OVERHEAD_BYTES +
      (entry.uris?.length ?? 0) * URI_OVERHEAD_BYTES +
      2 * (entry.uri?.length ?? 0);
    const limitBytes = partition === undefined ? publicLimit() : quarterBytes;
    if (entry.tail.byteLength > maxEntryBytes || bytes + ACCOUNT_OVERHEAD_BYTES > limitBytes)
      return 'too_large';
    const replaced = index.get(key);
    if (replaced !== undefined) remove(replaced);
    const account = openAccount(entry.upstream, partition);
    const slot: Slot = { key, entry: { ...entry, tail: detached(entry.tail) }, bytes, account };
    index.set(key, slot);
    noteUris(slot);
    account.slots.set(key, slot, { size: 1 });
    tally(account, bytes);
    sweep();
    keepBudgets(account);
    return 'ok';
  }

  return {
    get(key) {
      const slot = index.get(key);
      if (slot === undefined) return undefined;
      if (slot.entry.deleteAt <= now()) {
        evict(slot, 'expired');
        return undefined;
      }
      slot.account.slots.get(key);
      if (slot.account.partition !== undefined) partitions.get(slot.account.partition.name);
      return slot.entry;
    },
    set(key, entry, partition) {
      const startedAt = now();
      const result = put(key, entry, partition);
      observer.cacheOperation('memory', 'set', (now() - startedAt) / 1_000);
      return result;
    },
    delete(key) {
      const slot = index.get(key);
      if (slot === undefined) return false;
      evict(slot, 'invalidated');
      return true;
    },
    deleteUri(upstream, field) {
      const dependent = byUri.get(uriName(upstream, field));
      if (dependent !== undefined) for (const slot of [...dependent]) evict(slot, 'invalidated');
    },
    deleteUpstream(upstream) {
      for (const slot of [...index.values()])
        if (slot.entry.upstream === upstream) evict(slot, 'invalidated');
      held.delete(upstream);
    },
    heldUris: (upstream) => held.get(upstream)?.keys() ?? [],
    doubtUri(upstream, field, which) {
      for (const slot of byUri.get(uriName(upstream, field)) ?? [])
        if (which(slot.entry)) slot.entry = { ...slot.entry, doubted: true };
    },
    get entryCount() {
      return index.size;
    },
    get sizeBytes() {
      return totalBytes;
    },
  };
}

function uriName(upstream: string, field: string): string {
  return `${upstream} ${field}`;
}

function largest(accounts: ReadonlyMap<string, Account>): Account | undefined {
  let found: Account | undefined;
  for (const account of accounts.values()) {
    if (found === undefined || account.bytes > found.bytes) found = account;
  }
  return found;
}

/** The bytes alone: a view into a larger buffer would keep all of that buffer, uncounted. */
function detached(tail: Uint8Array): Uint8Array {
  return tail.byteLength === tail.buffer.byteLength ? tail : new Uint8Array(tail);
}
