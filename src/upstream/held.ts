/**
 * Counts what is held of answers that are still coming, over all upstreams of a gateway.
 *
 * Each may be collected up to `maxEntry`, to be kept; thirty large ones at once would be held thirty times over.
 * Beyond the bound, whoever holds much lets it flow instead: uncached, this time.
 */

/** Held of all reads under way together: eight of the largest entries, with the defaults. */
export const HELD_READS_BYTES = 64 * 1024 * 1024;
/** What anybody may hold, however much the others do: most answers are smaller. */
export const SMALL_READ_BYTES = 64 * 1024;

/** The count. */
export class HeldBytes {
  readonly #mostBytes: number;
  #bytes = 0;

  /** @param mostBytes at least the largest answer that is to be kept, or none of that size ever is. */
  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** True while all together hold more than they may. */
  get over(): boolean {
    return this.#bytes > this.#mostBytes;
  }

  /** What is held now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Opens one answer's account. */
  open(): Holding {
    return new Holding((change) => {
      this.#bytes += change;
    });
  }
}

/** What one answer holds. */
export class Holding {
  readonly #count: (change: number) => void;
  #bytes = 0;

  constructor(count: (change: number) => void) {
    this.#count = count;
  }

  /** Says how much it is now. */
  set(bytes: number): void {
    this.#count(bytes - this.#bytes);
    this.#bytes = bytes;
  }

  /** Some of it has gone. */
  shrink(bytes: number): void {
    this.set(Math.max(0, this.#bytes - bytes));
  }

  /** All of it has gone. */
  release(): void {
    this.set(0);
  }
}
