/**
 * The one order of loads and invalidations, by which a change outranks what was asked for before it.
 *
 * Every load takes a number when it starts; every invalidation takes the next one and leaves it as a mark. An
 * answer counts only if its load's number is above all marks on it: checked when it is stored, when it is looked
 * up, and when a request wants to join its flight. So an invalidation costs one mark, however much it concerns,
 * and what it concerns is gone at once.
 */
import { privateKey, publicKey } from './key.ts';
import type { CacheRequest } from './types.ts';

/** Most marks by key or by chain that are remembered one by one: a mark is about 150 bytes. */
export const MARKS_MAX = 10_000;

type Subject = Pick<CacheRequest, 'upstream' | 'method' | 'baseKey' | 'partition' | 'chain'>;

/** See the file's head. */
export interface Generations {
  /** The next number of the order: for a load that starts now. */
  next(): number;
  /** A load must have a number above this for its answer to be the caller's own entry. */
  ownFloor(subject: Subject): number;
  /** The same for the public entry. */
  publicFloor(subject: Subject): number;
  /** A public answer is stored and shared only if its load's number is above this too. */
  turnedPrivateAt(subject: Subject): number;
  /** Everything of an upstream is over. */
  invalidateUpstream(upstream: string): void;
  /** Every answer of an upstream to one method is over. */
  invalidateMethod(upstream: string, method: string): void;
  /** One key is over, for every caller. */
  invalidateKey(upstream: string, baseKey: string): void;
  /** What depends on these resources is over, for every caller: names as in `uris.ts`. */
  invalidateUris(upstream: string, fields: readonly string[]): void;
  /** A load must have a number above this for an answer that depends on these resources. */
  uriFloor(upstream: string, fields: readonly string[]): number;
  /** What is kept of an upstream, or of its answers to one method, may be out of date: to be read again. */
  doubt(upstream: string, method: string | undefined): void;
  /** A load must have a number above this for its answer to be beyond doubt. */
  doubtFloor(subject: Pick<Subject, 'upstream' | 'method'>): number;
  /** Updates of these resources are told from now on. */
  watch(upstream: string, fields: readonly string[]): void;
  /** Since when they are told of this one; 0: not that it is known. */
  watchedAt(upstream: string, field: string): number;
  /** An answer came that is not for everybody: public ones asked for before it are not stored. */
  turnPrivate(upstream: string, baseKey: string): void;
  /** A first page came: the later pages that came before it are over. `partition` undefined: of the public chain. */
  renewChain(id: string, partition: string | undefined): void;
  /** All pages are over, the first one too. */
  dropChain(id: string, partition: string | undefined): void;
}

interface UpstreamMarks {
  everything: number;
  readonly methods: Map<string, number>;
  readonly keys: Marks;
  readonly uris: Marks;
  readonly turned: Marks;
  readonly watched: Marks;
  doubted: number;
  readonly doubtedMethods: Map<string, number>;
}

interface ChainMarks {
  readonly renewed: Marks;
  readonly dropped: Marks;
}

/** *Bounded by* {@link MARKS_MAX} an upstream and kind of mark; upstreams and methods are the configuration's. */
export function createGenerations(): Generations {
  let order = 0;
  const upstreams = new Map<string, UpstreamMarks>();
  const publicChains: ChainMarks = { renewed: createMarks(), dropped: createMarks() };
  const privateChains: ChainMarks = { renewed: createMarks(), dropped: createMarks() };

  function marksOf(upstream: string): UpstreamMarks {
    const known = upstreams.get(upstream);
    if (known !== undefined) return known;
    const made = {
      everything: 0,
      methods: new Map<string, number>(),
      keys: createMarks(),
      uris: createMarks(),
      turned: createMarks(),
      watched: createMarks(),
      doubted: 0,
      doubtedMethods: new Map<string, number>(),
    };
    upstreams.set(upstream, made);
    return made;
  }

  function floor(subject: Subject, partition: string | undefined): number {
    const { chain } = subject;
    const marks = upstreams.get(subject.upstream);
    let highest = 0;
    if (marks !== undefined) {
      highest = Math.max(
        marks.everything,
        marks.methods.get(subject.method) ?? 0,
        marks.keys.of(subject.baseKey),
      );
    }
    if (chain === undefined) return highest;
    const chains = partition === undefined ? publicChains : privateChains;
    const key = chainKey(chain.id, partition);
    highest = Math.max(highest, chains.dropped.of(key));
    return chain.position === 'first' ? highest : Math.max(highest, chains.renewed.of(key));
  }

  return {
    next: () => ++order,
    ownFloor: (subject) => floor(subject, subject.partition),
    publicFloor: (subject) => floor(subject, undefined),
    turnedPrivateAt: (subject) => upstreams.get(subject.upstream)?.turned.of(subject.baseKey) ?? 0,
    invalidateUpstream(upstream) {
      marksOf(upstream).everything = ++order;
    },
    invalidateMethod(upstream, method) {
      marksOf(upstream).methods.set(method, ++order);
    },
    invalidateKey(upstream, baseKey) {
      marksOf(upstream).keys.set(baseKey, ++order);
    },
    invalidateUris(upstream, fields) {
      const { uris } = marksOf(upstream);
      const at = ++order;
      for (const field of fields) uris.set(field, at);
    },
    uriFloor(upstream, fields) {
      const uris = upstreams.get(upstream)?.uris;
      return uris === undefined ? 0 : Math.max(0, ...fields.map((field) => uris.of(field)));
    },
    doubt(upstream, method) {
      const marks = marksOf(upstream);
      if (method === undefined) marks.doubted = ++order;
      else marks.doubtedMethods.set(method, ++order);
    },
    doubtFloor({ upstream, method }) {
      const marks = upstreams.get(upstream);
      return marks === undefined ? 0 : Math.max(marks.doubted, marks.doubtedMethods.get(method) ?? 0);
    },
    watch(upstream, fields) {
      const { watched } = marksOf(upstream);
      const at = ++order;
      for (const field of fields) watched.set(field, at);
    },
    watchedAt: (upstream, field) => upstreams.get(upstream)?.watched.of(field) ?? 0,
    turnPrivate(upstream, baseKey) {
      marksOf(upstream).turned.set(baseKey, ++order);
    },
    renewChain(id, partition) {
      const chains = partition === undefined ? publicChains : privateChains;
      chains.renewed.set(chainKey(id, partition), ++order);
    },
    dropChain(id, partition) {
      const chains = partition === undefined ? publicChains : privateChains;
      chains.dropped.set(chainKey(id, partition), ++order);
    },
  };
}

function chainKey(id: string, partition: string | undefined): string {
  return partition === undefined ? publicKey(id) : privateKey(id, partition);
}

interface Marks {
  of(key: string): number;
  set(key: string, order: number): void;
}

/** Marks by key. *Bounded by* {@link MARKS_MAX}: the oldest is forgotten by becoming a mark on every key. */
function createMarks(): Marks {
  const marks = new Map<string, number>();
  let forgotten = 0;
  return {
    of(key) {
      if (marks.size === 0) return 0;
      return Math.max(forgotten, marks.get(key) ?? 0);
    },
    set(key, order) {
      marks.delete(key);
      marks.set(key, order);
      if (marks.size <= MARKS_MAX) return;
      for (const [oldest, mark] of marks) {
        marks.delete(oldest);
        forgotten = mark;
        return;
      }
    },
  };
}
