/**
 * One list of one upstream in one edition, as it was learnt page by page, and what is forgotten of it again.
 *
 * What a list no longer names must be forgotten, or a resource that moved to another upstream would be the first
 * one's for ever. But pages come in any order: from several walks at once, from memory, from a walk that nobody
 * finished, or so late that the list has changed since. So that nothing is forgotten that was merely not walked, and
 * nothing comes back that is gone:
 *
 * - Every page has a *ticket*, a number drawn before it was asked for. Each id keeps the ticket of the page that named
 *   it last.
 * - A first page that was loaded (not served from memory) begins a *chain*. A page continues the chain only if it
 *   stands at the cursor that the page before it gave, and was asked for after the chain had begun. So a chain that
 *   reaches a page without a next cursor has seen the whole list, whichever walks its pages came from.
 * - Then ids with a ticket older than the chain's first page are dropped: no page of this chain named them, nor any
 *   page asked for since. A list of one page is exact at once. An abandoned walk drops nothing.
 * - A page that was asked for before a chain that has been walked to its end is an answer from the past: not taken.
 * - A page from memory is as good as one that was loaded, for the cache drops the later pages of a list when its
 *   first is loaded anew. It can continue a chain, and never begins one: its first page said nothing new.
 */

/** Where a page stands in its list, and how it came. */
export interface Place {
  /** Names the list: everything of a request that makes it what it is, but the caller. */
  readonly edition: string;
  /** Drawn from `Ownership.ticket()` before the page was asked for. */
  readonly ticket: number;
  /** Where it stands; undefined: it is the first. */
  readonly cursor: string | undefined;
  /** Where it says the list goes on; undefined: it is the last. */
  readonly next: string | undefined;
  /** From the upstream, or from memory. */
  readonly came: 'loaded' | 'kept';
}

/** How far a list is known: to its end, as far as it was walked, or not (any more). */
export type Extent = 'whole' | 'part' | 'unknown';

/** Walks of one list that can be followed side by side: beyond it the one begun first is no longer followed. */
export const CHAINS = 16;

interface Chain {
  /** The ticket of its first page. */
  readonly ticket: number;
  /** The last ticket that was drawn when its first page came. */
  readonly begunAt: number;
}

/** Room for ids. `full`: names behind are unknown; `too-long`: only this one is, which hardly anybody can ask for. */
export interface Share {
  take(id: string): 'taken' | 'full' | 'too-long';
  release(id: string): void;
}

/** *Bounded by* its {@link Share} and {@link CHAINS}. */
export class Edition {
  /** Of each id: the ticket of the page that named it last. */
  readonly #ids = new Map<string, number>();
  /** By the cursor that continues them. */
  readonly #chains = new Map<string, Chain>();
  /** The ticket at which a page's ids were noted last: a page served from memory is not gone through again. */
  readonly #pages = new WeakMap<object, number>();
  /** The tickets of the newest chain that began, and of the newest one that came to its end. */
  #begunTicket = 0;
  #wholeTicket = 0;
  /** The ticket of the last page for whose ids there was no room; 0: there was always. */
  #refusedTicket = 0;
  #mark: { readonly extent: 'whole' | 'part'; readonly untilMs: number; readonly ticket: number } | undefined;

  /** As much of another as outlasts the walks that are under way: what it names, and how far it is known. */
  static from(other: Edition): Edition {
    const edition = new Edition();
    for (const [id, ticket] of other.#ids) edition.#ids.set(id, ticket);
    edition.#begunTicket = other.#begunTicket;
    edition.#wholeTicket = other.#wholeTicket;
    edition.#refusedTicket = other.#refusedTicket;
    edition.#mark = other.#mark;
    return edition;
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  get size(): number {
    return this.#ids.size;
  }

  ids(): Iterable<string> {
    return this.#ids.keys();
  }

  /**
   * Takes in a page; returns how many of its ids were not taken.
   * @param page identifies the page's bytes. @param drawn the last ticket that was drawn.
   */
  learn(ids: Iterable<string>, page: object, place: Place, drawn: number, share: Share): number {
    if (place.came === 'loaded' && place.ticket < this.#wholeTicket) return 0;
    const chain = this.#chainAt(page, place, drawn);
    const refusedCount = this.#note(ids, page, place.ticket, share);
    if (chain === undefined) return refusedCount;
    if (place.next === undefined) this.#finish(chain, share);
    else this.#follow(place.next, chain);
    return refusedCount;
  }

  /** Notes how far the list was walked. A list for whose ids there was no room is not known to its end. */
  mark(extent: 'whole' | 'part', untilMs: number, drawn: number): void {
    const isShort = this.#refusedTicket > 0;
    this.#mark = { extent: isShort ? 'part' : extent, untilMs, ticket: drawn };
  }

  /** How far it is known at `nowMs`; marks made before the ticket `forgotten` was drawn do not count. */
  extent(nowMs: number, forgotten: number): Extent {
    const mark = this.#mark;
    if (mark === undefined || nowMs >= mark.untilMs || mark.ticket < forgotten) return 'unknown';
    // Refused since it was marked.
    return this.#refusedTicket > mark.ticket ? 'part' : mark.extent;
  }

  #chainAt(page: object, { cursor, came, ticket }: Place, drawn: number): Chain | undefined {
    if (cursor === undefined) {
      // Those who waited for one load hold one page: the chain has begun with the first of them.
      if (came === 'kept' || this.#pages.has(page)) return undefined;
      this.#begunTicket = Math.max(this.#begunTicket, ticket);
      return { ticket, begunAt: drawn };
    }
    const chain = this.#chains.get(cursor);
    if (chain === undefined || ticket <= chain.begunAt) return undefined;
    this.#chains.delete(cursor);
    return chain;
  }

  #note(ids: Iterable<string>, page: object, ticket: number, share: Share): number {
    const notedAt = this.#pages.get(page);
    if (notedAt !== undefined && notedAt >= this.#begunTicket) return 0;
    this.#pages.set(page, ticket);
    let refusedCount = 0;
    for (const id of ids) {
      const before = this.#ids.get(id);
      const taken = before === undefined ? share.take(id) : 'taken';
      if (taken === 'taken') this.#ids.set(id, Math.max(before ?? 0, ticket));
      else refusedCount++;
      if (taken === 'full') this.#refusedTicket = Math.max(this.#refusedTicket, ticket);
    }
    return refusedCount;
  }

  #follow(next: string, chain: Chain): void {
    const other = this.#chains.get(next);
    // Where two chains meet, the newer one tells more.
    if (other !== undefined && other.ticket > chain.ticket) return;
    this.#chains.set(next, chain);
    if (this.#chains.size <= CHAINS) return;
    const [first] = this.#chains.keys();
    if (first !== undefined) this.#chains.delete(first);
  }

  #finish({ ticket }: Chain, share: Share): void {
    if (ticket <= this.#wholeTicket) return;
    this.#wholeTicket = ticket;
    if (this.#refusedTicket < ticket) this.#refusedTicket = 0;
    for (const [cursor, chain] of this.#chains) if (chain.ticket <= ticket) this.#chains.delete(cursor);
    for (const [id, notedAt] of this.#ids) {
      if (notedAt >= ticket) continue;
      this.#ids.delete(id);
      share.release(id);
    }
  }
}
