/**
 * One HTTP request and its answer: the only place that speaks undici's handler interface.
 *
 * The dispatch interface costs half of what `pool.request` does (reference/performance.md), and it lets an
 * exchange be what the rest of the room needs: an answer's head as a value, its body as an iterator with
 * back-pressure, timers that keep their time, and one teardown for whichever side gives up first.
 */

import type { Dispatcher } from 'undici';
import type { Signal } from '../protocol/signal.ts';
import { CANCELLED, failure, failureOf, type Stage, UpstreamError } from './failure.ts';
import { type Head, readHead } from './head.ts';
import type { Lane, Submission } from './pool.ts';
import type { Failure, StreamBody } from './types.ts';
import { Upload } from './upload.ts';

/** Received but not yet taken: above this the socket is not read any further. */
const HIGH_WATER_BYTES = 64 * 1024;
/** The same while nobody has begun to read: up to this a body may be taken as a whole. */
export const WHOLE_BYTES = 128 * 1024;
/** What may run out after the answer, so that its connection can be used again... */
const MAX_DISCARDED_BYTES = 64 * 1024;
/** ...and for how long. */
const MAX_DISCARD_MS = 250;

/** Beyond this Node's timers fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Thrown inside undici for a request that nobody waits for any more. */
const GAVE_UP = new Error('given up');

export interface ExchangeRequest {
  /** Default: POST. */
  readonly method?: 'GET' | 'DELETE';
  readonly path: string;
  /** `[name, value, …]`. */
  readonly headers: string[];
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>;
  readonly signal: Signal;
  /** Over everything: waiting, connecting, sending, receiving. */
  readonly overallMs: number;
  /** Called once, when nothing is left of the exchange; without a failure when the answer came whole. */
  readonly onSettled?: (failure: Failure | undefined, head: Head | undefined) => void;
}

/** How an exchange opens: with a head (then the body is read from the exchange), or not at all. */
export type Opening =
  | { readonly kind: 'head'; readonly head: Head }
  | { readonly kind: 'failure'; readonly failure: Failure; readonly stage: Stage };

type Step = IteratorResult<Uint8Array, undefined>;
interface Waiter {
  resolve(step: Step): void;
  reject(error: Error): void;
}
interface Gatherer {
  resolve(chunks: readonly Uint8Array[] | undefined): void;
  reject(error: Error): void;
}

const DONE: Step = { done: true, value: undefined };

export class Exchange
  implements Dispatcher.DispatchHandler, Submission, StreamBody, AsyncIterator<Uint8Array>
{
  place = -1;
  readonly options: Dispatcher.DispatchOptions;
  readonly #request: ExchangeRequest;
  readonly #upload: Upload | undefined;
  readonly #onAbort = (): void => this.#fail(CANCELLED);

  #lane: Lane | undefined;
  #opened: ((opening: Opening) => void) | undefined;
  #stage: Stage = 'unsent';
  #head: Head | undefined;
  #settled = false;
  #failure: Failure | undefined;
  #abort: ((error?: Error) => void) | undefined;
  #resume: (() => void) | undefined;

  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #paused = false;
  #waiter: Waiter | undefined;
  #gatherer: Gatherer | undefined;
  #begun = false;
  #discarding = false;
  #discardedBytes = 0;

  #overall: NodeJS.Timeout | undefined;
  /** Until the head: the time to it. Afterwards: the time between chunks, when someone waits for one. */
  #phase: NodeJS.Timeout | undefined;
  #idleMs = 0;

  constructor(request: ExchangeRequest) {
    const { method = 'POST', path, headers, body } = request;
    this.#request = request;
    this.#upload = body === undefined || isBytes(body) ? undefined : new Upload(body);
    // undici's types leave async iterables out; its code and its documentation do not.
    const sent = (this.#upload ?? body ?? null) as Dispatcher.DispatchOptions['body'] & {};
    this.options = { path, method, headers, body: sent };
  }

  get handler(): Dispatcher.DispatchHandler {
    return this;
  }

  get unsent(): boolean {
    return this.#stage === 'unsent';
  }

  /** Sends the request. *Never* rejects. Called once. */
  open(lane: Lane): Promise<Opening> {
    return new Promise((resolve) => {
      const { signal, overallMs } = this.#request;
      this.#opened = resolve;
      if (signal.aborted) {
        this.#fail(CANCELLED);
        return;
      }
      signal.addEventListener('abort', this.#onAbort);
      this.extend(overallMs);
      this.#lane = lane;
      lane.submit(this);
    });
  }

  /** Starts the overall time anew. */
  extend(ms: number): void {
    // A timer started for what has ended would keep the process alive.
    if (this.#settled || this.#discarding) return;
    clearTimeout(this.#overall);
    this.#overall = this.#failAfter(ms);
  }

  /** Lifts the overall time: what is held from now on ends by itself, by its signal, or by a reader who leaves. */
  untimed(): void {
    clearTimeout(this.#overall);
  }

  /** From now on, waiting longer than this for the next chunk is a failure. */
  idleAfter(ms: number): void {
    this.#idleMs = Math.min(ms, MAX_TIMER_MS);
  }

  /** Breaks the exchange off for a reason of the caller's. */
  refuse(failure: Failure): void {
    this.#fail(failure);
  }

  // What undici calls.

  onConnect(abort: (error?: Error) => void): void {
    // Thrown here, undici forgets the request and keeps the connection; `abort` would destroy it.
    if (this.#settled) throw GAVE_UP;
    this.#abort = abort;
    this.#stage = 'sent';
  }

  onResponseStarted(): void {
    this.#stage = 'answering';
  }

  onHeaders(status: number, raw: Buffer[], resume: () => void): boolean {
    if (status < 200) return true;
    this.#resume = resume;
    this.#head = readHead(status, raw);
    this.#opened?.({ kind: 'head', head: this.#head });
    this.#opened = undefined;
    return true;
  }

  onData(chunk: Uint8Array): boolean {
    if (this.#discarding) {
      this.#discardedBytes += chunk.length;
      if (this.#discardedBytes > MAX_DISCARDED_BYTES) this.#stopDiscarding();
      return true;
    }
    const waiter = this.#waiter;
    if (waiter !== undefined) {
      this.#waiter = undefined;
      waiter.resolve({ done: false, value: chunk });
      return true;
    }
    this.#queue.push(chunk);
    this.#queuedBytes += chunk.length;
    this.#paused = this.#queuedBytes >= (this.#begun ? HIGH_WATER_BYTES : WHOLE_BYTES);
    if (this.#paused) this.#gathered(undefined);
    else if (this.#gatherer !== undefined) this.#startIdle();
    return !this.#paused;
  }

  onComplete(): void {
    this.#settle(undefined);
    if (this.#gatherer !== undefined) this.#gathered(this.#takeAll());
    this.#waiter?.resolve(DONE);
    this.#waiter = undefined;
  }

  onError(error: Error): void {
    if (this.#upload?.broken)
      this.#fail(failure('cancelled', 'connection_terminated', 'the request body broke off'));
    else this.#fail(failureOf(error, this.#stage));
  }

  // What the reader of the body calls.

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** @throws UpstreamError behind the last chunk that came, when the answer did not come whole. */
  next(): Promise<Step> {
    this.#begun = true;
    const chunk = this.#queue.shift();
    if (chunk !== undefined) {
      this.#queuedBytes -= chunk.length;
      this.#flow();
      return Promise.resolve({ done: false, value: chunk });
    }
    if (this.#discarding) return Promise.resolve(DONE);
    if (this.#failure !== undefined) return Promise.reject(new UpstreamError(this.#failure));
    if (this.#settled) return Promise.resolve(DONE);
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
      this.#startIdle();
    });
  }

  /**
   * Waits for all of the body, as the first to read of it. @returns undefined for one of 128 KiB and more: it is
   * read as it comes. Rejects as {@link next}.
   */
  whole(): Promise<readonly Uint8Array[] | undefined> {
    if (this.#failure !== undefined) return Promise.reject(new UpstreamError(this.#failure));
    if (this.#settled) return Promise.resolve(this.#takeAll());
    if (this.#paused) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      this.#gatherer = { resolve, reject };
      this.#startIdle();
    });
  }

  /** The reader has gone: the upstream is stopped at once. */
  return(): Promise<Step> {
    this.#queue = [];
    if (!this.#discarding) this.#fail(CANCELLED);
    return Promise.resolve(DONE);
  }

  discard(): void {
    if (this.#settled || this.#discarding) return;
    this.#discarding = true;
    this.#queue = [];
    clearTimeout(this.#overall);
    clearTimeout(this.#phase);
    this.#request.signal.removeEventListener('abort', this.#onAbort);
    this.#overall = setTimeout(() => this.#stopDiscarding(), MAX_DISCARD_MS);
    this.#queuedBytes = 0;
    this.#waiter?.resolve(DONE);
    this.#waiter = undefined;
    this.#flow();
  }

  // How it ends.

  #stopDiscarding(): void {
    this.#settle(undefined);
    this.#abort?.(GAVE_UP);
  }

  #fail(failure: Failure): void {
    if (this.#settled) return;
    this.#failure = failure;
    if (failure.kind === 'cancelled') this.#queue = [];
    this.#settle(this.#discarding ? undefined : failure);
    this.#abort?.(GAVE_UP);
    this.#opened?.({ kind: 'failure', failure, stage: this.#stage });
    this.#opened = undefined;
    this.#waiter?.reject(new UpstreamError(failure));
    this.#waiter = undefined;
    this.#gatherer?.reject(new UpstreamError(failure));
    this.#gatherer = undefined;
  }

  /** The one teardown: whatever was opened for this exchange is closed here. */
  #settle(failure: Failure | undefined): void {
    if (this.#settled) return;
    this.#settled = true;
    clearTimeout(this.#overall);
    clearTimeout(this.#phase);
    this.#request.signal.removeEventListener('abort', this.#onAbort);
    this.#upload?.stop();
    this.#lane?.release(this);
    this.#request.onSettled?.(failure, this.#head);
  }

  #takeAll(): readonly Uint8Array[] {
    const chunks = this.#queue;
    this.#queue = [];
    this.#queuedBytes = 0;
    return chunks;
  }

  #gathered(chunks: readonly Uint8Array[] | undefined): void {
    this.#gatherer?.resolve(chunks);
    this.#gatherer = undefined;
  }

  #flow(): void {
    if (!this.#paused || this.#queuedBytes >= HIGH_WATER_BYTES / 2) return;
    this.#paused = false;
    this.#resume?.();
  }

  #startIdle(): void {
    if (this.#idleMs === 0) return;
    const ms = this.#idleMs;
    if (this.#phase === undefined) {
      // One timer for the whole body: a slow reader is no idle upstream, so it only counts while one waits.
      this.#phase = setTimeout(() => {
        if ((this.#waiter ?? this.#gatherer) !== undefined) this.#fail(this.#timeout(ms));
      }, ms);
    } else {
      this.#phase.refresh();
    }
  }

  #failAfter(ms: number): NodeJS.Timeout {
    // Whole milliseconds: Node keeps a list of timers for every length there is.
    return setTimeout(() => this.#fail(this.#timeout(ms)), Math.min(Math.ceil(ms), MAX_TIMER_MS));
  }

  #timeout(ms: number): Failure {
    if (this.#stage === 'unsent')
      return failure('timeout', 'connection_timeout', `no connection within ${ms} ms`);
    const what = this.#resume === undefined ? 'no answer' : 'the answer stalled';
    return failure('timeout', 'http_response_timeout', `${what} within ${ms} ms`);
  }
}

function isBytes(body: ExchangeRequest['body']): body is string | Uint8Array {
  return typeof body === 'string' || body instanceof Uint8Array;
}
