/**
 * Listening to a server of an older era: `resources/subscribe` for each resource, and the session's own event stream,
 * told as a `subscriptions/listen` of this era would be.
 *
 * What was subscribed in a session that is gone is subscribed again in the next; until then it may change unheard.
 * *Bounded by* {@link MAX_URIS}. *Spec:* 2025-11-25, server/resources, "Subscriptions"; basic/transports, "Listening".
 */
import {
  Coverage,
  filterOf,
  isNothing,
  joined,
  LIST_FLAGS,
  type ListenFilter,
  NOTHING,
  type Wanted,
  within,
  without,
} from '../protocol/listen-filter.ts';
import { readNotice, subjectOf } from '../protocol/notice.ts';
import { Abort, type Signal } from '../protocol/signal.ts';
import { failure } from './failure.ts';
import type { Hello, LegacySession, Opened } from './legacy-session.ts';
import type { ListenTimes } from './listen-times.ts';
import { pauseMs } from './listen-times.ts';
import type { Failure, ListenEvent, Listening } from './types.ts';

/** Resources subscribed to at once. */
const MAX_URIS = 10_000;
/** Requests to subscribe that are under way at once. */
const AT_ONCE = 8;
/** What a server says to a subscription is small. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** The event stream of a session, as it was found. */
export type SessionEvents =
  | { readonly kind: 'stream'; readonly messages: AsyncIterable<Uint8Array> }
  /** There is none, or no such session. */
  | { readonly kind: 'refused'; readonly status: number }
  | { readonly kind: 'failure'; readonly failure: Failure };

export interface LegacyListenDeps {
  readonly session: LegacySession;
  /** Opens the event stream of a session. *Never* rejects. */
  readonly events: (opened: Opened, signal: Signal) => Promise<SessionEvents>;
  readonly times: ListenTimes;
  /** From 0 to below 1. */
  readonly random: () => number;
}

/** Begins to listen. @param on told in order, never from within this call. */
export function openLegacyListening(
  deps: LegacyListenDeps,
  filter: ListenFilter,
  on: (event: ListenEvent) => void,
  onClose: () => void,
): Listening {
  return new LegacyListening(deps, filter, on, onClose);
}

class LegacyListening implements Listening {
  readonly #deps: LegacyListenDeps;
  readonly #on: (event: ListenEvent) => void;
  readonly #onClose: () => void;
  #wanted: Wanted;
  /** What this session tells of. */
  #honoured = new Coverage(NOTHING);
  /** What it was asked for in vain. */
  #refused: ListenFilter = NOTHING;
  #opened: Opened | undefined;
  #attempts = 0;
  /** The session was given up because its stream was not found. */
  #renewed = false;
  #state: Listening['state'] = 'opening';
  #timer: NodeJS.Timeout | undefined;
  #settling = false;
  #changed = false;
  #stream = new Abort();

  constructor(
    deps: LegacyListenDeps,
    filter: ListenFilter,
    on: (event: ListenEvent) => void,
    onClose: () => void,
  ) {
    this.#deps = deps;
    this.#wanted = new Coverage(filter);
    this.#on = on;
    this.#onClose = onClose;
    this.#timer = setTimeout(() => void this.#connect(), 0);
  }

  get state(): Listening['state'] {
    return this.#state;
  }

  update(wanted: Wanted): void {
    if (this.#state === 'closed') return;
    this.#wanted = wanted;
    this.#changed = true;
    if (this.#opened !== undefined) void this.#settle(this.#opened);
  }

  close(): void {
    if (this.#state === 'closed') return;
    const opened = this.#opened;
    const { resourceSubscriptions } = this.#honoured.filter;
    this.#end();
    this.#state = 'closed';
    this.#onClose();
    if (opened !== undefined)
      for (const uri of resourceSubscriptions) void this.#subscribe('unsubscribe', uri);
  }

  fate(part: ListenFilter): { readonly honoured: ListenFilter; readonly undecided: ListenFilter } {
    const wanted = within(part, this.#wanted);
    const honoured = within(wanted, this.#honoured);
    const decided = new Coverage(joined(honoured, this.#refused));
    return { honoured, undecided: this.#state === 'not-offered' ? NOTHING : without(wanted, decided) };
  }

  get #filter(): ListenFilter {
    return bounded(this.#wanted.filter);
  }

  async #connect(): Promise<void> {
    const { session, events } = this.#deps;
    const stream = new Abort();
    this.#stream = stream;
    this.#state = 'opening';
    const opened = await session.open(stream);
    if (stream.aborted) return;
    if (opened.kind === 'failed')
      return this.#retry(failure('broken', 'destination_unavailable', 'no session'), 'unopened');
    const found = await events(opened, stream);
    if (stream.aborted) return;
    switch (found.kind) {
      case 'failure':
        return this.#retry(found.failure, 'unopened');
      case 'refused':
        // Of a session that is new it says that there is no stream, of another one perhaps that it is forgotten.
        if (found.status !== 404 || opened.id === undefined || this.#renewed)
          return this.#notOffered(`status ${found.status}`);
        this.#renewed = true;
        session.forget(opened);
        return this.#connect();
      case 'stream':
        break;
    }
    this.#opened = opened;
    this.#renewed = false;
    this.#state = 'open';
    this.#changed = true;
    void this.#settle(opened);
    let reason = failure('reset', 'http_response_incomplete', 'the event stream ended');
    try {
      for await (const message of found.messages) {
        if (stream.aborted) return;
        this.#take(message);
      }
    } catch (error) {
      reason = failure('reset', 'http_response_incomplete', String(error));
    }
    if (!stream.aborted) this.#retry(reason, 'lost');
  }

  /** Makes the session tell what is wanted, one change after the other. */
  async #settle(opened: Opened): Promise<void> {
    if (this.#settling) return;
    this.#settling = true;
    while (this.#changed && this.#opened === opened) {
      this.#changed = false;
      const wanted = this.#filter;
      const before = this.#honoured.filter;
      const offered = within(wanted, new Coverage(offeredBy(opened.hello, wanted)));
      const added = without(offered, new Coverage(joined(before, this.#refused)));
      const left = before.resourceSubscriptions.filter((uri) => !wanted.resourceSubscriptions.includes(uri));
      const granted = new Set<string>();
      await inTurn(added.resourceSubscriptions, async (uri) => {
        if (this.#opened === opened && (await this.#subscribe('subscribe', uri))) granted.add(uri);
      });
      await inTurn(left, async (uri) => {
        if (this.#opened === opened) await this.#subscribe('unsubscribe', uri);
      });
      if (this.#opened !== opened) break;
      const gained = filterOf(
        (list) => added[LIST_FLAGS[list]],
        added.resourceSubscriptions.filter((uri) => granted.has(uri)),
        [],
      );
      const honoured = within(joined(before, gained), new Coverage(wanted));
      this.#refused = without(wanted, new Coverage(honoured));
      this.#honoured = new Coverage(honoured);
      const first = this.#attempts === 0 && isNothing(before);
      this.#attempts = 0;
      if (!isNothing(gained)) this.#tell({ kind: 'acknowledged', honoured, gained, first });
      else if (isNothing(honoured))
        this.#tell({ kind: 'not-offered', reason: 'nothing of it', asked: wanted });
    }
    this.#settling = false;
  }

  async #subscribe(what: 'subscribe' | 'unsubscribe', uri: string): Promise<boolean> {
    const outcome = await this.#deps.session.read({
      method: `resources/${what}`,
      name: undefined,
      params: JSON.stringify({ uri }),
      version: '',
      headers: {},
      idempotent: true,
      signal: new Abort(),
      maxBytes: MAX_ANSWER_BYTES,
    });
    return outcome.kind === 'answer' && outcome.answer.kind === 'result';
  }

  #take(message: Uint8Array): void {
    const notice = readNotice(message);
    if (notice.kind !== 'notification') return;
    const subject = subjectOf(notice);
    if (subject === undefined || !this.#honoured.covers(subject)) return;
    const params = message.subarray(notice.params?.start, notice.params?.end);
    if (subject.kind === 'list') this.#tell({ kind: 'list-changed', list: subject.list });
    if (subject.kind === 'uri') this.#tell({ kind: 'updated', uri: subject.uri, params });
  }

  #notOffered(reason: string): void {
    const asked = this.#filter;
    this.#end();
    this.#renewed = false;
    this.#state = 'not-offered';
    this.#refused = asked;
    this.#again({ kind: 'not-offered', reason, outcome: 'ok' });
    this.#tell({ kind: 'not-offered', reason, asked });
  }

  #retry(reason: Failure, how: 'lost' | 'unopened'): void {
    const covered = this.#honoured.filter;
    this.#end();
    this.#state = 'waiting';
    this.#again({ kind: 'failed', failure: reason, outcome: undefined });
    if (how === 'lost' && !isNothing(covered)) this.#tell({ kind: 'lost', reason, covered });
    else this.#tell({ kind: 'unopened', reason });
  }

  #again(end: Parameters<typeof pauseMs>[0]): void {
    const { times, random } = this.#deps;
    const wait = pauseMs(end, this.#attempts++, random(), times);
    this.#timer = setTimeout(() => void this.#connect(), wait);
    this.#timer.unref();
  }

  /** Lets go of the session's stream. */
  #end(): void {
    clearTimeout(this.#timer);
    this.#opened = undefined;
    this.#honoured = new Coverage(NOTHING);
    this.#refused = NOTHING;
    this.#stream.abort(new Error('over'));
  }

  #tell(event: ListenEvent): void {
    if (this.#state !== 'closed') this.#on(event);
  }
}

function bounded(filter: ListenFilter): ListenFilter {
  return filterOf((list) => filter[LIST_FLAGS[list]], filter.resourceSubscriptions.slice(0, MAX_URIS), []);
}

/** What of a filter the server says it tells. */
function offeredBy({ capabilities }: Hello, wanted: ListenFilter): ListenFilter {
  const says = (kind: string, what: string): boolean => {
    const capability: unknown = JSON.parse(capabilities.get(kind) ?? 'null');
    return (
      typeof capability === 'object' &&
      capability !== null &&
      (capability as Record<string, unknown>)[what] === true
    );
  };
  return filterOf(
    (list) => wanted[LIST_FLAGS[list]] && says(list, 'listChanged'),
    says('resources', 'subscribe') ? wanted.resourceSubscriptions : [],
    [],
  );
}

/** Does the work for each, some at a time. */
async function inTurn<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const rest = [...all];
  const worker = async (): Promise<void> => {
    for (let one = rest.shift(); one !== undefined; one = rest.shift()) await work(one);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, all.length) }, worker));
}
