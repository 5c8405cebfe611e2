/**
 * The request path on one page: classify → caller → resolve → cache or upstream → answer.
 *
 * Every request of every route goes through here. The rooms decide; this page only says in which order.
 */

import { type AskDeps, type Asking, freshAgain, type Member, type Told } from './aggregate/ask.ts';
import { callThrough } from './aggregate/call.ts';
import { type Discovery, gatewayParams, serverInfo } from './aggregate/discover.ts';
import type { Learner } from './aggregate/learn.ts';
import type { Lists } from './aggregate/list.ts';
import { carriedParams, planListen, readListen } from './aggregate/listen.ts';
import { readAround, readFrom } from './aggregate/read.ts';
import {
  cacheHeaders,
  completeReply,
  errorReply,
  failureRefusal,
  METHOD_HEADERS,
  MISS_HEADERS,
  mergedReply,
  noteOutcome,
  refusedRefusal,
  resultHead,
  toldReply,
  withHeaders,
} from './aggregate/reply.ts';
import { tell } from './aggregate/tell.ts';
import type { Omission } from './aggregate/walk.ts';
import type { Identify } from './auth/caller.ts';
import type { Cached } from './cache/types.ts';
import type { RouteConfig } from './config/types.ts';
import { type McpRequest, unknownMethod } from './protocol/classify.ts';
import { INVALID_PARAMS, METHOD_NOT_FOUND, type Refusal, refusal } from './protocol/errors.ts';
import type { Exchange, Facts, Handle, Inbound, Reply, Soon } from './protocol/exchange.ts';
import type { Head } from './protocol/headers.ts';
import { LIST_METHODS, type ListShape } from './protocol/methods.ts';
import { type KeyTexts, keyTexts, type Params, stringParam } from './protocol/params.ts';
import type { Repeats } from './protocol/repeats.ts';
import type { Signal } from './protocol/signal.ts';
import type { Owned } from './routing/ownership.ts';
import { notFound, type Plan, type Routing } from './routing/resolve.ts';
import type { ListenPlan, Subscriptions } from './subscriptions/subscriptions.ts';
import type { Failure } from './upstream/types.ts';

/** A route, put together. */
export interface RouteRuntime {
  readonly config: RouteConfig;
  readonly members: readonly Member[];
  readonly routing: Routing;
  readonly lists: Lists;
  readonly learner: Learner;
  readonly discovery: Discovery;
  readonly identify: Identify;
  /** What of a head is kept where something outlives its request. */
  readonly carried: (head: Head) => Head;
  /** Tells it from the route that another configuration makes of its path. */
  readonly generation: number;
}

export interface PipelineDeps extends AskDeps {
  readonly routes: ReadonlyMap<string, RouteRuntime>;
  /** The fast lane, or `classify` alone. */
  readonly repeats: Pick<Repeats, 'classify'>;
  readonly version: string;
  readonly now: () => number;
  readonly subscriptions: Pick<Subscriptions, 'listen'>;
}

/** The request path over these routes. */
export function createPipeline(deps: PipelineDeps): Handle {
  return (inbound, exchange) => {
    const reply = answer(deps, inbound, exchange);
    if (reply instanceof Promise) return awaited(reply, exchange);
    noteError(exchange.facts, reply);
    return reply;
  };
}

async function awaited(promised: Promise<Reply>, exchange: Exchange): Promise<Reply> {
  try {
    const reply = await promised;
    noteError(exchange.facts, reply);
    return reply;
  } catch (error) {
    // Whoever waited for an upstream is told by an exception that nobody waits any more.
    if (!exchange.signal.aborted) throw error;
    return refused(failureRefusal(GIVEN_UP), undefined);
  }
}

const GIVEN_UP: Failure = {
  kind: 'cancelled',
  proxyError: 'connection_terminated',
  detail: 'the client has left',
};

/** Promises are only made on the way of a request that has to wait for somebody. */
function answer(deps: PipelineDeps, inbound: Inbound, exchange: Exchange): Soon<Reply> {
  const route = deps.routes.get(inbound.route);
  if (route === undefined)
    return refused(refusal(METHOD_NOT_FOUND, 'No such route', { reason: 'no_route' }), undefined);
  const message = deps.repeats.classify(inbound.head, inbound.body);
  if (message.kind === 'refused') return message;
  if (message.kind === 'notification') return { kind: 'accepted' };
  const { request } = message;
  exchange.facts.mcpMethod = request.method;
  const context = route.identify(request.head);
  switch (request.row.route) {
    case 'merge':
      return answerList(deps, route, request, asking(deps, route, request, context, exchange), exchange);
    case 'discover':
      return answerDiscover(route, request, asking(deps, route, request, context, exchange), exchange);
    case 'listen':
      return answerListen(deps, route, request, asking(deps, route, request, context, exchange), exchange);
    default:
      return answerOwned(deps, route, request, context, exchange);
  }
}

/** On whose behalf upstreams are asked. */
function asking(
  { now }: Pick<PipelineDeps, 'now'>,
  route: RouteRuntime,
  request: McpRequest,
  partition: string,
  exchange: Exchange,
): Asking {
  // A begun body shows no params; what is asked on its way (lists of names) is asked as the gateway.
  const params = request.params ?? gatewayParams();
  const caller = new Caller(route, request, params, partition, exchange, now);
  if (request.row.route === 'uri') caller.notify = (notification) => exchange.notify(notification);
  return caller;
}

/** A class for its accessors: what they make costs a hit more than its look-up does, and a hit never asks for it. */
class Caller implements Asking {
  readonly partition: string;
  readonly head: Head;
  readonly params: Params;
  readonly keys: Map<string, string> | undefined;
  readonly version: string;
  readonly caching: 'on' | 'off';
  declare notify?: (message: Uint8Array) => void;
  readonly #exchange: Exchange;
  readonly #now: () => number;
  #texts: KeyTexts | undefined;
  #waitCount = 0;
  #waitingSince = 0;

  constructor(
    route: RouteRuntime,
    { head, version, keys }: McpRequest,
    params: Params,
    partition: string,
    exchange: Exchange,
    now: () => number,
  ) {
    this.partition = partition;
    this.head = head;
    this.params = params;
    this.keys = keys;
    this.version = version;
    this.caching = route.config.cache ? 'on' : 'off';
    this.#exchange = exchange;
    this.#now = now;
  }

  get texts(): KeyTexts {
    this.#texts ??= keyTexts(this.params);
    return this.#texts;
  }

  /** Adds up the time in which any upstream was waited for: waits side by side count once. */
  waiting(): () => void {
    if (this.#waitCount++ === 0) this.#waitingSince = this.#now();
    return () => {
      if (--this.#waitCount > 0) return;
      const { facts } = this.#exchange;
      facts.upstreamMs = (facts.upstreamMs ?? 0) + (this.#now() - this.#waitingSince);
    };
  }

  get signal(): Signal {
    return this.#exchange.signal;
  }
}

async function answerList(
  deps: PipelineDeps,
  route: RouteRuntime,
  request: McpRequest,
  caller: Asking,
  exchange: Exchange,
): Promise<Reply> {
  const id = request.id as string;
  const merged = await route.lists.page(request.row, caller, stringParam(caller.params, 'cursor'));
  switch (merged.kind) {
    case 'page':
      exchange.facts.cache = merged.source;
      if (merged.incomplete.length > 0) exchange.facts.cacheReason = 'incomplete';
      return mergedReply(id, merged, request.row.list as ListShape, serverInfo(deps.version));
    case 'bad-cursor':
      return refused(withHeaders(refusal(INVALID_PARAMS, merged.why), MISS_HEADERS), id);
    case 'none':
      return refused(unknownMethod(request.method), id);
    case 'failed':
      return failedList(id, merged.omissions);
  }
}

/**
 * What is said when nobody could list: the callers' own refusal where it is theirs and all were refused, otherwise
 * what the first of them said.
 */
function failedList(id: string, omissions: readonly Omission[]): Reply {
  const theirs = omissions.every(
    ({ member, told }) => told.kind === 'refused' && credentialsOf(member) === 'forwarded',
  );
  const first = omissions.find(({ told }) => told.kind !== 'refused') ?? omissions[0];
  if (first === undefined) return refused(failureRefusal(GIVEN_UP), id);
  return toldReply(id, first.told, theirs ? 'forwarded' : 'own', MISS_HEADERS);
}

async function answerDiscover(
  route: RouteRuntime,
  request: McpRequest,
  caller: Asking,
  exchange: Exchange,
): Promise<Reply> {
  const id = request.id as string;
  const discovered = await route.discovery.discover(caller);
  if (discovered.kind === 'challenge') return refused(refusedRefusal(discovered.told, 'forwarded'), id);
  const { ttlMs, scope, cached } = discovered;
  const hit = cached.every((one) => one.outcome.kind === 'hit');
  exchange.facts.cache = hit ? 'hit' : route.config.cache ? 'miss' : 'bypass';
  const headers = hit
    ? cacheHeaders({ kind: 'hit', tier: 'memory', ageMs: oldest(cached), ttlMs })
    : route.config.cache
      ? MISS_HEADERS
      : cacheHeaders({ kind: 'bypass', why: 'disabled' });
  const tail = [new TextEncoder().encode(discovered.tail)];
  return { kind: 'answer', status: 200, head: resultHead(id, 'complete', { ttlMs, scope }), tail, headers };
}

function oldest(cached: readonly Cached<Told>[]): number {
  return Math.max(0, ...cached.map((one) => (one.outcome.kind === 'hit' ? one.outcome.ageMs : 0)));
}

/** The acknowledgment of a listen is promised within 500 ms. */
const ACKNOWLEDGED_WITHIN_MS = 450;

async function answerListen(
  deps: PipelineDeps,
  route: RouteRuntime,
  request: McpRequest,
  caller: Asking,
  exchange: Exchange,
): Promise<Reply> {
  const id = request.id as string;
  const startedAt = deps.now();
  const filter = readListen(caller.params);
  if ('code' in filter) return refused(filter, id);
  const { path } = route.config;
  const { head } = request;
  const listing = asListing(caller);
  const lasting = { ...listing, ...carriedParams(caller.params), waiting: () => () => undefined };
  const isCurrent = (by: RouteRuntime | undefined) => () => deps.routes.get(path) === by;
  // By the route of the moment: a listen outlives configurations, and who is who may be told otherwise by the next.
  const plan = async (): Promise<ListenPlan> => {
    const now = deps.routes.get(path);
    if (now === undefined) return { parts: [], extent: 'whole', isCurrent: isCurrent(now) };
    const asking = { ...lasting, partition: now.identify(head) };
    return { ...(await planListen(now, filter, { head }, asking, 'none')), isCurrent: isCurrent(now) };
  };
  const planned = await planListen(route, filter, request, listing, 'acknowledging');
  return deps.subscriptions.listen({
    ...{ route: path, id, head, plan },
    first: { ...planned, isCurrent: isCurrent(route) },
    withinMs: Math.max(0, startedAt + ACKNOWLEDGED_WITHIN_MS - deps.now()),
    signal: exchange.signal,
  });
}

/** Requests that have one owner. */
function answerOwned(
  deps: PipelineDeps,
  route: RouteRuntime,
  request: McpRequest,
  context: string,
  exchange: Exchange,
): Soon<Reply> {
  if (request.row.route === 'tool' || request.row.route === 'prompt')
    exchange.facts.mcpName = request.name ?? '';
  const plan = route.routing.resolve(request, context, 'first');
  return plan.kind === 'learn'
    ? answerLearnt(deps, route, request, context, exchange, plan.owned)
    : answerPlanned(deps, route, request, context, exchange, plan, true);
}

/** Lists first what must be known to resolve it. */
async function answerLearnt(
  deps: PipelineDeps,
  route: RouteRuntime,
  request: McpRequest,
  context: string,
  exchange: Exchange,
  kinds: readonly Owned[],
): Promise<Reply> {
  const rows = LIST_METHODS.filter((row) => kinds.some((owned) => LISTS_OF[owned] === row.method));
  const caller = asking(deps, route, request, context, exchange);
  const everyoneListed = await route.learner.learn(rows, asListing(caller));
  const plan = route.routing.resolve(request, context, 'listed');
  return answerPlanned(deps, route, request, context, exchange, plan, everyoneListed);
}

function answerPlanned(
  deps: PipelineDeps,
  route: RouteRuntime,
  request: McpRequest,
  context: string,
  exchange: Exchange,
  plan: Plan,
  everyoneListed: boolean,
): Soon<Reply> {
  switch (plan.kind) {
    case 'single':
      return answerFrom(deps, route, route.members[plan.rank] as Member, request, context, exchange);
    case 'ask':
      return answerAround(deps, route, request, context, exchange, plan.ranks, everyoneListed);
    case 'refuse':
      return unowned(request, everyoneListed, plan.refusal);
    case 'learn':
      throw new Error('what was listed is to be learnt again');
  }
}

async function answerAround(
  deps: PipelineDeps,
  route: RouteRuntime,
  request: McpRequest,
  context: string,
  exchange: Exchange,
  ranks: readonly number[],
  everyoneListed: boolean,
): Promise<Reply> {
  const caller = asking(deps, route, request, context, exchange);
  const found = await readAround({ ...deps, ...route }, ranks, request, caller);
  if (found.kind === 'not-found')
    return unowned(request, everyoneListed, withHeaders(notFound(request.name ?? ''), MISS_HEADERS));
  return readReply(found.member, request, found.cached, exchange);
}

/** "Not found" may only be said when everybody who could own it was heard (R31). */
function unowned(request: McpRequest, everyoneListed: boolean, problem: Refusal): Reply {
  if (everyoneListed) return refused(problem, request.id);
  return refused(
    failureRefusal({ kind: 'connect', proxyError: 'destination_unavailable', detail: '' }),
    request.id,
  );
}

const LISTS_OF: Readonly<Record<Owned, string>> = {
  resources: 'resources/list',
  templates: 'resources/templates/list',
  tools: 'tools/list',
  prompts: 'prompts/list',
};

/** The caller, about to list: nothing of the request itself goes to upstreams that may not be its own. */
function asListing(caller: Asking): Asking {
  const params: Params = {
    ...caller.params,
    members: [],
    meta: caller.params.meta.filter((member) => member.key !== 'progressToken'),
  };
  const { partition, head, version, signal, caching } = caller;
  return {
    ...{ partition, head, version, signal, caching, params },
    texts: keyTexts(params),
    keys: undefined,
    waiting: () => caller.waiting(),
  };
}

function answerFrom(
  deps: PipelineDeps,
  route: RouteRuntime,
  member: Member,
  request: McpRequest,
  context: string,
  exchange: Exchange,
): Soon<Reply> {
  exchange.facts.upstream = member.config.name;
  if (request.row.body === 'streamed') return callThrough(deps, member, request, context, exchange);
  const fresh = route.config.cache ? freshAgain(deps, member, request, context) : undefined;
  if (fresh !== undefined) return readReply(member, request, fresh, exchange);
  const caller = asking(deps, route, request, context, exchange);
  if (request.row.route !== 'uri') return answerTold(deps, member, request, caller);
  const cached = readFrom(deps, member, request, caller);
  return cached instanceof Promise
    ? cached.then((late) => readReply(member, request, late, exchange))
    : readReply(member, request, cached, exchange);
}

async function answerTold(
  deps: PipelineDeps,
  member: Member,
  request: McpRequest,
  caller: Asking,
): Promise<Reply> {
  const told = await tell(deps, member, request, caller);
  return told.kind === 'result'
    ? {
        kind: 'answer',
        status: 200,
        head: resultHead(request.id as string, told.resultType),
        tail: [told.tail],
        headers: METHOD_HEADERS,
      }
    : toldReply(request.id as string, told, credentialsOf(member), METHOD_HEADERS);
}

function readReply(member: Member, request: McpRequest, cached: Cached<Told>, exchange: Exchange): Reply {
  const id = request.id as string;
  exchange.facts.upstream = member.config.name;
  noteOutcome(exchange.facts, cached.outcome);
  if (cached.kind === 'complete') return completeReply(id, cached);
  const headers = cacheHeaders(cached.outcome);
  if (cached.value.kind === 'error') return errorReply(id, cached.value, headers, request.name);
  return toldReply(id, cached.value, credentialsOf(member), headers);
}

function credentialsOf(member: Member): 'forwarded' | 'own' {
  return member.config.auth.type === 'forward' ? 'forwarded' : 'own';
}

function refused(problem: Refusal, id: string | undefined): Reply {
  return { kind: 'refused', refusal: problem, id };
}

/** What the metrics and the access log call it. */
function noteError(facts: Facts, reply: Reply): void {
  if (reply.kind === 'answer' && reply.rpcError !== undefined) {
    facts.rpcError = reply.rpcError;
    facts.errorType = String(reply.rpcError);
  }
  if (reply.kind !== 'refused') return;
  const { code, status, proxyError = '' } = reply.refusal;
  facts.rpcError = code;
  facts.errorType = status === 504 ? 'timeout' : CONNECT_ERRORS.test(proxyError) ? 'connect' : String(code);
}

const CONNECT_ERRORS = /^(connection_refused|connection_timeout|dns_|tls_|destination_ip)/;
