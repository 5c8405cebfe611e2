/** One upstream: its pools, its circuit, and the calls between them. */
import type { UpstreamConfig } from '../config/types.ts';
import { type Link, read } from './call.ts';
import { Circuit, type Pass, type Verdict } from './circuit.ts';
import { failure, traitsOf } from './failure.ts';
import { type Endpoint, openEndpoint, sumStats } from './pool.ts';
import { stream } from './stream.ts';
import type { Failure, ReadOutcome, ReadRequest, Upstream, UpstreamObserver } from './types.ts';

export interface UpstreamDeps {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly observer: UpstreamObserver;
  /** Changes of state that an operator wants to read. *Never* holds credentials. */
  readonly log?: (level: 'info' | 'warn', message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** JSON-RPC codes that may be a label (reference/metrics.md); any other is `other`. */
const LABEL_CODES: ReadonlySet<number> = new Set([
  -32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022,
]);

/** Opens an upstream; nothing is connected before the first call. */
export function createUpstream(config: UpstreamConfig, deps: UpstreamDeps): Upstream {
  const { name, timeouts, connections } = config;
  const { now, observer, log } = deps;
  const endpoints = config.endpoints.map((url) =>
    openEndpoint(url, { connections, connectMs: timeouts.connectMs }),
  );
  let lastId = 0;
  let lastFailure: Failure | undefined;
  let state: 'up' | 'down' | 'unknown' = 'unknown';

  const become = (next: 'up' | 'down'): void => {
    if (state === next) return;
    state = next;
    observer.upstreamUp(name, next);
  };
  const circuit = new Circuit(now, (change) => {
    observer.circuitOpen(name, change);
    if (change === 'open') {
      become('down');
      log?.('warn', 'upstream left alone for a while', {
        upstream: name,
        reason: lastFailure?.kind,
        detail: lastFailure?.detail,
      });
    } else {
      log?.('info', 'upstream answers again', { upstream: name });
    }
  });

  const link: Link = {
    endpoint: endpoints[0] as Endpoint,
    timeouts,
    now,
    nextId: () => `"hg-${(++lastId).toString(36)}"`,
    attempted: (outcome) => {
      if (outcome !== undefined) observer.attempt(name, outcome);
    },
    retrying: () => observer.retry(name, 'reset'),
  };

  const turnedAway = (): { readonly kind: 'failure'; readonly failure: Failure } => {
    observer.attempt(name, 'circuit_open');
    const rest = { retryAfterSeconds: circuit.retryAfterSeconds };
    return {
      kind: 'failure',
      failure: failure('circuit_open', 'destination_unavailable', 'the circuit is open', rest),
    };
  };

  const settle = (pass: Pass, reason: Failure | undefined, startedAt: number, onTimeout: Verdict): void => {
    lastFailure = reason ?? lastFailure;
    const verdict = reason === undefined ? 'answered' : traitsOf(reason.kind).circuit;
    circuit.settle(pass, verdict === 'timed_out' ? onTimeout : verdict, startedAt);
    if (verdict === 'answered') become('up');
    else if (reason?.kind === 'connect') become('down');
  };

  const operation = (method: string, errorType: string, startedAt: number): void =>
    observer.upstreamOperation(name, method, errorType, (now() - startedAt) / 1000);

  return {
    name,
    async read(request) {
      const startedAt = now();
      const pass = circuit.enter();
      if (pass === 'open') return turnedAway();
      const outcome = await read(link, request);
      const reason = outcome.kind === 'failure' ? outcome.failure : undefined;
      settle(pass, reason, startedAt, timeoutVerdict(request, timeouts.responseMs, now() - startedAt));
      operation(request.method, errorTypeOf(outcome), startedAt);
      return outcome;
    },
    async stream(request) {
      const startedAt = now();
      const pass = circuit.enter();
      if (pass === 'open') return turnedAway();
      const outcome = await stream(link, request, (reason) =>
        operation(request.method, reason === undefined ? '' : traitsOf(reason.kind).errorType, startedAt),
      );
      // A tool may be slow all by itself: its timeout weighs no more than any other failure.
      settle(pass, outcome.kind === 'failure' ? outcome.failure : undefined, startedAt, 'failed');
      return outcome;
    },
    stats: () => sumStats(endpoints.map((endpoint) => endpoint.stats())),
    available: () => circuit.available,
    close: async () => {
      await Promise.all(endpoints.map((endpoint) => endpoint.close()));
    },
  };
}

/** A list's first page waits 5 s; a probe of 2 s proves nothing, since servers take that long to start. */
const HANGING_MS = 4_000;

/** What a timeout of this read says: under a deadline that a healthy upstream keeps easily, that it hangs. */
function timeoutVerdict({ deadlineMs }: ReadRequest, responseMs: number, waitedMs: number): Verdict {
  return deadlineMs !== undefined && deadlineMs < responseMs && waitedMs >= HANGING_MS ? 'hung' : 'timed_out';
}

function errorTypeOf(outcome: ReadOutcome): string {
  switch (outcome.kind) {
    case 'answer':
      if (outcome.answer.kind === 'result') return '';
      return LABEL_CODES.has(outcome.answer.code) ? String(outcome.answer.code) : 'other';
    case 'refused':
      return 'other';
    case 'failure':
      return traitsOf(outcome.failure.kind).errorType;
  }
}
