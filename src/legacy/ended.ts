/**
 * Which serials are over: a bit each, so that any number of ended sessions costs next to nothing.
 *
 * *Bounded by* {@link MAX_CHUNKS}: beyond it the oldest serials are over, all of them, whoever they were.
 */

/** Serials of one piece of the map. */
const CHUNK_SERIALS = 65_536;
/** Pieces: 8 MiB, for 67 million sessions. */
const MAX_CHUNKS = 1_024;

export class Ended {
  readonly #maxChunks: number;
  readonly #chunks = new Map<number, Uint8Array>();
  /** Up to this serial, all are over. */
  #overTo = 0;

  constructor(maxChunks = MAX_CHUNKS) {
    this.#maxChunks = maxChunks;
  }

  add(serial: number): void {
    const at = Math.floor(serial / CHUNK_SERIALS);
    let chunk = this.#chunks.get(at);
    if (chunk === undefined) {
      chunk = new Uint8Array(CHUNK_SERIALS / 8);
      this.#chunks.set(at, chunk);
      if (this.#chunks.size > this.#maxChunks) this.#forget(Math.min(...this.#chunks.keys()));
    }
    const bit = serial % CHUNK_SERIALS;
    chunk[bit >> 3] = (chunk[bit >> 3] as number) | (1 << (bit & 7));
  }

  has(serial: number): boolean {
    if (serial < this.#overTo) return true;
    const bit = serial % CHUNK_SERIALS;
    const byte = this.#chunks.get(Math.floor(serial / CHUNK_SERIALS))?.[bit >> 3] ?? 0;
    return (byte & (1 << (bit & 7))) !== 0;
  }

  #forget(at: number): void {
    this.#chunks.delete(at);
    this.#overTo = Math.max(this.#overTo, (at + 1) * CHUNK_SERIALS);
  }
}
