/** What sessions of an older era need of HTTP, beside requests: their event stream, and their end. */
import { joinBytes } from '../protocol/answer.ts';
import { PROTOCOL_VERSION_HEADER } from '../protocol/headers.ts';
import { Abort, type Signal } from '../protocol/signal.ts';
import { SseFramer } from '../protocol/sse.ts';
import { unusableHead } from './call.ts';
import { decoded } from './decode.ts';
import { Exchange } from './exchange.ts';
import { failure } from './failure.ts';
import { requestHeaders } from './head.ts';
import type { SessionEvents } from './legacy-listen.ts';
import type { Address, SessionWire } from './legacy-session.ts';
import type { Endpoint } from './pool.ts';
import type { Upstream } from './types.ts';

/** An event of a session's stream; what it says is short. */
const MAX_EVENT_BYTES = 64 * 1024;
/** How long a server may take to open the event stream. */
const OPEN_MS = 10_000;
/** How long a server may take to accept a notification, or an answer to its own question. */
const TELL_MS = 5_000;
/** Ending a session is a courtesy. */
const END_MS = 1_000;

export class HttpSessions implements SessionWire {
  readonly read: Upstream['read'];
  readonly #endpoint: Endpoint;
  readonly #mostAsides: number;
  #asides = 0;

  /** @param connections of the upstream: half of those for streams are for what is asked on them. */
  constructor({ read }: Pick<Upstream, 'read'>, endpoint: Endpoint, connections: number) {
    this.read = read;
    this.#endpoint = endpoint;
    this.#mostAsides = Math.floor(connections / 2);
  }

  /** As many at once as leave room for those who listen for changes. */
  async events(address: Address, signal: Signal): Promise<SessionEvents> {
    if (this.#asides >= this.#mostAsides) return { kind: 'failure', failure: NO_ROOM };
    this.#asides++;
    const leave = (): void => void this.#asides--;
    const events = await this.listen(address, signal);
    if (events.kind === 'stream') return { ...events, messages: ended(events.messages, leave) };
    leave();
    return events;
  }

  /** Whatever the circuit says: a server that waits for an answer must get it. */
  async tell({ version, headers }: Address, method: string, message: string): Promise<boolean> {
    const exchange = new Exchange({
      path: this.#endpoint.path,
      headers: requestHeaders({ method, name: undefined, version, headers }),
      body: message,
      signal: new Abort(),
      overallMs: TELL_MS,
    });
    const opening = await exchange.open(this.#endpoint.reads);
    exchange.discard();
    return opening.kind === 'head' && opening.head.status < 300;
  }

  /** Opens the event stream of a session. *Never* rejects. */
  async listen(address: Address, signal: Signal): Promise<SessionEvents> {
    const exchange = new Exchange({
      method: 'GET',
      path: this.#endpoint.path,
      headers: ['accept', 'text/event-stream', 'accept-encoding', 'identity', ...flat(address)],
      signal,
      overallMs: OPEN_MS,
    });
    const opening = await exchange.open(this.#endpoint.listens());
    if (opening.kind === 'failure') return { kind: 'failure', failure: opening.failure };
    const { head } = opening;
    const unusable = unusableHead(head);
    const body = unusable === undefined && head.media === 'sse' ? decoded(exchange, head.codings) : undefined;
    if (head.status < 300 && body !== undefined) {
      exchange.untimed();
      return { kind: 'stream', messages: messagesOf(body) };
    }
    exchange.discard();
    if (unusable !== undefined) return { kind: 'failure', failure: unusable };
    return { kind: 'refused', status: head.status };
  }

  async end(address: Address): Promise<void> {
    const exchange = new Exchange({
      method: 'DELETE',
      path: this.#endpoint.path,
      headers: flat(address),
      signal: new Abort(),
      overallMs: END_MS,
    });
    await exchange.open(this.#endpoint.reads);
    exchange.discard();
  }
}

function flat({ version, headers }: Address): string[] {
  return [PROTOCOL_VERSION_HEADER, version, ...Object.entries(headers).flat()];
}

const NO_ROOM = failure('full', 'connection_limit_reached', 'too many streams are open');

async function* ended<T>(messages: AsyncIterable<T>, over: () => void): AsyncGenerator<T> {
  try {
    yield* messages;
  } finally {
    over();
  }
}

/** @throws UpstreamError when the stream breaks off. */
async function* messagesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const framer = new SseFramer(MAX_EVENT_BYTES);
  for await (const chunk of body) {
    for (const { part, data, message } of framer.push(chunk)) {
      if (part === 'whole' && data !== undefined && message) yield joinBytes(data);
    }
  }
}
