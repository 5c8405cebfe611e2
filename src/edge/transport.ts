/**
 * Is a POST in order as an HTTP request? Pure; never throws. The checks stand in the order of R5, transport part:
 * version → headers (too many, sent twice) → Host → Origin → path → query → expectation → transfer coding → media type → content coding
 * → length. What the body says is the classifier's.
 */

import type { Admission } from '../auth/admission.ts';
import { INVALID_REQUEST, type Refusal, refusal } from '../protocol/errors.ts';
import { type Head, mediaType } from '../protocol/headers.ts';
import { TOO_LARGE } from './body.ts';

/** What is refused here when it comes twice; the mirrored headers are the classifier's (-32020). */
const SINGLE: ReadonlySet<string> = new Set([
  'host',
  'origin',
  'authorization',
  'content-type',
  'content-length',
]);

/** What the checks look at beside the request. */
export interface TransportRules {
  readonly admission: Admission;
  readonly paths: ReadonlySet<string>;
  readonly headerCount: number;
}

export interface Arrival {
  readonly head: Head;
  readonly verb: 'POST' | 'GET' | 'DELETE';
  /** Header lines, repeated ones included. */
  readonly headerCount: number;
  /** The request target as it came. */
  readonly target: string;
  readonly httpVersion: string;
}

/** Where a request target leads. */
export interface Target {
  readonly path: string;
  readonly query: 'none' | 'some';
  /** Of an absolute target; it outranks the `Host` header. */
  readonly authority: string | undefined;
}

export type Verdict =
  | { readonly kind: 'passed'; readonly route: string }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly route: string | undefined };

/** Splits a request target. *Never* decodes or normalises it. *Spec:* RFC 9112, section 3.2. */
export function readTarget(target: string): Target {
  const absolute = target.startsWith('/') ? null : /^https?:\/\/([^/?#]*)(.*)$/i.exec(target);
  const local = absolute === null ? target : absolute[2] || '/';
  const mark = local.indexOf('?');
  return {
    path: mark < 0 ? local : local.slice(0, mark),
    query: mark < 0 ? 'none' : 'some',
    authority: absolute?.[1],
  };
}

/** Checks the head of a POST. */
export function inspect(arrival: Arrival, rules: TransportRules): Verdict {
  // The target of nearly every request is a configured path, letter by letter.
  const target = rules.paths.has(arrival.target) ? undefined : readTarget(arrival.target);
  const path = target?.path ?? arrival.target;
  const route = rules.paths.has(path) ? path : undefined;
  const problem =
    versionProblem(arrival.httpVersion) ??
    headerProblem(arrival, rules) ??
    admissionProblem(arrival, target?.authority, rules.admission) ??
    targetProblem(target, route) ??
    expectationProblem(arrival.head) ??
    (arrival.verb === 'POST' ? bodyProblem(arrival.head) : bodilessProblem(arrival));
  if (problem === undefined && route !== undefined) return { kind: 'passed', route };
  return { kind: 'refused', refusal: problem ?? NOT_FOUND, route };
}

/** The declared length of a body; undefined when none is declared. */
export function declaredBytes(head: Head): number | undefined {
  const value = head.headers.get('content-length');
  return value === undefined ? undefined : Number(value);
}

/** 413 for a body that says itself that it is too large; it need not be sent. */
export function lengthProblem(head: Head, mostBytes: number): Refusal | undefined {
  return (declaredBytes(head) ?? 0) > mostBytes ? TOO_LARGE : undefined;
}

/** No MCP endpoint at this path. */
export const NOT_FOUND = refusal(INVALID_REQUEST, 'There is no MCP endpoint at this path', {
  status: 404,
  reason: 'no_route',
});

/** More header lines, or larger ones, than the configuration allows. */
export const HEADERS_TOO_LARGE = refusal(INVALID_REQUEST, 'The request has too many or too large headers', {
  status: 431,
  reason: 'parse',
});

/**
 * True when another reader could see another end of this request: what follows it on the connection is none.
 * Of a request with a declined `Upgrade`, Node drops what came in the same piece, and reads on behind that.
 * *Spec:* RFC 9112, section 6.1.
 */
export function endsUnclearly({ head, httpVersion }: Pick<Arrival, 'head' | 'httpVersion'>): boolean {
  if (head.headers.has('upgrade')) return true;
  const transfer = head.headers.get('transfer-encoding');
  return transfer !== undefined && (httpVersion !== '1.1' || transfer.toLowerCase() !== 'chunked');
}

/** Node's parser lets `HTTP/0.9` and `HTTP/2.0` pass; nobody means them. */
export function versionProblem(httpVersion: string): Refusal | undefined {
  if (httpVersion === '1.1' || httpVersion === '1.0') return undefined;
  return refusal(INVALID_REQUEST, 'Of HTTP only 1.1 and 1.0 are spoken here', {
    status: 505,
    reason: 'parse',
  });
}

/** Host and Origin, for requests of any method. */
export function admissionProblem(
  { head, httpVersion }: Pick<Arrival, 'head' | 'httpVersion'>,
  authority: string | undefined,
  admission: Admission,
): Refusal | undefined {
  const host = head.headers.get('host');
  if (host === undefined && httpVersion === '1.1') return malformed('The header Host is missing');
  if (!admission.host(authority ?? host)) {
    return refusal(INVALID_REQUEST, 'This Host is not served here', { status: 403, reason: 'host' });
  }
  if (admission.origin(head.headers.get('origin'))) return undefined;
  return refusal(INVALID_REQUEST, 'This Origin is not allowed', { status: 403, reason: 'origin' });
}

function headerProblem({ head, headerCount }: Arrival, rules: TransportRules): Refusal | undefined {
  if (headerCount > rules.headerCount) return HEADERS_TOO_LARGE;
  const { duplicated } = head;
  return duplicated !== undefined && SINGLE.has(duplicated)
    ? malformed(`The header ${duplicated} was sent twice`)
    : undefined;
}

function targetProblem(target: Target | undefined, route: string | undefined): Refusal | undefined {
  if (route === undefined) return NOT_FOUND;
  return target?.query === 'some' ? malformed('The MCP endpoint takes no query string') : undefined;
}

function expectationProblem({ headers }: Head): Refusal | undefined {
  const expected = headers.get('expect');
  if (expected !== undefined && expected.toLowerCase() !== '100-continue') {
    return refusal(INVALID_REQUEST, 'Of the expectations only 100-continue is known', {
      status: 417,
      reason: 'parse',
    });
  }
  return undefined;
}

function bodyProblem({ headers }: Head): Refusal | undefined {
  const transfer = headers.get('transfer-encoding');
  if (transfer !== undefined && transfer.toLowerCase() !== 'chunked') {
    return refusal(INVALID_REQUEST, 'Of the transfer codings only chunked is known', {
      status: 501,
      reason: 'parse',
    });
  }
  const type = headers.get('content-type');
  if (type !== 'application/json' && !isUtf8Json(type ?? '')) {
    return unsupported('The body must be application/json in UTF-8', {});
  }
  const coding = headers.get('content-encoding');
  if (coding !== undefined && coding.toLowerCase() !== 'identity') {
    return unsupported('The body must not be compressed', { 'Accept-Encoding': 'identity' });
  }
  return undefined;
}

/** *Spec:* 2025-11-25, basic/transports, "Listening for Messages from the Server". */
function bodilessProblem({ verb, head }: Arrival): Refusal | undefined {
  if (head.duplicated !== undefined) return malformed(`The header ${head.duplicated} was sent twice`);
  if ((declaredBytes(head) ?? 0) !== 0 || head.headers.has('transfer-encoding'))
    return malformed(`A ${verb} has no body`);
  const accept = head.headers.get('accept') ?? '';
  if (verb !== 'GET' || /text\/event-stream|text\/\*|\*\/\*/i.test(accept)) return undefined;
  return refusal(INVALID_REQUEST, 'A GET must accept text/event-stream', {
    status: 406,
    reason: 'media_type',
  });
}

function isUtf8Json(value: string): boolean {
  const { type, charset } = mediaType(value);
  return type === 'application/json' && (charset === undefined || charset === 'utf-8' || charset === 'utf8');
}

function malformed(message: string): Refusal {
  return refusal(INVALID_REQUEST, message, { reason: 'parse' });
}

function unsupported(message: string, headers: Readonly<Record<string, string>>): Refusal {
  return refusal(INVALID_REQUEST, message, { status: 415, reason: 'media_type', headers });
}
