/**
 * The shared tier as the cache sees it: which slots and fields an answer has in Redis.
 *
 * Knows what depends on what; whether anything is over is decided in Redis' own order (`remote-types.ts`), and
 * whether it may be served, by policy, in `through.ts`. *Never* names a URI or a credential. Pure.
 */
import { hash } from 'node:crypto';
import { privateKey, publicKey } from './key.ts';
import { EVERYTHING, type RemoteLookup, type RemoteSlot } from './remote-types.ts';
import type { Lookup, Scope } from './types.ts';
import { uriField } from './uris.ts';

/** What a load that brought an answer ends for loads that began before it. */
type Ended = Pick<Lookup, 'baseKey' | 'partition' | 'chain'>;

export const methodField = (method: string): string => `m:${method}`;
export const keyField = (baseKey: string): string => `k:${baseKey}`;
/** Ended when an answer for this key came that is not for everybody. */
export const turnedField = (baseKey: string): string => `t:${baseKey}`;
/** Ended when the first page of a list came; later pages depend on it. */
export const chainField = (id: string, partition: string | undefined): string =>
  `c:${digest(partition === undefined ? publicKey(id) : privateKey(id, partition))}`;
/** Ended when an upstream refused its own cursor; all pages depend on it. */
export const droppedField = (id: string, partition: string | undefined): string =>
  `d:${digest(partition === undefined ? publicKey(id) : privateKey(id, partition))}`;

function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}

/** Where a caller's answer stands, and on what it depends. */
export function slotOf(request: Lookup, scope: Scope): RemoteSlot {
  const { baseKey, method, partition, uri, chain } = request;
  const whose = scope === 'public' ? undefined : partition;
  const fields = [methodField(method), keyField(baseKey)];
  if (scope === 'public') fields.push(turnedField(baseKey));
  if (uri !== undefined) fields.push(uriField(uri));
  if (chain !== undefined) {
    fields.push(droppedField(chain.id, whose));
    if (chain.position === 'later') fields.push(chainField(chain.id, whose));
  }
  // What is for everybody by the operator's promise alone is nobody's who does not make it.
  const shared = request.policy.scope === 'public' ? 'o' : 's';
  const key = whose === undefined ? `${shared}.${baseKey}` : `p.${digest(privateKey(baseKey, whose))}`;
  return { key, fields };
}

/** Both slots of a caller. @param sealed whether private answers are shared at all. */
export function lookupOf(request: Lookup, sealed: boolean): RemoteLookup {
  const own = sealed && request.policy.scope !== 'public' ? slotOf(request, 'private') : undefined;
  return { upstream: request.upstream, own, shared: slotOf(request, 'public') };
}

/** What an answer ends of what came before it. @param turned it is not for everybody, and what came before may be. */
export function endedBy({ baseKey, partition, chain }: Ended, turned: boolean): readonly string[] {
  const fields = turned ? [turnedField(baseKey)] : [];
  if (chain?.position !== 'first') return fields;
  fields.push(chainField(chain.id, partition));
  // A list that is not for everybody any more has no public pages behind its first one.
  fields.push(chainField(chain.id, undefined));
  return fields;
}

/** What a change of another replica is about. */
export type Told =
  | { readonly kind: 'everything' }
  | { readonly kind: 'method'; readonly method: string }
  | { readonly kind: 'key'; readonly baseKey: string }
  | { readonly kind: 'uri'; readonly field: string }
  /** The public answer for a key, and no other. */
  | { readonly kind: 'turned'; readonly baseKey: string }
  /** Of Redis alone. */
  | { readonly kind: 'nothing' };

export function readField(field: string): Told {
  if (field === EVERYTHING) return { kind: 'everything' };
  const rest = field.slice(2);
  switch (field.slice(0, 2)) {
    case 'm:':
      return { kind: 'method', method: rest };
    case 'k:':
      return { kind: 'key', baseKey: rest };
    case 'u:':
      return { kind: 'uri', field };
    case 't:':
      return { kind: 'turned', baseKey: rest };
    default:
      return { kind: 'nothing' };
  }
}

/** How much of an upstream is over. */
export type Scoped = 'uri' | 'method' | 'key' | 'upstream';

const SCOPES: Readonly<Record<Told['kind'], Scoped | undefined>> = {
  everything: 'upstream',
  method: 'method',
  key: 'key',
  turned: 'key',
  uri: 'uri',
  nothing: undefined,
};

/** How much these fields end, for the metrics. */
export function scopesOf(fields: readonly string[]): ReadonlySet<Scoped> {
  return new Set(fields.flatMap((field) => SCOPES[readField(field).kind] ?? []));
}
