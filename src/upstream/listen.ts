/**
 * Listening to an upstream for as long as somebody holds it: one filter, on as many streams as it takes (R40).
 *
 * A URI stays on the stream that it came to, so that a change of the filter opens one stream anew and not all.
 * *Bounded by* {@link LISTENED_URIS}, {@link MAX_STREAMS} and {@link MAX_URI_CHARS}: what is beyond is not listened for.
 */
import {
  Coverage,
  isNothing,
  LISTENED_URIS,
  type ListenFilter,
  type Subject,
  subjectsOf,
  together,
  type Wanted,
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
  #wanted: Wanted;
  /** Names of what is wanted since the parts were last settled and was not just before. */
  readonly #added = new Set<string>();
  /** True when what is wanted has changed and the parts do not know. */
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
    this.#wanted = new Coverage(request.filter);
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
    // What has just been asked for has its place at once; the rest can wait, however many ask for it.
    if (this.#changed)
      for (const subject of subjectsOf(part)) if (this.#wanted.has(subject)) this.#place(subject);
    const places = new Set<ListenPart | undefined>([
      this.#home,
      ...part.resourceSubscriptions.map((uri) => this.#places.get(uri)),
    ]);
    const honoured = within(part, { has: (subject) => this.#isPlaced(subject) && this.#isHonoured(subject) });
    const open = without(part, new Coverage(honoured));
    return {
      honoured,
      undecided: together([...places].flatMap((one) => (one === undefined ? [] : [one.undecided(open)]))),
    };
  }

  update(wanted: Wanted): void {
    if (this.#closed) return;
    this.#wanted = wanted;
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
    if (this.#added.size === 0) return;
    const honoured = this.#honoured();
    const gained = within(honoured, { has: (subject) => this.#added.has(nameOf(subject)) });
    this.#added.clear();
    if (!isNothing(gained)) this.#tell({ kind: 'acknowledged', honoured, gained, first: false });
  }

  #distribute(): void {
    if (!this.#changed) return;
    this.#changed = false;
    const { filter } = this.#wanted;
    const uris = new Set<string>();
    for (const uri of filter.resourceSubscriptions)
      if (uris.size < LISTENED_URIS && isShort(uri)) uris.add(uri);
    const taskIds = new Set((filter.taskIds ?? []).filter(isShort).slice(0, STREAM_NAMES));
    for (const [uri, part] of this.#places) if (!uris.has(uri)) this.#remove(uri, part);
    if (this.#home !== undefined) {
      this.#home.lists = this.#home.lists.filter((list) => this.#keeps({ kind: 'list', list }));
      this.#home.taskIds = this.#home.taskIds.filter((taskId) => this.#keeps({ kind: 'task', taskId }));
    }
    for (const subject of subjectsOf({ ...filter, resourceSubscriptions: [...uris], taskIds: [...taskIds] }))
      this.#place(subject);
  }

  /** Gives what is asked for its place, where there is one. */
  #place(subject: Subject): void {
    if (this.#isPlaced(subject)) return;
    switch (subject.kind) {
      case 'uri': {
        const { uri } = subject;
        const part = isShort(uri) && this.#places.size < LISTENED_URIS ? this.#roomFor(uri) : undefined;
        if (part === undefined) return;
        part.uris.add(uri);
        part.uriChars += uri.length;
        this.#places.set(uri, part);
        break;
      }
      case 'list':
        this.#home ??= this.#firstPart();
        this.#home.lists = [...this.#home.lists, subject.list];
        break;
      case 'task':
        this.#home ??= this.#firstPart();
        if (!isShort(subject.taskId) || this.#home.taskIds.length >= STREAM_NAMES) return;
        this.#home.taskIds = [...this.#home.taskIds, subject.taskId];
    }
    this.#added.add(nameOf(subject));
  }

  #remove(uri: string, part: ListenPart): void {
    part.uris.delete(uri);
    part.uriChars -= uri.length;
    this.#places.delete(uri);
    this.#added.delete(nameOf({ kind: 'uri', uri }));
  }

  /** Whether it is asked for still. */
  #keeps(subject: Subject): boolean {
    const keeps = this.#wanted.has(subject);
    if (!keeps) this.#added.delete(nameOf(subject));
    return keeps;
  }

  #isPlaced(subject: Subject): boolean {
    return subject.kind === 'uri' ? this.#places.has(subject.uri) : this.#home?.has(subject) === true;
  }

  #isHonoured(subject: Subject): boolean {
    if (subject.kind === 'uri' && this.#places.get(subject.uri)?.honours(subject) === true) return true;
    return [...this.#parts].some((part) => part.honours(subject));
  }

  /** Where it is listened to still, or the first that has room. */
  #roomFor(uri: string): ListenPart | undefined {
    const hasRoom = ({ uris, uriChars }: ListenPart): boolean =>
      uris.size < STREAM_NAMES && uriChars + uri.length <= STREAM_CHARS;
    let first: ListenPart | undefined;
    for (const part of this.#parts) {
      if (!hasRoom(part) || (part.isSuspect && part.state === 'not-offered')) continue;
      if (part.honours({ kind: 'uri', uri })) return part;
      first ??= part;
    }
    return first ?? (this.#parts.size < MAX_STREAMS ? this.#newPart() : undefined);
  }

  /** Gives what was refused a stream of its own, or half of it where all of it was. @returns false: nothing to give. */
  #divide(part: ListenPart): boolean {
    const fresh = [...part.uris].filter((uri) => !part.honours({ kind: 'uri', uri }));
    const staysCount = part.uris.size - fresh.length + part.lists.length + part.taskIds.length;
    const given = staysCount > 0 ? fresh : fresh.slice(Math.ceil(fresh.length / 2));
    if (given.length === 0 || this.#parts.size >= MAX_STREAMS) return false;
    const other = this.#newPart();
    other.isSuspect = true;
    part.isSuspect ||= staysCount === 0;
    for (const uri of given) {
      part.uris.delete(uri);
      part.uriChars -= uri.length;
      other.uris.add(uri);
      other.uriChars += uri.length;
      this.#places.set(uri, other);
    }
    other.settle();
    return true;
  }

  #firstPart(): ListenPart {
    for (const part of this.#parts) return part;
    return this.#newPart();
  }

  #newPart(): ListenPart {
    const hooks: PartHooks = {
      wants: (subject) => {
        if (this.#wanted.covers(subject)) return true;
        // What is no longer asked for is not told from the moment it is not: asked for again, it is gained.
        this.#distribute();
        return false;
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
      divide: () => this.#divide(part),
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
    return within(together([...this.#parts].map((part) => part.honoured)), {
      has: (subject) => this.#isPlaced(subject),
    });
  }

  #tell(event: ListenEvent): void {
    if (!this.#closed) this.#on(event);
  }
}

function isShort(name: string): boolean {
  return name.length <= MAX_URI_CHARS;
}

function nameOf(subject: Subject): string {
  switch (subject.kind) {
    case 'list':
      return `list ${subject.list}`;
    case 'uri':
      return `uri ${subject.uri}`;
    case 'task':
      return `task ${subject.taskId}`;
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
