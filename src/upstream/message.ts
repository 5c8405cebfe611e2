/**
 * Finds the one JSON-RPC message that answers a read, in a body that is JSON or an event stream (R32).
 *
 * Collected up to a bound. A result above it either is a failure, or flows: what has come becomes the beginning of
 * a {@link LargeResult}. It flows sooner where the head announces its length, and where all reads together hold
 * too much.
 */
import { type Answer, joinBytes, readAnswer } from '../protocol/answer.ts';
import { JsonWatch, sameId } from '../protocol/json-watch.ts';
import { ResultFlow } from '../protocol/result-flow.ts';
import { type SseEvent, SseFramer } from '../protocol/sse.ts';
import type { Exchange } from './exchange.ts';
import { failure, UpstreamError } from './failure.ts';
import type { Head } from './head.ts';
import { type HeldBytes, type Holding, SMALL_READ_BYTES } from './held.ts';
import { type LargeParts, LargeResult } from './large.ts';
import type { Failure, ReadRequest } from './types.ts';

/** What framing (`event: message`, `data: ` a line) may add to a message of `maxBytes`. */
const FRAMING_BYTES = 64 * 1024;

/** What is waited for. */
export interface Expected extends Pick<ReadRequest, 'maxBytes' | 'flow' | 'onRequest'> {
  /** JSON text of the id the request went out with. */
  readonly id: string;
  readonly held: HeldBytes;
  readonly onNotification: (message: Uint8Array) => void;
}

export type Found =
  | { readonly kind: 'answer'; readonly answer: Extract<Answer, { kind: 'result' | 'error' }> }
  | { readonly kind: 'large'; readonly result: LargeResult }
  | { readonly kind: 'failure'; readonly failure: Failure };

const none = (reason: Failure): Found => ({ kind: 'failure', failure: reason });
const notMcp = (detail: string): Found => none(failure('broken', 'http_protocol_error', detail));
const tooLarge = (maxBytes: number): Found =>
  none(failure('too_large', 'http_response_body_size', `above ${maxBytes} bytes`));

/** Reads a body to its end, or to where it is known what it is. *Never* rejects. */
export async function readMessage(
  head: Head,
  exchange: Exchange,
  body: AsyncIterable<Uint8Array>,
  expected: Expected,
): Promise<Found> {
  const source = body[Symbol.asyncIterator]();
  const holding = expected.held.open();
  let result: Found | undefined;
  try {
    switch (head.media) {
      case 'json':
        result = await readJson(head, exchange, source, holding, expected);
        break;
      case 'sse':
        result = await readEvents(exchange, source, holding, expected);
        break;
      case 'other':
        exchange.discard();
        result = notMcp('neither JSON nor an event stream');
    }
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    result = none(error.failure);
  } finally {
    if (result?.kind !== 'large') {
      holding.release();
      await source.return?.();
    }
  }
  return result;
}

async function readJson(
  head: Head,
  exchange: Exchange,
  source: AsyncIterator<Uint8Array>,
  holding: Holding,
  expected: Expected,
): Promise<Found> {
  const { id, maxBytes } = expected;
  const announced = head.codings.length === 0 ? (head.lengthBytes ?? 0) : 0;
  const parts: Uint8Array[] = [];
  let size = 0;
  let beginning: Beginning | undefined;
  for (;;) {
    const { done, value } = await source.next();
    if (done === true) break;
    size += value.length;
    parts.push(value);
    holding.set(size);
    if (expected.flow !== undefined && shouldFlow(size, Math.max(size, announced), expected)) {
      beginning ??= new Beginning(id, expected.flow.array);
      const found = beginning.take(parts, { exchange, source, holding });
      if (found !== undefined) return found;
    }
    if (size > maxBytes) return tooLarge(maxBytes);
  }
  const only = parts.length === 1 ? parts[0] : undefined;
  return found(readAnswer(only ?? joinBytes(parts), id));
}

function shouldFlow(size: number, length: number, { maxBytes, held }: Expected): boolean {
  return length > maxBytes || (size > SMALL_READ_BYTES && held.over);
}

/** A result that is about to flow, as soon as it has begun. */
class Beginning {
  readonly #flow: ResultFlow;
  readonly #begun: Uint8Array[] = [];
  #taken = 0;

  constructor(id: string, array: string) {
    this.#flow = new ResultFlow({ id, array });
  }

  /** Looks at the parts it has not seen. @returns undefined while there is no result yet. */
  take(parts: readonly Uint8Array[], rest: Omit<LargeParts, 'flow'>): Found | undefined {
    const flow = this.#flow;
    for (; this.#taken < parts.length; this.#taken++) {
      this.#begun.push(...flow.push(parts[this.#taken] as Uint8Array));
    }
    if (flow.state === 'broken') return notMcp(flow.reason);
    if (!flow.begun) return undefined;
    return { kind: 'large', result: new LargeResult({ ...rest, flow }, this.#begun) };
  }
}

async function readEvents(
  exchange: Exchange,
  source: AsyncIterator<Uint8Array>,
  holding: Holding,
  expected: Expected,
): Promise<Found> {
  const { maxBytes, flow } = expected;
  const framer = new SseFramer(maxBytes + FRAMING_BYTES);
  for (;;) {
    const { done, value } = await source.next();
    if (done === true) break;
    const events = framer.push(value);
    for (const [index, event] of events.entries()) {
      if (event.part !== 'whole') {
        if (flow === undefined) return tooLarge(maxBytes);
        const rest = dataOf(source, framer, events.slice(index + 1));
        const beginning = new Beginning(expected.id, flow.array);
        return beginning.take(event.data ?? [], { exchange, source: rest, holding }) ?? tooLarge(maxBytes);
      }
      if (event.data === undefined || !event.message) continue;
      const message = joinBytes(event.data);
      if (message.length > maxBytes) return tooLarge(maxBytes);
      const answer = takeMessage(message, expected);
      if (answer === undefined) continue;
      // What follows the response is not for us; what little it is may run out, to spare the connection.
      exchange.discard();
      return found(answer);
    }
    holding.set(framer.heldBytes);
    if (flow !== undefined && framer.heldBytes > SMALL_READ_BYTES && expected.held.over) framer.holdNothing();
  }
  return none(failure('broken', 'http_response_incomplete', 'the event stream ended without a response'));
}

/** The data of an event that has begun to flow, to its end. @throws UpstreamError when it has none. */
async function* dataOf(
  source: AsyncIterator<Uint8Array>,
  framer: SseFramer,
  begun: readonly SseEvent[],
): AsyncGenerator<Uint8Array, undefined> {
  let events = begun;
  for (;;) {
    for (const event of events) {
      yield* event.data ?? [];
      if (event.part !== 'last') continue;
      if (event.message) return undefined;
      throw new UpstreamError(failure('broken', 'http_protocol_error', 'the event was no message'));
    }
    const { done, value } = await source.next();
    if (done === true) break;
    events = framer.push(value);
  }
  throw new UpstreamError(failure('reset', 'http_response_incomplete', 'the event stream ended in an event'));
}

/** @returns the answer, if the message is the response to this request. */
function takeMessage(message: Uint8Array, { id, onNotification, onRequest }: Expected): Answer | undefined {
  const watch = new JsonWatch();
  watch.push(message);
  if (watch.state !== 'complete') return undefined;
  if (watch.kind === 'notification') onNotification(message);
  if (watch.kind === 'request') onRequest?.(message);
  if (watch.kind !== 'response') return undefined;
  // An error without an id, on the stream of this request, can only be about this request.
  const ours = watch.id === undefined || watch.id === 'null' ? watch.isError : sameId(watch.id, id);
  return ours ? readAnswer(message, id) : undefined;
}

function found(answer: Answer): Found {
  return answer.kind === 'broken' ? notMcp(answer.reason) : { kind: 'answer', answer };
}
