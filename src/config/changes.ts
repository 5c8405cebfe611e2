/**
 * What differs between two configurations, and what a reload makes of it (R44). Pure.
 *
 * An upstream that is asked otherwise (where, as whom, how patiently) is opened anew; one of which only is thought
 * otherwise (claims, cache, subscribe) keeps its sockets. Some settings hold for the life of a process.
 */
import { Secret } from './secret.ts';
import type { HeadgateConfig, RouteConfig, UpstreamConfig } from './types.ts';

/** What becomes of the upstreams, by name. Each stands in one list at most. */
export interface UpstreamChanges {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Asked otherwise: new connections, nothing kept. */
  readonly reopened: readonly string[];
  /** Judged otherwise: connections and entries stay. */
  readonly retuned: readonly string[];
}

/** What becomes of the routes, by path. */
export interface RouteChanges {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** In itself, or because of one of its upstreams. */
  readonly changed: readonly string[];
}

export interface Changes {
  readonly upstreams: UpstreamChanges;
  readonly routes: RouteChanges;
  /** Other settings that differ and apply at once, as paths of the file. */
  readonly settings: readonly string[];
}

export type Comparison =
  | { readonly kind: 'same' }
  | { readonly kind: 'changed'; readonly changes: Changes }
  /** These paths hold for the life of a process. */
  | { readonly kind: 'restart'; readonly paths: readonly string[] };

type Part = readonly [path: string, of: (config: HeadgateConfig) => unknown];

/** What only a new process can take up: sockets that are bound, keys that others hold, a memory that is shared out. */
const FIXED: readonly Part[] = [
  ['secrets', ({ secrets }) => secrets],
  ['listen.address', ({ listen }) => listen.address],
  ['listen.limits.headers', ({ listen }) => listen.limits.headersBytes],
  ['listen.limits.requestTimeout', ({ listen }) => listen.limits.requestTimeoutMs],
  ['listen.limits.bodyIdle', ({ listen }) => listen.limits.bodyIdleMs],
  ['status', ({ status }) => status],
  ['admin', ({ admin }) => (admin === false ? false : admin.address)],
  ['cache.memory', ({ cache }) => cache.memory],
  ['cache.redis', ({ cache }) => cache.redis],
];

const LIVE: readonly Part[] = [
  ['listen.hosts', ({ listen }) => listen.hosts],
  ['listen.origins', ({ listen }) => listen.origins],
  ['listen.limits.body', ({ listen }) => listen.limits.bodyBytes],
  ['listen.limits.streamedBody', ({ listen }) => listen.limits.streamedBodyBytes],
  ['listen.limits.headerCount', ({ listen }) => listen.limits.headerCount],
  ['listen.trustedProxies', ({ listen }) => listen.trustedProxies],
  ['admin.token', ({ admin }) => (admin === false ? undefined : admin.token)],
  ['cache.partition.headers', ({ cache }) => cache.partitionHeaders],
  ['shutdown', ({ shutdown }) => shutdown],
  ['log', ({ log }) => log],
];

/** Compares two configurations of one gateway, in the order of time. */
export function compareConfigs(before: HeadgateConfig, after: HeadgateConfig): Comparison {
  const paths = differing(FIXED, before, after);
  if (paths.length > 0) return { kind: 'restart', paths };
  const upstreams = upstreamChanges(before.upstreams, after.upstreams);
  const settings = differing(LIVE, before, after);
  const isOther = (name: string): boolean =>
    upstreams.reopened.includes(name) || upstreams.retuned.includes(name);
  // Who a caller is depends on them, on every route.
  const recount = settings.includes('cache.partition.headers');
  const routes = routeChanges(
    before.routes,
    after.routes,
    (route) => recount || route.upstreams.some(isOther),
  );
  const changes = { upstreams, routes, settings };
  const isSame = [...Object.values(upstreams), ...Object.values(routes), settings].every(
    (names: readonly string[]) => names.length === 0,
  );
  return isSame && sameOrder(before, after) ? { kind: 'same' } : { kind: 'changed', changes };
}

function differing(parts: readonly Part[], before: HeadgateConfig, after: HeadgateConfig): string[] {
  return parts.filter(([, of]) => !sameValue(of(before), of(after))).map(([path]) => path);
}

/** The order of upstreams and routes in the file is seen by people alone. */
function sameOrder(before: HeadgateConfig, after: HeadgateConfig): boolean {
  const order = ({ upstreams, routes }: HeadgateConfig): unknown => [
    [...upstreams.keys()],
    routes.map(({ path }) => path),
  ];
  return sameValue(order(before), order(after));
}

type Upstreams = HeadgateConfig['upstreams'];

function upstreamChanges(before: Upstreams, after: Upstreams): UpstreamChanges {
  const both = [...after.keys()].filter((name) => before.has(name));
  const pair = (name: string): readonly [UpstreamConfig, UpstreamConfig] => [
    before.get(name) as UpstreamConfig,
    after.get(name) as UpstreamConfig,
  ];
  const reopened = both.filter((name) => !sameValue(...mapped(pair(name), asked)));
  return {
    added: [...after.keys()].filter((name) => !before.has(name)),
    removed: [...before.keys()].filter((name) => !after.has(name)),
    reopened,
    retuned: both.filter((name) => !reopened.includes(name) && !sameValue(...pair(name))),
  };
}

function mapped<T, U>([one, other]: readonly [T, T], of: (value: T) => U): readonly [U, U] {
  return [of(one), of(other)];
}

/** All that makes how an upstream is asked. */
function asked({ claims: _, cache: __, subscribe: ___, ...rest }: UpstreamConfig): unknown {
  return rest;
}

function routeChanges(
  before: readonly RouteConfig[],
  after: readonly RouteConfig[],
  isTouched: (route: RouteConfig) => boolean,
): RouteChanges {
  const known = new Map(before.map((route) => [route.path, route]));
  const paths = new Set(after.map(({ path }) => path));
  return {
    added: [...paths].filter((path) => !known.has(path)),
    removed: [...known.keys()].filter((path) => !paths.has(path)),
    changed: after
      .filter((route) => {
        const earlier = known.get(route.path);
        return earlier !== undefined && (isTouched(route) || !sameValue(earlier, route));
      })
      .map(({ path }) => path),
  };
}

/** Deep equality of what a configuration is made of; secrets by what they hide. */
function sameValue(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (one instanceof Secret || other instanceof Secret)
    return one instanceof Secret && other instanceof Secret && one.reveal() === other.reveal();
  if (one instanceof URL || other instanceof URL)
    return one instanceof URL && other instanceof URL && one.href === other.href;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every(
      (key) =>
        Object.hasOwn(other, key) &&
        sameValue((one as Record<string, unknown>)[key], (other as Record<string, unknown>)[key]),
    )
  );
}
