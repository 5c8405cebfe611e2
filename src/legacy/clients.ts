/**
 * Clients of older revisions (2025-11-25 and before) on the same path: their requests become requests of this revision,
 * and what is answered becomes what they know. Behind this nobody asks which revision a client speaks.
 *
 * A request is theirs by what it lacks: `_meta` of this revision, and a version header of it. *Never* believes their
 * mirrored headers. *Spec:* basic/versioning; 2025-11-25, basic/lifecycle and basic/transports.
 */
import { isUri } from '../protocol/classify.ts';
import {
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_ALLOWED,
  METHOD_NOT_FOUND,
  OVERLOADED,
  type Refusal,
  refusal,
} from '../protocol/errors.ts';
import type { Exchange, Handle, Inbound, Reply, Soon } from '../protocol/exchange.ts';
import { type Head, METHOD_HEADER, PROTOCOL_VERSION_HEADER } from '../protocol/headers.ts';
import { type Member, memberOf, objectMembers, stringValue } from '../protocol/json.ts';
import { LOG_LEVELS, SESSION_HEADER } from '../protocol/legacy.ts';
import { CURRENT_VERSION } from '../protocol/meta.ts';
import { Abort } from '../protocol/signal.ts';
import { headOf, refusedReply } from './answer.ts';
import { converse } from './conversation.ts';
import { initialized, readInitialize } from './hello.ts';
import { Listens } from './listens.ts';
import { type LegacyMessage, readLegacy } from './message.ts';
import { type LegacyRequest, onBehalf, type Self } from './request.ts';
import type { Session } from './session.ts';
import { type Known, Sessions } from './sessions.ts';
import type { Holder } from './tickets.ts';

export interface LegacyRoute {
  /** The caller's context. */
  readonly identify: (head: Head) => string;
  readonly config: {
    /** Whether older clients are served there. */
    readonly legacyClients: boolean;
  };
  /** What of a head is kept where something outlives its request. */
  readonly carried: (head: Head) => Head;
}

export interface LegacyDeps {
  /** The request path, which speaks this revision. */
  readonly handle: Handle;
  /** Those of the moment: a reload writes it. */
  readonly routes: ReadonlyMap<string, LegacyRoute>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

/** What only this revision has, and what older ones mean otherwise. */
const NOT_THEIRS = /^(server\/discover|subscriptions\/listen|tasks\/.*)$/;

/** What servers of that time say of a session that they do not know. */
const NO_SESSION_CODE = -32001;
const NO_SESSION = refusal(NO_SESSION_CODE, 'Session not found: send a new initialize', { status: 404 });
const NEEDS_SESSION = 'This needs the session that initialize gave: send its Mcp-Session-Id';
const FULL = refusal(INTERNAL_ERROR, 'Too many sessions are kept here', {
  status: 503,
  headers: { 'Retry-After': '60' },
});

/** Methods as they may stand in a header. */
const METHOD = /^[\x21-\x7e]{1,256}$/;
/** A message of an older client, and what is known of who sent it. */
interface Turn {
  readonly inbound: Inbound;
  readonly exchange: Exchange;
  readonly known: Known | undefined;
}

/** Serves clients of all revisions. */
export class Clients {
  readonly #deps: LegacyDeps;
  readonly #sessions: Sessions;
  /** Requests under way, by the serial of their session and their id. */
  readonly #running = new Map<number, Map<string, Abort>>();
  readonly #listens: Listens;
  #lastId = 0;

  constructor(deps: LegacyDeps) {
    this.#deps = deps;
    this.#sessions = new Sessions(deps.now);
    this.#listens = new Listens(deps.handle, () => this.#nextId());
  }

  /** The request path for clients of every revision. */
  readonly handle: Handle = (inbound, exchange) => {
    const { headers } = inbound.head;
    if (
      headers.get(PROTOCOL_VERSION_HEADER) === CURRENT_VERSION &&
      headers.has(METHOD_HEADER) &&
      inbound.verb === undefined
    )
      return this.#deps.handle(inbound, exchange);
    return this.#older(inbound, exchange);
  };

  /** No more requests come in: what a client was asked, it cannot answer. */
  closing(): void {
    this.#sessions.giveUp();
  }

  /** The routes are others: of one that serves no older clients no session is left. */
  reconfigured(): void {
    const { routes } = this.#deps;
    this.#sessions.endExcept((path) => routes.get(path)?.config.legacyClients === true);
  }

  close(): void {
    this.#sessions.close();
  }

  #older(inbound: Inbound, exchange: Exchange): Soon<Reply> {
    const { head, verb } = inbound;
    const route = this.#deps.routes.get(inbound.route);
    // The request path knows of POST alone.
    if (route?.config.legacyClients !== true)
      return verb === undefined
        ? this.#deps.handle(inbound, exchange)
        : refused(METHOD_NOT_ALLOWED, undefined);
    const message = verb === undefined ? readLegacy(inbound) : undefined;
    if (verb === undefined && message === undefined) return this.#deps.handle(inbound, exchange);
    if (message?.kind === 'refused') return message;
    const sessionId = head.headers.get(SESSION_HEADER);
    const isHello = message?.kind === 'request' && message.request.method === 'initialize';
    if (message?.kind === 'request') exchange.facts.mcpMethod = message.request.method;
    const holder = { route: inbound.route, partition: route.identify(head) };
    if (isHello) return this.#initialize({ inbound, exchange, known: undefined }, message.request, holder);
    const known = sessionId === undefined ? undefined : this.#sessions.find(sessionId, holder);
    const id = message?.kind === 'request' ? message.request.id : undefined;
    if (sessionId !== undefined && known === undefined) return refused(NO_SESSION, id);
    const turn = { inbound, exchange, known };
    if (message !== undefined) return this.#take(turn, message);
    return verb === 'GET' ? this.#listen(turn) : this.#end(turn);
  }

  #take(turn: Turn, message: Exclude<LegacyMessage, { kind: 'refused' }>): Soon<Reply> {
    switch (message.kind) {
      case 'request':
        return this.#answer(turn, message.request);
      case 'notification':
        if (message.cancels !== undefined && turn.known !== undefined)
          this.#runningIn(turn.known)?.get(message.cancels)?.abort(new Error('cancelled'));
        return ACCEPTED;
      case 'response':
        if (turn.known !== undefined) this.#sessions.kept(turn.known)?.answer(message.id, message.bytes);
        return ACCEPTED;
    }
  }

  #answer(turn: Turn, request: LegacyRequest): Soon<Reply> {
    const { method, id } = request;
    if (turn.inbound.strained === true) return refused(OVERLOADED, id);
    switch (method) {
      case 'ping':
        return done(id);
      case 'logging/setLevel':
        return this.#setLevel(turn, request);
      case 'resources/subscribe':
      case 'resources/unsubscribe':
        return this.#subscribe(turn, request);
      default:
        return NOT_THEIRS.test(method) || !METHOD.test(method)
          ? refused(unknownMethod(method), id)
          : this.#ask(turn, request);
    }
  }

  async #initialize(turn: Turn, request: LegacyRequest, holder: Holder): Promise<Reply> {
    const { inbound, exchange } = turn;
    const presented = readInitialize(request);
    if ('code' in presented) return refused(presented, request.id);
    const self = { ...presented, clientInfo: presented.clientInfo || undefined, logLevel: undefined };
    const discovered = await this.#deps.handle(
      onBehalf(inbound, 'server/discover', self, request.id),
      // What is noted of it is no matter of this request.
      { signal: exchange.signal, facts: {}, notify: () => {} },
    );
    if (discovered.kind === 'refused') return refusedReply(discovered, request);
    if (discovered.kind !== 'answer') throw new Error('a discover that is no answer');
    const message = JSON.parse(discovered.head + Buffer.concat(discovered.tail).toString()) as {
      readonly result: unknown;
    };
    const { result, session } = initialized(JSON.stringify(message.result), presented);
    return {
      kind: 'answer',
      status: 200,
      head: `{"jsonrpc":"2.0","id":${request.id},"result":${result}}`,
      tail: [],
      headers: session === 'needed' ? { [SESSION_HEADER]: this.#sessions.issue(presented, holder) } : {},
    };
  }

  /** Whatever else is asked: by the request path. */
  async #ask({ inbound, exchange, known }: Turn, request: LegacyRequest): Promise<Reply> {
    const session = known && this.#sessions.kept(known);
    const running = known && new Running(exchange);
    const over = running && this.#begin(known, request.id, running, session);
    let flows = false;
    try {
      const reply = await converse({
        ...{ handle: this.#deps.handle, now: this.#deps.now },
        inbound,
        request,
        self: selfOf(known, session),
        exchange: running ?? exchange,
        respondent: {
          session: () => known && this.#keep(inbound, known),
          capabilities: known?.ticket.capabilities ?? '{}',
          nextId: () => this.#nextId(),
        },
      });
      // *Spec:* 2025-11-25, basic/utilities/cancellation: what was cancelled is not answered.
      if (running?.isCancelled === true) return ACCEPTED;
      // What flows is under way until it has flown.
      if (over === undefined || reply.kind !== 'relay') return reply;
      flows = true;
      return { ...reply, body: untilOver(reply.body, over) };
    } finally {
      if (!flows) over?.();
    }
  }

  /** A call is under way in a session: it can be cancelled there, and keeps what the session keeps. @returns ends that. */
  #begin(
    { ticket: { serial } }: Known,
    id: string,
    running: Running,
    session: Session | undefined,
  ): () => void {
    const all = this.#running.get(serial) ?? new Map<string, Abort>();
    this.#running.set(serial, all.set(id, running.gone));
    if (session !== undefined) session.calls++;
    return () => {
      running.over();
      if (session !== undefined) session.calls--;
      if (all.get(id) === running.gone) all.delete(id);
      if (all.size === 0 && this.#running.get(serial) === all) this.#running.delete(serial);
    };
  }

  #runningIn({ ticket }: Known): ReadonlyMap<string, Abort> | undefined {
    return this.#running.get(ticket.serial);
  }

  #setLevel({ inbound, known }: Turn, request: LegacyRequest): Reply {
    const level = stringParam(request, 'level') ?? '';
    if (!LOG_LEVELS.includes(level))
      return invalid(request, `"level" must be one of ${LOG_LEVELS.join(', ')}`);
    if (known === undefined) return invalid(request, NEEDS_SESSION, INVALID_REQUEST);
    const session = this.#keep(inbound, known);
    if (session === undefined) return refused(FULL, request.id);
    session.logLevel = level;
    return done(request.id);
  }

  async #subscribe({ inbound, known }: Turn, request: LegacyRequest): Promise<Reply> {
    const uri = stringParam(request, 'uri') ?? '';
    if (!isUri(uri)) return invalid(request, 'Not a URI: it needs a scheme and no control characters');
    if (known === undefined) return invalid(request, NEEDS_SESSION, INVALID_REQUEST);
    if (request.method === 'resources/unsubscribe') {
      await this.#sessions.kept(known)?.unsubscribe(uri);
      return done(request.id);
    }
    const session = this.#keep(inbound, known);
    if (session === undefined) return refused(FULL, request.id);
    switch (await session.subscribe(uri)) {
      case 'yes':
        return done(request.id);
      case 'full':
        return invalid(request, 'Too many resources are subscribed to in this session');
      case 'refused':
        return invalid(
          request,
          'Nobody tells of changes of this resource, or there is no room to listen for them',
          INVALID_PARAMS,
          { uri },
        );
    }
  }

  #listen({ inbound, known }: Turn): Reply {
    if (known === undefined) return refused(NO_SESSION, undefined);
    if (inbound.strained === true) return refused(OVERLOADED, undefined);
    const session = this.#keep(inbound, known);
    if (session === undefined) return refused(FULL, undefined);
    return { kind: 'listen', feed: session.open() };
  }

  #end({ known }: Turn): Reply {
    if (known === undefined) return ACCEPTED;
    this.#sessions.end(known);
    for (const gone of [...(this.#runningIn(known)?.values() ?? [])]) gone.abort(new Error('session ended'));
    return ACCEPTED;
  }

  #keep({ route, head }: Inbound, known: Known): Session | undefined {
    const kept = this.#sessions.kept(known);
    if (kept !== undefined) return kept;
    // Nothing of the request itself is kept: it may be large.
    const carried = this.#deps.routes.get(route)?.carried(head) ?? head;
    const self = selfOf(known, undefined);
    return this.#sessions.keep(known, {
      listen: (subject) =>
        this.#listens.open(
          { inbound: { route, head: carried, body: NO_BODY }, self, holder: known.holder },
          subject,
        ),
    });
  }

  #nextId(): string {
    return `"headgate-${++this.#lastId}"`;
  }
}

const ACCEPTED: Reply = { kind: 'accepted' };

function refused(problem: Refusal, id: string | undefined): Reply {
  return { kind: 'refused', refusal: problem, id };
}

function invalid(
  { id }: LegacyRequest,
  message: string,
  code = INVALID_PARAMS,
  data?: Readonly<Record<string, unknown>>,
): Reply {
  return refused(refusal(code, message, { status: 200, ...(data !== undefined && { data }) }), id);
}

/** An empty result. */
function done(id: string): Reply {
  return { kind: 'answer', status: 200, head: `${headOf(id)}}}`, tail: [], headers: {} };
}

function selfOf(known: Known | undefined, session: Session | undefined): Self {
  return {
    capabilities: known?.ticket.capabilities ?? '{}',
    clientInfo: known?.ticket.clientInfo || undefined,
    logLevel: session?.logLevel,
  };
}

function stringParam({ bytes, params }: LegacyRequest, key: string): string | undefined {
  const members: readonly Member[] = (params && objectMembers(bytes, params.start)) ?? [];
  const member = memberOf(members, key);
  return member && stringValue(bytes, member);
}

const MAX_SHOWN_CHARS = 120;
const NO_BODY = { kind: 'whole', bytes: new Uint8Array(0) } as const;

function unknownMethod(method: string): Refusal {
  const shown = method.length > MAX_SHOWN_CHARS ? `${method.slice(0, MAX_SHOWN_CHARS)}…` : method;
  return refusal(METHOD_NOT_FOUND, `Unknown method: ${shown}`, { status: 200 });
}

/** A body, and who is told of its end. Not a generator: one that waits would not hear of `return`. */
function untilOver(body: AsyncIterable<Uint8Array>, over: () => void): AsyncIterable<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  return {
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        try {
          const step = await iterator.next();
          if (step.done === true) over();
          return step;
        } catch (error) {
          over();
          throw error;
        }
      },
      return: async () => {
        over();
        return (await iterator.return?.()) ?? { done: true, value: undefined };
      },
    }),
  };
}

/** An exchange that its client can also end by saying so. */
class Running implements Exchange {
  readonly gone = new Abort();
  readonly #outer: Exchange;
  readonly #leave = (): void => this.gone.abort(this.#outer.signal.reason);

  constructor(outer: Exchange) {
    this.#outer = outer;
    if (outer.signal.aborted) this.#leave();
    else outer.signal.addEventListener('abort', this.#leave, { once: true });
  }

  get signal(): Abort {
    return this.gone;
  }

  get facts(): Exchange['facts'] {
    return this.#outer.facts;
  }

  /** By its own word, and not by leaving. */
  get isCancelled(): boolean {
    return this.gone.aborted && !this.#outer.signal.aborted;
  }

  notify(message: Uint8Array, how?: 'must'): void {
    if (!this.gone.aborted) this.#outer.notify(message, how);
  }

  stream(): void {
    this.#outer.stream?.();
  }

  async taken(): Promise<void> {
    await this.#outer.taken?.();
  }

  over(): void {
    this.#outer.signal.removeEventListener('abort', this.#leave);
  }
}
