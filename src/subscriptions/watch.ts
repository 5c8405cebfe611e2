/**
 * Listens to one upstream on the gateway's own behalf, so that what is kept of it goes when it changes.
 *
 * Asks for the list changes that the upstream announced and for the resources that are held in memory. What a stream
 * covered and may have missed is doubted: read again at its next use, good enough when the upstream fails (design,
 * section 6). *Bounded by* what the upstream room listens for; an idle watch does nothing.
 */
import { ownCredential } from '../auth/forward.ts';
import type { Cache } from '../cache/through.ts';
import type { UpstreamConfig } from '../config/types.ts';
import type { Logger } from '../observability/log.ts';
import { LIST_FLAGS, type ListenFilter, type ListName, NOTHING } from '../protocol/listen-filter.ts';
import { CURRENT_VERSION } from '../protocol/meta.ts';
import type { ListenEvent, Listening, Upstream } from '../upstream/types.ts';

export interface WatchDeps {
  readonly cache: Pick<Cache, 'invalidateMethod' | 'invalidateUri' | 'doubt' | 'watch'>;
  readonly upstream: Pick<Upstream, 'name' | 'listen'>;
  readonly config: UpstreamConfig;
  /** JSON members of `params._meta`. */
  readonly meta: string;
  /** The resources of this upstream that are held at present. */
  readonly heldUris: () => Iterable<string>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}

/** What an upstream says it tells. */
export interface Announced {
  readonly lists: ReadonlySet<ListName>;
  /** `resources.subscribe`. */
  readonly resources: boolean;
}

/** How long changes of what is held are gathered, beside what the streams themselves gather. */
const GATHER_MS = 100;
/**
 * A resource is asked for so long after it was held last: one that changes goes from memory and is read again, and
 * its next change must not fall between.
 */
const LINGER_MS = 60_000;
/** Resources that are asked for although they are not held, and those that were once asked for. */
const LINGERING_MAX = 10_000;

/** The lists a change of which ends the answers to these methods. */
const METHODS: Readonly<Record<ListName, readonly string[]>> = {
  tools: ['tools/list'],
  prompts: ['prompts/list'],
  resources: ['resources/list', 'resources/templates/list'],
};
const READ = 'resources/read';

export class Watch {
  readonly #deps: WatchDeps;
  #announced: Announced = { lists: new Set(), resources: false };
  #listening: Listening | undefined;
  #timer: NodeJS.Timeout | undefined;
  #linger: NodeJS.Timeout | undefined;
  #closed = false;
  /** What is asked for, and when it was held last. */
  #asked = new Map<string, number>();
  /** What was asked for and is not any more: a stream may still cover it, and what it told meanwhile was not heard. */
  readonly #left = new Set<string>();

  constructor(deps: WatchDeps) {
    this.#deps = deps;
  }

  /** The upstream has said what it tells: again, when it says something else. */
  announced(announced: Announced): void {
    this.#announced = announced;
    this.#refresh();
  }

  /** Other resources are held than before. */
  heldChanged(): void {
    if (!this.#announced.resources || this.#closed) return;
    this.#timer ??= setTimeout(() => this.#refresh(), GATHER_MS);
    this.#timer.unref();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#linger);
    this.#listening?.close();
  }

  #refresh(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#closed) return;
    const again = this.#ask();
    const filter = this.#filter();
    if (this.#listening !== undefined) {
      this.#listening.update(filter);
      if (again.length > 0) this.#deps.cache.watch(this.#deps.upstream.name, again);
      return;
    }
    if (this.#announced.lists.size === 0 && filter.resourceSubscriptions.length === 0) return;
    const { upstream, config, meta } = this.#deps;
    this.#listening = upstream.listen(
      { filter, version: CURRENT_VERSION, headers: ownCredential(config), meta },
      (event) => this.#heard(event),
    );
  }

  /** Finds out what to ask for. @returns what is asked for again. */
  #ask(): readonly string[] {
    const { heldUris, now } = this.#deps;
    const at = now();
    const asked = new Map<string, number>();
    if (this.#announced.resources) for (const uri of heldUris()) asked.set(uri, at);
    let lingers = false;
    for (const [uri, heldAt] of this.#asked) {
      if (asked.has(uri)) continue;
      if (this.#announced.resources && at - heldAt < LINGER_MS && asked.size < LINGERING_MAX) {
        asked.set(uri, heldAt);
        lingers = true;
      } else if (this.#left.size < LINGERING_MAX) {
        this.#left.add(uri);
      }
    }
    this.#asked = asked;
    if (lingers) {
      this.#linger ??= setTimeout(() => {
        this.#linger = undefined;
        this.#refresh();
      }, LINGER_MS);
      this.#linger.unref();
    }
    return [...asked.keys()].filter((uri) => this.#left.delete(uri));
  }

  #filter(): ListenFilter {
    const { lists } = this.#announced;
    const flags = Object.fromEntries(
      (Object.keys(LIST_FLAGS) as ListName[]).map((list) => [LIST_FLAGS[list], lists.has(list)]),
    );
    return { ...NOTHING, ...flags, resourceSubscriptions: [...this.#asked.keys()] };
  }

  #heard(event: ListenEvent): void {
    const { cache, upstream, log } = this.#deps;
    const { name } = upstream;
    switch (event.kind) {
      case 'acknowledged':
        this.#doubt(event.gained, 'lists');
        cache.watch(name, event.gained.resourceSubscriptions);
        if (event.first) log.info({ upstream: name }, 'changes of the upstream are told');
        break;
      case 'list-changed':
        for (const method of METHODS[event.list]) void cache.invalidateMethod(name, method);
        break;
      case 'updated':
        void cache.invalidateUri(name, event.uri);
        break;
      case 'lost':
        this.#doubt(event.covered, 'all');
        log.warn(
          { upstream: name, reason: event.reason.kind, detail: event.reason.detail },
          'changes of the upstream may go unseen for a moment',
        );
        break;
      case 'not-offered':
        log.info({ upstream: name, reason: event.reason }, 'the upstream does not tell of its changes');
        break;
      case 'unopened':
      case 'other':
        break;
    }
  }

  /** What was told of until now, or is from now on, may have changed between. */
  #doubt(filter: ListenFilter, what: 'lists' | 'all'): void {
    const lists = (Object.keys(LIST_FLAGS) as ListName[]).filter((list) => filter[LIST_FLAGS[list]]);
    const methods = lists.flatMap((list) => METHODS[list]);
    if (what === 'all' && filter.resourceSubscriptions.length > 0) methods.push(READ);
    if (methods.length > 0) this.#deps.cache.doubt(this.#deps.upstream.name, methods);
  }
}
