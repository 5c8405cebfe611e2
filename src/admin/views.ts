/** What can be looked at through the admin port, over a running gateway. */
import type { RouteRuntime } from '../pipeline.ts';
import type { Signal } from '../protocol/signal.ts';
import { Catalogue } from './catalogue.ts';
import type {
  ConfigAnswer,
  ListAnswer,
  ListRequest,
  ReadAnswer,
  ReadRequest,
  State,
} from './page/contract.ts';
import { readOne } from './reading.ts';
import { Recent } from './recent.ts';
import type { Sources } from './sources.ts';
import { configurationOf, stateOf } from './state.ts';

export interface Views {
  state(): State;
  config(): ConfigAnswer;
  /** The paths of the routes. */
  routes(): Iterable<string>;
  /** Asks upstreams, unless the cache knows. */
  list(request: ListRequest, signal: Signal): Promise<ListAnswer>;
  read(request: ReadRequest, signal: Signal): Promise<ReadAnswer>;
  /** Looks no more. */
  close(): void;
}

/** Begins to look. */
export function createViews(sources: Sources): Views {
  const { handle, now, log, wallClock } = sources;
  const recent = new Recent(sources.metrics);
  recent.start();
  const startedAt = wallClock();
  const asker = { handle, now };
  const catalogue = new Catalogue(asker);
  const routeOf = (path: string): RouteRuntime => {
    const route = sources.routes().get(path);
    if (route === undefined) throw new Error('a route went between two looks at it');
    return route;
  };
  return {
    state: () => stateOf(sources, recent, startedAt),
    config: () => configurationOf(sources.config()),
    routes: () => sources.routes().keys(),
    list: async (request, signal) => {
      const { route, list } = request;
      const answer = await catalogue.page(routeOf(route), request, signal);
      log.info({ route, list, cache: answer.how.kind }, 'listed for the admin page');
      return answer;
    },
    read: async ({ route, uri }, signal) => {
      const answer = await readOne(asker, catalogue, routeOf(route), uri, signal);
      log.info({ route, upstream: answer.upstream, cache: answer.how.kind }, 'read for the admin page');
      return answer;
    },
    close: () => recent.close(),
  };
}
