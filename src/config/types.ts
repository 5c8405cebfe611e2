/**
 * The normalised configuration: what the rest of the program sees.
 *
 * Every default is filled in, every duration is in milliseconds, every size in bytes, every address is
 * split, every secret is wrapped. Nothing outside `config/` reads YAML, files or the environment.
 */
import type { Secret } from './secret.ts';

/** Where a listener binds. `port` 0 means a free one. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface ListenConfig {
  readonly address: Address;
  /** Allowed `Host` values, lower case, without a port unless one was written. Empty: see design, section 2. */
  readonly hosts: readonly string[];
  /** Exact allowed `Origin` values. */
  readonly origins: readonly string[];
  readonly limits: {
    readonly bodyBytes: number;
    /** `undefined`: streamed bodies have no limit. */
    readonly streamedBodyBytes: number | undefined;
    readonly headersBytes: number;
    readonly headerCount: number;
    readonly requestTimeoutMs: number;
    readonly bodyIdleMs: number;
  };
  readonly trustedProxies: readonly string[];
}

/** The operator's word for results that carry no hints. */
export interface CacheRule {
  /** A cacheable method; `resources/read` where `resources` is there. */
  readonly method: string;
  /** A URI literal, glob or template; undefined: every result of the method. */
  readonly resources: string | undefined;
  readonly ttlMs: number;
  readonly scope: 'private' | 'public';
}

/** How the gateway identifies itself to an upstream. */
export type UpstreamAuth =
  | { readonly type: 'none' }
  | { readonly type: 'bearer'; readonly token: Secret }
  | { readonly type: 'header'; readonly name: string; readonly value: Secret }
  | { readonly type: 'forward'; readonly shared: boolean };

/** A program that speaks MCP over its standard input and output. */
export interface ProcessConfig {
  /** A name, looked for in `PATH`, or a path; a relative one starts at `cwd`. */
  readonly command: string;
  /** Show them by `displayArgs` only. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, Secret>>;
  /** `undefined`: the gateway's own. */
  readonly cwd: string | undefined;
  /** Whether callers with credentials may use the one process, too. */
  readonly shared: boolean;
  /** Headers that are credentials here, beside those that always are: `cache.partition.headers`. */
  readonly tellers?: readonly string[];
}

export interface UpstreamConfig {
  readonly name: string;
  /** Absolute http(s) URLs of the same server: one or more, or none where there is a `process`. */
  readonly endpoints: readonly URL[];
  /** What is started in place of `endpoints`. */
  readonly process: ProcessConfig | undefined;
  /** `modern`: 2026-07-28; `legacy`: the revisions before it; `auto`: whichever it turns out to speak. */
  readonly protocol: 'auto' | 'modern' | 'legacy';
  readonly claims: {
    /** URI literals, globs (`docs://**`) or RFC 6570 templates; empty: the upstream claims nothing of the kind. */
    readonly resources: readonly string[];
    /** Name globs. */
    readonly tools: readonly string[];
    readonly prompts: readonly string[];
  };
  readonly auth: UpstreamAuth;
  /** Lower-case names of further request headers this upstream may see. */
  readonly forwardHeaders: readonly string[];
  readonly timeouts: {
    readonly connectMs: number;
    readonly responseMs: number;
    readonly callMs: number;
    readonly streamIdleMs: number;
  };
  /** Bound on concurrent connections of each of the upstream's pools. */
  readonly connections: number;
  readonly subscribe: boolean;
  readonly cache: {
    readonly ttlDefaultMs: number;
    readonly ttlMaxMs: number;
    /** What holds where a result says nothing of it: the first that fits. */
    readonly rules: readonly CacheRule[];
    readonly scope: 'respect' | 'private' | 'public';
    readonly staleIfErrorMs: number;
  };
}

/** One routing rule: it routes, it never permits. Every condition that is present must hold. */
export interface RuleConfig {
  readonly method: string | undefined;
  /** A URI literal/glob/template for resources, a name glob otherwise. */
  readonly name: string | undefined;
  /** Lower-case header names (`mcp-param-*` only) to globs on their decoded values. */
  readonly headers: Readonly<Record<string, string>>;
  readonly upstream: string;
}

export interface RouteConfig {
  /** The HTTP path, e.g. `/mcp`. Also the route's label in metrics and logs. */
  readonly path: string;
  /** Upstream names in order of precedence. */
  readonly upstreams: readonly string[];
  readonly rules: readonly RuleConfig[];
  readonly partial: 'allow' | 'fail';
  /** Whether clients of 2025-11-25 and older are served. */
  readonly legacyClients: boolean;
  readonly pageSize: number;
  readonly cache: boolean;
}

/** The cache that replicas share. */
export interface RedisConfig {
  readonly endpoint:
    | { readonly kind: 'url'; readonly url: Secret }
    | {
        readonly kind: 'sentinel';
        /** Of the master group. */
        readonly name: string;
        /** The sentinels. */
        readonly nodes: readonly Address[];
        readonly username?: string;
        readonly password?: Secret;
        readonly sentinelPassword?: Secret;
        readonly db: number;
        /** To the sentinels and to the servers. */
        readonly tls: boolean;
      }
    | {
        readonly kind: 'cluster';
        readonly nodes: readonly Address[];
        readonly username?: string;
        readonly password?: Secret;
        readonly tls: boolean;
      };
  readonly keyPrefix: string;
  /** `commandMs`: what all commands for one request may take together; never above `connectMs`. */
  readonly timeouts: { readonly connectMs: number; readonly commandMs: number };
  /** Never above that of the memory. */
  readonly maxEntryBytes: number;
  readonly required: boolean;
}

/** Where operators connect; *never* beyond loopback without a token. */
export interface AdminConfig {
  readonly address: Address;
  readonly token: Secret | undefined;
}

export interface HeadgateConfig {
  readonly secrets: readonly Secret[];
  readonly listen: ListenConfig;
  readonly status: Address;
  readonly admin: AdminConfig | false;
  /** In the order of the file. */
  readonly upstreams: ReadonlyMap<string, UpstreamConfig>;
  readonly routes: readonly RouteConfig[];
  readonly cache: {
    readonly memory: { readonly sizeBytes: number; readonly maxEntryBytes: number };
    /** Absent: memory only. */
    readonly redis?: RedisConfig;
    readonly partitionHeaders: readonly string[];
  };
  readonly shutdown: { readonly delayMs: number; readonly graceMs: number };
  readonly log: {
    readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';
    readonly format: 'auto' | 'json' | 'pretty';
    readonly access: boolean;
  };
}
