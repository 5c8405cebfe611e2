/** A small map that forgets its oldest entries: for what routing learns (design, R30: every map is bounded). */
export class BoundedMap<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #limit: number;
  readonly #onForget: ((value: V) => void) | undefined;

  /** @param limit entries kept. @param onForget called with the value that had to go. */
  constructor(limit: number, onForget?: (value: V) => void) {
    this.#limit = limit;
    this.#onForget = onForget;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  /** Like `get`, and the entry becomes the youngest. */
  touch(key: K): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#limit) return;
    const oldest = this.oldest();
    if (oldest === undefined) return;
    this.#entries.delete(oldest[0]);
    this.#onForget?.(oldest[1]);
  }

  /** The entry set or touched longest ago. */
  oldest(): [K, V] | undefined {
    const [first] = this.#entries;
    return first;
  }

  delete(key: K): boolean {
    return this.#entries.delete(key);
  }
}
