/**
 * An upstream of an older era (2025-11-25 and before), as the rest of the gateway sees one of this era.
 *
 * A call is asked like a read, under an id of the gateway's own: in a session ids must not come twice.
 * *Spec:* 2025-11-25; protocol digest, "Eras".
 */
import { joinBytes } from '../protocol/answer.ts';
import { INVALID_PARAMS, LEGACY_NOT_FOUND, statusOf } from '../protocol/errors.ts';
import { memberOf, textOf, wholeObject } from '../protocol/json.ts';
import { CURRENT_VERSION, META_TRANSLATED } from '../protocol/meta.ts';
import { Abort } from '../protocol/signal.ts';
import { CANCELLED, failure, UpstreamError } from './failure.ts';
import type { Hello } from './legacy-hello.ts';
import type { LegacySession } from './legacy-session.ts';
import type { ReadOutcome, ReadRequest, StreamOutcome, StreamRequest } from './types.ts';

/** A call and its answer are each read whole up to this: their ids are translated. */
const MAX_CALL_BYTES = 64 * 1024 * 1024;
/** What is said before an answer and not taken yet. Beyond it a slow reader misses some: it is only progress. */
const MAX_UNTAKEN_BYTES = 1024 * 1024;

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
  version,
  capabilities,
  instructions,
}: Hello): Extract<ReadOutcome, { kind: 'answer' }>['answer'] {
  const served = [...capabilities]
    .filter(([key]) => COMMON.has(key))
    .map(([key, text]) => `${JSON.stringify(key)}:${text}`)
    .join(',');
  const more = instructions === undefined ? '' : `,"instructions":${instructions}`;
  const tail = encoder.encode(
    `,"supportedVersions":["${CURRENT_VERSION}"],"capabilities":{${served}}${more},"_meta":{"${META_TRANSLATED}":${JSON.stringify(version)}}}}`,
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
  // A body that breaks off is a client that has left.
  const body = await collected(request.body).catch(() => 'broken' as const);
  if (body === 'broken') return { kind: 'failure', failure: CANCELLED };
  const members = body && wholeObject(body);
  const id = members && memberOf(members, 'id');
  const params = members && memberOf(members, 'params');
  if (body === undefined || id === undefined)
    return failed(`a call above ${MAX_CALL_BYTES} bytes cannot be translated`);
  return new LegacyCall(session, request, textOf(body, id), params ? textOf(body, params) : '{}').begin();
}

function failed(detail: string): StreamOutcome {
  return { kind: 'failure', failure: failure('too_large', 'http_request_error', detail) };
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
  #untakenBytes = 0;
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
        if (this.#untakenBytes + message.length > MAX_UNTAKEN_BYTES) return;
        this.#untakenBytes += message.length;
        this.#events.push(message);
        this.#woken?.();
      },
    });
    // It may still be at it: nobody waits for that.
    if (outcome.kind === 'failure' && outcome.failure.kind === 'timeout') this.#leave(new Error('timed out'));
    this.#over = true;
    return outcome;
  }

  async *#stream(answered: Promise<ReadOutcome>): AsyncGenerator<Uint8Array> {
    try {
      let outcome: ReadOutcome | undefined;
      for (;;) {
        for (let message = this.#events.shift(); message !== undefined; message = this.#events.shift()) {
          this.#untakenBytes -= message.length;
          yield eventOf(message);
        }
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
      const params = `{"requestId":${this.#sentId},"reason":"nobody waits for it any more"}`;
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
const CR = 0x0d;
const SPACE = 0x20;

/** JSON has line ends between its tokens only: there a space does as well. */
function eventOf(message: Uint8Array): Uint8Array {
  const broken = message.includes(LF) || message.includes(CR);
  const line = broken ? message.map((byte) => (byte === LF || byte === CR ? SPACE : byte)) : message;
  return joinBytes([EVENT, line, EVENT_END]);
}
