/**
 * Lines out of chunks of bytes. Bytes stay bytes: a character may come in two chunks, and what a chunk holds is no
 * text before its line is whole. *Bounded by* the longest line that is taken.
 */

const LINE_FEED = 0x0a;

/** A line without its line feed; `cut` when it was longer than what is taken of one. */
export type OnLine = (line: Uint8Array, length: 'whole' | 'cut') => void;

/** Cuts chunks into lines. */
export class Lines {
  readonly #maxBytes: number;
  readonly #on: OnLine;
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #isCut = false;

  /** @param maxBytes what is held of a line; the rest of a longer one is passed over. */
  constructor(maxBytes: number, on: OnLine) {
    this.#maxBytes = maxBytes;
    this.#on = on;
  }

  /** Whether the line that is still coming is too long already. */
  get isTooLong(): boolean {
    return this.#isCut;
  }

  /** Tells every line that ends in this chunk. */
  add(chunk: Uint8Array): void {
    let from = 0;
    for (;;) {
      const end = chunk.indexOf(LINE_FEED, from);
      if (end < 0) break;
      this.#hold(chunk.subarray(from, end));
      this.#tell();
      from = end + 1;
    }
    this.#hold(chunk.subarray(from));
  }

  /** Tells what has no line feed behind it: there will be none. */
  end(): void {
    if (this.#bytes > 0) this.#tell();
  }

  #hold(bytes: Uint8Array): void {
    const room = this.#maxBytes - this.#bytes;
    if (bytes.length > room) this.#isCut = true;
    const held = bytes.length > room ? bytes.subarray(0, room) : bytes;
    if (held.length === 0) return;
    this.#parts.push(held);
    this.#bytes += held.length;
  }

  #tell(): void {
    const [first, ...more] = this.#parts;
    const line = first === undefined || more.length > 0 ? Buffer.concat(this.#parts, this.#bytes) : first;
    const length = this.#isCut ? 'cut' : 'whole';
    this.#parts = [];
    this.#bytes = 0;
    this.#isCut = false;
    this.#on(line, length);
  }
}
