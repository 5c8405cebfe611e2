/** A listening that goes on when its upstream turns out to be of another era. */
import { Coverage, isNothing, type ListenFilter, type Wanted } from '../protocol/listen-filter.ts';
import { failure } from './failure.ts';
import type { ListenEvent, Listening } from './types.ts';

const MOVED = failure('reset', 'connection_terminated', 'the upstream speaks another revision');

export class MovingListening implements Listening {
  readonly #open: (filter: ListenFilter) => Listening;
  readonly #on: (event: ListenEvent) => void;
  readonly #onClose: () => void;
  #wanted: Wanted;
  #inner: Listening;

  /** @param open begins to listen as the upstream is at the time. */
  constructor(
    open: (filter: ListenFilter) => Listening,
    filter: ListenFilter,
    on: (event: ListenEvent) => void,
    onClose: () => void,
  ) {
    this.#open = open;
    this.#on = on;
    this.#onClose = onClose;
    this.#wanted = new Coverage(filter);
    this.#inner = open(filter);
  }

  get state(): Listening['state'] {
    return this.#inner.state;
  }

  update(wanted: Wanted): void {
    this.#wanted = wanted;
    this.#inner.update(wanted);
  }

  fate(part: ListenFilter): ReturnType<Listening['fate']> {
    return this.#inner.fate(part);
  }

  /** Begins anew: what was covered may change unheard until then. */
  move(): void {
    if (this.state === 'closed') return;
    const { filter } = this.#wanted;
    const covered = this.#inner.fate(filter).honoured;
    this.#inner.close();
    this.#inner = this.#open(filter);
    if (!isNothing(covered)) this.#on({ kind: 'lost', reason: MOVED, covered });
  }

  close(): void {
    if (this.state === 'closed') return;
    this.#inner.close();
    this.#onClose();
  }
}
