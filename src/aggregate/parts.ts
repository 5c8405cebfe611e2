/**
 * Fetches one page of one upstream's list and says what it is: a page, nothing of the kind, a refused cursor, or a
 * failure. What the page teaches about ownership is learnt here, so that it is learnt however the page was needed.
 */

import { INVALID_PARAMS, METHOD_NOT_FOUND } from '../protocol/errors.ts';
import type { ListShape, MethodRow } from '../protocol/methods.ts';
import { paramsWithCursor } from '../protocol/params.ts';
import type { Routing } from '../routing/resolve.ts';
import { type AskDeps, type Asking, ask, dropPages, type Member, type Told } from './ask.ts';
import { MAX_UPSTREAM_CURSOR_LENGTH } from './cursor.ts';
import type { Discovery } from './discover.ts';
import { type Page, readPage } from './page.ts';
import { ownedBy, teach, teachNone } from './teach.ts';

export { ownedBy } from './teach.ts';

/** Largest page of an upstream: it is held whole while it is cut. */
export const MAX_PAGE_BYTES = 64 * 1024 * 1024;

/** From the best to the worst: a merged page is as good as its worst part. */
export type Source = 'hit' | 'miss' | 'stale' | 'bypass';

export type Part =
  | {
      readonly kind: 'page';
      readonly page: Page;
      readonly ttlMs: number;
      readonly scope: 'public' | 'private';
      /** Whether the cache keeps it, so that a cut page can be continued from there. */
      readonly kept: 'cached' | 'not-cached';
      /** How it came: from memory, from the upstream, or from memory because the upstream failed. */
      readonly source: Source;
      /** How long ago the upstream said it. */
      readonly ageMs: number;
    }
  /** The upstream has none of this primitive: by what it announces, or by its answer to this caller. */
  | { readonly kind: 'none'; readonly source: 'known' | 'upstream' }
  | { readonly kind: 'cursor-refused' }
  | { readonly kind: 'failed'; readonly told: Told };

export interface PartsDeps extends AskDeps {
  readonly routing: Routing;
  readonly discovery: Discovery;
  readonly dropped: (upstream: string, reason: 'invalid' | 'duplicate' | 'unclaimed' | 'too_large') => void;
}

/** HTTP statuses that mean "none of this" from an upstream whose discover has succeeded (R17). */
const ABSENT: ReadonlySet<number> = new Set([404, 405, 501]);

/** Of a page's bad items, these are named in the log, by their index; the others are counted. */
const BAD_ITEMS_NAMED = 5;

/** Pages whose bad items were reported; a page served from memory is not reported again. */
const reported = new WeakSet<Page>();

/** Fetches the page of `member` at `cursor` (undefined: the first). */
export async function fetchPart(
  deps: PartsDeps,
  member: Member,
  row: MethodRow,
  asking: Asking,
  cursor: string | undefined,
  deadlineMs: number,
): Promise<Part> {
  if (row.primitive !== undefined && !deps.discovery.announces(member.rank, row.primitive))
    return { kind: 'none', source: 'known' };
  const { ownership } = deps.routing;
  const ticket = ownership.ticket();
  const cached = await ask(deps, member, asking, {
    row,
    paramsText: () => paramsWithCursor(asking.params, cursor),
    maxBytes: MAX_PAGE_BYTES,
    deadlineMs,
    ...(cursor !== undefined && { cursor }),
  });
  if (cached.kind === 'other') {
    const part = sortTold(deps, member, cached.value, cursor);
    if (part.kind === 'cursor-refused') {
      dropPages(deps, member, asking, row);
      ownership.forgetListed(ownedBy(row), member.rank);
    }
    if (part.kind === 'none') teachNone(deps, member, row, asking);
    return part;
  }
  const page = await readPage(cached.tail, row.list as ListShape);
  if (page === undefined) return { kind: 'failed', told: notAList() };
  report(deps, member, row, page);
  teach(deps, member, row, asking, { page, cached, cursor, ticket });
  const { outcome } = cached;
  const kept = outcome.kind === 'hit' || (outcome.kind === 'miss' && outcome.stored === 'stored');
  return {
    kind: 'page',
    page,
    ttlMs: cached.ttlMs,
    scope: cached.scope,
    kept: kept ? 'cached' : 'not-cached',
    source: outcome.kind,
    ageMs: outcome.kind === 'hit' || outcome.kind === 'stale' ? outcome.ageMs : 0,
  };
}

function sortTold(deps: PartsDeps, member: Member, told: Told, cursor: string | undefined): Part {
  if (told.kind === 'error' && told.code === INVALID_PARAMS && cursor !== undefined)
    return { kind: 'cursor-refused' };
  // Who has sent a first page has the list: "none of this" behind it is a failure, or the rest would be lost unseen.
  if (cursor !== undefined) return { kind: 'failed', told };
  if (told.kind === 'error' && told.code === METHOD_NOT_FOUND) return { kind: 'none', source: 'upstream' };
  const absent = told.kind === 'refused' && ABSENT.has(told.status);
  return absent && deps.discovery.standing(member.rank).kind === 'seen'
    ? { kind: 'none', source: 'upstream' }
    : { kind: 'failed', told };
}

function notAList(): Told {
  return {
    kind: 'failure',
    failure: { kind: 'broken', proxyError: 'http_protocol_error', detail: 'too many items' },
  };
}

function report(deps: PartsDeps, member: Member, row: MethodRow, page: Page): void {
  if (reported.has(page)) return;
  reported.add(page);
  const upstream = member.config.name;
  for (const bad of page.bad) deps.dropped(upstream, bad.reason);
  if (page.bad.length > 0) {
    const items = page.bad.slice(0, BAD_ITEMS_NAMED).map(({ index, why }) => `${index}: ${why}`);
    const fields = { upstream, method: row.method, count: page.bad.length, items };
    deps.logOnce(
      `bad-items ${upstream} ${row.method} ${items.join(' ')}`,
      'warn',
      fields,
      'list items dropped',
    );
  }
  if (page.oddCursor) {
    deps.logOnce(
      `odd-cursor ${upstream} ${row.method}`,
      'warn',
      { upstream, method: row.method },
      'nextCursor is no string: the list ends there',
    );
  }
}

/** Pages of one upstream in one walk: endless cursors end here. */
export const MAX_WALK_PAGES = 10_000;

/** Why an upstream's next cursor is not followed; undefined: it is. `pages`: those before the one it stood on. */
export function endless(
  next: string,
  at: { readonly cursor: string | undefined; readonly pages: number },
): string | undefined {
  if (next === at.cursor) return 'the same cursor again';
  if (next.length > MAX_UPSTREAM_CURSOR_LENGTH) return 'a cursor longer than 8 KiB';
  return at.pages + 1 >= MAX_WALK_PAGES ? 'more than 10,000 pages' : undefined;
}
