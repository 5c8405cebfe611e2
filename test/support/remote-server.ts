/** A shared tier in memory, as Redis would be: one server, replicas on it, and gates to hold what they do. */
import {
  EVERYTHING,
  type RemoteChange,
  type RemoteEntry,
  type RemoteSlot,
  type RemoteStore,
} from '../../src/cache/remote-types.ts';

type Operation = 'lookup' | 'store' | 'bump';
type Stored = Omit<RemoteEntry, 'ageMs'> & { readonly token: number; readonly receivedAt: number };

export interface Replica extends RemoteStore {
  /** Holds operations of a kind back until the returned function is called. */
  hold(operation: Operation): () => void;
}

export interface RemoteServer {
  replica(options?: { readonly sealsPrivate?: boolean }): Replica;
  /** Messages are held back until {@link deliver}. */
  holdMessages(): void;
  deliver(): void;
  readonly keys: readonly string[];
  /** Moves the server's clock. */
  advance(ms: number): void;
}

export function createRemoteServer(): RemoteServer {
  let last = 0;
  let clock = 0;
  const ended = new Map<string, number>();
  const entries = new Map<string, Stored>();
  const listeners = new Map<Replica, (change: RemoteChange) => void>();
  let held: (() => void)[] | undefined;

  const floorOf = (upstream: string, fields: readonly string[]): number =>
    Math.max(0, ...[EVERYTHING, ...fields].map((field) => ended.get(`${upstream} ${field}`) ?? 0));
  const raise = (upstream: string, fields: readonly string[], token: number): void => {
    for (const field of fields) {
      const name = `${upstream} ${field}`;
      ended.set(name, Math.max(ended.get(name) ?? 0, token));
    }
  };
  const tell = (from: Replica, upstream: string, fields: readonly string[]): void => {
    const send = (): void => {
      for (const [to, listener] of listeners)
        if (to !== from) listener({ upstream, fields, source: 'replica' });
    };
    if (held === undefined) send();
    else held.push(send);
  };

  function replica({ sealsPrivate = true }: { readonly sealsPrivate?: boolean } = {}): Replica {
    const gates = new Map<Operation, Promise<void>>();
    const writing = new Map<string, number>();
    const find = (upstream: string, slot: RemoteSlot | undefined): RemoteEntry | undefined => {
      const entry = slot && entries.get(`${upstream} ${slot.key}`);
      if (slot === undefined || entry === undefined) return undefined;
      if (entry.token <= floorOf(upstream, [...slot.fields, ...entry.uris])) return undefined;
      return { ...entry, ageMs: clock - entry.receivedAt };
    };
    const self: Replica = {
      async lookup({ upstream, own, shared }) {
        await gates.get('lookup');
        if ((writing.get(upstream) ?? 0) > 0) return { kind: 'unavailable' };
        return { kind: 'asked', token: ++last, own: find(upstream, own), shared: find(upstream, shared) };
      },
      async store({ upstream, slot, token, uris, ageMs, ...rest }) {
        await gates.get('store');
        const key = `${upstream} ${slot.key}`;
        if (token <= floorOf(upstream, [...slot.fields, ...uris])) return 'superseded';
        if ((entries.get(key)?.token ?? 0) > token) return 'superseded';
        entries.set(key, { ...rest, uris, token, receivedAt: clock - ageMs });
        return 'stored';
      },
      async bump(upstream, fields, how) {
        writing.set(upstream, (writing.get(upstream) ?? 0) + 1);
        await gates.get('bump');
        raise(upstream, fields, ++last);
        writing.set(upstream, (writing.get(upstream) ?? 0) - 1);
        if (how === 'told') tell(self, upstream, fields);
        return true;
      },
      onChange(listener) {
        listeners.set(self, listener);
        return () => listeners.delete(self);
      },
      state: 'up',
      sealsPrivate,
      close: () => Promise.resolve(),
      hold(operation) {
        let open = (): void => undefined;
        gates.set(
          operation,
          new Promise((resolve) => {
            open = resolve;
          }),
        );
        return () => {
          gates.delete(operation);
          open();
        };
      },
    };
    return self;
  }

  return {
    replica,
    holdMessages: () => {
      held ??= [];
    },
    deliver: () => {
      const sends = held ?? [];
      held = undefined;
      for (const send of sends) send();
    },
    get keys() {
      return [...entries.keys()];
    },
    advance: (ms) => {
      clock += ms;
    },
  };
}
