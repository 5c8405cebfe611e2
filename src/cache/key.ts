/**
 * Cache keys: tuples encoded so that no two of them are alike, then hashed.
 *
 * *Never* holds a URI or a credential in the clear. Pure.
 */
import { hash } from 'node:crypto';

/** Everything that makes an answer but the caller. Texts are compared as given; absent is not empty. */
export interface KeyParts {
  /** The upstream's configured name, never what it calls itself. */
  readonly upstream: string;
  /** Digest of what makes its answers: endpoints or command, auth type and credential, `forwardHeaders`. */
  readonly upstreamDigest: string;
  /** The protocol revision of the request. */
  readonly revision: string;
  readonly method: string;
  /** The headers forwarded to that upstream, in the configured order; undefined where the caller sent none. */
  readonly forwarded: readonly (readonly [name: string, value: string | undefined])[];
  readonly uri: string | undefined;
  readonly cursor: string | undefined;
  /** JSON text of all further params that may affect the result. */
  readonly params: string | undefined;
  /** JSON text of `clientCapabilities`. */
  readonly capabilities: string | undefined;
  /** JSON text of the `_meta` members that may affect the result: all but `META_WITHOUT_EFFECT`. */
  readonly meta: string | undefined;
}

/** Changes whenever the encoding or the meaning of a part does, so that old entries of a shared store are missed. */
const FORMAT = 'hg1,';

const SURROGATE = /[\ud800-\udfff]/;

/** The injective text behind {@link cacheKey}: every part with its length in front. */
export function keyText(parts: KeyParts): string {
  let text =
    FORMAT +
    part(parts.upstream) +
    part(parts.upstreamDigest) +
    part(parts.revision) +
    part(parts.method) +
    part(parts.uri) +
    part(parts.cursor) +
    part(parts.params) +
    part(parts.capabilities) +
    part(parts.meta);
  for (const [name, value] of parts.forwarded) text += part(name) + part(value);
  return text;
}

function part(value: string | undefined): string {
  return value === undefined ? '-' : `${value.length}:${value}`;
}

/** The base key of an answer: a SHA-256, 43 characters of base64url. */
export function cacheKey(parts: KeyParts): string {
  const text = keyText(parts);
  // UTF-8 spells every lone surrogate alike, so two cursors that differ in one would share an entry. UTF-16 does
  // not, and cannot be mistaken for the other: its second byte is 0.
  return hash('sha256', SURROGATE.test(text) ? Buffer.from(text, 'utf16le') : text, 'base64url');
}

/** The key of the entry that only one context is served. */
export function privateKey(base: string, partition: string): string {
  return `${base.length}:${base}${partition}`;
}

/** The key of the entry that every caller is served. */
export function publicKey(base: string): string {
  return `*${base}`;
}
