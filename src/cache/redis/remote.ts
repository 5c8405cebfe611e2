/**
 * The shared tier in Redis: what `remote-types.ts` promises, put together.
 *
 * Redis is used only while its order is known here: after every lost connection and every missed deadline all
 * upstreams are synchronised first (`gate.ts`, `sync.ts`), and an upstream with a bump that is not surely written is
 * left alone (`bumps.ts`). What counts is decided in the scripts (`lua.ts`).
 */
import type { Secret } from '../../config/secret.ts';
import type { RedisConfig } from '../../config/types.ts';
import type { Logger } from '../../observability/log.ts';
import type {
  RemoteChange,
  RemoteEntry,
  RemoteFound,
  RemoteObserver,
  RemoteSlot,
  RemoteStore,
  RemoteStoring,
} from '../remote-types.ts';
import { createBumps } from './bumps.ts';
import { createBus } from './bus.ts';
import { createCall } from './calls.ts';
import { createConnection } from './connect.ts';
import { within } from './deadline.ts';
import { decode, ENVELOPE_MAX_BYTES, encode, type Sealed } from './envelope.ts';
import { createGate } from './gate.ts';
import { Ledger } from './ledger.ts';
import { channelOf, namesOf } from './names.ts';
import { createScripts } from './scripts.ts';
import { createSealer, type Random } from './seal.ts';
import { createSync } from './sync.ts';
import type { Upstream } from './upstream.ts';

/** Signs of life on the bus. */
const BEAT_MS = 1_000;
/** Every so many beats it is asked what was missed; at each, while the bus is broken. */
const BEATS_PER_POLL = 2;
/** No entry is kept longer, whatever is asked for. */
const KEEP_MAX_MS = 172_800_000;
const ORIGIN_BYTES = 8;

export interface RemoteOptions {
  readonly config: RedisConfig;
  /** The first seals private answers, all open them. Empty: private answers are not shared. */
  readonly secrets: readonly Secret[];
  /** The configured names. One that is used without standing here is added, and used after a moment. */
  readonly upstreams: readonly string[];
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly random: Random;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
  readonly observer: RemoteObserver;
}

/** Begins to connect. *Bounded by* the names of upstreams, and by the bounds of the files it is made of. */
export function createRemoteStore(options: RemoteOptions): RemoteStore {
  const { config, now, random, log, observer } = options;
  const { commandMs } = config.timeouts;
  const sealer = createSealer(options.secrets, random);
  const channel = channelOf(config.keyPrefix);
  const upstreams = new Map<string, Upstream>();
  const listeners = new Set<(change: RemoteChange) => void>();
  let epoch = 0;
  let beats = 0;

  const data = createConnection('commands', {
    config,
    random,
    log,
    events: {
      ready() {
        observer.redisUp('up');
        gate.attempt();
      },
      lost() {
        observer.redisUp('down');
        epoch++;
        for (const { ledger } of upstreams.values()) ledger.interrupted();
        gate.trip();
      },
    },
  });
  const subscriber = createConnection('bus', {
    config,
    random,
    log,
    events: { ready: () => bus.listen(), lost: () => undefined },
  });
  const scripts = createScripts(data.client, () => epoch);
  const call = createCall(observer, now, () => gate.trip());
  const sync = createSync({ scripts, call, epoch: () => epoch, now, observer, onMissed });
  const gate = createGate({
    connection: data,
    timeouts: config.timeouts,
    observer,
    prepare: () => sync.run(upstreams.values(), 'connect', 'first'),
    onUp() {
      bus.forgive();
      bumps.makeGood(upstreams.values());
    },
  });
  const bus = createBus({
    connection: subscriber,
    channel,
    origin: Buffer.from(random(ORIGIN_BYTES)).toString('hex'),
    now,
    observer,
    onBumped({ upstream: name, fields, token, previous }) {
      const upstream = upstreams.get(name);
      // Nothing of it is held here.
      if (upstream === undefined) return;
      upstream.ledger.bumped(token, previous);
      tell({ upstream: name, fields, source: 'replica' });
      sync.watchGap(upstream);
    },
    onEcho: ({ upstream, token, previous }) => upstreams.get(upstream)?.ledger.bumped(token, previous),
    onGap: () => resync('gap', 'first'),
    onListening: () => resync('connect', 'last'),
  });
  const bumps = createBumps({
    scripts,
    call,
    commandMs,
    bus,
    isUp: () => gate.state === 'up',
    onWritten: sync.watchGap,
  });
  const ticker = setInterval(tick, BEAT_MS);
  ticker.unref();
  for (const name of options.upstreams) upstreamOf(name);
  observer.redisUp('down');
  observer.redisCircuit('closed');
  data.open();
  subscriber.open();

  function upstreamOf(name: string): Upstream {
    const known = upstreams.get(name);
    if (known !== undefined) return known;
    const ledger = new Ledger(now());
    const names = namesOf(config.keyPrefix, name);
    const made: Upstream = { name, names, ledger, syncedIn: -1, writingCount: 0, unwrittenCount: 0 };
    upstreams.set(name, made);
    if (gate.state === 'up') void sync.run([made], 'connect', 'first');
    return made;
  }

  function usable({ syncedIn, writingCount, unwrittenCount }: Upstream): boolean {
    return gate.state === 'up' && syncedIn === epoch && writingCount === 0 && unwrittenCount === 0;
  }

  function unavailable(operation: 'lookup' | 'store'): 'unavailable' {
    if (gate.state === 'down') observer.redisError(operation, 'circuit_open');
    return 'unavailable';
  }

  function tell(change: RemoteChange): void {
    for (const listener of listeners) {
      try {
        listener(change);
      } catch (error) {
        // One listener in trouble must not keep a change from the others, nor end the process.
        log.error({ err: error }, 'redis: a change could not be passed on');
      }
    }
  }

  function onMissed({ name }: Upstream): void {
    tell({ upstream: name, fields: ['*'], source: 'resync' });
  }

  function resync(reason: 'connect' | 'poll' | 'gap', look: 'first' | 'last'): void {
    if (gate.state === 'up') void sync.run(upstreams.values(), reason, look);
  }

  async function tick(): Promise<void> {
    if (gate.state !== 'up') {
      bus.forgive();
      return;
    }
    const health = bus.check();
    if (++beats % BEATS_PER_POLL === 0 || health === 'broken') resync('poll', 'first');
    const outcome = await within(data.client.publish(channel, bus.beat()), commandMs);
    if (outcome.kind === 'ok') return;
    observer.redisError('sync', outcome.reason);
    if (outcome.reason !== 'reply') gate.trip();
  }

  /** @param slot what it was found under: a caller's own entries are sealed, and only they. */
  function entryOf(
    raw: Buffer | undefined,
    key: string,
    slot: 'own' | 'shared',
    { token, waitedMs }: { readonly token: number; readonly waitedMs: number },
  ): RemoteEntry | undefined {
    if (raw === undefined) return undefined;
    const entry: Sealed | undefined = decode(raw, key, sealer);
    if (entry === undefined || (entry.scope === 'private') !== (slot === 'own')) {
      observer.redisError('lookup', 'corrupt');
      return undefined;
    }
    const ageMs = Math.max(0, Math.floor((token - entry.receivedAtUs) / 1_000 + waitedMs));
    return { tail: entry.tail, scope: entry.scope, ttlMs: entry.ttlMs, ageMs, uris: entry.uris };
  }

  async function lookup(upstream: Upstream, shared: RemoteSlot, own?: RemoteSlot): Promise<RemoteFound> {
    const { ledger, names } = upstream;
    const before = epoch;
    const startedAt = now();
    const slots = own === undefined ? [shared] : [shared, own];
    const mostBytes = config.maxEntryBytes + ENVELOPE_MAX_BYTES;
    const asked = await call('lookup', scripts.lookup(names, ledger.floor, mostBytes, slots), commandMs);
    if (asked.kind === 'failed' || epoch !== before || !usable(upstream)) return { kind: 'unavailable' };
    const { token, born, corruptCount, found } = asked.value;
    ledger.loaded(token, born, now());
    for (let i = 0; i < corruptCount; i++) observer.redisError('lookup', 'corrupt');
    // Something was bumped after Redis looked: what it found may be over.
    if (ledger.seen > token) return { kind: 'asked', token, own: undefined, shared: undefined };
    const read = { token, waitedMs: now() - startedAt };
    return {
      kind: 'asked',
      token,
      own: own && entryOf(found[1], names.entry(own.key), 'own', read),
      shared: entryOf(found[0], names.entry(shared.key), 'shared', read),
    };
  }

  return {
    async lookup(request) {
      const upstream = upstreamOf(request.upstream);
      if (!usable(upstream)) return { kind: unavailable('lookup') };
      return lookup(upstream, request.shared, sealer && request.own);
    },
    async store(entry: RemoteStoring) {
      const upstream = upstreamOf(entry.upstream);
      if (entry.scope === 'private' && sealer === undefined) return 'unavailable';
      if (!usable(upstream)) return unavailable('store');
      if (entry.tail.byteLength > config.maxEntryBytes) return 'too_large';
      const { ledger, names } = upstream;
      if (!ledger.mayStore(entry.token)) return 'superseded';
      const receivedAtUs = Math.max(0, ledger.clockUs(now()) - Math.ceil(entry.ageMs * 1_000));
      const { key, fields } = entry.slot;
      const envelope = encode({ ...entry, receivedAtUs }, names.entry(key), sealer);
      if (envelope === undefined) return 'too_large';
      const stored = await call(
        'store',
        scripts.store(names, ledger.floor, {
          key,
          fields: [...fields, ...entry.uris],
          token: entry.token,
          born: ledger.born,
          keepMs: Math.min(Math.max(1, Math.floor(entry.keepMs)), KEEP_MAX_MS),
          envelope,
        }),
        commandMs,
      );
      return stored.kind === 'ok' ? stored.value : 'unavailable';
    },
    async bump(name, fields, how) {
      return fields.length === 0 || bumps.write(upstreamOf(name), fields, how);
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    get state() {
      return gate.state;
    },
    sealsPrivate: sealer !== undefined,
    async close() {
      clearInterval(ticker);
      await bumps.close();
      gate.close();
      sync.close();
      data.close();
      subscriber.close();
    },
  };
}
