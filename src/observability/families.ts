/** Every metric of the gateway: its name, what it says, its labels, and which of its series exist from the start. */
import { KNOWN_METHODS, methodRow } from '../protocol/methods.ts';
import {
  ANSWERED,
  ATTEMPT_OUTCOMES,
  BUS_DIRECTIONS,
  BYPASS_REASONS,
  CACHE_OPERATIONS,
  CACHE_TIERS,
  CONNECTION_STATES,
  DOUBTERS,
  DROP_REASONS,
  ERROR_TYPES,
  EVICTION_REASONS,
  HTTP_METHODS,
  HTTP_STATUSES,
  INVALIDATION_SCOPES,
  INVALIDATION_SOURCES,
  NOTIFICATIONS,
  OPERATION_BOUNDS,
  OWN_TIER,
  PROCESSING_BOUNDS,
  REDIS_ERRORS,
  REDIS_OPERATIONS,
  REJECT_REASONS,
  RELOAD_RESULTS,
  RESYNC_REASONS,
  RETRY_REASONS,
  STORE_BOUNDS,
  STORE_RESULTS,
  STREAM_KINDS,
  TELLERS,
  UNANSWERED,
} from './labels.ts';
import { HistogramFamily, LabelSet, NumberFamily } from './series.ts';

/** Names that the configuration gives to label values. */
export interface ConfiguredNames {
  /** Configured names: the values of the label `upstream`. */
  readonly upstreams: readonly string[];
  /** Configured paths: the values of the label `route`. */
  readonly routes: readonly string[];
}

/** The labels whose values are configured. */
export function configuredLabels({ upstreams, routes }: ConfiguredNames): {
  readonly upstream: LabelSet;
  readonly route: LabelSet;
} {
  return { upstream: new LabelSet('upstream', upstreams), route: new LabelSet('route', routes) };
}

/** Makes families, and keeps them in a list. */
class Maker {
  readonly all: (NumberFamily | HistogramFamily)[] = [];
  readonly upstream: LabelSet;
  readonly route: LabelSet;
  readonly tier = new LabelSet('tier', CACHE_TIERS);
  readonly mcpMethod = new LabelSet('mcp_method_name', KNOWN_METHODS);
  readonly errorType = new LabelSet('error_type', ERROR_TYPES);

  constructor(names: ConfiguredNames) {
    const { upstream, route } = configuredLabels(names);
    this.upstream = upstream;
    this.route = route;
  }

  counter(name: string, help: string, ...labels: readonly LabelSet[]): NumberFamily {
    return this.#kept(new NumberFamily('counter', { name, help, labels }));
  }

  gauge(name: string, help: string, ...labels: readonly LabelSet[]): NumberFamily {
    return this.#kept(new NumberFamily('gauge', { name, help, labels }));
  }

  histogram(
    name: string,
    help: string,
    bounds: readonly number[],
    ...labels: readonly LabelSet[]
  ): HistogramFamily {
    return this.#kept(new HistogramFamily(bounds, { name, help, labels }));
  }

  #kept<T extends NumberFamily | HistogramFamily>(family: T): T {
    this.all.push(family);
    return family;
  }
}

/** Every family, by what it is recorded with. */
export type Families = ReturnType<typeof createFamilies>;

/** Makes all families. *Bounded by* the product of their label sets. */
export function createFamilies(names: ConfiguredNames, version: string) {
  const make = new Maker(names);
  return {
    ...trafficFamilies(make),
    ...cacheFamilies(make),
    ...redisFamilies(make),
    ...upstreamFamilies(make),
    ...ownFamilies(make, version),
    all: make.all as readonly (NumberFamily | HistogramFamily)[],
  };
}

function trafficFamilies(make: Maker) {
  const { route } = make;
  return {
    serverOperations: make.histogram(
      'mcp_server_operation_duration_seconds',
      'Time from the arrival of an MCP request to the end of its answer.',
      OPERATION_BOUNDS,
      route,
      make.mcpMethod,
      make.errorType,
    ),
    httpRequests: make.counter(
      'headgate_http_requests_total',
      'HTTP requests on the MCP port, by method and status.',
      new LabelSet('method', HTTP_METHODS),
      new LabelSet('code', HTTP_STATUSES),
    ),
    httpInFlight: make.gauge('headgate_http_requests_in_flight', 'HTTP requests being worked on.').start(),
    requestBytes: make
      .counter('headgate_http_request_bytes_total', 'Bytes of request bodies received.')
      .start(),
    responseBytes: make
      .counter('headgate_http_response_bytes_total', 'Bytes of response bodies sent.')
      .start(),
    rejections: make
      .counter(
        'headgate_requests_rejected_total',
        'Requests refused before they reached an upstream.',
        new LabelSet('reason', REJECT_REASONS),
      )
      .start(REJECT_REASONS),
    processing: make.histogram(
      'headgate_request_processing_seconds',
      "The gateway's own part of an operation: all of it less the time spent waiting on upstreams.",
      PROCESSING_BOUNDS,
      route,
    ),
    streams: make
      .gauge('headgate_streams_open', 'Streams open to clients.', route, new LabelSet('kind', STREAM_KINDS))
      .start(route, STREAM_KINDS),
  };
}

function cacheFamilies(make: Maker) {
  const { upstream, tier } = make;
  const cacheable = KNOWN_METHODS.filter((method) => methodRow(method).cacheable);
  return {
    cacheRequests: make
      .counter(
        'headgate_cache_requests_total',
        'Requests for cacheable results, by what the cache did.',
        upstream,
        new LabelSet('mcp_method_name', cacheable),
        new LabelSet('status', [...ANSWERED, ...UNANSWERED]),
        new LabelSet('tier', [...CACHE_TIERS, 'none']),
      )
      .start(upstream, cacheable, ANSWERED, OWN_TIER)
      .start(upstream, cacheable, ['hit'], ['redis'])
      .start(upstream, cacheable, UNANSWERED, ['none']),
    bypasses: make
      .counter(
        'headgate_cache_bypasses_total',
        'Answers that were kept out of the cache.',
        upstream,
        new LabelSet('reason', BYPASS_REASONS),
      )
      .start(upstream, BYPASS_REASONS),
    collapsed: make
      .counter(
        'headgate_cache_collapsed_requests_total',
        "Requests that waited for another's answer instead of asking the upstream.",
        upstream,
      )
      .start(upstream),
    stores: make
      .counter(
        'headgate_cache_stores_total',
        'Attempts to store an answer.',
        tier,
        new LabelSet('result', STORE_RESULTS),
      )
      .start(CACHE_TIERS, STORE_RESULTS),
    evictions: make
      .counter(
        'headgate_cache_evictions_total',
        'Entries that left the cache.',
        tier,
        new LabelSet('reason', EVICTION_REASONS),
      )
      .start(OWN_TIER, EVICTION_REASONS),
    invalidations: make
      .counter(
        'headgate_cache_invalidations_total',
        'Times that something was said to be over, by who said so and how much it is.',
        upstream,
        new LabelSet('source', INVALIDATION_SOURCES),
        new LabelSet('scope', INVALIDATION_SCOPES),
      )
      .start(upstream, TELLERS, INVALIDATION_SCOPES)
      .start(upstream, DOUBTERS, ['upstream']),
    cacheEntries: make.gauge('headgate_cache_entries', 'Entries in the cache.', tier).start(OWN_TIER),
    cacheSize: make.gauge('headgate_cache_size_bytes', 'Bytes in the cache.', tier).start(OWN_TIER),
    cacheMaxSize: make
      .gauge('headgate_cache_max_size_bytes', 'Bytes the cache may hold.', tier)
      .start(OWN_TIER),
    cacheOperations: make.histogram(
      'headgate_cache_operation_duration_seconds',
      'Time of one operation of a cache store.',
      STORE_BOUNDS,
      tier,
      new LabelSet('operation', CACHE_OPERATIONS),
    ),
  };
}

function redisFamilies(make: Maker) {
  return {
    redisUp: make.gauge(
      'headgate_redis_up',
      '1 while there is a connection to Redis; without a series where none is configured.',
    ),
    redisCircuit: make.gauge(
      'headgate_redis_circuit_open',
      '1 while Redis is left alone after failures; without a series where none is configured.',
    ),
    redisErrors: make
      .counter(
        'headgate_redis_errors_total',
        'Commands of Redis that failed, and values that were none.',
        new LabelSet('operation', REDIS_OPERATIONS),
        new LabelSet('reason', REDIS_ERRORS),
      )
      .start(REDIS_OPERATIONS, REDIS_ERRORS),
    busMessages: make
      .counter(
        'headgate_bus_messages_total',
        'Messages between replicas.',
        new LabelSet('direction', BUS_DIRECTIONS),
      )
      .start(BUS_DIRECTIONS),
    busResyncs: make
      .counter(
        'headgate_bus_resyncs_total',
        'Times that a replica asked what it had missed.',
        new LabelSet('reason', RESYNC_REASONS),
      )
      .start(RESYNC_REASONS),
  };
}

function upstreamFamilies(make: Maker) {
  const { upstream } = make;
  return {
    clientOperations: make.histogram(
      'mcp_client_operation_duration_seconds',
      'Time from sending an MCP request to an upstream to the end of its answer.',
      OPERATION_BOUNDS,
      upstream,
      make.mcpMethod,
      make.errorType,
    ),
    up: make.gauge('headgate_upstream_up', '1 when the upstream answered last.', upstream).start(upstream),
    circuit: make
      .gauge('headgate_upstream_circuit_open', '1 while the upstream is left alone after failures.', upstream)
      .start(upstream),
    attempts: make
      .counter(
        'headgate_upstream_attempts_total',
        'Requests sent to an upstream, by outcome.',
        upstream,
        new LabelSet('outcome', ATTEMPT_OUTCOMES),
      )
      .start(upstream, ATTEMPT_OUTCOMES),
    retries: make
      .counter(
        'headgate_upstream_retries_total',
        'Requests sent to an upstream again.',
        upstream,
        new LabelSet('reason', RETRY_REASONS),
      )
      .start(upstream, RETRY_REASONS),
    connections: make
      .gauge(
        'headgate_upstream_connections',
        "Connections of an upstream's pools, and the requests on them.",
        upstream,
        new LabelSet('state', CONNECTION_STATES),
      )
      .start(upstream, CONNECTION_STATES),
    heard: make.gauge(
      'headgate_upstream_subscription_up',
      '1 while changes of the upstream are heard; without a series where it has none to tell of.',
      upstream,
    ),
    notifications: make
      .counter(
        'headgate_upstream_notifications_total',
        'Notifications heard of an upstream.',
        upstream,
        new LabelSet('notification', NOTIFICATIONS),
      )
      .start(upstream, NOTIFICATIONS),
    dropped: make
      .counter(
        'headgate_list_items_dropped_total',
        "Items left out of an upstream's lists.",
        upstream,
        new LabelSet('reason', DROP_REASONS),
      )
      .start(upstream, DROP_REASONS),
  };
}

function ownFamilies(make: Maker, version: string) {
  const build = [new LabelSet('version', [version]), new LabelSet('node_version', [process.version])];
  return {
    build: make.gauge('headgate_build_info', 'Always 1; the labels say what runs.', ...build),
    reloads: make
      .counter(
        'headgate_config_reloads_total',
        'Times that the configuration was read again, by what became of it.',
        new LabelSet('result', RELOAD_RESULTS),
      )
      .start(RELOAD_RESULTS),
    reloadSuccessful: make.gauge(
      'headgate_config_last_reload_successful',
      '0 while what was read last was refused: the gateway runs on what it had before.',
    ),
    reloadedAt: make.gauge(
      'headgate_config_last_reload_success_timestamp_seconds',
      'When a configuration was last accepted, at the start or later, in seconds since 1970.',
    ),
    readiness: make.gauge('headgate_ready', '1 while the gateway takes new work.').start(),
  };
}
