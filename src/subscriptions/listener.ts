/**
 * A client that listens: what it asked of each upstream, put together into one stream with one acknowledgment.
 *
 * Told is what it asked for, was acknowledged and the upstream has to say: nothing else, nothing before, and of what a
 * broken stream may have missed, that it may have changed (R39, R40). Of a client that does not take what is written
 * no more is kept than one message a thing. *Bounded by* its filter and {@link MAX_PENDING}.
 * *Spec:* basic/patterns/subscriptions.
 */
import type { Feed, Outlet } from '../protocol/exchange.ts';
import {
  Coverage,
  filterOf,
  isNothing,
  joined,
  LIST_FLAGS,
  type ListenFilter,
  type ListName,
  NOTHING,
  type Subject,
  together,
  within,
  without,
} from '../protocol/listen-filter.ts';
import type { Hub, Seat } from './hub.ts';
import { listChanged, type Message, stamped, updated } from './messages.ts';

/** What of a filter one upstream is asked. */
export interface Share {
  readonly upstream: string;
  readonly hub: Hub;
  readonly filter: ListenFilter;
  /** Whether that upstream may have this resource. */
  readonly admits: (uri: string) => boolean;
  /** For all of the same audience the answer is the same. */
  readonly audience: string;
}

/** Resources below those asked for that wait to be told of one by one. Beyond it, the one asked for stands for them. */
const MAX_PENDING = 1_000;
const NONE = new Coverage(NOTHING);

/** What one upstream has to say to this client. */
interface Source {
  /** Another one, where a changed route asks the same of the same. */
  share: Share;
  readonly seat: Seat;
  /** Acknowledged to the client. */
  honoured: Coverage;
  /** Of that, what changes unheard at present. */
  unheard: ListenFilter;
  /** There was no room for a stream: who knows when there will be. */
  full: boolean;
}

export class Listener implements Feed {
  readonly #id: string;
  readonly #onStop: () => void;
  #sources: Source[];
  /** Called when something may have been decided; undefined once it is acknowledged. */
  #onDecided: (() => void) | undefined;
  #outlet: Outlet | undefined;
  #blocked = false;
  readonly #pending = new Map<string, Message>();
  /** What was acknowledged; undefined until then. */
  #promised: ListenFilter | undefined;
  #isUnsure = false;
  #stopped = false;

  /** @param id JSON text of the listen's id. */
  constructor(id: string, shares: readonly Share[], onStop: () => void) {
    this.#id = id;
    this.#onStop = onStop;
    this.#sources = shares.map((share) => this.#join(share));
  }

  /**
   * Waits until all is acknowledged or refused, or the time is over: who is late is counted on.
   * @returns what is honoured.
   */
  async acknowledge(withinMs: number): Promise<ListenFilter> {
    if (!this.#isDecided()) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, withinMs);
        this.#onDecided = () => {
          if (!this.#stopped && !this.#isDecided()) return;
          clearTimeout(timer);
          resolve();
        };
      });
      this.#onDecided = undefined;
    }
    if (this.#stopped) return NOTHING;
    for (const source of this.#sources) {
      const { honoured, undecided } = source.seat.fate();
      const late = source.full ? NOTHING : undecided;
      const counted = together([honoured, late]);
      source.honoured = new Coverage(counted);
      source.unheard = late;
      if (isNothing(counted)) source.seat.leave();
      else if (!isNothing(without(source.share.filter, source.honoured))) source.seat.narrow(counted);
    }
    // No resource is asked of two.
    this.#promised = together(this.#sources.map((source) => source.honoured.filter));
    return this.#promised;
  }

  start(outlet: Outlet): void {
    this.#outlet = outlet;
    this.drained();
  }

  drained(): void {
    this.#blocked = false;
    for (const [key, message] of this.#pending) {
      if (this.#blocked) return;
      this.#pending.delete(key);
      this.#write(message);
    }
  }

  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    for (const { seat } of this.#sources) seat.leave();
    this.#pending.clear();
    this.#onDecided?.();
    this.#onStop();
  }

  /** An upstream of the route is there that was not before. */
  arrived(lists: Iterable<ListName>): void {
    for (const list of lists) {
      if (this.#sources.some(({ honoured }) => honoured.filter[LIST_FLAGS[list]])) this.#tellList(list);
    }
  }

  /**
   * An upstream says that it tells of these lists: what of them the client was promised without it, it hears of from
   * now on.
   */
  widen(upstream: string, lists: ReadonlySet<ListName>, hubOf: () => Hub): void {
    if (this.#stopped) return;
    const isPromised = (list: ListName): boolean =>
      this.#sources.some(({ honoured }) => honoured.filter[LIST_FLAGS[list]]);
    const isAsked = (list: ListName): boolean =>
      this.#sources.some(({ share }) => share.upstream === upstream && share.filter[LIST_FLAGS[list]]);
    const filter = filterOf((list) => lists.has(list) && isPromised(list) && !isAsked(list), [], []);
    if (isNothing(filter)) return;
    const source = this.#join({ upstream, hub: hubOf(), filter, admits: () => false, audience: '' });
    source.honoured = new Coverage(filter);
    source.unheard = without(filter, new Coverage(source.seat.fate().honoured));
    this.#sources.push(source);
  }

  /**
   * Somebody else has what was asked for: it is listened to there from now on. What was acknowledged stays so, and of all
   * that comes from somebody else now the client is told that it may have changed.
   * @param extent `part`: what is in no share may be somebody's all the same, and is heard from whom it was.
   * @param lists whether the lists may have changed.
   */
  replan(shares: readonly Share[], extent: 'whole' | 'part', lists: 'told' | 'same'): void {
    if (this.#stopped) return;
    const promised = this.#promised;
    const before = this.#sources;
    const wanted = promised === undefined ? shares : shares.map((share) => only(share, promised));
    const planned = new Coverage(together(wanted.map(({ filter }) => filter)));
    this.#isUnsure = extent === 'part';
    const sources = wanted.map((share) => keep(before, share) ?? this.#join(share));
    const others = before.filter((source) => !sources.includes(source));
    this.#sources = extent === 'part' ? [...sources, ...this.#unplanned(others, planned)] : sources;
    for (const source of before) if (!this.#sources.includes(source)) source.seat.leave();
    if (promised === undefined) return this.#onDecided?.();
    for (const source of this.#sources) {
      if (before.includes(source)) continue;
      const { filter } = source.share;
      source.honoured = new Coverage(filter);
      source.unheard = without(filter, new Coverage(source.seat.fate().honoured));
    }
    const isElsewhere = (uri: string): boolean => hubOf(before, uri) !== hubOf(this.#sources, uri);
    const moved = promised.resourceSubscriptions.filter(isElsewhere);
    this.#tellAll({ ...(lists === 'told' ? promised : NOTHING), resourceSubscriptions: moved });
  }

  /** Of what was acknowledged something is listened to nowhere at present. */
  get isMissing(): boolean {
    if (this.#promised === undefined || this.#stopped) return false;
    const heard = new Coverage(together(this.#sources.map((source) => source.honoured.filter)));
    return !isNothing(without(this.#promised, heard));
  }

  /** Something is listened to nowhere, or where it was, as it is not known whose it is. */
  get isUnsure(): boolean {
    return this.#isUnsure && !this.#stopped;
  }

  /** What is listened to already and in no plan, from those who are still there. */
  #unplanned(others: readonly Source[], planned: Coverage): Source[] {
    return others.flatMap(({ share }) => {
      const filter = share.hub.isClosed ? NOTHING : without(share.filter, planned);
      return isNothing(filter) ? [] : [this.#join({ ...share, filter })];
    });
  }

  #isDecided(): boolean {
    return this.#sources.every(({ seat, full }) => full || isNothing(seat.fate().undecided));
  }

  #join(share: Share): Source {
    const seat = share.hub.join(share.filter, {
      heard: (subject, message, admitted) => this.#heard(source, subject, message, admitted),
      awaits: (gained) => !isNothing(within(source.unheard, gained)),
      gained: (gained) => {
        const told = within(source.unheard, gained);
        source.unheard = without(source.unheard, gained);
        this.#tellAll(told);
        this.#onDecided?.();
      },
      lost: (covered) => {
        const unheard = within(source.honoured.filter, covered);
        source.unheard = joined(source.unheard, unheard);
      },
      unopened: (why) => {
        source.full = why === 'full';
        this.#onDecided?.();
      },
    });
    const source: Source = { share, seat, honoured: NONE, unheard: NOTHING, full: false };
    return source;
  }

  #heard(
    { share, honoured }: Source,
    subject: Subject,
    message: Message,
    admitted: Map<string, boolean>,
  ): void {
    if (!honoured.covers(subject)) return;
    switch (subject.kind) {
      case 'list':
        return this.#tell(`list ${subject.list}`, message);
      case 'task':
        return this.#tell(`task ${subject.taskId}`, message);
      case 'uri': {
        const { uri } = subject;
        const asked = honoured.has(subject) ? undefined : honoured.above(uri);
        if (asked === undefined) return this.#tell(`uri ${uri}`, message);
        const admits = admitted.get(share.audience) ?? share.admits(uri);
        admitted.set(share.audience, admits);
        if (!admits) return;
        if (this.#pending.size < MAX_PENDING) this.#tell(`uri ${uri}`, message);
        else this.#tell(`uri ${asked}`, updated(asked));
      }
    }
  }

  /** Says of each that it may have changed. A task says itself what has become of it. */
  #tellAll(filter: ListenFilter): void {
    for (const list of Object.keys(LIST_FLAGS) as ListName[])
      if (filter[LIST_FLAGS[list]]) this.#tellList(list);
    for (const uri of filter.resourceSubscriptions) this.#tell(`uri ${uri}`, updated(uri));
  }

  #tellList(list: ListName): void {
    this.#tell(`list ${list}`, listChanged(list));
  }

  #tell(key: string, message: Message): void {
    if (this.#stopped) return;
    if (this.#outlet === undefined || this.#blocked) this.#pending.set(key, message);
    else this.#write(message);
  }

  #write(message: Message): void {
    this.#blocked = this.#outlet?.write(stamped(message, this.#id)) === false;
  }
}

function only(share: Share, promised: ListenFilter): Share {
  return { ...share, filter: within(share.filter, new Coverage(promised)) };
}

/** The one that asks this already, of the same: it goes on under the new share. */
function keep(before: readonly Source[], share: Share): Source | undefined {
  const source = before.find((one) => isSame(one.share, share));
  if (source !== undefined) source.share = share;
  return source;
}

function isSame(one: Share, other: Share): boolean {
  return one.hub === other.hub && JSON.stringify(one.filter) === JSON.stringify(other.filter);
}

/** Where changes of a resource are heard. */
function hubOf(sources: readonly Source[], uri: string): Hub | undefined {
  return sources.find(({ share }) => share.filter.resourceSubscriptions.includes(uri))?.share.hub;
}
