/**
 * One POST from its arrival to the end of its answer: the exchange that the request path sees, the response that
 * is written, and what is counted and logged of both when it is over.
 *
 * One per request and on the path of every cache hit: no closures, no promises, no timers of its own.
 */

import type { Admission } from '../auth/admission.ts';
import type { ListenConfig } from '../config/types.ts';
import type { StreamKind } from '../observability/labels.ts';
import type { Refusal } from '../protocol/errors.ts';
import type { Exchange, Facts, Handle } from '../protocol/exchange.ts';
import { type Head, readHead } from '../protocol/headers.ts';
import type { Listed, Roster } from '../protocol/roster.ts';
import { Abort, type Signal } from '../protocol/signal.ts';
import { type AccountContext, account, type Ending } from './account.ts';
import { type BodyOwner, type Collected, RequestBody } from './body.ts';
import type { Cors, FlatHeaders } from './cors.ts';
import { dataLines, EVENT_CLOSE, EVENT_OPEN } from './events.ts';
import { Heart } from './heart.ts';
import type { Incoming, Outgoing } from './messages.ts';
import type { Shedding } from './shedding.ts';
import type { Sweeper } from './sweeper.ts';

/** What a reload replaces: each request takes what holds when it needs it. */
export interface EdgeSettings {
  limits: ListenConfig['limits'];
  headerCount: number;
  paths: ReadonlySet<string>;
  admission: Admission;
  cors: Cors;
  clientOf: AccountContext['clientOf'];
}

/** What all requests of a listener share. */
export interface EdgeContext extends EdgeSettings, Omit<AccountContext, 'clientOf'> {
  readonly handle: Handle;
  readonly sweeper: Sweeper;
  readonly shedding: Shedding;
  /** Called when a drain begins: who waits for a client's next request waits in vain. */
  readonly onClosing: () => void;
  /** Takes a body that has been collected. */
  readonly collected: (live: Live, body: Collected) => void;
  readonly open: Roster<Live>;
  /** `closing`: what comes is refused, and every connection closes behind its answer. */
  phase: 'starting' | 'open' | 'draining' | 'closing' | 'closed';
  /** Called when the last open request is over. */
  onEmpty: (() => void) | undefined;
}

/** Why a signal of the edge fired: the client has left, or the gateway is shutting down and its grace is over. */
export class ExchangeEnded extends Error {
  override name = 'ExchangeEnded';
  readonly code: Ending;

  constructor(code: Ending) {
    super(code === 'client_gone' ? 'The client has left' : 'The gateway is shutting down');
    this.code = code;
  }
}

/** A client that left before its answer began, in metrics and logs. */
const CLIENT_CLOSED_REQUEST = 499;
/** A reader of notifications that is further behind gets no more of them: they may be dropped, memory may not grow. */
const MAX_UNSENT_BYTES = 256 * 1024;

const SSE_HEADERS: FlatHeaders = [
  'Content-Type',
  'text/event-stream',
  'Cache-Control',
  'no-store',
  'X-Accel-Buffering',
  'no',
];
const JSON_HEADERS: FlatHeaders = ['Content-Type', 'application/json', 'Cache-Control', 'no-store'];

const LIVE = Symbol('live');
const LAST = Symbol('last');
type Carrier = { [LIVE]?: Live | undefined; [LAST]?: true };

// Shared by all requests: listeners made for each would be garbage for each.
function onClose(this: Outgoing): void {
  (this as Carrier)[LIVE]?.closed();
}
function onDrain(this: Outgoing): void {
  (this as Carrier)[LIVE]?.drained();
}
/** A write that lost the race against the client's leaving is no news: `close` has told everything. */
function ignore(): void {}

/** The request being answered on a socket, if there is one. */
export function liveOn(socket: object): Live | undefined {
  return (socket as Carrier)[LIVE];
}

/** True when no request on this socket counts any more. */
export function nothingFollowsOn(socket: object): boolean {
  return (socket as Carrier)[LAST] === true;
}

export class Live implements Exchange, BodyOwner, Listed {
  place = -1;
  readonly facts: Facts = {};
  readonly request: Incoming;
  readonly response: Outgoing;
  readonly context: EdgeContext;
  readonly head: Head;
  readonly body: RequestBody;
  route: string | undefined;
  /** There was too much to do when it came. */
  strained = false;
  /** Decided by the head alone; waits for the id that it should carry. */
  refusal: Refusal | undefined;
  /** Ends a listen gracefully. */
  endListen: (() => void) | undefined;
  /** Called when the exchange is over, for whoever writes a stream. */
  onOver: (() => void) | undefined;
  /** Set when nothing may follow on this connection. */
  lastOnConnection = false;

  readonly #startedAt: number;
  readonly #closeGauge: () => void;
  #closeStream: (() => void) | undefined;
  #heart: Heart | undefined;
  #abort: Abort | undefined;
  #ended: ExchangeEnded | undefined;
  #events: 'none' | 'open' = 'none';
  #sentBytes = 0;
  #over = false;
  #lingering = false;
  #repliedAt: number | undefined;
  #onDrained: ((alive: boolean) => void) | undefined;

  constructor(context: EdgeContext, request: Incoming, response: Outgoing) {
    this.context = context;
    this.request = request;
    this.response = response;
    this.#startedAt = context.now();
    this.#closeGauge = context.metrics.httpOpened();
    this.head = readHead(request.rawHeaders);
    this.body = new RequestBody(request, this, context.limits, context.sweeper);
    (response as Carrier)[LIVE] = this;
    response.on('close', onClose);
    response.on('error', ignore);
    (request.socket as Carrier)[LIVE] = this;
    if (response.socket === null) this.#watchSocket();
    context.open.add(this);
  }

  /** Made when asked for: a cache hit never asks. */
  get signal(): Signal {
    if (this.#abort === undefined) {
      this.#abort = new Abort();
      if (this.#ended !== undefined) this.#abort.abort(this.#ended);
    }
    return this.#abort;
  }

  /** The client has left, or all is written. */
  get over(): boolean {
    return this.#over;
  }

  /** True when the client has all of its answer, and only its own request is not through. */
  get answered(): boolean {
    return this.#lingering;
  }

  /** True when the answer has become a stream of events by {@link notify}. */
  get streaming(): boolean {
    return this.#events === 'open';
  }

  /** The request path has its reply: from here on it is the client that takes its time. */
  replied(): void {
    this.#repliedAt = this.context.now();
    this.#stopHeart();
  }

  collected(body: Collected): void {
    this.context.collected(this, body);
  }

  stream(): void {
    if (this.#over || this.#events !== 'none' || this.response.headersSent) return;
    this.#events = 'open';
    this.beginStream(200, {}, 'response');
    this.#heart = new Heart(this);
    this.context.sweeper.add(this.#heart);
  }

  async taken(): Promise<void> {
    if (this.response.writableNeedDrain) await this.drain();
  }

  notify(message: Uint8Array, how?: 'must'): void {
    this.stream();
    if (this.#over || this.#events === 'none') return;
    if (how === undefined && this.response.writableLength > MAX_UNSENT_BYTES) return;
    this.write(EVENT_OPEN);
    this.write(dataLines(message));
    this.write(EVENT_CLOSE);
  }

  /** Gives up on this exchange: whoever works for it is told. */
  abort(code: Ending): void {
    if (this.#ended !== undefined) return;
    this.#ended = new ExchangeEnded(code);
    this.#abort?.abort(this.#ended);
  }

  /** Writes the head of a JSON answer, or of one without a body. */
  begin(status: number, headers: Readonly<Record<string, string>>, bodyBytes: number | undefined): void {
    const flat = bodyBytes === 0 ? ['Cache-Control', 'no-store'] : [...JSON_HEADERS];
    if (bodyBytes !== undefined) flat.push('Content-Length', String(bodyBytes));
    this.#begin(status, flat, headers);
  }

  /** Writes the head of a stream of events, at once. */
  beginStream(status: number, headers: Readonly<Record<string, string>>, kind: StreamKind): void {
    this.#begin(status, [...SSE_HEADERS], headers);
    this.response.flushHeaders();
    if (this.route !== undefined) this.#closeStream ??= this.context.metrics.streamOpened(this.route, kind);
  }

  /** @returns false when {@link drain} should be awaited before more is written. */
  write(chunk: string | Uint8Array): boolean {
    if (this.#over) return true;
    this.#sentBytes += typeof chunk === 'string' ? Buffer.byteLength(chunk) : chunk.length;
    return this.response.write(chunk);
  }

  /** Waits until the client has taken what was written. @returns false when it has left instead. */
  drain(): Promise<boolean> {
    if (this.#over) return Promise.resolve(false);
    return new Promise((resolve) => {
      this.#onDrained = resolve;
      if (this.response.listenerCount('drain') === 0) this.response.on('drain', onDrain);
    });
  }

  /** From now on, each time the client has taken what was written. */
  onDrain(then: () => void): void {
    this.response.on('drain', then);
  }

  /** Writes all of a short answer whose length was told. `latin1`: a string of bytes. */
  endShort(text: string, encoding: 'utf8' | 'latin1'): void {
    const { response } = this;
    if (this.#over || !this.body.whole) return this.end(Buffer.from(text, encoding));
    this.#sentBytes += encoding === 'latin1' ? text.length : Buffer.byteLength(text);
    // Taken by end(), head and text would be put together with an empty piece, and gathering costs more than writing.
    response.write(text, encoding);
    response.socket?.uncork();
    response.end();
  }

  /** Writes what is left, and ends the answer. */
  end(chunk?: string | Uint8Array): void {
    if (this.#over) return;
    if (chunk !== undefined)
      this.#sentBytes += typeof chunk === 'string' ? Buffer.byteLength(chunk) : chunk.length;
    if (this.body.whole) {
      this.response.end(chunk);
      return;
    }
    this.#lingering = true;
    // Node closes the connection as soon as it has ended the answer; with request bytes unread that is a reset,
    // and the client would lose the answer it has not read yet.
    if (chunk !== undefined) this.response.write(chunk);
    this.response.uncork();
    this.body.discard(() => this.response.end());
  }

  /** Makes this the last request of its connection: whatever else came over it, or comes, is no request. */
  closeBehind(): void {
    this.lastOnConnection = true;
    (this.request.socket as Carrier)[LAST] = true;
  }

  /** Breaks the answer off, so that it can never look whole. */
  destroy(): void {
    this.response.destroy();
  }

  drained(): void {
    this.#onDrained?.(true);
    this.#onDrained = undefined;
  }

  /** The response is through, or its connection is gone. */
  closed(): void {
    if (this.#over) return;
    this.#over = true;
    this.#stopHeart();
    // Of what a socket that is gone had still to write, Node says that it is written. A client that has its answer may
    // leave while the rest of its request is let go by.
    const written = this.response.writableFinished && !this.request.socket.destroyed;
    const answered = written || this.#lingering;
    if (!answered) this.abort('client_gone');
    this.body.over();
    this.#onDrained?.(false);
    this.onOver?.();
    this.#closeStream?.();
    this.#closeGauge();
    // Not deleted: that would turn every later access to the socket into a look-up in a table.
    if (liveOn(this.request.socket) === this) (this.request.socket as Carrier)[LIVE] = undefined;
    account(this.context, {
      facts: this.facts,
      route: this.route,
      request: this.request,
      status: this.response.headersSent || answered ? this.response.statusCode : CLIENT_CLOSED_REQUEST,
      ended: this.#ended?.code,
      startedAt: this.#startedAt,
      repliedAt: this.#repliedAt,
      receivedBytes: this.body.receivedBytes,
      sentBytes: this.#sentBytes,
    });
    const { open } = this.context;
    open.delete(this);
    if (open.size === 0) this.context.onEmpty?.();
  }

  #stopHeart(): void {
    if (this.#heart === undefined) return;
    this.context.sweeper.delete(this.#heart);
    this.#heart = undefined;
  }

  /** A pipelined request has no socket to itself yet: its response is not told when the socket goes. */
  #watchSocket(): void {
    const { socket } = this.request;
    const gone = (): void => this.closed();
    socket.setMaxListeners(0);
    socket.once('close', gone);
    this.response.once('close', () => socket.removeListener('close', gone));
  }

  #begin(status: number, flat: string[], headers: Readonly<Record<string, string>>): void {
    for (const name in headers) flat.push(name, headers[name] as string);
    const origin = this.head.headers.get('origin');
    if (origin !== undefined) flat.push(...this.context.cors.answer(origin));
    if (this.lastOnConnection || !this.request.complete || this.context.phase === 'closing')
      flat.push('Connection', 'close');
    this.response.writeHead(status, flat);
  }
}
