/**
 * A session with a server of an older era, over Streamable HTTP (revisions 2025-03-26 to 2025-11-25): opened by
 * `initialize`, kept by its header, opened anew when the server no longer knows it.
 *
 * Requests go out without what `_meta` of this era says of itself: a server that knows both would not believe it.
 * Whoever finds the session gone opens the next one for all who wait. *Never* rejects.
 */
import { LEGACY_VERSIONS, NEWEST_LEGACY_VERSION as NEWEST, SESSION_HEADER } from '../protocol/legacy.ts';
import { NO_CAPABILITIES } from '../protocol/questions.ts';
import { Abort, type Signal } from '../protocol/signal.ts';
import { isModern } from './era.ts';
import { CANCELLED, failure } from './failure.ts';
import { isForgotten, isSuspect } from './legacy-forgotten.ts';
import { type Hello, readHello } from './legacy-hello.ts';
import { isHeard, levelParams, type Quiet, quietIn, SILENT } from './legacy-logging.ts';
import { withoutEnvelope } from './legacy-params.ts';
import { OF_THE_CALLER } from './outcomes.ts';
import { declined } from './questions.ts';
import type { Failure, ReadOutcome, ReadRequest, StreamOutcome, Upstream } from './types.ts';

/** What `initialize` answers is small... */
const MAX_HELLO_BYTES = 1024 * 1024;
/** ...and comes in this time, whatever is said before it: a process may have to be fetched first. */
const HELLO_MS = 30_000;
/** How long a server may take to accept a notification, or an answer to its own question. */
const TELL_MS = 5_000;
/** In place of a method, for what is a response. */
const ANSWER = 'response';
/** Questions of a server that are being answered at once: one that asks more than that is not asking. */
const MAX_ANSWERING = 64;

/** A session that stands. */
export interface Opened {
  readonly kind: 'open';
  /** Undefined: the server keeps none. */
  readonly id: string | undefined;
  readonly hello: Hello;
  readonly life: number | undefined;
}

type Opening = Opened | { readonly kind: 'failed'; readonly outcome: ReadOutcome };

/** What a session is made of. */
export interface SessionWire extends Pick<Upstream, 'read' | 'stream'> {
  /** Counts what sessions are with and end with: another number, and they are over. */
  readonly life?: number;
  /** Ends a session at the server; what becomes of it is of no interest. *Never* rejects. */
  end(address: ReturnType<LegacySession['addressOf']>): Promise<void>;
}

export class LegacySession {
  readonly #wire: SessionWire;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #now: () => number;
  readonly #capabilities: string;
  readonly #closed = new Abort();
  readonly #whenLost = new Set<() => void>();
  #current: Opened | undefined;
  #opening: Promise<Opening> | undefined;
  #holders = 0;
  #retired = false;
  /** What the server was told to say. */
  #quiet: { readonly opened: Opened; readonly told: Quiet } | undefined;
  #answering = 0;

  /**
   * @param headers credentials and what else of the caller this upstream may see.
   * @param capabilities JSON text of what those who ask in it can be asked.
   */
  constructor(
    wire: SessionWire,
    headers: Readonly<Record<string, string>>,
    now: () => number,
    capabilities = NO_CAPABILITIES,
  ) {
    this.#wire = wire;
    this.#headers = headers;
    this.#now = now;
    this.#capabilities = capabilities;
  }

  /** Opens it, unless it is open. @param withinMs how long it is waited for. */
  async open(signal: Signal, withinMs = HELLO_MS): Promise<Opening> {
    if (this.#current !== undefined && !this.stands(this.#current)) this.forget(this.#current);
    if (this.#current !== undefined) return this.#current;
    this.#opening ??= this.#initialize().finally(() => {
      this.#opening = undefined;
    });
    return whileWaited(this.#opening, signal, withinMs);
  }

  /** Asks once, or again in the next session where this one was forgotten: it was not done then. */
  async read(request: ReadRequest): Promise<ReadOutcome> {
    const until = request.deadlineMs === undefined ? undefined : this.#now() + request.deadlineMs;
    const left = (): number | undefined => until && Math.max(0, until - this.#now());
    const release = this.hold();
    try {
      let outcome: ReadOutcome | undefined;
      for (let attempts = 0; attempts < 2; attempts++) {
        const opened = await this.open(request.signal, left());
        if (opened.kind === 'failed') return opened.outcome;
        const deadlineMs = left();
        outcome = await this.askIn(opened, { ...request, ...(deadlineMs !== undefined && { deadlineMs }) });
        const isOver = isForgotten(outcome, opened) || (isSuspect(outcome, opened) && !this.stands(opened));
        if (!isOver) return outcome;
      }
      return outcome as ReadOutcome;
    } finally {
      release();
    }
  }

  /** Asks in this very session, which is over when the server does not know it. */
  async askIn(opened: Opened, request: ReadRequest): Promise<ReadOutcome> {
    const quiet = quietIn(request.params);
    await this.#speakUp(opened, quiet, request);
    const { onNotification } = request;
    const outcome = await this.#wire.read({
      ...request,
      ...(onNotification !== undefined && {
        onNotification: (message: Uint8Array) => {
          if (isHeard(message, quiet)) onNotification(message);
        },
      }),
      params: withoutEnvelope(request.params),
      ...this.addressOf(opened, request.headers),
      onRequest: (message) => this.#question(opened, message, request.onQuestion),
    });
    if (isForgotten(outcome, opened)) this.forget(opened);
    else if (isSuspect(outcome, opened) && this.stands(opened)) await this.#verify(opened, request);
    return outcome;
  }

  /** Has the server say as much as whoever asks for most: what is more than others want, they do not hear. */
  async #speakUp(opened: Opened, quiet: Quiet, request: ReadRequest): Promise<void> {
    const spoken = this.#quiet?.opened === opened ? this.#quiet.told : SILENT;
    if (quiet >= spoken || !opened.hello.capabilities.has('logging')) return;
    this.#quiet = { opened, told: quiet };
    const { signal, maxBytes } = request;
    const question = { method: 'logging/setLevel', name: undefined, idempotent: true, signal, maxBytes };
    await this.#wire.read({
      ...question,
      params: levelParams(quiet),
      ...this.addressOf(opened, request.headers),
    });
  }

  /** Finds out whether a refusal was meant for the session: then everything is refused in it. */
  async #verify(opened: Opened, request: ReadRequest): Promise<void> {
    const { signal, maxBytes } = request;
    const question = { method: 'ping', name: undefined, params: '{}', idempotent: true, signal, maxBytes };
    const outcome = await this.#wire.read({ ...question, ...this.addressOf(opened, request.headers) });
    if (isForgotten(outcome, opened) || isSuspect(outcome, opened)) this.forget(opened);
  }

  /** Whether this is the session of now, as far as is known. */
  stands(opened: Opened): boolean {
    return this.#current === opened && opened.life === this.#wire.life;
  }

  /** Version and headers of what is sent in a session. */
  addressOf(
    { id, hello }: Opened,
    headers = this.#headers,
  ): { readonly version: string; readonly headers: Readonly<Record<string, string>> } {
    return {
      version: hello.version,
      headers: id === undefined ? headers : { ...headers, [SESSION_HEADER]: id },
    };
  }

  /** The server does not know this session any more. */
  forget(opened: Opened): void {
    if (this.#current !== opened) return;
    this.#current = undefined;
    for (const told of [...this.#whenLost]) told();
  }

  /** @param told called each time the server has forgotten the session. @returns ends that. */
  onLost(told: () => void): () => void {
    this.#whenLost.add(told);
    return () => this.#whenLost.delete(told);
  }

  /** Sends a notification or a response, if there is a session. *Never* rejects. */
  async tell(method: string, message: string): Promise<void> {
    if (this.#current !== undefined) await this.#send(this.#current, method, message);
  }

  /** Keeps it from being ended for want of use, or of room. @returns lets go of it. */
  hold(): () => void {
    let held = true;
    this.#holders++;
    return () => {
      if (held) this.#holders--;
      held = false;
      if (this.#retired && !this.isHeld) void this.close();
    };
  }

  get isHeld(): boolean {
    return this.#holders > 0;
  }

  /** Ends it as soon as nobody holds it. */
  retire(): void {
    this.#retired = true;
    if (!this.isHeld) void this.close();
  }

  /** Ends it, at the server too. */
  async close(): Promise<void> {
    const opened = this.#current;
    this.#current = undefined;
    this.#closed.abort(new Error('closed'));
    if (opened?.id !== undefined) await this.#wire.end(this.addressOf(opened));
  }

  async #initialize(): Promise<Opening> {
    const outcome = await this.#wire.read({
      method: 'initialize',
      name: undefined,
      params: `{"protocolVersion":"${NEWEST}","capabilities":${this.#capabilities},"clientInfo":{"name":"headgate","version":"1"}}`,
      version: NEWEST,
      headers: this.#headers,
      idempotent: true,
      signal: this.#closed,
      deadlineMs: HELLO_MS,
      maxBytes: MAX_HELLO_BYTES,
    });
    if (outcome.kind !== 'answer' || outcome.answer.kind !== 'result')
      return { kind: 'failed', outcome: unopenedBy(outcome) };
    const hello = readHello(outcome.answer.result.tail);
    if (hello === undefined) return { kind: 'failed', outcome: notInitialized('no answer to initialize') };
    if (!LEGACY_VERSIONS.includes(hello.version))
      return { kind: 'failed', outcome: notInitialized(`speaks ${hello.version.slice(0, 20)}`) };
    const opened: Opened = { kind: 'open', id: outcome.session, hello, life: this.#wire.life };
    // Nobody asks anything in it before the server has heard this: some refuse what comes sooner.
    const method = 'notifications/initialized';
    await this.#send(opened, method, `{"jsonrpc":"2.0","method":"${method}"}`);
    if (!this.#closed.aborted) this.#current = opened;
    else if (opened.id !== undefined) await this.#wire.end(this.addressOf(opened));
    return opened;
  }

  async #send(opened: Opened, method: string, message: string): Promise<void> {
    const signal = new Abort();
    const timer = setTimeout(() => signal.abort(new Error('not accepted in time')), TELL_MS);
    const outcome = await this.#wire
      .stream({
        method,
        name: undefined,
        ...this.addressOf(opened),
        body: Buffer.from(message),
        idempotent: false,
        signal,
      })
      .catch(() => undefined);
    await letGo(outcome);
    clearTimeout(timer);
  }

  /** Puts a question of the server's to whoever asked, if there is somebody who could answer it. */
  #question(opened: Opened, message: Uint8Array, ask: ReadRequest['onQuestion']): void {
    // Over HTTP an answer finds its question by the session.
    const isDeaf = opened.id === undefined && this.#wire.life === undefined;
    const reply = (text: string): void => void this.#send(opened, ANSWER, text);
    if (ask?.(message, isDeaf ? undefined : reply) !== true) this.decline(opened, message);
  }

  /** Answers what the server asks of its own accord: see `questions.ts`. */
  decline(opened: Opened, message: Uint8Array): void {
    const words = declined(message);
    if (words === undefined || this.#answering >= MAX_ANSWERING) return;
    this.#answering++;
    void this.#send(opened, words.method, words.answer).finally(() => {
      this.#answering--;
    });
  }
}

/** What of a refused `initialize` is told to whoever asked something else: not what it says of `initialize`. */
function unopenedBy(outcome: ReadOutcome): ReadOutcome {
  switch (outcome.kind) {
    case 'answer':
      // By these the era is judged anew.
      if (outcome.answer.kind !== 'error' || isModern(outcome)) return outcome;
      return notInitialized(`initialize: error ${outcome.answer.code}`);
    case 'refused':
      return OF_THE_CALLER.has(outcome.status) ? outcome : notInitialized(`initialize: ${outcome.status}`);
    default:
      return outcome;
  }
}

function notInitialized(detail: string): ReadOutcome {
  return { kind: 'failure', failure: failure('broken', 'http_protocol_error', detail) };
}

/** Lets go of an answer that nobody reads. */
export async function letGo(outcome: StreamOutcome | undefined): Promise<void> {
  if (outcome?.kind !== 'response') return;
  if (outcome.body.discard === undefined) await outcome.body[Symbol.asyncIterator]().return?.();
  else outcome.body.discard();
}

/** Waits, as long as the caller does and has time. */
function whileWaited(work: Promise<Opening>, signal: Signal, withinMs: number): Promise<Opening> {
  const unopened = (reason: Failure): Opening => ({
    kind: 'failed',
    outcome: { kind: 'failure', failure: reason },
  });
  if (signal.aborted) return Promise.resolve(unopened(CANCELLED));
  return new Promise((resolve) => {
    const leave = (): void => resolve(unopened(CANCELLED));
    const timer = setTimeout(
      () =>
        resolve(unopened(failure('timeout', 'http_response_timeout', `no session within ${withinMs} ms`))),
      withinMs,
    );
    signal.addEventListener('abort', leave, { once: true });
    void work.then(resolve).finally(() => {
      clearTimeout(timer);
      signal.removeEventListener('abort', leave);
    });
  });
}
