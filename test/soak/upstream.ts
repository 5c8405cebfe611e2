/**
 * An upstream of the soak: a real HTTP server that shows what the truth holds, to whoever it takes the caller for.
 *
 * It can go down and come back on its port. While it is down its resources change all the same.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../fuzz/random.ts';
import { LIST_CHANGED, UPDATED } from './listen-oracle.ts';
import { LIST_SCOPE, LIST_TTL_MS } from './oracle.ts';
import {
  newest,
  type Resource,
  type Stamp,
  scopeOf,
  type Truth,
  type UpstreamName,
  visible,
} from './truth.ts';
import { type Filter, Streams } from './upstream-streams.ts';

/** Small, so that walks have many pages. */
const PAGE_SIZE = 7;
/** A read may take so long, its version taken at its beginning. */
const SLOW_MS = 200;

/** A request to it. */
interface Ask {
  readonly id: string | number;
  readonly method: string;
  readonly params: {
    readonly uri?: string;
    readonly cursor?: string;
    readonly arguments?: { readonly word?: string };
    readonly notifications?: Filter;
    readonly _meta?: Readonly<Record<string, { readonly name?: string }>>;
  };
}

type Outcome =
  | { readonly kind: 'result'; readonly result: Readonly<Record<string, unknown>> }
  | { readonly kind: 'error'; readonly code: number; readonly message: string; readonly data?: unknown };

export interface UpstreamParts {
  readonly name: UpstreamName;
  readonly truth: Truth;
  readonly random: Random;
  /** How many of the gateways' own streams there are now. */
  readonly onWatchers: (count: number) => void;
}

export class SoakUpstream {
  readonly name: UpstreamName;
  readonly #parts: UpstreamParts;
  readonly #streams: Streams;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;

  constructor(parts: UpstreamParts) {
    this.#parts = parts;
    this.name = parts.name;
    this.#streams = new Streams(parts.onWatchers);
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/mcp`;
  }

  get streamCount(): number {
    return this.#streams.count;
  }

  get socketCount(): number {
    return this.#sockets.size;
  }

  async up(): Promise<void> {
    const server = createServer((request, response) => void this.#answer(request, response));
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Drops every connection and takes none. */
  async down(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Tells who listens; a resource that is one caller's is told to that caller. */
  updated(resource: Resource): void {
    this.#streams.tell(UPDATED, { uri: resource.uri }, ({ filter, caller }) => {
      const isAsked = filter.resourceSubscriptions?.includes(resource.uri) === true;
      return isAsked && visible(resource, caller);
    });
  }

  listChanged(): void {
    this.#streams.tell(LIST_CHANGED, {}, ({ filter }) => filter.resourcesListChanged === true);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined);
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return;
    }
    const ask = JSON.parse(Buffer.concat(chunks).toString()) as Ask;
    const caller = this.#callerOf(request, ask);
    if (caller === undefined) {
      response.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end();
      return;
    }
    if (ask.method === 'subscriptions/listen') {
      this.#streams.open({ id: ask.id, caller, filter: ask.params.notifications ?? {} }, response);
      return;
    }
    const outcome = this.#outcome(ask, caller);
    if (this.#parts.random.once(4)) await sleep(this.#parts.random.below(SLOW_MS));
    this.#send(response, ask, outcome);
  }

  /** Alpha is told by the client's info, beta by a header, gamma by a token; it takes no stranger. */
  #callerOf({ headers }: IncomingMessage, { params }: Ask): string | undefined {
    switch (this.name) {
      case 'alpha':
        return params._meta?.['io.modelcontextprotocol/clientInfo']?.name ?? 'nobody';
      case 'beta':
        return String(headers['x-user'] ?? 'nobody');
      case 'gamma':
        return /^Bearer token-of-(\w+)$/.exec(headers.authorization ?? '')?.[1];
    }
  }

  #outcome({ method, params }: Ask, caller: string): Outcome {
    switch (method) {
      case 'server/discover':
        return {
          kind: 'result',
          result: {
            supportedVersions: ['2026-07-28'],
            capabilities: { resources: { subscribe: true, listChanged: true }, tools: { listChanged: true } },
            ...{ ttlMs: 600_000, cacheScope: 'public' },
          },
        };
      case 'resources/list':
        return this.#page(params.cursor, caller);
      case 'resources/templates/list':
        return { kind: 'result', result: { resourceTemplates: [], ttlMs: 600_000, cacheScope: 'public' } };
      case 'tools/list': {
        const tool = { name: `${this.name}-echo`, inputSchema: { type: 'object' } };
        return { kind: 'result', result: { tools: [tool], ttlMs: 600_000, cacheScope: 'public' } };
      }
      case 'tools/call': {
        const text = echoOf(this.name, caller, params.arguments?.word ?? '');
        return { kind: 'result', result: { content: [{ type: 'text', text }] } };
      }
      case 'resources/read':
        return this.#read(params.uri ?? '', caller);
      default:
        return { kind: 'error', code: -32601, message: 'unknown method' };
    }
  }

  #read(uri: string, caller: string): Outcome {
    const resource = this.#parts.truth.find(uri);
    const isHere = resource?.upstream === this.name && visible(resource, caller);
    if (!isHere || newest(resource).state === 'absent')
      return { kind: 'error', code: -32602, message: 'Resource not found', data: { uri } };
    const version = newest(resource).number;
    const cacheScope = scopeOf(resource, version);
    const stamp: Stamp = { upstream: this.name, uri, version, madeFor: caller, scope: cacheScope };
    const contents = [{ uri, mimeType: 'application/json', text: JSON.stringify(stamp) }];
    return { kind: 'result', result: { contents, ttlMs: resource.ttlMs, cacheScope } };
  }

  /** Alpha's cursors are places in one state of its list, and refused in the next; the others' are names. */
  #page(cursor: string | undefined, caller: string): Outcome {
    const { truth } = this.#parts;
    const all = truth.shown(this.name, caller).toSorted((a, b) => (a.uri < b.uri ? -1 : 1));
    const edition = String(truth.listChanges(this.name).length);
    const [known, place] = cursor?.split(' ') ?? [edition, ''];
    if (this.name === 'alpha' && known !== edition)
      return { kind: 'error', code: -32602, message: 'the list has changed' };
    const at =
      place === '' ? 0 : this.name === 'alpha' ? Number(place) : all.findIndex(({ uri }) => uri > `${place}`);
    const shown = at < 0 ? [] : all.slice(at, at + PAGE_SIZE);
    const next = at + shown.length;
    const nextCursor =
      at < 0 || next >= all.length
        ? {}
        : { nextCursor: `${edition} ${this.name === 'alpha' ? next : shown.at(-1)?.uri}` };
    // What is public is the same bytes for everybody, or a page fetched again would be another.
    const description = LIST_SCOPE[this.name] === 'public' ? 'everybody' : caller;
    const resources = shown.map(({ uri }) => ({ uri, name: uri, description }));
    const hints = { ttlMs: LIST_TTL_MS[this.name], cacheScope: LIST_SCOPE[this.name] };
    return { kind: 'result', result: { resources, ...nextCursor, ...hints } };
  }

  #send(response: ServerResponse, { id, method }: Ask, outcome: Outcome): void {
    const { kind, ...error } = outcome;
    const said =
      outcome.kind === 'result' ? { result: { resultType: 'complete', ...outcome.result } } : { error };
    const text = JSON.stringify({ jsonrpc: '2.0', id, ...said });
    // Some answers come as a stream of one event.
    const isStream = method === 'tools/call' || this.#parts.random.once(10);
    const type = isStream ? 'text/event-stream' : 'application/json';
    response.writeHead(200, { 'Content-Type': type });
    response.end(isStream ? `data: ${text}\n\n` : text);
  }
}

/** What a call of the echo tool says. */
export function echoOf(upstream: UpstreamName, caller: string, word: string): string {
  return `${upstream} hears ${caller} say ${word}`;
}
