/** Streams to a client: relayed bodies, and listens that stay open. */
import type { Reply } from '../protocol/exchange.ts';
import { eventOf } from './events.ts';
import { Heart } from './heart.ts';
import type { Live } from './live.ts';

/** What is written behind a body: one that came whole, and, where that can still be said, one that broke. */
export interface Endings {
  readonly whole: string;
  readonly broken?: string;
}

/**
 * Writes a body as it comes, at the client's pace. A client that leaves ends the body (R35).
 * A JSON body that breaks destroys the socket; an SSE body has said so itself, in an error frame.
 */
export async function pump(
  live: Live,
  body: AsyncIterable<Uint8Array>,
  media: 'json' | 'sse',
  endings?: Endings,
): Promise<void> {
  const iterator = body[Symbol.asyncIterator]();
  live.onOver = () => abandon(iterator);
  try {
    for (;;) {
      const { done, value } = await iterator.next();
      if (done === true) break;
      if (live.over) return;
      if (!live.write(value) && !(await live.drain())) return;
    }
    live.end(endings?.whole);
  } catch (error) {
    if (live.over) return;
    live.facts.errorType ??= 'other';
    if (!live.signal.aborted) live.context.log.warn({ err: error, route: live.route }, 'an answer broke off');
    if (media === 'sse') live.end();
    else if (endings?.broken === undefined) live.destroy();
    else live.end(endings.broken);
  }
}

/** Ends a body that nobody will read. What its end throws is of no interest to anybody. */
export function abandon(iterator: AsyncIterator<Uint8Array>): void {
  Promise.resolve(iterator.return?.()).catch(() => {});
}

/** Opens a listen, writes what it tells, keeps it alive, and ends it gracefully when the gateway closes. */
export function listen(live: Live, { opening, closing, feed }: Extract<Reply, { kind: 'listen' }>): void {
  const { sweeper, shedding, phase, paths } = live.context;
  if (!live.streaming) live.beginStream(200, {}, 'listen');
  if (opening !== undefined) live.write(eventOf(opening));
  const heart = new Heart(live);
  const over = (): void => {
    sweeper.delete(heart);
    feed.stop();
  };
  live.endListen = () => {
    over();
    live.end(closing === undefined ? undefined : eventOf(closing));
  };
  const listened = shedding.listening();
  live.onOver = () => {
    over();
    listened();
  };
  // Its route may have gone while it waited for its acknowledgment.
  if (phase === 'closing' || !paths.has(live.route ?? '')) return live.endListen();
  sweeper.add(heart);
  live.onDrain(() => feed.drained());
  feed.start({ write: (message) => live.write(eventOf(message)), end: () => live.endListen?.() });
}
