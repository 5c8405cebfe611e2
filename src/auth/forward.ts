/** What of a request reaches which upstream. By default: nothing that says who the caller is. */
import { createHash } from 'node:crypto';
import type { ProcessConfig, UpstreamConfig } from '../config/types.ts';
import { BoundedMap } from '../protocol/bounded-map.ts';
import { type Head, PARAM_HEADER_PREFIX, passedOn } from '../protocol/headers.ts';
import { hasCredentials } from './caller.ts';

/** *Spec:* basic/index, "Trace context": passed through unchanged while the gateway makes no spans of its own. */
const TRACE_HEADERS = ['traceparent', 'tracestate', 'baggage'] as const;

/** `[name, value]` of every `forwardHeaders` name of an upstream: part of the cache key, for public answers too. */
export type Varying = readonly (readonly [name: string, value: string | undefined])[];

const NOTHING_VARIES: Varying = [];

/** What of a caller's request may change a public answer of this upstream. */
export function varyingHeaders({ forwardHeaders }: UpstreamConfig, head: Head): Varying {
  return forwardHeaders.length === 0
    ? NOTHING_VARIES
    : forwardHeaders.map((name) => [name, passedOn(head, name)]);
}

/**
 * The headers of a caller's request that this upstream may see, and the gateway's own credential for it, in lower
 * case. *Never* one that `Connection` names (R9).
 */
export function forwardedHeaders(upstream: UpstreamConfig, head: Head): Readonly<Record<string, string>> {
  const headers: Record<string, string> = callerHeaders(upstream, head);
  for (const name of TRACE_HEADERS) {
    const value = passedOn(head, name);
    if (value !== undefined) headers[name] = value;
  }
  return headers;
}

/** Of {@link forwardedHeaders} those by which the upstream tells callers apart: all but a request's own trace. */
export function callerHeaders(upstream: UpstreamConfig, head: Head): Record<string, string> {
  const headers: Record<string, string> = { ...ownCredential(upstream) };
  for (const [name, value] of varyingHeaders(upstream, head)) {
    if (value !== undefined && headers[name] === undefined) headers[name] = value;
  }
  if (upstream.auth.type === 'forward') {
    const authorization = passedOn(head, 'authorization');
    if (authorization !== undefined) headers.authorization = authorization;
  }
  return headers;
}

/**
 * Whether an upstream is kept from this caller: a process sees nobody's credentials, so that whoever has some may
 * expect to be told apart, and only the operator knows better (`shared: true`).
 */
export function isBarred({ process }: Pick<UpstreamConfig, 'process'>, head: Head): boolean {
  return process !== undefined && !process.shared && hasCredentials(head, process.tellers);
}

/** The `Mcp-Param-*` headers of a call, untouched; *never* one that `Connection` names (R9). */
export function paramHeaders(head: Head): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of head.headers.keys()) {
    const value = name.startsWith(PARAM_HEADER_PREFIX) ? passedOn(head, name) : undefined;
    if (value !== undefined) headers[name] = value;
  }
  return headers;
}

/** The credential that the gateway itself presents to an upstream. */
export function ownCredential(upstream: UpstreamConfig): Readonly<Record<string, string>> {
  const { auth } = upstream;
  switch (auth.type) {
    case 'bearer':
      return { authorization: `Bearer ${auth.token.reveal()}` };
    case 'header':
      return { [auth.name.toLowerCase()]: auth.value.reveal() };
    case 'none':
    case 'forward':
      return {};
  }
}

/** Whether anything of a caller can change what this upstream answers. */
export function seesCallers(upstream: UpstreamConfig): boolean {
  return upstream.auth.type === 'forward' || upstream.forwardHeaders.length > 0;
}

/** How long a private answer may be served without the upstream seeing the token again, where none says its end. */
export const FORWARDED_PRIVATE_MS = 60_000;

/** A bound on private answers: so long after their receipt, or until a wall-clock time. */
export type PrivateBound =
  | { readonly kind: 'for'; readonly ms: number }
  | { readonly kind: 'until'; readonly wallMs: number };

const A_MINUTE: PrivateBound = { kind: 'for', ms: FORWARDED_PRIVATE_MS };

/** Contexts whose token's end is remembered. */
const REMEMBERED_TOKENS = 4_096;

/**
 * Where a caller's own token is forwarded, a private hit is served without the upstream judging that token again:
 * at most until its `exp` where it can be read, otherwise for a minute. The token is not verified here; whoever
 * forges an `exp` only reaches what the upstream gave to this very token.
 *
 * *Bounded by* {@link REMEMBERED_TOKENS}; *never* holds a token: a context stands for one.
 */
export class PrivateBounds {
  readonly #known = new BoundedMap<string, PrivateBound>(REMEMBERED_TOKENS);

  /** @param partition the caller's context, in which the token has a part. */
  of(upstream: UpstreamConfig, head: Head, partition: string): PrivateBound | undefined {
    if (upstream.auth.type !== 'forward') return undefined;
    const known = this.#known.get(partition);
    if (known !== undefined) return known;
    const expiresAt = tokenExpiry(head.headers.get('authorization'));
    const bound: PrivateBound = expiresAt === undefined ? A_MINUTE : { kind: 'until', wallMs: expiresAt };
    this.#known.set(partition, bound);
    return bound;
  }
}

function tokenExpiry(authorization: string | undefined): number | undefined {
  const payload = authorization?.split('.', 3)[1];
  if (payload === undefined) return undefined;
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
    const exp = typeof claims === 'object' && claims !== null ? (claims as { exp?: unknown }).exp : undefined;
    return typeof exp === 'number' && Number.isFinite(exp) ? exp * 1000 : undefined;
  } catch {
    return undefined;
  }
}

/** What makes an upstream's answers beside the request: where it is, or what is started, and as whom it is asked. */
export function upstreamIdentity(upstream: UpstreamConfig): string {
  const hash = createHash('sha256');
  const parts = [
    upstream.name,
    ...upstream.endpoints.map((url) => url.href),
    upstream.auth.type,
    ...Object.entries(ownCredential(upstream)).flat(),
    ...upstream.forwardHeaders,
    // What was kept by another word is not found.
    ...upstream.cache.rules.map((rule) => JSON.stringify(rule)),
    ...(upstream.process === undefined ? [] : processIdentity(upstream.process)),
  ];
  for (const part of parts) hash.update(`${part.length}:${part};`);
  return hash.digest('base64url');
}

/** Another program, other arguments or another variable may be another account. */
function processIdentity({ command, args, env, cwd }: ProcessConfig): readonly string[] {
  const variables = Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    'process',
    command,
    ...(cwd === undefined ? ['inherited'] : ['cwd', cwd]),
    `${args.length}`,
    ...args,
    ...variables.flatMap(([name, value]) => [name, value.reveal()]),
  ];
}
