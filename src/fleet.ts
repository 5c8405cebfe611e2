/**
 * The upstreams and routes of a gateway, and how one configuration of them follows another while it runs (R44).
 *
 * Everything of the next one is made before anything of the last is touched; then all is exchanged within one turn of
 * the event loop. What did not change is the same object as before: its sockets, streams and what it has learnt stay.
 */
import { createHmac } from 'node:crypto';
import type { AskDeps, Member } from './aggregate/ask.ts';
import { createCursorCodec, routeDigest } from './aggregate/cursor.ts';
import { Discovery, gatewayMeta, type Standing } from './aggregate/discover.ts';
import { Learner } from './aggregate/learn.ts';
import { Lists, type RemainderPage } from './aggregate/list.ts';
import { listsOf, toldBy } from './aggregate/standing.ts';
import { createCarried, createIdentify, partitionKey } from './auth/caller.ts';
import { upstreamIdentity } from './auth/forward.ts';
import type { Remainders } from './cache/remainders.ts';
import type { Changes } from './config/changes.ts';
import type { HeadgateConfig, RouteConfig, UpstreamConfig } from './config/types.ts';
import type { DropReason } from './observability/labels.ts';
import type { Logger } from './observability/log.ts';
import type { Metrics } from './observability/metrics.ts';
import type { RouteRuntime } from './pipeline.ts';
import { Routing } from './routing/resolve.ts';
import type { Subscriptions } from './subscriptions/subscriptions.ts';
import type { Upstream } from './upstream/types.ts';

export interface FleetDeps extends AskDeps {
  /** Written here alone: others read what holds at the moment. */
  readonly upstreams: Map<string, Upstream>;
  readonly routes: Map<string, RouteRuntime>;
  readonly open: (config: UpstreamConfig) => Opened;
  readonly subscriptions: Subscriptions;
  readonly remainders: Remainders<RemainderPage>;
  readonly metrics: Pick<Metrics, 'itemDropped' | 'configure' | 'upstreamReplaced'>;
  readonly log: Logger;
  readonly version: string;
}

/** An upstream, and what keeps it from saying how it is: another one has its name. */
export interface Opened {
  readonly upstream: Upstream;
  mute(): void;
}

/** What is left to do when a configuration has been taken up. */
export interface Taken {
  /** Resolves when what is new has been probed, or has had its time. */
  readonly ready: Promise<unknown>;
  /** Upstreams that nothing new is sent to: to be closed when nothing runs there any more. */
  readonly retired: readonly Retired[];
}

/** An upstream that was replaced, and the routes that it was on. */
export interface Retired {
  readonly upstream: Upstream;
  readonly paths: ReadonlySet<string>;
}

const EVERYTHING_NEW = { removed: [], reopened: [], retuned: [], changed: [] } as const;

export class Fleet {
  readonly #deps: FleetDeps;
  readonly #partitionKey: Uint8Array;
  readonly #mutes = new Map<string, () => void>();
  #generation = 0;

  /** Makes the upstreams and routes of a first configuration; nothing is asked yet. */
  constructor(config: HeadgateConfig, deps: FleetDeps) {
    this.#deps = deps;
    // One for the life of the process: without secrets it is made up, and private answers are found by it.
    this.#partitionKey = partitionKey(config);
    const added = [...config.upstreams.keys()];
    const paths = config.routes.map(({ path }) => path);
    this.#exchange(config, {
      upstreams: { ...EVERYTHING_NEW, added },
      routes: { ...EVERYTHING_NEW, added: paths },
    });
  }

  /** Probes everything once. */
  async start(): Promise<void> {
    await Promise.all([...this.#deps.routes.values()].map((route) => route.discovery.start()));
  }

  /** Takes up the next configuration, of which this is new; throws before anything has changed, or not at all. */
  take(config: HeadgateConfig, changes: Pick<Changes, 'upstreams' | 'routes'>): Taken {
    const { subscriptions } = this.#deps;
    const { retired, fresh } = this.#exchange(config, changes);
    for (const route of fresh) for (const member of route.members) this.#announceKnown(route, member);
    const ready = Promise.all(
      fresh.map(async (route) => {
        await route.discovery.start();
        // Not waited for: many may listen, each with lists of its own.
        void subscriptions.replan(route.config.path);
      }),
    );
    return { ready, retired };
  }

  stop(): void {
    for (const route of this.#deps.routes.values()) route.discovery.stop();
  }

  #exchange(
    config: HeadgateConfig,
    { upstreams: named, routes: paths }: Pick<Changes, 'upstreams' | 'routes'>,
  ): { readonly retired: readonly Retired[]; readonly fresh: readonly RouteRuntime[] } {
    const { upstreams, routes, metrics } = this.#deps;
    const gone = [...named.removed, ...named.reopened];
    const opened = this.#openAll(config, [...named.added, ...named.reopened]);
    const next = new Map(
      [...config.upstreams.keys()].map((name) => [
        name,
        opened.get(name)?.upstream ?? (upstreams.get(name) as Upstream),
      ]),
    );
    const changing = new Set([...paths.added, ...paths.changed]);
    const touched = new Set([...gone, ...named.retuned]);
    const built = new Map(
      config.routes.map((route) => {
        const before = routes.get(route.path);
        if (before !== undefined && !changing.has(route.path)) return [route.path, before];
        const made = this.#build(config, route, next, (name) =>
          upstreams.has(name) && !gone.includes(name) ? this.#standing(name) : undefined,
        );
        if (before !== undefined)
          made.routing.ownership.adopt(before.routing.ownership, ranksKept(before, made, touched));
        return [route.path, made];
      }),
    );
    const retired = gone.map(
      (name): Retired => ({
        upstream: upstreams.get(name) as Upstream,
        paths: new Set(
          [...routes.values()].filter((route) => isOn(route, name)).map(({ config: { path } }) => path),
        ),
      }),
    );
    const over = [...paths.removed, ...paths.changed].map((path) => routes.get(path) as RouteRuntime);
    // From here on nobody else runs, and what fails of it must not keep the rest from being done.
    for (const name of gone) this.#surely(() => this.#forget(name));
    this.#surely(() => metrics.configure({ upstreams: [...next.keys()], routes: [...built.keys()] }));
    fill(upstreams, next);
    fill(routes, built);
    for (const [name, { mute }] of opened) this.#mutes.set(name, mute);
    for (const name of named.reopened) metrics.upstreamReplaced(name);
    for (const route of over) this.#surely(() => this.#retire(route));
    for (const upstream of config.upstreams.values()) this.#surely(() => this.#watch(upstream));
    return { retired, fresh: [...changing].map((path) => built.get(path) as RouteRuntime) };
  }

  #openAll(config: HeadgateConfig, names: readonly string[]): ReadonlyMap<string, Opened> {
    const opened = new Map<string, Opened>();
    try {
      for (const name of names) opened.set(name, this.#deps.open(configOf(config, name)));
    } catch (error) {
      for (const { upstream } of opened.values()) void upstream.close();
      throw error;
    }
    return opened;
  }

  #surely(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#deps.log.error({ err: error }, 'a step of taking up the configuration failed');
    }
  }

  #retire({ config, discovery }: RouteRuntime): void {
    discovery.stop();
    this.#deps.subscriptions.unannounced(config.path);
  }

  #forget(name: string): void {
    this.#mutes.get(name)?.();
    this.#mutes.delete(name);
    this.#deps.cache.forget(name);
    this.#deps.subscriptions.forget(name);
  }

  #watch(upstream: UpstreamConfig): void {
    const { subscriptions } = this.#deps;
    const isWatched = subscriptions.watched(upstream.name) !== undefined;
    if (upstream.subscribe && !isWatched) subscriptions.watch(upstream, gatewayMeta());
    if (!upstream.subscribe && isWatched) subscriptions.unwatch(upstream.name);
  }

  /** What any route knows of an upstream. */
  #standing(name: string): Standing | undefined {
    const standings = [...this.#deps.routes.values()].flatMap(({ members, discovery }) =>
      members.filter(({ config }) => config.name === name).map(({ rank }) => discovery.standing(rank)),
    );
    return standings.find(({ kind }) => kind === 'seen') ?? standings[0];
  }

  #build(
    config: HeadgateConfig,
    route: RouteConfig,
    upstreams: ReadonlyMap<string, Upstream>,
    known: (upstream: string) => Standing | undefined,
  ): RouteRuntime {
    const { metrics, remainders, version } = this.#deps;
    const members = route.upstreams.map((name, rank): Member => {
      const upstream = configOf(config, name);
      return {
        ...{ rank, config: upstream, identity: upstreamIdentity(upstream) },
        upstream: upstreams.get(name) as Upstream,
      };
    });
    const routing = new Routing(
      route,
      members.map((member) => member.config),
    );
    const discovery: Discovery = new Discovery({
      ...{ ...this.#deps, members, version, known },
      onStanding: (member, standing, before) => {
        const current = this.#deps.routes.get(route.path);
        // What a route learns that is no more is nobody's news.
        if (current?.discovery === discovery) this.#noteStanding(route.path, member, standing, before);
      },
    });
    const parts = {
      ...{ ...this.#deps, members, routing, discovery },
      dropped: (upstream: string, reason: DropReason) => metrics.itemDropped(upstream, reason),
    };
    const lists = new Lists({ ...parts, route, remainders, cursors: cursorsOf(config, route, members) });
    return {
      ...{ config: route, members, routing, discovery, lists, learner: new Learner(parts) },
      identify: createIdentify(config, route, this.#partitionKey),
      carried: createCarried(config, route),
      generation: ++this.#generation,
    };
  }

  #announceKnown({ config: { path }, discovery }: RouteRuntime, member: Member): void {
    const standing = discovery.standing(member.rank);
    if (standing.kind === 'seen') this.#announce(path, member, standing);
  }

  #announce(path: string, { config }: Member, { seen }: Extract<Standing, { kind: 'seen' }>): void {
    const { subscriptions } = this.#deps;
    const told = toldBy(seen);
    subscriptions.watched(config.name)?.announced(told);
    subscriptions.announced(path, { config, meta: gatewayMeta(), ...told });
  }

  #noteStanding(path: string, member: Member, standing: Standing, before: Standing): void {
    const { log, subscriptions } = this.#deps;
    const { name, protocol } = member.config;
    if (standing.kind === 'seen') {
      this.#announce(path, member, standing);
      if (before.kind !== 'seen') subscriptions.arrived(path, listsOf(standing.seen));
    }
    if (standing.kind === before.kind) return;
    if (standing.kind === 'legacy' && protocol === 'modern')
      log.error(
        { route: path, upstream: name, answered: standing.why },
        'the upstream speaks an older revision, which `protocol: modern` does not allow: write `protocol: auto`',
      );
    log.info({ route: path, upstream: name, standing: standing.kind }, 'upstream probed');
  }
}

/** The ranks of the upstreams that are as they were, before and after. */
function ranksKept(
  before: RouteRuntime,
  after: RouteRuntime,
  touched: ReadonlySet<string>,
): ReadonlyMap<number, number> {
  const ranks = new Map(after.members.map(({ config, rank }) => [config.name, rank]));
  return new Map(
    before.members.flatMap(({ config: { name }, rank }): (readonly [number, number])[] => {
      const now = ranks.get(name);
      return now === undefined || touched.has(name) ? [] : [[rank, now]];
    }),
  );
}

function isOn({ members }: RouteRuntime, upstream: string): boolean {
  return members.some(({ config: { name } }) => name === upstream);
}

function configOf({ upstreams }: HeadgateConfig, name: string): UpstreamConfig {
  return upstreams.get(name) as UpstreamConfig;
}

function cursorsOf({ secrets }: HeadgateConfig, { path }: RouteConfig, members: readonly Member[]) {
  return createCursorCodec(
    routeDigest(
      path,
      members.map((member) => member.identity),
    ),
    members.length,
    secrets.map((secret) => createHmac('sha256', secret.reveal()).update('headgate cursor v1').digest()),
  );
}

function fill<Value>(map: Map<string, Value>, values: ReadonlyMap<string, Value>): void {
  map.clear();
  for (const [key, value] of values) map.set(key, value);
}
