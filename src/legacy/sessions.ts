/**
 * The sessions of older clients that left something behind: a subscription, a log level, an open stream. The others are
 * their ids alone.
 *
 * A session that is ended or dropped is unknown from then on (404), so that its client begins anew and never believes
 * in a subscription that nobody keeps. *Bounded by* {@link MAX_KEPT} and {@link MAX_ENDED}; of what is not used the
 * oldest goes first. *Spec:* 2025-11-25, basic/transports, "Session Management".
 */
import { BoundedMap } from '../protocol/bounded-map.ts';
import { Session, type SessionDeps } from './session.ts';
import { type Holder, type Ticket, Tickets } from './tickets.ts';

/** Sessions that keep something. */
export const MAX_KEPT = 10_000;
/** Ended sessions whose ids are remembered one by one. */
const MAX_ENDED = 100_000;
/** A session without a stream that is not used for so long is over. */
export const IDLE_MS = 30 * 60_000;
const SWEEP_MS = 60_000;
/** Of the least used, so many are looked at for one that is not in use. */
const MAX_TRIES = 64;

/** A session that a request came with. */
export interface Known {
  readonly id: string;
  readonly ticket: Ticket;
}

interface Kept {
  readonly session: Session;
  readonly serial: number;
  usedAt: number;
}

export class Sessions {
  readonly #tickets = new Tickets();
  readonly #now: () => number;
  readonly #kept = new BoundedMap<string, Kept>(MAX_KEPT);
  /** By id, the serials of ended ones. Better a client too many that begins anew than one that believes in what is over. */
  readonly #ended = new BoundedMap<string, number>(MAX_ENDED, (serial) => {
    this.#forgottenTo = Math.max(this.#forgottenTo, serial);
  });
  /** Of sessions up to this serial, those that keep nothing are unknown. */
  #forgottenTo = 0;
  readonly #timer: NodeJS.Timeout;

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
    if (ticket === undefined) return undefined;
    const kept = this.#kept.touch(id);
    if (kept !== undefined) kept.usedAt = this.#now();
    else if (ticket.serial <= this.#forgottenTo || this.#ended.get(id) !== undefined) return undefined;
    return { id, ticket };
  }

  /** What a session keeps, if it keeps anything. */
  kept(id: string): Session | undefined {
    return this.#kept.get(id)?.session;
  }

  /** A place for what a session keeps; undefined while there is none. */
  keep({ id, ticket }: Known, deps: SessionDeps): Session | undefined {
    const known = this.#kept.get(id);
    if (known !== undefined) return known.session;
    if (this.#kept.size >= MAX_KEPT && !this.#makeRoom()) return undefined;
    const session = new Session(deps);
    this.#kept.set(id, { session, serial: ticket.serial, usedAt: this.#now() });
    return session;
  }

  end({ id, ticket }: Known): void {
    this.#end(id, ticket.serial);
  }

  /** Ends what was not used for long. */
  sweep(): void {
    const before = this.#now() - IDLE_MS;
    for (let left = this.#kept.size; left > 0; left--) {
      const oldest = this.#kept.oldest();
      if (oldest === undefined || oldest[1].usedAt > before) return;
      this.#endUnlessUsed(oldest);
    }
  }

  close(): void {
    clearInterval(this.#timer);
    for (let oldest = this.#kept.oldest(); oldest !== undefined; oldest = this.#kept.oldest())
      this.#end(oldest[0], oldest[1].serial);
  }

  #makeRoom(): boolean {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const oldest = this.#kept.oldest();
      if (oldest !== undefined && this.#endUnlessUsed(oldest)) return true;
    }
    return false;
  }

  #endUnlessUsed([id, kept]: [string, Kept]): boolean {
    if (!kept.session.inUse) {
      this.#end(id, kept.serial);
      return true;
    }
    kept.usedAt = this.#now();
    this.#kept.touch(id);
    return false;
  }

  #end(id: string, serial: number): void {
    this.#kept.get(id)?.session.close();
    this.#kept.delete(id);
    this.#ended.set(id, serial);
  }
}
