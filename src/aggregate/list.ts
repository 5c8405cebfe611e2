/**
 * Merged lists: one walk through the upstreams of a route, in order, page by page (design, section 5).
 *
 * A page is filled across upstream pages and upstreams; what is left over is where the cursor points. Nothing of a
 * walk is kept but in the cursor, the cache, and (for pages no ttl allows to keep) the remainders.
 */
import type { Remainders } from '../cache/remainders.ts';
import type { RouteConfig } from '../config/types.ts';
import type { MethodRow } from '../protocol/methods.ts';
import type { Owned } from '../routing/ownership.ts';
import { type Asking, audienceOf, type Member, type Told } from './ask.ts';
import { type CursorCodec, MAX_UPSTREAM_CURSOR_LENGTH, type Position } from './cursor.ts';
import { type Item, type Page, pageDigest } from './page.ts';
import { fetchPart, ownedBy, type Part, type PartsDeps, type Source } from './parts.ts';

/** A merged page ends when it holds this much. */
export const MERGED_PAGE_BYTES = 1024 * 1024;
/** A merged page ends when filling it took this long and it holds anything. */
export const FILL_MS = 2_000;
/** First pages have this long, all together. */
export const FIRST_PAGES_MS = 5_000;
/** First pages asked for at once. */
export const FIRST_PAGES_AT_ONCE = 16;
/** Pages of one upstream in one walk: endless cursors end here. */
export const MAX_WALK_PAGES = 10_000;

/** Items of one upstream page, to be spliced in order. */
export interface Run {
  readonly page: Page;
  readonly items: readonly Item[];
}

export type Merged =
  | {
      readonly kind: 'page';
      readonly runs: readonly Run[];
      readonly nextCursor: string | undefined;
      readonly ttlMs: number;
      readonly scope: 'public' | 'private';
      /** Names of upstreams that had to be left out. */
      readonly incomplete: readonly string[];
      /** Of the worst part. */
      readonly source: Source;
      /** Of the oldest part. */
      readonly ageMs: number;
    }
  /** A cursor that is not ours, or a walk that cannot go on: the client starts again. */
  | { readonly kind: 'bad-cursor'; readonly why: string }
  | { readonly kind: 'none' }
  /** Nobody answered, or `partial: fail`. */
  | { readonly kind: 'failed'; readonly told: readonly Told[] };

export interface ListDeps extends PartsDeps {
  readonly members: readonly Member[];
  readonly route: RouteConfig;
  readonly cursors: CursorCodec;
  readonly remainders: Remainders<RemainderPage>;
  readonly now: () => number;
}

/** A cut page that no ttl allows to keep: for its walk only. */
export interface RemainderPage {
  readonly page: Page;
  readonly scope: 'public' | 'private';
}

type PagePart = Extract<Part, { kind: 'page' }>;

/** What a walk carries along. */
interface Walk {
  readonly row: MethodRow;
  readonly asking: Asking;
  readonly startedAt: number;
  scope: 'public' | 'private';
  readonly excluded: Set<number>;
  readonly failures: Told[];
  /** First pages, fetched together on page one. */
  readonly first: Map<number, Part>;
  readonly parts: PagePart[];
  readonly runs: Run[];
  count: number;
  bytes: number;
}

type Step =
  | { readonly kind: 'next'; readonly position: Place }
  | { readonly kind: 'full'; readonly position: Place }
  | { readonly kind: 'stop'; readonly merged: Merged };

type Place = Pick<Position, 'rank' | 'cursor' | 'offset' | 'digest' | 'pages'>;

export class Lists {
  readonly #deps: ListDeps;
  /** `rank method` of lists whose later pages turned out private: their walks are private from page one. */
  readonly #turnedPrivate = new Set<string>();
  readonly #learning = new Map<string, Promise<boolean>>();

  constructor(deps: ListDeps) {
    this.#deps = deps;
  }

  /** One merged page for this caller; `cursorText` undefined: the first. */
  async page(row: MethodRow, asking: Asking, cursorText: string | undefined): Promise<Merged> {
    const walk: Walk = {
      row,
      asking,
      startedAt: this.#deps.now(),
      scope: 'private',
      excluded: new Set(),
      failures: [],
      first: new Map(),
      parts: [],
      runs: [],
      count: 0,
      bytes: 0,
    };
    if (cursorText === undefined) return this.#firstPage(walk);
    const decoded = this.#deps.cursors.decode(cursorText, row.method);
    if (decoded.kind === 'invalid') return { kind: 'bad-cursor', why: 'Invalid cursor' };
    walk.scope = decoded.position.scope;
    for (const rank of decoded.position.excluded) walk.excluded.add(rank);
    const end = await this.#fill(walk, decoded.position);
    if (end.kind === 'stop') return end.merged;
    return this.#finish(walk, end.position, leastTtl(walk.parts));
  }

  async #firstPage(walk: Walk): Promise<Merged> {
    await this.#fetchFirstPages(walk);
    const parts = [...walk.first.values()];
    if (parts.every((part) => part.kind === 'none')) return { kind: 'none' };
    const pages = parts.filter((part) => part.kind === 'page');
    if (pages.length === 0) return { kind: 'failed', told: walk.failures };
    if (walk.failures.length > 0 && this.#deps.route.partial === 'fail')
      return { kind: 'failed', told: walk.failures };
    walk.scope = this.#scopeOf(walk);
    const end = await this.#fill(walk, { rank: 0, cursor: undefined, offset: 0, digest: '', pages: 0 });
    if (end.kind === 'stop') return end.merged;
    return this.#finish(walk, end.position, leastTtl([...pages, ...walk.parts]));
  }

  /** All first pages, 16 at a time under one deadline, so that the scope of the whole is known on page one. */
  async #fetchFirstPages(walk: Walk): Promise<void> {
    const queue = [...this.#deps.members];
    const worker = async (): Promise<void> => {
      for (let member = queue.shift(); member !== undefined; member = queue.shift()) {
        const left = Math.max(1, FIRST_PAGES_MS - (this.#deps.now() - walk.startedAt));
        walk.first.set(
          member.rank,
          await fetchPart(this.#deps, member, walk.row, walk.asking, undefined, left),
        );
      }
    };
    await Promise.all(Array.from({ length: FIRST_PAGES_AT_ONCE }, worker));
    for (const member of this.#deps.members) {
      const part = walk.first.get(member.rank);
      if (part?.kind === 'failed') this.#exclude(walk, member.rank, part.told);
    }
  }

  #exclude(walk: Walk, rank: number, told: Told): void {
    walk.excluded.add(rank);
    walk.failures.push(told);
  }

  #scopeOf(walk: Walk): 'public' | 'private' {
    for (const [rank, part] of walk.first) {
      if (part.kind !== 'page') continue;
      if (part.scope === 'private' || this.#turnedPrivate.has(`${rank} ${walk.row.method}`)) return 'private';
    }
    return 'public';
  }

  /** Fills the walk's page from `from` on; where it stopped, or `end` when nothing is left. */
  async #fill(
    walk: Walk,
    from: Place,
  ): Promise<{ kind: 'at'; position: Place | undefined } | (Step & { kind: 'stop' })> {
    let place = from;
    while (place.rank < this.#deps.members.length) {
      const late = walk.count > 0 && this.#deps.now() - walk.startedAt > FILL_MS;
      if (late || walk.count >= this.#deps.route.pageSize) break;
      const step = await this.#step(walk, place);
      if (step.kind === 'stop') return step;
      place = step.position;
      if (step.kind === 'full') break;
    }
    return { kind: 'at', position: place.rank < this.#deps.members.length ? place : undefined };
  }

  /** Takes what it can from the page at `place`. */
  async #step(walk: Walk, place: Place): Promise<Step> {
    const member = this.#deps.members[place.rank] as Member;
    if (walk.excluded.has(place.rank)) return { kind: 'next', position: nextUpstream(place) };
    const part = await this.#partAt(walk, member, place);
    if (part.kind === 'none') return { kind: 'next', position: nextUpstream(place) };
    if (part.kind === 'cursor-refused') return restart('The list has changed; start again');
    if (part.kind === 'failed') {
      if (this.#deps.route.partial === 'fail')
        return { kind: 'stop', merged: { kind: 'failed', told: [part.told] } };
      this.#exclude(walk, place.rank, part.told);
      return { kind: 'next', position: nextUpstream(place) };
    }
    if (place.digest !== '' && pageDigest(part.page) !== place.digest)
      return restart('The list has changed; start again');
    if (part.scope === 'private' && walk.scope === 'public') {
      this.#turnedPrivate.add(`${place.rank} ${walk.row.method}`);
      return restart('The list has become private; start again');
    }
    walk.parts.push(part);
    return this.#take(walk, member, part, place);
  }

  async #partAt(walk: Walk, member: Member, place: Place): Promise<Part> {
    const first = place.cursor === undefined ? walk.first.get(place.rank) : undefined;
    if (first !== undefined) return first;
    const kept =
      place.digest !== ''
        ? this.#deps.remainders.get(remainderKey(this.#deps.route.path, walk, place))
        : undefined;
    if (kept !== undefined)
      return {
        kind: 'page',
        page: kept.page,
        scope: kept.scope,
        ttlMs: 0,
        kept: 'not-cached',
        source: 'hit',
        ageMs: 0,
      };
    return fetchPart(this.#deps, member, walk.row, walk.asking, place.cursor, FIRST_PAGES_MS);
  }

  #take(walk: Walk, member: Member, part: PagePart, place: Place): Step {
    const { page } = part;
    const taken: Item[] = [];
    let offset = place.offset;
    for (; offset < page.items.length; offset++) {
      const item = page.items[offset] as Item;
      if (!this.#belongs(walk, member, item)) continue;
      const size = item.end - item.start + 1;
      if (this.#isFull(walk, size)) break;
      taken.push(item);
      walk.count++;
      walk.bytes += size;
    }
    if (taken.length > 0) walk.runs.push({ page, items: taken });
    if (offset < page.items.length) {
      const position = { ...place, offset, digest: pageDigest(page) };
      if (part.kept === 'not-cached') {
        this.#deps.remainders.put(
          remainderKey(this.#deps.route.path, walk, position),
          { page, scope: part.scope },
          page.tail.length,
        );
      }
      return { kind: 'full', position };
    }
    return { kind: 'next', position: this.#afterPage(walk, member, page, place) };
  }

  #isFull(walk: Walk, nextBytes: number): boolean {
    if (walk.count === 0) return false;
    return walk.count >= this.#deps.route.pageSize || walk.bytes + nextBytes > MERGED_PAGE_BYTES;
  }

  #afterPage(walk: Walk, member: Member, page: Page, place: Place): Place {
    const cursor = page.nextCursor;
    if (cursor === undefined) return nextUpstream(place);
    const why = endless(cursor, place);
    if (why === undefined) return { rank: place.rank, cursor, offset: 0, digest: '', pages: place.pages + 1 };
    const upstream = member.config.name;
    this.#deps.logOnce(
      `endless ${upstream} ${walk.row.method}`,
      'warn',
      { upstream, method: walk.row.method, why },
      'list walk ended early',
    );
    return nextUpstream(place);
  }

  /** Whether a listed item is its upstream's to list: claims exclude, and an earlier owner keeps what it has. */
  #belongs(walk: Walk, member: Member, item: Item): boolean {
    const owned = ownedBy(walk.row);
    const upstream = member.config.name;
    if (!this.#deps.routing.admits(owned, item.id, member.rank)) {
      this.#dropped(upstream, owned, 'unclaimed');
      return false;
    }
    const owner = this.#deps.routing.ownerOfListed(owned, item.id, walk.asking.partition);
    if (owner === undefined || owner === member.rank) return true;
    this.#dropped(upstream, owned, 'duplicate');
    return false;
  }

  #dropped(upstream: string, owned: Owned, reason: 'unclaimed' | 'duplicate'): void {
    this.#deps.dropped(upstream, reason);
    this.#deps.logOnce(
      `${reason} ${upstream} ${owned}`,
      'warn',
      { upstream, kind: owned, reason },
      'listed items belong to another upstream',
    );
  }

  #finish(walk: Walk, stoppedAt: Place | undefined, ttlMs: number): Merged {
    let position = stoppedAt;
    while (position !== undefined && walk.excluded.has(position.rank)) {
      position = position.rank + 1 < this.#deps.members.length ? nextUpstream(position) : undefined;
    }
    const excluded = [...walk.excluded].sort((a, b) => a - b);
    const names = excluded.map((rank) => (this.#deps.members[rank] as Member).config.name);
    const nextCursor =
      position === undefined
        ? undefined
        : this.#deps.cursors.encode({ method: walk.row.method, scope: walk.scope, excluded, ...position });
    const used = [...walk.parts, ...walk.first.values()].filter((part) => part.kind === 'page');
    const sources: readonly Source[] = names.length > 0 ? ['miss'] : [];
    return {
      kind: 'page',
      runs: walk.runs,
      nextCursor,
      ttlMs: names.length > 0 ? 0 : ttlMs,
      scope: walk.scope,
      incomplete: names,
      source: worstOf([...sources, ...used.map((part) => part.source)]),
      ageMs: Math.max(0, ...used.map((part) => part.ageMs)),
    };
  }

  /**
   * Lists what has not been listed, so that routing knows its owners (design, section 4.6).
   * Shared among callers of one context; resolves to whether every upstream could be listed.
   */
  learn(rows: readonly MethodRow[], asking: Asking): Promise<boolean> {
    const key = JSON.stringify([asking.partition, rows.map((row) => row.method)]);
    const known = this.#learning.get(key);
    if (known !== undefined) return known;
    const walks = rows.flatMap((row) =>
      this.#deps.routing
        .withoutClaims(ownedBy(row))
        .map((rank) => this.#learnOne(row, this.#deps.members[rank] as Member, asking)),
    );
    const learning = Promise.all(walks)
      .then((done) => done.every(Boolean))
      .finally(() => this.#learning.delete(key));
    this.#learning.set(key, learning);
    return learning;
  }

  async #learnOne(row: MethodRow, member: Member, asking: Asking): Promise<boolean> {
    const owned = ownedBy(row);
    const { ownership } = this.#deps.routing;
    if (ownership.isListed(owned, member.rank, asking.partition, this.#deps.now())) return true;
    const startedAt = this.#deps.now();
    // Whoever is first here must not take the walk along when leaving: others wait for it.
    const lasting: Asking = { ...asking, signal: AbortSignal.timeout(FIRST_PAGES_MS) };
    let cursor: string | undefined;
    let until = startedAt + LISTED_MS;
    let scope: 'public' | 'private' = 'public';
    for (let pages = 0; pages < MAX_WALK_PAGES; pages++) {
      const left = FIRST_PAGES_MS - (this.#deps.now() - startedAt);
      if (left <= 0) return false;
      const part = await fetchPart(this.#deps, member, row, lasting, cursor, left).catch(() => undefined);
      if (part === undefined || part.kind === 'failed' || part.kind === 'cursor-refused') return false;
      if (part.kind === 'none') break;
      if (pages === 0) until = Math.max(until, startedAt + part.ttlMs);
      if (part.scope === 'private') scope = 'private';
      const next = part.page.nextCursor;
      if (next === undefined || endless(next, { cursor, pages }) !== undefined) break;
      cursor = next;
    }
    ownership.markListed(owned, audienceOf(member, scope, asking.partition), member.rank, until);
    return true;
  }
}

/** How long a list that carries no ttl counts as known: asking again for every unknown name would be polling. */
const LISTED_MS = 30_000;

function nextUpstream(place: Place): Place {
  return { rank: place.rank + 1, cursor: undefined, offset: 0, digest: '', pages: 0 };
}

function restart(why: string): Step {
  return { kind: 'stop', merged: { kind: 'bad-cursor', why } };
}

/** Why an upstream's next cursor is not followed. */
function endless(next: string, place: Pick<Place, 'cursor' | 'pages'>): string | undefined {
  if (next === place.cursor) return 'the same cursor again';
  if (next.length > MAX_UPSTREAM_CURSOR_LENGTH) return 'a cursor longer than 8 KiB';
  return place.pages + 1 >= MAX_WALK_PAGES ? 'more than 10,000 pages' : undefined;
}

const WORSE: readonly Source[] = ['hit', 'miss', 'stale', 'bypass'];

function worstOf(sources: readonly Source[]): Source {
  return WORSE[Math.max(0, ...sources.map((source) => WORSE.indexOf(source)))] as Source;
}

function leastTtl(parts: readonly PagePart[]): number {
  return parts.length === 0 ? 0 : Math.min(...parts.map((part) => part.ttlMs));
}

function remainderKey(path: string, walk: Walk, place: Pick<Place, 'rank' | 'cursor' | 'digest'>): string {
  return JSON.stringify([
    path,
    walk.asking.partition,
    walk.row.method,
    place.rank,
    place.cursor ?? null,
    place.digest,
  ]);
}
