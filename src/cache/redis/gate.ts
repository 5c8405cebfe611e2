/**
 * Whether Redis is used: a circuit breaker, so that an outage costs one missed deadline, not one a request.
 *
 * One missed deadline or lost connection closes the way. It is opened again by a probe that is answered in time, and
 * after that by `prepare`: what happened meanwhile must be known before anything found counts.
 */
import type { RemoteObserver, RemoteStore } from '../remote-types.ts';
import type { Connection } from './connect.ts';
import { within } from './deadline.ts';

/** How often Redis is tried while it is not used. */
const PROBE_MS = 250;

export interface GateOptions {
  readonly connection: Connection;
  readonly timeouts: { readonly connectMs: number; readonly commandMs: number };
  /** Done before the way is opened; `failed` leaves it closed. *Never* rejects. */
  readonly prepare: () => Promise<'done' | 'failed'>;
  readonly onUp: () => void;
  readonly observer: Pick<RemoteObserver, 'redisCircuit' | 'redisError'>;
}

export interface Gate {
  readonly state: RemoteStore['state'];
  /** Begins to try; then called again when there is a connection. */
  attempt(): void;
  /** Redis did not answer, or cannot be reached: nothing is sent any more. */
  trip(): void;
  close(): void;
}

export function createGate({ connection, timeouts, prepare, onUp, observer }: GateOptions): Gate {
  let state: RemoteStore['state'] = 'connecting';
  let attempting = false;
  let closed = false;
  /** Changes with each trip: what was begun before one does not open the way after it. */
  let trips = 0;
  const timer = setInterval(() => void attempt(), PROBE_MS);
  timer.unref();

  async function attempt(): Promise<void> {
    if (attempting || closed || state === 'up' || !connection.ready) return;
    attempting = true;
    const before = trips;
    if ((await probe()) && (await prepare()) === 'done' && before === trips && !closed) {
      state = 'up';
      observer.redisCircuit('closed');
      onUp();
    }
    attempting = false;
  }

  /** One at a time: a server that hangs is not sent more and more. */
  async function probe(): Promise<boolean> {
    const pong = connection.client.ping();
    const inTime = await within(pong, timeouts.commandMs);
    if (inTime.kind === 'ok') return true;
    if (inTime.reason !== 'timeout') return false;
    const late = await within(pong, timeouts.connectMs);
    // Nobody may be at the other end any more, and the kernel would go on trying for a quarter of an hour.
    if (late.kind === 'failed' && late.reason === 'timeout' && !closed) connection.reconnect();
    return false;
  }

  return {
    get state() {
      return state;
    },
    attempt: () => void attempt(),
    trip() {
      trips++;
      if (state === 'down') return;
      state = 'down';
      observer.redisCircuit('open');
    },
    close() {
      closed = true;
      clearInterval(timer);
      state = 'down';
    },
  };
}
