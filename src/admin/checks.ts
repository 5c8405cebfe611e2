/**
 * What must hold of a request on the admin port before a byte of a body is looked at: Host and Origin as on the MCP
 * port, the token where there is one, and for what changes or asks anything a POST of JSON.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Admission, createAdmission } from '../auth/admission.ts';
import type { Secret } from '../config/secret.ts';
import type { Address } from '../config/types.ts';
import { type Head, mediaType, readHead } from '../protocol/headers.ts';

/** What a path takes, and of whom. `open`: everybody whose Host and Origin are right; it holds no data. */
export interface Door {
  readonly method: 'GET' | 'POST';
  readonly for: 'everybody' | 'operator';
}

interface Problem {
  readonly status: number;
  readonly error: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The page runs what it was sent with and nothing else, shows pictures made here, and asks this port alone. */
const SECURITY_HEADERS = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    'img-src data: blob:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};

/** All of it in one hook. @param doors what there is, by path. */
export function addChecks(
  app: FastifyInstance,
  { address, token }: { readonly address: Address; readonly token: () => Secret | undefined },
  doors: ReadonlyMap<string, Door>,
): void {
  const admission = createAdmission({ address, hosts: [], origins: [] });
  const isAllowed = createTokenCheck(token);
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(SECURITY_HEADERS);
    const problem = problemOf(request, admission, isAllowed, doors);
    if (problem === undefined) done();
    else
      reply
        .code(problem.status)
        .headers(problem.headers ?? {})
        .send({ error: problem.error });
  });
}

/** Who asks comes first: what there is beside the page is not told to everybody. */
function problemOf(
  { raw }: FastifyRequest,
  admission: Admission,
  isAllowed: (authorization: string | undefined) => boolean,
  doors: ReadonlyMap<string, Door>,
): Problem | undefined {
  const head = readHead(raw.rawHeaders);
  const { headers, duplicated } = head;
  if (duplicated !== undefined) return { status: 400, error: `The header ${duplicated} was sent twice` };
  if (!admission.host(headers.get('host'))) return { status: 403, error: 'This Host is not served here' };
  if (!admission.origin(headers.get('origin')) && !isOwnPage(head))
    return { status: 403, error: 'This Origin is not allowed' };
  const door = doors.get(raw.url ?? '');
  if (door?.for !== 'everybody' && !isAllowed(headers.get('authorization'))) {
    return { status: 401, error: 'The admin token is required', headers: { 'WWW-Authenticate': 'Bearer' } };
  }
  if (door === undefined) return { status: 404, error: 'There is nothing here; the page is at /' };
  if (door.method === 'GET') {
    const isRead = raw.method === 'GET' || raw.method === 'HEAD';
    return isRead ? undefined : { status: 405, error: 'Use GET', headers: { Allow: 'GET, HEAD' } };
  }
  if (raw.method !== 'POST') return { status: 405, error: 'Use POST', headers: { Allow: 'POST' } };
  return isJson(head)
    ? undefined
    : { status: 415, error: 'The body must be application/json in UTF-8, not compressed' };
}

/**
 * Whether it comes from a page of this very port, under the name it was asked by. Where any name is served there is a
 * token, which a page of another server that borrows the address does not have.
 */
function isOwnPage({ headers }: Head): boolean {
  const origin = headers.get('origin');
  const host = headers.get('host');
  return host !== undefined && (origin === `http://${host}` || origin === `https://${host}`);
}

function isJson({ headers }: Head): boolean {
  const { type, charset = 'utf-8' } = mediaType(headers.get('content-type') ?? '');
  const isPlain = (headers.get('content-encoding') ?? 'identity') === 'identity';
  return type === 'application/json' && charset === 'utf-8' && isPlain;
}

/** Compares digests of equal length: how long it takes says nothing about the token. @param token that of the moment. */
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
