/**
 * Single flight: requests that ask for the same wait for one load.
 *
 * A flight ends with a landing, which says who may have what came. The others are refused: they ask for
 * themselves, all at once. *Never* hands anything to a request that came after an invalidation the load began
 * before, and *never* lets one waiter's leaving, failing or slowness become another's.
 */
import { Abort, type Signal } from '../protocol/signal.ts';

/** Who may have what a load brought: the one who asked, its authorization context, or everybody. */
export type Audience = 'leader' | 'context' | 'everyone';

export interface Landing<R> {
  readonly audience: Audience;
  readonly value: R;
}

/** How a request's wait ended. `refused`: what came is not for it, or did not come in time. */
export type Boarding<R> =
  | { readonly kind: 'landed'; readonly value: R; readonly by: 'self' | 'another' }
  | { readonly kind: 'refused' };

export interface Passenger {
  /** The authorization context. */
  readonly context: string;
  /** The request's own: when it fires, this request's wait ends with its reason. */
  readonly signal: Signal;
  /** A flight is joined only if its number is above this. */
  readonly floor: number;
}

/** Calls `run` once after `ms`, unless the returned function is called before. */
export type Schedule = (run: () => void, ms: number) => () => void;

export interface InflightOptions {
  /** The number of a load that starts now, in the order of loads and invalidations. */
  readonly nextOrder: () => number;
  readonly schedule: Schedule;
}

export interface Inflight {
  /**
   * Joins the flight of that key, or starts one. Rejects with the signal's reason when the passenger leaves, and,
   * for the leader alone, with what `run` rejects with.
   * @param run its signal fires when the last passenger has left.
   */
  board<R>(
    key: string,
    passenger: Passenger,
    run: (signal: Signal, order: number) => Promise<Landing<R>>,
  ): Promise<Boarding<R>>;
  /** Flights that can still be joined. */
  readonly flightCount: number;
}

/**
 * How long a request waits for a flight that another context leads. An upstream can be slow with one caller
 * (throttled, unauthorised) and quick with the next. Its own context's flights are as slow as its own would be:
 * those end with the upstream's deadlines.
 */
export const PATIENCE_MS = 10_000;

interface Seat {
  readonly context: string;
  readonly signal: Signal;
  readonly leads: boolean;
  readonly leave: () => void;
  readonly resolve: (boarding: Boarding<unknown>) => void;
  readonly reject: (reason: unknown) => void;
}

interface Flight {
  readonly key: string;
  readonly context: string;
  readonly order: number;
  readonly controller: Abort;
  readonly seats: Set<Seat>;
  /** Set with the first passenger of another context. */
  stopPatience: (() => void) | undefined;
  /** Patience is over: no more passengers of other contexts. */
  late: boolean;
}

/** *Bounded by* the requests that wait: a flight without passengers is forgotten. */
export function createInflight({ nextOrder, schedule }: InflightOptions): Inflight {
  const flights = new Map<string, Flight>();

  function retire(flight: Flight): void {
    flight.stopPatience?.();
    flight.stopPatience = undefined;
    if (flights.get(flight.key) === flight) flights.delete(flight.key);
  }

  function rise(flight: Flight, seat: Seat): void {
    flight.seats.delete(seat);
    seat.signal.removeEventListener('abort', seat.leave);
  }

  function end(flight: Flight, seat: Seat, boarding: Boarding<unknown>): void {
    rise(flight, seat);
    seat.resolve(boarding);
  }

  function leave(flight: Flight, seat: Seat): void {
    if (!flight.seats.delete(seat)) return;
    seat.reject(seat.signal.reason);
    cancelIfEmpty(flight, seat.signal.reason);
  }

  function cancelIfEmpty(flight: Flight, reason: unknown): void {
    if (flight.seats.size > 0) return;
    retire(flight);
    flight.controller.abort(reason);
  }

  function sit(
    flight: Flight,
    { context, signal }: Passenger,
    leads: Seat['leads'],
  ): Promise<Boarding<unknown>> {
    return new Promise((resolve, reject) => {
      const seat: Seat = { context, signal, leads, leave: () => leave(flight, seat), resolve, reject };
      flight.seats.add(seat);
      signal.addEventListener('abort', seat.leave, { once: true });
      if (context !== flight.context)
        flight.stopPatience ??= schedule(() => losePatience(flight), PATIENCE_MS);
    });
  }

  function losePatience(flight: Flight): void {
    flight.late = true;
    for (const seat of flight.seats) {
      if (seat.context !== flight.context) end(flight, seat, { kind: 'refused' });
    }
    cancelIfEmpty(flight, new DOMException('nobody waits for it any more', 'AbortError'));
  }

  function land(flight: Flight, { audience, value }: Landing<unknown>): void {
    retire(flight);
    // What only the leader may have, and the leader has left, must not be left open: it may still be flowing.
    if (audience === 'leader' && ![...flight.seats].some((seat) => seat.leads)) {
      flight.controller.abort(new DOMException('nobody may have it', 'AbortError'));
    }
    for (const seat of flight.seats) {
      const may =
        seat.leads || audience === 'everyone' || (audience === 'context' && seat.context === flight.context);
      end(
        flight,
        seat,
        may ? { kind: 'landed', value, by: seat.leads ? 'self' : 'another' } : { kind: 'refused' },
      );
    }
  }

  function crash(flight: Flight, error: unknown): void {
    retire(flight);
    for (const seat of flight.seats) {
      rise(flight, seat);
      if (seat.leads) seat.reject(error);
      else seat.resolve({ kind: 'refused' });
    }
  }

  return {
    board<R>(
      key: string,
      passenger: Passenger,
      run: (signal: Signal, order: number) => Promise<Landing<R>>,
    ): Promise<Boarding<R>> {
      if (passenger.signal.aborted) return Promise.reject(passenger.signal.reason);
      const running = flights.get(key);
      if (running !== undefined && isOpenTo(running, passenger)) {
        return sit(running, passenger, false) as Promise<Boarding<R>>;
      }
      const flight: Flight = {
        key,
        context: passenger.context,
        order: nextOrder(),
        controller: new Abort(),
        seats: new Set(),
        stopPatience: undefined,
        late: false,
      };
      flights.set(key, flight);
      const boarded = sit(flight, passenger, true) as Promise<Boarding<R>>;
      run(flight.controller, flight.order).then(
        (landing) => land(flight, landing),
        (error: unknown) => crash(flight, error),
      );
      return boarded;
    },
    get flightCount() {
      return flights.size;
    },
  };
}

function isOpenTo(flight: Flight, { context, floor }: Passenger): boolean {
  return flight.order > floor && (context === flight.context || !flight.late);
}

/** The clock's own {@link Schedule}: does not keep the process alive. */
export const scheduleTimeout: Schedule = (run, ms) => {
  const timer = setTimeout(run, ms);
  timer.unref();
  return () => clearTimeout(timer);
};
