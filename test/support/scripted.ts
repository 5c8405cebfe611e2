/** Upstreams inside the process, answering from a script in real bytes: for tests of lists, reads and routing. */

import type { Member } from '../../src/aggregate/ask.ts';
import { createCursorCodec, routeDigest } from '../../src/aggregate/cursor.ts';
import { Discovery } from '../../src/aggregate/discover.ts';
import { Learner } from '../../src/aggregate/learn.ts';
import { type ListDeps, Lists, type RemainderPage } from '../../src/aggregate/list.ts';
import { createIdentify } from '../../src/auth/caller.ts';
import { PrivateBounds } from '../../src/auth/forward.ts';
import { createMemoryStore } from '../../src/cache/memory.ts';
import { createRemainders } from '../../src/cache/remainders.ts';
import { type Cache, createCache } from '../../src/cache/through.ts';
import type { CacheObserver } from '../../src/cache/types.ts';
import type { RouteConfig, UpstreamConfig } from '../../src/config/types.ts';
import { createPipeline } from '../../src/pipeline.ts';
import { readAnswer } from '../../src/protocol/answer.ts';
import { classify } from '../../src/protocol/classify.ts';
import type { Exchange, Handle, Reply } from '../../src/protocol/exchange.ts';
import { readHead } from '../../src/protocol/headers.ts';
import { Repeats } from '../../src/protocol/repeats.ts';
import { Routing } from '../../src/routing/resolve.ts';
import { Subscriptions } from '../../src/subscriptions/subscriptions.ts';
import type { Failure, ReadOutcome, ReadRequest, Upstream } from '../../src/upstream/types.ts';
import { mirrored, rawHeaders, rpc } from './mcp.ts';

/** What a script answers: a JSON-RPC result or error as an object or as JSON text, an HTTP refusal, or a failure. */
export type Scripted =
  | { readonly result: unknown }
  | { readonly text: string }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } }
  | { readonly refused: number; readonly challenge?: string }
  | { readonly failure: Failure['kind'] };

export type Script = (
  method: string,
  params: Record<string, unknown>,
  request: ReadRequest,
) => Scripted | Promise<Scripted>;

export class ScriptedUpstream implements Upstream {
  readonly name: string;
  /** Every request, as `method` or `method uri-or-cursor`. */
  readonly asked: string[] = [];
  script: Script;
  readonly #now: () => number;

  constructor(name: string, script: Script, now: () => number) {
    this.name = name;
    this.script = script;
    this.#now = now;
  }

  async read(request: ReadRequest): Promise<ReadOutcome> {
    const params = JSON.parse(request.params) as Record<string, unknown>;
    const what = params.uri ?? params.cursor;
    this.asked.push(what === undefined ? request.method : `${request.method} ${String(what)}`);
    const said = await this.script(request.method, params, request);
    if ('failure' in said)
      return { kind: 'failure', failure: { kind: said.failure, proxyError: 'x', detail: 'secret-address' } };
    if ('refused' in said)
      return { kind: 'refused', status: said.refused, challenge: said.challenge, retryAfter: undefined };
    const text = 'text' in said ? said.text : JSON.stringify({ jsonrpc: '2.0', id: 1, ...said });
    const answer = readAnswer(new TextEncoder().encode(text), '1');
    if (answer.kind === 'broken')
      return { kind: 'failure', failure: { kind: 'broken', proxyError: 'x', detail: answer.reason } };
    return { kind: 'answer', answer, status: 200, receivedAt: this.#now() };
  }

  stream(): never {
    throw new Error('not scripted');
  }

  listen(): never {
    throw new Error('not scripted');
  }

  stats() {
    return { connected: 0, free: 0, pending: 0, queued: 0, running: 0 };
  }

  available(): boolean {
    return true;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

export function upstreamConfig(name: string, rest: Partial<UpstreamConfig> = {}): UpstreamConfig {
  return {
    name,
    endpoints: [new URL(`http://${name}.invalid/mcp`)],
    process: undefined,
    claims: { resources: [], tools: [], prompts: [] },
    auth: { type: 'none' },
    forwardHeaders: [],
    timeouts: { connectMs: 2_000, responseMs: 30_000, callMs: 300_000, streamIdleMs: 300_000 },
    connections: 64,
    subscribe: true,
    protocol: 'modern',
    cache: { ttlDefaultMs: 0, ttlMaxMs: 86_400_000, rules: [], scope: 'respect', staleIfErrorMs: 60_000 },
    ...rest,
  };
}

export interface Fleet {
  readonly handle: Handle;
  readonly cache: Cache;
  readonly routing: Routing;
  readonly lists: Lists;
  readonly upstreams: readonly ScriptedUpstream[];
  /** `[upstream, reason]` of every dropped item. */
  readonly dropped: [string, string][];
  readonly logged: string[];
  /** Moves the monotonic clock. */
  tick(ms: number): void;
  /** Sends a request of a caller; `token` undefined: anonymous. */
  ask(
    method: string,
    params?: Record<string, unknown>,
    token?: string,
    headers?: Record<string, string>,
  ): Promise<Told>;
}

export interface Told {
  readonly reply: Reply;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into arbitrary results
  readonly result: any;
  readonly error: { code: number; message: string; data?: Record<string, unknown> } | undefined;
}

export interface FleetOptions {
  readonly upstreams: readonly {
    readonly config?: Partial<UpstreamConfig>;
    readonly name: string;
    readonly script: Script;
  }[];
  readonly route?: Partial<RouteConfig>;
  readonly partitionHeaders?: readonly string[];
  /** `plain`: what comes again is taken apart again. */
  readonly lane?: 'plain';
}

const silent: CacheObserver = {
  cacheRequest: () => undefined,
  cacheBypass: () => undefined,
  collapsed: () => undefined,
  cacheStore: () => undefined,
  cacheEviction: () => undefined,
  cacheOperation: () => undefined,
  cacheInvalidated: () => undefined,
};

/** A route over scripted upstreams, with a clock of its own. */
export function fleet({
  upstreams: specs,
  route: routeRest = {},
  partitionHeaders = [],
  lane,
}: FleetOptions): Fleet {
  let time = 1_000_000;
  const now = (): number => time;
  const upstreams = specs.map((spec) => new ScriptedUpstream(spec.name, spec.script, now));
  const configs = specs.map((spec) => upstreamConfig(spec.name, spec.config));
  const route: RouteConfig = {
    path: '/mcp',
    upstreams: specs.map((spec) => spec.name),
    rules: [],
    partial: 'allow',
    pageSize: 1000,
    cache: true,
    legacyClients: true,
    ...routeRest,
  };
  const members = configs.map(
    (config, rank): Member => ({
      rank,
      config,
      upstream: upstreams[rank] as Upstream,
      identity: `id-${config.name}`,
    }),
  );
  const store = createMemoryStore({
    sizeBytes: 64 << 20,
    maxEntryBytes: 8 << 20,
    now,
    upstreamCount: () => specs.length,
    observer: silent,
  });
  const cache = createCache({ store, now, observer: silent });
  const logged: string[] = [];
  const said = new Set<string>();
  const deps = {
    cache,
    maxEntryBytes: 8 << 20,
    now,
    bounds: new PrivateBounds(),
    wallClock: () => 1_700_000_000_000 + time,
    logOnce: (key: string, _level: string, _fields: unknown, message: string) => {
      if (!said.has(key)) logged.push(message);
      said.add(key);
    },
  };
  const dropped: [string, string][] = [];
  const routing = new Routing(route, configs);
  const discovery = new Discovery({ ...deps, members, version: '0' });
  const listDeps: ListDeps = {
    ...deps,
    members,
    route,
    routing,
    discovery,
    cursors: createCursorCodec(
      routeDigest(
        route.path,
        members.map((member) => member.identity),
      ),
      members.length,
      [],
    ),
    remainders: createRemainders<RemainderPage>({ now }),
    dropped: (upstream, reason) => dropped.push([upstream, reason]),
  };
  const lists = new Lists(listDeps);
  const learner = new Learner(listDeps);
  const identify = createIdentify(
    {
      upstreams: new Map(configs.map((config) => [config.name, config])),
      cache: { memory: { sizeBytes: 0, maxEntryBytes: 0 }, partitionHeaders },
    },
    route,
    Buffer.alloc(32),
  );
  const subscriptions = new Subscriptions({
    ...{ cache, now },
    upstreams: new Map(members.map(({ config, upstream }) => [config.name, upstream])),
    heldUris: () => [],
    notified: () => undefined,
    log: { info: () => undefined, warn: () => undefined, error: () => undefined },
  });
  const handle = createPipeline({
    ...{ ...deps, subscriptions },
    repeats: lane === 'plain' ? { classify } : new Repeats(),
    version: '0',
    routes: new Map([
      [
        '/mcp',
        {
          config: route,
          members,
          routing,
          lists,
          learner,
          discovery,
          identify,
          carried: (head) => head,
          generation: 1,
        },
      ],
    ]),
  });
  return {
    handle,
    cache,
    routing,
    lists,
    upstreams,
    dropped,
    logged,
    tick: (ms) => {
      time += ms;
    },
    async ask(method, params = {}, token, extra = {}) {
      const name = (params.uri ??
        (method === 'tools/call' || method === 'prompts/get' ? params.name : undefined)) as
        | string
        | undefined;
      const headers = {
        ...mirrored(method, name),
        ...(token !== undefined && { authorization: token }),
        ...extra,
      };
      const exchange: Exchange = { signal: new AbortController().signal, facts: {}, notify: () => undefined };
      const body = {
        kind: 'whole',
        bytes: new TextEncoder().encode(JSON.stringify(rpc(method, params))),
      } as const;
      return toldOf(await handle({ route: '/mcp', head: readHead(rawHeaders(headers)), body }, exchange));
    },
  };
}

function toldOf(reply: Reply): Told {
  switch (reply.kind) {
    case 'answer': {
      const text = reply.head + Buffer.concat(reply.tail).toString('utf8');
      const json = JSON.parse(text) as { result?: unknown; error?: Told['error'] };
      return {
        reply,
        status: reply.status,
        headers: reply.headers,
        text,
        result: json.result,
        error: json.error,
      };
    }
    case 'refused': {
      const { code, message, data, status, headers = {} } = reply.refusal;
      return {
        reply,
        status,
        headers,
        text: message,
        result: undefined,
        error: { code, message, ...(data && { data: data as Record<string, unknown> }) },
      };
    }
    default:
      throw new Error(`unexpected reply ${reply.kind}`);
  }
}

/** A script over a fixed catalogue, paged, with hints. */
export function catalogue(options: {
  readonly resources?: readonly Record<string, unknown>[];
  readonly templates?: readonly string[];
  readonly tools?: readonly string[];
  readonly pageSize?: number;
  readonly ttlMs?: number;
  readonly scope?: string;
}): Script {
  const {
    resources = [],
    templates = [],
    tools = [],
    pageSize = 10,
    ttlMs = 60_000,
    scope = 'public',
  } = options;
  const hints = { resultType: 'complete', ttlMs, cacheScope: scope };
  const page = (field: string, items: readonly unknown[], cursor: unknown): Scripted => {
    const from = cursor === undefined ? 0 : Number(cursor);
    const next = from + pageSize;
    return {
      result: {
        [field]: items.slice(from, next),
        ...hints,
        ...(next < items.length && { nextCursor: String(next) }),
      },
    };
  };
  return (method, params) => {
    switch (method) {
      case 'server/discover':
        return {
          result: { supportedVersions: ['2026-07-28'], capabilities: { resources: {}, tools: {} }, ...hints },
        };
      case 'resources/list':
        return page('resources', resources, params.cursor);
      case 'resources/templates/list':
        return page(
          'resourceTemplates',
          templates.map((uriTemplate, i) => ({ uriTemplate, name: `t${i}` })),
          params.cursor,
        );
      case 'tools/list':
        return page(
          'tools',
          tools.map((name) => ({ name, inputSchema: { type: 'object' } })),
          params.cursor,
        );
      case 'resources/read': {
        const found = resources.some((resource) => resource.uri === params.uri);
        if (!found)
          return { error: { code: -32602, message: 'Resource not found', data: { uri: params.uri } } };
        return { result: { contents: [{ uri: params.uri, text: `of ${String(params.uri)}` }], ...hints } };
      }
      default:
        return { error: { code: -32601, message: 'Method not found' } };
    }
  };
}

/** Resources `scheme://n`. */
export function resources(scheme: string, count: number): Record<string, unknown>[] {
  return Array.from({ length: count }, (_, i) => ({ uri: `${scheme}://${i}`, name: `${scheme} ${i}` }));
}

/** Walks a list to its end; every page as told. */
export async function walk(f: Fleet, method: string, token?: string): Promise<Told[]> {
  const pages: Told[] = [];
  let cursor: string | undefined;
  do {
    const told = await f.ask(method, cursor === undefined ? {} : { cursor }, token);
    if (told.error !== undefined)
      throw Object.assign(new Error(told.error.message), { code: told.error.code, pages });
    pages.push(told);
    cursor = told.result.nextCursor;
  } while (cursor !== undefined && pages.length < 1_000);
  return pages;
}
