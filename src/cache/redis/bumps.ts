/**
 * Writing bumps. One that could not be written, or not surely, is made good by a bump of everything as soon as
 * possible; until then that upstream's part of the shared tier is not used here.
 */
import { EVERYTHING } from '../remote-types.ts';
import type { Bus } from './bus.ts';
import type { Call } from './calls.ts';
import type { Scripts } from './scripts.ts';
import type { Upstream } from './upstream.ts';

/** Fields of one bump: a message of some 50 KiB. More, and everything of the upstream is over. */
export const BUMPED_MAX = 1_000;
/** A bump that Redis refuses is tried again after this, doubled up to the second. */
const RETRY_MIN_MS = 100;
const RETRY_MAX_MS = 2_000;

export interface BumpsOptions {
  readonly scripts: Pick<Scripts, 'bump'>;
  readonly call: Call;
  readonly commandMs: number;
  readonly bus: Pick<Bus, 'announce'>;
  /** Whether Redis is used. */
  readonly isUp: () => boolean;
  readonly onWritten: (upstream: Upstream) => void;
}

export interface Bumps {
  /** @returns whether it was written within the command deadline. *Never* rejects. */
  write(upstream: Upstream, fields: readonly string[], how: 'told' | 'quietly'): Promise<boolean>;
  /** Makes good what could not be written. To be called when Redis is used again. */
  makeGood(upstreams: Iterable<Upstream>): void;
  /** Waits for those under way, each within its deadline. */
  close(): Promise<void>;
}

export function createBumps({ scripts, call, commandMs, bus, isUp, onWritten }: BumpsOptions): Bumps {
  const underWay = new Set<Promise<boolean>>();
  const retries = new Map<Upstream, NodeJS.Timeout | 'under way'>();
  let closed = false;

  async function send(
    upstream: Upstream,
    fields: readonly string[],
    told: readonly string[],
  ): Promise<boolean> {
    if (!isUp()) return false;
    const { ledger, names, name } = upstream;
    // Every bump is a link of the chain that replicas follow, also one that is none of their business.
    const message = bus.announce(name, told);
    const outcome = await call('bump', scripts.bump(names, ledger.floor, message, fields), commandMs);
    if (outcome.kind === 'failed') return false;
    ledger.bumped(outcome.value.token, outcome.value.previous);
    onWritten(upstream);
    return true;
  }

  async function write(
    upstream: Upstream,
    fields: readonly string[],
    how: 'told' | 'quietly',
  ): Promise<boolean> {
    upstream.writingCount++;
    const written = await send(upstream, fields, how === 'told' ? fields : []);
    if (!written) {
      upstream.unwrittenCount++;
      retryIn(upstream, RETRY_MIN_MS);
    }
    upstream.writingCount--;
    return written;
  }

  function retryIn(upstream: Upstream, ms: number): void {
    if (closed || retries.has(upstream)) return;
    const timer = setTimeout(() => void retry(upstream, ms), ms);
    timer.unref();
    retries.set(upstream, timer);
  }

  async function retry(upstream: Upstream, ms: number): Promise<void> {
    retries.set(upstream, 'under way');
    const count = upstream.unwrittenCount;
    const written = count === 0 || (await send(upstream, [EVERYTHING], [EVERYTHING]));
    // What failed while this was under way may be later than it.
    if (written && upstream.unwrittenCount === count) upstream.unwrittenCount = 0;
    retries.delete(upstream);
    if (upstream.unwrittenCount > 0) retryIn(upstream, Math.min(ms * 2, RETRY_MAX_MS));
  }

  return {
    write(upstream, fields, how) {
      const bump = write(upstream, fields.length > BUMPED_MAX ? [EVERYTHING] : fields, how);
      underWay.add(bump);
      void bump.then(() => underWay.delete(bump));
      return bump;
    },
    makeGood(upstreams) {
      for (const upstream of upstreams) {
        const waiting = retries.get(upstream);
        if (upstream.unwrittenCount === 0 || waiting === 'under way') continue;
        clearTimeout(waiting);
        void retry(upstream, RETRY_MIN_MS);
      }
    },
    async close() {
      closed = true;
      for (const waiting of retries.values()) if (waiting !== 'under way') clearTimeout(waiting);
      await Promise.all(underWay);
    },
  };
}
