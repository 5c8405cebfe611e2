/**
 * One `subscriptions/listen` of a process: a request that is not answered, and notifications that carry its id.
 * *Spec:* basic/patterns/subscriptions; basic/transports, "stdio".
 */
import { filterText } from '../protocol/listen-filter.ts';
import { LISTEN_METHOD } from '../protocol/notice.ts';
import { failure } from './failure.ts';
import type { OpenStream } from './listen-held.ts';
import type { StreamParts } from './listen-stream.ts';
import { ended, Listened, type StreamEnd } from './listen-take.ts';
import type { Following, StdioWire } from './stdio.ts';

/** Opened when it is made. */
export class StdioListenStream implements OpenStream {
  readonly #parts: StreamParts;
  readonly #following: Following;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(parts: StreamParts, wire: StdioWire) {
    const { link, listener, filter, ackMs, hooks } = parts;
    this.#parts = parts;
    const id = link.nextId();
    const listened = new Listened(id, hooks, () => clearTimeout(this.#timer));
    const params = `{"_meta":{${listener.meta}},"notifications":${filterText(filter)}}`;
    this.#timer = setTimeout(
      () => this.#end(ended(failure('timeout', 'http_response_timeout', 'not acknowledged in time'))),
      ackMs,
    );
    this.#following = wire.follow(
      id,
      `{"jsonrpc":"2.0","id":${id},"method":"${LISTEN_METHOD}","params":${params}}`,
      {
        message: (message) => {
          const end = listened.take(message);
          if (end !== undefined) this.#end(end);
        },
        ended: (reason) => this.#end(ended(reason)),
      },
    );
  }

  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#following.cancel();
  }

  #end(end: StreamEnd): void {
    if (this.#stopped) return;
    this.stop();
    this.#parts.hooks.ended(end);
  }
}
