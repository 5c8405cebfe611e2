/** What a fetched page teaches routing: whose the items are that it names (design, section 4). */
import { varyingHeaders } from '../auth/forward.ts';
import { cacheKey } from '../cache/key.ts';
import type { Cached } from '../cache/types.ts';
import type { LogOnce } from '../observability/log.ts';
import { LIST_METHODS, type ListShape, type MethodRow } from '../protocol/methods.ts';
import type { Owned, Place } from '../routing/ownership.ts';
import type { Routing } from '../routing/resolve.ts';
import { type Asking, audienceOf, type Member } from './ask.ts';
import type { Page } from './page.ts';

export interface TeachDeps {
  readonly routing: Routing;
  readonly logOnce: LogOnce;
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

/**
 * Forgets how far the lists of an upstream are known, where what it answered to this method (undefined: to all) is over:
 * a name that is unknown may be new.
 */
export function unlearn(routing: Routing, rank: number, method: string | undefined): void {
  for (const row of LIST_METHODS)
    if (method === undefined || method === row.method) routing.ownership.forgetListed(ownedBy(row), rank);
}

/**
 * Names an upstream's list: everything of a request that makes it what it is, but the caller. A list that was asked
 * for without a capability says nothing of what is listed with it.
 */
export function editionOf(member: Member, row: MethodRow, asking: Asking): string {
  const { params, capabilities, meta } = asking.texts;
  return cacheKey({
    upstream: member.config.name,
    upstreamDigest: member.identity,
    revision: asking.version,
    method: row.method,
    forwarded: varyingHeaders(member.config, asking.head),
    uri: undefined,
    cursor: undefined,
    params,
    capabilities,
    meta,
  });
}

/** A page as it came. */
export interface Taught {
  readonly page: Page;
  readonly cached: Extract<Cached<unknown>, { kind: 'complete' }>;
  readonly cursor: string | undefined;
  /** Drawn from the route's ownership before the page was asked for. */
  readonly ticket: number;
}

/** Teaches the ids of a page. What there is no room for is said once. */
export function teach(deps: TeachDeps, member: Member, row: MethodRow, asking: Asking, taught: Taught): void {
  const { page, cached, cursor, ticket } = taught;
  const { kind } = cached.outcome;
  const place: Place = {
    edition: editionOf(member, row, asking),
    ticket,
    cursor,
    next: page.nextCursor,
    came: kind === 'miss' || kind === 'bypass' ? 'loaded' : 'kept',
  };
  const owned = ownedBy(row);
  const audience = audienceOf(member, cached.scope, asking.partition);
  const ids = admitted(deps.routing, owned, member.rank, page);
  const refusedCount = deps.routing.ownership.learn(owned, audience, member.rank, ids, page, place);
  if (refusedCount === 0) return;
  const upstream = member.config.name;
  const fields = { upstream, method: row.method, count: refusedCount };
  const message = 'listed names are too many or too long to be learnt; claims in the configuration would do';
  deps.logOnce(`not-learnt ${upstream} ${row.method}`, 'warn', fields, message);
}

/** Teaches that the upstream has none of this, as it says to this caller. */
export function teachNone({ routing }: TeachDeps, member: Member, row: MethodRow, asking: Asking): void {
  const audience = audienceOf(member, 'private', asking.partition);
  routing.ownership.learnNone(ownedBy(row), audience, member.rank, editionOf(member, row, asking));
}

/** Lazily: of a page that was learnt already, nobody asks for them. */
function* admitted(routing: Routing, owned: Owned, rank: number, page: Page): Generator<string> {
  for (const { id } of page.items) if (routing.admits(owned, id, rank)) yield id;
}
