/**
 * Dialogues with servers of an older era that wait for their client: found again by the `requestState` it was given, by
 * the caller and for the request that it was given for, in this process alone.
 *
 * *Bounded by* half of the upstream's connections, each of which one of them holds, {@link MAX_BYTES} and
 * {@link PARKED_MS}: what is not come back for is ended, the oldest first, and declined at the server.
 */
import { randomBytes } from 'node:crypto';
import type { Dialogue } from './legacy-dialogue.ts';

/** People are asked: they take their time, up to what a call has. */
const PARKED_MS = 5 * 60_000;
/** What all of them together were sent. */
const MAX_BYTES = 64 * 1024 * 1024;

interface Parked {
  readonly dialogue: Dialogue;
  readonly owner: string;
  readonly timer: NodeJS.Timeout;
}

export class ParkedDialogues {
  readonly #most: number;
  /** In the order in which they began to wait. */
  readonly #parked = new Map<string, Parked>();
  #bytes = 0;

  /** @param connections of the upstream. */
  constructor(connections: number) {
    this.#most = Math.max(1, Math.floor(connections / 2));
  }

  /** @param owner what must be the same to come back to it. @returns the state that leads back. */
  park(dialogue: Dialogue, owner: string): string {
    const state = randomBytes(24).toString('base64url');
    const timer = setTimeout(() => this.#end(state), PARKED_MS);
    timer.unref();
    this.#parked.set(state, { dialogue, owner, timer });
    this.#bytes += dialogue.sizeBytes;
    for (const oldest of this.#parked.keys()) {
      if (this.#parked.size <= this.#most && this.#bytes <= MAX_BYTES) break;
      this.#end(oldest);
    }
    return state;
  }

  /** Takes up what was parked; each state leads back once. */
  take(state: string, owner: string): Dialogue | undefined {
    return this.#parked.get(state)?.owner === owner ? this.#remove(state) : undefined;
  }

  close(): void {
    for (const state of this.#parked.keys()) this.#end(state);
  }

  #end(state: string): void {
    this.#remove(state)?.end();
  }

  #remove(state: string): Dialogue | undefined {
    const parked = this.#parked.get(state);
    if (parked === undefined) return undefined;
    this.#parked.delete(state);
    clearTimeout(parked.timer);
    this.#bytes -= parked.dialogue.sizeBytes;
    return parked.dialogue;
  }
}
