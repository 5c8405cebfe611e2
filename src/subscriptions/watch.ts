/**
 * What the gateway itself listens for at one upstream, so that what is kept of it goes when it changes: the list
 * changes that the upstream announced, and the resources that are held in memory (design, section 6).
 */
import {
  LIST_FLAGS,
  LISTENED_URIS,
  type ListenFilter,
  type ListName,
  NOTHING,
} from '../protocol/listen-filter.ts';
import type { Hub } from './hub.ts';

export interface WatchDeps {
  readonly hub: Pick<Hub, 'askOwn'>;
  /** The resources of this upstream that are held at present. */
  readonly heldUris: () => Iterable<string>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
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

export class Watch {
  readonly #deps: WatchDeps;
  #announced: Announced = { lists: new Set(), resources: false };
  #timer: NodeJS.Timeout | undefined;
  #linger: NodeJS.Timeout | undefined;
  #closed = false;
  /** What is asked for, and when it was held last. */
  #asked = new Map<string, number>();

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
  }

  #refresh(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#closed) return;
    this.#ask();
    this.#deps.hub.askOwn(this.#filter());
  }

  /** Finds out what to ask for. */
  #ask(): void {
    const { heldUris, now } = this.#deps;
    const at = now();
    const asked = new Map<string, number>();
    if (this.#announced.resources) {
      // More are not listened for: looking at all that are held, at each change, would hold up everybody.
      for (const uri of heldUris()) {
        if (asked.size >= LISTENED_URIS) break;
        asked.set(uri, at);
      }
    }
    let lingers = false;
    for (const [uri, heldAt] of this.#asked) {
      if (asked.has(uri) || !this.#announced.resources) continue;
      if (at - heldAt >= LINGER_MS || asked.size >= LISTENED_URIS) continue;
      asked.set(uri, heldAt);
      lingers = true;
    }
    this.#asked = asked;
    if (!lingers) return;
    this.#linger ??= setTimeout(() => {
      this.#linger = undefined;
      this.#refresh();
    }, LINGER_MS);
    this.#linger.unref();
  }

  #filter(): ListenFilter {
    const { lists } = this.#announced;
    const flags = Object.fromEntries(
      (Object.keys(LIST_FLAGS) as ListName[]).map((list) => [LIST_FLAGS[list], lists.has(list)]),
    );
    return { ...NOTHING, ...flags, resourceSubscriptions: [...this.#asked.keys()] };
  }
}
