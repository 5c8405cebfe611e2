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
import type { ListenStream } from './listen-stream.ts';
import type { ListenTimes } from './listen-times.ts';
import type { Failure } from './types.ts';

/** What listening to one upstream needs. */
export interface ListenDeps {
  readonly link: Link;
  readonly balance: Balance;
  readonly times: ListenTimes;
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
  /** Nothing is wanted of it and nothing is open: it can be forgotten. */
  idle(): void;
}

/** A stream and what was asked on it. */
export interface Held {
  readonly asked: Coverage;
  readonly turn: Turn;
  readonly startedAt: number;
  readonly stream: ListenStream;
  /** Nothing until it is acknowledged. */
  honoured: Coverage;
}

/** Things told over the wider stream that are remembered while the narrower one runs out. */
const MAX_TOLD = 1_000;

/** A narrower stream that runs out beside the wider one that has replaced it. */
export class Overlap {
  readonly narrower: Held;
  readonly #timer: NodeJS.Timeout;
  readonly #told = new Set<string>();

  /** @param over called after `lastsMs`, unless it has ended before. */
  constructor(narrower: Held, lastsMs: number, over: () => void) {
    this.narrower = narrower;
    this.#timer = setTimeout(over, lastsMs);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.narrower.stream.stop();
  }

  /**
   * Whether what came over one of the two is to be told. Of the wider one, everything. Of the narrower one, not what
   * the wider one has told: whoever read after that has read what this is about, too, whichever happened first.
   */
  tells(held: Held, subject: Subject): boolean {
    if (subject.kind === 'task') return true;
    const key = subject.kind === 'uri' ? `uri ${subject.uri}` : `list ${subject.list}`;
    if (held === this.narrower) return !this.#told.has(key);
    if (this.#told.size < MAX_TOLD) this.#told.add(key);
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
