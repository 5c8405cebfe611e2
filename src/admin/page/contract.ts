/**
 * What the admin port answers, as JSON: the contract between it and its page. Types alone.
 *
 * Times are milliseconds since 1970, durations milliseconds. Text of upstreams is bounded and as they sent it: whoever
 * shows it defuses it.
 */

export const STATE_PATH = '/api/state';
export const CONFIG_PATH = '/api/config';
export const LIST_PATH = '/api/list';
export const READ_PATH = '/api/read';
export const PURGE_PATH = '/api/purge';

/** `GET /api/state`: what an operator looks at first. */
export interface State {
  readonly version: string;
  readonly node: string;
  readonly startedAt: number;
  readonly at: number;
  readonly ready: boolean;
  readonly checks: readonly { readonly name: string; readonly holds: boolean }[];
  readonly inFlight: number;
  readonly streams: readonly { readonly route: string; readonly kind: string; readonly open: number }[];
  readonly routes: readonly RouteState[];
  readonly upstreams: readonly UpstreamState[];
  readonly cache: CacheState;
  /** `undefined`: the configuration has none. */
  readonly redis?: RedisState;
  /** The newest first. */
  readonly happenings: readonly Happening[];
  /** Changes with the configuration. */
  readonly configuration: string;
}

export interface RouteState {
  readonly path: string;
  readonly upstreams: readonly string[];
  readonly cache: boolean;
}

/** By what the cache did. */
export interface Answered {
  readonly hit: number;
  readonly stale: number;
  readonly miss: number;
  readonly bypass: number;
}

export interface UpstreamState {
  readonly name: string;
  readonly over: 'http' | 'process';
  /** `down`: it did not answer last; `unseen`: it never has. */
  readonly state: 'up' | 'down' | 'unseen' | 'refused';
  readonly circuit: 'open' | 'closed';
  /** Which revision it speaks; empty while nobody knows. */
  readonly era: string;
  /** What it offers, or why it is not known. */
  readonly about: string;
  /** Of the last minutes; absent: none ended. */
  readonly latency?: { readonly count: number; readonly p50Ms: number; readonly p95Ms: number };
  readonly lastError?: { readonly kind: string; readonly at: number };
  readonly listen: 'off' | 'idle' | 'opening' | 'open' | 'waiting' | 'not-offered' | 'closed';
  readonly connections: { readonly connected: number; readonly running: number; readonly queued: number };
  readonly answered: Answered;
}

export interface CacheState {
  readonly entries: number;
  readonly bytes: number;
  readonly maxBytes: number;
  readonly answered: Answered;
  readonly stores: Counts;
  readonly evictions: Counts;
  readonly invalidations: readonly {
    readonly upstream: string;
    readonly source: string;
    readonly scope: string;
    readonly count: number;
  }[];
  /** The oldest first; the last one is not over yet. */
  readonly recent: { readonly everyMs: number; readonly samples: readonly Answered[] };
}

/** Word → how often. */
export type Counts = Readonly<Record<string, number>>;

export interface RedisState {
  readonly state: 'connecting' | 'up' | 'down';
  readonly circuit: 'open' | 'closed';
  readonly required: boolean;
  /** Whether private answers are shared, too. */
  readonly sealed: boolean;
  /** Those that are not 0, as `operation reason`. */
  readonly errors: Counts;
  readonly messages: Counts;
  readonly resyncs: Counts;
}

/** Something that happened to the gateway, and how often in a row. */
export interface Happening {
  readonly at: number;
  readonly count: number;
  readonly what: Happened;
}

export type Happened =
  | { readonly kind: 'upstream'; readonly upstream: string; readonly state: 'up' | 'down' }
  | { readonly kind: 'circuit'; readonly upstream: string; readonly state: 'open' | 'closed' }
  | { readonly kind: 'redis'; readonly state: 'up' | 'down' }
  | { readonly kind: 'configuration'; readonly result: 'applied' | 'refused' }
  | {
      readonly kind: 'invalidated';
      readonly upstream: string;
      readonly source: string;
      readonly scope: string;
    };

/** `GET /api/config`: the effective configuration, as YAML, without its secrets. */
export interface ConfigAnswer {
  readonly configuration: string;
  readonly yaml: string;
}

export type Listed = 'resources' | 'templates' | 'tools' | 'prompts';

/** `POST /api/list` takes this; a page at a time. */
export interface ListRequest {
  readonly route: string;
  readonly list: Listed;
  readonly cursor?: string;
}

/** How an answer came about. */
export interface How {
  readonly kind: 'hit' | 'stale' | 'miss' | 'bypass' | 'none';
  /** In a sentence. */
  readonly means: string;
  /** As clients see it; empty where there is none. */
  readonly cacheStatus: string;
  /** Of what came out of the cache. */
  readonly ageSeconds?: number;
  readonly tookMs: number;
  /** Of it, waiting for upstreams. */
  readonly upstreamMs: number;
}

/** Why there is no answer, as a client is told. */
export interface Trouble {
  readonly status: number;
  readonly code: number;
  readonly message: string;
  /** JSON text. */
  readonly data?: string;
}

export interface ListedItem {
  /** URI, template or name; cut where `isCut` says so. */
  readonly id: string;
  readonly isCut?: true;
  readonly name?: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly size?: number;
  readonly owner?: string;
  /** Of a resource: the template that it fits. */
  readonly template?: string;
}

export interface ListAnswer {
  readonly how: How;
  readonly items: readonly ListedItem[];
  readonly nextCursor?: string;
  readonly ttlMs?: number;
  readonly scope?: string;
  /** Upstreams that are left out. */
  readonly incomplete: readonly string[];
  readonly trouble?: Trouble;
}

/** `POST /api/read` takes this. */
export interface ReadRequest {
  readonly route: string;
  readonly uri: string;
}

export interface ReadAnswer {
  readonly how: How;
  readonly upstream?: string;
  readonly template?: string;
  readonly ttlMs?: number;
  readonly scope?: string;
  readonly bytes: number;
  readonly outcome:
    | { readonly kind: 'contents'; readonly contents: readonly Content[]; readonly leftOut: number }
    | { readonly kind: 'input-required' }
    /** More than is shown; it would flow to a client. */
    | { readonly kind: 'large' }
    | { readonly kind: 'trouble'; readonly trouble: Trouble };
}

export type Content =
  | {
      readonly kind: 'text';
      readonly uri: string;
      readonly mimeType: string;
      readonly text: string;
      /** Characters that are not shown. */
      readonly leftOut: number;
    }
  | {
      readonly kind: 'image';
      readonly uri: string;
      /** One of the five that are shown; what the bytes say, too. */
      readonly mimeType: string;
      readonly base64: string;
      readonly bytes: number;
    }
  /** `hex`: of the first bytes. */
  | {
      readonly kind: 'bytes';
      readonly uri: string;
      readonly mimeType: string;
      readonly bytes: number;
      readonly hex: string;
    };
