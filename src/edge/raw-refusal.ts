/**
 * Refusals below HTTP: what Node could not read as a request, answered in our shape before the connection closes.
 */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { errorBody, INVALID_REQUEST, METHOD_NOT_ALLOWED, type Refusal, refusal } from '../protocol/errors.ts';
import { HEADERS_TOO_LARGE } from './transport.ts';

/** Why Node gave up on a connection; `rawPacket` is what it could not read. */
export interface ClientError extends Error {
  readonly code?: string | undefined;
  readonly rawPacket?: unknown;
}

/** How long a refused client may take to read why. */
const LINGER_MS = 1_000;
/** `PATCH /mcp HTTP/1.1`: a request in all but its method. */
const OTHER_METHOD = /^[A-Z][A-Z-]{1,24} \S+ HTTP\/1\.[01]\r?\n/;

const MALFORMED = refusal(INVALID_REQUEST, 'This is not a valid HTTP/1.1 request', {
  status: 400,
  reason: 'parse',
});
const TOO_SLOW = refusal(INVALID_REQUEST, 'The request head did not arrive in time', { status: 408 });
const EXTENSIONS = refusal(INVALID_REQUEST, 'The chunk extensions are too large', {
  status: 413,
  reason: 'body_size',
});

/** What a client is told when Node could not read its request. Pure. */
export function refusalOf({ code, rawPacket }: ClientError): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return HEADERS_TOO_LARGE;
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return EXTENSIONS;
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return TOO_SLOW;
    case 'HPE_INVALID_METHOD':
      return OTHER_METHOD.test(firstBytes(rawPacket)) ? METHOD_NOT_ALLOWED : MALFORMED;
    default:
      return MALFORMED;
  }
}

function firstBytes(packet: unknown): string {
  return Buffer.isBuffer(packet) ? packet.toString('latin1', 0, 2048) : '';
}

const REFUSED = Symbol('refused');

/**
 * Writes a refusal on a bare connection and closes it, once: Node reports every further piece of what it could
 * not read. @returns false when nothing could be written.
 */
export function refuseRaw(socket: Socket & { [REFUSED]?: true }, problem: Refusal): boolean {
  if (socket[REFUSED] || !socket.writable) {
    if (!socket[REFUSED]) socket.destroy();
    return false;
  }
  socket[REFUSED] = true;
  const body = errorBody(problem, undefined);
  const lines = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status] ?? ''}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    ...Object.entries(problem.headers ?? {}).map(([name, value]) => `${name}: ${value}`),
    'Connection: close',
  ];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
  // Closed at once, the unread rest of the request would reset the connection before the client has read this.
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
  return true;
}
