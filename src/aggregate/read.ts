/** One `resources/read`: from its owner, or from whoever of several says `complete` (design, section 4.7). */
import type { Cached } from '../cache/types.ts';
import type { McpRequest } from '../protocol/classify.ts';
import { INVALID_PARAMS, LEGACY_NOT_FOUND, METHOD_NOT_FOUND } from '../protocol/errors.ts';
import type { Soon } from '../protocol/exchange.ts';
import { type Params, paramsText } from '../protocol/params.ts';
import type { Routing } from '../routing/resolve.ts';
import { type AskDeps, type Asking, ask, type Member, type Told } from './ask.ts';
import type { Discovery } from './discover.ts';

/** Largest read that is held whole, however large an entry may be: a larger one flows, and is not kept. */
export const MAX_HELD_READ_BYTES = 256 * 1024 * 1024;
/** What an answer has beside what is kept of it: its id, its hints, white space. */
const ENVELOPE_BYTES = 64 * 1024;

export type ReadAnswer =
  | { readonly kind: 'told'; readonly cached: Cached<Told>; readonly member: Member }
  /** Everybody who was asked says there is no such resource. */
  | { readonly kind: 'not-found' };

/** Reads from the one owner. */
export function readFrom(
  deps: AskDeps,
  member: Member,
  request: McpRequest,
  asking: Asking,
): Soon<Cached<Told>> {
  const params = request.params as Params;
  return ask(deps, member, asking, {
    row: request.row,
    uri: request.name ?? '',
    paramsText: () => paramsText(params),
    maxBytes: Math.min(deps.maxEntryBytes, MAX_HELD_READ_BYTES) + ENVELOPE_BYTES,
    flow: { array: 'contents' },
  });
}

export interface AskAroundDeps extends AskDeps {
  readonly members: readonly Member[];
  readonly routing: Routing;
  readonly discovery: Discovery;
}

/**
 * Asks the upstreams at `ranks` in order; only `complete` is an answer, and is remembered for that URI and context.
 * When one could not be asked, its failure is told rather than "not found": the two are different things (R31).
 */
export async function readAround(
  deps: AskAroundDeps,
  ranks: readonly number[],
  request: McpRequest,
  asking: Asking,
): Promise<ReadAnswer> {
  let failed: ReadAnswer | undefined;
  for (const rank of ranks) {
    if (!deps.discovery.announces(rank, 'resources')) continue;
    const member = deps.members[rank] as Member;
    const cached = await readFrom(deps, member, request, asking);
    if (cached.kind === 'complete' || cached.value.kind === 'large') {
      // After a failed upstream this one may not be the owner: served, not remembered.
      if (failed === undefined) deps.routing.ownership.remember(request.name ?? '', rank, asking.partition);
      return { kind: 'told', cached, member };
    }
    if (!saysNo(cached.value)) failed ??= { kind: 'told', cached, member };
  }
  return failed ?? { kind: 'not-found' };
}

const NO: ReadonlySet<number> = new Set([INVALID_PARAMS, LEGACY_NOT_FOUND, METHOD_NOT_FOUND]);

/** Whether this means "not here": an error that says so, or a question back, which is no answer from an unasked-for owner. */
function saysNo(told: Told): boolean {
  return told.kind === 'input_required' || (told.kind === 'error' && NO.has(told.code));
}
