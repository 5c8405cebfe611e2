/**
 * Finding out what was missed: asks Redis for the last bump of each upstream, and says what is over.
 *
 * A bump that is not known here may only be on its way: it is looked for once more a little later. Whoever could not
 * listen in the meantime has missed it for sure.
 */
import type { RemoteObserver } from '../remote-types.ts';
import type { Call } from './calls.ts';
import type { Scripts } from './scripts.ts';
import type { Upstream } from './upstream.ts';

/** A message is on its way for less. */
const LOOK_AGAIN_MS = 250;
/** Nobody waits for this: all upstreams are asked at once. */
const SYNC_MS = 1_000;

type Reason = Parameters<RemoteObserver['busResync']>[0];

export interface SyncOptions {
  readonly scripts: Pick<Scripts, 'sync'>;
  readonly call: Call;
  /** Changes whenever the connection was lost. */
  readonly epoch: () => number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** It cannot be known what was missed of that upstream. */
  readonly onMissed: (upstream: Upstream) => void;
  readonly observer: Pick<RemoteObserver, 'busResync'>;
}

export interface Sync {
  /** @param look `last` when no message can be on its way. *Never* rejects. */
  run(upstreams: Iterable<Upstream>, reason: Reason, look: 'first' | 'last'): Promise<'done' | 'failed'>;
  /** A bump before one that is known is not: it may be on its way. */
  watchGap(upstream: Upstream): void;
  close(): void;
}

export function createSync({ scripts, call, epoch, now, onMissed, observer }: SyncOptions): Sync {
  /** One for each upstream at most. */
  const looks = new Map<Upstream, NodeJS.Timeout>();

  function missed(upstream: Upstream, reason: Reason): void {
    observer.busResync(reason);
    onMissed(upstream);
  }

  function lookAgain(upstream: Upstream, token: number, reason: Reason): void {
    if (looks.has(upstream)) return;
    const timer = setTimeout(() => {
      looks.delete(upstream);
      if (!upstream.ledger.caughtUp(token)) {
        upstream.ledger.skipTo(token);
        missed(upstream, reason);
      }
      watchGap(upstream);
    }, LOOK_AGAIN_MS);
    timer.unref();
    looks.set(upstream, timer);
  }

  function watchGap(upstream: Upstream): void {
    if (upstream.ledger.hasGap) lookAgain(upstream, upstream.ledger.seen, 'gap');
  }

  async function one(upstream: Upstream, reason: Reason, look: 'first' | 'last'): Promise<boolean> {
    const { ledger, names } = upstream;
    const before = epoch();
    const outcome = await call('sync', scripts.sync(names, ledger.seen, ledger.given), SYNC_MS);
    if (outcome.kind === 'failed' || epoch() !== before) return false;
    const verdict = ledger.synchronised(outcome.value, look, now());
    upstream.syncedIn = before;
    if (verdict === 'changed') missed(upstream, reason);
    if (verdict === 'behind') lookAgain(upstream, outcome.value.last, reason);
    return true;
  }

  return {
    async run(upstreams, reason, look) {
      const done = await Promise.all([...upstreams].map((upstream) => one(upstream, reason, look)));
      return done.every(Boolean) ? 'done' : 'failed';
    },
    watchGap,
    close() {
      for (const timer of looks.values()) clearTimeout(timer);
    },
  };
}
