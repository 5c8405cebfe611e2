/**
 * What happened lately: upstreams that went and came, configurations, what was said to be over, and the last error of each upstream.
 *
 * Heard beside the metrics, on the same calls. *Never* holds a URI, a name, or text of an upstream. *Bounded by*
 * {@link MAX_HAPPENINGS} and the names of the upstreams.
 */
import type { Metrics } from '../observability/metrics.ts';
import type { Happened, Happening } from './page/contract.ts';

/** More than a screen of them; the log has the rest. */
const MAX_HAPPENINGS = 50;

/** Outcomes of attempts that are no error of the upstream. */
const NO_ERROR: ReadonlySet<string> = new Set(['ok', 'rpc_error', 'cancelled', 'circuit_open']);

export interface LastError {
  readonly kind: string;
  readonly at: number;
}

export class Happenings {
  readonly #wallClock: () => number;
  /** The oldest first. */
  readonly #kept: { at: number; count: number; readonly key: string; readonly what: Happened }[] = [];
  readonly #errors = new Map<string, LastError>();

  /** @param wallClock milliseconds since 1970. */
  constructor(wallClock: () => number) {
    this.#wallClock = wallClock;
  }

  /** These metrics, and somebody who listens to what they are told. */
  beside(metrics: Metrics): Metrics {
    return {
      ...metrics,
      attempt: (upstream, outcome) => {
        metrics.attempt(upstream, outcome);
        if (!NO_ERROR.has(outcome)) this.#errors.set(upstream, { kind: outcome, at: this.#wallClock() });
      },
      upstreamUp: (upstream, state) => {
        metrics.upstreamUp(upstream, state);
        this.#note({ kind: 'upstream', upstream, state });
      },
      circuitOpen: (upstream, state) => {
        metrics.circuitOpen(upstream, state);
        this.#note({ kind: 'circuit', upstream, state });
      },
      reloaded: (result) => {
        metrics.reloaded(result);
        if (result !== 'unchanged') this.#note({ kind: 'configuration', result });
      },
      upstreamReplaced: (upstream) => {
        metrics.upstreamReplaced(upstream);
        this.#errors.delete(upstream);
      },
      configure: (names) => {
        metrics.configure(names);
        for (const upstream of this.#errors.keys())
          if (!names.upstreams.includes(upstream)) this.#errors.delete(upstream);
      },
      redisUp: (state) => {
        metrics.redisUp(state);
        this.#note({ kind: 'redis', state });
      },
      cacheInvalidated: (upstream, source, scope) => {
        metrics.cacheInvalidated(upstream, source, scope);
        this.#note({ kind: 'invalidated', upstream, source, scope });
      },
    };
  }

  lastError(upstream: string): LastError | undefined {
    return this.#errors.get(upstream);
  }

  /** The newest first. */
  recent(): readonly Happening[] {
    return this.#kept.toReversed().map(({ at, count, what }) => ({ at, count, what }));
  }

  /** The same again counts: a storm is one line. */
  #note(what: Happened): void {
    const key = JSON.stringify(what);
    const at = this.#wallClock();
    const last = this.#kept.at(-1);
    if (last?.key === key) {
      last.at = at;
      last.count++;
      return;
    }
    this.#kept.push({ at, count: 1, key, what });
    if (this.#kept.length > MAX_HAPPENINGS) this.#kept.shift();
  }
}
