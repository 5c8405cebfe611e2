/**
 * An upstream of an older era (2025-11-25 and before), as the rest of the gateway sees one of this era.
 *
 * One session for the gateway and all callers whom the server cannot tell apart, one for each of the others. A call is
 * asked like a read, under an id of the gateway's own: in a session ids must not come twice. *Bounded by*
 * {@link MAX_SESSIONS} and {@link IDLE_MS}. *Spec:* 2025-11-25; protocol digest, "Eras".
 */
import { joinBytes } from '../protocol/answer.ts';
import { BoundedMap } from '../protocol/bounded-map.ts';
import { INVALID_PARAMS, LEGACY_NOT_FOUND, statusOf } from '../protocol/errors.ts';
import { memberOf, textOf, wholeObject } from '../protocol/json.ts';
import { CURRENT_VERSION } from '../protocol/meta.ts';
import { Abort } from '../protocol/signal.ts';
import { failure, UpstreamError } from './failure.ts';
import { type Hello, LegacySession, type SessionWire } from './legacy-session.ts';
import type { ReadOutcome, ReadRequest, StreamOutcome, StreamRequest } from './types.ts';

/** Sessions at once. Beyond it the one asked for longest ago is ended. */
const MAX_SESSIONS = 1_000;
/** A call and its answer are each read whole up to this: their ids are translated. */
const MAX_CALL_BYTES = 64 * 1024 * 1024;
/** Headers of a request that say nothing of who asks. */
const OF_ONE_REQUEST: ReadonlySet<string> = new Set(['traceparent', 'tracestate', 'baggage']);

/** The sessions of an upstream. */
export class LegacySessions {
  readonly #wire: SessionWire;
  readonly #sessions = new BoundedMap<string, LegacySession>(MAX_SESSIONS, (session) => {
    void session.close();
  });

  constructor(wire: SessionWire) {
    this.#wire = wire;
  }

  /** The session of whoever sends these headers. */
  of(headers: Readonly<Record<string, string>>): LegacySession {
    const own = Object.entries(headers)
      .filter(([name]) => !OF_ONE_REQUEST.has(name) && !name.startsWith('mcp-param-'))
      .sort();
    const key = JSON.stringify(own);
    const known = this.#sessions.touch(key);
    if (known !== undefined) return known;
    const session = new LegacySession(this.#wire, Object.fromEntries(own));
    this.#sessions.set(key, session);
    return session;
  }

  async close(): Promise<void> {
    const ends: Promise<void>[] = [];
    for (let oldest = this.#sessions.oldest(); oldest !== undefined; oldest = this.#sessions.oldest()) {
      this.#sessions.delete(oldest[0]);
      ends.push(oldest[1].close());
    }
    await Promise.all(ends);
  }
}

/** Asks a server of an older era what one of this era would be asked. *Never* rejects. */
export async function readLegacy(
  session: LegacySession,
  request: ReadRequest,
  now: () => number,
): Promise<ReadOutcome> {
  if (request.method !== 'server/discover') return session.read(request);
  const opened = await session.open(request.signal);
  if (opened.kind === 'failed') return opened.outcome;
  return { kind: 'answer', answer: discovered(opened.hello), status: 200, receivedAt: now() };
}

/** Capabilities that mean the same in both eras. */
const COMMON: ReadonlySet<string> = new Set(['resources', 'tools', 'prompts', 'completions', 'logging']);

/** What `server/discover` would say, by what `initialize` said. */
function discovered({
  capabilities,
  instructions,
}: Hello): Extract<ReadOutcome, { kind: 'answer' }>['answer'] {
  const served = [...capabilities]
    .filter(([key]) => COMMON.has(key))
    .map(([key, text]) => `${JSON.stringify(key)}:${text}`)
    .join(',');
  const more = instructions === undefined ? '' : `,"instructions":${instructions}`;
  const tail = encoder.encode(
    `,"supportedVersions":["${CURRENT_VERSION}"],"capabilities":{${served}}${more}}}`,
  );
  return {
    kind: 'result',
    resultType: 'complete',
    hints: { ttlMs: undefined, cacheScope: undefined },
    result: { tail, storable: tail, plain: () => tail },
  };
}

const encoder = new TextEncoder();

/** Who can be asked and told. */
export type Interlocutor = Pick<LegacySession, 'read' | 'tell'>;

/** Calls, under an id of the gateway's own, and hands the answer back under the client's. *Never* rejects. */
export async function callTranslated(session: Interlocutor, request: StreamRequest): Promise<StreamOutcome> {
  const body = await collected(request.body);
  const members = body && wholeObject(body);
  const id = members && memberOf(members, 'id');
  const params = members && memberOf(members, 'params');
  if (body === undefined || id === undefined)
    return failed('too_large', `a call above ${MAX_CALL_BYTES} bytes cannot be translated`);
  return new LegacyCall(session, request, textOf(body, id), params ? textOf(body, params) : '{}').begin();
}

function failed(kind: 'too_large' | 'broken', detail: string): StreamOutcome {
  return { kind: 'failure', failure: failure(kind, 'http_request_error', detail) };
}

async function collected(body: StreamRequest['body']): Promise<Uint8Array | undefined> {
  if (body instanceof Uint8Array) return body;
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body) {
    bytes += part.length;
    if (bytes > MAX_CALL_BYTES) return undefined;
    parts.push(part);
  }
  return joinBytes(parts);
}

/** One call: JSON, if nothing comes before its answer, otherwise events as they come. */
class LegacyCall {
  readonly #session: Interlocutor;
  readonly #request: StreamRequest;
  readonly #id: string;
  readonly #params: string;
  readonly #gone = new Abort();
  readonly #events: Uint8Array[] = [];
  #sentId: string | undefined;
  #over = false;
  #woken: (() => void) | undefined;

  constructor(session: Interlocutor, request: StreamRequest, id: string, params: string) {
    this.#session = session;
    this.#request = request;
    this.#id = id;
    this.#params = params;
  }

  async begin(): Promise<StreamOutcome> {
    const { signal } = this.#request;
    const leave = (): void => this.#leave(signal.reason);
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
    const answered = this.#ask().finally(() => signal.removeEventListener('abort', leave));
    const first = await Promise.race([answered, new Promise<void>((resolve) => (this.#woken = resolve))]);
    if (first !== undefined) return this.#whole(first);
    const body = this.#stream(answered);
    return {
      kind: 'response',
      status: 200,
      media: 'sse',
      body: { [Symbol.asyncIterator]: () => body },
      lengthBytes: undefined,
      challenge: undefined,
      retryAfter: undefined,
    };
  }

  async #ask(): Promise<ReadOutcome> {
    const { method, name, version, headers, idempotent } = this.#request;
    const outcome = await this.#session.read({
      ...{ method, name, version, headers, idempotent },
      params: this.#params,
      signal: this.#gone,
      pace: 'slow',
      maxBytes: MAX_CALL_BYTES,
      onSent: (id) => {
        this.#sentId = id;
      },
      onNotification: (message) => {
        this.#events.push(message);
        this.#woken?.();
      },
    });
    this.#over = true;
    return outcome;
  }

  async *#stream(answered: Promise<ReadOutcome>): AsyncGenerator<Uint8Array> {
    try {
      let outcome: ReadOutcome | undefined;
      for (;;) {
        for (const message of this.#events.splice(0)) yield eventOf(message);
        if (outcome !== undefined) break;
        const more = new Promise<undefined>((resolve) => (this.#woken = () => resolve(undefined)));
        outcome = (await Promise.race([answered, more])) ?? undefined;
      }
      const message = messageOf(outcome, this.#id);
      if (message === undefined) throw new UpstreamError(reasonOf(outcome));
      yield eventOf(message);
    } finally {
      if (!this.#over) this.#leave(new Error('nobody reads it any more'));
    }
  }

  #whole(outcome: ReadOutcome): StreamOutcome {
    const message = messageOf(outcome, this.#id);
    if (message !== undefined) return answered(message, outcome);
    if (outcome.kind !== 'refused') return { kind: 'failure', failure: reasonOf(outcome) };
    const { status, challenge, retryAfter } = outcome;
    const body = nothing();
    return {
      ...{ kind: 'response', status, media: 'other', lengthBytes: undefined, challenge, retryAfter },
      body: { [Symbol.asyncIterator]: () => body },
    };
  }

  /** The client has left. *Spec:* 2025-11-25, basic/utilities/cancellation: a closed connection says nothing. */
  #leave(reason: unknown): void {
    if (this.#gone.aborted) return;
    if (!this.#over && this.#sentId !== undefined) {
      const params = `{"requestId":${this.#sentId},"reason":"the client has left"}`;
      const method = 'notifications/cancelled';
      void this.#session.tell(method, `{"jsonrpc":"2.0","method":"${method}","params":${params}}`);
    }
    this.#gone.abort(reason);
  }
}

/** An error has the status of its code, whatever an older server gave it. */
function answered(message: Uint8Array, outcome: ReadOutcome): StreamOutcome {
  const { answer } = outcome as Extract<ReadOutcome, { kind: 'answer' }>;
  const status = answer.kind === 'error' ? statusOf(answer.code) : 200;
  if (status === 200) return { kind: 'whole', chunks: [message] };
  const body = only(message);
  return {
    ...{ kind: 'response', status, media: 'json', lengthBytes: message.length },
    ...{ challenge: undefined, retryAfter: undefined },
    body: { [Symbol.asyncIterator]: () => body },
  };
}

async function* only(message: Uint8Array): AsyncGenerator<Uint8Array> {
  yield message;
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** The response as the client sees it; undefined for what is none. */
function messageOf(outcome: ReadOutcome, id: string): Uint8Array | undefined {
  if (outcome.kind !== 'answer') return undefined;
  const { answer } = outcome;
  const head = `{"jsonrpc":"2.0","id":${id},`;
  if (answer.kind === 'result')
    return joinBytes([
      encoder.encode(`${head}"result":{"resultType":${JSON.stringify(answer.resultType)}`),
      answer.result.plain(),
    ]);
  const code = answer.code === LEGACY_NOT_FOUND ? INVALID_PARAMS : answer.code;
  const data = answer.data === undefined ? '' : `,"data":${answer.data}`;
  return encoder.encode(
    `${head}"error":{"code":${code},"message":${JSON.stringify(answer.message)}${data}}}`,
  );
}

function reasonOf(outcome: ReadOutcome): ReturnType<typeof failure> {
  if (outcome.kind === 'failure') return outcome.failure;
  return failure(
    'broken',
    'http_protocol_error',
    `status ${outcome.kind === 'refused' ? outcome.status : 0}`,
  );
}

const EVENT = encoder.encode('event: message\ndata: ');
const EVENT_END = encoder.encode('\n\n');
const LF = 0x0a;

/** JSON has line ends between its tokens only: there a space does as well. */
function eventOf(message: Uint8Array): Uint8Array {
  const line = message.map((byte) => (byte === LF || byte === 0x0d ? 0x20 : byte));
  return joinBytes([EVENT, line, EVENT_END]);
}
