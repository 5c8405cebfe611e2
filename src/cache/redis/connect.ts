/**
 * The connections to Redis: one for commands, one that listens. The only file that knows ioredis.
 *
 * What is sent is sent once: nothing waits for a connection, and nothing is sent again on the next one, which may lead
 * to another server, where the order of what was begun before does not hold. Connects again for ever.
 */
import { isIP } from 'node:net';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { Address, RedisConfig } from '../../config/types.ts';
import type { Logger } from '../../observability/log.ts';
import type { Random } from './seal.ts';

export type Client = Redis | Cluster;

/** Replies are mapped as ioredis does by default; its type for that does not allow "undefined". */
type Options = Omit<RedisOptions, 'replyMapping'>;

/** Pause before a connection is tried again: 50 ms, doubled up to this, less a random part of it. */
const RECONNECT_MAX_MS = 2_000;
const RECONNECT_MIN_MS = 50;
/** A socket that was told to end, and whose other side does not, is destroyed after this. */
const DISCONNECT_MS = 200;
/** Redirections of one command: a Cluster that moves a slot needs one. */
const REDIRECTIONS_MAX = 3;

/** What happens to a connection. */
export interface ConnectionEvents {
  ready(): void;
  /** It was there and is gone, or could not be made. Of a Cluster: the connection to one of its nodes. */
  lost(): void;
}

export interface Connection {
  readonly client: Client;
  readonly ready: boolean;
  /** Begins to connect. */
  open(): void;
  /** Gives the connection up and makes a new one. */
  reconnect(): void;
  /** Ends it for good, at once. */
  close(): void;
}

export interface ConnectOptions {
  readonly config: Pick<RedisConfig, 'endpoint' | 'timeouts'>;
  readonly random: Random;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  readonly events: ConnectionEvents;
}

/** @param purpose what the log calls it. */
export function createConnection(purpose: 'commands' | 'bus', options: ConnectOptions): Connection {
  const { events, log } = options;
  const client = createClient(options);
  const said = new Set<string>();
  let closed = false;
  client.on('ready', () => {
    if (said.size > 0) log.info({ connection: purpose }, 'redis: connected again');
    said.clear();
    events.ready();
  });
  const lost = (): void => {
    if (!closed) events.lost();
  };
  client.on('close', lost);
  client.on('-node', lost);
  const failed = (error: unknown): void => {
    // Never the error itself: the command in it may hold a password.
    const kind = kindOf(error);
    if (closed || said.has(kind)) return;
    said.add(kind);
    log.warn({ connection: purpose, kind }, 'redis: the connection failed; it is tried again');
  };
  client.on('error', failed);
  client.on('node error', failed);
  const disconnect = (how: 'again' | 'for good'): void => client.disconnect(how === 'again');
  return {
    client,
    get ready() {
      return client.status === 'ready';
    },
    open() {
      // What fails is told by the events.
      client.connect().catch(() => undefined);
    },
    reconnect: () => disconnect('again'),
    close() {
      closed = true;
      disconnect('for good');
    },
  };
}

/** `ECONNREFUSED`, `WRONGPASS`: what may be said of an error. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if ('code' in error && typeof error.code === 'string') return error.code;
  return /^[A-Z]{4,20}\b/.exec(error.message)?.[0] ?? error.name;
}

function createClient({ config: { endpoint, timeouts }, random }: ConnectOptions): Client {
  const retry = (times: number): number => {
    const most = Math.min(RECONNECT_MIN_MS * 2 ** Math.min(times - 1, 10), RECONNECT_MAX_MS);
    return Math.ceil(most * (1 - (random(1)[0] ?? 0) / 512));
  };
  const common: Options = {
    lazyConnect: true,
    connectTimeout: timeouts.connectMs,
    disconnectTimeout: DISCONNECT_MS,
    connectionName: 'headgate',
    disableClientInfo: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    // The bus subscribes itself, to know when it has.
    autoResubscribe: false,
    retryStrategy: retry,
    // A server that became a replica: another one is the master now.
    reconnectOnError: (error) => error.message.includes('READONLY'),
  };
  switch (endpoint.kind) {
    case 'url':
      return new Redis({ ...common, ...fromUrl(endpoint.url.reveal()) });
    case 'sentinel':
      return new Redis({
        ...common,
        sentinels: endpoint.nodes.map(({ host, port }) => ({ host, port })),
        name: endpoint.name,
        db: endpoint.db,
        sentinelRetryStrategy: retry,
        sentinelCommandTimeout: timeouts.connectMs,
        ...credentials(endpoint.username, endpoint.password?.reveal()),
        ...(endpoint.sentinelPassword && { sentinelPassword: endpoint.sentinelPassword.reveal() }),
        ...(endpoint.tls && { tls: {}, enableTLSForSentinelMode: true }),
      });
    case 'cluster':
      return createCluster(endpoint, common, retry);
  }
}

function createCluster(
  { nodes, username, password, tls }: Extract<RedisConfig['endpoint'], { kind: 'cluster' }>,
  { retryStrategy: _, enableOfflineQueue: __, lazyConnect: ___, ...redisOptions }: Options,
  retry: (times: number) => number,
): Client {
  return new Cluster(
    nodes.map(({ host, port }: Address) => ({ host, port })),
    {
      redisOptions: {
        ...redisOptions,
        ...credentials(username, password?.reveal()),
        ...(tls && { tls: {} }),
      },
      lazyConnect: true,
      enableOfflineQueue: false,
      clusterRetryStrategy: retry,
      maxRedirections: REDIRECTIONS_MAX,
      // Nothing is sent again after a failover: see the file's head.
      retryDelayOnFailover: 0,
      retryDelayOnClusterDown: 0,
      retryDelayOnTryAgain: 0,
      slotsRefreshTimeout: redisOptions.connectTimeout ?? RECONNECT_MAX_MS,
    },
  );
}

function credentials(username: string | undefined, password: string | undefined): Options {
  return {
    ...(username !== undefined && username !== '' && { username }),
    ...(password !== undefined && password !== '' && { password }),
  };
}

/** Of `rediss://name:password@host:6379/2`. The configuration has checked that it is one. */
function fromUrl(text: string): Options {
  const url = new URL(text);
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return {
    host: host === '' ? 'localhost' : host,
    port: url.port === '' ? 6379 : Number(url.port),
    db: Number(url.pathname.slice(1)) || 0,
    ...credentials(decodeURIComponent(url.username), decodeURIComponent(url.password)),
    ...(url.protocol === 'rediss:' && { tls: isIP(host) === 0 ? { servername: host } : {} }),
  };
}
