/**
 * The read call: one JSON-RPC request under an id of the gateway's own, one answer read whole, or begun.
 *
 * Whether the upstream answers as JSON or as an event stream, compressed or not, is settled here; behind this
 * file there is an answer, a refusal, or a failure with a name. *Never* rejects.
 */
import { decoded } from './decode.ts';
import { Exchange } from './exchange.ts';
import { failure, type Stage, traitsOf } from './failure.ts';
import { type Head, requestHeaders, secondsOf } from './head.ts';
import type { HeldBytes } from './held.ts';
import { type Expected, readMessage } from './message.ts';
import { attemptOf } from './outcomes.ts';
import type { Endpoint } from './pool.ts';
import type { AttemptOutcome, Failure, ReadOutcome, ReadRequest } from './types.ts';

/** The body of a refusal is looked into for a JSON-RPC error up to this. */
const MAX_REFUSAL_BYTES = 1024 * 1024;

/** What every call to one upstream needs. */
export interface Link {
  /** What is held of answers that are still coming. */
  readonly held: HeldBytes;
  readonly timeouts: { readonly responseMs: number; readonly callMs: number; readonly streamIdleMs: number };
  /** Monotonic milliseconds. */
  now(): number;
  /** The JSON text of an id that was not used before. */
  nextId(): string;
  /** Told after each attempt. */
  attempted(outcome: AttemptOutcome | undefined): void;
}

/** Told when nothing is left of a call, with the failure that ended it, if one did. */
export type OnEnd = (reason: Failure | undefined) => void;

/** What became of one sending: `opened` once the head of an answer came, whatever it said. */
export type Attempt<Outcome> =
  | { readonly kind: 'opened'; readonly outcome: Outcome }
  | { readonly kind: 'unopened'; readonly failure: Failure; readonly stage: Stage };

/** Times of one attempt. */
export interface AttemptTimes {
  /** When its request began, the attempts before it included. */
  readonly startedAt: number;
  /** A bound on this attempt alone. */
  readonly limitMs: number | undefined;
}

const failed = (reason: Failure): ReadOutcome => ({ kind: 'failure', failure: reason });

/**
 * Asks once.
 * @param onEnd told when a large answer that was handed on has ended.
 */
export async function readOnce(
  link: Link,
  endpoint: Endpoint,
  request: ReadRequest,
  { startedAt, limitMs }: AttemptTimes,
  onEnd: OnEnd,
): Promise<Attempt<ReadOutcome>> {
  const { responseMs, callMs } = link.timeouts;
  const mostMs = request.pace === 'slow' ? callMs : responseMs;
  const patienceMs = Math.min(request.deadlineMs ?? mostMs, mostMs);
  const leftMs = Math.max(0, startedAt + patienceMs - link.now());
  const id = link.nextId();
  request.onSent?.(id);
  const exchange = new Exchange({
    path: endpoint.path,
    headers: requestHeaders(request),
    body: `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(request.method)},"params":${request.params}}`,
    signal: request.signal,
    // Half, so that there is time to ask another.
    overallMs: limitMs === undefined ? leftMs : Math.min(limitMs, leftMs / 2),
  });
  const opening = await exchange.open(request.pace === 'slow' ? endpoint.streams : endpoint.reads);
  if (opening.kind === 'failure') {
    link.attempted(traitsOf(opening.failure.kind).attempt);
    return { ...opening, kind: 'unopened' };
  }
  /** Somebody is asked, and takes the time that a call has. */
  let asked = false;
  const extend = (): void => {
    if (request.deadlineMs !== undefined) return;
    const callLeftMs = startedAt + callMs - link.now();
    exchange.extend(Math.max(0, asked ? callLeftMs : Math.min(patienceMs, callLeftMs)));
  };
  const onNotification = (message: Uint8Array): void => {
    extend();
    request.onNotification?.(message);
  };
  const { maxBytes, flow, onRequest } = request;
  const expected: Expected = {
    ...{ id, held: link.held, maxBytes, onNotification },
    ...(flow !== undefined && { flow }),
    ...(onRequest !== undefined && {
      onRequest: (message: Uint8Array) => {
        if (!onRequest(message)) return false;
        asked = true;
        extend();
        return true;
      },
    }),
  };
  const outcome = await readReply(link, opening.head, exchange, expected, (reason) => {
    link.attempted(reason === undefined ? 'ok' : traitsOf(reason.kind).attempt);
    onEnd(reason);
  });
  if (outcome.kind === 'large') {
    // Like any streamed answer: all of it has its time, and so has each silence.
    exchange.extend(Math.max(0, startedAt + callMs - link.now()));
    exchange.idleAfter(link.timeouts.streamIdleMs);
  } else {
    link.attempted(attemptOf(outcome));
  }
  return { kind: 'opened', outcome };
}

async function readReply(
  link: Link,
  head: Head,
  exchange: Exchange,
  expected: Expected,
  onEnd: OnEnd,
): Promise<ReadOutcome> {
  const { status } = head;
  const unusable = unusableHead(head);
  if (unusable !== undefined) {
    exchange.discard();
    return failed(unusable);
  }
  const body = decoded(exchange, head.codings);
  if (body === undefined) {
    exchange.discard();
    return failed(
      failure('broken', 'http_response_content_coding', `coded as ${head.codings.join(', ').slice(0, 100)}`),
    );
  }
  const success = status < 300;
  const { flow: _, ...refusal } = expected;
  const found = await readMessage(
    head,
    exchange,
    body,
    success ? expected : { ...refusal, maxBytes: Math.min(expected.maxBytes, MAX_REFUSAL_BYTES) },
  );
  if (found.kind === 'large') {
    found.result.onEnd(onEnd);
    return { kind: 'large', tail: found.result };
  }
  if (found.kind === 'answer')
    return {
      ...{ kind: 'answer', answer: found.answer, status, receivedAt: link.now() },
      ...(head.session !== undefined && { session: head.session }),
    };
  if (success || found.failure.kind === 'cancelled') return failed({ ...found.failure, status });
  return { kind: 'refused', status, challenge: head.challenge, retryAfter: head.retryAfter };
}

/**
 * Why an answer need not be read: a redirect is never followed (R36), a 5xx is a failure whatever it says.
 * 501 says that a method is not there, as 404 and 405 do: a refusal (R17).
 */
export function unusableHead(head: Head): Failure | undefined {
  const { status } = head;
  if (status >= 300 && status < 400)
    return failure('broken', 'http_protocol_error', `a redirect, ${status}`, { status });
  if (status < 500 || status === 501) return undefined;
  const retryAfterSeconds = secondsOf(head.retryAfter);
  const rest = retryAfterSeconds === undefined ? { status } : { status, retryAfterSeconds };
  return failure('http_5xx', 'destination_unavailable', `status ${status}`, rest);
}
