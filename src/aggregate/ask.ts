/**
 * One question to one upstream on behalf of one caller, through the cache.
 *
 * Cache and upstream never meet but here: the cache decides whether to ask, the upstream answers, and this file says
 * what of an answer may be kept and what goes to whom.
 */

import {
  forwardedHeaders,
  isBarred,
  type PrivateBounds,
  seesCallers,
  varyingHeaders,
} from '../auth/forward.ts';
import { cacheKey, type KeyParts } from '../cache/key.ts';
import type { Cache } from '../cache/through.ts';
import type { Cached, CachePolicy, CacheRequest, Loaded } from '../cache/types.ts';
import type { UpstreamConfig } from '../config/types.ts';
import type { LogOnce } from '../observability/log.ts';
import { type ResultTail, tailMembers } from '../protocol/answer.ts';
import type { McpRequest } from '../protocol/classify.ts';
import type { Soon } from '../protocol/exchange.ts';
import type { Head } from '../protocol/headers.ts';
import { arrayElements, memberOf, objectMembers, stringValue } from '../protocol/json.ts';
import type { MethodRow } from '../protocol/methods.ts';
import { isRoundTrip, type KeyTexts, type Params } from '../protocol/params.ts';
import type { Signal } from '../protocol/signal.ts';
import type { Audience } from '../routing/ownership.ts';
import type { Failure, FlowingTail, ReadOutcome, Upstream } from '../upstream/types.ts';
import { hinted } from './rules.ts';

/** An upstream on a route. */
export interface Member {
  /** Its place in the route's order. */
  readonly rank: number;
  readonly config: UpstreamConfig;
  readonly upstream: Upstream;
  /** Digest of what makes its answers; see `upstreamIdentity`. */
  readonly identity: string;
}

/** On whose behalf, and how long somebody waits for it. */
export interface Asking {
  readonly partition: string;
  readonly head: Head;
  readonly params: Params;
  readonly texts: KeyTexts;
  /** Keys made before for the very same params and version, by the upstream's identity. */
  readonly keys: Map<string, string> | undefined;
  readonly version: string;
  readonly signal: Signal;
  readonly caching: 'on' | 'off';
  /** Takes the notifications of an SSE answer. */
  readonly notify?: (message: Uint8Array) => void;
  /** Called when waiting for an upstream begins; what it returns, when it ends. */
  waiting(): () => void;
}

/** What is asked. */
export interface Question {
  readonly row: MethodRow;
  /** The resource, for reads. */
  readonly uri?: string;
  readonly cursor?: string;
  /** JSON text of the params as they go upstream; only a miss asks for it. */
  readonly paramsText: () => string;
  readonly maxBytes: number;
  /** What of a larger result must be an array, for it to be handed on as it comes. */
  readonly flow?: { readonly array: string };
  readonly deadlineMs?: number;
}

/** Everything an upstream can say that is not a cacheable result. */
export type Told =
  | { readonly kind: 'input_required'; readonly result: ResultTail }
  /** Complete, but too large to be held: read once, or aborted. */
  | { readonly kind: 'large'; readonly tail: FlowingTail }
  | {
      readonly kind: 'error';
      readonly code: number;
      readonly message: string;
      readonly data: string | undefined;
      readonly status: number;
    }
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly challenge: string | undefined;
      readonly retryAfter: string | undefined;
    }
  | { readonly kind: 'failure'; readonly failure: Failure };

export interface AskDeps {
  readonly cache: Cache;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Milliseconds since 1970: only to read a token's `exp`. */
  readonly wallClock: () => number;
  readonly bounds: PrivateBounds;
  readonly logOnce: LogOnce;
  /** Answers above this are not kept: `cache.memory.maxEntry`. */
  readonly maxEntryBytes: number;
}

/** Asks; what is fresh in the store is there at once. *Never* rejects but when the caller has left. */
export function ask(deps: AskDeps, member: Member, asking: Asking, question: Question): Soon<Cached<Told>> {
  const key = baseKey(member, asking, question);
  const request = new CacheAsk(
    member,
    asking,
    question,
    key,
    policyFor(deps, member, asking.head, asking.partition),
  );
  if (question.row.list !== undefined) {
    const position = question.cursor === undefined ? 'first' : 'later';
    request.chain = { id: chainId(member, asking, question.row), position };
  }
  const cached = deps.cache.through<Told>(request, (signal) => load(deps, member, asking, question, signal));
  return cached instanceof Promise ? waitFor(cached, asking) : cached;
}

/**
 * The fast lane's part of {@link ask}: what is fresh of a read that came before, its key already made.
 * Undefined: ask.
 */
export function freshAgain(
  deps: AskDeps,
  member: Member,
  { head, row, keys }: McpRequest,
  partition: string,
): Cached<Told> | undefined {
  const key = keys?.get(member.identity);
  if (key === undefined) return undefined;
  const policy = policyFor(deps, member, head, partition);
  return deps.cache.fresh({
    upstream: member.config.name,
    method: row.method,
    baseKey: key,
    partition,
    policy,
  });
}

async function waitFor(asked: Promise<Cached<Told>>, asking: Asking): Promise<Cached<Told>> {
  const waited = asking.waiting();
  try {
    const cached = await asked;
    if (cached.kind === 'other' && cached.value.kind === 'large') endWith(asking.signal, cached.value.tail);
    return cached;
  } finally {
    waited();
  }
}

/** What a caller with credentials is told of a process that is not to be shared with such. */
export function barred(
  { logOnce }: Pick<AskDeps, 'logOnce'>,
  { config }: Member,
): Extract<ReadOutcome, { kind: 'refused' }> {
  logOnce(
    `barred ${config.name}`,
    'warn',
    { upstream: config.name },
    'callers with credentials are kept from this process, which sees none: write shared: true if they may share it',
  );
  return { kind: 'refused', status: 403, challenge: undefined, retryAfter: undefined };
}

async function load(
  deps: AskDeps,
  member: Member,
  asking: Asking,
  question: Question,
  signal: Signal,
): Promise<Loaded<Told>> {
  const { row, flow, deadlineMs } = question;
  if (isBarred(member.config, asking.head)) return sort(barred(deps, member), row);
  const outcome = await member.upstream.read({
    method: row.method,
    name: row.named === undefined ? undefined : question.uri,
    params: question.paramsText(),
    version: asking.version,
    headers: forwardedHeaders(member.config, asking.head),
    idempotent: row.idempotent,
    signal,
    caller: asking.partition,
    maxBytes: question.maxBytes,
    ...(flow !== undefined && { flow }),
    ...(deadlineMs !== undefined && { deadlineMs }),
    ...(asking.notify !== undefined && { onNotification: asking.notify }),
  });
  const told = hinted(member.config, row.method, question.uri, outcome);
  hintAtTtl(deps, member, row, told);
  return sort(told, row);
}

const ROUND_TRIP: CacheRequest['use'] = { bypass: 'mrtr' };
const DISABLED: CacheRequest['use'] = { bypass: 'disabled' };

/** A class for its one accessor, as the pipeline's `Caller`. */
class CacheAsk implements CacheRequest {
  readonly upstream: string;
  readonly method: string;
  readonly baseKey: string;
  readonly partition: string;
  readonly policy: CachePolicy;
  readonly use: CacheRequest['use'];
  declare uri?: string;
  declare chain?: NonNullable<CacheRequest['chain']>;
  readonly #asking: Asking;

  constructor(member: Member, asking: Asking, { row, uri }: Question, key: string, policy: CachePolicy) {
    this.upstream = member.config.name;
    this.method = row.method;
    this.baseKey = key;
    this.partition = asking.partition;
    this.policy = policy;
    this.use = isRoundTrip(asking.params) ? ROUND_TRIP : asking.caching === 'off' ? DISABLED : 'normal';
    if (uri !== undefined) this.uri = uri;
    this.#asking = asking;
  }

  get signal(): Signal {
    return this.#asking.signal;
  }
}

/** What flows is no flight any more: it ends with its one request. */
function endWith(signal: Signal, tail: FlowingTail): void {
  if (signal.aborted) tail.abort();
  else signal.addEventListener('abort', () => tail.abort(), { once: true });
}

/** Drops the stored pages of an upstream's list as this caller sees it: it refused its own cursor (R15). */
export function dropPages(deps: AskDeps, member: Member, asking: Asking, row: MethodRow): void {
  deps.cache.dropChain(member.config.name, chainId(member, asking, row), asking.partition);
}

function policyFor(deps: AskDeps, { config }: Member, head: Head, partition: string): CachePolicy {
  const bound = deps.bounds.of(config, head, partition);
  if (bound === undefined) return config.cache;
  const privateLimit =
    bound.kind === 'for'
      ? ({ kind: 'ttl', maxMs: bound.ms } as const)
      : ({ kind: 'until', at: deps.now() + (bound.wallMs - deps.wallClock()) } as const);
  // Named one by one: copying an object as a whole costs a private hit more than its look-up.
  const { ttlDefaultMs, ttlMaxMs, scope, staleIfErrorMs } = config.cache;
  return { ttlDefaultMs, ttlMaxMs, scope, staleIfErrorMs, privateLimit };
}

function chainId(member: Member, asking: Asking, row: MethodRow): string {
  return cacheKey(keyParts(member, asking, { row }));
}

function baseKey(member: Member, asking: Asking, question: Question): string {
  const { keys } = asking;
  // A request that comes again may differ in the headers that are passed on; what is not kept needs no key again.
  const again = asking.caching === 'on' && !isRoundTrip(asking.params);
  if (keys === undefined || !again || member.config.forwardHeaders.length > 0)
    return cacheKey(keyParts(member, asking, question));
  let key = keys.get(member.identity);
  if (key === undefined) {
    key = cacheKey(keyParts(member, asking, question));
    keys.set(member.identity, key);
  }
  return key;
}

function keyParts(
  member: Member,
  asking: Asking,
  { row, uri, cursor }: Pick<Question, 'row' | 'uri' | 'cursor'>,
): KeyParts {
  const { params, capabilities, meta } = asking.texts;
  return {
    upstream: member.config.name,
    upstreamDigest: member.identity,
    revision: asking.version,
    method: row.method,
    forwarded: varyingHeaders(member.config, asking.head),
    uri,
    cursor,
    params,
    capabilities,
    meta,
  };
}

/** An operator who wonders why nothing is ever a hit is told once, by name, what would change it. */
function hintAtTtl(deps: AskDeps, { config }: Member, row: MethodRow, outcome: ReadOutcome): void {
  if (outcome.kind !== 'answer' || outcome.answer.kind !== 'result' || row.route === 'discover') return;
  if (outcome.answer.hints.ttlMs !== undefined || config.cache.ttlDefaultMs > 0) return;
  const upstream = config.name;
  const message = `nothing is kept: answers carry no ttlMs; to keep them anyway set upstreams.${upstream}.cache.ttl.default`;
  deps.logOnce(`no-ttl ${upstream} ${row.method}`, 'info', { upstream, method: row.method }, message);
}

/** What of an outcome may be kept, and who may have the rest. */
function sort(outcome: ReadOutcome, row: MethodRow): Loaded<Told> {
  if (outcome.kind === 'failure') {
    const { failure } = outcome;
    return {
      kind: 'failed',
      value: { kind: 'failure', failure },
      stale: STALE_ALLOWED.has(failure.kind) ? 'allowed' : 'never',
    };
  }
  if (outcome.kind === 'large') return { kind: 'large', value: outcome };
  if (outcome.kind === 'refused') return { kind: 'uncacheable', value: outcome, share: 'context' };
  const { answer, status } = outcome;
  if (answer.kind === 'error') {
    const { code, message, data } = answer;
    return { kind: 'uncacheable', value: { kind: 'error', code, message, data, status }, share: 'context' };
  }
  if (answer.resultType === 'input_required' && row.route === 'uri') {
    return { kind: 'uncacheable', value: { kind: 'input_required', result: answer.result }, share: 'leader' };
  }
  if (answer.resultType !== 'complete')
    return brokenAnswer(`resultType is not one of a ${row.method} result`);
  const { tail, storable } = answer.result;
  const content = contentOf(tail, row);
  if (content === 'broken') return brokenAnswer(`no result of ${row.method}`);
  return {
    kind: 'complete',
    tail,
    storable,
    hints: answer.hints,
    receivedAt: outcome.receivedAt,
    // An empty `contents` can mean "not found" as well as "empty": passed on, not kept (R25).
    storableAtAll: content === 'full',
    ...(row.route === 'uri' && { uris: urisIn(tail) }),
  };
}

/** Failures after which the last good answer is better than none (design, section 6, staleIfError). */
const STALE_ALLOWED: ReadonlySet<Failure['kind']> = new Set([
  'connect',
  'timeout',
  'reset',
  'http_5xx',
  'circuit_open',
  'full',
]);

function brokenAnswer(detail: string): Loaded<Told> {
  const failure: Failure = { kind: 'broken', proxyError: 'http_protocol_error', detail };
  return { kind: 'failed', value: { kind: 'failure', failure }, stale: 'never' };
}

function contentOf(tail: Uint8Array, row: MethodRow): 'full' | 'empty' | 'broken' {
  const field = row.list?.field ?? (row.route === 'uri' ? 'contents' : undefined);
  if (field === undefined) return 'full';
  const member = memberOf(tailMembers(tail), field);
  const elements = member && arrayElements(tail, member.start);
  if (elements === undefined) return 'broken';
  return row.list === undefined && elements.length === 0 ? 'empty' : 'full';
}

/** The URIs that the contents of a read name, as far as they name any. */
function urisIn(tail: Uint8Array): readonly string[] {
  const contents = memberOf(tailMembers(tail), 'contents');
  const elements = (contents && arrayElements(tail, contents.start)) ?? [];
  return elements.flatMap((element) => {
    const uri = memberOf(objectMembers(tail, element.start) ?? [], 'uri');
    return (uri && stringValue(tail, uri)) ?? [];
  });
}

/** Whom an answer teaches who owns what: everybody, if it came public or no caller could have changed it. */
export function audienceOf(member: Member, scope: 'public' | 'private', partition: string): Audience {
  if (scope === 'public' || !seesCallers(member.config)) return { kind: 'everybody' };
  return { kind: 'context', context: partition };
}
