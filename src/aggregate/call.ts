/**
 * Streamed calls: the client's bytes go to the owner, the owner's bytes come back (design, section 3.5).
 * Nothing of a good answer is read but its framing; a refusal is read, to say no more of it than is the client's.
 */
import { forwardedHeaders, isBarred, paramHeaders } from '../auth/forward.ts';
import { readAnswer } from '../protocol/answer.ts';
import type { McpRequest } from '../protocol/classify.ts';
import { HEADER_MISMATCH, refusal } from '../protocol/errors.ts';
import type { Exchange, Reply } from '../protocol/exchange.ts';
import { JsonWatch } from '../protocol/json-watch.ts';
import { UpstreamError } from '../upstream/failure.ts';
import { relaySse } from '../upstream/relay.ts';
import type { StreamBody, StreamOutcome } from '../upstream/types.ts';
import { type AskDeps, barred, type Member } from './ask.ts';
import { brokenUpstream, errorReply, failureRefusal, METHOD_HEADERS, refusedRefusal } from './reply.ts';

/** A refusal larger than this is not read: it is none of ours. */
const MAX_REFUSAL_BYTES = 1024 * 1024;

type Response = Extract<StreamOutcome, { kind: 'response' }>;

/** Calls the owner and hands its answer back as it comes. */
export async function callThrough(
  deps: Pick<AskDeps, 'logOnce' | 'now'>,
  member: Member,
  request: McpRequest,
  partition: string,
  exchange: Exchange,
): Promise<Reply> {
  const { body, id } = request;
  const { now } = deps;
  if (isBarred(member.config, request.head))
    return { kind: 'refused', id, refusal: refusedRefusal(barred(deps, member), 'own') };
  const watch = new JsonWatch();
  const startedAt = now();
  const outcome = await member.upstream.stream({
    method: request.method,
    name: request.row.named === undefined ? undefined : request.name,
    version: request.version,
    headers: { ...paramHeaders(request.head), ...forwardedHeaders(member.config, request.head) },
    body: body.kind === 'whole' ? body.bytes : watched(body.bytes, body.rest, watch),
    idempotent: request.row.idempotent,
    signal: exchange.signal,
    caller: partition,
  });
  exchange.facts.upstreamMs = (exchange.facts.upstreamMs ?? 0) + (now() - startedAt);
  const knownId = (): string | undefined => id ?? watch.id;
  if (outcome.kind === 'failure')
    return { kind: 'refused', id: knownId(), refusal: failureRefusal(outcome.failure) };
  if (outcome.kind === 'whole')
    return { kind: 'answer', status: 200, head: '', tail: outcome.chunks, headers: METHOD_HEADERS };
  if (outcome.status >= 200 && outcome.status < 300) return relay(outcome, knownId);
  return refusedCall(member, outcome, knownId());
}

async function* watched(
  begun: Uint8Array,
  rest: AsyncIterable<Uint8Array>,
  watch: JsonWatch,
): AsyncGenerator<Uint8Array> {
  watch.push(begun);
  yield begun;
  for await (const chunk of rest) {
    watch.push(chunk);
    yield chunk;
  }
}

async function relay(outcome: Response, id: () => string | undefined): Promise<Reply> {
  switch (outcome.media) {
    case 'sse':
      return {
        kind: 'relay',
        status: 200,
        media: 'sse',
        body: relaySse(outcome.body, { id }),
        headers: METHOD_HEADERS,
      };
    case 'json':
      return {
        kind: 'relay',
        status: 200,
        media: 'json',
        body: outcome.body,
        headers: METHOD_HEADERS,
        ...(outcome.lengthBytes !== undefined && { lengthBytes: outcome.lengthBytes }),
      };
    case 'other':
      await discard(outcome.body);
      return { kind: 'refused', id: id(), refusal: brokenUpstream() };
  }
}

/** An answer that is no success: a method error is passed on, a transport refusal is the gateway's own trouble (R37). */
async function refusedCall(member: Member, outcome: Response, id: string | undefined): Promise<Reply> {
  const { status, challenge, retryAfter } = outcome;
  const credentials = member.config.auth.type === 'forward' ? 'forwarded' : 'own';
  const transport = TRANSPORT.has(status);
  const answer = transport || status >= 500 || id === undefined ? undefined : await readError(outcome, id);
  if (answer === undefined) await discard(outcome.body);
  if (status >= 500) return { kind: 'refused', id, refusal: failureRefusal(HTTP_5XX) };
  if (answer === undefined || id === undefined)
    return {
      kind: 'refused',
      id,
      refusal: refusedRefusal({ kind: 'refused', status, challenge, retryAfter }, credentials),
    };
  // Mirrored headers were compared here, so what an upstream finds different is an Mcp-Param-* of the client's.
  if (answer.code === HEADER_MISMATCH) {
    const data =
      answer.data === undefined ? {} : { data: JSON.parse(answer.data) as Record<string, unknown> };
    return { kind: 'refused', id, refusal: refusal(HEADER_MISMATCH, answer.message, data) };
  }
  return errorReply(id, answer, METHOD_HEADERS);
}

const TRANSPORT: ReadonlySet<number> = new Set([401, 403, 407, 421, 429]);

const HTTP_5XX = { kind: 'http_5xx', proxyError: 'http_request_error', detail: '' } as const;

async function readError(
  outcome: Response,
  id: string,
): Promise<Extract<ReturnType<typeof readAnswer>, { kind: 'error' }> | undefined> {
  if (outcome.media !== 'json') return undefined;
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of outcome.body) {
      length += chunk.length;
      if (length > MAX_REFUSAL_BYTES) return undefined;
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof UpstreamError) return undefined;
    throw error;
  }
  const answer = readAnswer(Buffer.concat(chunks), id);
  return answer.kind === 'error' ? answer : undefined;
}

/** Lets go of a body nobody reads: the upstream request ends. */
async function discard(body: StreamBody): Promise<void> {
  if (body.discard === undefined) await body[Symbol.asyncIterator]().return?.();
  else body.discard();
}
