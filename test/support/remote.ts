/** A replica's shared tier, as the tests see it. */
import { randomBytes } from 'node:crypto';
import { createRemoteStore, type RemoteOptions } from '../../src/cache/redis/remote.ts';
import type { RemoteChange, RemoteFound, RemoteStore } from '../../src/cache/remote-types.ts';
import { Secret } from '../../src/config/secret.ts';
import type { RedisConfig } from '../../src/config/types.ts';
import { until } from './mcp.ts';

export const UPSTREAM = 'docs';
export const COMMAND_MS = 25;
export const MAX_ENTRY_BYTES = 64 << 10;

export interface Replica {
  readonly store: RemoteStore;
  readonly changes: RemoteChange[];
  /** What the observer was told: `redisError lookup timeout`; durations left out. */
  readonly lines: string[];
  /** What was logged, as JSON. */
  readonly log: string[];
  /** Waits until it is used, and looks. */
  up(): Promise<void>;
  /** Looks up the public entry `key` and says what is there: its text, or why there is none. */
  text(key?: string): Promise<string | undefined>;
  /** Waits until it can ask. */
  ask(key?: string): Promise<Extract<RemoteFound, { kind: 'asked' }>>;
  /** Asks and stores `text`, as a load does. */
  load(text: string, key?: string): ReturnType<RemoteStore['store']>;
}

export type ReplicaOptions = Partial<Omit<RemoteOptions, 'config'>> & {
  readonly config?: Partial<RedisConfig>;
};

export const slotOf = (key: string) => ({ key, fields: ['m:read', `k:${key}`] });
export const entryOf = (token: number, text: string, key = 'abc') => ({
  upstream: UPSTREAM,
  slot: slotOf(key),
  token,
  tail: Buffer.from(text),
  scope: 'public' as const,
  ttlMs: 60_000,
  ageMs: 0,
  keepMs: 120_000,
  uris: [`u:${key}`],
});

export function startReplica(url: string, options: ReplicaOptions = {}): Replica {
  const changes: RemoteChange[] = [];
  const lines: string[] = [];
  const log: string[] = [];
  const write = (fields: unknown, message: string) => void log.push(JSON.stringify({ fields, message }));
  const note =
    (name: string) =>
    (...said: unknown[]) =>
      void lines.push([name, ...said.filter((value) => typeof value === 'string')].join(' '));
  const store = createRemoteStore({
    secrets: [new Secret('a secret for the tests, long enough')],
    upstreams: [UPSTREAM],
    now: () => performance.now(),
    random: randomBytes,
    log: { info: write, warn: write, error: write },
    observer: {
      redisUp: note('redisUp'),
      redisCircuit: note('redisCircuit'),
      redisError: note('redisError'),
      redisOperation: note('redisOperation'),
      busMessage: note('busMessage'),
      busResync: note('busResync'),
    },
    ...options,
    config: {
      endpoint: { kind: 'url', url: new Secret(url) },
      keyPrefix: 'headgate:',
      timeouts: { connectMs: 1_000, commandMs: COMMAND_MS },
      maxEntryBytes: MAX_ENTRY_BYTES,
      required: false,
      ...options.config,
    },
  });
  store.onChange((change) => changes.push(change));
  const lookup = (key: string) => store.lookup({ upstream: UPSTREAM, own: undefined, shared: slotOf(key) });
  const replica: Replica = {
    store,
    changes,
    lines,
    log,
    up: () => until(() => store.state === 'up', 'the shared tier is used', 10_000),
    async text(key = 'abc') {
      const found = await lookup(key);
      if (found.kind === 'unavailable') return 'unavailable';
      return found.shared && Buffer.from(found.shared.tail).toString();
    },
    async ask(key = 'abc') {
      for (let tries = 0; tries < 1_000; tries++) {
        const found = await lookup(key);
        if (found.kind === 'asked') return found;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      throw new Error('timed out: asked');
    },
    async load(text, key = 'abc') {
      return store.store(entryOf((await replica.ask(key)).token, text, key));
    },
  };
  return replica;
}
