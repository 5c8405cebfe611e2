/**
 * Who may be meant by a question that says not which request it is about: whoever is under way alone, and nobody else.
 *
 * A request that was given up may still be worked on: until it is answered, or long enough ago, it is somebody, too, so
 * that what it asks is asked of nobody (R22). *Bounded by* what its owner lets be under way, and {@link GHOST_MS}.
 */

/** What is still done behind a cancellation is done soon. */
const GHOST_MS = 60_000;
/** Of those given up; beyond it nobody is meant until they are all forgotten. */
const MAX_GHOSTS = 1_000;

export class Askers<Key, Asker> {
  readonly #asking = new Map<Key, Asker>();
  readonly #ghosts = new Map<Key, NodeJS.Timeout>();
  #crowd: NodeJS.Timeout | undefined;

  begin(key: Key, asker: Asker): void {
    this.#asking.set(key, asker);
  }

  /** It was answered, or never sent. */
  end(key: Key): void {
    this.#asking.delete(key);
    clearTimeout(this.#ghosts.get(key));
    this.#ghosts.delete(key);
  }

  /** It was given up: its answer may come late, or never. */
  leave(key: Key): void {
    if (!this.#asking.delete(key)) return;
    if (this.#ghosts.size >= MAX_GHOSTS) {
      // Who else was given up is one with them.
      clearTimeout(this.#crowd);
      this.#crowd = setTimeout(() => {
        this.#crowd = undefined;
      }, GHOST_MS).unref();
      return;
    }
    this.#ghosts.set(key, setTimeout(() => this.#ghosts.delete(key), GHOST_MS).unref());
  }

  /** Nobody can ask any more. */
  clear(): void {
    for (const timer of this.#ghosts.values()) clearTimeout(timer);
    this.#ghosts.clear();
    clearTimeout(this.#crowd);
    this.#crowd = undefined;
    this.#asking.clear();
  }

  get alone(): Asker | undefined {
    if (this.#asking.size !== 1 || this.#ghosts.size > 0 || this.#crowd !== undefined) return undefined;
    for (const asker of this.#asking.values()) return asker;
    return undefined;
  }
}
