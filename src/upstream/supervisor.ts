/**
 * Keeps one process: starts it when it is first needed, starts it again when it has ended, and says why there is none.
 *
 * A process that ends is started again by itself, after a pause that doubles while it does not stay: whoever asks
 * next should not wait for it, and a server that cannot start must not cost a processor.
 */
import type { ProcessConfig } from '../config/types.ts';
import { type Child, type ChildDeps, type ChildHooks, startChild } from './child.ts';
import { CANCELLED, failure } from './failure.ts';
import type { Failure } from './types.ts';

/** The pause before the first new start... */
const FIRST_PAUSE_MS = 200;
/** ...doubled after each further end, up to this. */
const LAST_PAUSE_MS = 30_000;
/** Alive for this long, a process that ends is a new trouble, not the old one. */
const STEADY_MS = 30_000;
/** Beyond this a doubled pause is the longest one anyway. */
const MAX_DOUBLINGS = 30;

/** All in milliseconds; tests have shorter ones. */
export interface SupervisorTimes {
  readonly firstPauseMs: number;
  readonly lastPauseMs: number;
  readonly steadyMs: number;
}

/** The times in use. */
export const SUPERVISOR_TIMES: SupervisorTimes = {
  firstPauseMs: FIRST_PAUSE_MS,
  lastPauseMs: LAST_PAUSE_MS,
  steadyMs: STEADY_MS,
};

export interface SupervisorOptions {
  readonly config: ProcessConfig;
  readonly deps: ChildDeps;
  /** Told of each process as it is started; what it returns is told of all that comes of it. */
  readonly attach: (child: Child) => ChildHooks;
  /** Default: {@link SUPERVISOR_TIMES}. */
  readonly times?: SupervisorTimes;
  /** From 0 to below 1; default: `Math.random`. */
  readonly random?: () => number;
}

/** How long to wait before the next start: half of a backoff is left to chance. @param failures before this end. */
export function restartPauseMs(failures: number, random: number, times: SupervisorTimes): number {
  const { firstPauseMs, lastPauseMs } = times;
  const most = Math.min(firstPauseMs * 2 ** Math.min(failures, MAX_DOUBLINGS), lastPauseMs);
  return most * (0.5 + random / 2);
}

type Waiter = (outcome: Child | Failure) => void;

type State =
  /** Not needed so far. */
  | { readonly kind: 'idle' }
  /** Where it is not open, its end is about to be told. */
  | { readonly kind: 'running'; readonly child: Child }
  | {
      readonly kind: 'pausing';
      readonly reason: Failure;
      /** Monotonic milliseconds. */
      readonly until: number;
      readonly timer: NodeJS.Timeout;
    }
  | { readonly kind: 'closed' };

/** At most one process at a time. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #times: SupervisorTimes;
  readonly #random: () => number;
  readonly #now: () => number;
  readonly #waiters = new Set<Waiter>();
  #state: State = { kind: 'idle' };
  #failures = 0;
  /** The one before is gone only when all it started is: two of them would get in each other's way. */
  #before: Promise<void> = Promise.resolve();

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#times = options.times ?? SUPERVISOR_TIMES;
    this.#random = options.random ?? Math.random;
    this.#now = options.deps.now ?? (() => performance.now());
  }

  /**
   * The process, or why there is none. Waits for the next start if that comes within the time, and for its outcome;
   * not for a second one.
   */
  get(withinMs: number): Promise<Child | Failure> {
    if (this.#state.kind === 'idle') this.#start();
    const state = this.#state;
    switch (state.kind) {
      case 'running':
        return state.child.isOpen ? Promise.resolve(state.child) : this.#outcome(withinMs);
      case 'pausing':
        return state.until > this.#now() + withinMs
          ? Promise.resolve(unusable(state.reason))
          : this.#outcome(withinMs);
      default:
        return Promise.resolve(CANCELLED);
    }
  }

  /** Whether a process runs, as far as is known; undefined before the first was needed. */
  get isUp(): boolean | undefined {
    return this.#state.kind === 'idle'
      ? undefined
      : this.#state.kind === 'running' && this.#state.child.isOpen;
  }

  /** Ends it, and starts none any more. */
  async close(): Promise<void> {
    const state = this.#state;
    this.#state = { kind: 'closed' };
    if (state.kind === 'pausing') clearTimeout(state.timer);
    this.#settle(CANCELLED);
    if (state.kind === 'running') await state.child.close();
    await this.#before;
  }

  #outcome(withinMs: number): Promise<Child | Failure> {
    return new Promise((resolve) => {
      const waiter: Waiter = (outcome) => {
        clearTimeout(timer);
        this.#waiters.delete(waiter);
        resolve(outcome);
      };
      const timer = setTimeout(() => {
        const { kind } = this.#state;
        const reason = this.#state.kind === 'pausing' ? this.#state.reason : undefined;
        waiter(
          reason === undefined
            ? failure('timeout', 'connection_timeout', `no process within ${withinMs} ms (${kind})`)
            : unusable(reason),
        );
      }, withinMs);
      this.#waiters.add(waiter);
    });
  }

  #settle(outcome: Child | Failure): void {
    for (const waiter of [...this.#waiters]) waiter(outcome);
  }

  #start(): void {
    const { config, deps, attach } = this.#options;
    const startedAt = this.#now();
    let hooks: ChildHooks | undefined;
    const child = startChild(config, deps, {
      message: (bytes) => hooks?.message(bytes),
      ended: (reason) => {
        // First, so that whoever is told and asks again at once does not get what has just ended.
        this.#ended(child, reason, this.#now() - startedAt);
        hooks?.ended(reason);
      },
    });
    hooks = attach(child);
    this.#state = { kind: 'running', child };
    if (child.pid === undefined) return;
    deps.log?.('info', 'upstream process started', { upstream: deps.name, pid: child.pid });
    this.#settle(child);
  }

  #ended(child: Child, reason: Failure, livedMs: number): void {
    this.#before = child.close();
    if (this.#state.kind !== 'running' || this.#state.child !== child) return;
    const { deps } = this.#options;
    if (livedMs >= this.#times.steadyMs) this.#failures = 0;
    const pauseMs = restartPauseMs(this.#failures++, this.#random(), this.#times);
    const again = (): void => {
      this.#before.then(() => {
        if (this.#state.kind === 'pausing') this.#start();
      });
    };
    // Nobody who waits for nothing else should stay for it; whoever waits in `get` has a timer of its own.
    const timer = setTimeout(again, pauseMs).unref();
    this.#state = { kind: 'pausing', reason, until: this.#now() + pauseMs, timer };
    deps.log?.('warn', 'upstream process ended', {
      upstream: deps.name,
      detail: reason.detail,
      againMs: Math.round(pauseMs),
    });
    this.#settle(unusable(reason));
  }
}

/** To whoever wanted to use it, however it ended: not a byte of a request has left. */
function unusable(reason: Failure): Failure {
  return failure('connect', 'destination_unavailable', reason.detail);
}
