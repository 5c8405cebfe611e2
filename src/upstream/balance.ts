/**
 * The endpoints of one upstream: which of them gets the next request, and which are left alone.
 *
 * Least requests: whoever is slow has more under way and gets fewer. Each endpoint has a circuit of its own; the
 * upstream's is open only when all of theirs are. One that is due to be tried gets one request, and where others
 * are well that one is a read, on a short time, so that whoever meets a dead endpoint is answered by another.
 */
import { Circuit, type Pass, type Verdict } from './circuit.ts';
import type { Endpoint } from './pool.ts';

/** How long a read waits for an endpoint on trial, where another could answer it; never more than half its time. */
export const TRIAL_MS = 2_000;

/** What a request is: a read can be bounded while its endpoint is on trial, and then be asked elsewhere. */
export type Use = 'read' | 'stream';

/** One endpoint, chosen for one attempt. Is given back once, by {@link Turn.settle}. */
export interface Turn {
  readonly endpoint: Endpoint;
  /** A bound on this attempt alone; undefined: its request's own. */
  readonly limitMs: number | undefined;
  /** Says what became of it. @param startedAt when it began. */
  settle(verdict: Verdict, startedAt: number): void;
}

export interface BalanceOptions {
  readonly endpoints: readonly Endpoint[];
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Told of each endpoint that is left alone, or answers again. */
  readonly onEndpoint: (endpoint: Endpoint, state: 'open' | 'closed') => void;
  /** Told when the last one is left alone, and when one answers again. */
  readonly onChange: (state: 'open' | 'closed') => void;
}

interface Slot {
  readonly endpoint: Endpoint;
  readonly circuit: Circuit;
}

/** See the file's head. */
export class Balance {
  readonly #slots: readonly Slot[];
  #openCount = 0;
  /** Where the search begins: ties go round. */
  #next = 0;

  constructor({ endpoints, now, onEndpoint, onChange }: BalanceOptions) {
    this.#slots = endpoints.map((endpoint) => ({
      endpoint,
      circuit: new Circuit(now, (state) => {
        const wasOpen = this.#openCount === endpoints.length;
        this.#openCount += state === 'open' ? 1 : -1;
        onEndpoint(endpoint, state);
        const isOpen = this.#openCount === endpoints.length;
        if (wasOpen !== isOpen) onChange(state);
      }),
    }));
  }

  /** How many endpoints there are. */
  get size(): number {
    return this.#slots.length;
  }

  /** False while every endpoint is left alone. */
  get available(): boolean {
    return this.#slots.some(({ circuit }) => circuit.available);
  }

  /** Whole seconds, at least one, until the first endpoint is tried again. */
  get retryAfterSeconds(): number {
    return Math.min(...this.#slots.map(({ circuit }) => circuit.retryAfterSeconds));
  }

  /** The endpoint for the next attempt, but none of `tried`; undefined when there is none to be asked. */
  take(use: Use, tried: ReadonlySet<Endpoint>): Turn | undefined {
    const open = this.#slots.filter(({ endpoint, circuit }) => circuit.available && !tried.has(endpoint));
    const well = open.filter(({ circuit }) => circuit.closed);
    const due = open.find(({ circuit }) => !circuit.closed);
    if (due !== undefined && (well.length === 0 || use === 'read')) {
      return this.#turn(due, well.length === 0 ? undefined : TRIAL_MS);
    }
    const least = this.#leastBusy(well);
    return least && this.#turn(least, undefined);
  }

  #turn(slot: Slot, limitMs: number | undefined): Turn {
    const { endpoint, circuit } = slot;
    this.#next = (this.#slots.indexOf(slot) + 1) % this.#slots.length;
    const pass = circuit.enter() as Exclude<Pass, 'open'>;
    return {
      endpoint,
      limitMs,
      settle: (verdict, startedAt) => circuit.settle(pass, verdict, startedAt),
    };
  }

  #leastBusy(slots: readonly Slot[]): Slot | undefined {
    const { length } = this.#slots;
    const place = (slot: Slot): number => (this.#slots.indexOf(slot) - this.#next + length) % length;
    let least: Slot | undefined;
    for (const slot of slots) {
      if (least === undefined) least = slot;
      else {
        const difference = slot.endpoint.underWay - least.endpoint.underWay;
        if (difference < 0 || (difference === 0 && place(slot) < place(least))) least = slot;
      }
    }
    return least;
  }
}
