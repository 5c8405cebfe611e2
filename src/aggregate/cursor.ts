/**
 * The gateway's own list cursor: where a walk through several upstreams stands.
 *
 * Self-contained: any replica, also after a restart, continues it. Bound to the list method and to a digest of the
 * route. It carries no URL, no credential and no right: what it points at is fetched under the caller's own context.
 * Decoding is strict (R14) and *never* throws.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** Longest cursor accepted: the longest upstream cursor that is carried, escaped six-fold and in base64, has room. */
export const MAX_CURSOR_LENGTH = 96 * 1024;
/** Longest upstream cursor that is carried; a longer one ends that upstream's walk. */
export const MAX_UPSTREAM_CURSOR_LENGTH = 8 * 1024;

const VERSION = 1;
const MAC_BYTES = 12;

/** Where the next page begins. */
export interface Position {
  readonly method: string;
  /** The scope of the walk, told on its first page and kept on all. */
  readonly scope: 'public' | 'private';
  /** Ranks left out of this walk, ascending. */
  readonly excluded: readonly number[];
  readonly rank: number;
  /** The upstream's own cursor; undefined: its first page. */
  readonly cursor: string | undefined;
  /** Items of that page already handed out. */
  readonly offset: number;
  /** Digest of the page, when it was cut: it is continued only if it is still the same. Empty: a page not begun. */
  readonly digest: string;
  /** Pages of this upstream so far. */
  readonly pages: number;
}

export type Decoded =
  | { readonly kind: 'position'; readonly position: Position }
  | { readonly kind: 'invalid' };

export interface CursorCodec {
  encode(position: Position): string;
  decode(text: string, method: string): Decoded;
}

const INVALID: Decoded = { kind: 'invalid' };

/**
 * @param routeDigest see {@link routeDigest}.
 * @param ranks how many upstreams the route has.
 * @param keys of the configured secrets: the first seals, all open. Empty: a checksum that anybody could make; a
 *   cursor gives no right, so nothing is lost but the notice of tampering.
 */
export function createCursorCodec(
  routeDigest: string,
  ranks: number,
  keys: readonly Uint8Array[],
): CursorCodec {
  const sealing = keys.length > 0 ? keys : [new TextEncoder().encode('headgate cursor checksum')];
  return {
    encode(position) {
      const payload = Buffer.from(JSON.stringify(toTuple(position)));
      return Buffer.concat([seal(payload, routeDigest, sealing[0] as Uint8Array), payload]).toString(
        'base64url',
      );
    },
    decode(text, method) {
      if (text.length > MAX_CURSOR_LENGTH) return INVALID;
      const bytes = Buffer.from(text, 'base64url');
      // Base64 decoding is forgiving; one position has one spelling.
      if (bytes.length <= MAC_BYTES || bytes.toString('base64url') !== text) return INVALID;
      const payload = bytes.subarray(MAC_BYTES);
      const mac = bytes.subarray(0, MAC_BYTES);
      if (!sealing.some((key) => timingSafeEqual(mac, seal(payload, routeDigest, key)))) return INVALID;
      return fromTuple(payload, method, ranks);
    },
  };
}

/** What a cursor is bound to: the route's path, order and upstream identities, and nothing else of the configuration. */
export function routeDigest(path: string, identities: readonly string[]): string {
  return createHash('sha256')
    .update(JSON.stringify([path, identities]))
    .digest('base64url');
}

function seal(payload: Uint8Array, digest: string, key: Uint8Array): Uint8Array {
  return createHmac('sha256', key)
    .update('headgate cursor')
    .update(digest)
    .update(payload)
    .digest()
    .subarray(0, MAC_BYTES);
}

function toTuple(position: Position): unknown[] {
  const { method, scope, excluded, rank, cursor, offset, digest, pages } = position;
  return [VERSION, method, scope === 'public' ? 1 : 0, excluded, rank, cursor ?? null, offset, digest, pages];
}

function fromTuple(payload: Uint8Array, expected: string, ranks: number): Decoded {
  let tuple: unknown;
  try {
    tuple = JSON.parse(Buffer.from(payload).toString('utf8'));
  } catch {
    return INVALID;
  }
  if (!Array.isArray(tuple) || tuple.length !== 9) return INVALID;
  const [version, method, scope, excluded, rank, cursor, offset, digest, pages] = tuple as unknown[];
  if (version !== VERSION || method !== expected || (scope !== 0 && scope !== 1)) return INVALID;
  if (!isRankList(excluded, ranks) || !isIndex(rank, ranks) || excluded.includes(rank)) return INVALID;
  if (cursor !== null && (typeof cursor !== 'string' || cursor.length > MAX_UPSTREAM_CURSOR_LENGTH))
    return INVALID;
  if (!isIndex(offset, Number.MAX_SAFE_INTEGER) || !isIndex(pages, Number.MAX_SAFE_INTEGER)) return INVALID;
  if (typeof digest !== 'string' || digest.length > 64 || (digest === '' && offset > 0)) return INVALID;
  const position: Position = {
    method: expected,
    scope: scope === 1 ? 'public' : 'private',
    excluded,
    rank,
    cursor: cursor ?? undefined,
    offset,
    digest,
    pages,
  };
  return { kind: 'position', position };
}

function isIndex(value: unknown, below: number): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value < below;
}

function isRankList(value: unknown, ranks: number): value is number[] {
  if (!Array.isArray(value)) return false;
  return value.every((entry, i) => isIndex(entry, ranks) && (i === 0 || entry > (value[i - 1] as number)));
}
