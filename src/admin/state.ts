/** The state of a gateway as the page shows it, put together anew at each look. */
import { createHash } from 'node:crypto';
import type { Standing } from '../aggregate/standing.ts';
import { printConfig } from '../config/print.ts';
import type { HeadgateConfig, UpstreamConfig } from '../config/types.ts';
import type { Metrics, Readable } from '../observability/metrics.ts';
import type { RouteRuntime } from '../pipeline.ts';
import type { CacheState, ConfigAnswer, Counts, RedisState, State, UpstreamState } from './page/contract.ts';
import { printable } from './printable.ts';
import { answeredBy, fromSums, type Recent, SAMPLE_MS } from './recent.ts';
import type { Sources } from './sources.ts';

/** What is said of an upstream in a line. */
const MAX_ABOUT_CHARS = 200;

/** `GET /api/state`. @param startedAt when the process began. */
export function stateOf(sources: Sources, recent: Recent, startedAt: number): State {
  const { metrics, happenings } = sources;
  const config = sources.config();
  const checks = sources.checks();
  const redis = redisOf(sources, config);
  return {
    version: sources.version,
    node: process.version,
    startedAt,
    at: sources.wallClock(),
    ready: checks.every(({ holds }) => holds),
    checks,
    inFlight: total(metrics, 'httpInFlight'),
    streams: metrics
      .sums('streams', 'route', 'kind')
      .map(({ values: [route = '', kind = ''], sum }) => ({ route, kind, open: sum })),
    routes: [...sources.routes().values()].map(({ config: { path, upstreams, cache } }) => ({
      ...{ path, upstreams, cache },
    })),
    upstreams: upstreamsOf(sources, config, recent),
    cache: cacheOf(sources, config, recent),
    ...(redis !== undefined && { redis }),
    happenings: happenings.recent(),
    configuration: configurationOf(config).configuration,
  };
}

const PRINTED = new WeakMap<HeadgateConfig, ConfigAnswer>();

/** `GET /api/config`. Printed once for each configuration. */
export function configurationOf(config: HeadgateConfig): ConfigAnswer {
  const known = PRINTED.get(config);
  if (known !== undefined) return known;
  const yaml = printConfig(config);
  const answer = { configuration: createHash('sha256').update(yaml).digest('base64url').slice(0, 16), yaml };
  PRINTED.set(config, answer);
  return answer;
}

function upstreamsOf(sources: Sources, config: HeadgateConfig, recent: Recent): readonly UpstreamState[] {
  const { metrics, happenings, subscriptions } = sources;
  const up = byUpstream(metrics, 'up');
  const circuit = byUpstream(metrics, 'circuit');
  const answered = new Map<string, [string, number][]>();
  for (const { values, sum } of metrics.sums('cacheRequests', 'upstream', 'status')) {
    const [upstream = '', status = ''] = values;
    answered.set(upstream, [...(answered.get(upstream) ?? []), [status, sum]]);
  }
  const latencies = recent.latencies();
  const upstreams = sources.upstreams();
  const standings = standingsOf(sources.routes().values());
  return [...config.upstreams.values()].map((one): UpstreamState => {
    const { name, process: program } = one;
    const standing = standings.get(name) ?? { kind: 'unseen', why: 'in no route' };
    const latency = latencies.get(name);
    const lastError = happenings.lastError(name);
    const { connected = 0, running = 0, queued = 0 } = upstreams.get(name)?.stats() ?? {};
    return {
      name,
      over: program === undefined ? 'http' : 'process',
      circuit: circuit.get(name) === 1 ? 'open' : 'closed',
      ...describe(standing, one, up.get(name) === 1),
      ...(latency !== undefined && { latency }),
      ...(lastError !== undefined && { lastError }),
      listen: subscriptions.stateOf(name) ?? 'off',
      connections: { connected, running, queued },
      answered: fromSums(answered.get(name) ?? []),
    };
  });
}

/** An upstream of several routes stands alike in all of them, but for when each has asked: the best is told. */
function standingsOf(routes: Iterable<RouteRuntime>): ReadonlyMap<string, Standing> {
  const found = new Map<string, Standing>();
  for (const { members, discovery } of routes) {
    for (const { rank, config } of members) {
      const known = found.get(config.name);
      if (known === undefined || known.kind === 'unseen') found.set(config.name, discovery.standing(rank));
    }
  }
  return found;
}

function describe(
  standing: Standing,
  { protocol }: UpstreamConfig,
  answers: boolean,
): Pick<UpstreamState, 'state' | 'era' | 'about'> {
  switch (standing.kind) {
    case 'seen': {
      const { versions, translated, capabilities, assumed } = standing.seen;
      const offers = assumed ? 'offers what each caller may see' : [...capabilities.keys()].join(', ');
      return {
        state: answers ? 'up' : 'down',
        era: printable(translated ?? versions.join(', '), MAX_ABOUT_CHARS),
        about: printable(translated === undefined ? offers : `translated: ${offers}`, MAX_ABOUT_CHARS),
      };
    }
    case 'unseen':
      return { state: 'unseen', era: '', about: printable(`not seen yet: ${standing.why}`, MAX_ABOUT_CHARS) };
    case 'legacy': {
      const mend = protocol === 'modern' ? ': write protocol: auto to have it translated' : '';
      const about = `speaks other revisions (it answered ${standing.why})${mend}`;
      return { state: 'refused', era: '', about: printable(about, MAX_ABOUT_CHARS) };
    }
  }
}

function cacheOf({ metrics, store }: Sources, { cache }: HeadgateConfig, recent: Recent): CacheState {
  return {
    entries: store.entryCount,
    bytes: store.sizeBytes,
    maxBytes: cache.memory.sizeBytes,
    answered: answeredBy(metrics),
    stores: counts(metrics, 'stores', 'result'),
    evictions: counts(metrics, 'evictions', 'reason'),
    invalidations: metrics
      .sums('invalidations', 'upstream', 'source', 'scope')
      .filter(({ sum }) => sum > 0)
      .map(({ values: [upstream = '', source = '', scope = ''], sum }) => ({
        ...{ upstream, source, scope },
        count: sum,
      })),
    recent: { everyMs: SAMPLE_MS, samples: recent.samples() },
  };
}

function redisOf({ metrics, redis }: Sources, { cache, secrets }: HeadgateConfig): RedisState | undefined {
  const state = redis();
  if (state === undefined || cache.redis === undefined) return undefined;
  const errors = metrics.sums('redisErrors', 'operation', 'reason').filter(({ sum }) => sum > 0);
  return {
    state,
    circuit: total(metrics, 'redisCircuit') === 1 ? 'open' : 'closed',
    required: cache.redis.required,
    sealed: secrets.length > 0,
    errors: Object.fromEntries(errors.map(({ values, sum }) => [values.join(' '), sum])),
    messages: counts(metrics, 'busMessages', 'direction'),
    resyncs: counts(metrics, 'busResyncs', 'reason'),
  };
}

function total(metrics: Metrics, family: Readable): number {
  return metrics.sums(family)[0]?.sum ?? 0;
}

function counts(metrics: Metrics, family: Readable, label: string): Counts {
  return Object.fromEntries(metrics.sums(family, label).map(({ values: [value = ''], sum }) => [value, sum]));
}

function byUpstream(metrics: Metrics, family: Readable): ReadonlyMap<string, number> {
  return new Map(metrics.sums(family, 'upstream').map(({ values: [upstream = ''], sum }) => [upstream, sum]));
}
