/**
 * The span scanner's rules for bytes that flow: finds where one JSON value ends, in chunks of any size.
 *
 * As strict as `json.ts` (RFC 8259, UTF-8 validated): what the one accepts, the other does. Nothing is held but
 * where it stands. *Never* throws. *Bounded by* {@link MAX_JSON_DEPTH}; linear in the bytes.
 */
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  isSpace,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './bytes.ts';
import { MAX_JSON_DEPTH } from './json.ts';

/** 1 for every byte that stands in a string for itself, alone. */
const PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte < 0x80 && byte !== QUOTE && byte !== BACKSLASH ? 1 : 0,
);
/** Bytes that may follow a backslash, `u` aside. */
const ESCAPED: ReadonlySet<number> = new Set([...'"\\/bfnrt'].map((char) => char.charCodeAt(0)));
const LITERALS: ReadonlyMap<number, string> = new Map([
  [0x74, 'true'],
  [0x66, 'false'],
  [0x6e, 'null'],
]);

/** Where in a number: the grammar's states by name. */
type InNumber = 'minus' | 'zero' | 'int' | 'dot' | 'frac' | 'e' | 'sign' | 'exp';
/** In these a number may end. */
const WHOLE: ReadonlySet<InNumber> = new Set<InNumber>(['zero', 'int', 'frac', 'exp']);

type At =
  | 'value'
  /** Behind `[`: a value or the end. */
  | 'first-value'
  /** Behind `{`: a key or the end. */
  | 'first-key'
  | 'key'
  | 'colon'
  /** Behind a value: a comma or the end of what holds it. */
  | 'after'
  | 'string'
  | 'number'
  | 'literal';

/** Follows one value. */
export class ValueScan {
  state: 'open' | 'done' | 'broken' = 'open';
  #at: At = 'value';
  readonly #closers: number[] = [];
  /** What may be open at once; less where the value itself lies in something. */
  #most = MAX_JSON_DEPTH;
  #isKey = false;
  /** 0: none; 1: a backslash was the last byte; above: hex digits to come, plus one. */
  #escape = 0;
  /** Bytes of a UTF-8 sequence to come, and what the next of them may be. */
  #tails = 0;
  #low = 0x80;
  #high = 0xbf;
  #number: InNumber = 'minus';
  #literal = '';
  #literalAt = 0;

  /** Begins anew; the next byte is the value's first. @param depth how deep the value itself lies. */
  reset(depth = 0): void {
    this.state = 'open';
    this.#most = MAX_JSON_DEPTH - depth;
    this.#at = 'value';
    this.#closers.length = 0;
    this.#escape = 0;
    this.#tails = 0;
  }

  /** Takes bytes from `from` on. @returns the index of the first that is not the value's, or the length. */
  push(bytes: Uint8Array, from: number): number {
    let i = from;
    while (i < bytes.length && this.state === 'open') {
      switch (this.#at) {
        case 'string':
          i = this.#string(bytes, i);
          break;
        case 'number':
          i = this.#numberStep(bytes[i] as number, i);
          break;
        case 'literal':
          i = this.#literalStep(bytes[i] as number, i);
          break;
        default:
          if (!isSpace(bytes[i])) this.#token(bytes[i] as number);
          i++;
      }
    }
    return i;
  }

  #token(byte: number): void {
    switch (this.#at) {
      case 'first-value':
        if (byte === CLOSE_BRACKET) this.#close();
        else this.#value(byte);
        return;
      case 'value':
        this.#value(byte);
        return;
      case 'first-key':
      case 'key':
        if (byte === QUOTE) {
          this.#at = 'string';
          this.#isKey = true;
        } else if (byte === CLOSE_BRACE && this.#at === 'first-key') this.#close();
        else this.state = 'broken';
        return;
      case 'colon':
        if (byte === COLON) this.#at = 'value';
        else this.state = 'broken';
        return;
      default:
        this.#after(byte);
    }
  }

  #after(byte: number): void {
    const closer = this.#closers.at(-1);
    if (byte === closer) this.#close();
    else if (byte === COMMA) this.#at = closer === CLOSE_BRACE ? 'key' : 'value';
    else this.state = 'broken';
  }

  #value(byte: number): void {
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (this.#closers.length >= this.#most) this.state = 'broken';
      this.#closers.push(byte === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET);
      this.#at = byte === OPEN_BRACE ? 'first-key' : 'first-value';
    } else if (byte === QUOTE) {
      this.#at = 'string';
      this.#isKey = false;
    } else if (LITERALS.has(byte)) {
      this.#at = 'literal';
      this.#literal = LITERALS.get(byte) as string;
      this.#literalAt = 1;
    } else {
      this.#openNumber(byte);
    }
  }

  #close(): void {
    this.#closers.pop();
    this.#ended();
  }

  #ended(): void {
    if (this.#closers.length === 0) this.state = 'done';
    else this.#at = 'after';
  }

  #literalStep(byte: number, i: number): number {
    if (byte !== this.#literal.charCodeAt(this.#literalAt)) this.state = 'broken';
    else if (++this.#literalAt === this.#literal.length) this.#ended();
    return i + 1;
  }

  #openNumber(byte: number): void {
    this.#at = 'number';
    if (byte === 0x2d) this.#number = 'minus';
    else if (isDigit(byte)) this.#number = byte === 0x30 ? 'zero' : 'int';
    else this.state = 'broken';
  }

  /** @returns the index behind the byte, or the byte's own where the number ended before it. */
  #numberStep(byte: number, i: number): number {
    const next = nextInNumber(this.#number, byte);
    if (next !== undefined) {
      this.#number = next;
      return i + 1;
    }
    if (WHOLE.has(this.#number)) this.#ended();
    else this.state = 'broken';
    return i;
  }

  #string(bytes: Uint8Array, from: number): number {
    const { length } = bytes;
    let i = from;
    while (i < length) {
      if (this.#escape === 0 && this.#tails === 0) i = plainEnd(bytes, i);
      if (i === length) break;
      const byte = bytes[i++] as number;
      if (byte === QUOTE && this.#escape === 0 && this.#tails === 0) {
        if (this.#isKey) this.#at = 'colon';
        else this.#ended();
        return i;
      }
      if (!this.#odd(byte)) {
        this.state = 'broken';
        return i;
      }
    }
    return i;
  }

  /** A byte of an escape or of a UTF-8 sequence. @returns false when it must not stand there. */
  #odd(byte: number): boolean {
    if (this.#tails > 0) {
      const fits = byte >= this.#low && byte <= this.#high;
      this.#tails--;
      this.#low = 0x80;
      this.#high = 0xbf;
      return fits;
    }
    if (this.#escape === 1) {
      this.#escape = byte === 0x75 ? 5 : 0;
      return byte === 0x75 || ESCAPED.has(byte);
    }
    if (this.#escape > 1) {
      // The last of the four leaves 1, which would be a backslash.
      this.#escape = this.#escape === 2 ? 0 : this.#escape - 1;
      return isHex(byte);
    }
    if (byte !== BACKSLASH) return this.#lead(byte);
    this.#escape = 1;
    return true;
  }

  /** The first byte of a UTF-8 sequence (Unicode, table 3-7). */
  #lead(byte: number): boolean {
    if (byte >= 0xc2 && byte <= 0xdf) this.#tails = 1;
    else if (byte >= 0xe0 && byte <= 0xef) this.#tails = 2;
    else if (byte >= 0xf0 && byte <= 0xf4) this.#tails = 3;
    else return false;
    if (byte === 0xe0) this.#low = 0xa0;
    else if (byte === 0xf0) this.#low = 0x90;
    if (byte === 0xed) this.#high = 0x9f;
    else if (byte === 0xf4) this.#high = 0x8f;
    return true;
  }
}

function nextInNumber(at: InNumber, byte: number): InNumber | undefined {
  switch (at) {
    case 'minus':
      return isDigit(byte) ? (byte === 0x30 ? 'zero' : 'int') : undefined;
    case 'dot':
      return isDigit(byte) ? 'frac' : undefined;
    case 'e':
      if (byte === 0x2b || byte === 0x2d) return 'sign';
      return isDigit(byte) ? 'exp' : undefined;
    case 'sign':
    case 'exp':
      return isDigit(byte) ? 'exp' : undefined;
    default:
      if (isDigit(byte)) return at === 'zero' ? undefined : at;
      if ((byte | 0x20) === 0x65) return 'e';
      return byte === 0x2e && at !== 'frac' ? 'dot' : undefined;
  }
}

/** The first byte that is not plain. Nearly every byte of a large answer is: this loop is the price of the scan. */
function plainEnd(bytes: Uint8Array, from: number): number {
  const { length } = bytes;
  let i = from;
  while (
    i + 4 <= length &&
    PLAIN[bytes[i] as number] === 1 &&
    PLAIN[bytes[i + 1] as number] === 1 &&
    PLAIN[bytes[i + 2] as number] === 1 &&
    PLAIN[bytes[i + 3] as number] === 1
  )
    i += 4;
  while (i < length && PLAIN[bytes[i] as number] === 1) i++;
  return i;
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function isHex(byte: number): boolean {
  const lower = byte | 0x20;
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x66);
}
