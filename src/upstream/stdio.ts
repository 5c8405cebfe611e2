/**
 * An upstream that is a process: one JSON-RPC message a line, everybody's requests on one channel.
 *
 * So each goes out under an id, and with a progress token, of the gateway's own; what comes back is told apart by
 * them. What is about no request is told to whoever listens. *Bounded by* {@link MAX_UNDER_WAY} and the bounds of each
 * request. *Never* rejects. *Spec:* basic/transports, "stdio".
 */
import { type Answer, readAnswer, tailMembers } from '../protocol/answer.ts';
import { memberOf, objectMembers, stringValue, textOf } from '../protocol/json.ts';
import { JsonWatch } from '../protocol/json-watch.ts';
import { cancelledBy, readNotice } from '../protocol/notice.ts';
import { MAY_ASK } from '../protocol/questions.ts';
import type { Signal } from '../protocol/signal.ts';
import { Askers } from './askers.ts';
import type { Child } from './child.ts';
import { CANCELLED, failure } from './failure.ts';
import { wholeLarge } from './large.ts';
import type { SessionEvents } from './legacy-listen.ts';
import { isLog } from './legacy-logging.ts';
import type { SessionWire } from './legacy-session.ts';
import { attemptOf } from './outcomes.ts';
import { declined } from './questions.ts';
import { cancelled, replaced, withToken } from './stdio-words.ts';
import type { Supervisor } from './supervisor.ts';
import type { AttemptOutcome, Failure, ReadOutcome, ReadRequest } from './types.ts';
import { Unheard } from './unheard.ts';

/** Requests under way on one channel. */
const MAX_UNDER_WAY = 1_000;
/** How long a process that is being started is waited for; shorter where the request has less time. */
const START_MS = 10_000;

const OPEN_BRACKET = 0x5b;

export interface StdioDeps {
  readonly timeouts: { readonly responseMs: number; readonly callMs: number };
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Told after each request. */
  readonly attempted: (outcome: AttemptOutcome | undefined) => void;
}

/** One request under way. */
interface Pending {
  readonly request: ReadRequest;
  /** The client's progress token, JSON text. */
  readonly token: string | undefined;
  /** Called at most once. */
  readonly settle: (outcome: ReadOutcome) => void;
  /** A sign of life. */
  readonly alive: () => void;
  /** From now on it has all the time of a call: somebody is asked. */
  readonly untimed: () => void;
}

/** A request that is not answered for as long as somebody follows it. */
export interface Following {
  /** Takes it back: nothing is told behind that. Idempotent. */
  cancel(): void;
}

/** Who follows a request. Told nothing from within `follow`. */
export interface Follower {
  /** A notification that carries its id, or its response. */
  message(bytes: Uint8Array): void;
  ended(reason: Failure): void;
}

export class StdioWire implements SessionWire {
  readonly #deps: StdioDeps;
  readonly #pending = new Map<string, Pending>();
  readonly #listeners = new Set<Unheard>();
  readonly #followers = new Map<string, Follower>();
  /** By the id of their request. */
  readonly #askers = new Askers<string, Pending>();
  readonly #supervisor: Supervisor;
  #lastId = 0;
  /** Counts the processes, and their ends: a session is with one of them, and what comes behind it opens another. */
  life = 0;

  /** @param supervise makes the process known; its messages come to {@link attach}. */
  constructor(deps: StdioDeps, supervise: (wire: StdioWire) => Supervisor) {
    this.#deps = deps;
    this.#supervisor = supervise(this);
  }

  /** Requests that wait for an answer. */
  get underWay(): number {
    return this.#pending.size;
  }

  /** A new process. @returns whom it tells. */
  attach(child: Child): { message(bytes: Uint8Array): void; ended(reason: Failure): void } {
    this.life++;
    return {
      message: (bytes) => this.#message(child, bytes),
      ended: (reason) => this.#ended(reason),
    };
  }

  async read(request: ReadRequest): Promise<ReadOutcome> {
    const { responseMs, callMs } = this.#deps.timeouts;
    const mostMs = request.pace === 'slow' ? callMs : responseMs;
    const patienceMs = Math.min(request.deadlineMs ?? mostMs, mostMs);
    const startedAt = this.#deps.now();
    const child = await this.#supervisor.get(Math.min(patienceMs, START_MS));
    const outcome =
      'kind' in child
        ? failed(child)
        : request.signal.aborted
          ? failed(CANCELLED)
          : await this.#ask(child, request, startedAt, patienceMs);
    this.#deps.attempted(attemptOf(outcome));
    return outcome;
  }

  /** @param life of the process that it is for; undefined: whichever there is. */
  async tell(_address: unknown, _method: string, message: string, life?: number): Promise<boolean> {
    const child = await this.#supervisor.get(0);
    if ('kind' in child || (life !== undefined && life !== this.life)) return false;
    return child.send(message);
  }

  /** The process ends with the gateway, and its session with it. */
  async end(): Promise<void> {}

  /** What the process says to nobody in particular, until it ends or the signal fires. */
  async events(_address: unknown, signal: Signal): Promise<SessionEvents> {
    const child = await this.#supervisor.get(START_MS);
    if ('kind' in child) return { kind: 'failure', failure: child };
    if (signal.aborted) return { kind: 'failure', failure: CANCELLED };
    const unheard = new Unheard(() => this.#listeners.delete(unheard));
    this.#listeners.add(unheard);
    signal.addEventListener('abort', () => unheard.end(), { once: true });
    return { kind: 'stream', messages: unheard };
  }

  /** Sends a request that ends only with the process, its response, or its follower. @param id JSON text. */
  follow(id: string, message: string, follower: Follower): Following {
    let child: Child | undefined;
    this.#followers.set(id, follower);
    void this.#supervisor.get(START_MS).then((found) => {
      if (!this.#followers.has(id)) return;
      if ('kind' in found) return this.#unfollow(id, found);
      child = found;
      if (!found.send(message))
        this.#unfollow(id, failure('reset', 'connection_terminated', 'it takes no more'));
    });
    return {
      cancel: () => {
        if (this.#followers.delete(id)) child?.send(cancelled(id));
      },
    };
  }

  close(): Promise<void> {
    return this.#supervisor.close();
  }

  #ask(child: Child, request: ReadRequest, startedAt: number, patienceMs: number): Promise<ReadOutcome> {
    if (this.#pending.size >= MAX_UNDER_WAY)
      return Promise.resolve(failed(failure('full', 'destination_unavailable', 'too many requests')));
    const { now, timeouts } = this.#deps;
    const id = `"hg-${(++this.#lastId).toString(36)}"`;
    const { text, token } = withToken(request.params, id);
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout;
      let sent = false;
      const settle = (outcome: ReadOutcome): void => {
        if (!this.#pending.delete(id)) return;
        clearTimeout(timer);
        request.signal.removeEventListener('abort', leave);
        // What was given up may still be worked on, and ask.
        if (outcome.kind === 'failure' && sent) this.#askers.leave(id);
        else this.#askers.end(id);
        resolve(outcome);
      };
      const giveUp = (reason: Failure): void => {
        settle(failed(reason));
        // *Spec:* basic/patterns/cancellation: `initialize` cannot be taken back.
        if (request.method !== 'initialize') child.send(cancelled(id));
      };
      const leave = (): void => giveUp(CANCELLED);
      const wait = (ms: number): NodeJS.Timeout =>
        setTimeout(
          () => giveUp(failure('timeout', 'http_response_timeout', `no answer within ${patienceMs} ms`)),
          ms,
        );
      let asked = false;
      const alive = (): void => {
        if (request.deadlineMs !== undefined) return;
        const callLeftMs = startedAt + timeouts.callMs - now();
        clearTimeout(timer);
        timer = wait(Math.max(0, asked ? callLeftMs : Math.min(patienceMs, callLeftMs)));
      };
      const untimed = (): void => {
        asked = true;
        alive();
      };
      timer = wait(Math.max(0, startedAt + patienceMs - now()));
      const pending: Pending = { request, token, settle, alive, untimed };
      this.#pending.set(id, pending);
      if (MAY_ASK.has(request.method)) this.#askers.begin(id, pending);
      request.signal.addEventListener('abort', leave, { once: true });
      sent = child.send(
        `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(request.method)},"params":${text}}`,
      );
      if (!sent) settle(failed(failure('reset', 'connection_terminated', 'the process takes no more')));
    });
  }

  #message(child: Child, bytes: Uint8Array): void {
    const watch = new JsonWatch();
    watch.push(bytes);
    if (watch.state !== 'complete') return;
    switch (watch.kind) {
      case 'response':
        return this.#answered(watch.id ?? '', bytes);
      case 'request':
        return this.#asked(child, bytes);
      case 'notification':
        if (this.#progressed(bytes) || this.#followed(bytes) || this.#logged(bytes)) return;
        for (const listener of this.#listeners) listener.push(bytes);
        return;
      case 'unknown':
    }
  }

  /** What is logged says not by which request, either. @returns whether it was a log. */
  #logged(bytes: Uint8Array): boolean {
    if (!isLog(bytes)) return false;
    this.#askers.alone?.request.onNotification?.(bytes);
    return true;
  }

  /** A question says not which request it is about: it is about the one that is under way alone, or about none. */
  #asked(child: Child, bytes: Uint8Array): void {
    const only = this.#askers.alone;
    if (only?.request.onRequest !== undefined) {
      if (only.request.onRequest(bytes)) only.untimed();
      return;
    }
    const words = declined(bytes);
    if (words !== undefined) child.send(words.answer);
  }

  #unfollow(id: string, reason: Failure): void {
    const follower = this.#followers.get(id);
    this.#followers.delete(id);
    follower?.ended(reason);
  }

  /** @returns whether it was for somebody who follows. */
  #followed(bytes: Uint8Array): boolean {
    const notice = this.#followers.size === 0 ? undefined : readNotice(bytes);
    const id = notice?.kind === 'notification' ? (notice.subscriptionId ?? cancelledBy(notice)) : undefined;
    const follower = id === undefined ? undefined : this.#followers.get(id);
    follower?.message(bytes);
    return follower !== undefined;
  }

  #answered(id: string, bytes: Uint8Array): void {
    const follower = this.#followers.get(id);
    if (follower !== undefined) return follower.message(bytes);
    const pending = this.#pending.get(id);
    this.#askers.end(id);
    if (pending === undefined) return;
    const { maxBytes, flow } = pending.request;
    const tooLarge = bytes.length > maxBytes;
    if (tooLarge && flow === undefined)
      return pending.settle(failed(failure('too_large', 'http_response_body_size', `${bytes.length} bytes`)));
    const answer = readAnswer(bytes, id);
    if (tooLarge && answer.kind === 'result' && isWhole(answer, flow?.array ?? ''))
      return pending.settle({ kind: 'large', tail: wholeLarge(answer.result.tail) });
    pending.settle(
      answer.kind === 'broken'
        ? failed(failure('broken', 'http_protocol_error', answer.reason))
        : { kind: 'answer', answer, status: 200, receivedAt: this.#deps.now() },
    );
  }

  /** @returns whether it was the progress of a request under way. */
  #progressed(bytes: Uint8Array): boolean {
    const members = objectMembers(bytes, 0) ?? [];
    const method = memberOf(members, 'method');
    if (method === undefined || stringValue(bytes, method) !== 'notifications/progress') return false;
    const params = memberOf(members, 'params');
    const token = params && memberOf(objectMembers(bytes, params.start) ?? [], 'progressToken');
    const pending = token && this.#pending.get(textOf(bytes, token));
    if (token === undefined || pending === undefined) return true;
    pending.alive();
    if (pending.token !== undefined) pending.request.onNotification?.(replaced(bytes, token, pending.token));
    return true;
  }

  #ended(reason: Failure): void {
    this.life++;
    const broken = failure('reset', 'connection_terminated', reason.detail);
    for (const { settle } of [...this.#pending.values()]) settle(failed(broken));
    this.#askers.clear();
    for (const listener of [...this.#listeners]) listener.end();
    for (const id of [...this.#followers.keys()]) this.#unfollow(id, broken);
  }
}

const failed = (reason: Failure): ReadOutcome => ({ kind: 'failure', failure: reason });

/** Whether it is a complete result with this array: what is too large to be kept is not looked at any further. */
function isWhole({ resultType, result }: Extract<Answer, { kind: 'result' }>, array: string): boolean {
  const member = memberOf(tailMembers(result.tail), array);
  return resultType === 'complete' && member !== undefined && result.tail[member.start] === OPEN_BRACKET;
}
