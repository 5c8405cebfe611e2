/**
 * Gathers the pieces of one body. Pure.
 *
 * A first piece is kept as it came, so that the usual body costs no copy. Others are copied into a buffer that
 * doubles: a body in pieces of one byte costs no object each, and any pieces cost linear time.
 */

/** Smallest buffer that pieces are gathered in. */
const MIN_BUFFER_BYTES = 16 * 1024;
const NOTHING = Buffer.alloc(0);

export class Gather {
  #buffer: Buffer = NOTHING;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** @param mostBytes never makes room for more than this, unless the piece needs it. */
  append(piece: Buffer, mostBytes: number): void {
    if (this.#length === 0) {
      this.#buffer = piece;
      this.#length = piece.length;
      return;
    }
    const length = this.#length + piece.length;
    if (length > this.#buffer.length) {
      const roomy = Math.min(Math.max(2 * length, MIN_BUFFER_BYTES), mostBytes);
      const grown = Buffer.allocUnsafeSlow(Math.max(length, roomy));
      this.#buffer.copy(grown, 0, 0, this.#length);
      this.#buffer = grown;
    }
    piece.copy(this.#buffer, this.#length);
    this.#length = length;
  }

  /** What has been gathered; nothing is held on to. */
  take(): Buffer {
    const bytes =
      this.#length === this.#buffer.length ? this.#buffer : this.#buffer.subarray(0, this.#length);
    this.#buffer = NOTHING;
    this.#length = 0;
    return bytes;
  }
}
