/** A client of an older revision, in front of any request path: its messages in, what it sees out. */
import { Clients } from '../../src/legacy/clients.ts';
import type { Exchange, Facts, Handle, Inbound, Outlet, Reply } from '../../src/protocol/exchange.ts';
import { readHead } from '../../src/protocol/headers.ts';
import { Abort } from '../../src/protocol/signal.ts';
import { rawHeaders } from './mcp.ts';

type Json = Readonly<Record<string, unknown>>;

/** What came back. */
export interface Seen {
  readonly reply: Reply;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The last message, as text and read. */
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into arbitrary results
  readonly json: any;
  /** What was said before it. */
  readonly said: readonly Json[];
  readonly facts: Facts;
}

export interface Sent {
  /** A message, or its very text. */
  readonly message: Json | string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly gone?: Abort;
  /** There is too much to do. */
  readonly strained?: true;
  /** Told at once of what is said before the answer. */
  readonly onSaid?: (message: Json) => void;
}

export class OlderClient {
  readonly clients: Clients;
  session: string | undefined;
  #lastId = 0;

  constructor(handle: Handle, options: { readonly refused?: true; readonly clients?: Clients } = {}) {
    this.clients =
      options.clients ??
      new Clients({
        handle,
        routes: new Map([
          [
            '/mcp',
            {
              identify: (head) => head.headers.get('authorization') ?? 'anonymous',
              config: { legacyClients: options.refused !== true },
              carried: (head) => head,
            },
          ],
        ]),
        now: () => performance.now(),
      });
  }

  /** Sends a message as it is. */
  async send({ message, headers = {}, gone = new Abort(), strained, onSaid }: Sent): Promise<Seen> {
    const said: Json[] = [];
    const exchange: Exchange = {
      signal: gone,
      facts: {},
      notify: (bytes) => {
        const one = JSON.parse(Buffer.from(bytes).toString()) as Json;
        said.push(one);
        onSaid?.(one);
      },
    };
    const bytes = Buffer.from(typeof message === 'string' ? message : JSON.stringify(message));
    const reply = await this.clients.handle(
      {
        ...{ route: '/mcp', head: this.#head(headers), body: { kind: 'whole', bytes } },
        ...(strained === true && { strained }),
      },
      exchange,
    );
    return { ...(await seenOf(reply)), said, facts: exchange.facts };
  }

  /** Asks, in its session if there is one. */
  ask(method: string, params: Json = {}, rest: Omit<Sent, 'message'> = {}): Promise<Seen> {
    const message = { jsonrpc: '2.0', id: ++this.#lastId, method, params };
    return this.send({ ...rest, message });
  }

  async initialize(capabilities: Json = {}, rest: Omit<Sent, 'message'> = {}): Promise<Seen> {
    const params = {
      protocolVersion: '2025-11-25',
      capabilities,
      clientInfo: { name: 'older', version: '1' },
    };
    const seen = await this.ask('initialize', params, rest);
    this.session = seen.headers['mcp-session-id'];
    return seen;
  }

  /** Without a body. */
  async bare(verb: 'GET' | 'DELETE', headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
    const inbound: Inbound = {
      route: '/mcp',
      verb,
      head: this.#head(headers),
      body: { kind: 'whole', bytes: Buffer.alloc(0) },
    };
    return this.clients.handle(inbound, { signal: new Abort(), facts: {}, notify: () => {} });
  }

  /** Opens its stream; `reads` false: it takes one message and no more. */
  async listen(reads = true): Promise<{ heard: Json[]; ended: () => boolean; read(): void; leave(): void }> {
    const reply = await this.bare('GET');
    if (reply.kind !== 'listen') throw new Error(`no stream: ${JSON.stringify(reply)}`);
    const heard: Json[] = [];
    let ended = false;
    let takes = reads;
    const outlet: Outlet = {
      write: (text) => {
        heard.push(JSON.parse(text) as Json);
        return takes;
      },
      end: () => {
        ended = true;
        reply.feed.stop();
      },
    };
    reply.feed.start(outlet);
    return {
      heard,
      ended: () => ended,
      read: () => {
        takes = true;
        reply.feed.drained();
      },
      leave: () => reply.feed.stop(),
    };
  }

  #head(headers: Readonly<Record<string, string>>): ReturnType<typeof readHead> {
    return readHead(
      rawHeaders({
        ...(this.session !== undefined && {
          'mcp-session-id': this.session,
          'mcp-protocol-version': '2025-11-25',
        }),
        ...headers,
      }),
    );
  }
}

async function seenOf(reply: Reply): Promise<Omit<Seen, 'said' | 'facts'>> {
  switch (reply.kind) {
    case 'answer': {
      const text = reply.head + Buffer.concat(reply.tail).toString();
      return { reply, status: reply.status, headers: reply.headers, text, json: JSON.parse(text) };
    }
    case 'relay': {
      const pieces: Uint8Array[] = [];
      for await (const piece of reply.body) pieces.push(piece);
      const text = (reply.head ?? '') + Buffer.concat(pieces).toString();
      const json: unknown = reply.media === 'json' ? JSON.parse(text) : undefined;
      return { reply, status: reply.status, headers: reply.headers, text, json };
    }
    case 'refused': {
      const { status, code, message, data, headers = {} } = reply.refusal;
      const json = {
        id: reply.id === undefined ? undefined : JSON.parse(reply.id),
        error: { code, message, data },
      };
      return { reply, status, headers, text: message, json };
    }
    default:
      return { reply, status: 202, headers: {}, text: '', json: undefined };
  }
}
