/**
 * Tells of each thing at once, and of what follows within a moment once more, at its end (R41): the first is never
 * late, the last never lost.
 */

/** How long what follows is gathered. */
const COALESCE_MS = 100;
/** Things in hand at once. What is beyond is told each time. */
const MAX_KEYS = 10_000;

interface Telling {
  /** Settles when it may be told. */
  readonly ready: Promise<unknown> | undefined;
  readonly tell: () => void;
}

export class Coalescer {
  readonly #ms: number;
  /** What was told of lately, or is to be told of soon, and what has come since. */
  readonly #inHand = new Map<string, { next: Telling | undefined; timer: NodeJS.Timeout | undefined }>();
  #closed = false;

  constructor(ms = COALESCE_MS) {
    this.#ms = ms;
  }

  /** @param ready settles when it may be told; *never* rejects. */
  add(key: string, ready: Promise<unknown> | undefined, tell: () => void): void {
    const inHand = this.#inHand.get(key);
    if (inHand !== undefined) {
      inHand.next = { ready, tell };
      return;
    }
    if (this.#inHand.size < MAX_KEYS) this.#inHand.set(key, { next: undefined, timer: undefined });
    this.#run(key, { ready, tell });
  }

  close(): void {
    this.#closed = true;
    for (const { timer } of this.#inHand.values()) clearTimeout(timer);
    this.#inHand.clear();
  }

  #run(key: string, telling: Telling): void {
    if (telling.ready === undefined) this.#tell(key, telling);
    else void telling.ready.then(() => this.#tell(key, telling));
  }

  #tell(key: string, { tell }: Telling): void {
    if (this.#closed) return;
    tell();
    const inHand = this.#inHand.get(key);
    if (inHand === undefined) return;
    inHand.timer = setTimeout(() => {
      const { next } = inHand;
      inHand.next = undefined;
      if (next === undefined) this.#inHand.delete(key);
      else this.#run(key, next);
    }, this.#ms);
    inHand.timer.unref();
  }
}
