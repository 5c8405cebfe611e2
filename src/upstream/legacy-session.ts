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
import { Askers } from './askers.ts';
import { isModern } from './era.ts';
import { CANCELLED, failure } from './failure.ts';
import { Aside } from './legacy-aside.ts';
import { isForgotten, isSuspect } from './legacy-forgotten.ts';
import { type Hello, readHello } from './legacy-hello.ts';
import type { SessionEvents } from './legacy-listen.ts';
import { isHeard, levelParams, type Quiet, quietIn, SILENT } from './legacy-logging.ts';
import { withoutEnvelope } from './legacy-params.ts';
import { OF_THE_CALLER } from './outcomes.ts';
import { declined, readRequest } from './questions.ts';
import type { Failure, ReadOutcome, ReadRequest, Upstream } from './types.ts';

/** What `initialize` answers is small... */
const MAX_HELLO_BYTES = 1024 * 1024;
/** ...and comes in this time, whatever is said before it: a process may have to be fetched first. */
const HELLO_MS = 30_000;
/** How long a server may take to accept a level. */
const TELL_MS = 5_000;
/** In place of a method, for what is a response. */
const ANSWER = 'response';
/** How long a call waits for its server to take a level. */
const LEVEL_MS = 1_000;
/** Failures of what no server has seen. */
const UNSENT: ReadonlySet<Failure['kind']> = new Set(['full', 'connect', 'circuit_open']);
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
export interface SessionWire extends Pick<Upstream, 'read'> {
  /** Counts what sessions are with and end with: another number, and they are over. */
  readonly life?: number;
  /**
   * Sends a notification, or an answer to a question, past whatever else is under way. @returns whether it was taken.
   * *Never* rejects.
   */
  tell(address: Address, method: string, message: string, life: number | undefined): Promise<boolean>;
  /**
   * Opens the event stream of a session for what is asked there; absent where what is said to nobody comes otherwise.
   * *Never* rejects.
   */
  events?(address: Address, signal: Signal): Promise<SessionEvents>;
  /** Ends a session at the server; what becomes of it is of no interest. *Never* rejects. */
  end(address: Address): Promise<void>;
}

/** Version and headers of what is sent in a session. */
export interface Address {
  readonly version: string;
  readonly headers: Readonly<Record<string, string>>;
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
  /** What the server was told to say, and whether it took that. */
  #level: { readonly opened: Opened; readonly told: Quiet; readonly setting: Promise<boolean> } | undefined;
  readonly #askers = new Askers<ReadRequest, NonNullable<ReadRequest['onQuestion']>>();
  readonly #aside: Aside | undefined;
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
    const { events } = wire;
    if (events !== undefined)
      this.#aside = new Aside({
        events: (opened, signal) => events.call(wire, this.addressOf(opened), signal),
        heard: (opened, message) => {
          if (readRequest(message) !== undefined) this.#question(opened, message, this.#askers.alone);
        },
      });
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
    await this.#speakUp(opened, quiet, request.signal);
    const { onNotification, onQuestion } = request;
    // Where nobody can be asked, the gateway itself listens: a server has one stream for a session.
    const mayBeAsked = onQuestion !== undefined && this.#capabilities !== NO_CAPABILITIES;
    if (mayBeAsked) {
      this.#askers.begin(request, onQuestion);
      await this.#aside?.begin(opened);
    }
    const outcome = await this.#wire.read({
      ...request,
      ...(onNotification !== undefined && {
        onNotification: (message: Uint8Array) => {
          if (isHeard(message, quiet)) onNotification(message);
        },
      }),
      params: withoutEnvelope(request.params),
      ...this.addressOf(opened, request.headers),
      onRequest: (message) => this.#question(opened, message, onQuestion),
    });
    if (mayBeAsked) {
      // What was given up may still be worked on.
      if (outcome.kind === 'failure' && !UNSENT.has(outcome.failure.kind)) this.#askers.leave(request);
      else this.#askers.end(request);
      this.#aside?.end();
    }
    if (isForgotten(outcome, opened)) this.forget(opened);
    else if (isSuspect(outcome, opened) && this.stands(opened)) await this.#verify(opened, request);
    return outcome;
  }

  /** Has the server say as much as whoever asks for most: what is more than others want, they do not hear. */
  async #speakUp(opened: Opened, quiet: Quiet, signal: Signal): Promise<void> {
    if (quiet >= SILENT || !opened.hello.capabilities.has('logging')) return;
    const known = this.#level?.opened === opened ? this.#level : undefined;
    let level = known;
    if (known === undefined || quiet < known.told) {
      const setting = this.#setLevel(opened, quiet);
      level = { opened, told: quiet, setting };
      this.#level = level;
      void setting.then((isSet) => {
        // What failed is tried again by the next.
        if (!isSet && this.#level?.setting === setting) this.#level = undefined;
      });
    }
    if (level !== undefined) await within(level.setting, signal, LEVEL_MS);
  }

  async #setLevel(opened: Opened, quiet: Quiet): Promise<boolean> {
    const outcome = await this.#wire.read({
      ...{ method: 'logging/setLevel', name: undefined, params: levelParams(quiet), idempotent: true },
      ...this.addressOf(opened),
      ...{ signal: this.#closed, deadlineMs: TELL_MS, maxBytes: MAX_HELLO_BYTES },
    });
    return outcome.kind === 'answer' && outcome.answer.kind === 'result';
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
  addressOf({ id, hello }: Opened, headers = this.#headers): Address {
    return {
      version: hello.version,
      headers: id === undefined ? headers : { ...headers, [SESSION_HEADER]: id },
    };
  }

  /** The server does not know this session any more. */
  forget(opened: Opened): void {
    if (this.#current !== opened) return;
    this.#current = undefined;
    // What was asked in it is asked of nobody any more.
    this.#askers.clear();
    for (const told of [...this.#whenLost]) told();
  }

  /** @param told called each time the server has forgotten the session. @returns ends that. */
  onLost(told: () => void): () => void {
    this.#whenLost.add(told);
    return () => this.#whenLost.delete(told);
  }

  /** Sends a notification, if there is a session. *Never* rejects. */
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
    this.#aside?.close();
    this.#askers.clear();
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

  /** @returns whether the server took it: one that is told in another process, or session, would take it for its own. */
  async #send(opened: Opened, method: string, message: string): Promise<boolean> {
    if (opened.life !== this.#wire.life) return false;
    return this.#wire.tell(this.addressOf(opened), method, message, opened.life);
  }

  /** Puts a question of the server's to whoever asked, if there is somebody who could answer it. @returns whether. */
  #question(opened: Opened, message: Uint8Array, ask: ReadRequest['onQuestion']): boolean {
    // Over HTTP an answer finds its question by the session.
    const isDeaf = opened.id === undefined && this.#wire.life === undefined;
    const reply = (text: string): Promise<boolean> => this.#send(opened, ANSWER, text);
    if (ask?.(message, isDeaf ? undefined : reply) === true) return true;
    this.decline(opened, message);
    return false;
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

/** Waits for work, but no longer than the caller does, and than this. */
function within(work: Promise<unknown>, signal: Signal, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done, { once: true });
    void work.then(done, done);
    if (signal.aborted) done();
  });
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
