/**
 * Fetches one page of one upstream's list and says what it is: a page, nothing of the kind, a refused cursor, or a
 * failure. What the page teaches about ownership is learnt here, so that it is learnt however the page was needed.
 */

import { INVALID_PARAMS, METHOD_NOT_FOUND } from '../protocol/errors.ts';
import type { ListShape, MethodRow } from '../protocol/methods.ts';
import { paramsWithCursor } from '../protocol/params.ts';
import type { Owned } from '../routing/ownership.ts';
import type { Routing } from '../routing/resolve.ts';
import { type AskDeps, type Asking, ask, audienceOf, dropPages, type Member, type Told } from './ask.ts';
import type { Discovery } from './discover.ts';
import { type Page, readPage } from './page.ts';

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
  /** The upstream has none of this primitive. */
  | { readonly kind: 'none' }
  | { readonly kind: 'cursor-refused' }
  | { readonly kind: 'failed'; readonly told: Told };

export interface PartsDeps extends AskDeps {
  readonly routing: Routing;
  readonly discovery: Discovery;
  readonly dropped: (upstream: string, reason: 'invalid' | 'duplicate' | 'unclaimed' | 'too_large') => void;
}

const OWNED: Readonly<Record<ListShape['field'], Owned>> = {
  resources: 'resources',
  resourceTemplates: 'templates',
  prompts: 'prompts',
  tools: 'tools',
};

/** What the items of a list are to routing. */
export function ownedBy(row: MethodRow): Owned {
  return OWNED[(row.list as ListShape).field];
}

/** HTTP statuses that mean "none of this" from an upstream whose discover has succeeded (R17). */
const ABSENT: ReadonlySet<number> = new Set([404, 405, 501]);

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
    return { kind: 'none' };
  const cached = await ask(deps, member, asking, {
    row,
    paramsText: paramsWithCursor(asking.params, cursor),
    maxBytes: MAX_PAGE_BYTES,
    deadlineMs,
    ...(cursor !== undefined && { cursor }),
  });
  if (cached.kind === 'other') {
    const part = sortTold(deps, member, cached.value, cursor);
    if (part.kind === 'cursor-refused') dropPages(deps, member, asking, row);
    return part;
  }
  const page = readPage(cached.tail, row.list as ListShape);
  if (page === undefined) return { kind: 'failed', told: notAList() };
  report(deps, member, row, page);
  learn(deps, member, row, asking.partition, page, cached.scope);
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
  if (told.kind === 'error') {
    if (told.code === METHOD_NOT_FOUND) return { kind: 'none' };
    if (told.code === INVALID_PARAMS && cursor !== undefined) return { kind: 'cursor-refused' };
  }
  const absent = told.kind === 'refused' && ABSENT.has(told.status);
  if (absent && deps.discovery.standing(member.rank).kind === 'seen') return { kind: 'none' };
  return { kind: 'failed', told };
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
  for (const bad of page.bad) {
    deps.dropped(upstream, bad.reason);
    deps.logOnce(
      `bad-item ${upstream} ${row.method} ${bad.index} ${bad.why}`,
      'warn',
      { upstream, method: row.method, index: bad.index, why: bad.why },
      'list item dropped',
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

function learn(
  deps: PartsDeps,
  member: Member,
  row: MethodRow,
  partition: string,
  page: Page,
  scope: 'public' | 'private',
): void {
  const owned = ownedBy(row);
  const { routing } = deps;
  const ids = page.items.flatMap((item) => (routing.admits(owned, item.id, member.rank) ? [item.id] : []));
  routing.ownership.learn(owned, audienceOf(member, scope, partition), member.rank, ids, page);
}
