/**
 * A session with a server of an older era, over Streamable HTTP (revisions 2025-03-26 to 2025-11-25): opened by
 * `initialize`, kept by its header, opened anew when the server no longer knows it.
 *
 * Requests go out without what `_meta` of this era says of itself: a server that knows both would not believe it.
 * Whoever finds the
 * session gone opens the next one for all who wait. *Never* rejects.
 */
import { tailMembers } from '../protocol/answer.ts';
import { LEGACY_NO_SESSION, METHOD_NOT_FOUND } from '../protocol/errors.ts';
import { type Member, memberOf, objectMembers, stringValue, textOf } from '../protocol/json.ts';
import { META_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_VERSION } from '../protocol/meta.ts';
import { Abort, type Signal } from '../protocol/signal.ts';
import { CANCELLED, failure } from './failure.ts';
import { SESSION_HEADER } from './head.ts';
import type { ReadOutcome, ReadRequest, StreamOutcome, Upstream } from './types.ts';

/** The newest revision of the older era, and others that are understood. */
export const LEGACY_VERSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26'];
const NEWEST = LEGACY_VERSIONS[0] as string;
/** What `initialize` answers is small. */
const MAX_HELLO_BYTES = 1024 * 1024;

/** What a server of an older era says of itself. */
export interface Hello {
  readonly version: string;
  /** JSON text of each capability. */
  readonly capabilities: ReadonlyMap<string, string>;
  /** JSON text. */
  readonly instructions: string | undefined;
}

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
  end(headers: Readonly<Record<string, string>>): Promise<void>;
}

export class LegacySession {
  readonly #wire: SessionWire;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #closed = new Abort();
  #current: Opened | undefined;
  #opening: Promise<Opening> | undefined;
  /** Told of a session that the server has forgotten. */
  onLost: (() => void) | undefined;

  /** @param headers credentials and what else of the caller this upstream may see. */
  constructor(wire: SessionWire, headers: Readonly<Record<string, string>>) {
    this.#wire = wire;
    this.#headers = headers;
  }

  /** Opens it, unless it is open. */
  async open(signal: Signal): Promise<Opening> {
    if (this.#current?.life !== this.#wire.life) this.#current = undefined;
    if (this.#current !== undefined) return this.#current;
    this.#opening ??= this.#initialize().finally(() => {
      this.#opening = undefined;
    });
    return unlessAborted(this.#opening, signal);
  }

  /** Asks once, or again in the next session where this one was forgotten: it was not done then. */
  async read(request: ReadRequest): Promise<ReadOutcome> {
    let outcome: ReadOutcome | undefined;
    for (let attempts = 0; attempts < 2; attempts++) {
      const opened = await this.open(request.signal);
      if (opened.kind === 'failed') return opened.outcome;
      outcome = await this.#wire.read({
        ...request,
        params: withoutEnvelope(request.params),
        ...this.addressOf(opened, request.headers),
        onRequest: (message) => this.#decline(message),
      });
      if (!isForgotten(outcome, opened)) return outcome;
      this.forget(opened);
    }
    return outcome as ReadOutcome;
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
    this.onLost?.();
  }

  /** Sends a notification or a response. *Never* rejects. */
  async tell(method: string, message: string): Promise<void> {
    const opened = this.#current;
    if (opened === undefined) return;
    const outcome = await this.#wire
      .stream({
        method,
        name: undefined,
        ...this.addressOf(opened),
        body: Buffer.from(message),
        idempotent: false,
        signal: this.#closed,
      })
      .catch(() => undefined);
    await letGo(outcome);
  }

  /** Ends it, at the server too. */
  async close(): Promise<void> {
    const opened = this.#current;
    this.#current = undefined;
    this.#closed.abort(new Error('closed'));
    if (opened?.id !== undefined) await this.#wire.end(this.addressOf(opened).headers);
  }

  async #initialize(): Promise<Opening> {
    const outcome = await this.#wire.read({
      method: 'initialize',
      name: undefined,
      params: `{"protocolVersion":"${NEWEST}","capabilities":{},"clientInfo":{"name":"headgate","version":"1"}}`,
      version: NEWEST,
      headers: this.#headers,
      idempotent: true,
      signal: this.#closed,
      maxBytes: MAX_HELLO_BYTES,
    });
    if (outcome.kind !== 'answer' || outcome.answer.kind !== 'result') return { kind: 'failed', outcome };
    const hello = readHello(outcome.answer.result.tail);
    if (hello === undefined) return { kind: 'failed', outcome: notInitialized('no answer to initialize') };
    if (!LEGACY_VERSIONS.includes(hello.version))
      return { kind: 'failed', outcome: notInitialized(`speaks ${hello.version.slice(0, 20)}`) };
    const opened: Opened = { kind: 'open', id: outcome.session, hello, life: this.#wire.life };
    this.#current = opened;
    await this.tell('notifications/initialized', '{"jsonrpc":"2.0","method":"notifications/initialized"}');
    return opened;
  }

  /** A server asks only what the client said it can: nothing here. Some ask all the same, and wait. */
  #decline(message: Uint8Array): void {
    const request = readRequest(message);
    if (request === undefined) return;
    const answer =
      request.method === 'ping'
        ? '"result":{}'
        : `"error":{"code":${METHOD_NOT_FOUND},"message":"The client does not offer this"}`;
    void this.tell(request.method, `{"jsonrpc":"2.0","id":${request.id},${answer}}`);
  }
}

/** What the requests of this era say of themselves, each. */
const ENVELOPE: ReadonlySet<string> = new Set([
  META_VERSION,
  META_CAPABILITIES,
  META_CLIENT_INFO,
  META_LOG_LEVEL,
]);

/** The params as an older client would send them. */
function withoutEnvelope(params: string): string {
  const bytes = Buffer.from(params);
  const members = objectMembers(bytes, 0) ?? [];
  const meta = memberOf(members, '_meta');
  const inner = meta && objectMembers(bytes, meta.start);
  if (inner === undefined || !inner.some(({ key }) => ENVELOPE.has(key))) return params;
  const text = (all: readonly Member[]): string =>
    all.map((member) => `${JSON.stringify(member.key)}:${textOf(bytes, member)}`).join(',');
  const others = text(members.filter((member) => member !== meta));
  const kept = inner.filter(({ key }) => !ENVELOPE.has(key));
  if (kept.length === 0) return `{${others}}`;
  return `{${others === '' ? '' : `${others},`}"_meta":{${text(kept)}}}`;
}

/** Whether an answer says that the session is not known: 404, or what many servers say instead after a restart. */
function isForgotten(outcome: ReadOutcome, { id }: Opened): boolean {
  if (id === undefined) return false;
  if (outcome.kind === 'refused') return outcome.status === 404;
  if (outcome.kind !== 'answer' || outcome.answer.kind !== 'error') return false;
  const { code } = outcome.answer;
  return outcome.status === 404
    ? code !== METHOD_NOT_FOUND
    : outcome.status === 400 && code === LEGACY_NO_SESSION;
}

function notInitialized(detail: string): ReadOutcome {
  return { kind: 'failure', failure: failure('broken', 'http_protocol_error', detail) };
}

function readHello(tail: Uint8Array): Hello | undefined {
  const members = tailMembers(tail);
  const version = memberOf(members, 'protocolVersion');
  const capabilities = memberOf(members, 'capabilities');
  const name = version && stringValue(tail, version);
  const entries = capabilities && objectMembers(tail, capabilities.start);
  if (name === undefined || entries === undefined) return undefined;
  const instructions = memberOf(members, 'instructions');
  const isText = instructions !== undefined && stringValue(tail, instructions) !== undefined;
  return {
    version: name,
    capabilities: new Map(entries.map((entry) => [entry.key, textOf(tail, entry)])),
    instructions: isText ? textOf(tail, instructions) : undefined,
  };
}

function readRequest(message: Uint8Array): { readonly id: string; readonly method: string } | undefined {
  const members = objectMembers(message, 0) ?? [];
  const id = memberOf(members, 'id');
  const method = memberOf(members, 'method');
  const name = method && stringValue(message, method);
  return id === undefined || name === undefined ? undefined : { id: textOf(message, id), method: name };
}

/** Lets go of an answer that nobody reads. */
export async function letGo(outcome: StreamOutcome | undefined): Promise<void> {
  if (outcome?.kind !== 'response') return;
  if (outcome.body.discard === undefined) await outcome.body[Symbol.asyncIterator]().return?.();
  else outcome.body.discard();
}

/** Waits, as long as the caller does. */
function unlessAborted(work: Promise<Opening>, signal: Signal): Promise<Opening> {
  const gone: Opening = { kind: 'failed', outcome: { kind: 'failure', failure: CANCELLED } };
  if (signal.aborted) return Promise.resolve(gone);
  return new Promise((resolve) => {
    const leave = (): void => resolve(gone);
    signal.addEventListener('abort', leave, { once: true });
    void work.then(resolve).finally(() => signal.removeEventListener('abort', leave));
  });
}
