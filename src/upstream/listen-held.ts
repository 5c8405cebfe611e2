/** What holding streams needs: which more are worth opening, and what of two side by side is told. */
import {
  type Coverage,
  filterOf,
  LIST_FLAGS,
  type ListenFilter,
  type Subject,
  without,
} from '../protocol/listen-filter.ts';
import type { Notification } from '../protocol/notice.ts';
import type { Balance, Turn } from './balance.ts';
import type { Link } from './call.ts';
import type { StreamParts } from './listen-stream.ts';
import type { ListenTimes } from './listen-times.ts';
import type { Failure } from './types.ts';

/** A stream, or what stands for one. */
export interface OpenStream {
  /** Closes it; nothing is told behind that. */
  stop(): void;
}

/** What listening to one upstream needs. */
export interface ListenDeps {
  readonly link: Link;
  readonly balance: Balance;
  readonly times: ListenTimes;
  /** Opens a stream; *never* tells of it from within. */
  readonly open: (parts: StreamParts) => OpenStream;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** Told that an endpoint answered. */
  readonly answered: (turn: Turn, startedAt: number) => void;
}

/** What a part tells of itself; `part` of its listening. */
export interface PartHooks {
  /** What was asked for and is still wanted. */
  wants(subject: Subject): boolean;
  acknowledged(gained: ListenFilter): void;
  notified(subject: Subject, notification: Notification): void;
  lost(reason: Failure, covered: ListenFilter): void;
  unopened(reason: Failure): void;
  notOffered(reason: string, asked: ListenFilter): void;
  /** The filter is at fault: gives a part of it to another. @returns whether there was any to give. */
  divide(): boolean;
  /** Nothing is wanted of it and nothing is open: it can be forgotten. */
  idle(): void;
}

/** A stream and what was asked on it. */
export interface Held {
  readonly asked: Coverage;
  readonly turn: Turn;
  readonly startedAt: number;
  readonly stream: OpenStream;
  /** Nothing until it is acknowledged. */
  honoured: Coverage;
}

/** Things told over wider streams that are remembered while a narrower one runs out. */
const MAX_TOLD = 1_000;

/**
 * Narrower streams that run out beside the one that has replaced them.
 * *Bounded by* the changes that can be made while one of them lasts.
 */
export class Overlaps {
  readonly #lastsMs: number;
  readonly #streams = new Map<Held, { readonly timer: NodeJS.Timeout; readonly told: Set<string> }>();

  constructor(lastsMs: number) {
    this.#lastsMs = lastsMs;
  }

  /** Lets a stream that was replaced run out. */
  add(narrower: Held): void {
    const timer = setTimeout(() => this.end(narrower), this.#lastsMs);
    this.#streams.set(narrower, { timer, told: new Set() });
  }

  /** Closes one. @returns false when it is none of these. */
  end(held: Held): boolean {
    clearTimeout(this.#streams.get(held)?.timer);
    if (!this.#streams.delete(held)) return false;
    held.stream.stop();
    return true;
  }

  endAll(): void {
    for (const held of this.#streams.keys()) this.end(held);
  }

  /**
   * Whether what came over a stream is to be told. Of the current one, everything. Of a narrower one, not what has been
   * told over a wider one since: whoever read after that has read what this is about, too, whichever happened first.
   */
  tells(held: Held, current: Held | undefined, subject: Subject): boolean {
    const narrower = this.#streams.get(held);
    if (narrower === undefined && held !== current) return false;
    // What is said of a task has content: none stands for another.
    if (subject.kind === 'task') return true;
    const key = subject.kind === 'uri' ? `uri ${subject.uri}` : `list ${subject.list}`;
    if (narrower !== undefined) return !narrower.told.has(key);
    for (const { told } of this.#streams.values()) if (told.size < MAX_TOLD) told.add(key);
    return true;
  }
}

/**
 * What is wanted, was not asked for, and is worth asking for: of a kind that was asked for in vain, more is not.
 * Otherwise a server without `subscribe` would be asked anew for each URI.
 */
export function lacking(wanted: ListenFilter, asked: Coverage, honoured: Coverage): ListenFilter {
  const missing = without(wanted, asked);
  const inVain = (kind: 'resourceSubscriptions' | 'taskIds'): boolean =>
    (asked.filter[kind]?.length ?? 0) > 0 && (honoured.filter[kind]?.length ?? 0) === 0;
  return filterOf(
    (list) => missing[LIST_FLAGS[list]],
    inVain('resourceSubscriptions') ? [] : missing.resourceSubscriptions,
    inVain('taskIds') ? [] : (missing.taskIds ?? []),
  );
}
