/**
 * Who is asking? The authorization context of a request as an opaque digest (design, section 3.3).
 *
 * It covers everything of a request that can reach an upstream of its route or tells callers apart, so that two
 * callers who differ in any of it never share a private answer (R22). *Never* holds or yields a raw credential.
 */
import { createHmac, hash, randomBytes } from 'node:crypto';
import type { HeadgateConfig, RouteConfig } from '../config/types.ts';
import type { Head } from '../protocol/headers.ts';

/** The context of every caller who sends nothing that tells callers apart, or how it begins. */
const ANONYMOUS = 'anonymous';

/** Headers that carry credentials whatever the configuration says. */
const BUILT_IN: readonly string[] = ['authorization', 'cookie', 'proxy-authorization', 'x-api-key'];

/** Whether a caller says who it is. @param also headers that the operator says tell callers apart. */
export function hasCredentials(head: Head, also: readonly string[] = []): boolean {
  const has = (name: string): boolean => head.headers.has(name);
  return BUILT_IN.some(has) || also.some(has);
}

export type Identify = (head: Head) => string;

/** The key of the digests: from the configured secrets, so that replicas agree; otherwise of this process alone. */
export function partitionKey(config: Pick<HeadgateConfig, 'secrets'>): Uint8Array {
  const first = config.secrets[0];
  if (first === undefined) return randomBytes(32);
  return createHmac('sha256', first.reveal()).update('headgate partition v1').digest();
}

/** The `identify` of one route. */
export function createIdentify(
  config: Pick<HeadgateConfig, 'upstreams' | 'cache'>,
  route: RouteConfig,
  key: Uint8Array,
): Identify {
  const names = [...tellingNames(config, route)].sort();
  // By which headers callers are told apart is a part of who they are: what one of a crowd was given must not be found
  // by the crowd when one more header tells them apart, here after a reload or through Redis on another replica.
  const further = names.filter((name) => !BUILT_IN.includes(name)).join(',');
  const telling: Telling = {
    names,
    key: Buffer.from(key).toString('hex') + further,
    anonymous: further === '' ? ANONYMOUS : `${ANONYMOUS} ${hash('sha256', further, 'base64url')}`,
  };
  return (head) => identify(head, telling);
}

interface Telling {
  /** In order. */
  readonly names: readonly string[];
  readonly key: string;
  readonly anonymous: string;
}

function tellingNames(
  config: Pick<HeadgateConfig, 'upstreams' | 'cache'>,
  route: RouteConfig,
): ReadonlySet<string> {
  const names = new Set<string>([...BUILT_IN, ...config.cache.partitionHeaders]);
  for (const upstream of route.upstreams) {
    for (const name of config.upstreams.get(upstream)?.forwardHeaders ?? []) names.add(name);
  }
  return names;
}

/**
 * What of a head says who asks, or may reach an upstream: all that is kept of it where something outlives its request.
 */
export function createCarried(
  config: Pick<HeadgateConfig, 'upstreams' | 'cache'>,
  route: RouteConfig,
): (head: Head) => Head {
  const names = tellingNames(config, route);
  return ({ headers, hop, duplicated }) => ({
    ...{ hop, duplicated },
    headers: new Map([...headers].filter(([name]) => names.has(name))),
  });
}

/**
 * SHA-256 with the key in front, as long as one block, and behind: an HMAC in all that matters here, without the
 * object that Node makes for each, which costs a private hit as much as its look-up.
 */
function identify(head: Head, { names, key, anonymous }: Telling): string {
  let told = '';
  for (const name of names) {
    const value = head.headers.get(name);
    // Lengths make the tuple unambiguous: no value can imitate the next header.
    if (value !== undefined) told += `${name}:${value.length}:${value};`;
  }
  return told === '' ? anonymous : hash('sha256', key + told + key, 'base64url');
}
