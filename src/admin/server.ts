/**
 * The admin port: what operators change in a running gateway. Today that is one thing, `POST /api/purge`.
 *
 * Host and Origin are looked at as on the MCP port, a token is asked for where there is one, and what changes anything
 * is a POST of JSON: no page of another origin can send one without asking first, and nothing here answers that.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import { type Admission, createAdmission } from '../auth/admission.ts';
import { formatAddress } from '../config/address.ts';
import type { Secret } from '../config/secret.ts';
import type { Address } from '../config/types.ts';
import type { LogFields, Logger } from '../observability/log.ts';
import { mediaType, readHead } from '../protocol/headers.ts';
import { PURGE_PATH, type PurgeOutcome, type PurgeRequest, readPurge } from './purge.ts';

export interface AdminOptions {
  readonly address: Address;
  /** Of the moment. */
  readonly token: () => Secret | undefined;
  /** The configured names, of the moment. */
  readonly upstreams: () => Iterable<string>;
  /** Drops; resolves when everything that comes afterwards is answered anew. A rejection is 500. */
  readonly purge: (request: PurgeRequest) => Promise<PurgeOutcome>;
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
/** A request that takes longer to arrive is not an operator's. */
const REQUEST_TIMEOUT_MS = 10_000;

/** Makes the admin port; it is not listening yet. */
export function createAdmin({
  address,
  token,
  upstreams,
  purge,
  log,
  requestTimeoutMs = REQUEST_TIMEOUT_MS,
}: AdminOptions): Admin {
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
  addChecks(app, address, token);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.post(PURGE_PATH, async (request, reply) => {
    const reading = readPurge(request.body as Buffer, upstreams());
    if (reading.kind === 'bad') return reply.code(400).send({ error: reading.message });
    const outcome = await purge(reading.request);
    log.info({ ...toldOf(reading.request), ...outcome }, 'purged');
    return outcome;
  });
  app.setErrorHandler<FastifyError>((error, _request, reply) => {
    const { statusCode: status = 500 } = error;
    if (status >= 500) log.error({ err: error }, 'the admin port failed');
    reply.code(status).send({ error: wordsFor(status) });
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
    close: () => app.close(),
  };
}

const UNREADABLE = 'This request cannot be read';

function refuseUnreadable(reply: FastifyReply): void {
  reply.code(400).send({ error: UNREADABLE });
}

function wordsFor(status: number): string {
  if (status === 413) return `The body is larger than ${MAX_BODY_BYTES >> 10} KiB`;
  return status < 500 ? UNREADABLE : 'The gateway failed; its log says more';
}

/** What the log says of a purge: a URI may be private. */
function toldOf(request: PurgeRequest): LogFields {
  if (request.kind !== 'resource') return request;
  return { kind: request.kind, upstream: request.upstream };
}

interface Problem {
  readonly status: number;
  readonly error: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** All of it in one hook, before a byte of a body is looked at. */
function addChecks(app: FastifyInstance, address: Address, token: () => Secret | undefined): void {
  const admission = createAdmission({ address, hosts: [], origins: [] });
  const isAllowed = createTokenCheck(token);
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' });
    const problem = problemOf(request, admission, isAllowed);
    if (problem === undefined) done();
    else
      reply
        .code(problem.status)
        .headers(problem.headers ?? {})
        .send({ error: problem.error });
  });
}

/** Who asks comes first: what there is, is not told to everybody. */
function problemOf(
  { raw }: FastifyRequest,
  admission: Admission,
  isAllowed: (authorization: string | undefined) => boolean,
): Problem | undefined {
  const { headers, duplicated } = readHead(raw.rawHeaders);
  if (duplicated !== undefined) return { status: 400, error: `The header ${duplicated} was sent twice` };
  if (!admission.host(headers.get('host'))) return { status: 403, error: 'This Host is not served here' };
  if (!admission.origin(headers.get('origin'))) return { status: 403, error: 'This Origin is not allowed' };
  if (!isAllowed(headers.get('authorization'))) {
    return { status: 401, error: 'The admin token is required', headers: { 'WWW-Authenticate': 'Bearer' } };
  }
  if (raw.url !== PURGE_PATH) return { status: 404, error: `There is nothing but ${PURGE_PATH} here` };
  if (raw.method !== 'POST') return { status: 405, error: 'Use POST', headers: { Allow: 'POST' } };
  const { type, charset = 'utf-8' } = mediaType(headers.get('content-type') ?? '');
  const isPlain = (headers.get('content-encoding') ?? 'identity') === 'identity';
  return type === 'application/json' && charset === 'utf-8' && isPlain
    ? undefined
    : { status: 415, error: 'The body must be application/json in UTF-8, not compressed' };
}

/** Compares digests of equal length: how long it takes says nothing about the token. */
function createTokenCheck(token: () => Secret | undefined): (authorization: string | undefined) => boolean {
  return (authorization) => {
    const expected = token();
    if (expected === undefined) return true;
    const [, given = ''] = /^Bearer +([^ ]+)$/i.exec(authorization ?? '') ?? [];
    return timingSafeEqual(digest(given), digest(expected.reveal()));
  };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
