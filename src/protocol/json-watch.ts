/**
 * Watches one JSON-RPC message go by, in chunks of any size, without holding it.
 *
 * What is not read whole still has to be known: the id of a large request (an error must carry it), and
 * whether an event was the response. The watcher follows structure (strings, escapes, nesting) and looks at
 * the members of the outermost object only; it does not validate numbers, literals or matching brackets.
 * *Never* throws. *Bounded by* {@link MAX_ID_BYTES} and {@link MAX_KEY_BYTES}; linear in the bytes.
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

/** A longer id is not captured: no client that wants an answer sends one. */
export const MAX_ID_BYTES = 1024;
/** A longer key is none of ours: `resourceTemplates` with every letter written as an escape takes 102. */
export const MAX_KEY_BYTES = 102;

type At =
  | 'start'
  | 'first-key'
  | 'key'
  | 'in-key'
  | 'colon'
  | 'value'
  | 'in-string'
  | 'in-scalar'
  | 'nested'
  | 'nested-string'
  | 'after'
  | 'done'
  | 'broken';

/** What kind of JSON-RPC message the members seen so far make. */
export type MessageKind = 'request' | 'notification' | 'response' | 'unknown';

/** Follows one top-level object. */
export class JsonWatch {
  #at: At = 'start';
  #depth = 0;
  #escaped = false;
  /** Bytes of the key or id in hand, one char each; undefined when it is too long or not wanted. */
  #text: string | undefined;
  #key = '';
  #id: string | undefined;
  #idCount = 0;
  #method = false;
  #result = false;
  #error = false;

  /** `complete` once the outermost object has closed; `broken` when the bytes are no single JSON object. */
  get state(): 'open' | 'complete' | 'broken' {
    return this.#at === 'done' ? 'complete' : this.#at === 'broken' ? 'broken' : 'open';
  }

  /** The JSON text of the top-level `id` as it came; undefined: not seen, too long, no scalar, or seen twice. */
  get id(): string | undefined {
    return this.#idCount === 1 && this.#id !== undefined ? utf8(this.#id) : undefined;
  }

  /** What the message is, by the members seen so far; final when `complete`. */
  get kind(): MessageKind {
    if (this.#method) return this.#idCount > 0 ? 'request' : 'notification';
    return this.#result || this.#error ? 'response' : 'unknown';
  }

  /** True when a member `error` was seen. */
  get isError(): boolean {
    return this.#error;
  }

  /** True when a member `id` was seen, readable or not. */
  get hasId(): boolean {
    return this.#idCount > 0;
  }

  /** Takes the next bytes. */
  push(bytes: Uint8Array): void {
    let i = 0;
    while (i < bytes.length) {
      if (this.#at === 'broken') return;
      i = this.#step(bytes, i);
    }
  }

  /** Takes at least one byte. @returns the index of the next. */
  #step(bytes: Uint8Array, i: number): number {
    switch (this.#at) {
      case 'in-key':
      case 'in-string':
      case 'nested-string':
        return this.#string(bytes, i);
      case 'in-scalar':
        return this.#scalar(bytes, i);
      case 'nested':
        return this.#nested(bytes, i);
      default:
        if (!isSpace(bytes[i])) this.#between(bytes[i] as number);
        return i + 1;
    }
  }

  /** A byte between the tokens of the outermost object. */
  #between(byte: number): void {
    switch (this.#at) {
      case 'start':
        this.#at = byte === OPEN_BRACE ? 'first-key' : 'broken';
        return;
      case 'first-key':
      case 'key':
        if (byte === QUOTE) {
          this.#at = 'in-key';
          this.#text = '';
        } else {
          this.#at = byte === CLOSE_BRACE && this.#at === 'first-key' ? 'done' : 'broken';
        }
        return;
      case 'colon':
        this.#at = byte === COLON ? 'value' : 'broken';
        return;
      case 'value':
        this.#value(byte);
        return;
      case 'after':
        this.#at = byte === COMMA ? 'key' : byte === CLOSE_BRACE ? 'done' : 'broken';
        return;
      default:
        this.#at = 'broken';
    }
  }

  #value(byte: number): void {
    const wanted = this.#key === 'id';
    if (wanted) this.#idCount++;
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      this.#at = 'nested';
      this.#depth = 1;
    } else if (byte === COMMA || byte === COLON || byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      this.#at = 'broken';
    } else {
      this.#at = byte === QUOTE ? 'in-string' : 'in-scalar';
      this.#text = wanted ? String.fromCharCode(byte) : undefined;
    }
  }

  #string(bytes: Uint8Array, start: number): number {
    const quote = this.#closingQuote(bytes, start);
    const end = quote < 0 ? bytes.length : quote;
    if (this.#at === 'in-key') this.#collect(bytes, start, end, MAX_KEY_BYTES);
    else if (this.#at === 'in-string') this.#collect(bytes, start, end, MAX_ID_BYTES);
    if (quote < 0) return end;
    if (this.#at === 'in-key') this.#keyDone();
    else if (this.#at === 'nested-string') this.#at = 'nested';
    else this.#valueDone('"');
    return quote + 1;
  }

  /** The index of the quote that ends the string, or -1 when it is not in these bytes. */
  #closingQuote(bytes: Uint8Array, start: number): number {
    let from = this.#escaped ? start + 1 : start;
    this.#escaped = false;
    for (;;) {
      const quote = bytes.indexOf(QUOTE, from);
      const end = quote < 0 ? bytes.length : quote;
      let run = end;
      while (run > from && bytes[run - 1] === BACKSLASH) run--;
      const escapes = (end - run) % 2 === 1;
      if (quote < 0) {
        this.#escaped = escapes;
        return -1;
      }
      if (!escapes) return quote;
      from = quote + 1;
    }
  }

  #scalar(bytes: Uint8Array, start: number): number {
    let i = start;
    for (; i < bytes.length; i++) {
      const byte = bytes[i] as number;
      if (byte === COMMA || byte === CLOSE_BRACE || isSpace(byte)) break;
      if (
        byte === QUOTE ||
        byte === COLON ||
        byte === OPEN_BRACE ||
        byte === OPEN_BRACKET ||
        byte === CLOSE_BRACKET
      ) {
        this.#at = 'broken';
        return i;
      }
    }
    this.#collect(bytes, start, i, MAX_ID_BYTES);
    if (i < bytes.length) this.#valueDone('');
    return i;
  }

  #nested(bytes: Uint8Array, start: number): number {
    for (let i = start; i < bytes.length; i++) {
      switch (bytes[i]) {
        case QUOTE:
          this.#at = 'nested-string';
          return i + 1;
        case OPEN_BRACE:
        case OPEN_BRACKET:
          this.#depth++;
          break;
        case CLOSE_BRACE:
        case CLOSE_BRACKET:
          this.#depth--;
          if (this.#depth > 0) break;
          this.#text = undefined;
          this.#valueDone('');
          return i + 1;
      }
    }
    return bytes.length;
  }

  #collect(bytes: Uint8Array, start: number, end: number, limit: number): void {
    if (this.#text === undefined) return;
    if (this.#text.length + end - start > limit) {
      this.#text = undefined;
      return;
    }
    for (let i = start; i < end; i++) this.#text += String.fromCharCode(bytes[i] as number);
  }

  #keyDone(): void {
    this.#key = unescaped(this.#text);
    this.#at = 'colon';
    if (this.#key === 'method') this.#method = true;
    else if (this.#key === 'result') this.#result = true;
    else if (this.#key === 'error') this.#error = true;
  }

  #valueDone(closing: string): void {
    if (this.#key === 'id') this.#id = this.#text === undefined ? undefined : this.#text + closing;
    this.#key = '';
    this.#at = 'after';
  }
}

/**
 * True when two JSON texts are the same request id: by value, since a server may spell an escape or an
 * exponent in its own way; never a string for a number.
 */
export function sameId(a: string, b: string): boolean {
  if (a === b) return true;
  try {
    const first: unknown = JSON.parse(a);
    if (typeof first === 'number' && !Number.isSafeInteger(first)) return false;
    return first === JSON.parse(b);
  } catch {
    return false;
  }
}

function unescaped(key: string | undefined): string {
  if (key === undefined) return '';
  if (!key.includes('\\')) return key;
  try {
    return JSON.parse(`"${key}"`) as string;
  } catch {
    return '';
  }
}

/** The text that a string of bytes, one char each, spells; undefined when it is not UTF-8. */
function utf8(binary: string): string | undefined {
  try {
    const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
