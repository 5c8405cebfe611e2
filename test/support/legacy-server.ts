/** A server of an older era, over Streamable HTTP: sessions, an event stream for each, and what the test makes it do. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface LegacyRequest {
  readonly method: string;
  readonly id: unknown;
  readonly params: Readonly<Record<string, unknown>>;
  readonly session: string | undefined;
  readonly headers: IncomingMessage['headers'];
  /** Sends a message on the answer's stream, before the answer. */
  say(message: Readonly<Record<string, unknown>>): void;
}

/** What a method comes to: a result, or an error with a code. */
export type LegacyAnswer =
  | Readonly<Record<string, unknown>>
  | { readonly code: number; readonly message: string };

export interface LegacyOptions {
  readonly stateless?: boolean;
  readonly version?: string;
  readonly capabilities?: Readonly<Record<string, unknown>>;
  /** Status for a session that is not known; default: 404. */
  readonly unknown?: 400 | 404;
  /** False: there is no event stream. */
  readonly events?: boolean;
  /** What becomes of an event stream that is asked for: a status to refuse it with, or `end` to end it at once. */
  readonly onGet?: (session: string | undefined) => number | 'end' | undefined;
  /** A notification, or a response, before it is accepted. */
  readonly onTold?: (request: LegacyRequest) => Promise<void>;
  /** What `initialize` comes to, instead. */
  readonly onInitialize?: (request: LegacyRequest) => LegacyAnswer | Promise<LegacyAnswer>;
  readonly on?: (request: LegacyRequest) => LegacyAnswer | undefined | Promise<LegacyAnswer | undefined>;
}

export interface LegacyServer {
  readonly url: URL;
  /** Every message so far: requests, notifications and responses, in order. */
  readonly seen: readonly (LegacyRequest & { readonly message: Readonly<Record<string, unknown>> })[];
  of(method: string): LegacyServer['seen'];
  readonly sessions: ReadonlySet<string>;
  /** What each session is subscribed to. */
  readonly subscribed: ReadonlyMap<string, ReadonlySet<string>>;
  readonly ended: readonly string[];
  /** Open event streams. */
  readonly streams: number;
  /** Says it on every event stream. */
  notify(method: string, params?: Readonly<Record<string, unknown>>): void;
  /** Says it on every event stream. */
  say(message: Readonly<Record<string, unknown>>): void;
  /** Forgets every session, as a restart does; `kept`: its event streams stay open, as behind a proxy. */
  restart(streams?: 'kept'): void;
  readonly gets: number;
  close(): Promise<void>;
}

const ALL = { resources: { subscribe: true, listChanged: true }, tools: { listChanged: true }, prompts: {} };

export async function startLegacy(options: LegacyOptions = {}): Promise<LegacyServer> {
  const {
    stateless = false,
    version = '2025-11-25',
    capabilities = ALL,
    unknown = 404,
    events = true,
  } = options;
  const seen: (LegacyRequest & { readonly message: Readonly<Record<string, unknown>> })[] = [];
  const sessions = new Set<string>();
  const subscribed = new Map<string, Set<string>>();
  const ended: string[] = [];
  const streams = new Map<ServerResponse, string>();
  let lastSession = 0;
  let gets = 0;

  async function post(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const message = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
    const { method = '', id } = message as { method?: string; id?: unknown };
    const session = request.headers['mcp-session-id'] as string | undefined;
    let streaming = false;
    const say = (one: unknown): void => {
      if (!streaming) response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      streaming = true;
      response.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...(one as object) })}\n\n`);
    };
    const params = (message.params ?? {}) as Record<string, unknown>;
    const asked: LegacyRequest = { method, id, params, session, headers: request.headers, say };
    const json = (status: number, body: unknown, headers: Record<string, string> = {}): void => {
      response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: id ?? null, ...(body as object) }));
    };
    if (method === 'initialize') {
      seen.push({ ...asked, message });
      const instead = await options.onInitialize?.(asked);
      if (instead !== undefined)
        return json(200, 'code' in instead ? { error: instead } : { result: instead });
      const made = `s-${++lastSession}`;
      if (!stateless) sessions.add(made);
      const result = {
        protocolVersion: version,
        capabilities,
        serverInfo: { name: 'old', version: '1' },
        instructions: 'read me',
      };
      return json(200, { result }, stateless ? {} : { 'Mcp-Session-Id': made });
    }
    if (!stateless && (session === undefined || !sessions.has(session))) {
      const code = session === undefined ? -32600 : unknown === 404 ? -32001 : -32000;
      return json(session === undefined ? 400 : unknown, { error: { code, message: 'no such session' } });
    }
    seen.push({ ...asked, message });
    if (id === undefined || method === '') {
      await options.onTold?.(asked);
      response.writeHead(202).end();
      return;
    }
    const answer = (await options.on?.(asked)) ?? known(asked);
    const body = 'code' in answer ? { error: answer } : { result: answer };
    if (!streaming) return json(200, body);
    say({ id, ...body });
    response.end();
  }

  function known({ method, params, session = '' }: LegacyRequest): LegacyAnswer {
    const uri = String(params.uri);
    switch (method) {
      case 'resources/read':
        return { contents: [{ uri, text: `${session} ${uri}` }] };
      case 'resources/list':
        return { resources: [{ uri: 'old://1', name: 'one' }] };
      case 'resources/subscribe':
        subscribed.set(session, (subscribed.get(session) ?? new Set()).add(uri));
        return {};
      case 'resources/unsubscribe':
        subscribed.get(session)?.delete(uri);
        return {};
      case 'tools/call':
        return { content: [{ type: 'text', text: String(params.name) }] };
      default:
        return { code: -32601, message: 'Method not found' };
    }
  }

  function get(request: IncomingMessage, response: ServerResponse): void {
    const session = request.headers['mcp-session-id'] as string | undefined;
    gets++;
    const instead = options.onGet?.(session);
    if (typeof instead === 'number') return void response.writeHead(instead).end();
    if (!events) return void response.writeHead(405).end();
    if (session === undefined || !sessions.has(session)) return void response.writeHead(404).end();
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.flushHeaders();
    if (instead === 'end') return void response.end();
    streams.set(response, session);
    response.on('close', () => streams.delete(response));
  }

  function sayOnStreams(message: Readonly<Record<string, unknown>>): void {
    for (const response of streams.keys())
      response.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
  }

  const server = createServer((request, response) => {
    if (request.method === 'GET') return get(request, response);
    if (request.method === 'DELETE') {
      const session = String(request.headers['mcp-session-id']);
      ended.push(session);
      sessions.delete(session);
      return void response.writeHead(200).end();
    }
    post(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`),
    seen,
    of: (method) => seen.filter((one) => one.method === method),
    sessions,
    subscribed,
    ended,
    get streams() {
      return streams.size;
    },
    get gets() {
      return gets;
    },
    notify: (method, params = {}) => sayOnStreams({ method, params }),
    say: sayOnStreams,
    restart: (kept) => {
      sessions.clear();
      subscribed.clear();
      if (kept !== undefined) return;
      for (const response of streams.keys()) response.destroy();
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
