/**
 * Sealing of private answers: AES-256-GCM under keys that come from the configured secrets.
 *
 * The first secret seals, every one opens, so that secrets are rotated without a flush. What is sealed is bound to
 * the Redis key it stands under and to everything in front of it: nothing can be moved or relabelled.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import type { Secret } from '../../config/secret.ts';

/** Bytes of the name of a key. A part of the format. */
export const KEY_ID_BYTES = 4;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** What sealing adds to a text. */
export const SEAL_OVERHEAD_BYTES = NONCE_BYTES + TAG_BYTES;

/** Fills a buffer of that many bytes; `randomBytes` of `node:crypto`. */
export type Random = (byteCount: number) => Uint8Array;

export interface Sealer {
  /** Names the key that seals now: {@link KEY_ID_BYTES} bytes in hex. */
  readonly keyId: string;
  /** @param bound what it is bound to. @returns nonce, ciphertext, tag. */
  seal(plain: readonly Uint8Array[], bound: Uint8Array): Buffer;
  /** @returns undefined for what was not sealed so, by a key of this name. *Never* throws. */
  open(keyId: string, sealed: Uint8Array, bound: Uint8Array): Buffer | undefined;
}

/** Undefined without secrets: then nothing is sealed, and nothing private is written. */
export function createSealer(secrets: readonly Secret[], random: Random): Sealer | undefined {
  const keys = new Map<string, Uint8Array>();
  for (const secret of secrets) {
    const derived = Buffer.from(
      hkdfSync('sha256', secret.reveal(), '', 'headgate redis v1', KEY_BYTES + KEY_ID_BYTES),
    );
    keys.set(derived.toString('hex', KEY_BYTES), derived.subarray(0, KEY_BYTES));
  }
  const [first] = keys;
  if (first === undefined) return undefined;
  const [keyId, sealingKey] = first;
  return {
    keyId,
    seal(plain, bound) {
      const nonce = random(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', sealingKey, nonce);
      cipher.setAAD(bound);
      const sealed = plain.map((part) => cipher.update(part));
      return Buffer.concat([nonce, ...sealed, cipher.final(), cipher.getAuthTag()]);
    },
    open(id, sealed, bound) {
      const key = keys.get(id);
      const end = sealed.byteLength - TAG_BYTES;
      if (key === undefined || end < NONCE_BYTES) return undefined;
      try {
        const nonce = sealed.subarray(0, NONCE_BYTES);
        const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
        decipher.setAAD(bound);
        decipher.setAuthTag(sealed.subarray(end));
        return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, end)), decipher.final()]);
      } catch {
        return undefined;
      }
    },
  };
}
