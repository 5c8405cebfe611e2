/**
 * An upstream for tests of the admin page: a small catalogue of every kind of thing, some of it hostile; it tells of
 * changes, and can be taken down and brought back on its port.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { VERSION } from './mcp.ts';

export interface GalleryOptions {
  readonly scheme: string;
  readonly resources?: readonly Readonly<Record<string, unknown>>[];
  readonly templates?: readonly string[];
  /** By URI. */
  readonly contents?: Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>;
  /** Answered instead of the contents. */
  readonly results?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly tools?: readonly string[];
  readonly pageSize?: number;
  readonly scope?: 'public' | 'private';
  readonly ttlMs?: number;
  /** Refuses whoever sends no token. */
  readonly closed?: true;
}

export interface Gallery {
  readonly url: string;
  /** Requests of a method so far. */
  askedFor(method: string): number;
  /** Headers of the last request. */
  readonly lastHeaders: IncomingMessage['headers'];
  /** Tells whoever listens that a resource has changed. */
  changed(uri: string): void;
  down(): Promise<void>;
  back(): Promise<void>;
  close(): Promise<void>;
}

/** A PNG of one pixel. */
export const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

export async function startGallery(options: GalleryOptions): Promise<Gallery> {
  const counts = new Map<string, number>();
  const listens = new Map<ServerResponse, unknown>();
  let lastHeaders: IncomingMessage['headers'] = {};
  let port = 0;
  let server: Server | undefined;
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { id, method, params } = (await json(request)) as Asked;
    counts.set(method, (counts.get(method) ?? 0) + 1);
    lastHeaders = request.headers;
    if (method === 'subscriptions/listen') return listen(response, listens, id, params);
    if (options.closed === true && request.headers.authorization === undefined) {
      response.writeHead(401, { 'WWW-Authenticate': 'Bearer realm="gallery"' }).end();
      return;
    }
    const said = say(options, method, params);
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...said }));
  };
  const open = async (): Promise<void> => {
    const opened = createServer(
      (request, response) => void answer(request, response).catch(() => response.destroy()),
    );
    await new Promise<void>((resolve) => opened.listen(port, '127.0.0.1', resolve));
    ({ port } = opened.address() as AddressInfo);
    server = opened;
  };
  const down = async (): Promise<void> => {
    const closing = new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)));
    server?.closeAllConnections();
    await closing;
    server = undefined;
  };
  await open();
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    askedFor: (method) => counts.get(method) ?? 0,
    get lastHeaders() {
      return lastHeaders;
    },
    changed: (uri) => {
      for (const [response, id] of listens) event(response, 'notifications/resources/updated', id, { uri });
    },
    down,
    back: open,
    close: down,
  };
}

interface Asked {
  readonly id: unknown;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

function say(options: GalleryOptions, method: string, params: Asked['params']): Record<string, unknown> {
  const { scheme, resources = [], templates = [], tools = [], contents = {}, results = {} } = options;
  const { ttlMs = 60_000, scope = 'public' } = options;
  const hints = { resultType: 'complete', ttlMs, cacheScope: scope };
  switch (method) {
    case 'server/discover': {
      const capabilities = { resources: { subscribe: true, listChanged: true }, tools: {} };
      return { result: { ...hints, supportedVersions: [VERSION], capabilities } };
    }
    case 'resources/list':
      return { result: { ...hints, ...pageOf('resources', resources, params.cursor, options.pageSize) } };
    case 'resources/templates/list':
      return {
        result: {
          ...hints,
          resourceTemplates: templates.map((uriTemplate) => ({ uriTemplate, name: `of ${scheme}` })),
        },
      };
    case 'tools/list':
      return {
        result: { ...hints, tools: tools.map((name) => ({ name, inputSchema: { type: 'object' } })) },
      };
    case 'resources/read': {
      const uri = String(params.uri);
      if (results[uri] !== undefined) return { result: { ...hints, ...results[uri] } };
      const found =
        contents[uri] ?? (resources.some((one) => one.uri === uri) ? [{ text: `of ${uri}` }] : []);
      if (found.length === 0)
        return { error: { code: -32602, message: 'Resource not found', data: { uri } } };
      return { result: { ...hints, contents: found.map((one) => ({ uri, ...one })) } };
    }
    default:
      return { error: { code: -32601, message: 'Method not found' } };
  }
}

function pageOf(field: string, items: readonly unknown[], cursor: unknown, size = 1_000) {
  const from = Number(cursor ?? 0);
  const next = from + size;
  return { [field]: items.slice(from, next), ...(next < items.length && { nextCursor: String(next) }) };
}

function listen(
  response: ServerResponse,
  listens: Map<ServerResponse, unknown>,
  id: unknown,
  params: Asked['params'],
): void {
  listens.set(response, id);
  response.on('close', () => listens.delete(response));
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  event(response, 'notifications/subscriptions/acknowledged', id, { notifications: params.notifications });
}

function event(response: ServerResponse, method: string, id: unknown, params: object): void {
  const meta = { 'io.modelcontextprotocol/subscriptionId': id };
  const message = { jsonrpc: '2.0', method, params: { ...params, _meta: meta } };
  response.write(`data: ${JSON.stringify(message)}\n\n`);
}
