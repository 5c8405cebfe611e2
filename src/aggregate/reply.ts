/**
 * Answers as the client gets them: heads written here, values spliced as they came, and the headers that say how an
 * answer came about. *Spec:* RFC 9211 (`Cache-Status`), RFC 9209 (`Proxy-Status`), server/utilities/caching.
 */
import type { Cached, CacheOutcome } from '../cache/types.ts';
import {
  errorBody,
  HEADER_MISMATCH,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  LEGACY_NOT_FOUND,
  PARSE_ERROR,
  type Refusal,
  refusal,
  statusOf,
  UNSUPPORTED_VERSION,
} from '../protocol/errors.ts';
import type { Facts, Reply } from '../protocol/exchange.ts';
import type { Member as JsonMember } from '../protocol/json.ts';
import { META_INCOMPLETE, META_SERVER_INFO } from '../protocol/meta.ts';
import type { ListShape } from '../protocol/methods.ts';
import type { Failure, FlowingTail } from '../upstream/types.ts';
import type { Told } from './ask.ts';
import type { Merged } from './list.ts';
import type { Run } from './walk.ts';

const encoder = new TextEncoder();

/** The head of a result: everything the gateway writes itself. */
export function resultHead(
  id: string,
  resultType: string,
  hints?: { readonly ttlMs: number; readonly scope: 'public' | 'private' },
): string {
  const told = hints === undefined ? '' : `,"ttlMs":${hints.ttlMs},"cacheScope":"${hints.scope}"`;
  const type = resultType === 'complete' ? '"complete"' : JSON.stringify(resultType);
  return `{"jsonrpc":"2.0","id":${id},"result":{"resultType":${type}${told}`;
}

/** `Cache-Status` and, on what was kept, `Age`. `failed`: what a stale answer stands in for. */
export function cacheHeaders(outcome: CacheOutcome, failed?: Told): Record<string, string> {
  switch (outcome.kind) {
    case 'hit':
      return {
        'cache-status': `headgate; hit; ttl=${seconds(outcome.ttlMs)}; detail=${outcome.tier}`,
        age: `${seconds(outcome.ageMs)}`,
      };
    case 'stale':
      return {
        'cache-status': `headgate; fwd=stale${failedStatus(failed)}; detail=stale-if-error`,
        age: `${seconds(outcome.ageMs)}`,
      };
    case 'bypass':
      return { 'cache-status': `headgate; fwd=bypass; detail=${outcome.why}` };
    case 'miss':
      return {
        'cache-status': `headgate; fwd=${FORWARDED[outcome.why]}${outcome.collapsed ? '; collapsed' : ''}${missDetail(outcome)}`,
      };
  }
}

type Miss = Extract<CacheOutcome, { kind: 'miss' }>;

const FORWARDED: Readonly<Record<Miss['why'], string>> = {
  'uri-miss': 'uri-miss',
  stale: 'stale',
  rewatch: 'stale',
};

function missDetail({ why, stored }: Miss): string {
  const detail = MISS_DETAIL[stored];
  return why === 'rewatch' && !detail.includes('detail=') ? `${detail}; detail=rewatch` : detail;
}

/** The status of the upstream's answer, or the one that its absence has here. */
function failedStatus(failed: Told | undefined): string {
  if (failed?.kind !== 'failure') return '';
  return `; fwd-status=${failed.failure.status ?? FAILURES[failed.failure.kind][0]}`;
}

const MISS_DETAIL: Readonly<Record<Extract<CacheOutcome, { kind: 'miss' }>['stored'], string>> = {
  stored: '; stored',
  'ttl-zero': '; detail=ttl-zero',
  'too-large': '; detail=too-large',
  superseded: '; detail=superseded',
  'not-storable': '',
};

/** What a method that is never cached says. */
export const METHOD_HEADERS = { 'cache-status': 'headgate; fwd=method' } as const;

function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}

/** Notes in the facts how the cache was used. */
export function noteOutcome(facts: Facts, outcome: CacheOutcome): void {
  facts.cache = outcome.kind;
  if (outcome.kind === 'miss') {
    facts.cacheReason = outcome.stored;
    if (outcome.collapsed) facts.collapsed = true;
  }
  if (outcome.kind === 'bypass') facts.cacheReason = outcome.why;
}

/** A cacheable result. */
export function completeReply(id: string, cached: Extract<Cached<Told>, { kind: 'complete' }>): Reply {
  const { ttlMs, scope, tail, outcome } = cached;
  return {
    kind: 'answer',
    status: 200,
    head: resultHead(id, 'complete', { ttlMs, scope }),
    tail: [tail],
    headers: cacheHeaders(outcome, cached.failed),
  };
}

/** What an upstream said instead of a cacheable result. */
export function toldReply(
  id: string,
  told: Told,
  credentials: 'forwarded' | 'own',
  headers: Readonly<Record<string, string>>,
): Reply {
  switch (told.kind) {
    case 'input_required':
      return {
        kind: 'answer',
        status: 200,
        head: resultHead(id, 'input_required'),
        tail: [told.result.plain()],
        headers,
      };
    case 'large':
      return largeReply(id, told.tail, headers);
    case 'error':
      return errorReply(id, told, headers);
    case 'refused':
      return { kind: 'refused', id, refusal: withHeaders(refusedRefusal(told, credentials), headers) };
    case 'failure':
      return { kind: 'refused', id, refusal: withHeaders(failureRefusal(told.failure), headers) };
  }
}

/**
 * A complete result that flows. Its hints may stand behind its contents, so that the head cannot repeat them:
 * nothing larger than an entry is kept here, and a client that keeps it asks again at its next use.
 */
function largeReply(id: string, tail: FlowingTail, headers: Readonly<Record<string, string>>): Reply {
  const head = resultHead(id, 'complete', { ttlMs: 0, scope: 'private' });
  const broken = errorBody({ code: INTERNAL_ERROR, message: FAILURES.reset[1] }, id);
  return { kind: 'relay', status: 200, media: 'json', head, body: tail, broken, headers };
}

/** A refusal that also says how the cache was used. */
export function withHeaders(problem: Refusal, headers: Readonly<Record<string, string>>): Refusal {
  return { ...problem, headers: { ...headers, ...problem.headers } };
}

/** Codes that say the gateway's own request was at fault: not the client's business (R37). */
const OWN_TROUBLE: ReadonlySet<number> = new Set([
  PARSE_ERROR,
  INVALID_REQUEST,
  HEADER_MISMATCH,
  UNSUPPORTED_VERSION,
]);

type ToldError = Extract<Told, { kind: 'error' }>;

/** An upstream's method error, passed on with code, message and data. */
export function errorReply(
  id: string,
  told: Pick<ToldError, 'code' | 'message' | 'data'>,
  headers: Readonly<Record<string, string>>,
  uri?: string,
): Reply {
  if (OWN_TROUBLE.has(told.code)) {
    return { kind: 'refused', id, refusal: withHeaders(brokenUpstream(), headers) };
  }
  const code = told.code === LEGACY_NOT_FOUND ? INVALID_PARAMS : told.code;
  const data =
    told.data ?? (told.code === LEGACY_NOT_FOUND && uri !== undefined ? JSON.stringify({ uri }) : undefined);
  const body = `{"code":${code},"message":${JSON.stringify(told.message)}${data === undefined ? '' : `,"data":${data}`}}`;
  const head = `{"jsonrpc":"2.0","id":${id},"error":${body}}`;
  return { kind: 'answer', status: statusOf(code), head, tail: [], headers, rpcError: code };
}

/** -32603 for an upstream that answered what no MCP server answers. */
export function brokenUpstream(): Refusal {
  return refusal(INTERNAL_ERROR, 'The upstream server gave no valid answer', {
    status: 502,
    proxyError: 'http_protocol_error',
  });
}

/** What the client hears of a failure: which kind, and nothing of where. */
export function failureRefusal(failure: Failure): Refusal {
  const { kind, proxyError, retryAfterSeconds } = failure;
  const [status, message] = FAILURES[kind];
  const headers = status === 503 ? { 'retry-after': `${retryAfterSeconds ?? 1}` } : {};
  return refusal(INTERNAL_ERROR, message, { status, proxyError, headers });
}

const FAILURES: Readonly<Record<Failure['kind'], readonly [status: number, message: string]>> = {
  connect: [502, 'The upstream server cannot be reached'],
  timeout: [504, 'The upstream server did not answer in time'],
  reset: [502, 'The upstream server broke off its answer'],
  http_5xx: [502, 'The upstream server failed'],
  broken: [502, 'The upstream server gave no valid answer'],
  too_large: [502, 'The answer of the upstream server is too large'],
  circuit_open: [503, 'The upstream server is failing and is left alone for a moment'],
  full: [503, 'Too many calls to the upstream server are under way'],
  cancelled: [503, 'The request was given up'],
};

/** An HTTP refusal of an upstream: passed through only where the caller's own credentials were refused. */
export function refusedRefusal(
  told: Extract<Told, { kind: 'refused' }>,
  credentials: 'forwarded' | 'own',
): Refusal {
  const { status, challenge, retryAfter } = told;
  if (credentials === 'forwarded' && (status === 401 || status === 403)) {
    const headers = challenge === undefined ? {} : { 'www-authenticate': challenge };
    // Our own codes live outside the range JSON-RPC reserves.
    return { status, code: status, message: status === 401 ? 'Unauthorized' : 'Forbidden', headers };
  }
  if (status === 429) {
    return refusal(INTERNAL_ERROR, 'The upstream server asks for a pause', {
      status: 503,
      proxyError: 'destination_unavailable',
      headers: { 'retry-after': retryAfter ?? '1' },
    });
  }
  return refusal(INTERNAL_ERROR, 'The upstream server refused the gateway', {
    status: 502,
    proxyError: 'http_request_denied',
  });
}

/** A merged page. The items are the bytes their upstreams sent. */
export function mergedReply(
  id: string,
  merged: Extract<Merged, { kind: 'page' }>,
  shape: ListShape,
  serverInfo: unknown,
): Reply {
  const { ttlMs, scope, runs } = merged;
  const end = [
    ']',
    ...extraMembers(runs),
    ...(merged.nextCursor === undefined ? [] : [`,"nextCursor":${JSON.stringify(merged.nextCursor)}`]),
    `,"_meta":{${metaMembers(merged, serverInfo)}}}}`,
  ];
  return {
    kind: 'answer',
    status: 200,
    head: `${resultHead(id, 'complete', { ttlMs, scope })},"${shape.field}":[`,
    tail: [...spliced(runs), encoder.encode(end.join(''))],
    headers: mergedHeaders(merged),
  };
}

function mergedHeaders(merged: Extract<Merged, { kind: 'page' }>): Record<string, string> {
  const { source, ageMs, ttlMs, incomplete } = merged;
  switch (source) {
    case 'hit':
      return cacheHeaders({ kind: 'hit', tier: 'memory', ageMs, ttlMs });
    case 'miss':
      return incomplete.length > 0
        ? { 'cache-status': 'headgate; fwd=miss; detail=incomplete' }
        : MISS_HEADERS;
    case 'stale':
      return { 'cache-status': 'headgate; fwd=stale; detail=stale-if-error', age: `${seconds(ageMs)}` };
    case 'bypass':
      return cacheHeaders({ kind: 'bypass', why: 'disabled' });
  }
}

/** Of an answer put together from several: one of them at least had to be asked for. */
export const MISS_HEADERS = { 'cache-status': 'headgate; fwd=miss' } as const;

const COMMA = encoder.encode(',');

/** The items' bytes with commas between; items that stand side by side in a page are cut out in one piece. */
function* spliced(runs: readonly Run[]): Generator<Uint8Array> {
  let begun = false;
  for (const { page, items } of runs) {
    let start = -1;
    let end = -1;
    for (const item of items) {
      if (start >= 0 && item.start === end + 1 && page.tail[end] === 0x2c) {
        end = item.end;
        continue;
      }
      if (start >= 0) yield page.tail.subarray(start, end);
      if (begun) yield COMMA;
      begun = true;
      ({ start, end } = item);
    }
    if (start >= 0) yield page.tail.subarray(start, end);
  }
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

function memberText(tail: Uint8Array, member: JsonMember): string {
  return `${JSON.stringify(member.key)}:${decoder.decode(tail.subarray(member.start, member.end))}`;
}

/** Members of the parts' results that the gateway does not know (R20); the earlier upstream's first. */
function extraMembers(runs: readonly Run[]): string[] {
  const seen = new Set<string>();
  return leading(runs).flatMap(({ page }) =>
    page.extras.flatMap((member) => (fresh(seen, member.key) ? [`,${memberText(page.tail, member)}`] : [])),
  );
}

/** The runs that begin their page: what stands beside the items of a cut page is told once. */
function leading(runs: readonly Run[]): readonly Run[] {
  return runs.filter((run) => run.extras === 'with');
}

function metaMembers(merged: Extract<Merged, { kind: 'page' }>, serverInfo: unknown): string {
  const seen = new Set<string>([META_SERVER_INFO, META_INCOMPLETE]);
  const own = [`${JSON.stringify(META_SERVER_INFO)}:${JSON.stringify(serverInfo)}`];
  if (merged.incomplete.length > 0)
    own.push(`${JSON.stringify(META_INCOMPLETE)}:${JSON.stringify(merged.incomplete)}`);
  const others = leading(merged.runs).flatMap(({ page }) =>
    page.meta.flatMap((member) => (fresh(seen, member.key) ? [memberText(page.tail, member)] : [])),
  );
  return [...own, ...others].join(',');
}

function fresh(seen: Set<string>, key: string): boolean {
  if (seen.has(key)) return false;
  seen.add(key);
  return true;
}
