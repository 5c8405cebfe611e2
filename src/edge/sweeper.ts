/**
 * One clock for everything that waits on a client: bodies that come, streams that are kept alive.
 *
 * A timer for each request would cost every cache hit; here a request that is done within a tick pays for two
 * operations on a set. Deadlines are late by two ticks at most, and never early.
 */
import { type Listed, Roster } from '../protocol/roster.ts';

/** Something that is looked at now and then. */
export interface Swept extends Listed {
  /** @param elapsedMs time since the last sweep. */
  sweep(elapsedMs: number): void;
}

/** Deadlines are this exact, unless they are themselves shorter. */
const MAX_TICK_MS = 1_000;
const MIN_TICK_MS = 20;

/** Sweeps what was added until it is deleted. Its timer runs only while there is something to sweep. */
export class Sweeper {
  readonly #tickMs: number;
  readonly #now: () => number;
  readonly #swept = new Roster<Swept>();
  #timer: NodeJS.Timeout | undefined;
  #sweptAt = 0;

  /**
   * @param shortestMs the shortest deadline there is
   * @param now a monotonic clock, in milliseconds
   */
  constructor(shortestMs: number, now: () => number) {
    this.#tickMs = Math.max(MIN_TICK_MS, Math.min(MAX_TICK_MS, shortestMs / 4));
    this.#now = now;
  }

  add(swept: Swept): void {
    this.#swept.add(swept);
    if (this.#timer !== undefined) return;
    this.#sweptAt = this.#now();
    this.#timer = setInterval(() => this.#sweep(), this.#tickMs);
    this.#timer.unref();
  }

  delete(swept: Swept): void {
    this.#swept.delete(swept);
  }

  #sweep(): void {
    const now = this.#now();
    // A process that was stopped or busy has not looked: what came meanwhile waits in the kernel.
    const elapsedMs = Math.min(now - this.#sweptAt, 2 * this.#tickMs);
    this.#sweptAt = now;
    for (const swept of this.#swept) swept.sweep(elapsedMs);
    if (this.#swept.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** The time between sweeps, for one thing that waits; what passes before its first sweep does not count. */
export class Patience {
  #waitedMs = -1;

  /** Starts anew. */
  reset(): void {
    this.#waitedMs = -1;
  }

  /** Counts a sweep. @returns how long it has waited for certain. */
  waited(elapsedMs: number): number {
    this.#waitedMs = this.#waitedMs < 0 ? 0 : this.#waitedMs + elapsedMs;
    return this.#waitedMs;
  }
}
