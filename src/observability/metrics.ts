/**
 * The metrics of a gateway: their names, their closed label sets, and a function to record each.
 *
 * The only file that knows prom-client. Recording *never* throws and never makes a series outside the sets
 * below (R45): an unknown method, upstream, status or reason counts as `other`. *Never* a label: a URI, cursor,
 * argument, user, client, request id, token or message.
 */
import { collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import type { RejectReason } from '../protocol/errors.ts';
import { KNOWN_METHODS, methodRow } from '../protocol/methods.ts';
import {
  ANSWERED,
  ATTEMPT_OUTCOMES,
  type AttemptOutcome,
  BUS_DIRECTIONS,
  type BusDirection,
  BYPASS_REASONS,
  type BypassReason,
  CACHE_OPERATIONS,
  CACHE_TIERS,
  type CacheOperation,
  type CacheStatus,
  type CacheTier,
  CONNECTION_STATES,
  type ConnectionState,
  DROP_REASONS,
  type DropReason,
  ERROR_TYPES,
  type ErrorType,
  EVICTION_REASONS,
  type EvictionReason,
  HTTP_METHODS,
  HTTP_STATUSES,
  INVALIDATION_SCOPES,
  INVALIDATION_SOURCES,
  type InvalidationScope,
  type InvalidationSource,
  NOTIFICATIONS,
  OPERATION_BOUNDS,
  OWN_TIER,
  PROCESSING_BOUNDS,
  REDIS_ERRORS,
  REDIS_OPERATIONS,
  REJECT_REASONS,
  RESYNC_REASONS,
  RETRY_REASONS,
  type RedisError,
  type RedisOperation,
  type ResyncReason,
  type RetryReason,
  STORE_BOUNDS,
  STORE_RESULTS,
  STREAM_KINDS,
  type StoreResult,
  type StreamKind,
  UNANSWERED,
} from './labels.ts';
import { HistogramFamily, LabelSet, NumberFamily, type Sum } from './series.ts';

/** What is known only when somebody looks: a scrape asks for it. */
export interface ScrapeGauges {
  cache(tier: CacheTier, size: { entryCount: number; sizeBytes: number; maxSizeBytes: number }): void;
  /** The sums over all pools of an upstream. */
  subscription(upstream: string, state: 'up' | 'down'): void;
  connections(upstream: string, counts: Readonly<Record<ConnectionState, number>>): void;
}

/** What can be read back, for the admin page: each of these is a family of the exposition. */
export type Readable =
  | 'httpInFlight'
  | 'streams'
  | 'cacheRequests'
  | 'stores'
  | 'evictions'
  | 'invalidations'
  | 'redisCircuit'
  | 'redisErrors'
  | 'busMessages'
  | 'busResyncs'
  | 'up'
  | 'circuit'
  | 'attempts';

export interface MetricsOptions {
  /** Configured names: the values of the label `upstream`. */
  readonly upstreams: readonly string[];
  /** Configured paths: the values of the label `route`. */
  readonly routes: readonly string[];
  /** The gateway's own version. */
  readonly version: string;
}

/** The recording functions, grouped as the request passes them. Durations are in seconds, as Prometheus wants. */
export interface Metrics {
  /** A request arrived; returns what to call, once or more, when it is answered or gone. */
  httpOpened(): () => void;
  httpRequest(httpMethod: string, status: number): void;
  httpBytes(inBytes: number, outBytes: number): void;
  rejected(reason: RejectReason): void;
  /** A client's operation, from its arrival to the end of its answer. */
  operation(route: string, mcpMethod: string, error: ErrorType | string, seconds: number): void;
  /** The gateway's own part of an operation: the whole less the time spent waiting on upstreams. */
  processing(route: string, seconds: number): void;
  /** A stream to a client opened; returns what to call, once or more, when it is closed. */
  streamOpened(route: string, kind: StreamKind): () => void;

  cacheRequest(upstream: string, mcpMethod: string, status: CacheStatus, tier: CacheTier | 'none'): void;
  cacheBypass(upstream: string, reason: BypassReason): void;
  /** A request waited for somebody else's. */
  collapsed(upstream: string): void;
  cacheStore(tier: CacheTier, result: StoreResult): void;
  cacheEviction(tier: CacheTier, reason: EvictionReason): void;
  cacheOperation(tier: CacheTier, operation: CacheOperation, seconds: number): void;
  /** Something that may be kept is over. */
  cacheInvalidated(upstream: string, source: InvalidationSource, scope: InvalidationScope): void;

  redisUp(state: 'up' | 'down'): void;
  redisCircuit(state: 'open' | 'closed'): void;
  redisError(operation: RedisOperation, reason: RedisError): void;
  redisOperation(operation: CacheOperation, seconds: number): void;
  /** A message between replicas. */
  busMessage(direction: BusDirection): void;
  /** It was asked what was missed. */
  busResync(reason: ResyncReason): void;

  upstreamOperation(upstream: string, mcpMethod: string, error: ErrorType | string, seconds: number): void;
  attempt(upstream: string, outcome: AttemptOutcome): void;
  retry(upstream: string, reason: RetryReason): void;
  upstreamUp(upstream: string, state: 'up' | 'down'): void;
  circuitOpen(upstream: string, state: 'open' | 'closed'): void;
  upstreamNotified(upstream: string, notification: string): void;
  /** An item of an upstream's list was left out. */
  itemDropped(upstream: string, reason: DropReason): void;

  ready(state: 'ready' | 'not-ready'): void;
  /** What was recorded so far, added up by these labels of the family. */
  sums(family: Readable, ...labels: readonly string[]): readonly Sum[];
  /** By upstream: how many operations it ended itself, well or not, in each bucket of {@link OPERATION_BOUNDS}. */
  upstreamOperations(): ReadonlyMap<string, readonly number[]>;
  /** Asks `report` at every scrape; returns what to call to stop that. A report that throws is skipped. */
  onScrape(report: (gauges: ScrapeGauges) => void): () => void;
  /** The exposition for `/metrics`. */
  render(): Promise<{ readonly contentType: string; readonly body: string }>;
}

/**
 * Makes the metrics of one gateway, in a registry of their own. Series that the configuration foretells start
 * at 0; histograms appear when first observed. *Bounded by* the product of the label sets.
 */
export function createMetrics({ upstreams, routes, version }: MetricsOptions): Metrics {
  const registry = new Registry();
  const cacheable = KNOWN_METHODS.filter((method) => methodRow(method).cacheable);
  const label = {
    upstream: new LabelSet('upstream', upstreams),
    route: new LabelSet('route', routes),
    mcpMethod: new LabelSet('mcp_method_name', KNOWN_METHODS),
    cacheMethod: new LabelSet('mcp_method_name', cacheable),
    errorType: new LabelSet('error_type', ERROR_TYPES),
    tier: new LabelSet('tier', CACHE_TIERS),
  };
  const register = <T extends NumberFamily | HistogramFamily>(family: T): T => {
    // The registry asks a metric for its name and its values only; its type names prom-client's own classes.
    registry.registerMetric(family as unknown as Metric);
    return family;
  };
  const counter = (name: string, help: string, ...labels: readonly LabelSet[]): NumberFamily =>
    register(new NumberFamily('counter', { name, help, labels }));
  const gauge = (name: string, help: string, ...labels: readonly LabelSet[]): NumberFamily =>
    register(new NumberFamily('gauge', { name, help, labels }));
  const histogram = (
    name: string,
    help: string,
    bounds: readonly number[],
    ...labels: readonly LabelSet[]
  ): HistogramFamily => register(new HistogramFamily(bounds, { name, help, labels }));

  const serverOperations = histogram(
    'mcp_server_operation_duration_seconds',
    'Time from the arrival of an MCP request to the end of its answer.',
    OPERATION_BOUNDS,
    label.route,
    label.mcpMethod,
    label.errorType,
  );
  const clientOperations = histogram(
    'mcp_client_operation_duration_seconds',
    'Time from sending an MCP request to an upstream to the end of its answer.',
    OPERATION_BOUNDS,
    label.upstream,
    label.mcpMethod,
    label.errorType,
  );
  const httpRequests = counter(
    'headgate_http_requests_total',
    'HTTP requests on the MCP port, by method and status.',
    new LabelSet('method', HTTP_METHODS),
    new LabelSet('code', HTTP_STATUSES),
  );
  const httpInFlight = gauge('headgate_http_requests_in_flight', 'HTTP requests being worked on.');
  const requestBytes = counter('headgate_http_request_bytes_total', 'Bytes of request bodies received.');
  const responseBytes = counter('headgate_http_response_bytes_total', 'Bytes of response bodies sent.');
  const rejections = counter(
    'headgate_requests_rejected_total',
    'Requests refused before they reached an upstream.',
    new LabelSet('reason', REJECT_REASONS),
  ).start(REJECT_REASONS);
  const processing = histogram(
    'headgate_request_processing_seconds',
    "The gateway's own part of an operation: all of it less the time spent waiting on upstreams.",
    PROCESSING_BOUNDS,
    label.route,
  );
  const streams = gauge(
    'headgate_streams_open',
    'Streams open to clients.',
    label.route,
    new LabelSet('kind', STREAM_KINDS),
  ).start(routes, STREAM_KINDS);

  const cacheRequests = counter(
    'headgate_cache_requests_total',
    'Requests for cacheable results, by what the cache did.',
    label.upstream,
    label.cacheMethod,
    new LabelSet('status', [...ANSWERED, ...UNANSWERED]),
    new LabelSet('tier', [...CACHE_TIERS, 'none']),
  )
    .start(upstreams, cacheable, ANSWERED, OWN_TIER)
    .start(upstreams, cacheable, ['hit'], ['redis'])
    .start(upstreams, cacheable, UNANSWERED, ['none']);
  const bypasses = counter(
    'headgate_cache_bypasses_total',
    'Answers that were kept out of the cache.',
    label.upstream,
    new LabelSet('reason', BYPASS_REASONS),
  ).start(upstreams, BYPASS_REASONS);
  const collapsed = counter(
    'headgate_cache_collapsed_requests_total',
    "Requests that waited for another's answer instead of asking the upstream.",
    label.upstream,
  ).start(upstreams);
  const stores = counter(
    'headgate_cache_stores_total',
    'Attempts to store an answer.',
    label.tier,
    new LabelSet('result', STORE_RESULTS),
  ).start(OWN_TIER, STORE_RESULTS);
  const evictions = counter(
    'headgate_cache_evictions_total',
    'Entries that left the cache.',
    label.tier,
    new LabelSet('reason', EVICTION_REASONS),
  ).start(OWN_TIER, EVICTION_REASONS);
  const cacheEntries = gauge('headgate_cache_entries', 'Entries in the cache.', label.tier).start(OWN_TIER);
  const cacheSize = gauge('headgate_cache_size_bytes', 'Bytes in the cache.', label.tier).start(OWN_TIER);
  const cacheMaxSize = gauge('headgate_cache_max_size_bytes', 'Bytes the cache may hold.', label.tier).start(
    OWN_TIER,
  );
  const cacheOperations = histogram(
    'headgate_cache_operation_duration_seconds',
    'Time of one operation of a cache store.',
    STORE_BOUNDS,
    label.tier,
    new LabelSet('operation', CACHE_OPERATIONS),
  );

  const invalidations = counter(
    'headgate_cache_invalidations_total',
    'Times that something was said to be over, by who said so and how much it is.',
    label.upstream,
    new LabelSet('source', INVALIDATION_SOURCES),
    new LabelSet('scope', INVALIDATION_SCOPES),
  ).start(upstreams, INVALIDATION_SOURCES, INVALIDATION_SCOPES);

  const redisUp = gauge('headgate_redis_up', '1 while there is a connection to Redis.');
  const redisCircuit = gauge('headgate_redis_circuit_open', '1 while Redis is left alone after failures.');
  const redisErrors = counter(
    'headgate_redis_errors_total',
    'Commands of Redis that failed, and values that were none.',
    new LabelSet('operation', REDIS_OPERATIONS),
    new LabelSet('reason', REDIS_ERRORS),
  ).start(REDIS_OPERATIONS, REDIS_ERRORS);
  const busMessages = counter(
    'headgate_bus_messages_total',
    'Messages between replicas.',
    new LabelSet('direction', BUS_DIRECTIONS),
  ).start(BUS_DIRECTIONS);
  const busResyncs = counter(
    'headgate_bus_resyncs_total',
    'Times that a replica asked what it had missed.',
    new LabelSet('reason', RESYNC_REASONS),
  ).start(RESYNC_REASONS);

  const up = gauge('headgate_upstream_up', '1 when the upstream answered last.', label.upstream).start(
    upstreams,
  );
  const circuit = gauge(
    'headgate_upstream_circuit_open',
    '1 while the upstream is left alone after failures.',
    label.upstream,
  ).start(upstreams);
  const attempts = counter(
    'headgate_upstream_attempts_total',
    'Requests sent to an upstream, by outcome.',
    label.upstream,
    new LabelSet('outcome', ATTEMPT_OUTCOMES),
  ).start(upstreams, ATTEMPT_OUTCOMES);
  const retries = counter(
    'headgate_upstream_retries_total',
    'Requests sent to an upstream again.',
    label.upstream,
    new LabelSet('reason', RETRY_REASONS),
  ).start(upstreams, RETRY_REASONS);
  const connections = gauge(
    'headgate_upstream_connections',
    "Connections of an upstream's pools, and the requests on them.",
    label.upstream,
    new LabelSet('state', CONNECTION_STATES),
  ).start(upstreams, CONNECTION_STATES);
  const heard = gauge(
    'headgate_upstream_subscription_up',
    '1 while changes of the upstream are heard; without a series where the configuration says not to listen.',
    label.upstream,
  );
  const notifications = counter(
    'headgate_upstream_notifications_total',
    'Notifications heard of an upstream.',
    label.upstream,
    new LabelSet('notification', NOTIFICATIONS),
  ).start(upstreams, NOTIFICATIONS);
  const dropped = counter(
    'headgate_list_items_dropped_total',
    "Items left out of an upstream's lists.",
    label.upstream,
    new LabelSet('reason', DROP_REASONS),
  ).start(upstreams, DROP_REASONS);

  const readiness = gauge('headgate_ready', '1 while the gateway takes new work.');
  gauge(
    'headgate_build_info',
    'Always 1; the labels say what runs.',
    new LabelSet('version', [version]),
    new LabelSet('node_version', [process.version]),
  ).set(1, version, process.version);
  collectDefaultMetrics({ register: registry });

  const readable: Readonly<Record<Readable, NumberFamily>> = {
    ...{ httpInFlight, streams, cacheRequests, stores, evictions, invalidations },
    ...{ redisCircuit, redisErrors, busMessages, busResyncs, up, circuit, attempts },
  };
  const reports = new Set<(gauges: ScrapeGauges) => void>();
  const scrapeGauges: ScrapeGauges = {
    cache: (tier, { entryCount, sizeBytes, maxSizeBytes }) => {
      cacheEntries.set(entryCount, tier);
      cacheSize.set(sizeBytes, tier);
      cacheMaxSize.set(maxSizeBytes, tier);
    },
    subscription: (upstream, state) => heard.set(state === 'up' ? 1 : 0, upstream),
    connections: (upstream, counts) => {
      for (const state of CONNECTION_STATES) connections.set(counts[state], upstream, state);
    },
  };

  return {
    httpOpened: () => {
      httpInFlight.add(1);
      return once(() => httpInFlight.add(-1));
    },
    httpRequest: (httpMethod, status) => httpRequests.add(1, httpMethod, status),
    httpBytes: (inBytes, outBytes) => {
      requestBytes.add(inBytes);
      responseBytes.add(outBytes);
    },
    rejected: (reason) => rejections.add(1, reason),
    operation: (route, mcpMethod, error, seconds) =>
      serverOperations.observe(seconds, route, mcpMethod, error),
    processing: (route, seconds) => processing.observe(seconds, route),
    streamOpened: (route, kind) => {
      streams.add(1, route, kind);
      return once(() => streams.add(-1, route, kind));
    },
    cacheRequest: (upstream, mcpMethod, status, tier) =>
      cacheRequests.add(1, upstream, mcpMethod, status, tier),
    cacheBypass: (upstream, reason) => bypasses.add(1, upstream, reason),
    collapsed: (upstream) => collapsed.add(1, upstream),
    cacheStore: (tier, result) => stores.add(1, tier, result),
    cacheEviction: (tier, reason) => evictions.add(1, tier, reason),
    cacheOperation: (tier, operation, seconds) => cacheOperations.observe(seconds, tier, operation),
    cacheInvalidated: (upstream, source, scope) => invalidations.add(1, upstream, source, scope),
    redisUp: (state) => redisUp.set(state === 'up' ? 1 : 0),
    redisCircuit: (state) => redisCircuit.set(state === 'open' ? 1 : 0),
    redisError: (operation, reason) => redisErrors.add(1, operation, reason),
    redisOperation: (operation, seconds) => cacheOperations.observe(seconds, 'redis', operation),
    busMessage: (direction) => busMessages.add(1, direction),
    busResync: (reason) => busResyncs.add(1, reason),
    upstreamOperation: (upstream, mcpMethod, error, seconds) =>
      clientOperations.observe(seconds, upstream, mcpMethod, error),
    attempt: (upstream, outcome) => attempts.add(1, upstream, outcome),
    retry: (upstream, reason) => retries.add(1, upstream, reason),
    upstreamUp: (upstream, state) => up.set(state === 'up' ? 1 : 0, upstream),
    circuitOpen: (upstream, state) => circuit.set(state === 'open' ? 1 : 0, upstream),
    upstreamNotified: (upstream, notification) => notifications.add(1, upstream, notification),
    itemDropped: (upstream, reason) => dropped.add(1, upstream, reason),
    ready: (state) => readiness.set(state === 'ready' ? 1 : 0),
    sums: (family, ...labels) => readable[family].sums(...labels),
    upstreamOperations: () =>
      clientOperations.buckets(
        'upstream',
        ({ error_type: error }) => error !== 'connect' && error !== 'cancelled',
      ),
    onScrape: (report) => {
      reports.add(report);
      return () => reports.delete(report);
    },
    render: async () => {
      for (const report of reports) attemptReport(report, scrapeGauges);
      return { contentType: registry.contentType, body: await registry.metrics() };
    },
  };
}

function attemptReport(report: (gauges: ScrapeGauges) => void, gauges: ScrapeGauges): void {
  try {
    report(gauges);
  } catch {
    // One report in trouble must not cost the operator all other figures, least of all then.
  }
}

/** Makes a close function that may be called by everyone who notices the end. */
function once(close: () => void): () => void {
  let open = true;
  return () => {
    if (!open) return;
    open = false;
    close();
  };
}
