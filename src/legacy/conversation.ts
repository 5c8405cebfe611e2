/**
 * One request of an older client, from its translation to the answer it knows how to read: asked once, and again with
 * what the client was asked for in between.
 *
 * *Bounded by* {@link MAX_ROUNDS}, and by what is read whole: an answer above {@link WHOLE_BYTES} goes on as it comes.
 */
import { joinBytes } from '../protocol/answer.ts';
import { HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS, refusal } from '../protocol/errors.ts';
import type { Exchange, Handle, Inbound, Reply } from '../protocol/exchange.ts';
import { sameId } from '../protocol/json-watch.ts';
import { readNotice } from '../protocol/notice.ts';
import { SseFramer } from '../protocol/sse.ts';
import {
  type Answered,
  begun,
  errorReply,
  headOf,
  type Response,
  readHead,
  readResponse,
  refusedReply,
  resultReply,
} from './answer.ts';
import { paramHeadersOf } from './param-headers.ts';
import { answersTo, type Questions, type Respondent, readQuestions } from './questions.ts';
import { type Additions, isNameable, type LegacyRequest, modernised, type Self } from './request.ts';

/** Times a server may ask in one call. */
const MAX_ROUNDS = 16;
/** An answer up to this is read, to see whether it asks something. */
const WHOLE_BYTES = 4 * 1024 * 1024;
/** The same of one that seems to, and of a call that is asked again: its answer has an id that the client does not know. */
const AGAIN_BYTES = 64 * 1024 * 1024;

type Relay = Extract<Reply, { kind: 'relay' }>;

/** What a conversation needs. */
export interface ConversationDeps {
  readonly handle: Handle;
  readonly inbound: Inbound;
  readonly request: LegacyRequest;
  readonly self: Self;
  readonly exchange: Exchange;
  readonly respondent: Omit<Respondent, 'signal' | 'send'>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

/** What became of one asking. */
type Outcome =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'questions'; readonly questions: Questions }
  /** What the server wants mirrored in headers is not. */
  | { readonly kind: 'unmirrored'; readonly reply: Reply };

/** Asks, and answers in between. *Never* rejects but for bugs. */
export async function converse(deps: ConversationDeps): Promise<Reply> {
  const { facts } = deps.exchange;
  const reply = isNameable(deps.request)
    ? await talk(deps)
    : errorReply(deps.request, INVALID_PARAMS, 'The name is too long', undefined);
  // What counts is what its client sees, and nothing of what was said before it.
  const code = reply.kind === 'answer' ? reply.rpcError : undefined;
  if (reply.kind !== 'refused') {
    facts.rpcError = code;
    facts.errorType = code === undefined ? undefined : String(code);
  } else {
    facts.rpcError = reply.refusal.code;
    // Words stay: what failed below is said in them.
    if (facts.errorType !== undefined && Number.isInteger(Number(facts.errorType)))
      facts.errorType = String(reply.refusal.code);
  }
  return reply;
}

async function talk(deps: ConversationDeps): Promise<Reply> {
  const { request, respondent, exchange } = deps;
  let additions: Additions = {};
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const outcome = await ask(deps, additions);
    if (outcome.kind === 'reply') return outcome.reply;
    if (outcome.kind === 'unmirrored') {
      const headers = additions.headers === undefined ? await paramHeadersOf(deps) : undefined;
      if (headers === undefined) return outcome.reply;
      additions = { ...additions, headers };
      continue;
    }
    const answers = await waiting(deps, () =>
      answersTo(outcome.questions, {
        ...respondent,
        signal: exchange.signal,
        send: (message) => exchange.notify(message, 'must'),
      }),
    );
    if (answers.kind === 'failed') return errorReply(request, answers.code, answers.message, undefined);
    additions = { ...additions, id: respondent.nextId(), params: answers.params };
  }
  return errorReply(request, INTERNAL_ERROR, 'The server asked too many questions', undefined);
}

/** Others take their time: it is not the gateway's own. */
async function waiting<T>(
  { exchange: { facts }, now }: ConversationDeps,
  work: () => Promise<T>,
): Promise<T> {
  const startedAt = now();
  try {
    return await work();
  } finally {
    facts.upstreamMs = (facts.upstreamMs ?? 0) + (now() - startedAt);
  }
}

const BROKEN = 'The upstream server broke off its answer';

async function ask(deps: ConversationDeps, additions: Additions): Promise<Outcome> {
  const { handle, inbound, request, self, exchange } = deps;
  const sentId = additions.id ?? request.id;
  const reply = await handle(modernised(inbound, request, self, additions), exchange);
  switch (reply.kind) {
    case 'refused': {
      const told = refusedReply(reply, request);
      const isUnmirrored = reply.refusal.code === HEADER_MISMATCH && request.method === 'tools/call';
      return { kind: isUnmirrored ? 'unmirrored' : 'reply', reply: told };
    }
    case 'answer':
      return answered(reply, sentId, request);
    case 'relay':
      return waiting(deps, () =>
        reply.media === 'sse' ? heard(reply, sentId, deps) : relayed(reply, sentId, request),
      ).catch(
        (): Outcome => ({ kind: 'reply', reply: errorReply(request, INTERNAL_ERROR, BROKEN, undefined) }),
      );
    default:
      return { kind: 'reply', reply };
  }
}

function answered(reply: Answered, sentId: string, request: LegacyRequest): Outcome {
  const { head, tail, headers } = reply;
  const written = readHead(head);
  if (written === undefined) {
    const bytes = joinBytes([Buffer.from(head), ...tail]);
    return outcomeOf(readResponse(bytes, sentId, request), request, headers);
  }
  const pieces = written.rest === '' ? tail : [Buffer.from(written.rest), ...tail];
  return outcomeOf({ kind: 'result', resultType: written.resultType, tail: pieces }, request, headers);
}

function outcomeOf(
  response: Response,
  request: LegacyRequest,
  headers: Readonly<Record<string, string>>,
): Outcome {
  if (response.kind === 'other') return { kind: 'reply', reply: withHeaders(response.reply, headers) };
  const { resultType, tail } = response;
  if (resultType !== 'input_required') return { kind: 'reply', reply: resultReply(request, tail, headers) };
  const all = joinBytes([Buffer.from('{'), ...begun(tail)]);
  // The last brace closes the message.
  const questions = readQuestions(all.subarray(0, all.length - 1));
  if (questions !== undefined) return { kind: 'questions', questions };
  const words = 'The server asks for something that cannot be read';
  return { kind: 'reply', reply: errorReply(request, INTERNAL_ERROR, words, undefined) };
}

function withHeaders(reply: Reply, headers: Readonly<Record<string, string>>): Reply {
  return reply.kind === 'answer' ? { ...reply, headers: { ...headers, ...reply.headers } } : reply;
}

/** An answer that flows. */
async function relayed(reply: Relay, sentId: string, request: LegacyRequest): Promise<Outcome> {
  const { head, body, broken, headers } = reply;
  if (head !== undefined) {
    const rest = readHead(head)?.rest ?? '';
    const flowing = { ...reply, head: headOf(request.id), body: beginning(rest, body) };
    const error = broken?.replace(`"id":${sentId}`, () => `"id":${request.id}`);
    return { kind: 'reply', reply: error === undefined ? flowing : { ...flowing, broken: error } };
  }
  const iterator = body[Symbol.asyncIterator]();
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  let most = sentId === request.id ? WHOLE_BYTES : AGAIN_BYTES;
  while (bytes <= most) {
    const { done, value } = await iterator.next();
    if (done === true) return outcomeOf(readResponse(joinBytes(pieces), sentId, request), request, headers);
    pieces.push(value);
    bytes += value.length;
    if (bytes > most && most === WHOLE_BYTES && seemsToAsk(pieces)) most = AGAIN_BYTES;
  }
  if (sentId === request.id) return { kind: 'reply', reply: { ...reply, body: resumed(pieces, iterator) } };
  await iterator.return?.();
  return { kind: 'reply', reply: tooLarge(request) };
}

const ASKS = Buffer.from('"input_required"');

function seemsToAsk(pieces: readonly Uint8Array[]): boolean {
  return pieces.some((piece) => Buffer.from(piece.buffer, piece.byteOffset, piece.length).includes(ASKS));
}

/** A call that is answered with events: what is said before the answer goes on at once. */
async function heard(reply: Relay, sentId: string, deps: ConversationDeps): Promise<Outcome> {
  const { request, exchange } = deps;
  // Its client, too, sees that something is being done.
  exchange.stream?.();
  const framer = new SseFramer(sentId === request.id ? WHOLE_BYTES : AGAIN_BYTES);
  const iterator = reply.body[Symbol.asyncIterator]();
  for (;;) {
    const { done, value } = await iterator.next();
    if (done === true) break;
    const events = framer.push(value);
    for (const [i, event] of events.entries()) {
      if (event.part === 'first') {
        if (sentId === request.id) {
          const begin = events.slice(i).flatMap(({ raw }) => raw);
          return { kind: 'reply', reply: { ...reply, body: resumed(begin, iterator) } };
        }
        await iterator.return?.();
        return { kind: 'reply', reply: tooLarge(request) };
      }
      if (event.data === undefined || !event.message) continue;
      const message = joinBytes(event.data);
      const notice = readNotice(message);
      if (notice.kind === 'notification') {
        exchange.notify(message);
        await exchange.taken?.();
      } else if (notice.kind === 'response' && isOf(notice.id, sentId)) {
        await iterator.return?.();
        return outcomeOf(readResponse(message, sentId, request), request, reply.headers);
      }
    }
  }
  // The request path ends every stream with an answer.
  return { kind: 'reply', reply: errorReply(request, INTERNAL_ERROR, BROKEN, undefined) };
}

/** What has no id, on the stream of a request, is about that request. */
function isOf(id: string | undefined, sentId: string): boolean {
  return id === undefined || id === 'null' || sameId(id, sentId);
}

function tooLarge({ id }: LegacyRequest): Reply {
  return {
    kind: 'refused',
    id,
    refusal: refusal(INTERNAL_ERROR, 'The answer of the upstream server is too large', { status: 200 }),
  };
}

/** A body that was begun to be read. Not a generator: one that waits would not hear of `return`. */
function resumed(
  pieces: readonly Uint8Array[],
  iterator: AsyncIterator<Uint8Array>,
): AsyncIterable<Uint8Array> {
  const left = [...pieces];
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => {
        const value = left.shift();
        return value === undefined ? iterator.next() : Promise.resolve({ done: false, value });
      },
      return: async () => (await iterator.return?.()) ?? { done: true, value: undefined },
    }),
  };
}

/** The body without the comma that it begins with. */
function beginning(rest: string, body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  if (rest !== '') return resumed(begun([Buffer.from(rest)]), iterator);
  let first = true;
  return {
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        const step = await iterator.next();
        if (!first || step.done === true || step.value.length === 0) return step;
        first = false;
        return { done: false, value: begun([step.value])[0] ?? step.value };
      },
      return: async () => (await iterator.return?.()) ?? { done: true, value: undefined },
    }),
  };
}
