/** An upstream over HTTP: its endpoints, their circuits, and the calls between them. */
import { displayUrl } from '../config/display.ts';
import type { UpstreamConfig } from '../config/types.ts';
import { Balance, type Turn } from './balance.ts';
import { type Attempt, type Link, readOnce } from './call.ts';
import type { Verdict } from './circuit.ts';
import { CANCELLED, failure, traitsOf } from './failure.ts';
import { HELD_READS_BYTES, HeldBytes } from './held.ts';
import { HttpSessions } from './legacy-http.ts';
import { openListening } from './listen.ts';
import type { ListenDeps } from './listen-held.ts';
import { ListenStream } from './listen-stream.ts';
import { LISTEN_TIMES, type ListenTimes } from './listen-times.ts';
import { errorTypeOf } from './outcomes.ts';
import { type Endpoint, openEndpoint, sumStats } from './pool.ts';
import { streamOnce } from './stream.ts';
import { inTurns } from './turns.ts';
import type {
  Failure,
  Listening,
  ReadOutcome,
  ReadRequest,
  StreamOutcome,
  Upstream,
  UpstreamObserver,
} from './types.ts';
import type { BaseUpstream } from './upstream.ts';

export interface UpstreamDeps {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly observer: UpstreamObserver;
  /** Shared by all upstreams of a gateway; default: this one's own, of {@link HELD_READS_BYTES}. */
  readonly held?: HeldBytes;
  /** From 0 to below 1: when to listen again; default: `Math.random`. */
  readonly random?: () => number;
  /** Default: {@link LISTEN_TIMES}. */
  readonly listenTimes?: ListenTimes;
  /** Of an older era: how long a session may be unused; default: half an hour. */
  readonly sessionIdleMs?: number;
  /** Changes of state that an operator wants to read. *Never* holds credentials. */
  readonly log?: (level: 'info' | 'warn', message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** Opens an upstream; nothing is connected before the first call. */
export function createHttp(config: UpstreamConfig, deps: UpstreamDeps): BaseUpstream {
  const { name, timeouts, connections } = config;
  const { now, observer, log, held = new HeldBytes(HELD_READS_BYTES) } = deps;
  const endpoints = config.endpoints.map((url) =>
    openEndpoint(url, { connections, connectMs: timeouts.connectMs }),
  );
  let lastId = 0;
  let lastFailure: Failure | undefined;
  /** Listens that found no connection since anything was answered. */
  let refusedCount = 0;
  let state: 'up' | 'down' | 'unknown' = 'unknown';

  const become = (next: 'up' | 'down'): void => {
    if (state === next) return;
    state = next;
    observer.upstreamUp(name, next);
  };
  const balance = new Balance({
    endpoints,
    now,
    onEndpoint: (endpoint, change) => {
      const which = { upstream: name, ...(endpoints.length > 1 && { endpoint: displayUrl(endpoint.url) }) };
      if (change === 'closed') log?.('info', 'upstream answers again', which);
      else {
        const { kind: reason, detail } = lastFailure ?? CANCELLED;
        log?.('warn', 'upstream left alone for a while', { ...which, reason, detail });
      }
    },
    onChange: (change) => {
      observer.circuitOpen(name, change);
      if (change === 'open') become('down');
    },
  });

  const link: Link = {
    held,
    timeouts,
    now,
    nextId: () => `"hg-${(++lastId).toString(36)}"`,
    attempted: (outcome) => {
      if (outcome !== undefined) observer.attempt(name, outcome);
    },
  };

  const listenings = new Set<Listening>();
  const listenDeps: ListenDeps = {
    link: {
      ...link,
      attempted: (outcome) => {
        link.attempted(outcome);
        // Of an upstream that nobody asks, only its streams say that it is not there.
        if (outcome === 'connect' && ++refusedCount >= endpoints.length) become('down');
      },
    },
    balance,
    times: deps.listenTimes ?? LISTEN_TIMES,
    open: (parts) => new ListenStream(parts),
    random: deps.random ?? Math.random,
    answered: (turn, startedAt) => settle(turn, undefined, startedAt, 'ignored'),
  };

  const turnedAway = (): Failed => {
    observer.attempt(name, 'circuit_open');
    const rest = { retryAfterSeconds: balance.retryAfterSeconds };
    return {
      kind: 'failure',
      failure: failure('circuit_open', 'destination_unavailable', 'the circuit is open', rest),
    };
  };

  const settle = (turn: Turn, reason: Failure | undefined, startedAt: number, onTimeout: Verdict): void => {
    lastFailure = reason ?? lastFailure;
    const verdict = reason === undefined ? 'answered' : traitsOf(reason.kind).circuit;
    turn.settle(verdict === 'timed_out' ? onTimeout : verdict, startedAt);
    if (verdict !== 'answered') return;
    refusedCount = 0;
    become('up');
  };

  const operation = (method: string, errorType: string, startedAt: number): void =>
    observer.upstreamOperation(name, method, errorType, (now() - startedAt) / 1000);

  /** What the last of all attempts came to. */
  const concluded = <Outcome extends ReadOutcome | StreamOutcome>(
    attempt: Attempt<Outcome>,
  ): Outcome | Failed => {
    if (attempt.kind === 'opened') return attempt.outcome;
    // Every endpoint that may be asked has refused the connection.
    if (attempt.failure.kind === 'connect') become('down');
    return { kind: 'failure', failure: attempt.failure };
  };
  const retrying = (reason: 'connect' | 'reset'): void => observer.retry(name, reason);

  const upstream: Upstream = {
    name,
    async read(request) {
      const begunAt = now();
      const ended = (reason: Failure | undefined): void =>
        operation(request.method, reason === undefined ? '' : traitsOf(reason.kind).errorType, begunAt);
      // While somebody is asked, the server has shown that it is well, and what comes late is not its doing.
      const asking = new Set<Turn>();
      const { onRequest } = request;
      const asked = (turn: Turn): ReadRequest => ({
        ...request,
        ...(onRequest !== undefined && {
          onRequest: (message) => {
            if (!onRequest(message)) return false;
            if (!asking.has(turn)) settle(turn, undefined, begunAt, 'ignored');
            asking.add(turn);
            return true;
          },
        }),
      });
      const last = await inTurns<ReadOutcome>(balance, now, {
        use: 'read',
        idempotent: request.idempotent,
        signal: request.signal,
        once: (turn) =>
          readOnce(link, turn.endpoint, asked(turn), { startedAt: begunAt, limitMs: turn.limitMs }, ended),
        settle: (turn, attempt, startedAt) => {
          if (asking.has(turn)) return;
          const verdict = timeoutVerdict(request, timeouts.responseMs, now() - startedAt);
          settle(turn, failureIn(attempt), startedAt, verdict);
        },
        retrying,
      });
      if (last === undefined) return turnedAway();
      const outcome = concluded(last);
      if (outcome.kind !== 'large') operation(request.method, errorTypeOf(outcome), begunAt);
      return outcome;
    },
    async stream(request) {
      const begunAt = now();
      const ended = (reason: Failure | undefined): void =>
        operation(request.method, reason === undefined ? '' : traitsOf(reason.kind).errorType, begunAt);
      const last = await inTurns<StreamOutcome>(balance, now, {
        use: 'stream',
        // What flows up cannot be sent twice.
        idempotent: request.idempotent && request.body instanceof Uint8Array,
        signal: request.signal,
        once: ({ endpoint }) => streamOnce(link, endpoint, request, ended),
        // A tool may be slow all by itself: its timeout weighs no more than any other failure.
        settle: (turn, attempt, startedAt) => settle(turn, failureIn(attempt), startedAt, 'failed'),
        retrying,
      });
      if (last === undefined) return turnedAway();
      if (last.kind === 'unopened') ended(last.failure);
      return concluded(last);
    },
    listen(request, on) {
      const listening = openListening(listenDeps, request, on, () => listenings.delete(listening));
      listenings.add(listening);
      return listening;
    },
    stats: () => sumStats(endpoints.map((endpoint) => endpoint.stats())),
    available: () => balance.available,
    close: async () => {
      for (const listening of listenings) listening.close();
      await Promise.all(endpoints.map((endpoint) => endpoint.close()));
    },
  };
  const [first, ...others] = endpoints;
  if (others.length === 0) {
    const sessions = new HttpSessions(upstream, first as Endpoint, connections);
    return { ...upstream, sessions, events: (address, signal) => sessions.listen(address, signal) };
  }
  // A session is known to the endpoint that opened it: there is no going to another one.
  const alone = createHttp({ ...config, endpoints: config.endpoints.slice(0, 1) }, deps);
  return {
    ...upstream,
    sessions: alone.sessions,
    events: (address, signal) => alone.events(address, signal),
    stats: () => sumStats([upstream.stats(), alone.stats()]),
    close: async () => {
      await Promise.all([upstream.close(), alone.close()]);
    },
  };
}

type Failed = { readonly kind: 'failure'; readonly failure: Failure };

function failureIn(attempt: Attempt<ReadOutcome | StreamOutcome>): Failure | undefined {
  if (attempt.kind === 'unopened') return attempt.failure;
  return attempt.outcome.kind === 'failure' ? attempt.outcome.failure : undefined;
}

/** A list's first page waits 5 s; a probe of 2 s proves nothing, since servers take that long to start. */
const HANGING_MS = 4_000;

/** What a timeout of this read says: under a deadline that a healthy upstream keeps easily, that it hangs. */
function timeoutVerdict({ deadlineMs }: ReadRequest, responseMs: number, waitedMs: number): Verdict {
  return deadlineMs !== undefined && deadlineMs < responseMs && waitedMs >= HANGING_MS ? 'hung' : 'timed_out';
}
