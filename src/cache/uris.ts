/**
 * What an update of a resource ends: names for URIs in the order of invalidations.
 *
 * An answer depends on the URI it was asked by and on those its contents name. An update of X ends what depends on X
 * and on every S that X is under: X starts with S and goes on at a `/`, `?` or `#` (design, section 6). Pure.
 */
import { hash } from 'node:crypto';

/** Cuts that are looked at; a URI with more of them ends all reads of its upstream. */
export const MAX_CUTS = 64;

/** Resources that one answer is known to depend on; one that names more depends on every update of its upstream. */
export const MAX_NAMED = 256;

const DIGEST_LENGTH = 22;
/** Ended by every update. */
const ANY = 'u:*';

/** The name of a URI: a digest, 132 bits of it, so that other replicas can be told it. */
export function uriField(uri: string): string {
  return `u:${hash('sha256', uri, 'base64url').slice(0, DIGEST_LENGTH)}`;
}

/** The names that an update of this URI ends; undefined when they are too many. */
export function updatedFields(uri: string): readonly string[] | undefined {
  const ends = new Set<number>([uri.length]);
  let cutCount = 0;
  for (let at = 1; at < uri.length; at++) {
    const char = uri[at];
    if (char !== '/' && char !== '?' && char !== '#') continue;
    if (++cutCount > MAX_CUTS) return undefined;
    // With the separator too: a folder is often written so.
    ends.add(at).add(at + 1);
  }
  return [ANY, ...[...ends].map((end) => uriField(uri.slice(0, end)))];
}

/** The names that an answer depends on: what was read, and what its contents name. */
export function dependsOn(uri: string, named: readonly string[]): readonly string[] {
  const uris = new Set([uri, ...named]);
  return uris.size > MAX_NAMED ? [uriField(uri), ANY] : [...uris].map(uriField);
}
