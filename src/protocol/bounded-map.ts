/** A small map that forgets its oldest entries: for what routing learns (design, R30: every map is bounded). */

interface Entry<K, V> {
  readonly key: K;
  value: V;
  older: Entry<K, V> | undefined;
  newer: Entry<K, V> | undefined;
}

/**
 * The order is a chain of entries beside the map. The order of a `Map` would do, but what was deleted from it leaves
 * a gap that the next search for its first entry walks over: a full map would cost the square of what goes through it.
 */
export class BoundedMap<K, V> {
  readonly #entries = new Map<K, Entry<K, V>>();
  readonly #limit: number;
  readonly #onForget: ((value: V, key: K) => void) | undefined;
  #oldest: Entry<K, V> | undefined;
  #newest: Entry<K, V> | undefined;

  /** @param limit entries kept. @param onForget called with what had to go. */
  constructor(limit: number, onForget?: (value: V, key: K) => void) {
    this.#limit = limit;
    this.#onForget = onForget;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  /** Like `get`, and the entry becomes the youngest. */
  touch(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#unlink(entry);
    this.#append(entry);
    return entry.value;
  }

  set(key: K, value: V): void {
    const known = this.#entries.get(key);
    if (known !== undefined) this.#unlink(known);
    const entry = known ?? { key, value, older: undefined, newer: undefined };
    entry.value = value;
    this.#append(entry);
    this.#entries.set(key, entry);
    const oldest = this.#oldest;
    if (this.#entries.size <= this.#limit || oldest === undefined) return;
    this.delete(oldest.key);
    this.#onForget?.(oldest.value, oldest.key);
  }

  /** The entry set or touched longest ago. */
  oldest(): [K, V] | undefined {
    return this.#oldest && [this.#oldest.key, this.#oldest.value];
  }

  /** The oldest first. */
  *entries(): Generator<[K, V]> {
    for (let entry = this.#oldest; entry !== undefined; entry = entry.newer) yield [entry.key, entry.value];
  }

  delete(key: K): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#unlink(entry);
    return this.#entries.delete(key);
  }

  #append(entry: Entry<K, V>): void {
    entry.older = this.#newest;
    entry.newer = undefined;
    if (this.#newest === undefined) this.#oldest = entry;
    else this.#newest.newer = entry;
    this.#newest = entry;
  }

  #unlink({ older, newer }: Entry<K, V>): void {
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
  }
}
