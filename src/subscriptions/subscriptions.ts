/**
 * Who listens to what: the gateway to each upstream for what it keeps, and clients to the upstreams that have what they
 * ask for, over one stream for all whom an upstream cannot tell apart (R42).
 */
import { callerHeaders, ownCredential } from '../auth/forward.ts';
import type { UpstreamConfig } from '../config/types.ts';
import type { Logger } from '../observability/log.ts';
import type { Reply } from '../protocol/exchange.ts';
import type { Head } from '../protocol/headers.ts';
import { type ListenFilter, type ListName, NOTHING } from '../protocol/listen-filter.ts';
import { CURRENT_VERSION } from '../protocol/meta.ts';
import type { Signal } from '../protocol/signal.ts';
import type { Upstream } from '../upstream/types.ts';
import { Hub, type HubDeps } from './hub.ts';
import { Listener, type Share } from './listener.ts';
import { acknowledged, completed, stamped } from './messages.ts';
import { Watch } from './watch.ts';

export interface SubscriptionsDeps extends Pick<HubDeps, 'cache' | 'notified'> {
  /** Those of the moment. */
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** The resources of an upstream that are held at present. */
  readonly heldUris: (upstream: string) => Iterable<string>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

/** What of a client's listen one upstream is asked. */
export interface ListenShare {
  readonly config: UpstreamConfig;
  readonly filter: ListenFilter;
  /** JSON members of `params._meta`: callers with others are told apart. */
  readonly meta: string;
  /** Whether that upstream may have this resource. */
  readonly admits: (uri: string) => boolean;
  /** For all of the same audience on one route the answer is the same. */
  readonly audience: string;
}

/** What of a listen is asked of whom. */
export interface ListenPlan {
  readonly parts: readonly ListenShare[];
  /** Whether nobody was asked in vain: what is in no part, nobody has. */
  readonly extent: 'whole' | 'part';
  /** Whether the route is still the one that it was made by. */
  readonly isCurrent: () => boolean;
}

/** What an upstream tells of its lists. */
export interface Announcement {
  readonly config: UpstreamConfig;
  readonly meta: string;
  readonly lists: ReadonlySet<ListName>;
}

/** A client's listen. */
export interface ListenOrder {
  readonly route: string;
  /** JSON text of its id. */
  readonly id: string;
  readonly head: Head;
  /** Who is asked what; waits no longer than an acknowledgment may. */
  readonly first: ListenPlan;
  /** Finds it out anew, by what holds then, and takes the time that it takes. */
  readonly plan: () => Promise<ListenPlan>;
  /** How long the acknowledgment may take. */
  readonly withinMs: number;
  /** Fires when the client has left. */
  readonly signal: Signal;
}

/** What of a listen is kept beside it. */
interface Kept extends Pick<ListenOrder, 'route' | 'head' | 'plan'> {
  /** Counts its plans: only the newest of them counts. */
  plans: number;
}

/** Listens that are planned anew at once: each may ask for lists of its own. */
const PLANS_AT_ONCE = 8;
/** Where it was not found out whose something is, it is looked for again: the first pause, the longest, and how often. */
const FIRST_LOOK_MS = 1_000;
const LAST_LOOK_MS = 60_000;
const MAX_LOOKS = 10;

type Listening = readonly [Listener, Kept];

export class Subscriptions {
  readonly #deps: SubscriptionsDeps;
  readonly #hubs = new Map<string, Hub>();
  readonly #watches = new Map<string, { readonly watch: Watch; readonly hub: Hub }>();
  /** By route; each with what of its request is kept. */
  readonly #listeners = new Map<string, Map<Listener, Kept>>();
  /** By route: when what is missing is looked for again. */
  readonly #looks = new Map<string, NodeJS.Timeout>();
  /** By route and name, what upstreams tell of their lists. */
  readonly #announced = new Map<string, Map<string, Announcement>>();

  constructor(deps: SubscriptionsDeps) {
    this.#deps = deps;
  }

  /** Keeps what is held of an upstream fresh, as far as it tells of its changes. @param meta as for a part. */
  watch(config: UpstreamConfig, meta: string): void {
    const { name } = config;
    const { heldUris, now } = this.#deps;
    const hub = this.#hub(config, ownCredential(config), meta);
    this.#watches.set(name, { hub, watch: new Watch({ hub, heldUris: () => heldUris(name), now }) });
  }

  watched(upstream: string): Watch | undefined {
    return this.#watches.get(upstream)?.watch;
  }

  /** Whether changes of an upstream are heard; undefined where nobody listens for them, or it tells of none. */
  isHeard(upstream: string): boolean | undefined {
    return this.#watches.get(upstream)?.hub.isOpen;
  }

  /** How far the listening to an upstream is, for what is kept of it; undefined where nobody listens. */
  stateOf(upstream: string): Hub['state'] | undefined {
    return this.#watches.get(upstream)?.hub.state;
  }

  /** Opens a client's listen. *Never* rejects. */
  async listen({ route, id, head, first, plan, withinMs, signal }: ListenOrder): Promise<Reply> {
    const kept: Kept = { route, head, plan, plans: 0 };
    const { parts } = first.isCurrent() ? first : await this.#planned(kept);
    const listeners = this.#listeners.get(route) ?? new Map<Listener, Kept>();
    this.#listeners.set(route, listeners);
    const listener: Listener = new Listener(id, this.#shares(kept, parts), () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(route) === listeners) this.#listeners.delete(route);
    });
    listeners.set(listener, kept);
    const leave = (): void => listener.stop();
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
    const honoured = await listener.acknowledge(withinMs);
    // From here on whoever writes it says when it is over.
    signal.removeEventListener('abort', leave);
    for (const announcement of this.#announced.get(route)?.values() ?? [])
      this.#widen(listener, head, announcement);
    const opening = stamped(acknowledged(honoured), id);
    return { kind: 'listen', opening, closing: completed(id), feed: listener };
  }

  /** An upstream of this route is there that was not before: its lists are news. */
  arrived(route: string, lists: Iterable<ListName>): void {
    const missing: Listening[] = [];
    for (const [listener, kept] of this.#listeners.get(route) ?? []) {
      listener.arrived(lists);
      if (listener.isMissing) missing.push([listener, kept]);
    }
    void this.#replanAll(missing, 'same');
  }

  /**
   * A route has changed: whoever listens there hears from those who have now what it asked for, and is told so. What
   * cannot be found at once is looked for again. *Never* rejects.
   */
  async replan(route: string): Promise<void> {
    await this.#replanAll([...(this.#listeners.get(route) ?? [])], 'told');
    this.#lookAgain(route, 0);
  }

  /** An upstream is there no more, or is another one: nothing of it is listened to. */
  forget(upstream: string): void {
    this.unwatch(upstream);
    for (const announced of this.#announced.values()) announced.delete(upstream);
    for (const [key, hub] of this.#hubs) {
      if (hub.upstream !== upstream) continue;
      this.#hubs.delete(key);
      hub.close();
    }
  }

  /** What is held of an upstream is not listened for any more. */
  unwatch(upstream: string): void {
    const watched = this.#watches.get(upstream);
    this.#watches.delete(upstream);
    watched?.watch.close();
    watched?.hub.askOwn(NOTHING);
  }

  /** An upstream of this route says what it tells; of what its clients were promised, they hear from it, too. */
  announced(route: string, announcement: Announcement): void {
    const known = this.#announced.get(route) ?? new Map<string, Announcement>();
    this.#announced.set(route, known.set(announcement.config.name, announcement));
    for (const [listener, { head }] of this.#listeners.get(route) ?? [])
      this.#widen(listener, head, announcement);
  }

  /** What upstreams of this route have said holds no more: they are other ones, or thought of otherwise. */
  unannounced(route: string): void {
    this.#announced.delete(route);
  }

  close(): void {
    for (const look of this.#looks.values()) clearTimeout(look);
    for (const { watch } of this.#watches.values()) watch.close();
    for (const hub of this.#hubs.values()) hub.close();
  }

  #lookAgain(route: string, count: number): void {
    clearTimeout(this.#looks.get(route));
    this.#looks.delete(route);
    const unsure = [...(this.#listeners.get(route) ?? [])].filter(([listener]) => listener.isUnsure);
    if (unsure.length === 0 || count >= MAX_LOOKS) return;
    const look = setTimeout(
      () => void this.#replanAll(unsure, 'same').then(() => this.#lookAgain(route, count + 1)),
      Math.min(FIRST_LOOK_MS * 2 ** count, LAST_LOOK_MS),
    );
    look.unref();
    this.#looks.set(route, look);
  }

  /** A few at a time. *Never* rejects. */
  async #replanAll(all: readonly Listening[], lists: 'told' | 'same'): Promise<void> {
    const rest = all.values();
    const some = async (): Promise<void> => {
      for (const [listener, kept] of rest) await this.#replan(listener, kept, lists);
    };
    await Promise.all(Array.from({ length: Math.min(PLANS_AT_ONCE, all.length) }, some));
  }

  async #replan(listener: Listener, kept: Kept, lists: 'told' | 'same'): Promise<void> {
    const { route, head } = kept;
    const nth = ++kept.plans;
    try {
      const { parts, extent } = await this.#planned(kept);
      if (kept.plans !== nth || this.#listeners.get(route)?.has(listener) !== true) return;
      listener.replan(this.#shares(kept, parts), extent, lists);
      for (const announcement of this.#announced.get(route)?.values() ?? [])
        this.#widen(listener, head, announcement);
    } catch (error) {
      this.#deps.log.error({ err: error, route }, 'a listen could not be planned anew');
    }
  }

  /** A plan by what holds when it is there: by an older one, somebody could be listened to who is not the upstream any more. */
  async #planned({ plan }: Kept): Promise<ListenPlan> {
    let planned = await plan();
    while (!planned.isCurrent()) planned = await plan();
    return planned;
  }

  #shares({ route, head }: Kept, parts: readonly ListenShare[]): Share[] {
    return parts.map(({ config, filter, meta, admits, audience }) => ({
      upstream: config.name,
      hub: this.#hub(config, callerHeaders(config, head), meta),
      filter,
      admits,
      audience: `${route} ${audience}`,
    }));
  }

  #widen(listener: Listener, head: Head, { config, meta, lists }: Announcement): void {
    if (config.subscribe)
      listener.widen(config.name, lists, () => this.#hub(config, callerHeaders(config, head), meta));
  }

  #hub(config: UpstreamConfig, headers: Readonly<Record<string, string>>, meta: string): Hub {
    const { name } = config;
    const { cache, log, notified, upstreams } = this.#deps;
    const key = JSON.stringify([name, meta, Object.entries(headers).sort()]);
    const known = this.#hubs.get(key);
    if (known !== undefined) return known;
    const upstream = upstreams.get(name);
    if (upstream === undefined) throw new Error('an upstream is listened to that is none');
    const hub = new Hub({
      ...{ cache, log, notified },
      whose: isSame(headers, ownCredential(config)) ? 'gateway' : 'caller',
      upstream,
      request: { version: CURRENT_VERSION, headers, meta },
      onIdle: () => {
        if (this.#watches.get(name)?.hub === hub) return;
        this.#hubs.delete(key);
        hub.close();
      },
    });
    this.#hubs.set(key, hub);
    return hub;
  }
}

function isSame(one: Readonly<Record<string, string>>, other: Readonly<Record<string, string>>): boolean {
  return JSON.stringify(Object.entries(one).sort()) === JSON.stringify(Object.entries(other).sort());
}
