/**
 * The streamed call: the client's bytes go up as they are, the answer comes back as it comes.
 *
 * Only the head of the answer is read. A body that breaks off ends its iterator with an {@link UpstreamError};
 * it never just ends. *Never* rejects.
 */
import { JsonWatch } from '../protocol/json-watch.ts';
import { type Attempt, type Link, type OnEnd, unusableHead } from './call.ts';
import { decoded } from './decode.ts';
import { Exchange, WHOLE_BYTES } from './exchange.ts';
import { failure, traitsOf, UpstreamError } from './failure.ts';
import { type Head, requestHeaders } from './head.ts';
import type { Endpoint } from './pool.ts';
import type { StreamBody, StreamOutcome, StreamRequest } from './types.ts';

/** Sends once. @param onEnd told when nothing is left of an answer that had a head. */
export async function streamOnce(
  link: Link,
  endpoint: Endpoint,
  request: StreamRequest,
  onEnd: OnEnd,
): Promise<Attempt<StreamOutcome>> {
  const exchange = new Exchange({
    path: endpoint.path,
    headers: requestHeaders(request),
    body: request.body,
    signal: request.signal,
    overallMs: link.timeouts.callMs,
    onSettled: (reason, head) => {
      const cause = reason ?? (head && unusableHead(head));
      const answered = head !== undefined && head.status >= 400 ? 'http_4xx' : 'ok';
      link.attempted(cause === undefined ? answered : traitsOf(cause.kind).attempt);
      if (head !== undefined) onEnd(cause);
    },
  });
  const opening = await exchange.open(endpoint.streams);
  if (opening.kind === 'failure') return { ...opening, kind: 'unopened' };
  return { kind: 'opened', outcome: await answer(link, opening.head, exchange) };
}

async function answer(link: Link, head: Head, exchange: Exchange): Promise<StreamOutcome> {
  const unusable = unusableHead(head);
  if (unusable !== undefined) {
    exchange.discard();
    return { kind: 'failure', failure: unusable };
  }
  const body = bodyOf(head, exchange);
  if (body === undefined) {
    const reason = failure('broken', 'http_response_content_coding', 'an unknown content coding');
    exchange.refuse(reason);
    return { kind: 'failure', failure: reason };
  }
  exchange.idleAfter(link.timeouts.streamIdleMs);
  const { status, media, challenge, retryAfter } = head;
  // Decoded, it has another length.
  const lengthBytes = body === exchange ? head.lengthBytes : undefined;
  const response = { kind: 'response', status, media, body, lengthBytes, challenge, retryAfter } as const;
  if (media !== 'json' || status >= 300) return response;
  try {
    return await (body === exchange ? gathered(response, exchange) : begun(response));
  } catch (error) {
    if (error instanceof UpstreamError) return { kind: 'failure', failure: error.failure };
    throw error;
  }
}

type Response = Extract<StreamOutcome, { kind: 'response' }>;

/**
 * Nothing of a small answer goes to the client before all of it has come: in one piece it costs half, and what fails
 * until then is a failure with a name. Only what fails later is a broken body (R37).
 */
async function gathered(response: Response, exchange: Exchange): Promise<StreamOutcome> {
  const chunks = await exchange.whole();
  return chunks === undefined ? response : whole(chunks);
}

function whole(chunks: readonly Uint8Array[]): StreamOutcome {
  if (chunks.length > 0) return { kind: 'whole', chunks };
  return { kind: 'failure', failure: failure('broken', 'http_response_incomplete', 'an answer of no bytes') };
}

/** The same of a body that was changed on its way. *Bounded by* {@link WHOLE_BYTES} and its last chunk. */
async function begun(response: Response): Promise<StreamOutcome> {
  const { body } = response;
  const iterator = body[Symbol.asyncIterator]();
  const chunks: Uint8Array[] = [];
  for (let bytes = 0; bytes < WHOLE_BYTES; bytes += chunks.at(-1)?.length ?? 0) {
    const { done, value } = await iterator.next();
    if (done) return whole(chunks);
    chunks.push(value);
  }
  return { ...response, body: resumed(chunks, iterator, body) };
}

/** A body that was begun to be read. */
function resumed(chunks: Uint8Array[], iterator: AsyncIterator<Uint8Array>, body: StreamBody): StreamBody {
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => {
        const value = chunks.shift();
        return value === undefined ? iterator.next() : Promise.resolve({ done: false, value });
      },
      return: async () => (await iterator.return?.()) ?? { done: true, value: undefined },
    }),
    discard: () => body.discard?.(),
  };
}

function bodyOf(head: Head, exchange: Exchange): StreamBody | undefined {
  const body = head.codings.length === 0 ? exchange : decoded(exchange, head.codings);
  if (body === undefined) return undefined;
  const checked = head.media === 'json' && head.ends === 'close' ? wholeJson(body) : body;
  return checked === exchange ? exchange : tied(exchange, checked);
}

/** A body that only the end of its connection ends: cut off, it would look whole. */
async function* wholeJson(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const watch = new JsonWatch();
  for await (const chunk of body) {
    watch.push(chunk);
    yield chunk;
  }
  if (watch.state === 'complete') return;
  throw new UpstreamError(failure('reset', 'http_response_incomplete', 'the connection ended in the answer'));
}

/** Ties a generator to its exchange: one that was never started, or that waits, would not hear of `return`. */
function tied(exchange: Exchange, body: AsyncIterable<Uint8Array>): StreamBody {
  const iterator = body[Symbol.asyncIterator]();
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => iterator.next(),
      return: async () => {
        await exchange.return();
        await iterator.return?.();
        return { done: true, value: undefined };
      },
    }),
    discard: () => exchange.discard(),
  };
}
