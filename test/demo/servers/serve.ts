/**
 * What the demo servers have in common: a loopback listener around an SDK handler, request counts, pages, tokens.
 *
 * The servers are real (official SDK, 2026-07-28 only), so that the demo and the tests see what a gateway will meet.
 */
import {
  createServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import {
  localhostHostValidation,
  localhostOriginValidation,
  type NodeIncomingMessageLike,
  toNodeHandler,
} from '@modelcontextprotocol/node';
import {
  createMcpHandler,
  type McpServerFactory,
  ProtocolError,
  ProtocolErrorCode,
  type ServerNotifier,
} from '@modelcontextprotocol/server';

/** What every `start` takes. Port 0, the default, means a free one; the default host is 127.0.0.1. */
export interface StartOptions {
  readonly port?: number;
  /** Any other than the default is for containers: whoever reaches it is served, by whatever name. */
  readonly host?: string;
}

/** How often each method was asked for, refused requests included: "was the upstream asked?" */
interface RequestCounts {
  /** Requests of one method since the start or the last `reset`. */
  of(method: string): number;
  /** All counts by method. */
  all(): Readonly<Record<string, number>>;
  reset(): void;
}

const LOOPBACK = '127.0.0.1';

/** A running demo server. */
export interface DemoServer {
  /** The MCP endpoint, `http://HOST:PORT/mcp`. */
  readonly url: string;
  readonly stats: RequestCounts;
  /** Tells open `subscriptions/listen` streams that something changed. */
  readonly notify: ServerNotifier;
  /** Ends every connection and frees the port; idempotent. */
  close(): Promise<void>;
}

/** Maps a bearer token to the user it stands for; `undefined` for a token nobody holds. */
type TokenLookup = (token: string) => string | undefined;

interface ServeOptions extends StartOptions {
  readonly build: McpServerFactory;
  /** Set where the server tells users apart: an unknown token is then 401, no token at all is a stranger. */
  readonly userOf?: TokenLookup;
}

/** Serves `build` under `/mcp`. */
export async function serve({ build, userOf, port = 0, host = LOOPBACK }: ServeOptions): Promise<DemoServer> {
  const counts = new Map<string, number>();
  const handler = createMcpHandler(build, { legacy: 'reject' });
  const mcp = toNodeHandler(handler);
  const hostFits = host === LOOPBACK ? localhostHostValidation() : () => true;
  const originFits = localhostOriginValidation();

  const http = createServer((req: IncomingMessage, res: ServerResponse) => {
    if (!hostFits(req, res) || !originFits(req, res)) return;
    if (req.url !== '/mcp') {
      res.writeHead(404).end();
      return;
    }
    const method = String(req.headers['mcp-method'] ?? '(none)');
    counts.set(method, (counts.get(method) ?? 0) + 1);
    if (userOf !== undefined && !authenticate(req, userOf)) {
      res.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end();
      return;
    }
    void mcp(req as NodeIncomingMessageLike, res); // the cast: the SDK's types predate exactOptionalPropertyTypes
  });

  await listen(http, port, host);
  let closing: Promise<void> | undefined;
  return {
    url: `http://${host}:${(http.address() as AddressInfo).port}/mcp`,
    notify: handler.notify,
    stats: {
      of: (method) => counts.get(method) ?? 0,
      all: () => Object.fromEntries(counts),
      reset: () => counts.clear(),
    },
    close() {
      closing ??= stop(http, handler.close);
      return closing;
    },
  };
}

/** -32602, for what a handler cannot make sense of. */
export const invalidParams = (message: string): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, message);

/** Cuts one page out of `items`; a cursor that this server did not hand out is -32602. */
export function pageOf<T>(
  items: readonly T[],
  cursor: string | undefined,
  size: number,
): { items: T[]; nextCursor?: string } {
  const from = cursor === undefined ? 0 : offsetOf(cursor);
  if (from === undefined || from >= items.length) {
    if (cursor !== undefined) throw invalidParams('Invalid cursor');
    return { items: [] };
  }
  const to = from + size;
  const page = items.slice(from, to);
  return to < items.length ? { items: page, nextCursor: cursorOf(to) } : { items: page };
}

const cursorOf = (offset: number): string => Buffer.from(`from:${offset}`).toString('base64url');

function offsetOf(cursor: string): number | undefined {
  const match = /^from:(\d{1,9})$/.exec(Buffer.from(cursor, 'base64url').toString());
  return match?.[1] === undefined ? undefined : Number(match[1]);
}

/** Attaches the caller's name for the handlers (`ctx.authInfo.clientId`); false when the token is nobody's. */
function authenticate(req: IncomingMessage, userOf: TokenLookup): boolean {
  const header = req.headers.authorization;
  if (header === undefined) return true;
  const token = /^Bearer (.+)$/i.exec(header)?.[1];
  const user = token === undefined ? undefined : userOf(token);
  if (token === undefined || user === undefined) return false;
  Object.assign(req, { auth: { token, clientId: user, scopes: [] } });
  return true;
}

function listen(http: HttpServer, port: number, host: string): Promise<void> {
  return new Promise((done, failed) => {
    http.once('error', failed);
    http.listen(port, host, () => {
      http.off('error', failed);
      done();
    });
  });
}

async function stop(http: HttpServer, endStreams: () => Promise<void>): Promise<void> {
  const closed = new Promise<void>((done) => {
    http.close(() => done());
  });
  await endStreams();
  http.closeAllConnections();
  await closed;
}

/**
 * Runs a server by hand: `node build/test/demo/servers/library.js --port 3001` prints `{"url": …}` as its first line.
 * `--host 0.0.0.0` lets other machines reach it. Does nothing when the module was imported.
 */
export async function runAsScript(
  moduleUrl: string,
  start: (options: StartOptions) => Promise<DemoServer>,
): Promise<void> {
  if (process.argv[1] === undefined || resolve(process.argv[1]) !== fileURLToPath(moduleUrl)) return;
  const { port: written, host } = parseArgs({
    options: { port: { type: 'string', default: '0' }, host: { type: 'string', default: LOOPBACK } },
  }).values;
  const port = Number(written);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    console.error('usage: --port N, a number from 0 (a free port) to 65535');
    process.exitCode = 2;
    return;
  }
  const server = await start({ port, host });
  console.log(JSON.stringify({ url: server.url, pid: process.pid }));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void server.close());
}
