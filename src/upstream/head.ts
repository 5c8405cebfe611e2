/** The head of an upstream's answer: what the gateway reads of its headers, and what it sends itself. */
import {
  encodeHeaderValue,
  HOP_BY_HOP,
  METHOD_HEADER,
  mediaType,
  NAME_HEADER,
  PROTOCOL_VERSION_HEADER,
} from '../protocol/headers.ts';
import { SESSION_HEADER } from '../protocol/legacy.ts';

export interface Head {
  readonly status: number;
  readonly media: 'json' | 'sse' | 'other';
  /** Content codings in the order they were applied; `identity` left out. */
  readonly codings: readonly string[];
  readonly challenge: string | undefined;
  readonly retryAfter: string | undefined;
  /** Of an older era: the session that the server has opened. */
  readonly session: string | undefined;
  /** `close`: only the end of the connection ends the body, so that a cut one looks whole. */
  readonly ends: 'framed' | 'close';
  /** What the answer says of its length, before decoding. */
  readonly lengthBytes: number | undefined;
}

const NO_CODINGS: readonly string[] = [];

/** Reads undici's raw list `[name, value, …]`: few of the headers matter, so only those are decoded. */
export function readHead(status: number, raw: readonly Buffer[]): Head {
  let contentType = '';
  let encoding = '';
  let challenge: string | undefined;
  let retryAfter: string | undefined;
  let session: string | undefined;
  let framed = false;
  let length: string | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] as Buffer;
    // By length first: most headers are none of these.
    switch (name.length) {
      case 11:
        if (is(name, 'retry-after')) retryAfter = pauseOf(text(raw[i + 1]));
        break;
      case 12:
        if (is(name, 'content-type')) contentType = text(raw[i + 1]);
        break;
      case 14:
        if (is(name, 'content-length')) length = text(raw[i + 1]);
        else if (is(name, SESSION_HEADER)) session = text(raw[i + 1]);
        break;
      case 16:
        if (is(name, 'www-authenticate')) challenge = joined(challenge, text(raw[i + 1]));
        else if (is(name, 'content-encoding')) encoding = joined(encoding, text(raw[i + 1]));
        break;
      case 17:
        framed ||= is(name, 'transfer-encoding');
        break;
    }
  }
  return {
    status,
    media: mediaOf(contentType),
    codings: encoding === '' ? NO_CODINGS : codingsOf(encoding),
    challenge,
    retryAfter,
    session,
    ends: framed || length !== undefined ? 'framed' : 'close',
    lengthBytes: length === undefined ? undefined : Number(length),
  };
}

function is(name: Buffer, expected: string): boolean {
  return name.toString('latin1').toLowerCase() === expected;
}

function text(value: Buffer | undefined): string {
  return value === undefined ? '' : value.toString('latin1').trim();
}

function joined(known: string | undefined, value: string): string {
  return known === undefined || known === '' ? value : `${known}, ${value}`;
}

function mediaOf(contentType: string): Head['media'] {
  // The two spellings that nearly every answer has need no parser.
  if (contentType === 'application/json') return 'json';
  if (contentType === 'text/event-stream') return 'sse';
  const { type } = mediaType(contentType);
  return type === 'application/json' ? 'json' : type === 'text/event-stream' ? 'sse' : 'other';
}

function codingsOf(encoding: string): string[] {
  return encoding
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity');
}

/** Seconds or a date, as RFC 9110 has them: whatever else an upstream writes there is not for a client to read (R37). */
const PAUSE = /^(?:\d{1,10}|[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT)$/;

function pauseOf(value: string): string | undefined {
  return PAUSE.test(value) ? value : undefined;
}

/** The seconds of a `Retry-After`; undefined for a date, which a client's own clock reads better. */
export function secondsOf(retryAfter: string | undefined): number | undefined {
  return retryAfter !== undefined && /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) : undefined;
}

/** Headers that only the gateway writes; forwarded copies are left out (R9). */
const COMPUTED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'host',
  'expect',
  'accept',
  'accept-encoding',
  'content-type',
  'content-length',
  'content-encoding',
  PROTOCOL_VERSION_HEADER,
  METHOD_HEADER,
  NAME_HEADER,
]);

/** The headers of a request to an upstream, as undici's flat list. */
export function requestHeaders(request: {
  readonly method: string;
  readonly name: string | undefined;
  readonly version: string;
  readonly headers: Readonly<Record<string, string>>;
}): string[] {
  const list = [
    'content-type',
    'application/json',
    'accept',
    'application/json, text/event-stream',
    // What comes compressed is decoded, but nobody is asked to compress a stream of small events.
    'accept-encoding',
    'identity',
    PROTOCOL_VERSION_HEADER,
    request.version,
    METHOD_HEADER,
    request.method,
  ];
  if (request.name !== undefined) list.push(NAME_HEADER, encodeHeaderValue(request.name));
  for (const name of Object.keys(request.headers)) {
    if (!COMPUTED.has(name)) list.push(name, request.headers[name] as string);
  }
  return list;
}
