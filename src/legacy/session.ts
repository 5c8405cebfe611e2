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
  /** Opens a listen; undefined where it is refused, or where there is no room for more. */
  readonly listen: (subject: ListenSubject) => Promise<OpenedListen | undefined>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Told when its client was there last. */
  readonly used: () => void;
}

/** What was told so lately on a stream that has gone may not have arrived: it is told again on the next. */
const RECENT_MS = 60_000;
/** Of that, so many things. */
const MAX_RECENT = 256;

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
  /** What is done about each thing, one behind the other. */
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #asked = new Map<string, (answer: Uint8Array | undefined) => void>();
  /** What was written last of each thing, and when. */
  readonly #recent = new Map<string, { readonly held: Held; readonly at: number }>();
  /** Calls of its client under way. */
  calls = 0;
  #stream: { readonly outlet: Outlet; readonly feed: Feed } | undefined;
  #blocked = false;
  #closed = false;
  /** Its client can answer nothing any more. */
  #deafened = false;
  /** As the client set it. */
  logLevel: string | undefined;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
  }

  /** Whether a client hangs on it right now. */
  get inUse(): boolean {
    return this.#stream !== undefined || this.#asked.size > 0 || this.calls > 0;
  }

  /** What a `GET` reads: it takes over from an earlier one, whose connection may have died unnoticed. */
  open(): Feed {
    // A stream without it hears of subscriptions all the same.
    void this.#hold(LISTS, { kind: 'lists' }).catch(() => undefined);
    const feed: Feed = {
      start: (outlet) => {
        const earlier = this.#stream;
        this.#stream = { outlet, feed };
        earlier?.outlet.end();
        this.#tellAgain(outlet);
        this.#drained();
      },
      drained: () => {
        if (this.#stream?.feed === feed) this.#drained();
      },
      stop: () => {
        if (this.#stream?.feed === feed) this.#stream = undefined;
        this.#deps.used();
      },
    };
    return feed;
  }

  async subscribe(uri: string): Promise<Subscribed> {
    const key = keyOf(uri);
    if (this.#held.has(key)) return 'yes';
    if (this.#held.size + this.#turns.size >= MAX_SUBSCRIPTIONS && !this.#turns.has(key)) return 'full';
    return this.#hold(key, { kind: 'uri', uri });
  }

  async unsubscribe(uri: string): Promise<void> {
    const key = keyOf(uri);
    await this.#inTurn(key, async () => {
      this.#held.get(key)?.listen.feed.stop();
      this.#held.delete(key);
    });
  }

  /** How many more questions it has room for. */
  get room(): number {
    return this.#closed || this.#deafened ? 0 : MAX_ASKED - this.#asked.size;
  }

  /** Waits for the client's answer to a question; undefined: there will be none. @returns undefined without room. */
  expect(id: string, answered: (message: Uint8Array | undefined) => void): (() => void) | undefined {
    if (this.room === 0) return undefined;
    this.#asked.set(id, answered);
    return () => this.#asked.delete(id);
  }

  /** Takes a client's answer. @param id JSON text. */
  answer(id: string, message: Uint8Array): void {
    const answered = this.#asked.get(id);
    this.#asked.delete(id);
    answered?.(message);
  }

  /** The client will not answer any more: the gateway goes, or the session does. */
  giveUp(): void {
    this.#deafened = true;
    const all = [...this.#asked.values()];
    this.#asked.clear();
    for (const answered of all) answered(undefined);
  }

  close(): void {
    this.#closed = true;
    this.giveUp();
    for (const { listen } of this.#held.values()) listen.feed.stop();
    this.#held.clear();
    const stream = this.#stream;
    this.#stream = undefined;
    stream?.outlet.end();
  }

  #hold(key: string, subject: ListenSubject): Promise<Subscribed> {
    return this.#inTurn(key, () => (this.#held.has(key) ? Promise.resolve('yes') : this.#open(key, subject)));
  }

  /** What is said last of a thing is what holds. */
  #inTurn<T>(key: string, act: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(key) ?? Promise.resolve();
    const turn = before.then(act, act);
    const over = turn.then(
      () => undefined,
      () => undefined,
    );
    this.#turns.set(key, over);
    void over.then(() => {
      if (this.#turns.get(key) === over) this.#turns.delete(key);
    });
    return turn;
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

  #remember(message: string, held: Held): void {
    const at = this.#deps.now();
    this.#recent.delete(message);
    this.#recent.set(message, { held, at });
    for (const [oldest, { at: then }] of this.#recent) {
      if (this.#recent.size <= MAX_RECENT && at - then <= RECENT_MS) return;
      this.#recent.delete(oldest);
    }
  }

  /** What may have been lost with an earlier stream. What was unsubscribed from since is nothing any more. */
  #tellAgain(outlet: Outlet): void {
    const since = this.#deps.now() - RECENT_MS;
    const listens = new Set(this.#held.values());
    for (const [message, { held, at }] of this.#recent)
      if (at >= since && listens.has(held)) outlet.write(message);
      else this.#recent.delete(message);
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
    else {
      this.#blocked = !this.#stream.outlet.write(message);
      this.#remember(message, held);
    }
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
