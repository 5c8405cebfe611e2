/**
 * The admin port: the page, what it shows as JSON, and what operators change in a running gateway.
 *
 * What is looked at is a GET; what asks upstreams or changes anything is a POST of JSON: no page of another origin can
 * send one without asking first, and nothing here answers that. See `checks.ts` for who may.
 */
import fastify, { type FastifyError, type FastifyInstance, type FastifyReply } from 'fastify';
import { formatAddress } from '../config/address.ts';
import type { Secret } from '../config/secret.ts';
import type { Address } from '../config/types.ts';
import type { LogFields, Logger } from '../observability/log.ts';
import { Abort } from '../protocol/signal.ts';
import { addChecks, type Door } from './checks.ts';
import { CONFIG_PATH, LIST_PATH, PURGE_PATH, READ_PATH, STATE_PATH } from './page/contract.ts';
import type { PageFile } from './page-files.ts';
import { type PurgeOutcome, type PurgeRequest, readPurge } from './purge.ts';
import { readListRequest, readReadRequest } from './requests.ts';
import type { Views } from './views.ts';

export interface AdminOptions {
  readonly address: Address;
  /** Of the moment. */
  readonly token: () => Secret | undefined;
  /** The configured names, of the moment. */
  readonly upstreams: () => Iterable<string>;
  /** Drops; resolves when everything that comes afterwards is answered anew. A rejection is 500. */
  readonly purge: (request: PurgeRequest) => Promise<PurgeOutcome>;
  /** What can be looked at. Its close is the port's. */
  readonly views: Views;
  /** By path, `/` first of all. */
  readonly page: ReadonlyMap<string, PageFile>;
  readonly log: Pick<Logger, 'info' | 'error'>;
  /** How long a request may take to arrive. */
  readonly requestTimeoutMs?: number;
}

export interface Admin {
  /**
   * Opens the port. @returns its base URL; port 0 has become a real one. Rejects with Node's system error, its
   * `address` and `port` those of the configuration; nothing is left open then.
   */
  listen(): Promise<string>;
  /** Closes the port and every connection to it; idempotent. */
  close(): Promise<void>;
}

/** More than the longest URI that is worth naming. */
const MAX_BODY_BYTES = 16 << 10;
/** A page of a list is asked for with the cursor of the one before. */
const MAX_LIST_BODY_BYTES = 128 << 10;
/** A request that takes longer to arrive is not an operator's. */
const REQUEST_TIMEOUT_MS = 10_000;
/** Questions to upstreams under way: those of a few people who look at a page. */
const MAX_ASKING = 16;

/** Makes the admin port; it is not listening yet. */
export function createAdmin(options: AdminOptions): Admin {
  const { address, token, views, page, log, requestTimeoutMs = REQUEST_TIMEOUT_MS } = options;
  const app = fastify({
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: requestTimeoutMs,
    // Unless told otherwise, Node waits a minute for headers, for bodies as long as for headers, and looks every half.
    http: {
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: requestTimeoutMs / 10,
    },
    forceCloseConnections: true,
    return503OnClosing: false,
    frameworkErrors: (_error, _request, reply) => refuseUnreadable(reply),
  });
  addChecks(app, { address, token }, doorsOf(page));
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  for (const [path, { type, text }] of page)
    app.get(path, (_request, reply) => reply.header('Content-Type', type).send(text));
  app.get(STATE_PATH, () => views.state());
  app.get(CONFIG_PATH, () => views.config());
  addQuestions(app, views);
  addPurge(app, options);
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    const { statusCode: status = 500 } = error;
    if (status >= 500) log.error({ err: error }, 'the admin port failed');
    reply.code(status).send({ error: wordsFor(status, request.url) });
  });

  return {
    async listen() {
      const { host, port } = address;
      try {
        await app.listen({ host, port });
      } catch (error) {
        throw Object.assign(error as Error, { address: formatAddress(address), port });
      }
      const bound = app.server.address();
      return `http://${formatAddress({ host, port: typeof bound === 'object' && bound !== null ? bound.port : port })}`;
    },
    close: () => {
      views.close();
      return app.close();
    },
  };
}

function doorsOf(page: AdminOptions['page']): ReadonlyMap<string, Door> {
  return new Map<string, Door>([
    ...[...page.keys()].map((path) => [path, { method: 'GET', for: 'everybody' }] as const),
    ...[STATE_PATH, CONFIG_PATH].map((path) => [path, { method: 'GET', for: 'operator' }] as const),
    ...[LIST_PATH, READ_PATH, PURGE_PATH].map((path) => [path, { method: 'POST', for: 'operator' }] as const),
  ]);
}

function addPurge(app: FastifyInstance, { upstreams, purge, log }: AdminOptions): void {
  app.post(PURGE_PATH, async (request, reply) => {
    const reading = readPurge(request.body as Buffer, upstreams());
    if (reading.kind === 'bad') return reply.code(400).send({ error: reading.message });
    const outcome = await purge(reading.request);
    log.info({ ...toldOf(reading.request), ...outcome }, 'purged');
    return outcome;
  });
}

/** What makes a request to upstreams: given up when whoever asked has left. */
function addQuestions(app: FastifyInstance, views: Views): void {
  let asking = 0;
  const answer = async (reply: FastifyReply, ask: (signal: Abort) => Promise<unknown>): Promise<unknown> => {
    if (asking >= MAX_ASKING) return reply.code(503).send({ error: 'Too much is being asked; try again' });
    const signal = new Abort();
    const leave = (): void => signal.abort(new Error('the page has left'));
    reply.raw.once('close', leave);
    asking++;
    try {
      return await ask(signal);
    } finally {
      asking--;
      reply.raw.off('close', leave);
    }
  };
  app.post(LIST_PATH, { bodyLimit: MAX_LIST_BODY_BYTES }, (request, reply) => {
    const reading = readListRequest(request.body as Buffer, views.routes());
    if (reading.kind === 'bad') return reply.code(400).send({ error: reading.message });
    return answer(reply, (signal) => views.list(reading.request, signal));
  });
  app.post(READ_PATH, (request, reply) => {
    const reading = readReadRequest(request.body as Buffer, views.routes());
    if (reading.kind === 'bad') return reply.code(400).send({ error: reading.message });
    return answer(reply, (signal) => views.read(reading.request, signal));
  });
}

const UNREADABLE = 'This request cannot be read';

function refuseUnreadable(reply: FastifyReply): void {
  reply.code(400).send({ error: UNREADABLE });
}

function wordsFor(status: number, path: string): string {
  const most = path === LIST_PATH ? MAX_LIST_BODY_BYTES : MAX_BODY_BYTES;
  if (status === 413) return `The body is larger than ${most >> 10} KiB`;
  return status < 500 ? UNREADABLE : 'The gateway failed; its log says more';
}

/** What the log says of a purge: a URI may be private. */
function toldOf(request: PurgeRequest): LogFields {
  if (request.kind !== 'resource') return request;
  return { kind: request.kind, upstream: request.upstream };
}
