/**
 * Lists what has not been listed, so that routing knows who owns a name (design, section 4.6).
 *
 * *Bounded by* {@link LEARN_MS} a list, and shared: whoever asks for the same while it is under way waits for it, and
 * when the last of them has left, nothing more is asked (R35).
 */

import type { MethodRow } from '../protocol/methods.ts';
import { Abort, type Signal } from '../protocol/signal.ts';
import { type Asking, audienceOf, type Member } from './ask.ts';
import { endless, fetchPart, type PartsDeps } from './parts.ts';
import { editionOf, ownedBy } from './teach.ts';

/** The walk of one list has this long. A call waits for it, so it is no longer than a client's patience. */
export const LEARN_MS = 5_000;
/**
 * How long a list that carries no ttl counts as known, and one that was cut short as known as far as it came: walking
 * again for every unknown name would be polling.
 */
export const LISTED_MS = 30_000;

/** A list that has changed each time it was walked is taken for what it was last. */
const MAX_WALKS = 3;

export interface LearnDeps extends PartsDeps {
  readonly members: readonly Member[];
}

/** What became of the walk of one list. */
type Walked =
  | {
      readonly kind: 'listed';
      /** `part`: what lies behind its bounds is unknown, and no name can be said to be nobody's. */
      readonly extent: 'whole' | 'part';
      readonly scope: 'public' | 'private';
      /** Until then it counts as known. */
      readonly untilMs: number;
    }
  | { readonly kind: 'failed' };

/** Walks under way, and how many wait for them. */
interface Learning {
  readonly done: Promise<boolean>;
  readonly gone: Abort;
  waiterCount: number;
}

export class Learner {
  readonly #deps: LearnDeps;
  readonly #learning = new Map<string, Learning>();

  constructor(deps: LearnDeps) {
    this.#deps = deps;
  }

  /** Resolves to whether every upstream's list is known to its end. *Never* rejects but when the caller has left. */
  async learn(rows: readonly MethodRow[], asking: Asking): Promise<boolean> {
    asking.signal.throwIfAborted();
    const { params, capabilities, meta } = asking.texts;
    const methods = rows.map((row) => row.method);
    const key = JSON.stringify([asking.partition, asking.version, params, capabilities, meta, methods]);
    const learning = this.#learning.get(key) ?? this.#begin(key, rows, asking);
    const waited = asking.waiting();
    learning.waiterCount++;
    try {
      return await unlessLeft(learning.done, asking.signal);
    } finally {
      waited();
      if (--learning.waiterCount === 0) {
        // Whoever comes now begins anew: what is being aborted is of no use.
        if (this.#learning.get(key) === learning) this.#learning.delete(key);
        learning.gone.abort(new DOMException('nobody waits for it any more', 'AbortError'));
      }
    }
  }

  #begin(key: string, rows: readonly MethodRow[], asking: Asking): Learning {
    const gone = new Abort();
    const timer = setTimeout(() => gone.abort(new DOMException('took too long', 'TimeoutError')), LEARN_MS);
    timer.unref();
    // Whoever is first here must not take the walk along when leaving, nor count its time alone: others wait for it.
    const lasting: Asking = { ...asking, signal: gone, waiting: () => () => undefined };
    const { routing, members } = this.#deps;
    const walks = rows.flatMap((row) =>
      routing
        .withoutClaims(ownedBy(row))
        .map((rank) => this.#learnOne(row, members[rank] as Member, lasting)),
    );
    const done = Promise.all(walks)
      .then((known) => known.every(Boolean))
      .finally(() => {
        clearTimeout(timer);
        if (this.#learning.get(key)?.gone === gone) this.#learning.delete(key);
      });
    const learning = { done, gone, waiterCount: 0 };
    this.#learning.set(key, learning);
    return learning;
  }

  /** Whether the list is known to its end. */
  async #learnOne(row: MethodRow, member: Member, asking: Asking): Promise<boolean> {
    const owned = ownedBy(row);
    const { rank } = member;
    const { ownership } = this.#deps.routing;
    const edition = editionOf(member, row, asking);
    const extent = () => ownership.extent(owned, rank, asking.partition, this.#deps.now(), edition);
    let isWhole = false;
    // A list that changes while it is walked is walked again: what is new may be what is looked for.
    for (let walks = 0; walks < MAX_WALKS && extent() === 'unknown'; walks++) {
      const ticket = ownership.ticket();
      const walked = await this.#walk(row, member, asking);
      if (walked.kind === 'failed') return false;
      const audience = audienceOf(member, walked.scope, asking.partition);
      ownership.markListed(owned, audience, rank, walked.untilMs, edition, walked.extent, ticket);
      isWhole = walked.extent === 'whole';
    }
    return extent() === 'unknown' ? isWhole : extent() === 'whole';
  }

  async #walk(row: MethodRow, member: Member, asking: Asking): Promise<Walked> {
    const startedAt = this.#deps.now();
    const isOver = () => asking.signal.aborted || this.#deps.now() - startedAt >= LEARN_MS;
    let cursor: string | undefined;
    let untilMs = startedAt + LISTED_MS;
    let scope: 'public' | 'private' | undefined;
    let extent: 'whole' | 'part' = 'whole';
    for (let pages = 0; ; pages++) {
      const part = isOver() ? undefined : await this.#part(member, row, asking, cursor);
      if (part?.kind === 'none') break;
      if (part?.kind !== 'page') {
        // Too long is not the same as broken: what cannot be walked in time never can.
        if (pages === 0 || !isOver()) return { kind: 'failed' };
        extent = 'part';
        break;
      }
      if (pages === 0) untilMs = Math.max(untilMs, startedAt + part.ttlMs);
      scope = scope === 'private' ? scope : part.scope;
      const next = part.page.nextCursor;
      if (next === undefined) break;
      if (endless(next, { cursor, pages }) !== undefined) {
        // Behind the same cursor there is nothing but what was seen; behind another, nobody knows.
        if (next !== cursor) extent = 'part';
        break;
      }
      cursor = next;
    }
    if (extent === 'part') {
      this.#cutShort(row, member);
      untilMs = startedAt + LISTED_MS;
    }
    // Nothing was said of whom "none of this" concerns.
    return { kind: 'listed', extent, scope: scope ?? 'private', untilMs };
  }

  /**
   * A client's own list may join the flight of a page: so a page has all the time of a walk, however late it is
   * asked for. The walk itself leaves the flight when its time is over.
   */
  #part(member: Member, row: MethodRow, asking: Asking, cursor: string | undefined) {
    return fetchPart(this.#deps, member, row, asking, cursor, LEARN_MS).catch(() => undefined);
  }

  /** A list too long for its time counts as known as far as it came, or it would be walked for every unknown name. */
  #cutShort(row: MethodRow, member: Member): void {
    const upstream = member.config.name;
    const message =
      'a list was not walked to its end: names behind it are not routed; claims in the configuration would do';
    this.#deps.logOnce(
      `cut-short ${upstream} ${row.method}`,
      'warn',
      { upstream, method: row.method },
      message,
    );
  }
}

/** Waits, as long as the caller does. */
function unlessLeft<T>(work: Promise<T>, signal: Signal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}
