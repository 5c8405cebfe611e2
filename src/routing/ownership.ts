/**
 * Who owns a URI or a name, as learnt from the lists of a route's upstreams (design, section 4).
 *
 * An upstream is known by its rank: its place in the route's order, 0 first. Each has a share of its own, for each
 * kind: *never* is what an earlier one lists forgotten or taken over because a later one lists much. What a list
 * teaches everybody and what it teaches one caller's context are kept apart. How a list is learnt and unlearnt:
 * `edition.ts`. *Bounded by* the constants below; what is refused or forgotten never counts as "listed, and not there".
 */
import { BoundedMap } from '../protocol/bounded-map.ts';
import type { Extent, Place } from './edition.ts';
import { Lessons, type Limits, type Owned } from './lessons.ts';

export type { Extent, Place } from './edition.ts';
export type { Limits, Owned } from './lessons.ts';

/** Ids that one upstream teaches everybody, of one kind: fifty times what a large server lists. */
export const SHARED_LIMIT = 250_000;
/** What they may weigh: as many ids of 20 characters, or 140,000 of 70. */
export const SHARED_BYTES = 32 * 1024 * 1024;
/** Ids of one kind that one context is taught; the upstreams of the route have equal shares of it. */
export const CONTEXT_LIMIT = 100_000;
/** What they may weigh. */
export const CONTEXT_BYTES = 12 * 1024 * 1024;
/** Ids that all contexts together are taught: beyond it the context asked for longest ago is forgotten whole. */
export const CONTEXTS_LIMIT = 500_000;
/** What they may weigh: a single context, filled to its bounds in every kind, fits in. */
export const CONTEXTS_BYTES = 64 * 1024 * 1024;
/** Contexts remembered at once. */
export const CONTEXTS = 4_096;

/** Whom a list teaches: everybody, or the context of the caller it was fetched for. */
export type Audience =
  | { readonly kind: 'everybody' }
  | { readonly kind: 'context'; readonly context: string };

export class Ownership {
  readonly #rankCount: number;
  readonly #shared = new Lessons({ count: SHARED_LIMIT, bytes: SHARED_BYTES });
  readonly #contexts = new BoundedMap<string, Lessons>(CONTEXTS, (gone) => this.#account(gone, -1));
  #contextsCount = 0;
  #contextsBytes = 0;
  /** The last ticket drawn. */
  #drawn = 0;
  /** `kind rank` → the ticket that was drawn when marks made before lost their meaning. */
  readonly #forgotten = new Map<string, number>();

  /** @param rankCount upstreams of the route. */
  constructor(rankCount = 1) {
    this.#rankCount = rankCount;
  }

  /**
   * Takes in what another one knows of upstreams that are as they were, when a route has changed: nothing may have to be
   * listed again to reach what is cached. What the other learns from then on stays there.
   * @param ranks of those upstreams: there, to here.
   */
  adopt(other: Ownership, ranks: ReadonlyMap<number, number>): void {
    this.#drawn = Math.max(this.#drawn, other.#drawn);
    this.#shared.adopt(other.#shared, ranks);
    for (const [context, lessons] of other.#contexts.entries())
      this.#teach({ kind: 'context', context }, (own) => own.adopt(lessons, ranks));
    for (const [key, ticket] of other.#forgotten) {
      const [kind = '', rank] = key.split(' ');
      const after = ranks.get(Number(rank));
      if (after !== undefined) this.#forgotten.set(`${kind} ${after}`, ticket);
    }
  }

  /** A number above all drawn before: to be drawn before a page is asked for, see `edition.ts`. */
  ticket(): number {
    return ++this.#drawn;
  }

  /**
   * Takes in a page of a list of the upstream at `rank`; returns how many of its ids were not taken: there was no
   * room, or they were too long.
   * @param page identifies the page's bytes; the same page is taken in once.
   * @param place default: a page that no list is known to have, which teaches and unteaches nothing else.
   */
  learn(
    kind: Owned,
    audience: Audience,
    rank: number,
    ids: Iterable<string>,
    page: object,
    place: Place = this.#nowhere(),
  ): number {
    // A list that was everybody's and comes private now is not kept up any more by what everybody is told.
    if (audience.kind === 'context' && place.cursor === undefined && place.came === 'loaded')
      this.#shared.find(kind, rank)?.drop(place.edition);
    return this.#teach(audience, (lessons) =>
      lessons.ledger(kind, rank).learn(ids, page, place, this.#drawn),
    );
  }

  /** The upstream says it has none of this any more: what that edition of its list taught is over. */
  learnNone(kind: Owned, audience: Audience, rank: number, edition: string): void {
    this.#teach(audience, (lessons) => lessons.find(kind, rank)?.drop(edition));
  }

  /** Notes for a context who answered when a URI was asked around for. A list that names it goes before. */
  remember(uri: string, rank: number, context: string): void {
    this.#teach({ kind: 'context', context }, (lessons) => lessons.remember(uri, rank));
  }

  /** The rank that owns it for this context: as listed, or as found by asking around. */
  owner(kind: Owned, id: string, context: string): number | undefined {
    const listed = this.listedBy(kind, id, context);
    return listed ?? (kind === 'resources' ? this.#contexts.touch(context)?.told(id) : undefined);
  }

  /** The lowest rank whose lists name or cover it: an earlier upstream's match is never taken by a later one. */
  listedBy(kind: Owned, id: string, context: string, limits: Limits = {}): number | undefined {
    const shared = this.#shared.listedBy(kind, id, limits);
    if (shared === 0) return shared;
    const own = this.#contexts.touch(context)?.listedBy(kind, id, {
      ...limits,
      ...(shared !== undefined && { below: shared }),
    });
    return own ?? shared;
  }

  /** Whether the lists of that upstream name it, as this context sees them. */
  names(kind: Owned, id: string, rank: number, context: string): boolean {
    return (
      this.#shared.find(kind, rank)?.has(id) === true ||
      this.#contexts.get(context)?.find(kind, rank)?.has(id) === true
    );
  }

  /** Notes how far a list was walked. @param ticket drawn before the walk; by default: as it is known now. */
  markListed(
    kind: Owned,
    audience: Audience,
    rank: number,
    untilMs: number,
    edition = '',
    extent: 'whole' | 'part' = 'whole',
    ticket = this.#drawn,
  ): void {
    this.#teach(audience, (lessons) => lessons.ledger(kind, rank).mark(edition, extent, untilMs, ticket));
  }

  /** How far the list of that upstream is known as this context sees it. */
  extent(kind: Owned, rank: number, context: string, nowMs: number, edition = ''): Extent {
    const forgotten = this.#forgotten.get(`${kind} ${rank}`) ?? 0;
    const extents = [this.#shared, this.#contexts.get(context)].map(
      (lessons) => lessons?.find(kind, rank)?.extent(edition, nowMs, forgotten) ?? 'unknown',
    );
    return (
      extents.find((extent) => extent === 'whole') ?? extents.find((extent) => extent === 'part') ?? 'unknown'
    );
  }

  /**
   * The upstream refused its own cursor, or its list has changed: how far it is known is known to nobody any more,
   * not even to a walk under way (R15, R28).
   */
  forgetListed(kind: Owned, rank: number): void {
    this.#forgotten.set(`${kind} ${rank}`, this.ticket());
  }

  #nowhere(): Place {
    return { edition: '', ticket: this.ticket(), cursor: undefined, next: undefined, came: 'kept' };
  }

  /** Lets a list teach its audience, and accounts for it: contexts make room for one another. */
  #teach<R>(audience: Audience, teach: (lessons: Lessons) => R): R {
    if (audience.kind === 'everybody') return teach(this.#shared);
    const lessons = this.#lessonsOf(audience.context);
    this.#account(lessons, -1);
    const result = teach(lessons);
    this.#account(lessons, 1);
    this.#makeRoom(audience.context);
    return result;
  }

  #account({ count, bytes }: Lessons, sign: 1 | -1): void {
    this.#contextsCount += sign * count;
    this.#contextsBytes += sign * bytes;
  }

  /** Forgets other contexts, the one asked for longest ago first, until all fit. */
  #makeRoom(context: string): void {
    while (this.#contextsCount > CONTEXTS_LIMIT || this.#contextsBytes > CONTEXTS_BYTES) {
      const oldest = this.#contexts.oldest();
      if (oldest === undefined || oldest[0] === context) return;
      this.#contexts.delete(oldest[0]);
      this.#account(oldest[1], -1);
    }
  }

  #lessonsOf(context: string): Lessons {
    const known = this.#contexts.touch(context);
    if (known !== undefined) return known;
    const lessons = new Lessons({
      count: Math.ceil(CONTEXT_LIMIT / this.#rankCount),
      bytes: Math.ceil(CONTEXT_BYTES / this.#rankCount),
    });
    this.#contexts.set(context, lessons);
    return lessons;
  }
}
