/**
 * An upstream of an older era (2025-11-25 and before), as the rest of the gateway sees one of this era.
 *
 * A call is asked like a read, under an id of the gateway's own: in a session ids must not come twice.
 * *Spec:* 2025-11-25; protocol digest, "Eras".
 */
import { hash } from 'node:crypto';
import { joinBytes } from '../protocol/answer.ts';
import { INVALID_PARAMS, LEGACY_NOT_FOUND, statusOf } from '../protocol/errors.ts';
import { memberOf, textOf, wholeObject } from '../protocol/json.ts';
import { COMMON_CAPABILITIES } from '../protocol/legacy.ts';
import { CURRENT_VERSION, META_TRANSLATED } from '../protocol/meta.ts';
import { MAY_ASK, NO_CAPABILITIES } from '../protocol/questions.ts';
import { CANCELLED, failure, UpstreamError } from './failure.ts';
import { Dialogue, type Resumption, resumptionOf, type Turn } from './legacy-dialogue.ts';
import type { Hello } from './legacy-hello.ts';
import type { ParkedDialogues } from './legacy-parked.ts';
import type { LegacySession } from './legacy-session.ts';
import { isOfOneRequest } from './legacy-sessions.ts';
import { askableIn } from './questions.ts';
import { progressTokenOf } from './stdio-words.ts';
import type { ReadOutcome, ReadRequest, StreamOutcome, StreamRequest } from './types.ts';

/** A call and its answer are each read whole up to this: their ids are translated. */
const MAX_CALL_BYTES = 64 * 1024 * 1024;
/** What is said before an answer and not taken yet. Beyond it a slow reader misses some: it is only progress. */
const MAX_UNTAKEN_BYTES = 1024 * 1024;

/** What asking a server of an older era needs. */
export interface LegacyDeps {
  /** The session in which this can be asked. @param capabilities JSON text of what the caller can be asked. */
  readonly session: (capabilities: string) => Interlocutor;
  /** Absent for a server of this era: what it asks it asks in its answers, and its states are its own. */
  readonly parked?: ParkedDialogues;
}

/** Who can be asked and told. */
export type Interlocutor = Pick<LegacySession, 'read' | 'tell'>;

/** Asks a server of an older era what one of this era would be asked. *Never* rejects. */
export async function readLegacy(
  { session, parked }: LegacyDeps,
  request: ReadRequest,
): Promise<ReadOutcome> {
  const capabilities = askableIn(request.params);
  const params = Buffer.from(request.params);
  const resumption = resumptionOf(params);
  const isAsked = resumption !== undefined || capabilities !== NO_CAPABILITIES;
  // Who has a dialogue already asks through here, too.
  if (parked === undefined || !isAsked || !MAY_ASK.has(request.method) || request.onQuestion !== undefined)
    return session(capabilities).read(request);
  const owner = ownerOf(request);
  const dialogue =
    resumption === undefined
      ? new Dialogue(session(capabilities), request, capabilities)
      : resumed(parked, resumption, owner, params);
  if (dialogue === undefined) return { kind: 'answer', answer: NOT_OPEN, status: 200, receivedAt: 0 };
  const { signal, onNotification } = request;
  const turn = await dialogue.next({
    ...{ signal, onNotification },
    progressToken: progressTokenOf(request.params),
  });
  return outcomeOf(turn, dialogue, parked, owner);
}

/** Whoever comes back must be the same, and ask the same: as a digest, for no credential is kept. */
function ownerOf({
  caller,
  method,
  name,
  headers,
}: Pick<ReadRequest, 'caller' | 'method' | 'name' | 'headers'>) {
  const own = Object.entries(headers).filter(([name]) => !isOfOneRequest(name));
  return hash('sha256', JSON.stringify([caller, method, name, own.sort()]), 'base64url');
}

function resumed(
  parked: ParkedDialogues,
  { state, responsesAt }: Resumption,
  owner: string,
  params: Uint8Array,
): Dialogue | undefined {
  const dialogue = state === undefined ? undefined : parked.take(state, owner);
  if (responsesAt !== undefined) dialogue?.answer(params, responsesAt);
  return dialogue;
}

type Answered = Extract<ReadOutcome, { kind: 'answer' }>['answer'];

const NOT_OPEN: Answered = {
  kind: 'error',
  code: INVALID_PARAMS,
  message: 'What this answers is not open here: it is too late, or another replica asked. Begin again',
  data: undefined,
};

/** What a caller is told of a turn. Behind a question the dialogue waits for it to come back. */
function outcomeOf(
  turn: Turn,
  dialogue: Dialogue,
  parked: ParkedDialogues | undefined,
  owner: string,
): ReadOutcome {
  if (turn.kind === 'outcome') return turn.outcome;
  const state = parked?.park(dialogue, owner) ?? '';
  const tail = encoder.encode(`,"inputRequests":${turn.requests},"requestState":"${state}"}}`);
  const answer: Answered = {
    kind: 'result',
    resultType: 'input_required',
    hints: { ttlMs: undefined, cacheScope: undefined },
    result: { tail, storable: tail, plain: () => tail },
  };
  return { kind: 'answer', answer, status: 200, receivedAt: 0 };
}

/** `server/discover`, by what `initialize` says. *Never* rejects. */
export async function discoverLegacy(
  session: Pick<LegacySession, 'open' | 'hold'>,
  request: ReadRequest,
  now: () => number,
): Promise<ReadOutcome> {
  const release = session.hold();
  const opened = await session.open(request.signal).finally(release);
  if (opened.kind === 'failed') return opened.outcome;
  return { kind: 'answer', answer: discovered(opened.hello), status: 200, receivedAt: now() };
}

/** What `server/discover` would say, by what `initialize` said. */
function discovered({
  version,
  capabilities,
  instructions,
}: Hello): Extract<ReadOutcome, { kind: 'answer' }>['answer'] {
  const served = [...capabilities]
    .filter(([key]) => COMMON_CAPABILITIES.includes(key))
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

/** Calls, under an id of the gateway's own, and hands the answer back under the client's. *Never* rejects. */
export async function callTranslated(deps: LegacyDeps, request: StreamRequest): Promise<StreamOutcome> {
  // A body that breaks off is a client that has left.
  const body = await collected(request.body).catch(() => 'broken' as const);
  if (body === 'broken') return { kind: 'failure', failure: CANCELLED };
  const members = body && wholeObject(body);
  const id = members && memberOf(members, 'id');
  const params = members && memberOf(members, 'params');
  if (body === undefined || id === undefined)
    return failed(`a call above ${MAX_CALL_BYTES} bytes cannot be translated`);
  const text = params ? textOf(body, params) : '{}';
  return new LegacyCall(deps, request, textOf(body, id), text).begin();
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
  readonly #deps: LegacyDeps;
  readonly #request: StreamRequest;
  readonly #id: string;
  readonly #params: string;
  readonly #owner: string;
  readonly #events: Uint8Array[] = [];
  #untakenBytes = 0;
  #woken: (() => void) | undefined;

  constructor(deps: LegacyDeps, request: StreamRequest, id: string, params: string) {
    this.#deps = deps;
    this.#request = request;
    this.#id = id;
    this.#params = params;
    this.#owner = ownerOf(request);
  }

  async begin(): Promise<StreamOutcome> {
    const dialogue = this.#dialogue();
    if (dialogue === undefined)
      return this.#whole({ kind: 'answer', answer: NOT_OPEN, status: 200, receivedAt: 0 });
    const { signal } = this.#request;
    const answered = dialogue
      .next({
        signal,
        onNotification: (message) => this.#heard(message),
        progressToken: progressTokenOf(this.#params),
      })
      .then((turn) => outcomeOf(turn, dialogue, this.#deps.parked, this.#owner));
    const first = await Promise.race([answered, new Promise<void>((resolve) => (this.#woken = resolve))]);
    if (first !== undefined) return this.#whole(first);
    const body = this.#stream(dialogue, answered);
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

  /** Begins one, or goes on with one that waits; undefined where none does. */
  #dialogue(): Dialogue | undefined {
    const { session, parked } = this.#deps;
    const { method, name, version, headers, idempotent, signal } = this.#request;
    const params = Buffer.from(this.#params);
    const mayAsk = parked !== undefined && MAY_ASK.has(method);
    const resumption = mayAsk ? resumptionOf(params) : undefined;
    if (mayAsk && resumption !== undefined) return resumed(parked, resumption, this.#owner, params);
    const capabilities = askableIn(this.#params);
    const asked: ReadRequest = {
      ...{ method, name, version, headers, idempotent, signal },
      params: this.#params,
      pace: 'slow',
      maxBytes: MAX_CALL_BYTES,
    };
    return new Dialogue(session(capabilities), asked, mayAsk ? capabilities : NO_CAPABILITIES);
  }

  #heard(message: Uint8Array): void {
    if (this.#untakenBytes + message.length > MAX_UNTAKEN_BYTES) return;
    this.#untakenBytes += message.length;
    this.#events.push(message);
    this.#woken?.();
  }

  async *#stream(dialogue: Dialogue, answered: Promise<ReadOutcome>): AsyncGenerator<Uint8Array> {
    let outcome: ReadOutcome | undefined;
    try {
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
      // What was asked waits for its client: it is not over.
      if (outcome === undefined) dialogue.end();
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
