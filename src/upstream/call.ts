/**
 * The read call: one JSON-RPC request under an id of the gateway's own, one answer read whole.
 *
 * Whether the upstream answers as JSON or as an event stream, compressed or not, is settled here; behind this
 * file there is an answer, a refusal, or a failure with a name. *Never* rejects.
 */
import { type Answer, joinBytes, readAnswer } from '../protocol/answer.ts';
import { JsonWatch, sameId } from '../protocol/json-watch.ts';
import { SseFramer } from '../protocol/sse.ts';
import { decoded } from './decode.ts';
import { Exchange } from './exchange.ts';
import { failure, mayRetry, traitsOf, UpstreamError } from './failure.ts';
import { type Head, requestHeaders, secondsOf } from './head.ts';
import type { Endpoint } from './pool.ts';
import type { AttemptOutcome, Failure, ReadOutcome, ReadRequest } from './types.ts';

/** The body of a refusal is looked into for a JSON-RPC error up to this. */
const MAX_REFUSAL_BYTES = 1024 * 1024;
/** What framing (`event: message`, `data: ` a line) may add to a message of `maxBytes`. */
const FRAMING_BYTES = 64 * 1024;
/** A keep-alive race is lost once, hardly ever twice. */
const MAX_RETRIES = 1;

/** What every call to one upstream needs. */
export interface Link {
  readonly endpoint: Endpoint;
  readonly timeouts: { readonly responseMs: number; readonly callMs: number; readonly streamIdleMs: number };
  /** Monotonic milliseconds. */
  now(): number;
  /** The JSON text of an id that was not used before. */
  nextId(): string;
  /** Told after each attempt. */
  attempted(outcome: AttemptOutcome | undefined): void;
  /** Told before each repetition. */
  retrying(): void;
}

interface Attempt {
  readonly outcome: ReadOutcome;
  readonly retry: boolean;
}

const failed = (reason: Failure): ReadOutcome => ({ kind: 'failure', failure: reason });

/** Asks, and once more where that is allowed (R36). */
export async function read(link: Link, request: ReadRequest): Promise<ReadOutcome> {
  const startedAt = link.now();
  for (let retries = 0; ; retries++) {
    const { outcome, retry } = await attempt(link, request, startedAt);
    link.attempted(attemptOf(outcome));
    if (!retry || retries >= MAX_RETRIES || request.signal.aborted) return outcome;
    link.retrying();
  }
}

async function attempt(link: Link, request: ReadRequest, startedAt: number): Promise<Attempt> {
  const { responseMs, callMs } = link.timeouts;
  const patienceMs = Math.min(request.deadlineMs ?? responseMs, responseMs);
  const id = link.nextId();
  const exchange = new Exchange({
    path: link.endpoint.path,
    headers: requestHeaders(request),
    body: `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(request.method)},"params":${request.params}}`,
    signal: request.signal,
    overallMs: Math.max(0, startedAt + patienceMs - link.now()),
  });
  const opening = await exchange.open(link.endpoint.reads);
  if (opening.kind === 'failure') {
    return { outcome: failed(opening.failure), retry: mayRetry(opening.failure, opening.stage, request) };
  }
  const onNotification = (message: Uint8Array): void => {
    if (request.deadlineMs === undefined) {
      exchange.extend(Math.max(0, Math.min(patienceMs, startedAt + callMs - link.now())));
    }
    request.onNotification?.(message);
  };
  const outcome = await readReply(link, opening.head, exchange, {
    id,
    maxBytes: request.maxBytes,
    onNotification,
  });
  return { outcome, retry: false };
}

interface Expected {
  readonly id: string;
  readonly maxBytes: number;
  readonly onNotification: (message: Uint8Array) => void;
}

async function readReply(
  link: Link,
  head: Head,
  exchange: Exchange,
  expected: Expected,
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
  const maxBytes = success ? expected.maxBytes : Math.min(expected.maxBytes, MAX_REFUSAL_BYTES);
  const found = await readMessage(head, exchange, body, { ...expected, maxBytes });
  if (found.kind === 'answer')
    return { kind: 'answer', answer: found.answer, status, receivedAt: link.now() };
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

type Found =
  | { readonly kind: 'answer'; readonly answer: Extract<Answer, { kind: 'result' | 'error' }> }
  | { readonly kind: 'failure'; readonly failure: Failure };

const none = (reason: Failure): Found => ({ kind: 'failure', failure: reason });
const notMcp = (detail: string): Found => none(failure('broken', 'http_protocol_error', detail));
const tooLarge = (maxBytes: number): Found =>
  none(failure('too_large', 'http_response_body_size', `above ${maxBytes} bytes`));

async function readMessage(
  head: Head,
  exchange: Exchange,
  body: AsyncIterable<Uint8Array>,
  expected: Expected,
): Promise<Found> {
  try {
    switch (head.media) {
      case 'json':
        return await readJson(body, expected);
      case 'sse':
        return await readEvents(exchange, body, expected);
      case 'other':
        exchange.discard();
        return notMcp('neither JSON nor an event stream');
    }
  } catch (error) {
    if (error instanceof UpstreamError) return none(error.failure);
    throw error;
  }
}

async function readJson(body: AsyncIterable<Uint8Array>, { id, maxBytes }: Expected): Promise<Found> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body) {
    size += part.length;
    if (size > maxBytes) return tooLarge(maxBytes);
    parts.push(part);
  }
  const only = parts.length === 1 ? parts[0] : undefined;
  return found(readAnswer(only ?? joinBytes(parts), id));
}

async function readEvents(
  exchange: Exchange,
  body: AsyncIterable<Uint8Array>,
  expected: Expected,
): Promise<Found> {
  const { maxBytes } = expected;
  const framer = new SseFramer(maxBytes + FRAMING_BYTES);
  for await (const chunk of body) {
    for (const event of framer.push(chunk)) {
      if (event.part !== 'whole') return tooLarge(maxBytes);
      if (event.data === undefined || !event.message) continue;
      const message = joinBytes(event.data);
      if (message.length > maxBytes) return tooLarge(maxBytes);
      const answer = takeMessage(message, expected);
      if (answer === undefined) continue;
      // What follows the response is not for us; what little it is may run out, to spare the connection.
      exchange.discard();
      return found(answer);
    }
  }
  return none(failure('broken', 'http_response_incomplete', 'the event stream ended without a response'));
}

/** @returns the answer, if the message is the response to this request. */
function takeMessage(message: Uint8Array, { id, onNotification }: Expected): Answer | undefined {
  const watch = new JsonWatch();
  watch.push(message);
  if (watch.state !== 'complete') return undefined;
  if (watch.kind === 'notification') onNotification(message);
  if (watch.kind !== 'response') return undefined;
  // An error without an id, on the stream of this request, can only be about this request.
  const ours = watch.id === undefined || watch.id === 'null' ? watch.isError : sameId(watch.id, id);
  return ours ? readAnswer(message, id) : undefined;
}

function found(answer: Answer): Found {
  return answer.kind === 'broken' ? notMcp(answer.reason) : { kind: 'answer', answer };
}

function attemptOf(outcome: ReadOutcome): AttemptOutcome | undefined {
  switch (outcome.kind) {
    case 'answer':
      return outcome.answer.kind === 'error' ? 'rpc_error' : 'ok';
    case 'refused':
      return 'http_4xx';
    case 'failure':
      return traitsOf(outcome.failure.kind).attempt;
  }
}
