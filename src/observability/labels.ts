/**
 * The closed sets of label values, and the buckets. A value that is in none of them counts as `other` (R45).
 */
import {
  HEADER_MISMATCH,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  MISSING_CLIENT_CAPABILITY,
  PARSE_ERROR,
  type RejectReason,
  UNSUPPORTED_VERSION,
} from '../protocol/errors.ts';
import { LIST_CHANGED, UPDATED } from '../protocol/notice.ts';

export const HTTP_METHODS = ['POST', 'GET', 'DELETE', 'OPTIONS', 'HEAD', 'PUT', 'PATCH'];

/** The statuses that the gateway and Node send, and 499 for a client that left before its answer. */
export const HTTP_STATUSES = [
  200, 202, 204, 400, 401, 403, 404, 405, 406, 408, 411, 413, 414, 415, 417, 421, 429, 431, 499, 500, 501,
  502, 503, 504, 505,
];

/** How an operation ended: `''` well, a JSON-RPC code (also as text), or what went wrong below JSON-RPC. */
export type ErrorType = '' | number | 'timeout' | 'connect' | 'cancelled' | 'other';
export const ERROR_TYPES: readonly ErrorType[] = [
  '',
  PARSE_ERROR,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  INVALID_PARAMS,
  INTERNAL_ERROR,
  HEADER_MISMATCH,
  MISSING_CLIENT_CAPABILITY,
  UNSUPPORTED_VERSION,
  'timeout',
  'connect',
  'cancelled',
];

const REJECTIONS: Readonly<Record<RejectReason, true>> = {
  parse: true,
  header_mismatch: true,
  version: true,
  origin: true,
  host: true,
  body_size: true,
  no_route: true,
  method_not_allowed: true,
  media_type: true,
};
/** Every reason there is: one that `protocol/` adds and nobody lists here does not compile. */
export const REJECT_REASONS: readonly string[] = Object.keys(REJECTIONS);

export const STREAM_KINDS = ['response', 'listen'] as const;
export type StreamKind = (typeof STREAM_KINDS)[number];

/** Where an entry lives. */
export const CACHE_TIERS = ['memory', 'redis'] as const;
export type CacheTier = (typeof CACHE_TIERS)[number];
/** The tier of which everything is known here. */
export const OWN_TIER = ['memory'] as const;

/** What the cache did for a request: answered it, or not. */
export const ANSWERED = ['hit', 'stale'] as const;
export const UNANSWERED = ['miss', 'bypass'] as const;
export type CacheStatus = (typeof ANSWERED)[number] | (typeof UNANSWERED)[number];

/** Why an answer was kept out of the cache. */
export const BYPASS_REASONS = ['disabled', 'mrtr', 'too_large', 'ttl_zero'] as const;
export type BypassReason = (typeof BYPASS_REASONS)[number];

export const STORE_RESULTS = ['ok', 'too_large', 'superseded', 'error'] as const;
export type StoreResult = (typeof STORE_RESULTS)[number];

export const EVICTION_REASONS = ['size', 'expired', 'invalidated'] as const;
export type EvictionReason = (typeof EVICTION_REASONS)[number];

export const CACHE_OPERATIONS = ['get', 'set', 'generation'] as const;
export type CacheOperation = (typeof CACHE_OPERATIONS)[number];

/** How one attempt at an upstream ended; `rpc_error` is a JSON-RPC error in an otherwise good answer. */
export const ATTEMPT_OUTCOMES = [
  'ok',
  'rpc_error',
  'http_4xx',
  'http_5xx',
  'timeout',
  'connect',
  'reset',
  'circuit_open',
  'cancelled',
] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** Why an attempt was made again. */
export const RETRY_REASONS = ['connect', 'reset'] as const;
export type RetryReason = (typeof RETRY_REASONS)[number];

/** Why an item of a list was left out. */
export const DROP_REASONS = ['invalid', 'duplicate', 'unclaimed', 'too_large'] as const;
export type DropReason = (typeof DROP_REASONS)[number];

/** Who said that something is over, and how much of it. */
export const INVALIDATION_SOURCES = ['notification', 'replica', 'admin', 'reload'] as const;
export type InvalidationSource = (typeof INVALIDATION_SOURCES)[number];
export const INVALIDATION_SCOPES = ['uri', 'method', 'key', 'upstream'] as const;
export type InvalidationScope = (typeof INVALIDATION_SCOPES)[number];

/** What upstreams notify of; tasks count as `other`. */
export const NOTIFICATIONS: readonly string[] = [...Object.values(LIST_CHANGED), UPDATED];

export const CONNECTION_STATES = ['connected', 'free', 'pending', 'queued', 'running'] as const;
export type ConnectionState = (typeof CONNECTION_STATES)[number];

/** Of a command of Redis that failed: which, and how. */
export const REDIS_OPERATIONS = ['lookup', 'store', 'bump', 'sync'] as const;
export type RedisOperation = (typeof REDIS_OPERATIONS)[number];
export const REDIS_ERRORS = ['timeout', 'connection', 'reply', 'corrupt'] as const;
export type RedisError = (typeof REDIS_ERRORS)[number];
export const BUS_DIRECTIONS = ['in', 'out'] as const;
export type BusDirection = (typeof BUS_DIRECTIONS)[number];
export const RESYNC_REASONS = ['connect', 'poll', 'gap'] as const;
export type ResyncReason = (typeof RESYNC_REASONS)[number];

/** What became of a configuration that was read again. */
export const RELOAD_RESULTS = ['applied', 'unchanged', 'refused'] as const;
export type ReloadResult = (typeof RELOAD_RESULTS)[number];

/** Upper bounds of buckets, in seconds: whole operations, the gateway's own part, one store operation. */
export const OPERATION_BOUNDS = [
  0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300,
];
export const PROCESSING_BOUNDS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25];
export const STORE_BOUNDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25];
