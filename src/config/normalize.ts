/** Authored → normalised, once. */
import { adminAddress, listenAddress } from './checks.ts';
import { noteAuthoredUrl, noteExpandedArgs } from './display.ts';
import type { Document } from './document.ts';
import type { Authored } from './schema.ts';
import { type AuthoredAdmin, type AuthoredListen, listenSchema } from './schema-listen.ts';
import type { AuthoredRedis } from './schema-redis.ts';
import type { AuthoredRoute } from './schema-route.ts';
import type { AuthoredUpstream } from './schema-upstream.ts';
import type {
  Address,
  HeadgateConfig,
  ListenConfig,
  ProcessConfig,
  RedisConfig,
  RouteConfig,
  UpstreamConfig,
} from './types.ts';

/** Addresses of the command line; they win over the file. */
export interface Overrides {
  readonly listen?: Address;
  readonly status?: Address;
  readonly admin?: Address | false;
}

interface Overridable {
  readonly listen: AuthoredListen | undefined;
  readonly admin: AuthoredAdmin | undefined;
}

/** The addresses of the command line in place of the file's. */
export function override<Part extends Overridable>(part: Part, { listen, admin, ...rest }: Overrides): Part {
  return {
    ...part,
    ...rest,
    listen: listen === undefined ? part.listen : overrideListen(part.listen, listen),
    admin: admin === undefined ? part.admin : overrideAdmin(part.admin, admin),
  };
}

function overrideListen(authored: AuthoredListen | undefined, listen: Address): AuthoredListen {
  return authored === undefined || 'host' in authored ? listen : { ...authored, address: listen };
}

/** The token of the file stays: the command line cannot name one, and must not take one away. */
function overrideAdmin(authored: AuthoredAdmin | undefined, admin: Address | false): AuthoredAdmin {
  return admin !== false && typeof authored === 'object' && 'address' in authored
    ? { ...authored, address: admin }
    : admin;
}

/** Everything the program sees, from what the schema let pass. */
export function normalize(authored: Authored, document: Document): HeadgateConfig {
  const { memory, redis, partition } = authored.cache;
  // An operator who only made the cache small did not ask for entries larger than all of it.
  const maxEntryBytes = document.has(['cache', 'memory', 'maxEntry'])
    ? memory.maxEntry
    : Math.min(memory.maxEntry, memory.size);
  return {
    secrets: authored.secrets,
    listen: normalizeListen(authored.listen),
    status: authored.status,
    admin: normalizeAdmin(authored),
    upstreams: new Map(
      Object.entries(authored.upstreams).map(([name, upstream]) => {
        const { url, endpoints = [] } = upstream;
        if (url !== undefined) noteAuthoredUrl(url, document.authored(['upstreams', name, 'url']));
        for (const [index, endpoint] of endpoints.entries())
          noteAuthoredUrl(endpoint, document.authored(['upstreams', name, 'endpoints', index]));
        const config = normalizeUpstream(name, upstream, lowerCase(partition.headers));
        if (config.process !== undefined)
          noteExpandedArgs(config.process, (index) =>
            document.isExpanded(['upstreams', name, 'args', index]),
          );
        return [name, config];
      }),
    ),
    routes: authored.routes.map(normalizeRoute),
    cache: {
      memory: { sizeBytes: memory.size, maxEntryBytes },
      ...(redis === undefined ? {} : { redis: normalizeRedis(redis, maxEntryBytes) }),
      partitionHeaders: lowerCase(partition.headers),
    },
    shutdown: { delayMs: authored.shutdown.delay, graceMs: authored.shutdown.grace },
    log: authored.log,
  };
}

function normalizeAdmin({ admin }: Pick<Authored, 'admin'>): HeadgateConfig['admin'] {
  const address = adminAddress({ admin });
  if (!address) return false;
  return { address, token: typeof admin === 'object' && 'token' in admin ? admin.token : undefined };
}

function normalizeListen(authored: AuthoredListen): ListenConfig {
  const listen = 'host' in authored ? shortForm() : authored;
  const { limits } = listen;
  return {
    address: listenAddress({ listen: authored }) ?? listen.address,
    hosts: lowerCase(listen.hosts),
    origins: listen.origins,
    limits: {
      bodyBytes: limits.body,
      streamedBodyBytes: limits.streamedBody,
      headersBytes: limits.headers,
      headerCount: limits.headerCount,
      requestTimeoutMs: limits.requestTimeout,
      bodyIdleMs: limits.bodyIdle,
    },
    trustedProxies: listen.trustedProxies,
  };
}

/** What `listen: <address>` leaves unsaid. */
function shortForm(): Exclude<AuthoredListen, Address> {
  return listenSchema.parse({}) as Exclude<AuthoredListen, Address>;
}

function normalizeUpstream(
  name: string,
  upstream: AuthoredUpstream,
  tellers: readonly string[],
): UpstreamConfig {
  const { timeouts, cache } = upstream;
  return {
    name,
    endpoints: upstream.url === undefined ? (upstream.endpoints ?? []) : [upstream.url],
    process: normalizeProcess(upstream, tellers),
    protocol: upstream.protocol,
    claims: { resources: upstream.resources, tools: upstream.tools, prompts: upstream.prompts },
    auth:
      upstream.auth.type === 'header'
        ? { ...upstream.auth, name: upstream.auth.name.toLowerCase() }
        : upstream.auth,
    forwardHeaders: lowerCase(upstream.forwardHeaders),
    timeouts: {
      connectMs: timeouts.connect,
      responseMs: timeouts.response,
      callMs: timeouts.call,
      streamIdleMs: timeouts.streamIdle,
    },
    connections: upstream.connections,
    subscribe: upstream.subscribe,
    cache: {
      ttlDefaultMs: cache.ttl.default,
      ttlMaxMs: cache.ttl.max,
      rules: cache.rules.map(({ method = 'resources/read', resources, ttl, scope }) => ({
        ...{ method, resources, scope },
        ttlMs: ttl,
      })),
      scope: cache.scope,
      staleIfErrorMs: cache.staleIfError,
    },
  };
}

function normalizeProcess(
  { command, args, env, cwd, shared }: AuthoredUpstream,
  tellers: readonly string[],
): ProcessConfig | undefined {
  if (command === undefined) return undefined;
  return { command, args, env, cwd, shared, ...(tellers.length > 0 && { tellers }) };
}

function normalizeRedis(redis: AuthoredRedis, mostBytes: number): RedisConfig {
  const { keyPrefix, timeouts, maxEntry, required } = redis;
  return {
    endpoint: redisEndpoint(redis),
    keyPrefix,
    timeouts: { connectMs: timeouts.connect, commandMs: timeouts.command },
    maxEntryBytes: Math.min(maxEntry, mostBytes),
    required,
  };
}

function redisEndpoint({ url, sentinel, cluster }: AuthoredRedis): RedisConfig['endpoint'] {
  if (url !== undefined) return { kind: 'url', url };
  if (sentinel !== undefined) return { kind: 'sentinel', ...written(sentinel) };
  if (cluster !== undefined) return { kind: 'cluster', ...written(cluster) };
  throw new Error('cache.redis without an endpoint: the checks refuse that');
}

type Written<Part> = { [Key in keyof Part]: Exclude<Part[Key], undefined> };

/** Without the members that say nothing. */
function written<Part extends object>(part: Part): Written<Part> {
  return Object.fromEntries(Object.entries(part).filter(([, value]) => value !== undefined)) as Written<Part>;
}

function normalizeRoute(route: AuthoredRoute): RouteConfig {
  return {
    path: route.path,
    upstreams: route.upstreams,
    rules: route.rules.map(({ match, upstream }) => ({
      method: match.method,
      name: match.name,
      headers: Object.fromEntries(
        Object.entries(match.header ?? {}).map(([name, glob]) => [name.toLowerCase(), glob]),
      ),
      upstream,
    })),
    partial: route.partial,
    legacyClients: route.legacyClients,
    pageSize: route.pageSize,
    cache: route.cache,
  };
}

/** Header and host names are compared in lower case. */
function lowerCase(names: readonly string[]): readonly string[] {
  return [...new Set(names.map((name) => name.toLowerCase()))];
}
