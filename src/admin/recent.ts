/**
 * The last minutes, for the page: what the cache did, in short steps, and how long upstreams took.
 *
 * The metrics only ever count up; here they are looked at every few seconds and the difference is kept. A look adds up
 * arrays of numbers. *Bounded by* the constants below, for latencies times the upstreams.
 */
import { OPERATION_BOUNDS } from '../observability/labels.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Answered, UpstreamState } from './page/contract.ts';

/** A step of the chart. */
export const SAMPLE_MS = 5_000;
/** Ten minutes of them. */
export const MAX_SAMPLES = 120;
/** Latencies are kept at every so many steps: a figure is of the last five minutes. */
const SAMPLES_PER_LATENCY = 6;
const MAX_LATENCIES = 10;

type Buckets = ReadonlyMap<string, readonly number[]>;

export class Recent {
  readonly #metrics: Pick<Metrics, 'sums' | 'upstreamOperations'>;
  readonly #samples: Answered[] = [];
  /** The oldest first: what was counted until then. */
  readonly #latencies: Buckets[];
  #before: Answered;
  #sampleCount = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(metrics: Pick<Metrics, 'sums' | 'upstreamOperations'>) {
    this.#metrics = metrics;
    this.#before = answeredBy(metrics);
    this.#latencies = [metrics.upstreamOperations()];
  }

  /** Begins to look. *Never* keeps the process alive. */
  start(): void {
    this.#timer ??= setInterval(() => this.sample(), SAMPLE_MS);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Ends a step. */
  sample(): void {
    const now = answeredBy(this.#metrics);
    this.#samples.push(since(now, this.#before));
    this.#before = now;
    if (this.#samples.length > MAX_SAMPLES) this.#samples.shift();
    if (++this.#sampleCount % SAMPLES_PER_LATENCY !== 0) return;
    this.#latencies.push(this.#metrics.upstreamOperations());
    if (this.#latencies.length > MAX_LATENCIES) this.#latencies.shift();
  }

  /** The oldest first; the last is the step that is under way. */
  samples(): readonly Answered[] {
    return [...this.#samples, since(answeredBy(this.#metrics), this.#before)];
  }

  /** How long operations at upstreams took, by name; those without any are left out. */
  latencies(): ReadonlyMap<string, NonNullable<UpstreamState['latency']>> {
    const [before] = this.#latencies;
    const found = new Map<string, NonNullable<UpstreamState['latency']>>();
    for (const [upstream, counts] of this.#metrics.upstreamOperations()) {
      const fresh = counts.map((count, at) => count - (before?.get(upstream)?.[at] ?? 0));
      const count = fresh.reduce((sum, one) => sum + one, 0);
      if (count <= 0) continue;
      found.set(upstream, { count, p50Ms: quantile(fresh, 0.5), p95Ms: quantile(fresh, 0.95) });
    }
    return found;
  }
}

/** All that the cache did, or what it did for each upstream: see `byUpstream`. */
export function answeredBy({ sums }: Pick<Metrics, 'sums'>): Answered {
  return fromSums(sums('cacheRequests', 'status').map(({ values: [status = ''], sum }) => [status, sum]));
}

export function fromSums(sums: Iterable<readonly [status: string, sum: number]>): Answered {
  return { hit: 0, stale: 0, miss: 0, bypass: 0, ...Object.fromEntries(sums) } as Answered;
}

function since(now: Answered, before: Answered): Answered {
  return {
    hit: now.hit - before.hit,
    stale: now.stale - before.stale,
    miss: now.miss - before.miss,
    bypass: now.bypass - before.bypass,
  };
}

/** About how many milliseconds: as if what fell into a bucket lay in it evenly. */
export function quantile(counts: readonly number[], share: number): number {
  const wanted = share * counts.reduce((sum, one) => sum + one, 0);
  let seen = 0;
  for (const [at, count] of counts.entries()) {
    if (count > 0 && seen + count >= wanted) {
      const lower = OPERATION_BOUNDS[at - 1] ?? 0;
      const upper = OPERATION_BOUNDS[at] ?? lower;
      return 1_000 * (lower + ((upper - lower) * (wanted - seen)) / count);
    }
    seen += count;
  }
  return 0;
}
