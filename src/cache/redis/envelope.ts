/**
 * How an entry is written in Redis. Pure.
 *
 * A head of fixed width in ASCII, which the scripts read with `string.sub`; the fields that came with the answer;
 * then, sealed if private, the hints as JSON and the tail:
 *
 *     hge1 p 0001764491234567 0001764491234000 000022 000035 0000002048 00000000 | uris | hints | tail
 *     magic  token            received at      uris   hints  tail       key id
 *
 * (without the blanks). `p` is plain, `s` sealed. Token and time are microseconds of Redis' clock, lengths are bytes,
 * those of a sealed one before sealing. A field is its length in three digits and its bytes.
 *
 * The magic holds the version of the format: a new format has new keys too, so that replicas of both versions run
 * side by side.
 */
import type { Scope } from '../types.ts';
import { SEAL_OVERHEAD_BYTES, type Sealer } from './seal.ts';

/** A part of the format; the scripts know it too. */
export const MAGIC = 'hge1';
/** Bytes of the head. A part of the format. */
export const HEAD_BYTES = 67;
/** Fields in an entry, together: some hundreds of digests. An answer about more is not shared. */
export const URIS_MAX_BYTES = 64 << 10;
/** Longest field. A part of the format. */
export const FIELD_MAX_BYTES = 999;
/** More hints than are ever written. */
const HINTS_MAX_BYTES = 4096;
/** What an envelope has around the tail, at most. */
export const ENVELOPE_MAX_BYTES: number = HEAD_BYTES + URIS_MAX_BYTES + HINTS_MAX_BYTES + SEAL_OVERHEAD_BYTES;

/** What is in an envelope. Times are whole microseconds of Redis' clock. */
export interface Sealed {
  /** Place of the load in the order of loads and bumps. */
  readonly token: number;
  readonly receivedAtUs: number;
  readonly uris: readonly string[];
  /** `private` is sealed, `public` is not. */
  readonly scope: Scope;
  readonly ttlMs: number | undefined;
  readonly tail: Uint8Array;
}

const HEAD = /^hge1([ps])(\d{16})(\d{16})(\d{6})(\d{6})(\d{10})([0-9a-f]{8})$/;
const NO_KEY = '00000000';

/**
 * @param key the Redis key that it will stand under.
 * @returns undefined where it cannot be written: private without a sealer, or too many fields.
 */
export function encode(entry: Sealed, key: string, sealer: Sealer | undefined): Buffer | undefined {
  const uris = encodeUris(entry.uris);
  if (uris === undefined) return undefined;
  const hints = Buffer.from(JSON.stringify({ scope: entry.scope, ttlMs: entry.ttlMs }));
  const head = (kind: 'p' | 's', keyId: string): Buffer =>
    Buffer.from(
      MAGIC +
        kind +
        padded(entry.token, 16) +
        padded(entry.receivedAtUs, 16) +
        padded(uris.byteLength, 6) +
        padded(hints.byteLength, 6) +
        padded(entry.tail.byteLength, 10) +
        keyId,
      'latin1',
    );
  if (entry.scope === 'public') return Buffer.concat([head('p', NO_KEY), uris, hints, entry.tail]);
  if (sealer === undefined) return undefined;
  const front = Buffer.concat([head('s', sealer.keyId), uris]);
  return Buffer.concat([front, sealer.seal([hints, entry.tail], bound(key, front))]);
}

/** @returns undefined for everything that `encode` has not made for this key. *Never* throws. */
export function decode(bytes: Buffer, key: string, sealer: Sealer | undefined): Sealed | undefined {
  const match = HEAD.exec(bytes.toString('latin1', 0, HEAD_BYTES));
  if (match === null) return undefined;
  const [, kind, token, receivedAt, urisLength, hintsLength, tailLength, keyId = ''] = match;
  const urisEnd = HEAD_BYTES + Number(urisLength);
  const uris = decodeUris(bytes.subarray(HEAD_BYTES, urisEnd), Number(urisLength));
  if (uris === undefined) return undefined;
  const rest = bytes.subarray(urisEnd);
  const body = kind === 'p' ? rest : sealer?.open(keyId, rest, bound(key, bytes.subarray(0, urisEnd)));
  if (body?.byteLength !== Number(hintsLength) + Number(tailLength)) return undefined;
  const hints = decodeHints(body.toString('utf8', 0, Number(hintsLength)));
  // What is in the clear is for everybody, and only that.
  if (hints === undefined || (hints.scope === 'public') !== (kind === 'p')) return undefined;
  return {
    token: Number(token),
    receivedAtUs: Number(receivedAt),
    uris,
    ...hints,
    tail: body.subarray(Number(hintsLength)),
  };
}

function padded(value: number, width: number): string {
  return String(value).padStart(width, '0');
}

/** The key with its length: no other key and front have these bytes. */
function bound(key: string, front: Uint8Array): Buffer {
  const name = Buffer.from(key);
  return Buffer.concat([Buffer.from(`${name.byteLength}:`), name, front]);
}

function encodeUris(uris: readonly string[]): Buffer | undefined {
  const parts: Buffer[] = [];
  let bytes = 0;
  for (const uri of uris) {
    const field = Buffer.from(uri);
    bytes += 3 + field.byteLength;
    if (field.byteLength > FIELD_MAX_BYTES || bytes > URIS_MAX_BYTES) return undefined;
    parts.push(Buffer.from(padded(field.byteLength, 3)), field);
  }
  return Buffer.concat(parts);
}

function decodeUris(bytes: Buffer, length: number): readonly string[] | undefined {
  if (bytes.byteLength !== length || length > URIS_MAX_BYTES) return undefined;
  const uris: string[] = [];
  for (let at = 0; at < length; ) {
    const digits = bytes.toString('latin1', at, at + 3);
    const end = at + 3 + Number(digits);
    if (!/^\d{3}$/.test(digits) || end > length) return undefined;
    uris.push(bytes.toString('utf8', at + 3, end));
    at = end;
  }
  return uris;
}

function decodeHints(text: string): Pick<Sealed, 'scope' | 'ttlMs'> | undefined {
  try {
    const { scope, ttlMs } = JSON.parse(text) as Record<string, unknown>;
    if (scope !== 'public' && scope !== 'private') return undefined;
    if (ttlMs !== undefined && !(Number.isSafeInteger(ttlMs) && (ttlMs as number) >= 0)) return undefined;
    return { scope, ttlMs: ttlMs as number | undefined };
  } catch {
    return undefined;
  }
}
