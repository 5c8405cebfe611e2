/**
 * The sessions of older clients that left something behind: a subscription, a log level, an open stream. The others are
 * their ids alone.
 *
 * A session that is ended or dropped is unknown from then on (404), so that its client begins anew and never believes
 * in a subscription that nobody keeps. *Bounded by* {@link MAX_KEPT}, of which one caller has a quarter at most: of what
 * is not used the oldest goes first, the caller's own where it has its share. *Spec:* 2025-11-25, basic/transports,
 * "Session Management".
 */
import { BoundedMap } from '../protocol/bounded-map.ts';
import { Ended } from './ended.ts';
import { Session, type SessionDeps } from './session.ts';
import { type Holder, type Ticket, Tickets } from './tickets.ts';

/** Sessions that keep something. */
export const MAX_KEPT = 10_000;
/** Of one caller. */
export const MAX_OF_HOLDER = 2_500;
/** A session without a stream that is not used for so long is over. */
export const IDLE_MS = 30 * 60_000;
const SWEEP_MS = 60_000;
/** Of the least used, so many are looked at for one that is not in use. */
const MAX_TRIES = 64;

/** A session that a request came with. */
export interface Known {
  readonly ticket: Ticket;
  readonly route: string;
  /** Whose it is, as a word. */
  readonly holder: string;
}

interface Kept {
  readonly session: Session;
  readonly serial: number;
  readonly route: string;
  readonly holder: string;
  usedAt: number;
}

export class Sessions {
  readonly #tickets = new Tickets();
  readonly #now: () => number;
  readonly #ended = new Ended();
  /** By serial: what is last used stands last, of all and of each caller. */
  readonly #kept = new BoundedMap<number, Kept>(MAX_KEPT);
  readonly #holders = new Map<string, BoundedMap<number, Kept>>();
  readonly #timer: NodeJS.Timeout;
  #deafened = false;

  constructor(now: () => number) {
    this.#now = now;
    this.#timer = setInterval(() => this.sweep(), SWEEP_MS);
    this.#timer.unref();
  }

  /** Those that keep something. */
  get size(): number {
    return this.#kept.size;
  }

  issue(ticket: Omit<Ticket, 'serial'>, holder: Holder): string {
    return this.#tickets.issue(ticket, holder);
  }

  /** Whose session this is; undefined for one that is unknown here, or another's. */
  find(id: string, holder: Holder): Known | undefined {
    const ticket = this.#tickets.read(id, holder);
    if (ticket === undefined || this.#ended.has(ticket.serial)) return undefined;
    this.#use(this.#kept.get(ticket.serial));
    const { route, partition } = holder;
    return { ticket, route, holder: JSON.stringify([route, partition]) };
  }

  /** What a session keeps, if it keeps anything. */
  kept({ ticket }: Known): Session | undefined {
    return this.#kept.get(ticket.serial)?.session;
  }

  /** A place for what a session keeps; undefined for one that is over, and while there is none. */
  keep({ ticket: { serial }, route, holder }: Known, deps: Pick<SessionDeps, 'listen'>): Session | undefined {
    const known = this.#kept.get(serial);
    if (known !== undefined) return known.session;
    if (this.#ended.has(serial)) return undefined;
    const own = this.#holders.get(holder) ?? new BoundedMap<number, Kept>(MAX_KEPT);
    if (own.size >= MAX_OF_HOLDER && !this.#makeRoom(own)) return undefined;
    if (this.#kept.size >= MAX_KEPT && !this.#makeRoom(this.#kept)) return undefined;
    const session = new Session({ ...deps, now: this.#now, used: () => this.#use(this.#kept.get(serial)) });
    if (this.#deafened) session.giveUp();
    const kept: Kept = { session, serial, route, holder, usedAt: this.#now() };
    this.#holders.set(holder, own);
    this.#kept.set(serial, kept);
    own.set(serial, kept);
    return session;
  }

  end({ ticket: { serial } }: Known): void {
    this.#end(serial);
  }

  /** Ends what was not used for long. */
  sweep(): void {
    const before = this.#now() - IDLE_MS;
    for (let left = this.#kept.size; left > 0; left--) {
      const oldest = this.#kept.oldest()?.[1];
      if (oldest === undefined || oldest.usedAt > before) return;
      this.#endUnlessUsed(oldest);
    }
  }

  /** Ends those of routes that serve no sessions any more. */
  endExcept(isServed: (route: string) => boolean): void {
    for (const [serial, { route }] of [...this.#kept.entries()]) if (!isServed(route)) this.#end(serial);
  }

  /** No client can answer any more. */
  giveUp(): void {
    this.#deafened = true;
    for (let left = this.#kept.size; left > 0; left--) {
      const oldest = this.#kept.oldest();
      if (oldest === undefined) return;
      this.#kept.touch(oldest[0]);
      oldest[1].session.giveUp();
    }
  }

  close(): void {
    clearInterval(this.#timer);
    for (let oldest = this.#kept.oldest(); oldest !== undefined; oldest = this.#kept.oldest())
      this.#end(oldest[0]);
  }

  #use(kept: Kept | undefined): void {
    if (kept === undefined) return;
    kept.usedAt = this.#now();
    this.#kept.touch(kept.serial);
    this.#holders.get(kept.holder)?.touch(kept.serial);
  }

  #makeRoom(among: BoundedMap<number, Kept>): boolean {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const oldest = among.oldest()?.[1];
      if (oldest !== undefined && this.#endUnlessUsed(oldest)) return true;
    }
    return false;
  }

  #endUnlessUsed(kept: Kept): boolean {
    if (kept.session.inUse) {
      this.#use(kept);
      return false;
    }
    this.#end(kept.serial);
    return true;
  }

  #end(serial: number): void {
    const kept = this.#kept.get(serial);
    this.#ended.add(serial);
    if (kept === undefined) return;
    this.#kept.delete(serial);
    const own = this.#holders.get(kept.holder);
    own?.delete(serial);
    if (own?.size === 0) this.#holders.delete(kept.holder);
    kept.session.close();
  }
}
