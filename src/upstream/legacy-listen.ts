/**
 * Listening to a server of an older era: `resources/subscribe` for each resource, and the session's own event stream,
 * told as a `subscriptions/listen` of this era would be.
 *
 * What was subscribed in a session that is gone is subscribed again in the next; until then it may change unheard.
 * *Bounded by* what is `bounded`. *Spec:* 2025-11-25, server/resources, "Subscriptions"; basic/transports, "Listening".
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
import { bounded, inTurn, offeredBy } from './legacy-offer.ts';
import type { LegacySession } from './legacy-session.ts';
import { QUIET, reasonOf, type Standing, subscribe } from './legacy-subscribe.ts';
import type { ListenTimes } from './listen-times.ts';
import { pauseMs } from './listen-times.ts';
import type { Failure, ListenEvent, Listening } from './types.ts';

/** Requests to subscribe that are under way at once. */
const AT_ONCE = 8;

const FORGOTTEN: Failure = failure('reset', 'connection_terminated', 'the server has forgotten the session');

/** Statuses that are no matter of the moment. */
const UNOFFERED: ReadonlySet<number> = new Set([200, 202, 204, 400, 401, 403, 404, 405, 406, 415, 501]);

/** The event stream of a session, as it was found. */
export type SessionEvents =
  | { readonly kind: 'stream'; readonly messages: AsyncIterable<Uint8Array> }
  /** There is none, or no such session. */
  | { readonly kind: 'refused'; readonly status: number }
  | { readonly kind: 'failure'; readonly failure: Failure };

export interface LegacyListenDeps {
  /** The session of now: another one when that was ended. */
  readonly session: () => LegacySession;
  /** Opens the event stream of a session. *Never* rejects. */
  readonly events: (
    address: ReturnType<LegacySession['addressOf']>,
    signal: Signal,
  ) => Promise<SessionEvents>;
  readonly times: ListenTimes;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
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
  #stands: Standing | undefined;
  /** Attempts since a stream was last open for long. */
  #attempts = 0;
  #acknowledged = false;
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
    void this.#settle();
  }

  close(): void {
    if (this.#state === 'closed') return;
    const stands = this.#stands;
    const { resourceSubscriptions } = this.#honoured.filter;
    this.#end();
    this.#state = 'closed';
    this.#onClose();
    if (stands === undefined) return;
    void inTurn(resourceSubscriptions, AT_ONCE, async (uri) => {
      if (stands.session.stands(stands.opened)) await subscribe(stands, 'unsubscribe', uri, new Abort());
    });
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
    const stream = new Abort();
    this.#stream = stream;
    this.#state = 'opening';
    const session = this.#deps.session();
    // Nothing of the session ends while its stream is open.
    const release = session.hold();
    stream.addEventListener('abort', release);
    const opened = await session.open(stream);
    if (stream.aborted) return;
    if (opened.kind === 'failed') return this.#retry(reasonOf(opened.outcome), 'unopened');
    const found = await this.#deps.events(session.addressOf(opened), stream);
    if (stream.aborted) return;
    if (found.kind === 'failure') return this.#retry(found.failure, 'unopened');
    const stands: Standing = { session, opened, since: this.#deps.now() };
    if (found.kind === 'refused') return this.#refusedWith(found.status, stands);
    if (!session.stands(opened)) return this.#retry(FORGOTTEN, 'unopened');
    this.#stands = stands;
    this.#state = 'open';
    this.#changed = true;
    const forget = session.onLost(() => this.#retry(FORGOTTEN, 'lost'));
    stream.addEventListener('abort', forget);
    void this.#settle();
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

  /** There is no stream: none at all, none at the moment, or none of a session that the server has forgotten. */
  async #refusedWith(status: number, { session, opened }: Standing): Promise<void> {
    const stream = this.#stream;
    if (opened.id !== undefined && (status === 400 || status === 404)) {
      await session.askIn(opened, { ...QUIET, method: 'ping', params: '{}', signal: stream });
      if (stream.aborted) return;
      if (!session.stands(opened)) return this.#retry(FORGOTTEN, 'unopened');
    }
    if (UNOFFERED.has(status)) return this.#notOffered(`status ${status}`);
    this.#retry(failure('broken', 'http_protocol_error', `status ${status}`, { status }), 'unopened');
  }

  /** Makes the session of now tell what is wanted, one change after the other. */
  async #settle(): Promise<void> {
    if (this.#settling) return;
    this.#settling = true;
    while (this.#changed && this.#stands !== undefined) {
      this.#changed = false;
      await this.#settleIn(this.#stands, this.#stream);
    }
    this.#settling = false;
  }

  async #settleIn(stands: Standing, stream: Signal): Promise<void> {
    const wanted = this.#filter;
    const before = this.#honoured.filter;
    const offered = within(wanted, new Coverage(offeredBy(stands.opened.hello, wanted)));
    const added = without(offered, new Coverage(joined(before, this.#refused)));
    const kept = new Set(wanted.resourceSubscriptions);
    const left = before.resourceSubscriptions.filter((uri) => !kept.has(uri));
    const granted = new Set<string>();
    const failed: string[] = [];
    await inTurn(added.resourceSubscriptions, AT_ONCE, async (uri) => {
      if (stream.aborted) return;
      const what = await subscribe(stands, 'subscribe', uri, stream);
      if (what === 'granted') granted.add(uri);
      if (what === 'failed') failed.push(uri);
    });
    await inTurn(left, AT_ONCE, async (uri) => {
      if (!stream.aborted) await subscribe(stands, 'unsubscribe', uri, stream);
    });
    if (stream.aborted) return;
    const gained = filterOf(
      (list) => added[LIST_FLAGS[list]],
      added.resourceSubscriptions.filter((uri) => granted.has(uri)),
      [],
    );
    const honoured = within(joined(before, gained), new Coverage(wanted));
    this.#refused = without(
      wanted,
      new Coverage(
        joined(
          honoured,
          filterOf(() => false, failed, []),
        ),
      ),
    );
    if (failed.length > 0) this.#settleLater();
    this.#honoured = new Coverage(honoured);
    if (isNothing(gained)) {
      if (isNothing(honoured)) this.#tell({ kind: 'not-offered', reason: 'nothing of it', asked: wanted });
      return;
    }
    const first = !this.#acknowledged;
    this.#acknowledged = true;
    this.#tell({ kind: 'acknowledged', honoured, gained, first });
  }

  /** What came to nothing is tried again. */
  #settleLater(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#changed = true;
      void this.#settle();
    }, this.#deps.times.lastPauseMs).unref();
  }

  #take(message: Uint8Array): void {
    const notice = readNotice(message);
    // Some servers end a session whose client does not answer their `ping`.
    if (notice.kind === 'other') this.#stands?.session.decline(this.#stands.opened, message);
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
    this.#state = 'not-offered';
    this.#refused = asked;
    this.#again({ kind: 'not-offered', reason, outcome: 'ok' });
    this.#tell({ kind: 'not-offered', reason, asked });
  }

  #retry(reason: Failure, how: 'lost' | 'unopened'): void {
    const covered = this.#honoured.filter;
    const { now, times } = this.#deps;
    if (this.#stands !== undefined && now() - this.#stands.since >= times.steadyMs) this.#attempts = 0;
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
    this.#stands = undefined;
    this.#honoured = new Coverage(NOTHING);
    this.#refused = NOTHING;
    this.#stream.abort(new Error('over'));
  }

  #tell(event: ListenEvent): void {
    if (this.#state !== 'closed') this.#on(event);
  }
}
