/**
 * Dialogues with servers of an older era that wait for their client: found again by the `requestState` it was given, by
 * the caller and for the request that it was given for, in this process alone.
 *
 * *Bounded by* {@link MAX_PARKED} and {@link PARKED_MS}: what is not come back for is ended, and declined at the server.
 */
import { randomBytes } from 'node:crypto';
import { BoundedMap } from '../protocol/bounded-map.ts';
import type { Dialogue } from './legacy-dialogue.ts';

/** Dialogues that wait. Beyond it the oldest is ended. */
const MAX_PARKED = 1_000;
/** People are asked: they take their time, up to what a call has. */
const PARKED_MS = 5 * 60_000;

interface Parked {
  readonly dialogue: Dialogue;
  readonly owner: string;
  readonly timer: NodeJS.Timeout;
}

export class ParkedDialogues {
  readonly #parked = new BoundedMap<string, Parked>(MAX_PARKED, (one) => end(one));

  /** @param owner what must be the same to come back to it. @returns the state that leads back. */
  park(dialogue: Dialogue, owner: string): string {
    const state = randomBytes(24).toString('base64url');
    const timer = setTimeout(() => {
      this.#parked.delete(state);
      dialogue.end();
    }, PARKED_MS);
    timer.unref();
    this.#parked.set(state, { dialogue, owner, timer });
    return state;
  }

  /** Takes up what was parked; each state leads back once. */
  take(state: string, owner: string): Dialogue | undefined {
    const parked = this.#parked.get(state);
    if (parked === undefined || parked.owner !== owner) return undefined;
    this.#parked.delete(state);
    clearTimeout(parked.timer);
    return parked.dialogue;
  }

  close(): void {
    for (let oldest = this.#parked.oldest(); oldest !== undefined; oldest = this.#parked.oldest()) {
      this.#parked.delete(oldest[0]);
      end(oldest[1]);
    }
  }
}

function end({ dialogue, timer }: Parked): void {
  clearTimeout(timer);
  dialogue.end();
}
