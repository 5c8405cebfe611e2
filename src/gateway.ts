/**
 * The composition root: the only file that knows every room.
 *
 * Puts the rooms together, opens the ports, and takes everything down again in the order in which nothing is lost.
 * `fleet.ts` makes upstreams and routes of a configuration, `reload.ts` takes up another one.
 */
import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { Happenings } from './admin/happenings.ts';
import { pageFiles } from './admin/page-files.ts';
import { purge } from './admin/purging.ts';
import { createAdmin } from './admin/server.ts';
import { startupSummary } from './admin/summary.ts';
import { createViews } from './admin/views.ts';
import type { RemainderPage } from './aggregate/list.ts';
import { unlearn } from './aggregate/teach.ts';
import { PrivateBounds } from './auth/forward.ts';
import { createMemoryStore } from './cache/memory.ts';
import { createRemoteStore } from './cache/redis/remote.ts';
import { createRemainders } from './cache/remainders.ts';
import { createCache } from './cache/through.ts';
import type { LoadResult } from './config/load.ts';
import type { Secret } from './config/secret.ts';
import type { HeadgateConfig } from './config/types.ts';
import { createEdge } from './edge/server.ts';
import { Fleet } from './fleet.ts';
import { Clients } from './legacy/clients.ts';
import { createLogger, onceLogger } from './observability/log.ts';
import { createMetrics, type Metrics } from './observability/metrics.ts';
import { createPipeline, type RouteRuntime } from './pipeline.ts';
import { CURRENT_VERSION } from './protocol/meta.ts';
import { Repeats } from './protocol/repeats.ts';
import { Reloading, type ReloadOutcome } from './reload.ts';
import { Retiring } from './retiring.ts';
import { Subscriptions } from './subscriptions/subscriptions.ts';
import { HELD_READS_BYTES, HeldBytes } from './upstream/held.ts';
import type { Upstream, UpstreamObserver } from './upstream/types.ts';
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
  /**
   * Takes up another configuration, or keeps this one and says why, in the log and here. *Never* rejects.
   * @param file its name, for problems; @param why the occasion.
   */
  reload(read: LoadResult, file: string, why: string): Promise<ReloadOutcome>;
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
  const routes = new Map<string, RouteRuntime>();
  const store = createMemoryStore({
    ...config.cache.memory,
    now,
    upstreamCount: () => upstreams.size,
    observer: metrics,
    onHeld: (upstream) => subscriptions.watched(upstream)?.heldChanged(),
  });
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
  const deps = { cache, now, wallClock: Date.now, bounds: new PrivateBounds(), logOnce, maxEntryBytes };
  const fleet = new Fleet(config, {
    ...{ ...deps, upstreams, routes, subscriptions, metrics, log },
    version: io.version,
    remainders: createRemainders<RemainderPage>({ now }),
    open(upstream) {
      const { observer, mute } = muteable(metrics);
      const opened = createUpstream(upstream, {
        ...{ now, observer, held },
        log: (level, message, fields) => log[level](fields, message),
      });
      return { upstream: opened, mute };
    },
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
  const clients = new Clients({ handle: pipeline, routes, now });
  const edge = createEdge({
    ...{ config, handle: clients.handle, metrics, log, now },
    onClosing: () => clients.closing(),
    checks: () => (redis?.required === true ? [{ name: 'redis', holds: remote?.state === 'up' }] : []),
  });
  const admin =
    config.admin === false
      ? undefined
      : createAdmin({
          address: config.admin.address,
          token: () => tokenOf(reloading.config),
          upstreams: () => upstreams.keys(),
          purge: (request) => purge(cache, [...upstreams.keys()], request),
          page: pageFiles(),
          views: createViews({
            ...{ version: io.version, store, subscriptions, metrics, happenings, log, now },
            ...{ handle: pipeline, wallClock: Date.now },
            config: () => reloading.config,
            routes: () => routes,
            upstreams: () => upstreams,
            redis: () => remote?.state,
            checks: () => edge.checks(),
          }),
          log,
        });
  const retiring = new Retiring({
    onFailed: (upstream, error) => log.error({ upstream, err: error }, 'an upstream could not be closed'),
  });
  const reloading = new Reloading({
    ...{ config, log, metrics },
    apply(next, changes) {
      const { ready, retired } = fleet.take(next, changes);
      const mayUse = edge.noteOpen();
      edge.reconfigure(next);
      clients.reconfigured();
      for (const { upstream, paths } of retired) retiring.add(upstream, () => mayUse(upstream.name, paths));
      return ready;
    },
  });

  const closeUpstreams = async (): Promise<void> => {
    fleet.stop();
    clients.close();
    subscriptions.close();
    await Promise.all([...[...upstreams.values()].map((upstream) => upstream.close()), retiring.close()]);
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
  await fleet.start();
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
    reload: (read, file, why) => reloading.reload(read, file, why),
    shutdown(reason) {
      if (draining) return;
      draining = true;
      reloading.end();
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

function tokenOf({ admin }: HeadgateConfig): Secret | undefined {
  return admin === false ? undefined : admin.token;
}

/** Of an upstream whose name another one has, how it is is nobody's news; what it does counts. */
function muteable(metrics: Metrics): { readonly observer: UpstreamObserver; mute(): void } {
  let isMuted = false;
  return {
    observer: {
      ...metrics,
      upstreamUp: (upstream, state) => {
        if (!isMuted) metrics.upstreamUp(upstream, state);
      },
      circuitOpen: (upstream, state) => {
        if (!isMuted) metrics.circuitOpen(upstream, state);
      },
    },
    mute() {
      isMuted = true;
    },
  };
}
