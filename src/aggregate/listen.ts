/**
 * What a client's `subscriptions/listen` asks of which upstream (design, section 7): a list's changes of all that tell
 * of them, a resource's of the one that has it, a task's of the one that `tasks/get` goes to.
 *
 * Lists first what must be known for that, as for a read, but does not wait long: an acknowledgment is due.
 * *Bounded by* {@link FILTER_URIS} and the others. *Spec:* schema 2026-07-28, `SubscriptionFilter`.
 */
import { isBarred } from '../auth/forward.ts';
import { isUri, type McpRequest } from '../protocol/classify.ts';
import { INVALID_PARAMS, type Refusal, refusal } from '../protocol/errors.ts';
import { memberOf, objectMembers, textOf } from '../protocol/json.ts';
import { filterOf, isNothing, LIST_FLAGS, type ListenFilter, readFilter } from '../protocol/listen-filter.ts';
import { META_CAPABILITIES, META_CLIENT_INFO, META_VERSION } from '../protocol/meta.ts';
import { LIST_METHODS } from '../protocol/methods.ts';
import { keyTexts, type Params } from '../protocol/params.ts';
import type { Routing } from '../routing/resolve.ts';
import type { Asking, Member } from './ask.ts';
import { type Discovery, gatewayMeta, gatewayParams } from './discover.ts';
import type { Learner } from './learn.ts';
import { TELLS_NOTHING } from './standing.ts';

/** Resources of one listen. */
export const FILTER_URIS = 1_000;
/** Tasks of one listen. */
export const FILTER_TASKS = 100;
/** Characters of one URI or task id. */
export const FILTER_NAME_CHARS = 8_192;
/** Characters of all of them. */
export const FILTER_CHARS = 512 * 1024;
/** How long what must be known is waited for. */
const KNOW_MS = 350;

export interface ListenDeps {
  readonly members: readonly Member[];
  readonly routing: Routing;
  readonly discovery: Pick<Discovery, 'tells' | 'standing'>;
  readonly learner: Pick<Learner, 'learn'>;
  /** Tells the routes of one configuration from those of another. */
  readonly generation: number;
}

/** What of a listen one upstream is asked. */
export interface ListenShare {
  readonly config: Member['config'];
  readonly filter: ListenFilter;
  readonly meta: string;
  readonly admits: (uri: string) => boolean;
  readonly audience: string;
}

/** Reads what is asked for. */
export function readListen({ bytes, members }: Params): ListenFilter | Refusal {
  const notifications = memberOf(members, 'notifications');
  const filter = notifications && readFilter(bytes, notifications);
  if (filter === undefined)
    return refusal(
      INVALID_PARAMS,
      '"notifications" must be an object of toolsListChanged, promptsListChanged, resourcesListChanged (booleans) ' +
        'and resourceSubscriptions (URIs)',
    );
  const { resourceSubscriptions: uris, taskIds = [] } = filter;
  const names = [...uris, ...taskIds];
  if (uris.length > FILTER_URIS || taskIds.length > FILTER_TASKS)
    return refusal(
      INVALID_PARAMS,
      `A listen takes ${FILTER_URIS} URIs and ${FILTER_TASKS} tasks at most: open several`,
    );
  if (names.some((name) => name.length > FILTER_NAME_CHARS) || names.join('').length > FILTER_CHARS)
    return refusal(
      INVALID_PARAMS,
      `A listen takes URIs of ${FILTER_NAME_CHARS} characters at most, and ${FILTER_CHARS} of all together`,
    );
  const odd = uris.find((uri) => !isUri(uri));
  if (odd !== undefined)
    return refusal(INVALID_PARAMS, 'Not a URI: it needs a scheme and no control characters', {
      data: { uri: odd },
    });
  return filterOf((list) => filter[LIST_FLAGS[list]], [...new Set(uris)], [...new Set(taskIds)]);
}

/** Of a listen's `_meta` no more is kept: a longer one is asked for as the gateway asks. */
const CARRIED_META_BYTES = 16 * 1024;

/**
 * What of the params of a listen is kept as long as it lasts, to find out anew who is asked what: the `_meta` alone, in
 * bytes of its own. A request may be large, and there are many listens.
 */
export function carriedParams({ bytes, meta }: Params): Pick<Asking, 'params' | 'texts'> {
  const members = meta.filter(({ key }) => key !== 'progressToken');
  const text = `{${members.map((member) => `${JSON.stringify(member.key)}:${textOf(bytes, member)}`).join(',')}}`;
  const carried = new TextEncoder().encode(text);
  const params: Params =
    carried.length > CARRIED_META_BYTES
      ? gatewayParams()
      : { bytes: carried, members: [], meta: objectMembers(carried, 0) ?? [] };
  return { params, texts: keyTexts(params) };
}

/**
 * Finds out who is asked what. Who is asked nothing is left out.
 * @param haste `acknowledging`: somebody waits for an acknowledgment that is due.
 */
export async function planListen(
  deps: ListenDeps,
  filter: ListenFilter,
  { head }: Pick<McpRequest, 'head'>,
  asking: Asking,
  haste: 'acknowledging' | 'none',
): Promise<{ readonly parts: readonly ListenShare[]; readonly extent: 'whole' | 'part' }> {
  const { members, routing, discovery, learner, generation } = deps;
  const withinMs = haste === 'none' ? undefined : KNOW_MS;
  const { partition } = asking;
  const uris = filter.resourceSubscriptions;
  const known = uris.map((uri) => routing.listenedAt(uri, head, partition, 'first'));
  const learning = known.includes('learn') ? learner.learn(RESOURCE_LISTS, asking) : undefined;
  const [tells, isLearnt] = await Promise.all([
    Promise.all(members.map((member) => unless(discovery.tells(member, asking), undefined, withinMs))),
    unless(learning, learning === undefined, withinMs),
  ]);
  const places = uris.map((uri, i) =>
    known[i] === 'learn' ? routing.listenedAt(uri, head, partition, 'listed') : known[i],
  );
  const tasks = (filter.taskIds ?? []).map((taskId) => routing.taskListenedAt(taskId, head));
  const isKnown = ({ config, rank }: Member): boolean =>
    !config.subscribe || (tells[rank] !== undefined && discovery.standing(rank).kind !== 'unseen');
  const parts = members.flatMap((member): ListenShare[] => {
    const { rank, config } = member;
    if (!config.subscribe || isBarred(config, head)) return [];
    const { lists, resources } = tells[rank] ?? TELLS_NOTHING;
    const taskIds = (filter.taskIds ?? []).filter((_, i) => tasks[i] === rank);
    const part = filterOf(
      (list) => filter[LIST_FLAGS[list]] && lists.has(list),
      resources ? uris.filter((_, i) => places[i] === rank) : [],
      taskIds,
    );
    if (isNothing(part)) return [];
    // A server tells of tasks to those only who say that they know them.
    const meta = taskIds.length > 0 ? capableMeta(asking) : gatewayMeta();
    const admits = (uri: string): boolean => mayHave(routing, uri, rank, partition);
    return [{ config, filter: part, meta, admits, audience: `${generation} ${partition}` }];
  });
  return { parts, extent: isLearnt && members.every(isKnown) ? 'whole' : 'part' };
}

const RESOURCE_LISTS = LIST_METHODS.filter(({ method }) => method.startsWith('resources/'));

function mayHave(routing: Routing, uri: string, rank: number, partition: string): boolean {
  if (!routing.admits('resources', uri, rank)) return false;
  const owner = routing.ownerOfListed('resources', uri, partition);
  return owner === undefined || owner === rank;
}

/** As the gateway asks, with what the client can do. */
function capableMeta({ texts }: Asking): string {
  const meta = JSON.parse(`{${gatewayMeta()}}`) as Record<string, unknown>;
  const members = [META_VERSION, META_CLIENT_INFO].map(
    (key) => `${JSON.stringify(key)}:${JSON.stringify(meta[key])}`,
  );
  return [...members, `${JSON.stringify(META_CAPABILITIES)}:${texts.capabilities || '{}'}`].join(',');
}

/** What comes in time and well. @param withinMs undefined: it has a bound of its own. */
function unless<T>(work: Promise<T> | undefined, otherwise: T, withinMs: number | undefined): Promise<T> {
  return new Promise((resolve) => {
    if (work === undefined) return resolve(otherwise);
    const timer = withinMs === undefined ? undefined : setTimeout(() => resolve(otherwise), withinMs);
    work.then(resolve, () => resolve(otherwise)).finally(() => clearTimeout(timer));
  });
}
