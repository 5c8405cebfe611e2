/**
 * Relays the event stream of a streamed call to its client, event by event, as the bytes that came (R34).
 *
 * Only the framing is watched: whether the last event was whole, and whether the response has gone by. A
 * stream that ends without it gets an error event with the client's id: a client that sees it just end waits
 * for its answer for a minute.
 */
import { joinBytes } from '../protocol/answer.ts';
import { errorBody, INTERNAL_ERROR } from '../protocol/errors.ts';
import { JsonWatch, sameId } from '../protocol/json-watch.ts';
import { type SseEvent, SseFramer } from '../protocol/sse.ts';
import { failure, UpstreamError } from './failure.ts';
import type { Failure, StreamBody } from './types.ts';

/** An unfinished event is held back up to this, so that what is dropped or broken is never half-sent. */
export const MAX_HELD_EVENT_BYTES = 64 * 1024;

export interface RelayOptions {
  /** JSON text of the client's id; a function where a large upload still has to show it. */
  readonly id: string | (() => string | undefined);
  /** Told why the relay had to end the stream itself. */
  readonly onBroken?: (reason: Failure) => void;
}

const encoder = new TextEncoder();
/** A half-sent event cannot be unsent; clients ignore one of a type they do not know. */
const ABANDON = 'event: incomplete\n\n';
const CR = 0x0d;
const LF = Uint8Array.of(0x0a);

/** *Never* throws: a broken upstream becomes an error event, in words of our own. */
export async function* relaySse(body: StreamBody, options: RelayOptions): AsyncGenerator<Uint8Array> {
  const idOf = typeof options.id === 'string' ? () => options.id as string : options.id;
  const framer = new SseFramer(MAX_HELD_EVENT_BYTES);
  const watcher = new EventWatcher(idOf);
  let reason = failure('broken', 'http_response_incomplete', 'the event stream ended without a response');
  try {
    for await (const chunk of body) {
      const out: Uint8Array[] = [];
      let open = false;
      for (const event of framer.push(chunk)) {
        const verdict = watcher.watch(event);
        if (verdict !== 'drop') out.push(...event.raw);
        open = verdict !== 'drop' && endsInCr(event);
        if (verdict === 'response') break;
      }
      if (open) out.push(LF);
      if (out.length > 0) yield out.length === 1 ? (out[0] as Uint8Array) : joinBytes(out);
      if (!watcher.answered) continue;
      body.discard?.();
      return;
    }
  } catch (error) {
    reason =
      error instanceof UpstreamError
        ? error.failure
        : failure('broken', 'proxy_internal_error', String(error));
  }
  options.onBroken?.(reason);
  const abandoned = framer.flowing ? (framer.midLine ? `\n${ABANDON}` : ABANDON) : '';
  const message = errorBody({ code: INTERNAL_ERROR, message: wordsFor(reason) }, idOf());
  yield encoder.encode(`${abandoned}event: message\ndata: ${message}\n\n`);
}

/**
 * Whether a whole event ends in a CR that may be half of a CR LF. Parsers that wait for the other half (the official
 * client's does) would keep the event to themselves until more comes, and behind the response nothing does. A LF too
 * many is a blank line, which means nothing between events.
 */
function endsInCr({ part, raw }: SseEvent): boolean {
  return (part === 'whole' || part === 'last') && raw.at(-1)?.at(-1) === CR;
}

/** Tells what each event is, also one that comes in parts. */
class EventWatcher {
  readonly #idOf: () => string | undefined;
  #watch: JsonWatch | undefined;
  answered = false;

  constructor(idOf: () => string | undefined) {
    this.#idOf = idOf;
  }

  /** `drop`: a request of the server's own, which has no place on a modern stream (R32). */
  watch(event: SseEvent): 'pass' | 'drop' | 'response' {
    const unfinished = event.part === 'first' || event.part === 'next';
    if (event.data === undefined && event.part === 'whole') return 'pass';
    this.#watch ??= new JsonWatch();
    for (const piece of event.data ?? []) this.#watch.push(piece);
    if (unfinished) return 'pass';
    const watch = this.#watch;
    this.#watch = undefined;
    if (watch.state !== 'complete' || !event.message) return 'pass';
    if (watch.kind === 'request') return event.part === 'whole' ? 'drop' : 'pass';
    if (watch.kind !== 'response' || !this.#isOurs(watch)) return 'pass';
    this.answered = true;
    return 'response';
  }

  #isOurs(watch: JsonWatch): boolean {
    const id = this.#idOf();
    return id === undefined || (watch.id !== undefined && sameId(watch.id, id));
  }
}

function wordsFor(reason: Failure): string {
  switch (reason.kind) {
    case 'timeout':
      return 'The upstream server stopped answering';
    case 'cancelled':
      return 'The call was cut off by the gateway';
    default:
      return 'The upstream server broke off its answer';
  }
}
