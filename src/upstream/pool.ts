/**
 * The connections to one endpoint: three pools, each behind a bound of its own.
 *
 * A bounded pool shared with event streams starves everything else: a stream holds its connection for
 * minutes. So reads, streamed calls and listens never wait for each other's connections.
 */
import { buildConnector, type Dispatcher, errors, Pool } from 'undici';
import { type Listed, Roster } from '../protocol/roster.ts';
import { failure } from './failure.ts';
import type { Failure } from './types.ts';

/** Reads that may wait for each connection: far beyond it they would only wait for their deadline. */
const WAITING_READS_PER_CONNECTION = 16;
/** Said with `full`: a slot is usually free again within it. */
const FULL_RETRY_AFTER_SECONDS = 1;
/** Idle connections of a server that announces no time of its own: below the 5 s after which many close. */
const KEEP_ALIVE_MS = 4_000;
/** Announced times above this are not believed: what sits between may forget sooner. */
const MAX_KEEP_ALIVE_MS = 60_000;
/** An announced time is taken as this much shorter: a request must not meet a closing socket. */
const KEEP_ALIVE_MARGIN_MS = 1_000;
/** When the kernel begins to ask whether a silent peer is there: a listen is silent for hours. */
const TCP_KEEP_ALIVE_MS = 60_000;
/** Response headers above this are refused. */
const MAX_RESPONSE_HEADER_BYTES = 32 * 1024;

/** What a lane sends: an exchange, seen from here. */
export interface Submission extends Listed {
  readonly options: Dispatcher.DispatchOptions;
  readonly handler: Dispatcher.DispatchHandler;
  /** True until it has a connection. */
  readonly unsent: boolean;
  /** Told instead of being sent. */
  refuse(failure: Failure): void;
}

/** One pool with a bound on what runs and a bound on what waits. */
export class Lane {
  readonly #pool: Pool;
  readonly #bound: number;
  readonly #maxWaiting: number;
  readonly #running = new Roster<Submission>();
  /** In order of arrival. A set, so that one who leaves leaves no trace. */
  readonly #waiting = new Set<Submission>();

  constructor(origin: string, connectMs: number, bound: number, maxWaiting: number) {
    this.#pool = openPool(
      origin,
      bound,
      connector(connectMs, () => this.#wantsConnection()),
    );
    this.#bound = bound;
    this.#maxWaiting = maxWaiting;
  }

  /** Sends now, later, or refuses with `full`. Every submission is given back with {@link release}. */
  submit(submission: Submission): void {
    if (this.#running.size < this.#bound) {
      this.#dispatch(submission);
    } else if (this.#waiting.size < this.#maxWaiting) {
      this.#waiting.add(submission);
    } else {
      const rest = { retryAfterSeconds: FULL_RETRY_AFTER_SECONDS };
      submission.refuse(
        failure('full', 'connection_limit_reached', `${this.#bound} requests in flight`, rest),
      );
    }
  }

  /** Frees the slot of a submission that has ended, in whatever way; harmless when it has none. */
  release(submission: Submission): void {
    if (!this.#running.delete(submission)) {
      this.#waiting.delete(submission);
      return;
    }
    for (const next of this.#waiting) {
      if (this.#running.size >= this.#bound) return;
      this.#waiting.delete(next);
      this.#dispatch(next);
    }
  }

  /** Requests that run or wait. */
  get underWay(): number {
    return this.#running.size + this.#waiting.size;
  }

  /** undici's own figures, and what waits here. */
  stats(): PoolStats {
    const { connected, free, pending, queued, running } = this.#pool.stats;
    return { connected, free, pending, queued: queued + this.#waiting.size, running };
  }

  /** Breaks off whatever runs. */
  close(): Promise<void> {
    return this.#pool.destroy();
  }

  #wantsConnection(): boolean {
    for (const submission of this.#running) if (submission.unsent) return true;
    return false;
  }

  #dispatch(submission: Submission): void {
    this.#running.add(submission);
    this.#pool.dispatch(submission.options, submission.handler);
  }
}

/** Gauges of one pool or of several together. */
export type PoolStats = Readonly<Record<'connected' | 'free' | 'pending' | 'queued' | 'running', number>>;

/** Adds gauges up. */
export function sumStats(all: readonly PoolStats[]): PoolStats {
  const sum = { connected: 0, free: 0, pending: 0, queued: 0, running: 0 };
  for (const stats of all) {
    for (const key of Object.keys(sum) as (keyof PoolStats)[]) sum[key] += stats[key];
  }
  return sum;
}

/** One address of an upstream. */
export interface Endpoint {
  readonly url: URL;
  /** Requests that run or wait, listens aside. */
  readonly underWay: number;
  readonly path: string;
  readonly reads: Lane;
  readonly streams: Lane;
  /** Opened at first use: most upstreams are never listened to. */
  listens(): Lane;
  stats(): PoolStats;
  /** Breaks off whatever still runs. */
  close(): Promise<void>;
}

/** Opens the pools of an endpoint; no connection is made before the first request. */
export function openEndpoint(
  url: URL,
  limits: { readonly connections: number; readonly connectMs: number },
): Endpoint {
  const { connections, connectMs } = limits;
  const lane = (maxWaiting: number): Lane => new Lane(url.origin, connectMs, connections, maxWaiting);
  const reads = lane(connections * WAITING_READS_PER_CONNECTION);
  const streams = lane(0);
  let listens: Lane | undefined;
  const open = (): Lane[] => (listens === undefined ? [reads, streams] : [reads, streams, listens]);
  return {
    url,
    get underWay() {
      return reads.underWay + streams.underWay;
    },
    path: url.pathname + url.search,
    reads,
    streams,
    listens: () => {
      listens ??= lane(0);
      return listens;
    },
    stats: () => sumStats(open().map((one) => one.stats())),
    close: async () => {
      await Promise.all(open().map((one) => one.close()));
    },
  };
}

function openPool(origin: string, connections: number, connect: buildConnector.connector): Pool {
  return new Pool(origin, {
    connections,
    connect,
    pipelining: 1,
    // undici's timers tick every half second; an exchange keeps its own.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: MAX_KEEP_ALIVE_MS,
    keepAliveTimeoutThreshold: KEEP_ALIVE_MARGIN_MS,
    maxHeaderSize: MAX_RESPONSE_HEADER_BYTES,
  });
}

/**
 * Connects within the time, to the millisecond (undici's own timer only sweeps up the socket), and only while
 * someone waits: an aborted request stays in its client's queue, and undici would connect anew for nobody (R35).
 */
function connector(connectMs: number, wanted: () => boolean): buildConnector.connector {
  // Said aloud: an environment variable can turn the default off for a whole process.
  const connect = buildConnector({
    timeout: connectMs,
    rejectUnauthorized: true,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
  });
  const dial: buildConnector.connector = (options, callback) => {
    let waiting = true;
    const timer = setTimeout(() => {
      waiting = false;
      callback(new errors.ConnectTimeoutError(`no connection within ${connectMs} ms`), null);
    }, connectMs);
    connect(options, (...[error, socket]) => {
      if (!waiting) {
        socket?.destroy();
        return;
      }
      waiting = false;
      clearTimeout(timer);
      if (error === null) callback(null, socket);
      else callback(error, null);
    });
  };
  return (options, callback) => {
    if (wanted()) {
      dial(options, callback);
      return;
    }
    // Not at once: undici, still in its own call, would not go on to what else is queued.
    queueMicrotask(() => {
      if (wanted()) dial(options, callback);
      else callback(new Error('nobody waits for this connection'), null);
    });
  };
}
