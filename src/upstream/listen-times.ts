/** The times of listening to an upstream, and the decision when to ask again (R40). */
import type { Coverage } from '../protocol/listen-filter.ts';
import type { StreamEnd } from './listen-take.ts';

/** A server answers a listen before anything else; one that takes longer never will. */
const ACK_MS = 10_000;
/** Changes of what is listened for that come close together make one new stream. */
const GATHER_MS = 200;
/** A stream that asks for more than is wanted does no harm: what is wanted may well grow again. */
const SHRINK_MS = 5_000;
/** What was on its way over a narrower stream when the wider one was acknowledged has come by then. */
const DRAIN_MS = 1_000;
/** The longest pause before the first new attempt... */
const FIRST_PAUSE_MS = 200;
/** ...doubled after each further one, up to this: whoever comes back is listened to soon. */
const LAST_PAUSE_MS = 30_000;
/** Open for this long, a stream that breaks is a new trouble, not the old one. */
const STEADY_MS = 30_000;
/** A server that does not offer listening learns it by a new release, not by itself. */
const REFUSED_MS = 300_000;

/** All in milliseconds; tests have shorter ones. */
export interface ListenTimes {
  readonly ackMs: number;
  readonly gatherMs: number;
  readonly shrinkMs: number;
  readonly drainMs: number;
  readonly firstPauseMs: number;
  readonly lastPauseMs: number;
  readonly steadyMs: number;
  readonly refusedMs: number;
}

/** The times in use. */
export const LISTEN_TIMES: ListenTimes = {
  ackMs: ACK_MS,
  gatherMs: GATHER_MS,
  shrinkMs: SHRINK_MS,
  drainMs: DRAIN_MS,
  firstPauseMs: FIRST_PAUSE_MS,
  lastPauseMs: LAST_PAUSE_MS,
  steadyMs: STEADY_MS,
  refusedMs: REFUSED_MS,
};

/**
 * How long to wait before the next attempt. All of a backoff is left to chance, so that whoever lost a server
 * together does not come back together.
 * @param failures attempts that came to nothing since a stream was last open for long.
 * @param random from 0 to below 1.
 */
export function pauseMs(end: StreamEnd, failures: number, random: number, times: ListenTimes): number {
  const { firstPauseMs, lastPauseMs, refusedMs } = times;
  if (end.kind === 'not-offered') return refusedMs * (1 + random / 5);
  const askedFor = Math.min((end.failure.retryAfterSeconds ?? 0) * 1000, refusedMs);
  return askedFor + random * Math.min(firstPauseMs * 2 ** Math.min(failures, 30), lastPauseMs);
}

/** The wait before the next attempt, and how many have come to nothing. */
export class Pause {
  readonly #times: ListenTimes;
  readonly #random: () => number;
  #timer: NodeJS.Timeout | undefined;
  #refused: Coverage | undefined;
  #failures = 0;

  constructor(times: ListenTimes, random: () => number) {
    this.#times = times;
    this.#random = random;
  }

  get waiting(): boolean {
    return this.#timer !== undefined;
  }

  /** What was asked for, where a refusal is waited out. */
  get refused(): Coverage | undefined {
    return this.#refused;
  }

  /** Begins anew. @param then called at its end, unless it is ended before. */
  begin(end: StreamEnd, asked: Coverage, then: () => void): void {
    this.end();
    this.#refused = end.kind === 'not-offered' ? asked : undefined;
    this.#timer = setTimeout(
      () => {
        this.end();
        then();
      },
      pauseMs(end, this.#failures++, this.#random(), this.#times),
    );
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#refused = undefined;
  }

  /** Forgets what came to nothing. */
  forgive(): void {
    this.#failures = 0;
  }
}
