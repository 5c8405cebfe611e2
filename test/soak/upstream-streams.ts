/** The listen streams of an upstream of the soak. */
import type { ServerResponse } from 'node:http';
import { ACKNOWLEDGED, SUBSCRIPTION_ID } from './listen-oracle.ts';

export interface Filter {
  readonly toolsListChanged?: boolean;
  readonly resourcesListChanged?: boolean;
  readonly resourceSubscriptions?: readonly string[];
}

export interface Stream {
  readonly id: string | number;
  readonly caller: string;
  readonly filter: Filter;
}

/** Acknowledges whatever is asked. */
export class Streams {
  readonly #open = new Map<ServerResponse, Stream>();
  readonly #onWatchers: (count: number) => void;

  /** @param onWatchers told how many of the streams are the gateways' own. */
  constructor(onWatchers: (count: number) => void) {
    this.#onWatchers = onWatchers;
  }

  get count(): number {
    return this.#open.size;
  }

  open(stream: Stream, response: ServerResponse): void {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.on('close', () => {
      this.#open.delete(response);
      this.#count();
    });
    this.#open.set(response, stream);
    const { resourceSubscriptions = [], ...flags } = stream.filter;
    this.#say(response, stream, ACKNOWLEDGED, { notifications: { ...flags, resourceSubscriptions } });
    this.#count();
  }

  tell(method: string, params: Readonly<Record<string, unknown>>, who: (stream: Stream) => boolean): void {
    for (const [response, stream] of this.#open) if (who(stream)) this.#say(response, stream, method, params);
  }

  #say(
    response: ServerResponse,
    { id }: Stream,
    method: string,
    params: Readonly<Record<string, unknown>>,
  ): void {
    const message = { jsonrpc: '2.0', method, params: { ...params, _meta: { [SUBSCRIPTION_ID]: id } } };
    response.write(`data: ${JSON.stringify(message)}\n\n`);
  }

  /** No client of the soak asks for changes of tools: who does is a gateway, on its own behalf. */
  #count(): void {
    const watching = [...this.#open.values()].filter(({ filter }) => filter.toolsListChanged === true);
    this.#onWatchers(watching.length);
  }
}
