/**
 * Transport failures, named once: retry, blame and status follow from the name and are decided nowhere else.
 * *Spec:* RFC 9209, section 2.3 (error types).
 */
import type { AttemptOutcome, Failure } from './types.ts';

type Kind = Failure['kind'];

/** What follows from a failure's kind. */
interface Traits {
  /** May be sent once more, also to the same endpoint, if the request is idempotent and no answer had begun. */
  readonly retry: 'unanswered' | 'never';
  /** Whether the upstream is less likely to answer the next request. */
  readonly circuit: 'failed' | 'timed_out' | 'answered' | 'ignored';
  /** For `headgate_upstream_attempts_total`, a closed set; undefined: nothing was attempted. */
  readonly attempt: AttemptOutcome | undefined;
  /** For `error_type` of the operation histogram, a closed set. */
  readonly errorType: 'timeout' | 'connect' | 'cancelled' | 'other';
}

const TRAITS: Readonly<Record<Kind, Traits>> = {
  // Refused once is refused again a millisecond later, and a hanging connect would cost its time twice.
  connect: { retry: 'never', circuit: 'failed', attempt: 'connect', errorType: 'connect' },
  timeout: { retry: 'never', circuit: 'timed_out', attempt: 'timeout', errorType: 'timeout' },
  reset: { retry: 'unanswered', circuit: 'failed', attempt: 'reset', errorType: 'other' },
  http_5xx: { retry: 'never', circuit: 'failed', attempt: 'http_5xx', errorType: 'other' },
  // It answered, if only nonsense: leaving it alone would hide its other methods.
  broken: { retry: 'never', circuit: 'answered', attempt: 'reset', errorType: 'other' },
  too_large: { retry: 'never', circuit: 'answered', attempt: 'reset', errorType: 'other' },
  circuit_open: { retry: 'never', circuit: 'ignored', attempt: 'circuit_open', errorType: 'other' },
  full: { retry: 'never', circuit: 'ignored', attempt: undefined, errorType: 'other' },
  cancelled: { retry: 'never', circuit: 'ignored', attempt: 'cancelled', errorType: 'cancelled' },
};

/** What follows from a failure of this kind. */
export function traitsOf(kind: Kind): Traits {
  return TRAITS[kind];
}

/** How far a request had come when it failed. */
export type Stage =
  /** No connection yet: not one byte was sent. */
  | 'unsent'
  /** Bytes may have been sent, none had come back. */
  | 'sent'
  /** The first byte of an answer had come. */
  | 'answering';

/** Where a failed request may be sent again. */
export type Again =
  /** Once more, wherever: it may have been read, but not answered. */
  | 'anywhere'
  /** To another endpoint: this one has not seen a byte of it. */
  | 'elsewhere'
  | 'never';

/** Whether a request that no answer had begun to may be sent again (R36). */
export function againAfter({ kind }: Failure, stage: Stage, use: { readonly idempotent: boolean }): Again {
  if (stage === 'unsent' && (kind === 'connect' || kind === 'timeout')) return 'elsewhere';
  return use.idempotent && stage !== 'answering' && TRAITS[kind].retry === 'unanswered'
    ? 'anywhere'
    : 'never';
}

/** A failure on its way through an iterator: the body of a streamed answer ends with it. */
export class UpstreamError extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.detail);
    this.name = 'UpstreamError';
    this.failure = failure;
  }
}

/** Names a failure of our own making. @param detail for logs only. */
export function failure(
  kind: Kind,
  proxyError: string,
  detail: string,
  rest: { readonly retryAfterSeconds?: number; readonly status?: number } = {},
): Failure {
  return { kind, proxyError, detail, ...rest };
}

/** Our side gave up: the client left, the last waiter left, or the gateway is closing. */
export const CANCELLED: Failure = failure('cancelled', 'connection_terminated', 'given up by this side');

type Row = readonly [kind: Kind, proxyError: string];

/** Errors that mean the same in every stage. */
const BY_CODE: ReadonlyMap<string, Row> = new Map<string, Row>([
  ['ECONNREFUSED', ['connect', 'connection_refused']],
  ['ENOTFOUND', ['connect', 'dns_error']],
  ['EAI_AGAIN', ['connect', 'dns_error']],
  ['EAI_FAIL', ['connect', 'dns_error']],
  ['EAI_NODATA', ['connect', 'dns_error']],
  ['EHOSTUNREACH', ['connect', 'destination_ip_unroutable']],
  ['ENETUNREACH', ['connect', 'destination_ip_unroutable']],
  ['EADDRNOTAVAIL', ['connect', 'destination_ip_unroutable']],
  ['EHOSTDOWN', ['connect', 'destination_unavailable']],
  ['EPROTO', ['connect', 'tls_protocol_error']],
  ['CERT_HAS_EXPIRED', ['connect', 'tls_certificate_error']],
  ['CERT_NOT_YET_VALID', ['connect', 'tls_certificate_error']],
  ['CERT_REVOKED', ['connect', 'tls_certificate_error']],
  ['CERT_REJECTED', ['connect', 'tls_certificate_error']],
  ['CERT_UNTRUSTED', ['connect', 'tls_certificate_error']],
  ['CERT_SIGNATURE_FAILURE', ['connect', 'tls_certificate_error']],
  ['CERT_CHAIN_TOO_LONG', ['connect', 'tls_certificate_error']],
  ['INVALID_CA', ['connect', 'tls_certificate_error']],
  ['INVALID_PURPOSE', ['connect', 'tls_certificate_error']],
  ['HOSTNAME_MISMATCH', ['connect', 'tls_certificate_error']],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', ['connect', 'tls_certificate_error']],
  ['SELF_SIGNED_CERT_IN_CHAIN', ['connect', 'tls_certificate_error']],
  ['UNABLE_TO_GET_ISSUER_CERT', ['connect', 'tls_certificate_error']],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', ['connect', 'tls_certificate_error']],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', ['connect', 'tls_certificate_error']],
  ['ERR_TLS_CERT_ALTNAME_INVALID', ['connect', 'tls_certificate_error']],
  ['UND_ERR_CONNECT_TIMEOUT', ['timeout', 'connection_timeout']],
  ['UND_ERR_HEADERS_TIMEOUT', ['timeout', 'http_response_timeout']],
  ['UND_ERR_BODY_TIMEOUT', ['timeout', 'http_response_timeout']],
  ['UND_ERR_HEADERS_OVERFLOW', ['broken', 'http_response_header_section_size']],
  ['UND_ERR_RES_EXCEEDED_MAX_SIZE', ['too_large', 'http_response_body_size']],
  // The connection ended in the middle of the answer's body.
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', ['reset', 'http_response_incomplete']],
  ['HPE_INVALID_EOF_STATE', ['reset', 'http_response_incomplete']],
  // Ours: the gateway is closing.
  ['UND_ERR_DESTROYED', ['cancelled', 'connection_terminated']],
  ['UND_ERR_CLOSED', ['cancelled', 'connection_terminated']],
  ['UND_ERR_ABORTED', ['cancelled', 'connection_terminated']],
  ['UND_ERR_INVALID_ARG', ['broken', 'proxy_internal_error']],
  ['UND_ERR_NOT_SUPPORTED', ['broken', 'proxy_internal_error']],
]);

const BROKEN_OFF: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'EPIPE',
  'ECONNABORTED',
  'UND_ERR_SOCKET',
  'UND_ERR_INFO',
]);

/** Names an error that undici or the system reported. */
export function failureOf(error: unknown, stage: Stage): Failure {
  if (error instanceof UpstreamError) return error.failure;
  const code = codeOf(error);
  const [kind, proxyError] = rowOf(code, stage);
  return failure(kind, proxyError, `${code || 'error'}: ${messageOf(error)}`);
}

function rowOf(code: string, stage: Stage): Row {
  const known = BY_CODE.get(code);
  if (known !== undefined) return known;
  if (code === 'ETIMEDOUT')
    return ['timeout', stage === 'unsent' ? 'connection_timeout' : 'http_response_timeout'];
  if (code.startsWith('HPE_')) return ['broken', 'http_protocol_error'];
  if (stage === 'unsent') {
    return ['connect', code.startsWith('ERR_SSL') ? 'tls_protocol_error' : 'destination_unavailable'];
  }
  if (stage === 'sent') return ['reset', 'connection_terminated'];
  return BROKEN_OFF.has(code) ? ['reset', 'http_response_incomplete'] : ['broken', 'proxy_internal_error'];
}

/** The code of an error; of several addresses tried at once, that of the first. */
function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  const { code, name, message } = (error ?? {}) as { code?: unknown; name?: unknown; message?: unknown };
  if (typeof code === 'string') return code;
  // undici 7.30 looks its parser's codes up in the wrong direction and finds none.
  if (name !== 'HTTPParserError') return '';
  return String(message).includes('Invalid EOF') ? 'HPE_INVALID_EOF_STATE' : 'HPE_INVALID';
}

/** Longer error messages are cut: some carry what the other side sent. */
const MAX_DETAIL_CHARS = 200;

function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return messageOf(error.errors[0]);
  return error instanceof Error ? error.message.slice(0, MAX_DETAIL_CHARS) : 'not an Error';
}
