/** The request body of a streamed call on its way up: an iterable that can be told to stop. */

type Step = IteratorResult<Uint8Array, undefined>;

/**
 * Wraps the client's body so that an upload ends when its exchange does. undici waits for the next chunk
 * even when the answer is complete or the request aborted, and a client may never send one.
 */
export class Upload implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array> {
  readonly #source: AsyncIterator<Uint8Array>;
  #reject: ((error: Error) => void) | undefined;
  #started = false;
  #stopped = false;
  /** True when the client's side broke off: nobody can blame the upstream then. */
  broken = false;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Step> {
    // An end would make a cut body look whole: an upload that is stopped fails.
    if (this.#stopped) return Promise.reject(new Error('the upload was stopped'));
    this.#started = true;
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      this.#source.next().then(resolve, (error: unknown) => {
        this.broken = !this.#stopped;
        reject(error);
      });
    });
  }

  return(): Promise<Step> {
    this.stop();
    return Promise.resolve({ done: true, value: undefined });
  }

  /**
   * Ends the upload, also one that waits for the client; the source is told with `return`. One that was not begun
   * stays whole: it can go to another endpoint.
   */
  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#reject?.(new Error('the upload was stopped'));
    if (this.#started) this.#source.return?.()?.catch(() => {});
  }
}
