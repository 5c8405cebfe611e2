/**
 * The edge: the MCP port and the status port, from listening to the end of the drain.
 */
import type { FastifyInstance } from 'fastify';
import { createAdmission } from '../auth/admission.ts';
import { formatAddress } from '../config/address.ts';
import type { Address, HeadgateConfig } from '../config/types.ts';
import type { Logger } from '../observability/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Handle } from '../protocol/exchange.ts';
import { readHead } from '../protocol/headers.ts';
import { Roster } from '../protocol/roster.ts';
import { createClientAddress } from './client-address.ts';
import { createCors } from './cors.ts';
import { type Drain, type DrainResult, startDrain } from './drain.ts';
import { onCollected } from './endpoint.ts';
import type { EdgeContext, EdgeSettings, Live } from './live.ts';
import { createMcpServer } from './mcp-server.ts';
import { Shedding } from './shedding.ts';
import { type Check, createStatus } from './status.ts';
import { Sweeper } from './sweeper.ts';

export interface EdgeOptions {
  readonly config: HeadgateConfig;
  /** The request path. */
  readonly handle: Handle;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Told when a drain takes no more requests. */
  readonly onClosing?: () => void;
  /** What must hold beside the edge's own for the gateway to be ready. */
  readonly checks?: () => readonly Check[];
}

export interface Edge {
  /**
   * Opens both ports. @returns their base URLs; port 0 has become a real one. Rejects with Node's system error,
   * its `address` and `port` those of the configuration; nothing is left open then.
   */
  listen(): Promise<{ readonly mcp: string; readonly status: string }>;
  /**
   * Takes up another configuration: what comes from now on is held to it. Listens of a route that is no more are ended.
   * Addresses, and the limits that Node itself keeps, stay.
   */
  reconfigure(config: HeadgateConfig): void;
  /**
   * Notes the requests that are open now, listens aside. @returns whether one of them, of these routes, may still be for
   * that upstream: it is not known whose it is, or it is known to be its.
   */
  noteOpen(): (upstream: string, paths: ReadonlySet<string>) => boolean;
  /** What must hold for the gateway to take work, as the status port tells it. */
  checks(): readonly Check[];
  /** Shuts down gracefully, once; later calls get the same result. */
  drain(): Promise<DrainResult>;
  /** Cuts off what a drain is still waiting for; begins one if there is none. */
  force(): void;
}

/** Makes the edge of a gateway. */
export function createEdge(options: EdgeOptions): Edge {
  const { metrics, checks } = options;
  let { config } = options;
  const context = createContext(options);
  const mcp = createMcpServer(config.listen, context);
  const status = createStatus({ metrics, checks: () => checksOf(context, checks) });
  let drain: Drain | undefined;
  const begin = (): Drain => {
    drain ??= startDrain({
      context,
      shutdown: config.shutdown,
      stopAccepting: async () => {
        await mcp.close();
        await status.close();
      },
      cutConnections: () => mcp.server.closeAllConnections(),
    });
    return drain;
  };

  return {
    async listen() {
      const url = await open(mcp, config.listen.address);
      try {
        const addresses = { mcp: url, status: await open(status, config.status) };
        context.phase = 'open';
        metrics.ready('ready');
        return addresses;
      } catch (error) {
        await mcp.close();
        throw error;
      }
    },
    reconfigure(next) {
      config = next;
      Object.assign(context, settingsOf(next));
      for (const live of context.open)
        if (live.route !== undefined && !context.paths.has(live.route)) live.endListen?.();
    },
    noteOpen() {
      let before = [...context.open];
      return (upstream, paths) => {
        before = before.filter((live) => !live.over && live.endListen === undefined);
        return before.some(
          ({ route, facts }) =>
            (route === undefined || paths.has(route)) && (facts.upstream ?? upstream) === upstream,
        );
      };
    },
    checks: () => checksOf(context, checks),
    drain: () => begin().done,
    force: () => begin().force(),
  };
}

/** @returns the base URL; a wildcard is told as it was written, for the reader knows which name leads here. */
async function open(app: FastifyInstance, address: Address): Promise<string> {
  try {
    await app.listen({ host: address.host, port: address.port });
  } catch (error) {
    throw Object.assign(error as Error, { address: formatAddress(address), port: address.port });
  }
  const bound = app.server.address();
  const port = typeof bound === 'object' && bound !== null ? bound.port : address.port;
  return `http://${formatAddress({ host: address.host, port })}`;
}

/** What a reload may change. */
function settingsOf(config: HeadgateConfig): EdgeSettings {
  const { listen, routes } = config;
  const admission = createAdmission(listen);
  const clientAddress = createClientAddress(listen.trustedProxies);
  const proxied = listen.trustedProxies.length > 0;
  return {
    limits: listen.limits,
    headerCount: listen.limits.headerCount,
    paths: new Set(routes.map((route) => route.path)),
    admission,
    cors: createCors(config, admission),
    clientOf: (request) =>
      clientAddress(
        request.socket.remoteAddress,
        proxied ? (readHead(request.rawHeaders).headers.get('x-forwarded-for') ?? '') : undefined,
      ),
  };
}

function createContext({ config, handle, metrics, log, now, onClosing }: EdgeOptions): EdgeContext {
  const { limits } = config.listen;
  const open = new Roster<Live>();
  const shedding = new Shedding({
    now,
    openCount: () => open.size,
    onChange: (strain, lateMs) => {
      const fields = { requests: open.size, lateMs: Math.round(lateMs) };
      if (strain === 'none') log.info(fields, 'requests are taken again');
      else log.warn({ ...fields, strain }, 'new requests are refused: there is too much to do');
    },
  });
  return {
    ...settingsOf(config),
    handle,
    metrics,
    log,
    now,
    sweeper: new Sweeper(Math.min(limits.bodyIdleMs, limits.requestTimeoutMs), now),
    shedding,
    onClosing: onClosing ?? (() => undefined),
    collected: onCollected,
    open,
    phase: 'starting',
    onEmpty: undefined,
  };
}

function checksOf({ phase }: EdgeContext, further: EdgeOptions['checks']): readonly Check[] {
  return [
    { name: 'configuration', holds: true },
    { name: 'listening', holds: phase === 'open' || phase === 'draining' },
    { name: 'not-draining', holds: phase === 'starting' || phase === 'open' },
    ...(further?.() ?? []),
  ];
}
