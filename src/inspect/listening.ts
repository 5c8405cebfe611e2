/** Listens to what a server announces, until it says what it honours, and leaves. */
import { toldBy } from '../aggregate/standing.ts';
import { LIST_FLAGS, type ListenFilter, type ListName, NOTHING } from '../protocol/listen-filter.ts';
import { CURRENT_VERSION, GATEWAY_META } from '../protocol/meta.ts';
import type { ListenEvent } from '../upstream/types.ts';
import type { Asker } from './asker.ts';
import type { ListenFacts } from './facts.ts';
import type { Met } from './hello.ts';
import { failureTrouble } from './words.ts';

/** @param uri a resource of its own to listen for. */
export async function tryListening(
  asker: Asker,
  { seen }: Pick<Met, 'seen'>,
  uri: string | undefined,
  patienceMs: number,
): Promise<ListenFacts> {
  const { lists, resources } = toldBy(seen);
  const filter: ListenFilter = {
    ...NOTHING,
    ...Object.fromEntries([...lists].map((list) => [LIST_FLAGS[list], true])),
    resourceSubscriptions: resources && uri !== undefined ? [uri] : [],
  };
  const asked = named(filter);
  if (asked.length === 0) return { kind: 'not-announced' };
  const startedAt = asker.now();
  const event = await firstWord(asker, filter, patienceMs);
  switch (event?.kind) {
    case 'acknowledged':
      return { kind: 'acknowledged', ms: asker.now() - startedAt, asked, honoured: named(event.honoured) };
    case 'not-offered':
      return { kind: 'refused', asked, words: event.reason };
    case 'unopened':
    case 'lost':
      return { kind: 'failed', asked, words: failureTrouble(event.reason).words };
    default:
      return { kind: 'failed', asked, words: 'it was not acknowledged in time' };
  }
}

/** What decides it; undefined: nothing in time. */
function firstWord(
  { upstream, headers }: Asker,
  filter: ListenFilter,
  patienceMs: number,
): Promise<ListenEvent | undefined> {
  return new Promise((resolve) => {
    const request = { filter, version: CURRENT_VERSION, headers, meta: GATEWAY_META.slice(1, -1) };
    const conclude = (event: ListenEvent | undefined): void => {
      clearTimeout(timer);
      listening.close();
      resolve(event);
    };
    const timer = setTimeout(() => conclude(undefined), patienceMs);
    const listening = upstream.listen(request, (event) => {
      if (event.kind !== 'list-changed' && event.kind !== 'updated' && event.kind !== 'task') conclude(event);
    });
  });
}

function named(filter: ListenFilter): string[] {
  const lists = (Object.keys(LIST_FLAGS) as ListName[]).filter((list) => filter[LIST_FLAGS[list]]);
  return [...lists.map((list) => `${list} list`), ...filter.resourceSubscriptions];
}
