/**
 * One listening to an upstream, shared by all whom that upstream cannot tell apart: the gateway, for what it keeps, and
 * the clients that listen through it.
 *
 * What is heard ends what is kept here and on the other replicas, and only then do clients hear of it (design,
 * section 7). Closed with the last who listens. *Bounded by* what the upstream room listens for; clients go first.
 */
import type { Logger } from '../observability/log.ts';
import {
  Coverage,
  filterOf,
  isNothing,
  LISTENED_URIS,
  type ListenFilter,
  type ListName,
  NOTHING,
  type Subject,
  subjectsOf,
  together,
  urisAbove,
  type Wanted,
  within,
  without,
} from '../protocol/listen-filter.ts';
import { LIST_CHANGED, UPDATED } from '../protocol/notice.ts';
import type { ListenEvent, Listening, ListenRequest, Upstream } from '../upstream/types.ts';
import { Coalescer } from './coalesce.ts';
import { freshen, type Kept } from './freshen.ts';
import { listChanged, type Message, passedOn } from './messages.ts';

export interface HubDeps {
  readonly upstream: Pick<Upstream, 'name' | 'listen'>;
  readonly request: Omit<ListenRequest, 'filter'>;
  readonly cache: Kept;
  /** Whose credentials the streams are opened with: other replicas have none like a caller's. */
  readonly whose: 'gateway' | 'caller';
  readonly log: Pick<Logger, 'info' | 'warn'>;
  /** Told of every notification that was heard. */
  readonly notified: (upstream: string, method: string) => void;
  /** Called each time the last has gone. */
  readonly onIdle: () => void;
}

/** Somebody who listens; called in order, and never from within `join`. */
export interface Sitter {
  /** @param admitted by audience, whether it may hear of this: found out once for all who do. */
  heard(subject: Subject, message: Message, admitted: Map<string, boolean>): void;
  /** Whether it would tell of this, were it gained. */
  awaits(gained: Coverage): boolean;
  /** Listened to from now on, and may have changed until now. */
  gained(gained: Coverage): void;
  /** May change unheard until it is gained again. */
  lost(covered: Coverage): void;
  /** A stream was not opened: not yet, not for this, or for want of room, so that nobody knows when. */
  unopened(why: 'late' | 'refused' | 'full'): void;
}

/** A place among those who listen. */
export interface Seat {
  /** What of its filter is listened to, and what is not decided. */
  fate(): ReturnType<Listening['fate']>;
  /** Asks for less. */
  narrow(filter: ListenFilter): void;
  /** Idempotent; nothing is told behind it. */
  leave(): void;
}

export class Hub {
  readonly #deps: HubDeps;
  readonly #coalescer = new Coalescer();
  readonly #asked = new Asked();
  /** What is listened to again, and is to be told as soon as the other replicas know. */
  readonly #gaining = new Set<{ filter: ListenFilter }>();
  #listening: Listening | undefined;
  #closed = false;

  constructor(deps: HubDeps) {
    this.#deps = deps;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** The name of the upstream. */
  get upstream(): string {
    return this.#deps.upstream.name;
  }

  /** Whether a stream is open; undefined while there is nothing to listen for, or nothing is offered. */
  get isOpen(): boolean | undefined {
    const { state } = this;
    return state === 'idle' || state === 'not-offered' ? undefined : state === 'open';
  }

  /** How far its streams are; `idle` while there is nothing to listen for. */
  get state(): Listening['state'] | 'idle' {
    return this.#listening?.state ?? 'idle';
  }

  /** What the gateway itself asks for, from now on. */
  askOwn(filter: ListenFilter): void {
    this.#asked.own = new Coverage(filter);
    this.#refresh();
  }

  /** Listens for somebody; of more URIs than are listened for at a time, for the first of them. */
  join(filter: ListenFilter, sitter: Sitter): Seat {
    let asked = this.#asked.add(filter, sitter);
    this.#refresh();
    const keep = (kept: ListenFilter): void => {
      this.#asked.remove(without(asked, new Coverage(kept)), sitter);
      asked = within(asked, new Coverage(kept));
      this.#refresh();
    };
    return {
      fate: () => this.#listening?.fate(asked) ?? { honoured: NOTHING, undecided: NOTHING },
      narrow: keep,
      leave: () => {
        if (this.#asked.sitters.delete(sitter)) keep(NOTHING);
      },
    };
  }

  close(): void {
    this.#closed = true;
    this.#coalescer.close();
    this.#asked.sitters.clear();
    this.#listening?.close();
  }

  #refresh(): void {
    if (this.#closed) return;
    if (this.#asked.isNothing) {
      this.#listening?.close();
      this.#listening = undefined;
      if (this.#asked.sitters.size === 0) this.#deps.onIdle();
      return;
    }
    if (this.#listening !== undefined) return this.#listening.update(this.#asked);
    const { upstream, request } = this.#deps;
    const { filter } = this.#asked;
    this.#listening = upstream.listen({ ...request, filter }, (event) => this.#heard(event));
  }

  #heard(event: ListenEvent): void {
    const { cache, upstream, notified } = this.#deps;
    const isTheirs = (uri: string): boolean => this.#asked.isTheirs({ kind: 'uri', uri });
    const ready = freshen(cache, upstream.name, event, isTheirs, this.#reach(event));
    this.#note(event);
    switch (event.kind) {
      case 'list-changed': {
        const { list } = event;
        notified(upstream.name, LIST_CHANGED[list]);
        this.#coalescer.add(`list ${list}`, ready, () =>
          this.#tell({ kind: 'list', list }, listChanged(list)),
        );
        return;
      }
      case 'updated': {
        const { uri, params } = event;
        notified(upstream.name, UPDATED);
        const tell = () => this.#tell({ kind: 'uri', uri }, passedOn(UPDATED, params));
        this.#coalescer.add(`uri ${uri}`, ready, tell);
        return;
      }
      case 'task': {
        const { taskId, method, params } = event;
        notified(upstream.name, method);
        // What is said of a task has content: none stands for another.
        this.#tell({ kind: 'task', taskId }, passedOn(method, params));
        return;
      }
      case 'acknowledged':
        return this.#gained(event.gained, ready);
      case 'lost': {
        const covered = new Coverage(event.covered);
        // What is lost again is gained another time.
        for (const gaining of this.#gaining) gaining.filter = without(gaining.filter, covered);
        for (const sitter of this.#asked.sitters) sitter.lost(covered);
        return;
      }
      case 'unopened': {
        const why = event.reason.kind === 'full' ? 'full' : 'late';
        for (const sitter of this.#asked.sitters) sitter.unopened(why);
        return;
      }
      case 'not-offered':
        for (const sitter of this.#asked.sitters) sitter.unopened('refused');
    }
  }

  /** Other replicas have no stream like a caller's: what it has missed they do not doubt by themselves. */
  #reach(event: ListenEvent): 'here' | 'everywhere' {
    if (this.#deps.whose === 'gateway' || event.kind !== 'acknowledged') return 'here';
    const gained = new Coverage(event.gained);
    return [...this.#asked.sitters].some((sitter) => sitter.awaits(gained)) ? 'everywhere' : 'here';
  }

  #gained(filter: ListenFilter, ready: Promise<unknown> | undefined): void {
    const gaining = { filter };
    const tell = (): void => {
      this.#gaining.delete(gaining);
      const gained = new Coverage(gaining.filter);
      for (const sitter of this.#asked.sitters) sitter.gained(gained);
    };
    if (ready === undefined) return tell();
    this.#gaining.add(gaining);
    void ready.then(tell);
  }

  #tell(subject: Subject, message: Message): void {
    const admitted = new Map<string, boolean>();
    for (const sitter of this.#asked.whoAsks(subject)) sitter.heard(subject, message, admitted);
  }

  #note(event: ListenEvent): void {
    const { log, upstream } = this.#deps;
    switch (event.kind) {
      case 'acknowledged':
        if (event.first) log.info({ upstream: upstream.name }, 'changes of the upstream are told');
        return;
      case 'lost':
        return log.warn(
          { upstream: upstream.name, reason: event.reason.kind, detail: event.reason.detail },
          'changes of the upstream may go unseen for a moment',
        );
      case 'unopened':
        if (event.reason.kind === 'full')
          log.warn(
            { upstream: upstream.name },
            'no connection is left to listen on: `connections` allows no more',
          );
        return;
      case 'not-offered':
        return log.info(
          { upstream: upstream.name, reason: event.reason },
          'the upstream does not tell of its changes',
        );
      default:
    }
  }
}

/** What the gateway and many others ask for together, and who asks for what: nobody is looked at in vain. */
class Asked implements Wanted {
  /** What the gateway asks for itself. */
  own = new Coverage(NOTHING);
  readonly sitters = new Set<Sitter>();
  readonly #lists = new Map<ListName, Set<Sitter>>();
  readonly #uris = new Map<string, Set<Sitter>>();
  readonly #tasks = new Map<string, Set<Sitter>>();
  /** Of the URIs, with how many have it. */
  readonly #lengths = new Map<number, number>();

  get isNothing(): boolean {
    return this.#lists.size + this.#uris.size + this.#tasks.size === 0 && isNothing(this.own.filter);
  }

  get filter(): ListenFilter {
    const theirs = filterOf((list) => this.#lists.has(list), [...this.#uris.keys()], [...this.#tasks.keys()]);
    return together([theirs, without(this.own.filter, { has: (subject) => this.isTheirs(subject) })]);
  }

  has(subject: Subject): boolean {
    return this.isTheirs(subject) || this.own.has(subject);
  }

  /** Whether others than the gateway ask for this very thing. */
  isTheirs(subject: Subject): boolean {
    return this.#whoNames(subject) !== undefined;
  }

  covers(subject: Subject): boolean {
    for (const _ of this.#asking(subject)) return true;
    return this.own.covers(subject);
  }

  /** Each once. */
  whoAsks(subject: Subject): ReadonlySet<Sitter> {
    const who = new Set<Sitter>();
    for (const sitters of this.#asking(subject)) for (const sitter of sitters) who.add(sitter);
    return who;
  }

  /** @returns what of it there is room for. */
  add(filter: ListenFilter, sitter: Sitter): ListenFilter {
    this.sitters.add(sitter);
    return within(filter, {
      has: (subject) => {
        const known = this.#whoNames(subject);
        if (known !== undefined) known.add(sitter);
        else if (subject.kind === 'uri' && this.#uris.size >= LISTENED_URIS) return false;
        else this.#begin(subject, sitter);
        return true;
      },
    });
  }

  remove(filter: ListenFilter, sitter: Sitter): void {
    for (const subject of subjectsOf(filter)) {
      const sitters = this.#whoNames(subject);
      if (sitters?.delete(sitter) === true && sitters.size === 0) this.#end(subject);
    }
  }

  *#asking(subject: Subject): Generator<ReadonlySet<Sitter>> {
    const named = this.#whoNames(subject);
    if (named !== undefined) yield named;
    if (subject.kind !== 'uri') return;
    for (const uri of urisAbove(subject.uri, this.#lengths)) {
      const above = this.#uris.get(uri);
      if (above !== undefined) yield above;
    }
  }

  #whoNames(subject: Subject): Set<Sitter> | undefined {
    switch (subject.kind) {
      case 'list':
        return this.#lists.get(subject.list);
      case 'uri':
        return this.#uris.get(subject.uri);
      case 'task':
        return this.#tasks.get(subject.taskId);
    }
  }

  #begin(subject: Subject, sitter: Sitter): void {
    const sitters = new Set([sitter]);
    switch (subject.kind) {
      case 'list':
        this.#lists.set(subject.list, sitters);
        return;
      case 'uri': {
        const { length } = subject.uri;
        this.#uris.set(subject.uri, sitters);
        this.#lengths.set(length, (this.#lengths.get(length) ?? 0) + 1);
        return;
      }
      case 'task':
        this.#tasks.set(subject.taskId, sitters);
    }
  }

  #end(subject: Subject): void {
    switch (subject.kind) {
      case 'list':
        this.#lists.delete(subject.list);
        return;
      case 'uri': {
        const { length } = subject.uri;
        const count = (this.#lengths.get(length) ?? 0) - 1;
        this.#uris.delete(subject.uri);
        if (count > 0) this.#lengths.set(length, count);
        else this.#lengths.delete(length);
        return;
      }
      case 'task':
        this.#tasks.delete(subject.taskId);
    }
  }
}
