/**
 * The path of a POST through the edge: head → body → request path → reply. GET and DELETE of older clients go the same.
 *
 * Node's own request (leaner: `incoming.ts`) and response, or those of the fast lane (`lane.ts`), are all there is: of
 * Fastify's lifecycle a POST to an MCP endpoint needs nothing, and a cache hit would pay for all of it.
 */
import { bodyPlan, readableId, SCAN_BYTES } from '../protocol/classify.ts';
import { INTERNAL_ERROR, OVERLOADED, refusal } from '../protocol/errors.ts';
import type { Inbound, Reply } from '../protocol/exchange.ts';
import { METHOD_HEADER } from '../protocol/headers.ts';
import { methodRow } from '../protocol/methods.ts';
import { BodyError, type BodyPlan, type Collected } from './body.ts';
import { type EdgeContext, Live, nothingFollowsOn } from './live.ts';
import type { Incoming, Outgoing } from './messages.ts';
import { refuse, respond } from './respond.ts';
import { type Arrival, endsUnclearly, inspect, lengthProblem } from './transport.ts';

/** Of a request that is refused for its head, this much is collected and the rest only looked at for the id. */
const REFUSED_PLAN: BodyPlan = { wholeBytes: SCAN_BYTES, beyond: 'flow', streamBytes: undefined };

const SHUTTING_DOWN = refusal(INTERNAL_ERROR, 'The gateway is shutting down', {
  status: 503,
  proxyError: 'proxy_internal_response',
  headers: { 'Retry-After': '1' },
});
const BUG = refusal(INTERNAL_ERROR, 'Internal error of the gateway', {
  status: 500,
  proxyError: 'proxy_internal_error',
});

/** Takes a POST, or a GET or DELETE of an older client's session. */
export type Endpoint = (request: Incoming, response: Outgoing) => void;

/** Makes the endpoint of a listener. */
export function createEndpoint(context: EdgeContext): Endpoint {
  return (request, response) => {
    // What stands behind a body that ended unclearly may be a part of it: it is neither run nor answered.
    if (nothingFollowsOn(request.socket)) return;
    const live = new Live(context, request, response);
    const { head } = live;
    const arrival: Arrival = {
      head,
      verb: verbOf(live) ?? 'POST',
      headerCount: request.rawHeaders.length / 2,
      target: request.url ?? '',
      httpVersion: request.httpVersion,
    };
    if (endsUnclearly(arrival)) live.closeBehind();
    const verdict = inspect(arrival, context);
    live.route = verdict.route;
    if (context.phase === 'closing') live.refusal = SHUTTING_DOWN;
    else if (verdict.kind === 'refused') live.refusal = verdict.refusal;
    else if (context.shedding.arrived()) {
      if (isShed(live)) live.refusal = OVERLOADED;
      live.strained = true;
    }
    const expecting = head.headers.get('expect') !== undefined;
    if (live.refusal !== undefined) {
      // A client that asks before it sends has sent no id, and need not send it.
      if (expecting) return refuse(live, live.refusal, undefined);
      return live.body.collect(REFUSED_PLAN);
    }
    const plan = planOf(live, context);
    const tooLong = lengthProblem(
      head,
      plan.streamBytes ?? (plan.beyond === 'refuse' ? plan.wholeBytes : Infinity),
    );
    if (tooLong !== undefined) return refuse(live, tooLong, undefined);
    if (expecting) response.writeContinue();
    live.body.collect(plan);
  };
}

/**
 * Clients take a server whose discover fails for one of an older era, and never ask again; what names no method is a
 * notification, which costs less than its refusal.
 */
function isShed({ head: { headers } }: Live): boolean {
  // Of older clients, which name none, it is decided where their body is read: an answer is not refused.
  const method = headers.get(METHOD_HEADER);
  return method !== undefined && methodRow(method).route !== 'discover';
}

function verbOf({ request: { method } }: Live): Inbound['verb'] {
  return method === 'GET' || method === 'DELETE' ? method : undefined;
}

/** Goes on with a request whose body is there, or begun. */
export function onCollected(live: Live, body: Collected): void {
  if (live.over) return;
  if (body.kind === 'failed') return refuse(live, live.refusal ?? body.refusal, live.body.id);
  if (live.refusal !== undefined) {
    return refuse(live, live.refusal, body.kind === 'whole' ? readableId(body.bytes) : undefined);
  }
  const { route, head, strained } = live;
  run(live, { route: route as string, verb: verbOf(live), strained, head, body });
}

function run(live: Live, inbound: Inbound): void {
  try {
    const reply = live.context.handle(inbound, live);
    if (reply instanceof Promise) void respondLater(live, inbound, reply);
    else respond(live, reply);
  } catch (error) {
    onRejected(live, inbound, error);
  }
}

async function respondLater(live: Live, inbound: Inbound, reply: Promise<Reply>): Promise<void> {
  try {
    respond(live, await reply);
  } catch (error) {
    onRejected(live, inbound, error);
  }
}

function onRejected(live: Live, { route, body }: Inbound, error: unknown): void {
  const { problem } = live.body;
  const id = live.body.id ?? (body.kind === 'whole' ? readableId(body.bytes) : undefined);
  const expected = error instanceof BodyError;
  if (!expected) live.context.log.error({ err: error, route }, 'the request path failed');
  if (live.over) return;
  if (live.response.headersSent) live.destroy();
  else refuse(live, expected && problem !== undefined ? problem : BUG, id);
}

function planOf({ head }: Live, { limits }: EdgeContext): BodyPlan {
  if (bodyPlan(head) === 'read')
    return { wholeBytes: limits.bodyBytes, beyond: 'refuse', streamBytes: undefined };
  const most = limits.streamedBodyBytes;
  if (most !== undefined && most <= SCAN_BYTES)
    return { wholeBytes: most, beyond: 'refuse', streamBytes: most };
  return { wholeBytes: SCAN_BYTES, beyond: 'flow', streamBytes: most };
}
