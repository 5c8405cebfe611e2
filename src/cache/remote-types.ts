/**
 * The contract of the shared tier: one store that all replicas see, and their way to tell each other what is over.
 *
 * Everything has a place in one order that Redis' clock makes (tokens: whole microseconds since 1970, never going
 * back). A load takes its token before it asks the upstream; a bump leaves its own on the fields it ends; an entry
 * counts only while its load's token is above all fields it depends on. Fields are opaque names within an upstream.
 */
import type { Scope } from './types.ts';

/** The field that stands for everything of an upstream: every entry depends on it. */
export const EVERYTHING = '*';

export interface RemoteSlot {
  /** Digest of what the entry answers and, for a private one, of the caller's context: no URI, no credential. */
  readonly key: string;
  /** The fields it depends on, `EVERYTHING` left out; those in the entry itself (`uris`) come on top. */
  readonly fields: readonly string[];
}

export interface RemoteLookup {
  readonly upstream: string;
  /** The caller's own entry; undefined: private answers are not shared (no `secrets`). */
  readonly own: RemoteSlot | undefined;
  readonly shared: RemoteSlot;
}

/** What was found of one slot. Times by Redis' own clock. */
export interface RemoteEntry {
  readonly tail: Uint8Array;
  /** `private` for the caller's own entry, always: see {@link RemoteStoring.scope}. */
  readonly scope: Scope;
  /** As received, sanitised: policy is applied by whoever asks. */
  readonly ttlMs: number | undefined;
  /** Whole milliseconds since the upstream's answer was received, ≥ 0. */
  readonly ageMs: number;
  /** Fields that came with the answer (see `RemoteStoring.uris`). */
  readonly uris: readonly string[];
}

export type RemoteFound =
  /** Redis was not asked, or did not answer in time: nothing is known, and nothing may be stored for this load. */
  | { readonly kind: 'unavailable' }
  /** `token`: for the load that now starts. Entries that are over, corrupt or foreign are left out. */
  | {
      readonly kind: 'asked';
      readonly token: number;
      readonly own: RemoteEntry | undefined;
      readonly shared: RemoteEntry | undefined;
    };

export interface RemoteStoring {
  readonly upstream: string;
  readonly slot: RemoteSlot;
  /** From the lookup that this load began with. */
  readonly token: number;
  readonly tail: Uint8Array;
  /**
   * `private` is sealed, `public` is not. What is stored in a caller's own slot must say `private`, also where only
   * policy made it so: a lookup's `own` takes nothing that is not sealed, and its `shared` nothing that is.
   */
  readonly scope: Scope;
  readonly ttlMs: number | undefined;
  /** How old the answer is now. */
  readonly ageMs: number;
  /** Kept for so long from now at most. */
  readonly keepMs: number;
  /** Fields that the answer itself made: digests of the URIs it is about. The entry depends on them too. */
  readonly uris: readonly string[];
}

/** `superseded`: something it depends on was bumped since, or a later load's answer is there. */
export type RemoteStored = 'stored' | 'superseded' | 'too_large' | 'unavailable';

/** Something of an upstream is over. `replica`: another replica said so; `resync`: it cannot be known what was missed. */
export interface RemoteChange {
  readonly upstream: string;
  readonly fields: readonly string[];
  readonly source: 'replica' | 'resync';
}

export interface RemoteStore {
  /** One round trip, within the command deadline. *Never* rejects. */
  lookup(request: RemoteLookup): Promise<RemoteFound>;
  /** *Never* rejects. */
  store(entry: RemoteStoring): Promise<RemoteStored>;
  /**
   * Ends what these fields cover, for all replicas: written first, then told. Until it is written, and if it cannot
   * be written until it could, nothing of that upstream is looked up or stored here. *Never* rejects.
   * @param how `quietly`: the other replicas are not told; what they hold in memory is theirs to judge.
   * @returns whether it was written within the command deadline.
   */
  bump(upstream: string, fields: readonly string[], how: 'told' | 'quietly'): Promise<boolean>;
  /** Calls for every change that did not come from here. Returns what to call to stop that. */
  onChange(listener: (change: RemoteChange) => void): () => void;
  /** `up`: connected, resynchronised, breaker closed. */
  readonly state: 'connecting' | 'up' | 'down';
  /** Whether private answers may be stored: there are `secrets`. */
  readonly sealsPrivate: boolean;
  close(): Promise<void>;
}

/**
 * What it reports; metrics implement it. Durations in seconds. `redisUp` tells of the connection, `redisCircuit` of
 * whether it is used: open from the first missed deadline until Redis has answered in time and has been resynchronised.
 * `circuit_open` is what was not asked meanwhile.
 */
export interface RemoteObserver {
  redisUp(state: 'up' | 'down'): void;
  redisCircuit(state: 'open' | 'closed'): void;
  redisError(
    operation: 'lookup' | 'store' | 'bump' | 'sync',
    reason: 'timeout' | 'connection' | 'reply' | 'circuit_open' | 'corrupt',
  ): void;
  redisOperation(operation: 'get' | 'set' | 'generation', seconds: number): void;
  busMessage(direction: 'in' | 'out'): void;
  busResync(reason: 'connect' | 'poll' | 'gap'): void;
}
