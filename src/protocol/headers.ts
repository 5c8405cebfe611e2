/**
 * Header names, the `Mcp-Name` codec, and one reading of the raw headers of a request.
 * *Spec:* basic/transports/streamable-http, "Request headers" and "Value encoding".
 */

import { type HeaderValues, rawHeaders, trimOws } from './raw-headers.ts';

export const PROTOCOL_VERSION_HEADER = 'mcp-protocol-version';
export const METHOD_HEADER = 'mcp-method';
export const NAME_HEADER = 'mcp-name';
export const PARAM_HEADER_PREFIX = 'mcp-param-';

const OPEN = '=?base64?';
const CLOSE = '?=';

/** Headers that no hop passes on. *Spec:* RFC 9110, section 7.6.1. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Headers that are refused when sent twice: Node joins or drops duplicates, two parsers could see two values (R4). */
const SINGLE: ReadonlySet<string> = new Set([
  PROTOCOL_VERSION_HEADER,
  METHOD_HEADER,
  NAME_HEADER,
  'host',
  'origin',
  'authorization',
  'content-type',
  'content-length',
]);

function isPlain(value: string): boolean {
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i);
    if (code < 0x20 || code > 0x7e) return false;
  }
  return true;
}

function isWrapped(value: string): boolean {
  return value.length >= OPEN.length + CLOSE.length && value.startsWith(OPEN) && value.endsWith(CLOSE);
}

/** A header value for a name: plain where plain visible ASCII suffices, otherwise wrapped base64 of its UTF-8 bytes. */
export function encodeHeaderValue(text: string): string {
  if (text !== '' && text.trim() === text && isPlain(text) && !isWrapped(text)) return text;
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return `${OPEN}${btoa(binary)}${CLOSE}`;
}

/**
 * The name that a header value spells, or undefined when it is malformed: raw non-ASCII bytes, an empty plain
 * value, bad base64, base64 of invalid UTF-8. A wrapped empty string is the name `""`.
 */
export function decodeHeaderValue(value: string): string | undefined {
  if (!isWrapped(value)) return value !== '' && isPlain(value) ? value : undefined;
  const encoded = value.slice(OPEN.length, -CLOSE.length);
  try {
    const binary = atob(encoded);
    // atob forgives white space, missing padding and stray bits; one name must have one spelling.
    if (btoa(binary) !== encoded) return undefined;
    const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** The headers of a request, read once from Node's raw list. */
export interface Head {
  /** Lower-case name → value; of a repeated header that is not single, values joined (`; ` for cookies, `, `). */
  readonly headers: HeaderValues;
  /** Lower-case names that `Connection` lists: for this hop only, see {@link passedOn}. */
  readonly hop: ReadonlySet<string>;
  /** Lower-case name of the first header that must not come twice but did. */
  readonly duplicated: string | undefined;
}

/** Reads `[name, value, name, value, …]`. *Never* folds case of values; trims white space around them. */
export function readHead(raw: readonly string[]): Head {
  const headers = rawHeaders(raw);
  return headers === undefined ? readRepeated(raw) : headOf(headers, undefined);
}

function headOf(headers: HeaderValues, duplicated: string | undefined): Head {
  const connection = headers.get('connection');
  return { headers, hop: connection === undefined ? NONE : namesIn(connection), duplicated };
}

/** Of a head in which names come more than once. */
function readRepeated(raw: readonly string[]): Head {
  const headers = new Map<string, string>();
  let duplicated: string | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] as string).toLowerCase();
    const value = trimOws(raw[i + 1] as string);
    const known = headers.get(name);
    if (known === undefined) {
      headers.set(name, value);
      continue;
    }
    if (SINGLE.has(name) || name.startsWith(PARAM_HEADER_PREFIX)) duplicated ??= name;
    headers.set(
      name,
      known === '' || value === '' ? known + value : `${known}${name === 'cookie' ? '; ' : ', '}${value}`,
    );
  }
  return headOf(headers, duplicated);
}

const NONE: ReadonlySet<string> = new Set();
/** What most clients say. */
const KEEP_ALIVE: ReadonlySet<string> = new Set(['keep-alive']);

function namesIn(list: string): ReadonlySet<string> {
  if (list === 'keep-alive') return KEEP_ALIVE;
  return new Set(list.split(',').map((name) => trimOws(name).toLowerCase()));
}

/** A header as another hop may see it: not, where `Connection` names it (R9). *Spec:* RFC 9110, section 7.6.1. */
export function passedOn({ headers, hop }: Head, name: string): string | undefined {
  return hop.has(name) ? undefined : headers.get(name);
}

/** The media type of a `Content-Type`, lower case, and its charset if one is named. */
export function mediaType(value: string): { readonly type: string; readonly charset: string | undefined } {
  const [type = '', ...parameters] = value.split(';');
  let charset: string | undefined;
  for (const parameter of parameters) {
    const [key = '', raw = ''] = parameter.split('=');
    if (key.trim().toLowerCase() === 'charset')
      charset ??= raw
        .trim()
        .replace(/^"(.*)"$/, '$1')
        .toLowerCase();
  }
  return { type: type.trim().toLowerCase(), charset };
}
