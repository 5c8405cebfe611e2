/** The effective configuration as YAML: every default written out, every secret redacted, in the shape that is read. */
import { stringify } from 'yaml';
import { formatAddress } from './address.ts';
import { displayArgs, displayUrl } from './display.ts';
import { Secret } from './secret.ts';
import type {
  HeadgateConfig,
  ListenConfig,
  ProcessConfig,
  RedisConfig,
  RouteConfig,
  RuleConfig,
  UpstreamAuth,
  UpstreamConfig,
} from './types.ts';
import { formatDuration, formatSize } from './units.ts';

/** YAML that loads to the same configuration, but for the secrets. */
export function printConfig(config: HeadgateConfig): string {
  return stringify(authoredShape(config), { lineWidth: 0, aliasDuplicateObjects: false });
}

/** The same as plain data; the admin page shows it too. */
export function authoredShape(config: HeadgateConfig): Readonly<Record<string, unknown>> {
  const { memory, redis, partitionHeaders } = config.cache;
  return {
    version: 1,
    secrets: config.secrets.map(String),
    listen: listenShape(config.listen),
    status: formatAddress(config.status),
    admin: adminShape(config.admin),
    upstreams: Object.fromEntries(
      [...config.upstreams].map(([name, upstream]) => [name, upstreamShape(upstream)]),
    ),
    routes: config.routes.map(routeShape),
    cache: {
      memory: { size: formatSize(memory.sizeBytes), maxEntry: formatSize(memory.maxEntryBytes) },
      ...(redis === undefined ? {} : { redis: redisShape(redis) }),
      partition: { headers: partitionHeaders },
    },
    shutdown: {
      delay: formatDuration(config.shutdown.delayMs),
      grace: formatDuration(config.shutdown.graceMs),
    },
    log: config.log,
  };
}

function adminShape(admin: HeadgateConfig['admin']) {
  if (admin === false) return false;
  const address = formatAddress(admin.address);
  return admin.token === undefined ? address : { address, token: String(admin.token) };
}

function listenShape({ address, hosts, origins, limits, trustedProxies }: ListenConfig) {
  return {
    address: formatAddress(address),
    hosts,
    origins,
    limits: {
      body: formatSize(limits.bodyBytes),
      ...(limits.streamedBodyBytes === undefined
        ? {}
        : { streamedBody: formatSize(limits.streamedBodyBytes) }),
      headers: formatSize(limits.headersBytes),
      headerCount: limits.headerCount,
      requestTimeout: formatDuration(limits.requestTimeoutMs),
      bodyIdle: formatDuration(limits.bodyIdleMs),
    },
    trustedProxies,
  };
}

function upstreamShape(upstream: UpstreamConfig) {
  const { process, protocol, claims, auth, forwardHeaders, timeouts, connections, subscribe, cache } =
    upstream;
  // What is written of HTTP only would be refused beside a command.
  const isHttp = process === undefined;
  return {
    ...(isHttp ? endpointsShape(upstream) : processShape(process)),
    protocol,
    ...claims,
    ...(isHttp && { auth: authShape(auth), forwardHeaders }),
    timeouts: {
      connect: formatDuration(timeouts.connectMs),
      response: formatDuration(timeouts.responseMs),
      call: formatDuration(timeouts.callMs),
      streamIdle: formatDuration(timeouts.streamIdleMs),
    },
    ...(isHttp && { connections }),
    subscribe,
    cache: {
      ttl: { default: formatDuration(cache.ttlDefaultMs), max: formatDuration(cache.ttlMaxMs) },
      scope: cache.scope,
      rules: cache.rules.map(({ method, resources, ttlMs, scope }) => ({
        ...(resources === undefined ? { method } : { resources }),
        ttl: formatDuration(ttlMs),
        scope,
      })),
      staleIfError: formatDuration(cache.staleIfErrorMs),
    },
  };
}

function endpointsShape({ endpoints }: UpstreamConfig) {
  const [url, ...more] = endpoints.map(displayUrl);
  return more.length === 0 ? { url } : { endpoints: [url, ...more] };
}

function processShape(process: ProcessConfig) {
  const { command, env, cwd, shared } = process;
  return {
    command,
    args: displayArgs(process),
    env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)])),
    ...(cwd === undefined ? {} : { cwd }),
    shared,
  };
}

function authShape(auth: UpstreamAuth): Readonly<Record<string, unknown>> {
  switch (auth.type) {
    case 'none':
      return { type: auth.type };
    case 'bearer':
      return { type: auth.type, token: String(auth.token) };
    case 'header':
      return { type: auth.type, name: auth.name, value: String(auth.value) };
    case 'forward':
      return { type: auth.type, shared: auth.shared };
  }
}

function redisShape({ endpoint, keyPrefix, timeouts, maxEntryBytes, required }: RedisConfig) {
  return {
    ...redisEndpointShape(endpoint),
    keyPrefix,
    timeouts: {
      connect: formatDuration(timeouts.connectMs),
      command: formatDuration(timeouts.commandMs),
    },
    maxEntry: formatSize(maxEntryBytes),
    required,
  };
}

function redisEndpointShape(endpoint: RedisConfig['endpoint']): Readonly<Record<string, unknown>> {
  if (endpoint.kind === 'url') return { url: String(endpoint.url) };
  const { kind, nodes, ...rest } = endpoint;
  // A `Secret` would be written as the empty mapping that it is to YAML.
  const shown = Object.entries(rest).map(([key, value]) => [
    key,
    value instanceof Secret ? String(value) : value,
  ]);
  return { [kind]: { nodes: nodes.map(formatAddress), ...Object.fromEntries(shown) } };
}

function routeShape(route: RouteConfig) {
  const { path, upstreams, rules, partial, pageSize, cache, legacyClients } = route;
  return { path, upstreams, rules: rules.map(ruleShape), partial, pageSize, cache, legacyClients };
}

function ruleShape({ method, name, headers, upstream }: RuleConfig) {
  return {
    match: {
      ...(method === undefined ? {} : { method }),
      ...(name === undefined ? {} : { name }),
      ...(Object.keys(headers).length === 0 ? {} : { header: headers }),
    },
    upstream,
  };
}
