/**
 * Upstreams that a configuration has no more: each is closed when nothing runs there and nobody is on the way there, so
 * that what was under way ends as it would have (R44).
 *
 * *Bounded by* {@link MAX_RETIRING}: beyond it the one that waits longest is closed at once.
 */
import type { Upstream } from './upstream/types.ts';

/** Upstreams that wait to be closed: each may hold a process, and calls without end can be under way. */
export const MAX_RETIRING = 32;
/** How often it is looked whether something is over that nobody waits for. */
const LOOK_MS = 250;

export interface RetiringDeps {
  /** What cannot be closed is nobody's trouble but the operator's. */
  readonly onFailed: (upstream: string, error: unknown) => void;
}

interface Retired {
  readonly upstream: Upstream;
  /** Whether somebody is on the way there who set out when it was still there. */
  readonly isAwaited: () => boolean;
}

export class Retiring {
  readonly #deps: RetiringDeps;
  readonly #all = new Set<Retired>();
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: RetiringDeps) {
    this.#deps = deps;
  }

  get count(): number {
    return this.#all.size;
  }

  add(upstream: Upstream, isAwaited: () => boolean): void {
    this.#all.add({ upstream, isAwaited });
    const [oldest] = this.#all;
    if (this.#all.size > MAX_RETIRING && oldest !== undefined) void this.#close(oldest);
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS);
    this.#timer.unref();
  }

  /** Closes all of them at once. */
  async close(): Promise<void> {
    await Promise.all([...this.#all].map((retired) => this.#close(retired)));
  }

  #look(): void {
    for (const retired of this.#all)
      if (!retired.isAwaited() && isIdle(retired.upstream)) void this.#close(retired);
  }

  async #close(retired: Retired): Promise<void> {
    this.#all.delete(retired);
    if (this.#all.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    await retired.upstream
      .close()
      .catch((error: unknown) => this.#deps.onFailed(retired.upstream.name, error));
  }
}

/** Whoever came later may have joined what runs there. */
function isIdle(upstream: Upstream): boolean {
  const { running, queued } = upstream.stats();
  return running + queued === 0;
}
