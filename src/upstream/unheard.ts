/** What the process of an upstream says to nobody in particular, for one who listens. */

/** Notifications that a slow listener is behind: what is beyond is told as a broken stream. */
const MAX_UNHEARD = 1_000;

/** What a listener has not taken yet; ends when the process does. */
export class Unheard implements AsyncIterable<Uint8Array> {
  readonly #onEnd: () => void;
  readonly #queue: Uint8Array[] = [];
  #woken: (() => void) | undefined;
  #over = false;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  push(message: Uint8Array): void {
    if (this.#queue.length >= MAX_UNHEARD) return this.end();
    this.#queue.push(message);
    this.#woken?.();
  }

  end(): void {
    this.#over = true;
    this.#onEnd();
    this.#woken?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) yield next;
        if (this.#over) return;
        await new Promise<void>((resolve) => {
          this.#woken = resolve;
        });
      }
    } finally {
      this.end();
    }
  }
}
