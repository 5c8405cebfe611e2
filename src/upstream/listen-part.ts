/**
 * A part of what is listened for, held on one stream: opened again when it breaks, made anew when it changes.
 *
 * The wider stream is opened before the narrower one is closed, and what is still on its way over the narrower one
 * is told, too: an event may be told twice, none is lost between them. An open stream costs nothing (R48).
 */
import {
  Coverage,
  filterOf,
  isNothing,
  type ListenFilter,
  type ListName,
  NOTHING,
  type Subject,
  within,
  without,
} from '../protocol/listen-filter.ts';
import { type Notification, subjectOf } from '../protocol/notice.ts';
import { failure } from './failure.ts';
import { type Held, type ListenDeps, lacking, Overlaps, type PartHooks } from './listen-held.ts';
import type { StreamEnd } from './listen-take.ts';
import { Pause } from './listen-times.ts';
import type { Endpoint } from './pool.ts';
import type { Failure, ListenRequest } from './types.ts';

const UNTOLD = new Coverage(NOTHING);

/** See the file's head. */
export class ListenPart {
  readonly #deps: ListenDeps;
  readonly #listener: Omit<ListenRequest, 'filter'>;
  readonly #hooks: PartHooks;
  /** Wanted; written by its listening, which then calls {@link settle}. */
  readonly uris = new Set<string>();
  /** Characters of them. */
  uriChars = 0;
  lists: readonly ListName[] = [];
  taskIds: readonly string[] = [];
  /** Holds what another was refused for: what comes new goes elsewhere while it is refused itself. */
  isSuspect = false;

  /** Acknowledged. */
  #current: Held | undefined;
  /** Asked, not yet acknowledged. */
  #next: Held | undefined;
  /** Those that the current has replaced, for a moment. */
  readonly #replaced: Overlaps;
  /** When the first stream was acknowledged since there was none. */
  #openSince = 0;
  readonly #pause: Pause;
  #shrinking: NodeJS.Timeout | undefined;
  /** Endpoints that failed since a stream was acknowledged. */
  readonly #tried = new Set<Endpoint>();
  #closed = false;

  constructor(deps: ListenDeps, listener: Omit<ListenRequest, 'filter'>, hooks: PartHooks) {
    this.#deps = deps;
    this.#replaced = new Overlaps(deps.times.drainMs);
    this.#pause = new Pause(deps.times, deps.random);
    this.#listener = listener;
    this.#hooks = hooks;
  }

  get state(): 'opening' | 'open' | 'waiting' | 'not-offered' {
    if (this.#current !== undefined) return 'open';
    if (this.#next !== undefined) return 'opening';
    return this.#pause.refused === undefined ? 'waiting' : 'not-offered';
  }

  /** What is listened to now. */
  get honoured(): ListenFilter {
    return this.#current?.honoured.filter ?? NOTHING;
  }

  /** Whether it is listened to now. */
  honours(subject: Subject): boolean {
    return this.#current?.honoured.has(subject) === true;
  }

  /** Whether it is wanted here. */
  has(subject: Subject): boolean {
    switch (subject.kind) {
      case 'list':
        return this.lists.includes(subject.list);
      case 'uri':
        return this.uris.has(subject.uri);
      case 'task':
        return this.taskIds.includes(subject.taskId);
    }
  }

  /** What of a filter is wanted here, and neither listened to nor refused. */
  undecided(filter: ListenFilter): ListenFilter {
    const open = within(without(filter, this.#current?.honoured ?? UNTOLD), this);
    const { asked = UNTOLD, honoured = UNTOLD } = this.#current ?? {};
    const unasked = lacking(open, asked, honoured);
    const { refused } = this.#pause;
    return refused === undefined ? unasked : lacking(unasked, refused, UNTOLD);
  }

  close(): void {
    this.#closed = true;
    for (const held of [this.#current, this.#next]) if (held !== undefined) this.#drop(held);
    this.#current = undefined;
    this.#next = undefined;
    this.#replaced.endAll();
    this.#pause.end();
    clearTimeout(this.#shrinking);
  }

  /** Compares what is open with what is wanted, and does what is missing. */
  settle(): void {
    if (this.#closed || this.#next !== undefined) return;
    const wanted = this.#wanted();
    const current = this.#current;
    if (current !== undefined && isNothing(without(current.asked.filter, this))) {
      clearTimeout(this.#shrinking);
      this.#shrinking = undefined;
    } else if (current !== undefined) {
      this.#shrinking ??= setTimeout(() => this.#shrink(), this.#deps.times.shrinkMs);
    }
    if (isNothing(wanted)) {
      this.#pause.end();
      if (current === undefined) this.#hooks.idle();
      return;
    }
    if (current !== undefined && isNothing(lacking(wanted, current.asked, current.honoured))) return;
    const { waiting, refused } = this.#pause;
    // A refusal of the one kind says nothing of another.
    if (waiting && (refused === undefined || isNothing(lacking(wanted, refused, UNTOLD)))) return;
    this.#pause.end();
    this.#open(wanted);
  }

  /** Opens the narrower stream, or none. */
  #shrink(): void {
    this.#shrinking = undefined;
    if (this.#closed || this.#next !== undefined) return;
    const wanted = this.#wanted();
    const current = this.#current;
    if (current === undefined || isNothing(without(current.asked.filter, this))) return;
    if (!isNothing(wanted)) {
      if (!this.#pause.waiting) this.#open(wanted);
      return;
    }
    this.#drop(current);
    this.#current = undefined;
    this.#replaced.endAll();
    this.settle();
  }

  #wanted(): ListenFilter {
    return filterOf((list) => this.lists.includes(list), [...this.uris], this.taskIds);
  }

  #open(wanted: ListenFilter): void {
    const { link, balance, times, open } = this.#deps;
    let turn = balance.take('stream', this.#tried);
    if (turn === undefined && this.#tried.size > 0) {
      this.#tried.clear();
      turn = balance.take('stream', this.#tried);
    }
    if (turn === undefined) {
      const rest = { retryAfterSeconds: balance.retryAfterSeconds };
      const reason = failure('circuit_open', 'destination_unavailable', 'the circuit is open', rest);
      this.#wait({ kind: 'failed', failure: reason, outcome: 'circuit_open' }, wanted);
      return;
    }
    const stream = open({
      link,
      endpoint: turn.endpoint,
      listener: this.#listener,
      filter: wanted,
      ackMs: times.ackMs,
      hooks: {
        acknowledged: (honoured) => this.#acknowledged(held, honoured),
        notified: (notification) => this.#notified(held, notification),
        ended: (end) => this.#ended(held, end),
      },
    });
    const asked = new Coverage(wanted);
    const held: Held = { asked, turn, startedAt: link.now(), stream, honoured: UNTOLD };
    this.#next = held;
  }

  #acknowledged(held: Held, said: ListenFilter): void {
    const { link, answered } = this.#deps;
    this.#next = undefined;
    answered(held.turn, held.startedAt);
    link.attempted('ok');
    const honoured = within(held.asked.filter, new Coverage(said));
    if (isNothing(honoured)) {
      held.stream.stop();
      this.#wait({ kind: 'not-offered', reason: 'nothing of it', outcome: 'ok' }, held.asked.filter);
      return;
    }
    const before = this.#current;
    this.#tried.clear();
    this.#pause.end();
    held.honoured = new Coverage(honoured);
    this.#current = held;
    if (before === undefined) {
      this.#openSince = link.now();
    } else {
      this.#forgive();
      this.#replaced.add(before);
    }
    this.#hooks.acknowledged(without(honoured, before?.honoured ?? UNTOLD));
    if (before !== undefined) {
      const reason = failure('broken', 'http_protocol_error', 'honoured no more');
      this.#tellLost(reason, without(before.honoured.filter, held.honoured));
    }
    this.settle();
  }

  /** Tells it of what is still wanted. @returns whether there was any. */
  #tellLost(reason: Failure, covered: ListenFilter): boolean {
    const wanted = within(covered, this);
    if (this.#closed || isNothing(wanted)) return false;
    this.#hooks.lost(reason, wanted);
    return true;
  }

  #notified(held: Held, notification: Notification): void {
    const subject = subjectOf(notification);
    if (subject === undefined || !held.asked.covers(subject) || !this.#hooks.wants(subject)) return;
    if (this.#replaced.tells(held, this.#current, subject)) this.#hooks.notified(subject, notification);
  }

  #ended(held: Held, end: StreamEnd): void {
    if (this.#replaced.end(held)) {
      this.#cutShort(held, end);
    } else if (held === this.#next) {
      this.#next = undefined;
      this.#fruitless(held, end);
    } else if (held === this.#current) {
      this.#current = undefined;
      this.#lost(held, end);
    }
  }

  /** Of the narrower stream something may have been on its way that the wider one was too late for. */
  #cutShort({ honoured }: Held, end: StreamEnd): void {
    const { filter } = this.#current?.honoured ?? UNTOLD;
    const both = within(filter, honoured);
    if (this.#tellLost(reasonOf(end), both) && !this.#closed) this.#hooks.acknowledged(both);
  }

  /** An attempt came to nothing. */
  #fruitless(held: Held, end: StreamEnd): void {
    const { link, answered } = this.#deps;
    link.attempted(end.outcome);
    if (end.kind === 'not-offered') {
      answered(held.turn, held.startedAt);
      this.#wait(end, held.asked.filter);
      return;
    }
    // What a listen meets says nothing of how reads are answered: it never opens a circuit.
    held.turn.settle('ignored', held.startedAt);
    this.#tried.add(held.turn.endpoint);
    const current = this.#current;
    const narrower =
      current !== undefined && !isNothing(lacking(held.asked.filter, current.asked, current.honoured));
    if (end.failure.kind !== 'full' || !narrower) {
      this.#wait(end, held.asked.filter);
      return;
    }
    // There is no place for two streams: the narrower one gives up its own.
    this.#drop(current);
    this.#current = undefined;
    this.#replaced.endAll();
    this.#tried.clear();
    this.#tellLost(end.failure, current.honoured.filter);
    this.settle();
  }

  #lost(held: Held, end: StreamEnd): void {
    this.#forgive();
    this.#replaced.endAll();
    clearTimeout(this.#shrinking);
    this.#shrinking = undefined;
    // It paused for the sake of more: now there is nothing.
    this.#pause.end();
    if (this.#next === undefined) this.#pause.begin(end, held.asked, () => this.settle());
    this.#tellLost(reasonOf(end), held.honoured.filter);
    if (end.kind === 'not-offered') this.#hooks.notOffered(end.reason, held.asked.filter);
    this.settle();
  }

  /** An attempt has come to nothing: the next one comes later. */
  #wait(end: StreamEnd, asked: ListenFilter): void {
    // One that a server takes offence at must not cost all others: it is found by halves.
    if (end.kind === 'not-offered' && end.blames === 'filter' && this.#hooks.divide()) return this.settle();
    this.#pause.begin(end, new Coverage(asked), () => this.settle());
    if (end.kind === 'failed') this.#hooks.unopened(end.failure);
    else this.#hooks.notOffered(end.reason, asked);
  }

  /** Forgets the failures before a stream that was open for a while. */
  #forgive(): void {
    const { link, times } = this.#deps;
    if (link.now() - this.#openSince >= times.steadyMs) this.#pause.forgive();
  }

  /** Closes a stream of which no end will be told. */
  #drop(held: Held): void {
    held.stream.stop();
    if (held !== this.#next) return;
    held.turn.settle('ignored', held.startedAt);
    this.#deps.link.attempted('cancelled');
  }
}

function reasonOf(end: StreamEnd): Failure {
  return end.kind === 'failed' ? end.failure : failure('broken', 'destination_unavailable', end.reason);
}
