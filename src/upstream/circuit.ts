/**
 * The circuit breaker of one endpoint: one that keeps failing is left alone for a while, then tried by one.
 *
 * Without it every request to a hanging upstream costs its whole deadline (design, section 5: it "costs its
 * deadline once"). Counts consecutive failures, not a rate: an upstream that still answers some is not down.
 * A decision over times and counts; sees no socket.
 */

/** Refused, reset, 5xx: five in a row without any answer between are no accident. */
const FAILURES_TO_OPEN = 5;
/** Timeouts in a row. Each has cost somebody the whole deadline; one may be a slow resource, two are not. */
const TIMEOUTS_TO_OPEN = 2;
/** Left alone for this long: the order of a container's restart. */
const OPEN_MS = 5_000;
/** Doubled after each failed probe, up to this: whoever comes back is noticed within a minute. */
const MAX_OPEN_MS = 60_000;

/**
 * What a call showed. `hung`: a timeout under a deadline that was set short because a healthy upstream
 * answers well within it (a list's first page); alone it opens the circuit, unless others were answered meanwhile.
 */
export type Verdict = 'answered' | 'failed' | 'timed_out' | 'hung' | 'ignored';

/** `probe`: the one call that is let through to see whether the upstream is back. */
export type Pass = 'go' | 'probe' | 'open';

export class Circuit {
  readonly #now: () => number;
  readonly #onChange: (state: 'open' | 'closed') => void;
  #state: 'closed' | 'open' | 'probing' = 'closed';
  #failureCount = 0;
  #timeoutCount = 0;
  #answeredAt = Number.NEGATIVE_INFINITY;
  #openMs = OPEN_MS;
  #openUntil = 0;

  /** @param now monotonic milliseconds. */
  constructor(now: () => number, onChange: (state: 'open' | 'closed') => void) {
    this.#now = now;
    this.#onChange = onChange;
  }

  /** False while calls are turned away. */
  get available(): boolean {
    return this.#state === 'closed' || (this.#state === 'open' && this.#now() >= this.#openUntil);
  }

  /** True while nothing is wrong. */
  get closed(): boolean {
    return this.#state === 'closed';
  }

  /** Whole seconds, at least one, until the next probe. */
  get retryAfterSeconds(): number {
    return Math.max(1, Math.ceil((this.#openUntil - this.#now()) / 1000));
  }

  /** Asked before each call; whoever is not told `open` must {@link settle}. */
  enter(): Pass {
    if (this.#state === 'closed') return 'go';
    if (!this.available) return 'open';
    this.#state = 'probing';
    return 'probe';
  }

  /** @param startedAt when the call began. */
  settle(pass: Pass, verdict: Verdict, startedAt: number): void {
    switch (verdict) {
      case 'answered':
        this.#answered();
        return;
      case 'ignored':
        // The probe learnt nothing: the next call is the probe.
        if (pass === 'probe' && this.#state === 'probing') this.#state = 'open';
        return;
      default:
        this.#failed(pass, verdict, startedAt);
    }
  }

  #answered(): void {
    this.#answeredAt = this.#now();
    this.#failureCount = 0;
    this.#timeoutCount = 0;
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#openMs = OPEN_MS;
    this.#onChange('closed');
  }

  #failed(pass: Pass, verdict: 'failed' | 'timed_out' | 'hung', startedAt: number): void {
    if (pass === 'probe' && this.#state === 'probing') {
      this.#openMs = Math.min(this.#openMs * 2, MAX_OPEN_MS);
      this.#open();
      return;
    }
    // A straggler from before says nothing that is not known.
    if (this.#state !== 'closed') return;
    this.#failureCount++;
    if (verdict !== 'failed') this.#timeoutCount++;
    const hangs = verdict === 'hung' && this.#answeredAt < startedAt;
    if (hangs || this.#failureCount >= FAILURES_TO_OPEN || this.#timeoutCount >= TIMEOUTS_TO_OPEN) {
      this.#open();
      this.#onChange('open');
    }
  }

  #open(): void {
    this.#state = 'open';
    this.#openUntil = this.#now() + this.#openMs;
  }
}
