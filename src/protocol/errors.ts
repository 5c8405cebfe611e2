/**
 * Errors that cross the wire, and their HTTP statuses.
 * *Spec:* basic/index, "Error codes"; basic/transports/streamable-http, "Error responses".
 */

export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;
export const HEADER_MISMATCH = -32020;
export const MISSING_CLIENT_CAPABILITY = -32021;
export const UNSUPPORTED_VERSION = -32022;
/** "Resource not found" of 2025-11-25 and older: accepted from servers, never sent. */
export const LEGACY_NOT_FOUND = -32002;
/** What servers of that time say of a session that they do not know. */
export const LEGACY_NO_SESSION = -32000;

const STATUS: ReadonlyMap<number, number> = new Map([
  [PARSE_ERROR, 400],
  [INVALID_REQUEST, 400],
  [METHOD_NOT_FOUND, 404],
  [HEADER_MISMATCH, 400],
  [MISSING_CLIENT_CAPABILITY, 400],
  [UNSUPPORTED_VERSION, 400],
]);

/** The HTTP status that goes with a JSON-RPC error code; 200 for what is an answer of the method itself. */
export function statusOf(code: number): number {
  return STATUS.get(code) ?? 200;
}

/** Why the edge or the classifier refused, for `headgate_requests_rejected_total`. */
export type RejectReason =
  | 'parse'
  | 'header_mismatch'
  | 'version'
  | 'origin'
  | 'host'
  | 'body_size'
  | 'no_route'
  | 'method_not_allowed'
  | 'media_type';

/** An error answer of the gateway: what the client sees, and nothing else. */
export interface Refusal {
  readonly status: number;
  readonly code: number;
  readonly message: string;
  /** JSON-safe. */
  readonly data?: Readonly<Record<string, unknown>>;
  /** Counted under this reason. */
  readonly reason?: RejectReason;
  /** RFC 9209 error type, for errors the gateway made. */
  readonly proxyError?: string;
  /** Further response headers, e.g. `Allow`, `Retry-After`, `WWW-Authenticate`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A refusal with the status of its code, unless one is given. */
export function refusal(code: number, message: string, rest: Partial<Refusal> = {}): Refusal {
  return { status: statusOf(code), code, message, ...rest };
}

/** An endpoint takes POST alone, but for what belongs to sessions of older clients. */
export const METHOD_NOT_ALLOWED = refusal(INVALID_REQUEST, 'This endpoint accepts POST only', {
  status: 405,
  reason: 'method_not_allowed',
  headers: { Allow: 'POST' },
});

/** New requests are refused while there is too much to do: for as long as the loop is watched before they are taken again. */
export const OVERLOADED = refusal(INTERNAL_ERROR, 'The gateway has too much to do', {
  status: 503,
  proxyError: 'proxy_internal_response',
  headers: { 'Retry-After': '3' },
});

/** The JSON-RPC error body. `id` is JSON text exactly as received; without one the member is left out. */
export function errorBody(error: Pick<Refusal, 'code' | 'message' | 'data'>, id: string | undefined): string {
  const { code, message, data } = error;
  const body = JSON.stringify(data === undefined ? { code, message } : { code, message, data });
  return id === undefined
    ? `{"jsonrpc":"2.0","error":${body}}`
    : `{"jsonrpc":"2.0","id":${id},"error":${body}}`;
}
