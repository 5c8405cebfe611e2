/**
 * What the cache makes of what an upstream tells: before anybody else hears of it (design, section 6).
 *
 * What a stream covered and may have missed is doubted: read again at its next use, good enough when the upstream
 * fails. A caller's own stream ends what is kept for all callers: a change is seldom one caller's alone.
 */
import type { Cache } from '../cache/through.ts';
import { LIST_FLAGS, type ListenFilter, type ListName } from '../protocol/listen-filter.ts';
import type { ListenEvent } from '../upstream/types.ts';

/** What of the cache is needed. */
export type Kept = Pick<Cache, 'invalidateMethod' | 'invalidateUri' | 'doubt' | 'watch'>;

/** The lists a change of which ends the answers to these methods. */
const METHODS: Readonly<Record<ListName, readonly string[]>> = {
  tools: ['tools/list'],
  prompts: ['prompts/list'],
  resources: ['resources/list', 'resources/templates/list'],
};
const READ = 'resources/read';

/**
 * Ends here what the event ends, at once.
 * @param isPromised whether clients are told of this resource.
 * @param reach of what is listened to again: `everywhere` where other replicas do not know that it was not.
 * @returns when the other replicas are told of it, or cannot be; undefined: there is nothing to wait for.
 */
export function freshen(
  cache: Kept,
  upstream: string,
  event: ListenEvent,
  isPromised: (uri: string) => boolean,
  reach: 'here' | 'everywhere',
): Promise<unknown> | undefined {
  switch (event.kind) {
    case 'acknowledged': {
      const { resourceSubscriptions: uris } = event.gained;
      if (reach === 'everywhere') return Promise.all(endedBy(cache, upstream, event.gained));
      doubt(cache, upstream, event.gained, 'lists');
      // Whoever is told that it may have changed must not be handed what was read before.
      cache.watch(upstream, uris, uris.filter(isPromised));
      return undefined;
    }
    case 'list-changed':
      return Promise.all(METHODS[event.list].map((method) => cache.invalidateMethod(upstream, method)));
    case 'updated':
      return cache.invalidateUri(upstream, event.uri);
    case 'lost':
      doubt(cache, upstream, event.covered, 'all');
      return undefined;
    case 'task':
    case 'unopened':
    case 'not-offered':
      return undefined;
  }
}

/** Ends all that may have changed, on every replica. */
function endedBy(cache: Kept, upstream: string, gained: ListenFilter): Promise<unknown>[] {
  return [
    ...methodsOf(gained).map((method) => cache.invalidateMethod(upstream, method)),
    ...gained.resourceSubscriptions.map((uri) => cache.invalidateUri(upstream, uri)),
  ];
}

function methodsOf(filter: ListenFilter): string[] {
  const lists = (Object.keys(LIST_FLAGS) as ListName[]).filter((list) => filter[LIST_FLAGS[list]]);
  return lists.flatMap((list) => METHODS[list]);
}

/** What may have changed unheard. */
function doubt(cache: Kept, upstream: string, covered: ListenFilter, what: 'lists' | 'all'): void {
  const methods = methodsOf(covered);
  if (what === 'all' && covered.resourceSubscriptions.length > 0) methods.push(READ);
  if (methods.length > 0) cache.doubt(upstream, methods);
}
