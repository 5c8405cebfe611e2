/**
 * One listening to an upstream, shared by all whom that upstream cannot tell apart: the gateway, for what it keeps, and
 * the clients that listen through it.
 *
 * What is heard ends what is kept here and on the other replicas, and only then do clients hear of it (design,
 * section 7). Closed with the last who listens. *Bounded by* what the upstream room listens for; clients go first.
 */
import type { Logger } from '../observability/log.ts';
import {
  filterOf,
  isNothing,
  joined,
  LIST_FLAGS,
  type ListenFilter,
  type ListName,
  NOTHING,
  type Subject,
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
  readonly log: Pick<Logger, 'info' | 'warn'>;
  /** Told of every notification that was heard. */
  readonly notified: (upstream: string, method: string) => void;
  /** Called each time the last has gone. */
  readonly onIdle: () => void;
}

/** Somebody who listens; called in order, and never from within `join`. */
export interface Sitter {
  heard(subject: Subject, message: Message): void;
  /** Listened to from now on, and may have changed until now. */
  gained(gained: ListenFilter): void;
  /** May change unheard until it is gained again. */
  lost(covered: ListenFilter): void;
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

const LISTS = Object.keys(LIST_FLAGS) as readonly ListName[];

export class Hub {
  readonly #deps: HubDeps;
  readonly #coalescer = new Coalescer();
  readonly #sitters = new Map<object, Sitter>();
  readonly #wanted = new Wanted();
  /** What the gateway asks for itself. */
  #own: ListenFilter = NOTHING;
  #listening: Listening | undefined;
  #closed = false;

  constructor(deps: HubDeps) {
    this.#deps = deps;
  }

  /** Whether a stream is open; undefined while there is nothing to listen for. */
  get isOpen(): boolean | undefined {
    return this.#listening && this.#listening.state === 'open';
  }

  /** What the gateway itself asks for, from now on. */
  askOwn(filter: ListenFilter): void {
    this.#own = filter;
    this.#refresh();
  }

  /** Listens for somebody. */
  join(filter: ListenFilter, sitter: Sitter): Seat {
    const seat = {};
    let asked = filter;
    const ask = (next: ListenFilter): void => {
      this.#wanted.add(next);
      this.#wanted.remove(asked);
      asked = next;
      this.#refresh();
    };
    this.#sitters.set(seat, sitter);
    this.#wanted.add(filter);
    this.#refresh();
    return {
      fate: () => this.#listening?.fate(asked) ?? { honoured: NOTHING, undecided: NOTHING },
      narrow: (next) => {
        if (this.#sitters.has(seat)) ask(next);
      },
      leave: () => {
        if (this.#sitters.delete(seat)) ask(NOTHING);
      },
    };
  }

  close(): void {
    this.#closed = true;
    this.#coalescer.close();
    this.#sitters.clear();
    this.#listening?.close();
  }

  #refresh(): void {
    if (this.#closed) return;
    const filter = joined(this.#wanted.filter, this.#own);
    if (isNothing(filter)) {
      this.#listening?.close();
      this.#listening = undefined;
      if (this.#sitters.size === 0) this.#deps.onIdle();
      return;
    }
    if (this.#listening !== undefined) return this.#listening.update(filter);
    const { upstream, request } = this.#deps;
    this.#listening = upstream.listen({ ...request, filter }, (event) => this.#heard(event));
  }

  #heard(event: ListenEvent): void {
    const { cache, upstream, notified } = this.#deps;
    const ready = freshen(cache, upstream.name, event);
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
        for (const sitter of this.#sitters.values()) sitter.gained(event.gained);
        return;
      case 'lost':
        for (const sitter of this.#sitters.values()) sitter.lost(event.covered);
        return;
      case 'unopened': {
        const why = event.reason.kind === 'full' ? 'full' : 'late';
        for (const sitter of this.#sitters.values()) sitter.unopened(why);
        return;
      }
      case 'not-offered':
        for (const sitter of this.#sitters.values()) sitter.unopened('refused');
    }
  }

  #tell(subject: Subject, message: Message): void {
    for (const sitter of this.#sitters.values()) sitter.heard(subject, message);
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

/** What many ask for together: each thing counted, so that it ends with the last who asked. */
class Wanted {
  readonly #counts = {
    lists: new Map<ListName, number>(),
    uris: new Map<string, number>(),
    tasks: new Map<string, number>(),
  };

  get filter(): ListenFilter {
    const { lists, uris, tasks } = this.#counts;
    return filterOf((list) => lists.has(list), [...uris.keys()], [...tasks.keys()]);
  }

  add(filter: ListenFilter): void {
    this.#count(filter, 1);
  }

  remove(filter: ListenFilter): void {
    this.#count(filter, -1);
  }

  #count(filter: ListenFilter, by: 1 | -1): void {
    const { lists, uris, tasks } = this.#counts;
    for (const list of LISTS) if (filter[LIST_FLAGS[list]]) count(lists, list, by);
    for (const uri of new Set(filter.resourceSubscriptions)) count(uris, uri, by);
    for (const taskId of new Set(filter.taskIds)) count(tasks, taskId, by);
  }
}

function count<T>(counts: Map<T, number>, what: T, by: 1 | -1): void {
  const now = (counts.get(what) ?? 0) + by;
  if (now === 0) counts.delete(what);
  else counts.set(what, now);
}
