/**
 * Judges one client's listen: every message as it comes, and now and then what should have come. Pure.
 *
 * **Every message** carries the id of the listen, in its own type. The first is the acknowledgment, once, within
 * {@link ACKNOWLEDGED_MS}; it honours nothing that was not asked, and all that was asked where the gateway announces
 * that it tells of changes and the resource has been there for a while. A gateway that has just started may not know
 * yet whose resource it is, or what is announced: it waits 200 ms for either, and leaves out what it does not know by then. That is
 * held against it from {@link COLD_MS} on. Afterwards comes only what was honoured.
 *
 * **Told.** After a change of what is honoured, `updated` (or `list_changed`) is heard before there has been a stretch
 * of {@link HEAL_MS} in which the upstream was up and this gateway ran, counted from {@link REOPEN_MS} after a return of
 * the upstream, so that its stream could be opened again. Trouble of Redis is no excuse: each gateway hears for itself.
 *
 * **The end.** Unless the client left or the gateway was killed, the listen ends by its empty result, and only when its
 * gateway is asked to stop.
 */
import { ACKNOWLEDGED_MS, COLD_MS, HEAL_MS, REOPEN_MS } from './bounds.ts';
import type { Finding } from './findings.ts';
import type { Part, Troubles } from './troubles.ts';
import { newest, type Truth, type UpstreamName, visible } from './truth.ts';

export const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';
export const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
export const UPDATED = 'notifications/resources/updated';
export const LIST_CHANGED = 'notifications/resources/list_changed';

/** What a listen asks for, and who does. */
export interface Listen {
  readonly id: string | number;
  readonly caller: string;
  readonly gateway: string;
  readonly upstreams: readonly UpstreamName[];
  readonly uris: readonly string[];
  readonly lists: 'asked' | 'not asked';
  readonly openedAt: number;
  /** Whether the gateway said that it tells of changes. */
  readonly announced: 'announced' | 'not announced';
}

export interface Message {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: {
    readonly uri?: unknown;
    readonly notifications?: {
      readonly resourcesListChanged?: unknown;
      readonly resourceSubscriptions?: unknown;
    };
    readonly _meta?: Readonly<Record<string, unknown>>;
  };
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number; readonly message: string };
}

export class ListenOracle {
  readonly #listen: Listen;
  readonly #truth: Truth;
  readonly #troubles: Troubles;
  #acknowledgedAt: number | undefined;
  #honouredUris: ReadonlySet<string> = new Set();
  #honoursLists = false;
  readonly #heardAt = new Map<string, number>();
  #listsHeardAt = Number.NEGATIVE_INFINITY;
  #ended = false;
  readonly #told = new Set<string>();

  constructor(listen: Listen, truth: Truth, troubles: Troubles) {
    this.#listen = listen;
    this.#truth = truth;
    this.#troubles = troubles;
  }

  /** How many resources it tells of. */
  get honours(): number {
    return this.#honouredUris.size;
  }

  /** A message has come. */
  heard(message: Message, at: number): readonly Finding[] {
    if (this.#ended) return [this.#finding('something came behind the end', message)];
    if (message.error !== undefined) return [this.#finding('ended with an error', message)];
    if (message.result !== undefined) return this.#result(message);
    if (message.params?._meta?.[SUBSCRIPTION_ID] !== this.#listen.id)
      return [this.#finding('another id', message)];
    if (message.method === ACKNOWLEDGED) return this.#acknowledged(message, at);
    if (this.#acknowledgedAt === undefined) return [this.#finding('before the acknowledgment', message)];
    return this.#changed(message, at);
  }

  /** The stream has closed. */
  closed(why: 'client left' | 'gateway stops' | 'by itself'): readonly Finding[] {
    if (why === 'client left') return [];
    if (why === 'by itself') return [this.#finding('closed although its gateway runs')];
    return this.#ended ? [] : [this.#finding('no result at the end')];
  }

  /** What should have come by now. A finding is told once. */
  due(at: number): readonly Finding[] {
    if (this.#ended) return [];
    if (this.#acknowledgedAt === undefined) {
      const isLate = at - this.#listen.openedAt > ACKNOWLEDGED_MS;
      return isLate ? this.#once('ack', 'not acknowledged') : [];
    }
    const since = this.#acknowledgedAt;
    const untold = [...this.#honouredUris].filter((uri) => {
      const { upstream, versions } = this.#truth.resource(uri);
      // A version that came while it was covered, unheard of since.
      const change = versions.findLast(({ from }) => from > since && from <= at);
      return (
        change !== undefined &&
        (this.#heardAt.get(uri) ?? 0) < change.from &&
        this.#isOverdue(upstream, change.from, at)
      );
    });
    const lists = this.#listen.upstreams.filter((upstream) => {
      const changedAt = this.#truth.listChanges(upstream).findLast((time) => time > since && time <= at);
      return (
        this.#honoursLists &&
        changedAt !== undefined &&
        this.#listsHeardAt < changedAt &&
        this.#isOverdue(upstream, changedAt, at)
      );
    });
    return [
      ...untold.flatMap((uri) => this.#once(`${uri} ${this.#versionOf(uri)}`, `${uri} changed, untold`)),
      ...lists.flatMap((upstream) =>
        this.#once(`${upstream} ${this.#truth.listChanges(upstream).length}`, `list of ${upstream}, untold`),
      ),
    ];
  }

  #acknowledged(message: Message, at: number): readonly Finding[] {
    if (this.#acknowledgedAt !== undefined) return [this.#finding('acknowledged twice', message)];
    this.#acknowledgedAt = at;
    const { resourceSubscriptions, resourcesListChanged } = message.params?.notifications ?? {};
    const uris: readonly unknown[] = Array.isArray(resourceSubscriptions) ? resourceSubscriptions : [];
    const asked = new Set<unknown>(this.#listen.uris);
    this.#honouredUris = new Set(uris.filter((uri) => asked.has(uri)).map(String));
    this.#honoursLists = resourcesListChanged === true;
    const isMore = uris.some((uri) => !asked.has(uri));
    if (isMore || (this.#honoursLists && this.#listen.lists === 'not asked'))
      return [this.#finding('honours what was not asked', message)];
    if (this.#listen.announced === 'not announced') return [];
    const left = this.#listen.uris.filter((uri) => !this.#honouredUris.has(uri) && this.#isOwned(uri, at));
    const isCold = this.#troubles.touch([`gateway:${this.#listen.gateway}`], at - COLD_MS, at);
    const leavesLists = this.#listen.lists === 'asked' && !this.#honoursLists && !isCold;
    return left.length > 0 || leavesLists
      ? [this.#finding(`leaves out ${leavesLists ? 'lists' : ''} ${left.join(' ')}`, message)]
      : [];
  }

  #changed(message: Message, at: number): readonly Finding[] {
    switch (message.method) {
      case UPDATED: {
        const uri = String(message.params?.uri);
        if (!this.#honouredUris.has(uri)) return [this.#finding('was not asked', message)];
        this.#heardAt.set(uri, at);
        return [];
      }
      case LIST_CHANGED:
        if (!this.#honoursLists) return [this.#finding('was not asked', message)];
        this.#listsHeardAt = at;
        return [];
      default:
        return [this.#finding('was not asked', message)];
    }
  }

  #result(message: Message): readonly Finding[] {
    this.#ended = true;
    const meta = message.result?._meta as Readonly<Record<string, unknown>> | undefined;
    const isRight = message.id === this.#listen.id && meta?.[SUBSCRIPTION_ID] === this.#listen.id;
    const isStopping = this.#troubles.since(`gateway:${this.#listen.gateway}`) !== undefined;
    if (!isRight) return [this.#finding('ends with another id', message)];
    return isStopping ? [] : [this.#finding('ends although its gateway runs', message)];
  }

  #isOverdue(upstream: UpstreamName, since: number, at: number): boolean {
    const parts: readonly Part[] = [`down:${upstream}`, `gateway:${this.#listen.gateway}`];
    return this.#troubles.quietFor(HEAL_MS, parts, since, at, REOPEN_MS);
  }

  /** Whether it has been there for so long that the gateway must know whose it is. */
  #isOwned(uri: string, at: number): boolean {
    const resource = this.#truth.find(uri);
    if (resource === undefined || !visible(resource, this.#listen.caller)) return false;
    const { state, from } = newest(resource);
    const parts: readonly Part[] = this.#listen.upstreams.map((upstream): Part => `down:${upstream}`);
    return (
      state === 'there' &&
      this.#troubles.quietFor(HEAL_MS, parts, from, at) &&
      !this.#troubles.touch([...parts, `gateway:${this.#listen.gateway}`], at - COLD_MS, at)
    );
  }

  #versionOf(uri: string): number {
    return newest(this.#truth.resource(uri)).number;
  }

  #once(key: string, what: string): readonly Finding[] {
    if (this.#told.has(key)) return [];
    this.#told.add(key);
    return [this.#finding(what)];
  }

  #finding(what: string, message?: Message): Finding {
    const { id, caller, gateway } = this.#listen;
    const said = message === undefined ? '' : `: ${JSON.stringify(message)}`;
    return { kind: 'listen', what: `${JSON.stringify(id)} of ${caller} on ${gateway}: ${what}${said}` };
  }
}
