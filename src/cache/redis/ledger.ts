/**
 * What one replica knows of the order of one upstream. Decisions over tokens; sees no socket.
 *
 * Every bump names the one before it, so the bumps that are known form a chain; a bump that nobody told us of is a gap
 * in it, which no later one can hide. What the last one is, Redis says when it is asked (`sync`).
 */
import type { SyncReply } from './scripts.ts';

/** Bumps known beyond a gap; more, and the gap is taken for what it is at the next look. */
const LINKS_MAX = 1_000;
/** Two clocks that both run well differ by less while a replica starts. */
const MARGIN_MS = 1_000;
/** An order without any bump is no sign of one to a replica this young: it was made as the replicas started. */
const YOUNG_MS = 2_000;

export type SyncVerdict =
  /** All bumps are known. */
  | 'nothing'
  /** Something was bumped that is not known here: everything is over. */
  | 'changed'
  /** So it is, unless the message is still on its way: see {@link Ledger.caughtUp}. */
  | 'behind';

/** Times in milliseconds of the process's monotonic clock. */
export class Ledger {
  readonly #since: number;
  /** All bumps up to this one are known; 0 before the first synchronisation. */
  #known = 0;
  /** The highest bump known. */
  #seen = 0;
  /** The highest token given to a load. */
  #given = 0;
  /** Loads up to this one belong to an order that may have been lost. */
  #refusedUpTo = 0;
  #born = 0;
  /** Bumps beyond a gap, by the one before. */
  readonly #links = new Map<number, number>();
  /** Redis' clock when it was last read. */
  #readUs = 0;
  #readAt = 0;

  /** @param since when this replica began to hold anything of the upstream. */
  constructor(since: number) {
    this.#since = since;
  }

  get seen(): number {
    return this.#seen;
  }

  get given(): number {
    return this.#given;
  }

  /** No new token may be at or below this. */
  get floor(): number {
    return Math.max(this.#seen, this.#given);
  }

  get born(): number {
    return this.#born;
  }

  /** Redis' clock now, in microseconds, as far as it is known: never ahead by more than it is read late. */
  clockUs(at: number): number {
    return this.#readUs + Math.floor((at - this.#readAt) * 1_000);
  }

  /** A load was given a token. */
  loaded(token: number, born: number, at: number): void {
    this.#orderIs(born);
    this.#given = Math.max(this.#given, token);
    this.#read(token, at);
  }

  /** Whether what that load brings may be stored. */
  mayStore(token: number): boolean {
    return token > this.#refusedUpTo;
  }

  /** The connection was lost: the next server may not know of the loads that began before. */
  interrupted(): void {
    this.#refusedUpTo = this.#given;
  }

  /** There was a bump; see {@link hasGap}. */
  bumped(token: number, previous: number): void {
    this.#seen = Math.max(this.#seen, token);
    if (token <= this.#known) return;
    if (this.#links.size >= LINKS_MAX) this.#links.clear();
    this.#links.set(previous, token);
    this.#join();
  }

  /** @param look `last`: nothing can be on its way any more. */
  synchronised(reply: SyncReply, look: 'first' | 'last', at: number): SyncVerdict {
    const isFirst = this.#known === 0;
    this.#orderIs(reply.born);
    this.#read(reply.now, at);
    if (isFirst) {
      this.skipTo(reply.last);
      return this.#bumpedInMyTime(reply, at) ? 'changed' : 'nothing';
    }
    if (!reply.raised && reply.last <= this.#known) return 'nothing';
    if (!reply.raised && look === 'first') return 'behind';
    this.skipTo(reply.last);
    return 'changed';
  }

  /** Whether a bump is known and one before it is not. */
  get hasGap(): boolean {
    return this.#links.size > 0;
  }

  caughtUp(token: number): boolean {
    return this.#known >= token;
  }

  /** Everything up to that bump is taken to be over: no gap before it counts. */
  skipTo(token: number): void {
    this.#seen = Math.max(this.#seen, token);
    this.#known = Math.max(this.#known, token);
    this.#join();
  }

  #bumpedInMyTime({ lastFound, now, born }: SyncReply, at: number): boolean {
    const aliveMs = at - this.#since;
    if (lastFound === born && aliveMs < YOUNG_MS) return false;
    return lastFound > now - (aliveMs + MARGIN_MS) * 1_000;
  }

  #orderIs(born: number): void {
    if (born === this.#born) return;
    this.#born = born;
    this.interrupted();
  }

  #read(us: number, at: number): void {
    this.#readUs = us;
    this.#readAt = at;
  }

  /** Goes on along the chain, and forgets what is behind. */
  #join(): void {
    for (let next = this.#links.get(this.#known); next !== undefined; next = this.#links.get(next)) {
      this.#known = Math.max(this.#known, next);
    }
    for (const [previous, token] of this.#links) {
      if (token <= this.#known) this.#links.delete(previous);
    }
  }
}
