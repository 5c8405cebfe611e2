/** Signs of life on a quiet stream of events. */
import { KEEP_ALIVE } from './events.ts';
import type { Swept } from './sweeper.ts';

/** How often a quiet stream says that it lives; the official client gives up on silence after about 300 s. */
export const KEEP_ALIVE_MS = 15_000;

/** What it beats on. */
interface Body {
  readonly context: { readonly now: () => number };
  readonly response: { readonly writableNeedDrain: boolean };
  write(text: string): boolean;
}

export class Heart implements Swept {
  place = -1;
  readonly #body: Body;
  #beatAt: number;

  constructor(body: Body) {
    this.#body = body;
    this.#beatAt = body.context.now();
  }

  sweep(): void {
    const now = this.#body.context.now();
    if (now - this.#beatAt < KEEP_ALIVE_MS) return;
    this.#beatAt = now;
    // A client that does not read learns nothing from more of it.
    if (!this.#body.response.writableNeedDrain) this.#body.write(KEEP_ALIVE);
  }
}
