/**
 * The stream of a session, heard while somebody in it can be asked: some servers ask there, and do not say which request
 * it is about.
 *
 * Opened before the first request that may be asked about, and ended a while behind the last. *Never* rejects.
 */
import { Abort, type Signal } from '../protocol/signal.ts';
import type { SessionEvents } from './legacy-listen.ts';
import type { Opened } from './legacy-session.ts';

/** How long a server may take to open the stream: once, and not for each who asks. */
const HEAR_MS = 500;
/** How long the stream stays behind the last who could be asked. */
const LINGER_MS = 10_000;

interface Hearing {
  readonly opened: Opened;
  readonly gone: Abort;
  /** Resolves when it is open, or not to be waited for. */
  readonly ready: Promise<void>;
}

export interface AsideDeps {
  readonly events: (opened: Opened, signal: Signal) => Promise<SessionEvents>;
  readonly heard: (opened: Opened, message: Uint8Array) => void;
}

export class Aside {
  readonly #deps: AsideDeps;
  #hearing: Hearing | undefined;
  /** The session whose server has none. */
  #without: Opened | undefined;
  #count = 0;
  #lingering: NodeJS.Timeout | undefined;

  constructor(deps: AsideDeps) {
    this.#deps = deps;
  }

  /** Somebody who can be asked is about to ask in this session. */
  async begin(opened: Opened): Promise<void> {
    this.#count++;
    clearTimeout(this.#lingering);
    if (this.#without === opened) return;
    if (this.#hearing?.opened !== opened) this.#open(opened);
    await this.#hearing?.ready;
  }

  /** ...and is through. */
  end(): void {
    this.#count--;
    if (this.#count > 0) return;
    clearTimeout(this.#lingering);
    this.#lingering = setTimeout(() => this.#close(), LINGER_MS).unref();
  }

  close(): void {
    clearTimeout(this.#lingering);
    this.#close();
  }

  #close(): void {
    this.#hearing?.gone.abort(new Error('nobody can be asked'));
    this.#hearing = undefined;
  }

  #open(opened: Opened): void {
    this.#close();
    const gone = new Abort();
    const opening = this.#deps.events(opened, gone);
    const ready = new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, HEAR_MS);
      void opening.finally(() => {
        clearTimeout(timer);
        resolve();
      });
    });
    const hearing = { opened, gone, ready };
    this.#hearing = hearing;
    void this.#hear(hearing, opening);
  }

  async #hear(hearing: Hearing, opening: Promise<SessionEvents>): Promise<void> {
    const events = await opening;
    if (events.kind === 'refused') this.#without = hearing.opened;
    try {
      if (events.kind === 'stream')
        for await (const message of events.messages) this.#deps.heard(hearing.opened, message);
    } catch {
      // It broke off: it is opened anew for the next who asks.
    }
    if (this.#hearing === hearing) this.#hearing = undefined;
  }
}
