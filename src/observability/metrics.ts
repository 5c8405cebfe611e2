/**
 * The metrics of a gateway: a function to record each of {@link createFamilies}, and the exposition.
 *
 * The only file that knows prom-client. Recording *never* throws and never makes a series outside the closed sets of
 * `labels.ts` (R45): an unknown method, upstream, status or reason counts as `other`. *Never* a label: a URI, cursor,
 * argument, user, client, request id, token or message.
 */
import { collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import type { RejectReason } from '../protocol/errors.ts';
import { type ConfiguredNames, configuredLabels, createFamilies, type Families } from './families.ts';
import {
  type AttemptOutcome,
  type BusDirection,
  type BypassReason,
  type CacheOperation,
  type CacheStatus,
  type CacheTier,
  CONNECTION_STATES,
  type ConnectionState,
  type DropReason,
  type ErrorType,
  type EvictionReason,
  type InvalidationScope,
  type InvalidationSource,
  type RedisError,
  type RedisOperation,
  type ReloadResult,
  type ResyncReason,
  type RetryReason,
  type StoreResult,
  type StreamKind,
} from './labels.ts';
import type { Sum } from './series.ts';

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

export interface MetricsOptions extends ConfiguredNames {
  /** The gateway's own version. */
  readonly version: string;
  /** The wall clock, in milliseconds. */
  readonly now?: () => number;
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
  /** Another upstream has this name now: of it nothing is known yet. */
  upstreamReplaced(upstream: string): void;
  upstreamNotified(upstream: string, notification: string): void;
  /** An item of an upstream's list was left out. */
  itemDropped(upstream: string, reason: DropReason): void;

  ready(state: 'ready' | 'not-ready'): void;
  /** The configuration was read again. */
  reloaded(result: ReloadResult): void;
  /**
   * Other upstreams and routes are configured now. Series of names that stay keep their numbers, those of names that
   * are gone go, those of new names start as they would have at the start; what is yet counted for a name that is
   * gone counts as `other`.
   */
  configure(names: ConfiguredNames): void;
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
 * at 0; histograms appear when first observed.
 */
export function createMetrics({ upstreams, routes, version, now = Date.now }: MetricsOptions): Metrics {
  const families = createFamilies({ upstreams, routes }, version);
  let configured = JSON.stringify([upstreams, routes]);
  const registry = new Registry();
  // The registry asks a metric for its name and its values only; its type names prom-client's own classes.
  for (const family of families.all) registry.registerMetric(family as unknown as Metric);
  collectDefaultMetrics({ register: registry });
  families.build.set(1, version, process.version);
  const accepted = (): void => {
    families.reloadSuccessful.set(1);
    families.reloadedAt.set(now() / 1_000);
  };
  accepted();
  const reports = new Set<(gauges: ScrapeGauges) => void>();
  const gauges = scrapeGauges(families);

  return {
    ...recorders(families),
    reloaded: (result) => {
      families.reloads.add(1, result);
      if (result === 'refused') families.reloadSuccessful.set(0);
      else accepted();
    },
    configure: (names) => {
      const now = JSON.stringify([names.upstreams, names.routes]);
      if (now === configured) return;
      configured = now;
      const { upstream, route } = configuredLabels(names);
      for (const family of families.all) family.layOut([upstream, route]);
    },
    onScrape: (report) => {
      reports.add(report);
      return () => reports.delete(report);
    },
    render: async () => {
      // Whose changes are not listened for any more is neither heard nor unheard.
      families.heard.clear();
      for (const report of reports) attemptReport(report, gauges);
      return { contentType: registry.contentType, body: await registry.metrics() };
    },
  };
}

function scrapeGauges(families: Families): ScrapeGauges {
  return {
    cache: (tier, { entryCount, sizeBytes, maxSizeBytes }) => {
      families.cacheEntries.set(entryCount, tier);
      families.cacheSize.set(sizeBytes, tier);
      families.cacheMaxSize.set(maxSizeBytes, tier);
    },
    subscription: (upstream, state) => families.heard.set(state === 'up' ? 1 : 0, upstream),
    connections: (upstream, counts) => {
      for (const state of CONNECTION_STATES) families.connections.set(counts[state], upstream, state);
    },
  };
}

function recorders(families: Families): Omit<Metrics, 'reloaded' | 'configure' | 'onScrape' | 'render'> {
  // Each a variable: a record must not cost a look-up in a large object.
  const { httpInFlight, httpRequests, requestBytes, responseBytes, rejections, streams } = families;
  const { serverOperations, processing, cacheRequests, bypasses, collapsed, stores } = families;
  const { evictions, cacheOperations, invalidations, redisUp, redisCircuit, redisErrors } = families;
  const { busMessages, busResyncs, clientOperations, attempts, retries, up, circuit } = families;
  const { notifications, dropped, readiness } = families;
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
    streamOpened: (route, kind) => streams.hold(route, kind),
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
    // One that is not configured any more has no state: as `other` it would stay so for ever.
    upstreamUp: (upstream, state) => {
      if (up.names(upstream)) up.set(state === 'up' ? 1 : 0, upstream);
    },
    circuitOpen: (upstream, state) => {
      if (circuit.names(upstream)) circuit.set(state === 'open' ? 1 : 0, upstream);
    },
    upstreamReplaced: (upstream) => {
      up.set(0, upstream);
      circuit.set(0, upstream);
    },
    upstreamNotified: (upstream, notification) => notifications.add(1, upstream, notification),
    itemDropped: (upstream, reason) => dropped.add(1, upstream, reason),
    ready: (state) => readiness.set(state === 'ready' ? 1 : 0),
    sums: (family, ...labels) => families[family].sums(...labels),
    upstreamOperations: () =>
      clientOperations.buckets(
        'upstream',
        ({ error_type: error }) => error !== 'connect' && error !== 'cancelled',
      ),
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
