/** What is counted and logged of a request when it is over. On the path of every cache hit. */
import type { ErrorType } from '../observability/labels.ts';
import type { AccessEntry, Logger } from '../observability/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Facts } from '../protocol/exchange.ts';
import type { Asked } from './client-address.ts';

/** Who ended an exchange before its answer was through. */
export type Ending = 'client_gone' | 'shutdown';

/** Where it is counted and logged. */
export interface AccountContext {
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** The client's address, for the access log. */
  readonly clientOf: (request: Asked) => string | undefined;
}

/** A request that is over. Times in milliseconds. */
export interface Outcome {
  readonly facts: Facts;
  /** The configured path; undefined when none was met. */
  readonly route: string | undefined;
  readonly request: Asked;
  readonly status: number;
  readonly ended: Ending | undefined;
  readonly startedAt: number;
  /** When the request path had its reply. */
  readonly repliedAt: number | undefined;
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };
/** Written when the log knows it. */
type Entry = Writable<AccessEntry>;

/** Counts and logs; called once a request. */
export function account(context: AccountContext, outcome: Outcome): void {
  const { metrics, log } = context;
  const { facts, route, startedAt, request } = outcome;
  const endedAt = context.now();
  const durationMs = endedAt - startedAt;
  const { mcpMethod } = facts;
  metrics.httpRequest(request.method ?? '', outcome.status);
  metrics.httpBytes(outcome.receivedBytes, outcome.sentBytes);
  // A stream lasts as long as its client wants: the gateway's own part ends with the reply.
  const ownMs = Math.max(0, (outcome.repliedAt ?? endedAt) - startedAt - (facts.upstreamMs ?? 0));
  // A name is only counted once the request path has found it to be the one in the body (R3).
  if (route !== undefined && mcpMethod !== undefined) {
    metrics.operation(route, mcpMethod, errorTypeOf(outcome), durationMs / 1000);
    metrics.processing(route, ownMs / 1000);
  }
  log.access(entryOf(context, outcome, durationMs, ownMs));
}

function entryOf(
  context: AccountContext,
  outcome: Outcome,
  durationMs: number,
  overheadMs: number,
): AccessEntry {
  const { facts, request } = outcome;
  const entry: Entry = {
    httpMethod: request.method ?? '',
    status: outcome.status,
    durationMs,
    overheadMs,
    bytesIn: outcome.receivedBytes,
    bytesOut: outcome.sentBytes,
  };
  const client = context.clientOf(request);
  if (client !== undefined) entry.client = client;
  if (outcome.route !== undefined) entry.route = outcome.route;
  if (facts.upstream !== undefined) entry.upstream = facts.upstream;
  if (facts.mcpMethod !== undefined) entry.mcpMethod = facts.mcpMethod;
  if (facts.mcpName !== undefined) entry.mcpName = facts.mcpName;
  if (facts.rpcError !== undefined) entry.rpcError = facts.rpcError;
  if (facts.cache !== undefined && facts.cache !== 'none') entry.cache = facts.cache;
  if (facts.cacheReason !== undefined) entry.cacheReason = facts.cacheReason;
  if (facts.collapsed === true) entry.collapsed = true;
  if (facts.upstreamMs !== undefined) entry.upstreamMs = facts.upstreamMs;
  const error = outcome.ended ?? wordOf(facts.errorType);
  if (error !== undefined) entry.error = error;
  return entry;
}

/** What failed below JSON-RPC; a code stands in `rpcError`. */
function wordOf(errorType: string | undefined): string | undefined {
  return errorType === undefined || errorType === '' || Number.isInteger(Number(errorType))
    ? undefined
    : errorType;
}

function errorTypeOf({ ended, facts }: Outcome): ErrorType {
  if (ended === 'client_gone') return 'cancelled';
  const { errorType, rpcError } = facts;
  if (errorType === undefined) return rpcError ?? '';
  const code = Number(errorType);
  return errorType !== '' && Number.isInteger(code) ? code : (errorType as ErrorType);
}
