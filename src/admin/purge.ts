/** What a purge is to drop, out of the JSON that asks for it. Pure; *never* throws. */
import { KNOWN_METHODS, methodRow } from '../protocol/methods.ts';

export { PURGE_PATH } from './page/contract.ts';

/** What is to be dropped, for every caller. */
export type PurgeRequest =
  | { readonly kind: 'all' }
  | { readonly kind: 'upstream'; readonly upstream: string }
  | { readonly kind: 'resource'; readonly upstream: string; readonly uri: string }
  /** `method`: one of {@link PURGEABLE}. */
  | { readonly kind: 'method'; readonly upstream: string; readonly method: string };

/** What came of a purge; also the JSON that answers it. */
export interface PurgeOutcome {
  /** `this-replica`: there is no Redis, or it could not be told, and the others were not reached (yet). */
  readonly purged: 'all-replicas' | 'this-replica';
}

export type PurgeReading =
  | { readonly kind: 'read'; readonly request: PurgeRequest }
  /** `message`: what to write instead. */
  | { readonly kind: 'bad'; readonly message: string };

/** The methods whose answers are cached. */
export const PURGEABLE: readonly string[] = KNOWN_METHODS.filter((method) => methodRow(method).cacheable);

const FORMS =
  'write {"all":true}, {"upstream":NAME}, {"upstream":NAME,"uri":URI} or {"upstream":NAME,"method":METHOD}';
const KEYS = ['all', 'upstream', 'uri', 'method'];

/**
 * Reads the body of a purge, strictly: a misspelt key must not drop more than was meant.
 * @param upstreams the configured names
 */
export function readPurge(body: Uint8Array, upstreams: Iterable<string>): PurgeReading {
  const value = parseBody(body);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return bad(FORMS);
  const { all, upstream, uri, method } = value as Readonly<Record<string, unknown>>;
  const unknown = Object.keys(value).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) return bad(`unknown key ${JSON.stringify(unknown.slice(0, 80))}; ${FORMS}`);
  if (all !== undefined) {
    const alone = all === true && Object.keys(value).length === 1;
    return alone ? { kind: 'read', request: { kind: 'all' } } : bad(FORMS);
  }
  if (typeof upstream !== 'string') return bad(FORMS);
  const names = [...upstreams];
  if (!names.includes(upstream)) return bad(`no such upstream; known: ${names.join(', ')}`);
  if (uri !== undefined && method !== undefined) return bad('write uri or method, not both');
  if (uri !== undefined) {
    if (typeof uri !== 'string' || uri === '') return bad('write the uri of a resource');
    return { kind: 'read', request: { kind: 'resource', upstream, uri } };
  }
  if (method === undefined) return { kind: 'read', request: { kind: 'upstream', upstream } };
  if (typeof method !== 'string' || !PURGEABLE.includes(method))
    return bad(`write a method that is cached: ${PURGEABLE.join(', ')}`);
  return { kind: 'read', request: { kind: 'method', upstream, method } };
}

/** The JSON of a body; undefined where it is none. */
export function parseBody(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
}

function bad(message: string): PurgeReading {
  return { kind: 'bad', message };
}
