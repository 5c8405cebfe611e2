/** A server to be inspected: as the specification wants it, but for what a test makes wrong. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { META_SERVER_INFO, META_VERSION } from '../../src/protocol/meta.ts';
import { VERSION } from './mcp.ts';

export const GOOD_HINTS = { ttlMs: 60_000, cacheScope: 'public' } as const;

/** One request, as it is answered. */
export interface InspectedRequest {
  readonly method: string;
  readonly id: unknown;
  readonly params: Readonly<Record<string, unknown>>;
  readonly headers: IncomingMessage['headers'];
  readonly response: ServerResponse;
}

/** A result, an error, or `sent` by the test itself. Undefined: as the good server answers. */
export type InspectedAnswer =
  | { readonly result: Readonly<Record<string, unknown>> }
  | { readonly error: Readonly<Record<string, unknown>>; readonly status?: number }
  | 'sent'
  | undefined;

export interface Inspected {
  readonly url: string;
  /** Methods asked for, in order. */
  readonly asked: readonly string[];
  /** Open listens. */
  readonly listens: number;
  close(): Promise<void>;
}

/** Starts it. @param wrong what it answers otherwise. @param lax true of what it does not check. */
export async function startInspected(
  wrong: (request: InspectedRequest) => InspectedAnswer | Promise<InspectedAnswer> = () => undefined,
  lax: 'strict' | 'lax' = 'strict',
): Promise<Inspected> {
  const asked: string[] = [];
  const open = new Set<ServerResponse>();
  const http = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy());
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const {
      method,
      id,
      params = {},
    } = JSON.parse(Buffer.concat(chunks).toString()) as {
      readonly method: string;
      readonly id: unknown;
      readonly params?: Record<string, unknown>;
    };
    asked.push(method);
    const one: InspectedRequest = { method, id, params, headers: request.headers, response };
    const given = (await wrong(one)) ?? (lax === 'strict' ? refused(one) : undefined) ?? good(one);
    if (given === 'sent') return;
    if (given === undefined) return listen(one);
    const { status = 200, ...body } = { status: undefined, ...given };
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...body }));
  }

  function listen({ response, id, params }: InspectedRequest): void {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const said = {
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: {
        notifications: params.notifications,
        _meta: { 'io.modelcontextprotocol/subscriptionId': id },
      },
    };
    response.write(`data: ${JSON.stringify(said)}\n\n`);
    open.add(response);
    response.on('close', () => open.delete(response));
  }

  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    asked,
    get listens() {
      return open.size;
    },
    close: () =>
      new Promise((done) => {
        http.close(() => done());
        http.closeAllConnections();
      }),
  };
}

const error = (status: number, code: number, data?: unknown): InspectedAnswer => ({
  status,
  error: { code, message: 'no', ...(data !== undefined && { data }) },
});

/** What a server must not take. */
function refused({ method, params, headers }: InspectedRequest): InspectedAnswer {
  const meta = (params._meta ?? {}) as Record<string, unknown>;
  if (headers['mcp-method'] !== method) return error(400, -32020);
  if (params.uri !== undefined && headers['mcp-name'] !== params.uri) return error(400, -32020);
  if (meta[META_VERSION] !== VERSION) return error(400, -32022, { supported: [VERSION] });
  return undefined;
}

/** The item of `resources/list`. */
export const RESOURCE = 'good://one';

/** Undefined: a listen. */
function good({ method, params }: InspectedRequest): InspectedAnswer {
  const complete = (result: Record<string, unknown>): InspectedAnswer => ({
    result: { resultType: 'complete', ...result, ...GOOD_HINTS },
  });
  switch (method) {
    case 'server/discover':
      return complete({
        supportedVersions: [VERSION],
        capabilities: { resources: { subscribe: true, listChanged: true }, tools: { listChanged: true } },
        _meta: { [META_SERVER_INFO]: { name: 'good', version: '1' } },
      });
    case 'resources/list':
      return complete({ resources: [{ uri: RESOURCE, name: 'one' }] });
    case 'resources/templates/list':
      return complete({ resourceTemplates: [{ uriTemplate: 'good://{name}', name: 'any' }] });
    case 'tools/list':
      return complete({ tools: [{ name: 'look', inputSchema: { type: 'object' } }] });
    case 'resources/read':
      return params.uri === RESOURCE
        ? complete({ contents: [{ uri: RESOURCE, text: 'hello' }] })
        : error(200, -32602, { uri: params.uri });
    case 'subscriptions/listen':
      return undefined;
    default:
      return error(404, -32601);
  }
}
