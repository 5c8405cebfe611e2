/**
 * Takes a result apart while it flows: the same as `answer.ts` for an answer that is too large to be held.
 *
 * What comes out is a `ResultTail` in pieces: each member of `result` with the bytes its value came with, without
 * the copies of `resultType`, `ttlMs` and `cacheScope`, wherever they stand. Its head is written before they are
 * seen, so what the head says is demanded of them: another type than `complete`, another id, an `error` beside
 * the result, no array under the member that must be one, a member that decides something twice, or bytes that are
 * no JSON end it as `broken`, and what has come out by then must never be given an end.
 *
 * *Never* throws. *Bounded by* {@link MAX_KEY_BYTES} for a key that is held, {@link MAX_TYPE_BYTES} and the
 * expected id for values that are looked at; pieces are views of what came. Linear in the bytes.
 */
import { DECISIVE, RESERVED } from './answer.ts';
import { CLOSE_BRACE, COLON, COMMA, isSpace, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './bytes.ts';
import { ValueScan } from './json-flow.ts';
import { MAX_KEY_BYTES } from './json-watch.ts';

/** A longer spelling of a resultType is not one of `complete`: eight letters, six bytes each, two quotes. */
export const MAX_TYPE_BYTES = 50;
/** Members beside `jsonrpc`, `id` and `result` that an answer may have: each name is remembered, to see it twice. */
const MAX_OTHER_MEMBERS = 64;

const TWICE = 'a member came twice';
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const END = Uint8Array.of(CLOSE_BRACE, CLOSE_BRACE);

export interface ResultFlowOptions {
  /** The JSON text of the id the request went out with. */
  readonly id: string;
  /** The member of the result that must be there, and an array. */
  readonly array: string;
}

type At = 'start' | 'first-key' | 'key' | 'in-key' | 'colon' | 'value' | 'in-value' | 'after' | 'end';

/** Follows one JSON-RPC response. */
export class ResultFlow {
  readonly #options: ResultFlowOptions;
  readonly #scan = new ValueScan();
  #at: At = 'start';
  /** Whose members these are: the message's own, or its result's. */
  #inside: 'message' | 'result' = 'message';
  /** Names of the message's members, and of the result's that decide something. */
  readonly #seen = new Set<string>();
  readonly #decided = new Set<string>();
  #begun = false;
  #reason: string | undefined;

  /** The key as it came, quotes included, one char a byte; undefined when it is too long to be one of ours. */
  #key: string | undefined;
  /** What becomes of the value in hand: passed on, looked at, or left out. */
  #use: 'pass' | 'look' | 'drop' = 'drop';
  #looked = '';
  #arraySeen = false;
  #idSeen = false;

  constructor(options: ResultFlowOptions) {
    this.#options = options;
  }

  /** `complete`: one whole message, and all that was demanded of it was there. */
  get state(): 'open' | 'complete' | 'broken' {
    if (this.#reason !== undefined) return 'broken';
    return this.#at === 'end' ? 'complete' : 'open';
  }

  /** Why it is broken. */
  get reason(): string {
    return this.#reason ?? 'it ended too soon';
  }

  /** True once the result's object has opened: nothing comes out before. */
  get begun(): boolean {
    return this.#begun;
  }

  /** What closes the tail of a `complete` result. */
  get end(): Uint8Array {
    return END;
  }

  /** Takes the next bytes. @returns what of the tail they hold; of broken ones nothing. */
  push(bytes: Uint8Array): Uint8Array[] {
    const out: Uint8Array[] = [];
    let i = 0;
    while (i < bytes.length && this.#reason === undefined) {
      if (this.#at === 'in-key') i = this.#readKey(bytes, i, out);
      else if (this.#at === 'in-value') i = this.#readValue(bytes, i, out);
      else if (isSpace(bytes[i])) i++;
      else i = this.#between(bytes[i] as number, i);
    }
    return this.#reason === undefined ? out : [];
  }

  /** A byte between tokens. @returns the index to go on at: a key and a value begin with the byte itself. */
  #between(byte: number, i: number): number {
    switch (this.#at) {
      case 'start':
        if (byte !== OPEN_BRACE) return this.#fail('not a JSON object', i);
        this.#at = 'first-key';
        return i + 1;
      case 'first-key':
      case 'key':
        if (byte === CLOSE_BRACE && this.#at === 'first-key') return this.#close(i);
        if (byte !== QUOTE) return this.#fail('not a JSON object', i);
        this.#at = 'in-key';
        this.#key = '';
        this.#scan.reset();
        return i;
      case 'colon':
        if (byte !== COLON) return this.#fail('not a JSON object', i);
        this.#at = 'value';
        return i + 1;
      case 'value':
        return this.#openValue(byte, i);
      case 'after':
        if (byte === CLOSE_BRACE) return this.#close(i);
        if (byte !== COMMA) return this.#fail('not a JSON object', i);
        this.#at = 'key';
        return i + 1;
      default:
        return this.#fail('more than one JSON value', i);
    }
  }

  #readKey(bytes: Uint8Array, from: number, out: Uint8Array[]): number {
    const i = this.#scan.push(bytes, from);
    if (this.#scan.state === 'broken') return this.#fail('not JSON', i);
    const part = bytes.subarray(from, i);
    if (this.#key !== undefined && this.#key.length + part.length <= MAX_KEY_BYTES + 2) {
      this.#key += latin1(part);
    } else {
      // Too long to be one of ours: of the result it flows, of the message it is left out.
      if (this.#key !== undefined && this.#inside === 'result') out.push(bytesOf(`,${this.#key}`));
      if (this.#inside === 'result') out.push(part);
      this.#key = undefined;
    }
    if (this.#scan.state === 'done') this.#keyDone(out);
    return i;
  }

  #keyDone(out: Uint8Array[]): void {
    this.#at = 'colon';
    const name = this.#key === undefined ? undefined : spelled(this.#key);
    const key = this.#key;
    this.#key = name;
    if (this.#inside === 'message') return this.#ownMember(name);
    if (name !== undefined && (DECISIVE.has(name) || name === this.#options.array)) {
      if (this.#decided.has(name)) this.#reason = TWICE;
      this.#decided.add(name);
    }
    if (name !== undefined && RESERVED.has(name)) {
      this.#use = name === 'resultType' ? 'look' : 'drop';
      return;
    }
    this.#use = 'pass';
    out.push(key === undefined ? Uint8Array.of(COLON) : bytesOf(`,${key}:`));
  }

  #ownMember(name: string | undefined): void {
    this.#use = name === 'id' ? 'look' : 'drop';
    if (name === undefined) return;
    if (this.#seen.has(name)) this.#reason = TWICE;
    else if (name === 'error') this.#reason = 'an error too large to be read, or both result and error';
    else if (this.#seen.size > MAX_OTHER_MEMBERS) this.#reason = 'too many members';
    this.#seen.add(name);
  }

  #openValue(byte: number, i: number): number {
    if (this.#inside === 'message' && this.#key === 'result') {
      if (byte !== OPEN_BRACE) return this.#fail('a result that is no object', i);
      this.#inside = 'result';
      this.#begun = true;
      this.#at = 'first-key';
      return i + 1;
    }
    if (this.#inside === 'result' && this.#key === this.#options.array) {
      if (byte !== OPEN_BRACKET) return this.#fail(`${this.#options.array} is no array`, i);
      this.#arraySeen = true;
    }
    this.#at = 'in-value';
    this.#looked = '';
    this.#scan.reset(this.#inside === 'message' ? 1 : 2);
    return i;
  }

  #readValue(bytes: Uint8Array, from: number, out: Uint8Array[]): number {
    const i = this.#scan.push(bytes, from);
    if (this.#scan.state === 'broken') return this.#fail('not JSON', i);
    const part = bytes.subarray(from, i);
    if (this.#use === 'pass' && part.length > 0) out.push(part);
    else if (this.#use === 'look') this.#look(part);
    if (this.#scan.state === 'done') this.#valueDone();
    return i;
  }

  #look(part: Uint8Array): void {
    const most = this.#key === 'id' ? this.#options.id.length : MAX_TYPE_BYTES;
    if (this.#looked.length + part.length <= most) this.#looked += latin1(part);
    else this.#mismatch();
  }

  #mismatch(): void {
    this.#reason = this.#key === 'id' ? 'the id of another request' : 'a resultType that is not complete';
  }

  #valueDone(): void {
    this.#at = 'after';
    if (this.#use !== 'look') return;
    if (this.#key === 'id') {
      this.#idSeen = true;
      if (this.#looked !== this.#options.id) this.#mismatch();
    } else if (spelled(this.#looked) !== 'complete') {
      this.#mismatch();
    }
  }

  #close(i: number): number {
    if (this.#inside === 'result') {
      if (!this.#arraySeen) return this.#fail(`no ${this.#options.array}`, i);
      this.#inside = 'message';
      this.#at = 'after';
      return i + 1;
    }
    if (!this.#begun) return this.#fail('no result', i);
    if (!this.#idSeen) return this.#fail('no id', i);
    this.#at = 'end';
    return i + 1;
  }

  #fail(reason: string, i: number): number {
    this.#reason = reason;
    return i;
  }
}

function latin1(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

/** The string that a JSON text, one char a byte, spells; undefined when it is no string. */
function spelled(binary: string): string | undefined {
  if (!binary.startsWith('"')) return undefined;
  const text = decoder.decode(bytesOf(binary));
  return text.includes('\\') ? (JSON.parse(text) as string) : text.slice(1, -1);
}
