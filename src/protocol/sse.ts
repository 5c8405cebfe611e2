/**
 * Frames a server-sent event stream as bytes: where does an event end, and what is its data?
 *
 * A relay passes an event on as it came, so it needs the bytes and not a decoded copy; a reader needs only
 * the data. Nothing is decoded and nothing is copied: pieces are views of the chunks that came.
 * *Spec:* WHATWG HTML, "Server-sent events", 9.2.5 and 9.2.6.
 * *Never* throws. *Bounded by* `maxEventBytes`: of a larger event no more than that (and one chunk) is held.
 */

/** One event, or a part of one that is larger than the framer may hold. */
export interface SseEvent {
  /** `whole`, or what becomes of an event above the bound: `first`, any number of `next`, `last`. */
  readonly part: 'whole' | 'first' | 'next' | 'last';
  /** The bytes as they came, terminators included, without `id` and `retry` lines: pieces in order. */
  readonly raw: readonly Uint8Array[];
  /** The data, lines joined by LF, in pieces; undefined where no `data` line came (comments, lone line ends). */
  readonly data: readonly Uint8Array[] | undefined;
  /** True for an event without a type or of type `message`: clients ignore others. Final in `whole` and `last`. */
  readonly message: boolean;
}

/** `dropped`: the lines that ask a client to resume, which the gateway cannot honour. */
type Field = 'data' | 'event' | 'dropped' | 'comment' | 'other';

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const BOM = [0xef, 0xbb, 0xbf] as const;
const NEWLINE = Uint8Array.of(LF);

/** One more than the longest field name that matters, `event` or `retry`. */
const NAME_BYTES = 6;
/** More of an event's type than this is not looked at: enough to tell `message` from any other. */
const TYPE_CHARS = 8;

/** Takes a stream apart, chunk by chunk; any chunking gives the same events. */
export class SseFramer {
  #maxEventBytes: number;

  // Where in a line the stream stands.
  #at: 'name' | 'space' | 'value' = 'name';
  #field: Field = 'other';
  /** The field name so far, behind the byte order mark if this is the first line. */
  readonly #name = new Uint8Array(BOM.length + NAME_BYTES);
  #nameLength = 0;
  /** Bytes of `#name` that came in earlier chunks: kept or dropped once the field is known. */
  #carried = 0;
  #firstLine = true;
  /** What becomes of a LF right behind the CR that ended the previous chunk. */
  #lf: 'none' | 'keep' | 'alone' | 'drop' = 'none';

  // The event so far.
  #raw: Uint8Array[] = [];
  #rawBytes = 0;
  #data: Uint8Array[] = [];
  #hasData = false;
  #hasFields = false;
  #type = '';
  #flowing = false;

  // The chunk in hand.
  #from = 0;
  #lineStart = 0;
  #nextLf = -1;
  #nextCr = -1;

  /** @param maxEventBytes an unfinished event above this is given out in parts. */
  constructor(maxEventBytes: number) {
    this.#maxEventBytes = maxEventBytes;
  }

  /** True between events: whatever came has been given out, and nothing of another event has come. */
  get atBoundary(): boolean {
    return !this.#flowing && this.#at === 'name' && this.heldBytes === 0 && !this.#hasFields;
  }

  /** True when a part of an unfinished event has been given out. */
  get flowing(): boolean {
    return this.#flowing;
  }

  /** True when what has been given out ends in the middle of a line. */
  get midLine(): boolean {
    return this.#flowing && this.#at !== 'name' && this.#field !== 'dropped';
  }

  /** Bytes of the unfinished event that are held back. */
  get heldBytes(): number {
    return this.#rawBytes + this.#carried;
  }

  /** Holds nothing of the unfinished event, nor of later ones, beyond the chunk in hand. */
  holdNothing(): void {
    this.#maxEventBytes = 0;
  }

  /** Takes the next bytes of the stream. @returns what they completed, in order. */
  push(chunk: Uint8Array): readonly SseEvent[] {
    const out: SseEvent[] = [];
    if (chunk.length === 0) return out;
    let i = this.#openChunk(chunk, out);
    while (i < chunk.length) {
      if (this.#at === 'name') {
        i = this.#readName(chunk, i);
        const line = this.#lineKind(chunk[i]);
        if (line === 'undecided') break;
        if (line === 'blank') {
          i = this.#blankLine(chunk, i, out);
          continue;
        }
        this.#begin(chunk, line);
        this.#at = chunk[i] === COLON ? 'space' : 'value';
        if (this.#at === 'space') i++;
      }
      if (this.#at === 'space') {
        if (i === chunk.length) break;
        if (chunk[i] === SPACE) i++;
        this.#at = 'value';
      }
      const end = this.#lineEndAfter(chunk, i);
      this.#value(chunk, i, end);
      i = end < chunk.length ? this.#endLine(chunk, end, out) : end;
    }
    this.#closeChunk(chunk, out);
    return out;
  }

  /** @returns the index of the first byte that is not the rest of the previous chunk's line end. */
  #openChunk(chunk: Uint8Array, out: SseEvent[]): number {
    const rest = this.#lf !== 'none' && chunk[0] === LF ? 1 : 0;
    if (rest === 1 && this.#lf === 'alone') {
      out.push({ part: 'whole', raw: [chunk.subarray(0, 1)], data: undefined, message: true });
    }
    this.#from = this.#lf === 'keep' ? 0 : rest;
    this.#lf = 'none';
    this.#lineStart = rest;
    this.#nextLf = -1;
    this.#nextCr = -1;
    return rest;
  }

  /** Holds what is unfinished, or lets it go when it is too much to hold. */
  #closeChunk(chunk: Uint8Array, out: SseEvent[]): void {
    if (this.#at === 'name') {
      this.#keep(chunk, this.#lineStart);
      this.#carried = this.#nameLength;
    } else if (this.#field !== 'dropped') {
      this.#keep(chunk, chunk.length);
    }
    if (this.#raw.length === 0 || (!this.#flowing && this.#rawBytes <= this.#maxEventBytes)) return;
    out.push(this.#give(this.#flowing ? 'next' : 'first'));
    this.#flowing = true;
  }

  #readName(chunk: Uint8Array, at: number): number {
    const limit = this.#firstLine ? BOM.length + NAME_BYTES : NAME_BYTES;
    let i = at;
    while (i < chunk.length && this.#nameLength < limit) {
      const byte = chunk[i] as number;
      if (byte === COLON || byte === LF || byte === CR) break;
      this.#name[this.#nameLength++] = byte;
      i++;
    }
    return i;
  }

  /** What the line is, given the byte behind its name; undefined at the end of the chunk. */
  #lineKind(next: number | undefined): Field | 'blank' | 'undecided' {
    const start = this.#firstLine && startsWithBom(this.#name, this.#nameLength) ? BOM.length : 0;
    const length = this.#nameLength - start;
    if (length >= NAME_BYTES) return 'other';
    if (next === undefined) return 'undecided';
    if (length === 0) return next === COLON ? 'comment' : 'blank';
    return fieldOf(this.#name, start, length);
  }

  /** A line whose field is now known. */
  #begin(chunk: Uint8Array, field: Field): void {
    this.#field = field;
    if (field === 'dropped') {
      this.#keep(chunk, this.#lineStart);
      this.#carried = 0;
      return;
    }
    this.#keepCarried();
    if (field === 'comment') return;
    this.#hasFields = true;
    if (field === 'event') this.#type = '';
    if (field !== 'data') return;
    if (this.#hasData) this.#data.push(NEWLINE);
    this.#hasData = true;
  }

  #value(chunk: Uint8Array, start: number, end: number): void {
    if (start >= end) return;
    if (this.#field === 'data') {
      this.#data.push(chunk.subarray(start, end));
    } else if (this.#field === 'event') {
      const stop = Math.min(end, start + TYPE_CHARS - this.#type.length);
      for (let i = start; i < stop; i++) this.#type += String.fromCharCode(chunk[i] as number);
    }
  }

  #endLine(chunk: Uint8Array, at: number, out: SseEvent[]): number {
    // A keep-alive is a comment line of its own: held until the next event, it would keep nothing alive.
    const alone = this.#field === 'comment' && !this.#hasFields;
    const i = this.#terminator(chunk, at, this.#field === 'dropped' ? 'drop' : alone ? 'alone' : 'keep');
    if (this.#field === 'dropped') this.#from = i;
    if (alone) this.#finish(chunk, i, out);
    this.#startLine(i);
    return i;
  }

  #blankLine(chunk: Uint8Array, at: number, out: SseEvent[]): number {
    this.#keepCarried();
    const i = this.#terminator(chunk, at, 'alone');
    this.#finish(chunk, i, out);
    this.#startLine(i);
    return i;
  }

  #startLine(at: number): void {
    this.#at = 'name';
    this.#nameLength = 0;
    this.#carried = 0;
    this.#firstLine = false;
    this.#lineStart = at;
  }

  /** @returns the index behind the line end at `at`; one that may go on in the next chunk is remembered. */
  #terminator(chunk: Uint8Array, at: number, lf: 'keep' | 'alone' | 'drop'): number {
    if (chunk[at] === LF) return at + 1;
    if (at + 1 === chunk.length) this.#lf = lf;
    return chunk[at + 1] === LF ? at + 2 : at + 1;
  }

  #lineEndAfter(chunk: Uint8Array, at: number): number {
    if (this.#nextLf < at) this.#nextLf = indexOrEnd(chunk, LF, at);
    if (this.#nextCr < at) this.#nextCr = indexOrEnd(chunk, CR, at);
    return Math.min(this.#nextLf, this.#nextCr);
  }

  #finish(chunk: Uint8Array, end: number, out: SseEvent[]): void {
    this.#keep(chunk, end);
    out.push(this.#give(this.#flowing ? 'last' : 'whole'));
    this.#flowing = false;
    this.#hasData = false;
    this.#hasFields = false;
    this.#type = '';
  }

  #give(part: SseEvent['part']): SseEvent {
    const message = this.#type === '' || this.#type === 'message';
    const event = { part, raw: this.#raw, data: this.#hasData ? this.#data : undefined, message };
    this.#raw = [];
    this.#rawBytes = 0;
    this.#data = [];
    return event;
  }

  #keep(chunk: Uint8Array, to: number): void {
    if (this.#from >= to) return;
    this.#raw.push(chunk.subarray(this.#from, to));
    this.#rawBytes += to - this.#from;
    this.#from = to;
  }

  #keepCarried(): void {
    if (this.#carried === 0) return;
    this.#raw.push(this.#name.slice(0, this.#carried));
    this.#rawBytes += this.#carried;
    this.#carried = 0;
  }
}

function indexOrEnd(chunk: Uint8Array, byte: number, from: number): number {
  const at = chunk.indexOf(byte, from);
  return at < 0 ? chunk.length : at;
}

function startsWithBom(name: Uint8Array, length: number): boolean {
  return length >= BOM.length && name[0] === BOM[0] && name[1] === BOM[1] && name[2] === BOM[2];
}

function fieldOf(name: Uint8Array, start: number, length: number): Field {
  switch (String.fromCharCode(...name.subarray(start, start + length))) {
    case 'data':
      return 'data';
    case 'event':
      return 'event';
    case 'id':
    case 'retry':
      return 'dropped';
    default:
      return 'other';
  }
}
