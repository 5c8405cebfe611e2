/**
 * What is not a POST, by Fastify: preflights, and refusals of everything else, in the shape of our errors.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { errorBody, INVALID_REQUEST, METHOD_NOT_ALLOWED, type Refusal, refusal } from '../protocol/errors.ts';
import { readHead } from '../protocol/headers.ts';
import { account } from './account.ts';
import type { EdgeContext } from './live.ts';
import { admissionProblem, HEADERS_TOO_LARGE, NOT_FOUND, readTarget, versionProblem } from './transport.ts';

const UNREADABLE = refusal(INVALID_REQUEST, 'This request cannot be read', { status: 400, reason: 'parse' });

/**
 * Adds what is no POST. All of it is answered in hooks: behind them Fastify looks at bodies, and would refuse
 * some in its own shape and with another status.
 */
export function addOthers(app: FastifyInstance, context: EdgeContext): void {
  app.addHook('onRequest', (request, reply, done) => {
    observe(context, request.raw, reply.raw);
    const problem = problemOf(context, request);
    if (problem === undefined) done();
    else refuse(context, request, reply, problem);
  });
  // For any path, as paths come and go: the hook above has refused those that are not served.
  app.route({
    method: 'OPTIONS',
    url: '*',
    onRequest: (request, reply) => preflight(context, request, reply),
    handler: () => {},
  });
}

/** What Fastify cannot route at all. */
export function onFrameworkError(context: EdgeContext, request: FastifyRequest, reply: FastifyReply): void {
  observe(context, request.raw, reply.raw);
  refuse(context, request, reply, UNREADABLE);
}

function problemOf(context: EdgeContext, { raw, is404 }: FastifyRequest): Refusal | undefined {
  if (raw.rawHeaders.length / 2 > context.headerCount) return HEADERS_TOO_LARGE;
  const head = readHead(raw.rawHeaders);
  const { path, authority } = readTarget(raw.url ?? '');
  const unserved = context.paths.has(path) ? METHOD_NOT_ALLOWED : NOT_FOUND;
  const { httpVersion } = raw;
  return (
    versionProblem(httpVersion) ??
    admissionProblem({ head, httpVersion }, authority, context.admission) ??
    (is404 || !context.paths.has(path) ? unserved : undefined)
  );
}

function preflight({ cors }: EdgeContext, { headers }: FastifyRequest, reply: FastifyReply): void {
  const { origin } = headers;
  const requested = headers['access-control-request-headers'];
  reply.code(204);
  if (origin === undefined) reply.header('Allow', 'POST');
  else flat(reply, cors.preflight(origin, requested));
  reply.send();
}

function refuse(context: EdgeContext, request: FastifyRequest, reply: FastifyReply, problem: Refusal): void {
  if (problem.reason !== undefined) context.metrics.rejected(problem.reason);
  flat(reply, context.cors.answer(request.headers.origin));
  // Whatever it was going to send is not read.
  if (!request.raw.complete || request.headers.upgrade !== undefined) reply.header('Connection', 'close');
  reply
    .code(problem.status)
    .headers({ 'Content-Type': 'application/json', 'Cache-Control': 'no-store', ...problem.headers })
    .send(errorBody(problem, undefined));
}

function flat(reply: FastifyReply, headers: readonly string[]): void {
  for (let i = 0; i + 1 < headers.length; i += 2) reply.header(headers[i] as string, headers[i + 1]);
}

/** Counts and logs a request when it is over. */
function observe(context: EdgeContext, request: IncomingMessage, response: ServerResponse): void {
  const startedAt = context.now();
  const close = context.metrics.httpOpened();
  response.once('close', () => {
    close();
    account(context, {
      facts: {},
      route: context.paths.has(request.url ?? '') ? request.url : undefined,
      request,
      status: response.statusCode,
      ended: undefined,
      startedAt,
      repliedAt: undefined,
      receivedBytes: 0,
      sentBytes: Number(response.getHeader('content-length') ?? 0),
    });
  });
}
