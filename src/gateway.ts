/**
 * The composition root: the only file that knows every room.
 *
 * Builds the upstreams, the cache and the routes from a configuration, opens the ports, and takes everything down
 * again in the order in which nothing is lost.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { Happenings } from './admin/happenings.ts';
import { pageFiles } from './admin/page-files.ts';
import { purge } from './admin/purging.ts';
import { createAdmin } from './admin/server.ts';
import { startupSummary } from './admin/summary.ts';
import { createViews } from './admin/views.ts';
import type { Member } from './aggregate/ask.ts';
import { createCursorCodec, routeDigest } from './aggregate/cursor.ts';
import { Discovery, gatewayMeta, type Standing } from './aggregate/discover.ts';
import { Learner } from './aggregate/learn.ts';
import { Lists, type RemainderPage } from './aggregate/list.ts';
import { listsOf, toldBy } from './aggregate/standing.ts';
import { unlearn } from './aggregate/teach.ts';
import { createCarried, createIdentify, partitionKey } from './auth/caller.ts';
import { PrivateBounds, upstreamIdentity } from './auth/forward.ts';
import { createMemoryStore } from './cache/memory.ts';
import { createRemoteStore } from './cache/redis/remote.ts';
import { createRemainders } from './cache/remainders.ts';
import { createCache } from './cache/through.ts';
import type { HeadgateConfig, RouteConfig, UpstreamConfig } from './config/types.ts';
import { createEdge } from './edge/server.ts';
import { Clients } from './legacy/clients.ts';
import type { DropReason } from './observability/labels.ts';
import { createLogger, onceLogger } from './observability/log.ts';
import { createMetrics } from './observability/metrics.ts';
import { createPipeline, type RouteRuntime } from './pipeline.ts';
import { CURRENT_VERSION } from './protocol/meta.ts';
import { Repeats } from './protocol/repeats.ts';
import { Routing } from './routing/resolve.ts';
import { Subscriptions } from './subscriptions/subscriptions.ts';
import { HELD_READS_BYTES, HeldBytes } from './upstream/held.ts';
import type { Upstream } from './upstream/types.ts';
import { createUpstream } from './upstream/upstream.ts';

export interface GatewayIo {
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  readonly version: string;
}

/** A gateway that runs. */
export interface Running {
  /** Base URLs of the listeners, without a path. */
  readonly addresses: { readonly mcp: string; readonly status: string; readonly admin?: string };
  /** Resolves with the exit code when all is shut down: 0, or 3 with work cut off. */
  readonly done: Promise<number>;
  /** Begins to drain; a second call changes nothing. */
  shutdown(reason: string): void;
  /** Cuts off what is still under way. */
  force(): void;
}

/**
 * Starts a gateway. Rejects with a system error (`code`, e.g. `EADDRINUSE`) when a port cannot be had; nothing is
 * left open then.
 */
export async function startGateway(config: HeadgateConfig, io: GatewayIo): Promise<Running> {
  const now = (): number => performance.now();
  const log = createLogger({ ...config.log, colors: process.env.NO_COLOR ? 'never' : 'auto' });
  const logOnce = onceLogger(log);
  const happenings = new Happenings(Date.now);
  const metrics = happenings.beside(
    createMetrics({
      upstreams: [...config.upstreams.keys()],
      routes: config.routes.map((route) => route.path),
      version: io.version,
    }),
  );
  const { maxEntryBytes } = config.cache.memory;
  // Twice: what is to be kept is not let go for the sake of one other.
  const held = new HeldBytes(Math.max(HELD_READS_BYTES, 2 * maxEntryBytes));
  const upstreams = new Map<string, Upstream>();
  for (const upstream of config.upstreams.values()) {
    upstreams.set(
      upstream.name,
      createUpstream(upstream, {
        now,
        observer: metrics,
        held,
        log: (level, message, fields) => log[level](fields, message),
      }),
    );
  }
  const store = createMemoryStore({
    ...config.cache.memory,
    now,
    upstreamCount: () => upstreams.size,
    observer: metrics,
    onHeld: (upstream) => subscriptions.watched(upstream)?.heldChanged(),
  });
  const remainders = createRemainders<RemainderPage>({ now });
  const { redis } = config.cache;
  const remote =
    redis &&
    createRemoteStore({
      config: redis,
      secrets: config.secrets,
      upstreams: [...config.upstreams.keys()],
      now,
      random: randomBytes,
      log,
      observer: metrics,
    });
  const cache = createCache({
    ...{ store, now, observer: metrics },
    ...(remote !== undefined && { remote }),
    onOver: (upstream, method) => {
      for (const { members, routing } of routes.values())
        for (const { config: one, rank } of members)
          if (one.name === upstream) unlearn(routing, rank, method);
    },
  });
  const subscriptions = new Subscriptions({
    ...{ cache, log, now, upstreams },
    heldUris: (upstream) => store.heldUris(upstream),
    notified: (upstream, method) => metrics.upstreamNotified(upstream, method),
  });
  for (const upstream of config.upstreams.values())
    if (upstream.subscribe) subscriptions.watch(upstream, gatewayMeta());
  const deps = { cache, now, wallClock: Date.now, bounds: new PrivateBounds(), logOnce, maxEntryBytes };
  const routes = buildRoutes(config, upstreams, (route, members) => {
    const routing = new Routing(
      route,
      members.map((member) => member.config),
    );
    const onStanding = (member: Member, standing: Standing, before: Standing): void => {
      const { name } = member.config;
      if (standing.kind === 'seen') {
        const told = toldBy(standing.seen);
        subscriptions.watched(name)?.announced(told);
        subscriptions.announced(route.path, { config: member.config, meta: gatewayMeta(), ...told });
        if (before.kind !== 'seen') subscriptions.arrived(route.path, listsOf(standing.seen));
      }
      if (standing.kind === before.kind) return;
      if (standing.kind === 'legacy' && member.config.protocol === 'modern')
        log.error(
          { route: route.path, upstream: name, answered: standing.why },
          'the upstream speaks an older revision, which `protocol: modern` does not allow: write `protocol: auto`',
        );
      log.info({ route: route.path, upstream: name, standing: standing.kind }, 'upstream probed');
    };
    const discovery = new Discovery({ ...deps, members, version: io.version, onStanding });
    const parts = {
      ...deps,
      members,
      routing,
      discovery,
      dropped: (upstream: string, reason: DropReason) => metrics.itemDropped(upstream, reason),
    };
    const lists = new Lists({
      ...parts,
      route,
      cursors: createCursorCodec(
        routeDigest(
          route.path,
          members.map((member) => member.identity),
        ),
        members.length,
        config.secrets.map((secret) =>
          createHmac('sha256', secret.reveal()).update('headgate cursor v1').digest(),
        ),
      ),
      remainders,
    });
    return { routing, discovery, lists, learner: new Learner(parts) };
  });
  metrics.onScrape((gauges) => {
    gauges.cache('memory', {
      entryCount: store.entryCount,
      sizeBytes: store.sizeBytes,
      maxSizeBytes: config.cache.memory.sizeBytes,
    });
    for (const upstream of upstreams.values()) {
      gauges.connections(upstream.name, upstream.stats());
      const heard = subscriptions.isHeard(upstream.name);
      if (heard !== undefined) gauges.subscription(upstream.name, heard ? 'up' : 'down');
    }
  });
  const pipeline = createPipeline({
    ...deps,
    routes,
    subscriptions,
    repeats: new Repeats(),
    version: io.version,
  });
  const clients = new Clients({
    handle: pipeline,
    routes: new Map(
      [...routes].map(([path, { identify, config: route }]) => [
        path,
        { identify, legacyClients: route.legacyClients, carried: createCarried(config, route) },
      ]),
    ),
    now,
  });
  const edge = createEdge({
    ...{ config, handle: clients.handle, metrics, log, now },
    onClosing: () => clients.closing(),
    checks: () => (redis?.required === true ? [{ name: 'redis', holds: remote?.state === 'up' }] : []),
  });

  const names = [...config.upstreams.keys()];
  const admin =
    config.admin === false
      ? undefined
      : createAdmin({
          admin: config.admin,
          upstreams: () => names,
          purge: (request) => purge(cache, names, request),
          page: pageFiles(),
          views: createViews({
            ...{ version: io.version, store, subscriptions, metrics, happenings, log, now },
            ...{ handle: pipeline, wallClock: Date.now },
            config: () => config,
            routes: () => routes,
            upstreams: () => upstreams,
            redis: () => remote?.state,
            checks: () => edge.checks(),
          }),
          log,
        });

  const closeUpstreams = async (): Promise<void> => {
    for (const route of routes.values()) route.discovery.stop();
    clients.close();
    subscriptions.close();
    await Promise.all([...upstreams.values()].map((upstream) => upstream.close()));
    await remote?.close();
  };
  let addresses: { mcp: string; status: string; admin?: string };
  try {
    const opened = await admin?.listen();
    addresses = { ...(await edge.listen()), ...(opened !== undefined && { admin: opened }) };
  } catch (error) {
    await admin?.close();
    await closeUpstreams();
    throw error;
  }
  await Promise.all([...routes.values()].map((route) => route.discovery.start()));
  io.stdout.write(
    startupSummary({
      config,
      addresses,
      routes: [...routes.values()],
      version: io.version,
      revision: CURRENT_VERSION,
    }),
  );

  let finish: (code: number) => void;
  const done = new Promise<number>((resolve) => {
    finish = resolve;
  });
  let draining = false;
  return {
    addresses,
    done,
    shutdown(reason) {
      if (draining) return;
      draining = true;
      log.info({ reason }, 'draining');
      void edge
        .drain()
        .then(async ({ cutOff }) => {
          await admin?.close();
          await closeUpstreams();
          log.info({ cutOff }, 'stopped');
          log.flush();
          finish(cutOff > 0 ? 3 : 0);
        })
        .catch((error: unknown) => {
          log.error({ err: error }, 'shutdown failed');
          log.flush();
          finish(1);
        });
    },
    force: () => edge.force(),
  };
}

type RouteParts = Pick<RouteRuntime, 'routing' | 'discovery' | 'lists' | 'learner'>;

function buildRoutes(
  config: HeadgateConfig,
  upstreams: ReadonlyMap<string, Upstream>,
  build: (route: RouteConfig, members: readonly Member[]) => RouteParts,
): Map<string, RouteRuntime> {
  const key = partitionKey(config);
  return new Map(
    config.routes.map((route) => {
      const members = route.upstreams.map((name, rank): Member => {
        const upstreamConfig = config.upstreams.get(name) as UpstreamConfig;
        return {
          rank,
          config: upstreamConfig,
          upstream: upstreams.get(name) as Upstream,
          identity: upstreamIdentity(upstreamConfig),
        };
      });
      const parts = build(route, members);
      return [route.path, { config: route, members, identify: createIdentify(config, route, key), ...parts }];
    }),
  );
}
