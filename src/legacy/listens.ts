/**
 * The listens of this revision that sessions of older clients hold: counted, of all and of each caller.
 *
 * *Bounded by* {@link MAX_LISTENS} and {@link MAX_LISTENS_OF_HOLDER}: each costs some kilobytes, and no connection.
 */
import type { Handle, Inbound } from '../protocol/exchange.ts';
import { Abort } from '../protocol/signal.ts';
import { onBehalf, type Self } from './request.ts';
import type { ListenSubject, OpenedListen } from './session.ts';

/** Listens that sessions hold. */
const MAX_LISTENS = 20_000;
/** Of one caller. */
const MAX_LISTENS_OF_HOLDER = 5_000;

/** On whose behalf. */
export interface Listening {
  /** Route and head: what of its request is kept. */
  readonly inbound: Inbound;
  readonly self: Self;
  /** Whose it is, as a word. */
  readonly holder: string;
}

export class Listens {
  readonly #handle: Handle;
  readonly #nextId: () => string;
  readonly #held = new Map<string, number>();
  #count = 0;

  /** @param nextId an id that no other request has: JSON text. */
  constructor(handle: Handle, nextId: () => string) {
    this.#handle = handle;
    this.#nextId = nextId;
  }

  /** Opens one; undefined where it is refused, or where there is no room for it. *Never* rejects. */
  async open(listening: Listening, subject: ListenSubject): Promise<OpenedListen | undefined> {
    const release = this.#take(listening.holder);
    if (release === undefined) return undefined;
    const opened = await this.#ask(listening, subject).catch(() => undefined);
    if (opened === undefined) {
      release();
      return undefined;
    }
    const { feed } = opened;
    const stop = (): void => {
      release();
      feed.stop();
    };
    return {
      ...opened,
      feed: { start: (outlet) => feed.start(outlet), drained: () => feed.drained(), stop },
    };
  }

  /** @returns gives the place back; idempotent. */
  #take(holder: string): (() => void) | undefined {
    const own = this.#held.get(holder) ?? 0;
    if (this.#count >= MAX_LISTENS || own >= MAX_LISTENS_OF_HOLDER) return undefined;
    this.#count++;
    this.#held.set(holder, own + 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#count--;
      const left = (this.#held.get(holder) ?? 1) - 1;
      if (left > 0) this.#held.set(holder, left);
      else this.#held.delete(holder);
    };
  }

  async #ask({ inbound, self }: Listening, subject: ListenSubject): Promise<OpenedListen | undefined> {
    const id = this.#nextId();
    const filter =
      subject.kind === 'uri'
        ? { resourceSubscriptions: [subject.uri] }
        : { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
    const params = `"notifications":${JSON.stringify(filter)}`;
    // It lasts as long as the session wants it to: nothing else ends it.
    const reply = await this.#handle(onBehalf(inbound, 'subscriptions/listen', self, id, params), {
      signal: new Abort(),
      facts: {},
      notify: () => {},
    });
    if (reply.kind !== 'listen' || reply.opening === undefined) return undefined;
    const opening = JSON.parse(reply.opening) as { readonly params?: { readonly notifications?: unknown } };
    return { id, honoured: JSON.stringify(opening.params?.notifications ?? {}), feed: reply.feed };
  }
}
