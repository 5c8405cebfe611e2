/**
 * One `subscriptions/listen` stream of an upstream, from the request to its end.
 *
 * Trusted is only what comes behind the acknowledgment and carries this stream's id (R39). *Never* rejects.
 * *Bounded by* {@link MAX_EVENT_BYTES}, and before the acknowledgment by what was asked. *Spec:* basic/patterns/subscriptions.
 */
import { joinBytes } from '../protocol/answer.ts';
import { filterText, type ListenFilter } from '../protocol/listen-filter.ts';
import { LISTEN_METHOD } from '../protocol/notice.ts';
import { Abort } from '../protocol/signal.ts';
import { SseFramer } from '../protocol/sse.ts';
import { type Link, unusableHead } from './call.ts';
import { decoded } from './decode.ts';
import { Exchange } from './exchange.ts';
import { failure, UpstreamError } from './failure.ts';
import { type Head, requestHeaders, secondsOf } from './head.ts';
import {
  ended,
  gone,
  Listened,
  notOffered,
  refusedWith,
  type StreamEnd,
  type StreamHooks,
} from './listen-take.ts';
import { readMessage } from './message.ts';
import type { Endpoint } from './pool.ts';
import type { ListenRequest } from './types.ts';

/** An event, its framing included; a notification carries an address, no content. */
const MAX_EVENT_BYTES = 64 * 1024;
/** A server may spell what is asked in its own way, at worst every character as `\uXXXX`. */
const ECHO_FACTOR = 6;

export interface StreamParts {
  readonly link: Link;
  readonly endpoint: Endpoint;
  readonly listener: Omit<ListenRequest, 'filter'>;
  readonly filter: ListenFilter;
  readonly ackMs: number;
  readonly hooks: StreamHooks;
}

const tooLarge = (): StreamEnd =>
  ended(failure('too_large', 'http_response_body_size', `an event above ${MAX_EVENT_BYTES} bytes`));

/** Statuses that say nothing of the next attempt. */
const PASSING: ReadonlySet<number> = new Set([408, 421, 425, 429]);
/** See the file's head. Opened when it is made. */
export class ListenStream {
  readonly #parts: StreamParts;
  readonly #id: string;
  readonly #text: string;
  readonly #listened: Listened;
  readonly #exchange: Exchange;
  readonly #abort = new Abort();

  constructor(parts: StreamParts) {
    const { link, endpoint, listener, filter, ackMs } = parts;
    this.#parts = parts;
    this.#id = link.nextId();
    this.#text = filterText(filter);
    // From then on a stream may be silent for days: only the kernel's keep-alive ends it.
    this.#listened = new Listened(this.#id, parts.hooks, () => this.#exchange.untimed());
    const params = `{"_meta":{${listener.meta}},"notifications":${this.#text}}`;
    this.#exchange = new Exchange({
      path: endpoint.path,
      headers: requestHeaders({ ...listener, method: LISTEN_METHOD, name: undefined }),
      body: `{"jsonrpc":"2.0","id":${this.#id},"method":"${LISTEN_METHOD}","params":${params}}`,
      signal: this.#abort,
      overallMs: ackMs,
    });
    void this.#run();
  }

  /** Closes the stream, which is how it is cancelled. *Spec:* basic/patterns/cancellation. */
  stop(): void {
    this.#abort.abort(undefined);
  }

  async #run(): Promise<void> {
    let end: StreamEnd;
    try {
      end = await this.#read();
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      end = ended(error.failure);
    }
    if (!this.#abort.aborted) this.#parts.hooks.ended(end);
  }

  async #read(): Promise<StreamEnd> {
    const { endpoint } = this.#parts;
    const exchange = this.#exchange;
    const opening = await exchange.open(endpoint.listens());
    if (opening.kind === 'failure') return ended(opening.failure);
    const { head } = opening;
    const refused = refusalIn(head);
    if (refused !== undefined) {
      exchange.discard();
      return refused;
    }
    const body = decoded(exchange, head.codings);
    if (body !== undefined && head.media === 'sse') return this.#follow(body);
    if (body !== undefined && head.media === 'json') return this.#answered(head, body);
    exchange.discard();
    return notOffered('neither an event stream nor JSON', 'ok');
  }

  /** One JSON answer is no stream: an error says why, and a result that there is nothing to wait for. */
  async #answered(head: Head, body: AsyncIterable<Uint8Array>): Promise<StreamEnd> {
    const found = await readMessage(head, this.#exchange, body, {
      id: this.#id,
      held: this.#parts.link.held,
      maxBytes: MAX_EVENT_BYTES,
      onNotification: () => undefined,
    });
    if (found.kind === 'failure') return ended(found.failure);
    if (found.kind === 'answer' && found.answer.kind === 'error') return refusedWith(found.answer.code);
    return notOffered('answered without a stream', 'ok');
  }

  async #follow(body: AsyncIterable<Uint8Array>): Promise<StreamEnd> {
    const mostBytes = MAX_EVENT_BYTES + ECHO_FACTOR * this.#text.length;
    const framer = new SseFramer(mostBytes);
    for await (const chunk of body) {
      for (const { part, raw, data, message } of framer.push(chunk)) {
        const limit = this.#listened.acknowledged ? MAX_EVENT_BYTES : mostBytes;
        if (part !== 'whole' || bytesOf(raw) > limit) return tooLarge();
        const end = data !== undefined && message ? this.#listened.take(joinBytes(data)) : undefined;
        if (end !== undefined) return end;
        if (this.#abort.aborted) return gone('stopped');
      }
      if (this.#listened.acknowledged && framer.heldBytes > MAX_EVENT_BYTES) return tooLarge();
    }
    return gone('the event stream ended');
  }
}

/** What a status alone says; undefined where the body is to be read. */
function refusalIn(head: Head): StreamEnd | undefined {
  const { status } = head;
  const unusable = unusableHead(head);
  if (unusable !== undefined) return ended(unusable);
  if (status < 300) return undefined;
  if (!PASSING.has(status)) return notOffered(`status ${status}`, 'http_4xx');
  const retryAfterSeconds = secondsOf(head.retryAfter);
  const rest = retryAfterSeconds === undefined ? { status } : { status, retryAfterSeconds };
  return {
    kind: 'failed',
    failure: failure('broken', 'destination_unavailable', `status ${status}`, rest),
    outcome: 'http_4xx',
  };
}

function bytesOf(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, piece) => sum + piece.length, 0);
}
