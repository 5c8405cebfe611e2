/**
 * What one older client left behind: the resources it subscribed to, its log level, the stream it reads, and what it is
 * asked at present.
 *
 * Each subscription is a `subscriptions/listen` of this revision, held on the client's behalf; what it tells waits,
 * one message a thing, while no stream is open (R40). *Bounded by* {@link MAX_SUBSCRIPTIONS} and {@link MAX_ASKED}.
 * *Spec:* 2025-11-25, server/resources, "Subscriptions"; basic/transports, "Listening for Messages".
 */
import type { Feed, Outlet } from '../protocol/exchange.ts';
import { META_SUBSCRIPTION_ID } from '../protocol/meta.ts';

/** Resources of one session. */
export const MAX_SUBSCRIPTIONS = 1_000;
/** Questions that wait for a client's answer. */
export const MAX_ASKED = 64;

/** A listen of this revision, as it was opened. */
export interface OpenedListen {
  /** JSON text of the id that stamps its messages. */
  readonly id: string;
  /** JSON text of the filter that was acknowledged. */
  readonly honoured: string;
  readonly feed: Feed;
}

/** What is listened for: all lists, or one resource. */
export type ListenSubject = { readonly kind: 'lists' } | { readonly kind: 'uri'; readonly uri: string };

export interface SessionDeps {
  /** Opens a listen; undefined where it is refused. *Never* rejects. */
  readonly listen: (subject: ListenSubject) => Promise<OpenedListen | undefined>;
}

interface Held {
  readonly listen: OpenedListen;
  begun: boolean;
  /** Written, and not taken. */
  waiting: string | undefined;
}

export type Subscribed = 'yes' | 'refused' | 'full';

const LISTS = 'lists';

export class Session {
  readonly #deps: SessionDeps;
  readonly #held = new Map<string, Held>();
  readonly #opening = new Map<string, Promise<Subscribed>>();
  readonly #asked = new Map<string, (answer: Uint8Array) => void>();
  #stream: { readonly outlet: Outlet; readonly feed: Feed } | undefined;
  #blocked = false;
  #closed = false;
  /** As the client set it. */
  logLevel: string | undefined;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
  }

  /** Whether a client hangs on it right now. */
  get inUse(): boolean {
    return this.#stream !== undefined || this.#asked.size > 0;
  }

  /** What a `GET` reads: it takes over from an earlier one, whose connection may have died unnoticed. */
  open(): Feed {
    void this.#hold(LISTS, { kind: 'lists' });
    const feed: Feed = {
      start: (outlet) => {
        const earlier = this.#stream;
        this.#stream = { outlet, feed };
        earlier?.outlet.end();
        this.#drained();
      },
      drained: () => {
        if (this.#stream?.feed === feed) this.#drained();
      },
      stop: () => {
        if (this.#stream?.feed === feed) this.#stream = undefined;
      },
    };
    return feed;
  }

  async subscribe(uri: string): Promise<Subscribed> {
    const key = keyOf(uri);
    if (this.#held.has(key)) return 'yes';
    if (this.#held.size + this.#opening.size >= MAX_SUBSCRIPTIONS) return 'full';
    return this.#hold(key, { kind: 'uri', uri });
  }

  async unsubscribe(uri: string): Promise<void> {
    const key = keyOf(uri);
    await this.#opening.get(key);
    this.#held.get(key)?.listen.feed.stop();
    this.#held.delete(key);
  }

  /** Waits for the client's answer to a question. @returns undefined when too many are open. */
  expect(id: string, answered: (message: Uint8Array) => void): (() => void) | undefined {
    if (this.#asked.size >= MAX_ASKED) return undefined;
    this.#asked.set(id, answered);
    return () => this.#asked.delete(id);
  }

  /** Takes a client's answer. @param id JSON text. */
  answer(id: string, message: Uint8Array): void {
    const answered = this.#asked.get(id);
    this.#asked.delete(id);
    answered?.(message);
  }

  close(): void {
    this.#closed = true;
    for (const { listen } of this.#held.values()) listen.feed.stop();
    this.#held.clear();
    const stream = this.#stream;
    this.#stream = undefined;
    stream?.outlet.end();
  }

  #hold(key: string, subject: ListenSubject): Promise<Subscribed> {
    if (this.#held.has(key)) return Promise.resolve('yes');
    const known = this.#opening.get(key);
    if (known !== undefined) return known;
    const opening = this.#open(key, subject).finally(() => this.#opening.delete(key));
    this.#opening.set(key, opening);
    return opening;
  }

  async #open(key: string, subject: ListenSubject): Promise<Subscribed> {
    const listen = await this.#deps.listen(subject);
    if (listen === undefined) return 'refused';
    if (this.#closed || listen.honoured === '{}') {
      listen.feed.stop();
      return 'refused';
    }
    const held: Held = { listen, begun: false, waiting: undefined };
    this.#held.set(key, held);
    this.#flush(held);
    return 'yes';
  }

  #drained(): void {
    this.#blocked = false;
    for (const held of this.#held.values()) {
      if (this.#blocked) return;
      this.#flush(held);
    }
  }

  /** Nothing is begun before somebody reads: until then the listen itself keeps what it has to tell. */
  #flush(held: Held): void {
    if (this.#stream === undefined || this.#blocked) return;
    const { waiting } = held;
    held.waiting = undefined;
    if (waiting !== undefined && !this.#write(held, waiting)) return;
    if (held.begun) return held.listen.feed.drained();
    held.begun = true;
    held.listen.feed.start({
      write: (message) => this.#write(held, unstamped(message, held.listen.id)),
      // An upstream that stops telling is listened to again, by those who hold the listen.
      end: () => {},
    });
  }

  #write(held: Held, message: string): boolean {
    if (this.#stream === undefined || this.#blocked) held.waiting = message;
    else this.#blocked = !this.#stream.outlet.write(message);
    return this.#stream !== undefined && !this.#blocked;
  }
}

function keyOf(uri: string): string {
  return `uri ${uri}`;
}

/** A message without what says which listen it came on: older clients know of none. */
export function unstamped(message: string, id: string): string {
  const stamp = `"${META_SUBSCRIPTION_ID}":${id}`;
  const at = message.indexOf(stamp);
  if (at < 0) return message;
  const behind = at + stamp.length;
  if (message[behind] === ',') return message.slice(0, at) + message.slice(behind + 1);
  // It was all there is of `_meta`.
  const before = message.slice(0, at - '"_meta":{'.length);
  const rest = message.slice(behind + 1);
  return before + (rest.startsWith(',') ? rest.slice(1) : rest);
}
