/**
 * The server of the MCP port: Node's, within its limits; Fastify's for all that is not a POST.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import fastify, { type FastifyInstance } from 'fastify';
import type { ListenConfig } from '../config/types.ts';
import { SCAN_BYTES } from '../protocol/classify.ts';
import { METHOD_NOT_ALLOWED } from '../protocol/errors.ts';
import { SESSION_HEADER } from '../protocol/legacy.ts';
import { createEndpoint } from './endpoint.ts';
import { lookWhetherGone, onClientEnd } from './half-close.ts';
import { LeanRequest } from './incoming.ts';
import { type LaneOptions, laneOn, openLane } from './lane.ts';
import { type EdgeContext, liveOn } from './live.ts';
import { addOthers, onFrameworkError } from './others.ts';
import { type ClientError, refusalOf, refuseRaw } from './raw-refusal.ts';

/** Longer than load balancers keep an idle connection (AWS: 60 s), so that they never send into one we close. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000;
/** A peer that vanished without a word is found out by TCP. */
const TCP_KEEP_ALIVE_MS = 60_000;

type Listener = (request: LeanRequest, response: ServerResponse) => void;

/** Makes the server; it is not listening yet. */
export function createMcpServer({ limits }: ListenConfig, context: EdgeContext): FastifyInstance {
  const endpoint = createEndpoint(context);
  const lane: LaneOptions = {
    endpoint,
    headBytes: limits.headersBytes,
    // What is larger is not collected, or refused before it is read.
    bodyBytes: () =>
      Math.min(SCAN_BYTES, context.limits.bodyBytes, context.limits.streamedBodyBytes ?? SCAN_BYTES),
    keepAliveLines: `Connection: keep-alive\r\nKeep-Alive: timeout=${KEEP_ALIVE_TIMEOUT_MS / 1000}\r\n`,
    onStalled: (socket) => lookWhetherGone(context, socket),
  };
  const app = fastify({
    logger: false,
    return503OnClosing: false,
    // A POST does not enter Fastify's lifecycle: it needs nothing of it, and every cache hit would pay for it.
    serverFactory: (others) =>
      openServer(limits, context, lane, (request, response) => {
        request.arrived();
        laneOn(request.socket)?.parsed(request, response);
        if (request.method === 'POST' || isOfSession(request)) endpoint(request, response);
        else others(request, response);
      }),
    clientErrorHandler: (error, socket) => onClientError(context, error, socket),
    frameworkErrors: (_error, request, reply) => onFrameworkError(context, request, reply),
  });
  addOthers(app, context);
  return app;
}

/** Older clients read and end their sessions so; whoever names none is told that this is no method here. */
function isOfSession({ method, headers }: IncomingMessage): boolean {
  return (method === 'GET' || method === 'DELETE') && headers[SESSION_HEADER] !== undefined;
}

function openServer(
  limits: ListenConfig['limits'],
  context: EdgeContext,
  lane: LaneOptions,
  listener: Listener,
): Server {
  const server = createServer({
    IncomingMessage: LeanRequest,
    maxHeaderSize: limits.headersBytes,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    headersTimeout: limits.requestTimeoutMs,
    // Node's own covers the whole of an upload, however well it flows: bodies are timed in body.ts.
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(1_000, limits.requestTimeoutMs / 4),
    // Node would answer in a shape of its own.
    requireHostHeader: false,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
  });
  // Node drops what is above this in silence; transport.ts counts instead.
  server.maxHeadersCount = 0;
  // Otherwise Node ends the connection of a client that has only finished sending; half-close.ts tells the two apart.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on('connection', (socket) => {
    openLane(socket, lane);
    // Behind the lane's own: what it reads of the end decides whether an answer is under way.
    socket.on('end', () => onClientEnd(context, socket));
  });
  server.on('request', listener);
  server.on('checkContinue', listener);
  server.on('checkExpectation', listener);
  server.on('connect', (_request, socket) => {
    tell(context, socket as Socket, METHOD_NOT_ALLOWED);
  });
  return server;
}

/** Node has given up on what came over a connection. */
function onClientError(context: EdgeContext, error: ClientError, socket: Socket): void {
  const live = liveOn(socket);
  // A body that ends too soon is a client that has left, not one that waits for an answer.
  const left = error.code === 'ECONNRESET' || (error.code === 'HPE_INVALID_EOF_STATE' && live !== undefined);
  if (left || !socket.writable) {
    socket.destroy();
  } else if (live !== undefined) {
    // Its own body, or what was sent behind it: the answer is still written, and nothing follows it.
    live.lastOnConnection = true;
    if (!live.request.complete) live.body.fail(refusalOf(error));
  } else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0) {
    // Opened in advance and never used: nobody has asked anything.
    socket.destroy();
  } else {
    tell(context, socket, refusalOf(error));
  }
}

function tell({ metrics, log }: EdgeContext, socket: Socket, problem: ReturnType<typeof refusalOf>): void {
  if (!refuseRaw(socket, problem)) return;
  metrics.httpRequest('other', problem.status);
  if (problem.reason !== undefined) metrics.rejected(problem.reason);
  log.access({ httpMethod: 'other', status: problem.status, durationMs: 0, bytesIn: 0, bytesOut: 0 });
}
