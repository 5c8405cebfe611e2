/** What the tests of the cache room share: a clock that is moved by hand, loads that land when told to. */

import { createMemoryStore, type MemoryOptions } from '../../src/cache/memory.ts';
import type { RemoteStore } from '../../src/cache/remote-types.ts';
import { createCache } from '../../src/cache/through.ts';
import type {
  Cached,
  CacheObserver,
  CachePolicy,
  CacheRequest,
  Entry,
  Load,
  Loaded,
} from '../../src/cache/types.ts';
import type { Signal } from '../../src/protocol/signal.ts';

export const POLICY: CachePolicy = {
  ttlDefaultMs: 0,
  ttlMaxMs: 86_400_000,
  scope: 'respect',
  staleIfErrorMs: 60_000,
};

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
export const textOf = (tail: Uint8Array): string => new TextDecoder().decode(tail);

/** Lets everything run that is ready to run. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A monotonic clock and its timers, moved by hand. */
export function createClock() {
  const timers = new Set<{ readonly at: number; readonly run: () => void }>();
  const clock = {
    at: 1_000.25,
    now: () => clock.at,
    schedule(run: () => void, ms: number) {
      const timer = { at: clock.at + ms, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    advance(ms: number) {
      clock.at += ms;
      for (const timer of [...timers]) {
        if (timer.at > clock.at) continue;
        timers.delete(timer);
        timer.run();
      }
    },
    timerCount: () => timers.size,
  };
  return clock;
}

/** An observer that writes down what it is told: `cacheRequest docs resources/read hit memory`. */
export function createRecorder() {
  const lines: string[] = [];
  const note =
    (name: keyof CacheObserver) =>
    (...said: string[]): void =>
      void lines.push([name, ...said].join(' '));
  const observer: CacheObserver = {
    cacheRequest: note('cacheRequest'),
    cacheBypass: note('cacheBypass'),
    collapsed: note('collapsed'),
    cacheStore: note('cacheStore'),
    cacheEviction: note('cacheEviction'),
    cacheInvalidated: note('cacheInvalidated'),
    cacheOperation: () => undefined,
  };
  return { observer, lines, count: (start: string) => lines.filter((line) => line.startsWith(start)).length };
}

/** One load that the cache has started, to be ended by the test. */
export interface Asked {
  readonly by: string;
  readonly signal: Signal;
  readonly land: (loaded: Loaded<string>) => void;
  readonly crash: (error: Error) => void;
}

/** A cache over a memory store, an upstream whose loads end when told to, and a clock moved by hand. */
export function createRig(memory: Partial<MemoryOptions> = {}, remote?: RemoteStore) {
  const clock = createClock();
  const recorder = createRecorder();
  const store = createMemoryStore({
    sizeBytes: 64 * 1024 * 1024,
    maxEntryBytes: 1024 * 1024,
    now: clock.now,
    upstreamCount: () => 2,
    observer: recorder.observer,
    ...memory,
  });
  const cache = createCache({
    ...{ store, now: clock.now, observer: recorder.observer, schedule: clock.schedule },
    ...(remote !== undefined && { remote }),
  });
  const asked: Asked[] = [];

  const request = (over: Partial<CacheRequest> = {}): CacheRequest => ({
    upstream: 'docs',
    method: 'resources/read',
    baseKey: 'base',
    partition: 'alice',
    policy: POLICY,
    use: 'normal',
    signal: new AbortController().signal,
    ...over,
  });
  const load =
    (by: string): Load<string> =>
    (signal) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        asked.push({ by, signal, land: resolve, crash: reject });
      });
  const complete = (
    text: string,
    over: Partial<Extract<Loaded<string>, { kind: 'complete' }>> = {},
  ): Loaded<string> => ({
    kind: 'complete',
    tail: bytes(`own:${text}`),
    storable: bytes(text),
    hints: { ttlMs: 60_000, cacheScope: 'public' },
    receivedAt: clock.at,
    storableAtAll: true,
    ...over,
  });
  const privately = (text: string, ttlMs = 60_000): Loaded<string> =>
    complete(text, { hints: { ttlMs, cacheScope: 'private' } });
  /** Starts a request; its load, if it comes to one, waits in `asked`. */
  const ask = async (partition: string, over: Partial<CacheRequest> = {}) =>
    cache.through(request({ partition, ...over }), load(partition));
  /** The n-th load that was started. */
  const nth = (n: number): Asked => {
    const found = asked[n];
    if (found === undefined) throw new Error(`only ${asked.length} loads were started`);
    return found;
  };
  /** Asks and lets the load end at once: what is stored afterwards was stored by this. */
  const fill = async (partition: string, loaded: Loaded<string>, over: Partial<CacheRequest> = {}) => {
    const before = asked.length;
    const answer = ask(partition, over);
    await turn();
    if (asked.length > before) nth(before).land(loaded);
    return await answer;
  };
  return { clock, recorder, store, cache, asked, request, load, complete, privately, ask, nth, fill };
}

/** No answer from upstream. */
export const failed = (stale: 'allowed' | 'never' = 'allowed'): Loaded<string> => ({
  kind: 'failed',
  value: '502',
  stale,
});
/** An answer that may not be kept. */
export const uncacheable = (share: 'leader' | 'context', value = 'error'): Loaded<string> => ({
  kind: 'uncacheable',
  value,
  share,
});

/** `own:text hit ttl=…`: an answer in one line, for comparison. */
export function said(answer: Cached<string>): string {
  const { outcome } = answer;
  const how =
    outcome.kind === 'miss' ? `miss ${outcome.stored}${outcome.collapsed ? ' collapsed' : ''}` : outcome.kind;
  if (answer.kind === 'other') return `${answer.value} ${how}`;
  return `${textOf(answer.tail)} ${answer.scope} ${how} ttl=${answer.ttlMs}`;
}

export const entry = (over: Partial<Entry> = {}): Entry => ({
  tail: bytes(',"contents":[]}}'),
  upstream: 'docs',
  scope: 'public',
  ttlMs: 60_000,
  receivedAt: 0,
  deleteAt: Number.MAX_SAFE_INTEGER,
  loadOrder: 1,
  ...over,
});
