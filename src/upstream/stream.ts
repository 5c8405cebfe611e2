/**
 * The streamed call: the client's bytes go up as they are, the answer comes back as it comes.
 *
 * Only the head of the answer is read. A body that breaks off ends its iterator with an {@link UpstreamError};
 * it never just ends. *Never* rejects.
 */
import { JsonWatch } from '../protocol/json-watch.ts';
import { type Link, unusableHead } from './call.ts';
import { decoded } from './decode.ts';
import { Exchange } from './exchange.ts';
import { failure, mayRetry, type Stage, traitsOf, UpstreamError } from './failure.ts';
import { type Head, requestHeaders } from './head.ts';
import type { Failure, StreamBody, StreamOutcome, StreamRequest } from './types.ts';

/** Told when nothing is left of a call, with the failure that ended it, if one did. */
export type OnEnd = (reason: Failure | undefined) => void;

type Attempt =
  | { readonly kind: 'head'; readonly head: Head; readonly exchange: Exchange }
  | { readonly kind: 'failure'; readonly failure: Failure; readonly stage: Stage };

/**
 * Sends; once more only what is idempotent and still in hand, and only where nothing had come back (R36).
 * A `tools/call` is never repeated, not even after a refused connection: the next would be refused as well.
 */
export async function stream(link: Link, request: StreamRequest, onEnd: OnEnd): Promise<StreamOutcome> {
  const use = { idempotent: request.idempotent && request.body instanceof Uint8Array };
  let sent = await attempt(link, request, onEnd);
  if (sent.kind === 'failure' && mayRetry(sent.failure, sent.stage, use) && !request.signal.aborted) {
    link.retrying();
    sent = await attempt(link, request, onEnd);
  }
  if (sent.kind === 'head') return answer(link, sent.head, sent.exchange);
  onEnd(sent.failure);
  return { kind: 'failure', failure: sent.failure };
}

async function attempt(link: Link, request: StreamRequest, onEnd: OnEnd): Promise<Attempt> {
  const exchange = new Exchange({
    path: link.endpoint.path,
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
  const opening = await exchange.open(link.endpoint.streams);
  return opening.kind === 'head' ? { ...opening, exchange } : opening;
}

function answer(link: Link, head: Head, exchange: Exchange): StreamOutcome {
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
  return { kind: 'response', status, media, body, challenge, retryAfter };
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
