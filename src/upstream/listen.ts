/**
 * Listening to an upstream for as long as somebody holds it: one filter, on as many streams as it takes (R40).
 *
 * A URI stays on the stream that it came to, so that a change of the filter opens one stream anew and not all.
 * *Bounded by* {@link MAX_URIS}, {@link MAX_STREAMS} and {@link MAX_URI_CHARS}: what is beyond is not listened for.
 */
import {
  Coverage,
  filterOf,
  isNothing,
  joined,
  LIST_FLAGS,
  type ListenFilter,
  type ListName,
  NOTHING,
  type Subject,
  together,
  within,
  without,
} from '../protocol/listen-filter.ts';
import type { Notification } from '../protocol/notice.ts';
import type { ListenDeps, PartHooks } from './listen-held.ts';
import { ListenPart } from './listen-part.ts';
import type { ListenEvent, Listening, ListenRequest } from './types.ts';

/** URIs on one stream, and beside them task ids: a request that every server reads. */
const STREAM_NAMES = 500;
/** Characters of the URIs on one stream. */
const STREAM_CHARS = 512 * 1024;
/** Streams side by side. */
const MAX_STREAMS = 20;
/** URIs of one listening. */
const MAX_URIS = 10_000;
/** A longer URI is not listened for; none that long is learnt, either. */
const MAX_URI_CHARS = 8_192;

/** Begins to listen. @param on told in order, never from within this call. @param onClose told once. */
export function openListening(
  deps: ListenDeps,
  request: ListenRequest,
  on: (event: ListenEvent) => void,
  onClose: () => void,
): Listening {
  return new Streams(deps, request, on, onClose);
}

class Streams implements Listening {
  readonly #deps: ListenDeps;
  readonly #request: ListenRequest;
  readonly #on: (event: ListenEvent) => void;
  readonly #onClose: () => void;
  readonly #parts = new Set<ListenPart>();
  /** Where each URI is listened for. */
  readonly #places = new Map<string, ListenPart>();
  /** The one that listens for lists and tasks, too. */
  #home: ListenPart | undefined;
  #filter: ListenFilter;
  /** The filter, as far as it is listened for. */
  #wanted = new Coverage(NOTHING);
  /** What is wanted since the parts were last settled and was not just before. */
  #added: ListenFilter = NOTHING;
  /** True when the filter has changed and the parts do not know. */
  #changed = true;
  #gathering: NodeJS.Timeout | undefined;
  #acknowledged = false;
  #closed = false;

  constructor(
    deps: ListenDeps,
    request: ListenRequest,
    on: (event: ListenEvent) => void,
    onClose: () => void,
  ) {
    this.#deps = deps;
    this.#request = request;
    this.#on = on;
    this.#onClose = onClose;
    this.#filter = request.filter;
    // Behind the call: whoever is told at once does not hold this yet.
    this.#gathering = setTimeout(() => this.#settle(), 0);
  }

  get state(): Listening['state'] {
    if (this.#closed) return 'closed';
    const states = new Set([...this.#parts].map((part) => part.state));
    if (this.#gathering !== undefined && states.size === 0) return 'opening';
    return (
      (['open', 'opening', 'waiting', 'not-offered'] as const).find((state) => states.has(state)) ?? 'waiting'
    );
  }

  fate(part: ListenFilter): { readonly honoured: ListenFilter; readonly undecided: ListenFilter } {
    const honoured = within(part, new Coverage(this.#honoured()));
    const open = within(without(part, new Coverage(honoured)), this.#wanted);
    return {
      honoured,
      undecided: together([...this.#parts].map((one) => one.undecided(open))),
    };
  }

  update(filter: ListenFilter): void {
    if (this.#closed) return;
    this.#filter = filter;
    this.#changed = true;
    this.#gathering ??= setTimeout(() => this.#settle(), this.#deps.times.gatherMs);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#gathering);
    for (const part of this.#parts) part.close();
    this.#onClose();
  }

  #settle(): void {
    this.#gathering = undefined;
    this.#distribute();
    this.#tellRegained();
    for (const part of [...this.#parts]) part.settle();
  }

  /** What was left out for a moment and is covered still: what came of it meanwhile was not told. */
  #tellRegained(): void {
    const honoured = this.#honoured();
    const gained = within(this.#added, new Coverage(honoured));
    this.#added = NOTHING;
    if (!isNothing(gained)) this.#tell({ kind: 'acknowledged', honoured, gained, first: false });
  }

  #distribute(): void {
    if (!this.#changed) return;
    this.#changed = false;
    const { resourceSubscriptions, taskIds = [] } = this.#filter;
    const uris = new Set<string>();
    for (const uri of resourceSubscriptions) {
      if (uri.length <= MAX_URI_CHARS && uris.size < MAX_URIS) uris.add(uri);
    }
    for (const [uri, part] of this.#places) {
      if (!uris.has(uri)) this.#remove(uri, part);
    }
    for (const uri of uris) if (!this.#places.has(uri)) this.#place(uri);
    const lists = (Object.keys(LIST_FLAGS) as ListName[]).filter((list) => this.#filter[LIST_FLAGS[list]]);
    const tasks = [...new Set(taskIds)].filter((id) => id.length <= MAX_URI_CHARS).slice(0, STREAM_NAMES);
    if (lists.length + tasks.length > 0) this.#home ??= this.#firstPart();
    if (this.#home !== undefined) {
      this.#home.lists = lists;
      this.#home.taskIds = tasks;
    }
    const before = this.#wanted;
    const wanted = filterOf((list) => lists.includes(list), [...this.#places.keys()], tasks);
    this.#wanted = new Coverage(wanted);
    this.#added = joined(within(this.#added, this.#wanted), without(wanted, before));
  }

  #place(uri: string): void {
    const part = this.#roomFor(uri.length);
    if (part === undefined) return;
    part.uris.add(uri);
    part.uriChars += uri.length;
    this.#places.set(uri, part);
  }

  #remove(uri: string, part: ListenPart): void {
    part.uris.delete(uri);
    part.uriChars -= uri.length;
    this.#places.delete(uri);
  }

  #roomFor(chars: number): ListenPart | undefined {
    for (const part of this.#parts) {
      if (part.uris.size < STREAM_NAMES && part.uriChars + chars <= STREAM_CHARS) return part;
    }
    return this.#parts.size < MAX_STREAMS ? this.#newPart() : undefined;
  }

  #firstPart(): ListenPart {
    for (const part of this.#parts) return part;
    return this.#newPart();
  }

  #newPart(): ListenPart {
    const hooks: PartHooks = {
      wants: (subject) => {
        // What is no longer asked for is not told from the moment it is not.
        this.#distribute();
        return this.#wanted.covers(subject);
      },
      acknowledged: (gained) => {
        const first = !this.#acknowledged;
        this.#acknowledged = true;
        this.#tell({ kind: 'acknowledged', honoured: this.#honoured(), gained, first });
      },
      notified: (subject, notification) => this.#tell(eventOf(subject, notification)),
      lost: (reason, covered) => this.#tell({ kind: 'lost', reason, covered }),
      unopened: (reason) => this.#tell({ kind: 'unopened', reason }),
      notOffered: (reason, asked) => this.#tell({ kind: 'not-offered', reason, asked }),
      idle: () => {
        this.#parts.delete(part);
        if (this.#home === part) this.#home = undefined;
      },
    };
    const part = new ListenPart(this.#deps, this.#request, hooks);
    this.#parts.add(part);
    return part;
  }

  #honoured(): ListenFilter {
    this.#distribute();
    return within(together([...this.#parts].map((part) => part.honoured)), this.#wanted);
  }

  #tell(event: ListenEvent): void {
    if (!this.#closed) this.#on(event);
  }
}

function eventOf(subject: Subject, { method, message, params: span }: Notification): ListenEvent {
  const params = message.subarray(span?.start, span?.end);
  switch (subject.kind) {
    case 'list':
      return { kind: 'list-changed', list: subject.list };
    case 'uri':
      return { kind: 'updated', uri: subject.uri, params };
    case 'task':
      return { kind: 'task', taskId: subject.taskId, method, params };
  }
}
