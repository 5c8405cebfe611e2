/**
 * Who listens to what: the gateway to each upstream for what it keeps, and clients to the upstreams that have what they
 * ask for, over one stream for all whom an upstream cannot tell apart (R42).
 */
import { callerHeaders, ownCredential } from '../auth/forward.ts';
import type { UpstreamConfig } from '../config/types.ts';
import type { Reply } from '../protocol/exchange.ts';
import type { Head } from '../protocol/headers.ts';
import type { ListenFilter, ListName } from '../protocol/listen-filter.ts';
import { CURRENT_VERSION } from '../protocol/meta.ts';
import type { Signal } from '../protocol/signal.ts';
import type { Upstream } from '../upstream/types.ts';
import { Hub, type HubDeps } from './hub.ts';
import { Listener } from './listener.ts';
import { acknowledged, completed, stamped } from './messages.ts';
import { Watch } from './watch.ts';

export interface SubscriptionsDeps extends Pick<HubDeps, 'cache' | 'log' | 'notified'> {
  readonly upstreams: ReadonlyMap<string, Upstream>;
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
  readonly parts: readonly ListenShare[];
  /** How long the acknowledgment may take. */
  readonly withinMs: number;
  /** Fires when the client has left. */
  readonly signal: Signal;
}

export class Subscriptions {
  readonly #deps: SubscriptionsDeps;
  readonly #hubs = new Map<string, Hub>();
  readonly #watches = new Map<string, { readonly watch: Watch; readonly hub: Hub }>();
  /** By route; each with the head of its request. */
  readonly #listeners = new Map<string, Map<Listener, Head>>();
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

  /** Whether changes of an upstream are heard; undefined where nobody listens for them. */
  isHeard(upstream: string): boolean | undefined {
    return this.#watches.get(upstream)?.hub.isOpen;
  }

  /** How far the listening to an upstream is, for what is kept of it; undefined where nobody listens. */
  stateOf(upstream: string): Hub['state'] | undefined {
    return this.#watches.get(upstream)?.hub.state;
  }

  /** Opens a client's listen. *Never* rejects. */
  async listen({ route, id, head, parts, withinMs, signal }: ListenOrder): Promise<Reply> {
    const listeners = this.#listeners.get(route) ?? new Map<Listener, Head>();
    this.#listeners.set(route, listeners);
    const shares = parts.map(({ config, filter, meta, admits, audience }) => ({
      upstream: config.name,
      hub: this.#hub(config, callerHeaders(config, head), meta),
      filter,
      admits,
      audience: `${route} ${audience}`,
    }));
    const listener: Listener = new Listener(id, shares, () => listeners.delete(listener));
    listeners.set(listener, head);
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
    for (const listener of this.#listeners.get(route)?.keys() ?? []) listener.arrived(lists);
  }

  /** An upstream of this route says what it tells; of what its clients were promised, they hear from it, too. */
  announced(route: string, announcement: Announcement): void {
    const known = this.#announced.get(route) ?? new Map<string, Announcement>();
    this.#announced.set(route, known.set(announcement.config.name, announcement));
    for (const [listener, head] of this.#listeners.get(route) ?? [])
      this.#widen(listener, head, announcement);
  }

  close(): void {
    for (const { watch } of this.#watches.values()) watch.close();
    for (const hub of this.#hubs.values()) hub.close();
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
    const hub = new Hub({
      ...{ cache, log, notified },
      whose: isSame(headers, ownCredential(config)) ? 'gateway' : 'caller',
      upstream: upstreams.get(name) as Upstream,
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
