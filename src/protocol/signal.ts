/**
 * Says that nobody waits any more.
 *
 * What an `AbortSignal` does here, without what makes one dear: Node keeps each in two registries for the garbage
 * collector, which costs a streamed call as much as its connection does. Whoever has an `AbortSignal` can pass it.
 */

/** The part of an `AbortSignal` that is used. */
export interface Signal {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once?: boolean }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** A signal and the one who fires it. Each listener is called once, in the order in which they came. */
export class Abort implements Signal {
  readonly #listeners = new Set<() => void>();
  #aborted = false;
  #reason: unknown;

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason;
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (!this.#aborted) this.#listeners.add(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.delete(listener);
  }

  /** Fires, once. @param reason what `throwIfAborted` throws. */
  abort(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason;
    for (const listener of this.#listeners) {
      // One that was removed by another is not called: a set's iteration sees to it.
      this.#listeners.delete(listener);
      listener();
    }
  }
}
