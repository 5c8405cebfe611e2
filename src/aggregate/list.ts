/**
 * Merged lists: one walk through the upstreams of a route, in order, page by page (design, section 5).
 *
 * A page is filled across upstream pages and upstreams; what is left over is where the cursor points. Nothing of a
 * walk is kept but in the cursor, the cache, and (for pages no ttl allows to keep) the remainders.
 */
import { seesCallers } from '../auth/forward.ts';
import type { Remainders } from '../cache/remainders.ts';
import type { RouteConfig } from '../config/types.ts';
import { META_OF_ONE_REQUEST } from '../protocol/meta.ts';
import type { MethodRow } from '../protocol/methods.ts';
import type { Failure } from '../upstream/types.ts';
import type { Asking, Member } from './ask.ts';
import type { CursorCodec } from './cursor.ts';
import { type Item, type Page, pageDigest, scannedBytes } from './page.ts';
import { endless, fetchPart, ownedBy, type Part, type PartsDeps, type Source } from './parts.ts';
import {
  MERGED_PAGE_BYTES,
  nextUpstream,
  type Omission,
  type PagePart,
  type Place,
  type Run,
  START,
  Walk,
} from './walk.ts';

/** A merged page ends when filling it took this long and it holds anything. */
export const FILL_MS = 2_000;
/** First pages have this long, all together; so has an upstream to come to its first item. */
export const FIRST_PAGES_MS = 5_000;
/** First pages asked for at once. */
export const FIRST_PAGES_AT_ONCE = 16;

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
  | { readonly kind: 'failed'; readonly omissions: readonly Omission[] };

export interface ListDeps extends PartsDeps {
  readonly members: readonly Member[];
  readonly route: RouteConfig;
  readonly cursors: CursorCodec;
  readonly remainders: Remainders<RemainderPage>;
}

/** A cut page that no ttl allows to keep: for its walk only. */
export interface RemainderPage {
  readonly page: Page;
  readonly scope: 'public' | 'private';
}

/** Where a page ends; `undefined`: the walk is over. */
type End = { readonly kind: 'end'; readonly place: Place | undefined } | Stop;
type Stop =
  | { readonly kind: 'restart'; readonly why: string }
  | { readonly kind: 'turned-private' }
  | { readonly kind: 'failed' };
type Step =
  | { readonly kind: 'next'; readonly place: Place }
  | { readonly kind: 'full'; readonly place: Place }
  | Stop;

/** What an upstream that sends nothing but empty pages did wrong. */
const NOTHING_IN_TIME: Failure = {
  kind: 'timeout',
  proxyError: 'http_response_timeout',
  detail: 'no item in time',
};
/** What is said of an upstream that was not asked because others took all the time. */
const NO_TURN: Failure = {
  kind: 'full',
  proxyError: 'destination_unavailable',
  detail: 'no time left to ask',
};

/** The context in which only what everybody is taught is known. */
const EVERYBODY = '';

export class Lists {
  readonly #deps: ListDeps;
  /** `rank method` of lists whose later pages turned out private: their walks are private from page one. */
  readonly #turnedPrivate = new Set<string>();

  constructor(deps: ListDeps) {
    this.#deps = deps;
  }

  /** One merged page for this caller; `cursorText` undefined: the first. */
  async page(row: MethodRow, asking: Asking, cursorText: string | undefined): Promise<Merged> {
    const walk = new Walk(row, asking, this.#deps.now());
    if (cursorText === undefined) return this.#firstPage(walk);
    const decoded = this.#deps.cursors.decode(cursorText, row.method);
    if (decoded.kind === 'invalid') return { kind: 'bad-cursor', why: 'Invalid cursor' };
    walk.scope = decoded.position.scope;
    for (const rank of decoded.position.excluded) walk.excluded.add(rank);
    const end = await this.#fill(walk, decoded.position);
    // An empty page for a failure would look like the end of the list: told as one, the cursor can be tried again.
    if (end.kind === 'end' && walk.count === 0 && walk.omissions.length > 0) return this.#failed(walk);
    return this.#finish(walk, end);
  }

  async #firstPage(walk: Walk): Promise<Merged> {
    await this.#fetchFirstPages(walk);
    const parts = [...walk.first.values()];
    if (parts.every((part) => part.kind === 'none')) return { kind: 'none' };
    if (!parts.some((part) => part.kind === 'page')) return this.#failed(walk);
    if (walk.omissions.length > 0 && this.#deps.route.partial === 'fail') return this.#failed(walk);
    walk.scope = this.#scopeOf(walk);
    let end = await this.#fill(walk, START);
    if (end.kind === 'turned-private') {
      // Nothing has been told yet: the walk just begins as what it is.
      walk.scope = 'private';
      walk.restart();
      end = await this.#fill(walk, START);
    }
    return this.#finish(walk, end);
  }

  /** All first pages, 16 at a time under one deadline, so that the scope of the whole is known on page one. */
  async #fetchFirstPages(walk: Walk): Promise<void> {
    const queue = [...this.#deps.members];
    const worker = async (): Promise<void> => {
      for (let member = queue.shift(); member !== undefined; member = queue.shift()) {
        const leftMs = FIRST_PAGES_MS - (this.#deps.now() - walk.startedAt);
        const part: Part =
          leftMs > 0
            ? await fetchPart(this.#deps, member, walk.row, walk.asking, undefined, leftMs)
            : { kind: 'failed', told: { kind: 'failure', failure: NO_TURN } };
        walk.first.set(member.rank, part);
      }
    };
    await Promise.all(Array.from({ length: FIRST_PAGES_AT_ONCE }, worker));
    for (const member of this.#deps.members) {
      const part = walk.first.get(member.rank) as Part;
      if (part.kind === 'page') walk.terms.absorb(part);
      if (part.kind === 'none' && part.source === 'upstream') walk.terms.sawSource('miss');
      if (part.kind === 'failed') walk.omit(member, part.told);
    }
  }

  /** `public` only if every part is, and nobody was left out for who the caller is. */
  #scopeOf(walk: Walk): 'public' | 'private' {
    const isPublic = this.#deps.members.every((member) => {
      const part = walk.first.get(member.rank) as Part;
      if (part.kind !== 'page')
        return part.kind === 'none' && part.source === 'known' ? true : !seesCallers(member.config);
      return part.scope === 'public' && !this.#turnedPrivate.has(`${member.rank} ${walk.row.method}`);
    });
    return isPublic ? 'public' : 'private';
  }

  /** Fills the walk's page from `from` on, and says where it stopped. */
  async #fill(walk: Walk, from: Place): Promise<End> {
    const { members, route, now } = this.#deps;
    let place = from;
    let since = now();
    while (place.rank < members.length) {
      const member = members[place.rank] as Member;
      if (walk.excluded.has(place.rank)) {
        place = nextUpstream(place);
        continue;
      }
      if (walk.count > 0 && (walk.count >= route.pageSize || now() - since > FILL_MS))
        return { kind: 'end', place };
      if (walk.count === 0 && now() - since > FIRST_PAGES_MS) {
        if (route.partial === 'fail') return { kind: 'failed' };
        walk.omit(member, { kind: 'failure', failure: NOTHING_IN_TIME });
        since = now();
        continue;
      }
      const step = await this.#step(walk, member, place);
      if (step.kind === 'full') return { kind: 'end', place: step.place };
      if (step.kind !== 'next') return step;
      place = step.place;
    }
    return { kind: 'end', place: undefined };
  }

  /** Takes what it can from the page at `place`. */
  async #step(walk: Walk, member: Member, place: Place): Promise<Step> {
    const part = await this.#partAt(walk, member, place);
    switch (part.kind) {
      case 'none':
        return { kind: 'next', place: nextUpstream(place) };
      case 'cursor-refused':
        return { kind: 'restart', why: 'The list has changed; start again' };
      case 'failed':
        walk.omit(member, part.told);
        return this.#deps.route.partial === 'fail'
          ? { kind: 'failed' }
          : { kind: 'next', place: nextUpstream(place) };
      case 'page':
        return this.#takePart(walk, member, part, place);
    }
  }

  async #partAt(walk: Walk, member: Member, place: Place): Promise<Part> {
    const first = place.cursor === undefined ? walk.first.get(place.rank) : undefined;
    if (first !== undefined) return first;
    const kept = place.digest === '' ? undefined : this.#deps.remainders.get(this.#remainderKey(walk, place));
    if (kept !== undefined)
      return { kind: 'page', ...kept, ttlMs: 0, kept: 'cached', source: 'hit', ageMs: 0 };
    return fetchPart(this.#deps, member, walk.row, walk.asking, place.cursor, FIRST_PAGES_MS);
  }

  #takePart(walk: Walk, member: Member, part: PagePart, place: Place): Step {
    if (place.digest !== '' && pageDigest(part.page) !== place.digest) {
      return { kind: 'restart', why: 'The list has changed; start again' };
    }
    if (part.scope === 'private' && walk.scope === 'public') {
      this.#turnedPrivate.add(`${place.rank} ${walk.row.method}`);
      return { kind: 'turned-private' };
    }
    walk.terms.absorb(part);
    const { page } = part;
    const offset = this.#take(walk, member, page, place.offset);
    if (offset === page.items.length)
      return { kind: 'next', place: this.#afterPage(walk, member, page, place) };
    const rest = { ...place, offset, digest: pageDigest(page) };
    // What stood in for a failed upstream is old already.
    if (part.kept === 'not-cached' && part.source !== 'stale') this.#keepRest(walk, rest, part);
    return { kind: 'full', place: rest };
  }

  /** Once for a walk: a rest that were kept anew at every cut would never be too old. */
  #keepRest(walk: Walk, rest: Place, { page, scope }: PagePart): void {
    const key = this.#remainderKey(walk, rest);
    if (this.#deps.remainders.get(key) !== undefined) return;
    this.#deps.remainders.put(key, { page: forAnother(page), scope }, scannedBytes(page));
  }

  /** Takes items from `offset` on, as many as fit; returns the offset behind them. */
  #take(walk: Walk, member: Member, page: Page, from: number): number {
    const extras = from === 0 ? 'with' : 'without';
    const taken: Item[] = [];
    let bytes = extras === 'with' ? page.extrasBytes : 0;
    let offset = from;
    for (; offset < page.items.length; offset++) {
      const item = page.items[offset] as Item;
      const size = item.end - item.start + 1;
      const count = walk.count + taken.length;
      if (count >= this.#deps.route.pageSize || (count > 0 && walk.bytes + bytes + size > MERGED_PAGE_BYTES))
        break;
      if (!this.#belongs(walk, member, item)) continue;
      taken.push(item);
      bytes += size;
    }
    walk.add({ page, items: taken, extras }, bytes);
    return offset;
  }

  #afterPage(walk: Walk, member: Member, page: Page, place: Place): Place {
    const cursor = page.nextCursor;
    if (cursor === undefined) return nextUpstream(place);
    const why = endless(cursor, place);
    if (why === undefined) return { ...START, rank: place.rank, cursor, pages: place.pages + 1 };
    const upstream = member.config.name;
    const { method } = walk.row;
    this.#deps.logOnce(
      `endless ${upstream} ${method}`,
      'warn',
      { upstream, method, why },
      'list walk ended early',
    );
    return nextUpstream(place);
  }

  /** Whether a listed item is its upstream's to list: claims exclude, and an earlier owner keeps what it has. */
  #belongs(walk: Walk, member: Member, item: Item): boolean {
    const { routing } = this.#deps;
    const owned = ownedBy(walk.row);
    if (!routing.admits(owned, item.id, member.rank)) return this.#dropped(member, walk.row, 'unclaimed');
    // A page for everybody may not depend on what one caller has been shown.
    const context = walk.scope === 'public' ? EVERYBODY : walk.asking.partition;
    const owner = routing.ownerOfListed(owned, item.id, context, { rank: member.rank, budget: walk.budget });
    return owner === undefined || owner === member.rank || this.#dropped(member, walk.row, 'duplicate');
  }

  #dropped(member: Member, row: MethodRow, reason: 'unclaimed' | 'duplicate'): false {
    const upstream = member.config.name;
    const { method } = row;
    this.#deps.dropped(upstream, reason);
    const message = 'listed items belong to another upstream';
    this.#deps.logOnce(`${reason} ${upstream} ${method}`, 'warn', { upstream, method, reason }, message);
    return false;
  }

  #failed(walk: Walk): Merged {
    return { kind: 'failed', omissions: walk.omissions };
  }

  #finish(walk: Walk, end: End): Merged {
    switch (end.kind) {
      case 'failed':
        return this.#failed(walk);
      case 'restart':
        return { kind: 'bad-cursor', why: end.why };
      case 'turned-private':
        return { kind: 'bad-cursor', why: 'The list has become private; start again' };
      case 'end':
        return this.#pageOf(walk, end.place);
    }
  }

  #pageOf(walk: Walk, place: Place | undefined): Merged {
    const { members, cursors } = this.#deps;
    const { scope, terms, runs } = walk;
    const excluded = [...walk.excluded].sort((a, b) => a - b);
    const { method } = walk.row;
    return {
      kind: 'page',
      runs,
      nextCursor: place && cursors.encode({ method, scope, excluded, ...place }),
      ttlMs: excluded.length > 0 ? 0 : terms.ttlMs,
      scope,
      incomplete: excluded.map((rank) => (members[rank] as Member).config.name),
      source: excluded.length > 0 && terms.source === 'hit' ? 'miss' : terms.source,
      ageMs: terms.ageMs,
    };
  }

  #remainderKey({ asking, row }: Walk, { rank, cursor, digest }: Place): string {
    return JSON.stringify([
      this.#deps.route.path,
      asking.partition,
      row.method,
      rank,
      cursor ?? null,
      digest,
    ]);
  }
}

/** A page without what belongs to the request it came for (R27). */
function forAnother(page: Page): Page {
  return { ...page, meta: page.meta.filter((member) => !META_OF_ONE_REQUEST.has(member.key)) };
}
