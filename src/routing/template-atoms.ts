/**
 * The alphabet of the template matcher: a URI, or a literal of a template, as a row of small integers.
 * One atom is a character that URIs may hold, a percent-encoded triplet as it was spelled (`%2f` is not `%2F`),
 * or one byte of a character that stands there raw. Because a triplet is one atom, nothing matches half of it.
 */

const HEX_DIGITS = '0123456789ABCDEFabcdef';
const TRIPLET = 0x100;
const RAW_BYTE = 0x300;
const EITHER_BYTE = 0x400;
const PERCENT = 0x25;

/** An unreserved character, a triplet, or a byte of a raw character outside ASCII: what every value may hold. */
export const UNRESERVED = 1;
/** A reserved character: what the values of `{+x}` and `{#x}` may hold besides. *Spec:* RFC 6570, section 1.5. */
export const RESERVED = 2;
/** A byte that continues the UTF-8 character before it, so that `{x:n}` counts characters. */
export const CONTINUES = 4;

/** A URI, read once for every template it is compared with. */
export interface Atoms {
  readonly codes: readonly number[];
  /** Of each atom: the sum of `UNRESERVED`, `RESERVED` and `CONTINUES` where they hold. */
  readonly kinds: readonly number[];
}

const ASCII_KINDS = Uint8Array.from({ length: 0x80 }, (_, code) => {
  const character = String.fromCharCode(code);
  // RFC 6570 would encode !'()* too, but encodeURIComponent, and so most clients, leaves them as they are.
  if (/[A-Za-z0-9._~!'()*-]/.test(character)) return UNRESERVED;
  return ':/?#[]@$&+,;='.includes(character) ? RESERVED : 0;
});

const EITHER_OF = eitherTable();

/** The atoms of a URI, or undefined when it holds a control character or a bare `%` and so matches nothing. */
export function atomsOf(uri: string): Atoms | undefined {
  const codes = spell(uri, RAW_BYTE);
  return codes === undefined ? undefined : { codes, kinds: kindsOf(codes) };
}

/**
 * The atoms of a literal, as the code units of a string, or undefined as for `atomsOf`. A character that an
 * expansion would percent-encode is written so that the raw spelling and the encoded one both fit.
 * *Spec:* RFC 6570, section 3.1.
 */
export function labelOf(literal: string): string | undefined {
  const codes = spell(literal, EITHER_BYTE);
  return codes === undefined ? undefined : String.fromCharCode(...codes);
}

/** What a label holds in the place of this atom where it takes both spellings; 0 where it never does. */
export function eitherOf(atom: number): number {
  return EITHER_OF[atom] ?? 0;
}

function eitherTable(): Uint16Array {
  const table = new Uint16Array(EITHER_BYTE);
  for (let byte = 0; byte < 0x100; byte++) {
    table[RAW_BYTE + byte] = EITHER_BYTE + byte;
    table[TRIPLET + (byte >> 4) * HEX_DIGITS.length + (byte & 15)] = EITHER_BYTE + byte;
  }
  return table;
}

function spell(text: string, byteBase: number): number[] | undefined {
  const codes: number[] = [];
  for (let at = 0; at < text.length; at++) {
    const code = text.codePointAt(at) ?? 0;
    if (code < 0x20 || code === 0x7f) return undefined;
    if (code === PERCENT) {
      const high = HEX_DIGITS.indexOf(text.charAt(at + 1));
      const low = HEX_DIGITS.indexOf(text.charAt(at + 2));
      if (at + 2 >= text.length || high < 0 || low < 0) return undefined;
      codes.push(TRIPLET + high * HEX_DIGITS.length + low);
      at += 2;
    } else if (code < 0x80 && ASCII_KINDS[code] !== 0) {
      codes.push(code);
    } else {
      pushBytes(codes, byteBase, code);
      if (code > 0xffff) at++;
    }
  }
  return codes;
}

function pushBytes(codes: number[], base: number, code: number): void {
  const tail = (shift: number) => base + 0x80 + ((code >> shift) & 0x3f);
  if (code < 0x80) codes.push(base + code);
  else if (code < 0x800) codes.push(base + 0xc0 + (code >> 6), tail(0));
  else if (code < 0x10000) codes.push(base + 0xe0 + (code >> 12), tail(6), tail(0));
  else codes.push(base + 0xf0 + (code >> 18), tail(12), tail(6), tail(0));
}

function kindsOf(codes: readonly number[]): number[] {
  const kinds: number[] = [];
  let owed = 0;
  for (const code of codes) {
    const byte = byteOf(code);
    const continues = owed > 0 && byte >= 0x80 && byte < 0xc0;
    owed = continues ? owed - 1 : followersOf(byte);
    kinds.push(kindOf(code) + (continues ? CONTINUES : 0));
  }
  return kinds;
}

function kindOf(code: number): number {
  if (code < TRIPLET) return ASCII_KINDS[code] ?? 0;
  return code < RAW_BYTE || code >= RAW_BYTE + 0x80 ? UNRESERVED : 0;
}

function byteOf(code: number): number {
  if (code < TRIPLET) return code;
  if (code >= RAW_BYTE) return code - RAW_BYTE;
  const high = Math.floor((code - TRIPLET) / HEX_DIGITS.length);
  const low = (code - TRIPLET) % HEX_DIGITS.length;
  return (nibble(high) << 4) + nibble(low);
}

function nibble(digit: number): number {
  return digit < 16 ? digit : digit - 6;
}

function followersOf(byte: number): number {
  if (byte < 0xc2 || byte > 0xf4) return 0;
  if (byte < 0xe0) return 1;
  return byte < 0xf0 ? 2 : 3;
}
