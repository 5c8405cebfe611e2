/**
 * Takes the body of one request off the wire: whole, or its beginning and then the rest as it comes.
 *
 * Reads Node's raw request, past Fastify, whose own body limit does not hold for a body it does not parse.
 * *Bounded by* `wholeBytes` for what is collected, by the stream's own buffer for what flows, and by the two
 * patiences of the configuration while it waits for the client.
 */
import { INVALID_REQUEST, type Refusal, refusal } from '../protocol/errors.ts';
import { JsonWatch } from '../protocol/json-watch.ts';
import { Gather } from './gather.ts';
import type { Incoming, Taker } from './messages.ts';
import { Patience, type Sweeper, type Swept } from './sweeper.ts';

/** How a body is to be taken. */
export interface BodyPlan {
  /** Collected at most. */
  readonly wholeBytes: number;
  /** What becomes of a larger one. */
  readonly beyond: 'refuse' | 'flow';
  /** Bound on all of a body that flows. */
  readonly streamBytes: number | undefined;
}

export type Collected =
  | { readonly kind: 'whole'; readonly bytes: Uint8Array }
  | { readonly kind: 'begun'; readonly bytes: Uint8Array; readonly rest: AsyncIterable<Uint8Array> }
  /** Too large or too slow; see {@link RequestBody.id}. */
  | { readonly kind: 'failed'; readonly refusal: Refusal };

export interface BodyLimits {
  readonly bodyBytes: number;
  readonly bodyIdleMs: number;
  readonly requestTimeoutMs: number;
}

/** Who gets the body: told once, unless the client leaves first. */
export interface BodyOwner {
  collected(body: Collected): void;
}

/** Thrown into whoever reads the rest of a body that cannot be read to its end. */
export class BodyError extends Error {
  override name = 'BodyError';
}

export const TOO_LARGE = refusal(INVALID_REQUEST, 'The request body is too large', {
  status: 413,
  reason: 'body_size',
});
const TOO_SLOW = refusal(INVALID_REQUEST, 'The request body did not arrive in time', { status: 408 });

/** How long an answered client may go on sending before it is cut: time enough to see the answer first. */
const LINGER_MS = 2_000;

const NOTHING = Buffer.alloc(0);
const DONE: IteratorResult<Uint8Array> = { done: true, value: undefined };
const BODY = Symbol('body');

type Carrier = Incoming & { [BODY]?: RequestBody };

// Shared by all requests: listeners made for each would be garbage for each.
function onData(this: Carrier, chunk: Buffer): void {
  this[BODY]?.data(chunk);
}
function onEnd(this: Carrier): void {
  this[BODY]?.ended();
}
function onReadable(this: Carrier): void {
  this[BODY]?.readable();
}

interface Waiting {
  readonly resolve: (result: IteratorResult<Uint8Array>) => void;
  readonly reject: (error: BodyError) => void;
}

export class RequestBody implements Swept, Taker {
  place = -1;
  /** Received so far. */
  receivedBytes = 0;
  /** Why the body cannot be read to its end; outranks whatever the request path made of it. */
  problem: Refusal | undefined;

  readonly #request: Carrier;
  readonly #owner: BodyOwner;
  readonly #limits: BodyLimits;
  readonly #sweeper: Sweeper;
  readonly #idle = new Patience();
  readonly #total = new Patience();
  #state: 'new' | 'collecting' | 'flowing' | 'released' | 'discarding' | 'whole' | 'over' = 'new';
  #plan: BodyPlan | undefined;
  readonly #gathered = new Gather();
  #watch: JsonWatch | undefined;
  #waiting: Waiting | undefined;
  #seeking = false;
  #onDiscarded: (() => void) | undefined;

  constructor(request: Incoming, owner: BodyOwner, limits: BodyLimits, sweeper: Sweeper) {
    this.#request = request;
    this.#owner = owner;
    this.#limits = limits;
    this.#sweeper = sweeper;
  }

  collect(plan: BodyPlan): void {
    this.#plan = plan;
    this.#state = 'collecting';
    this.#request[BODY] = this;
    this.#request.handTo(this);
    this.#sweeper.add(this);
  }

  /** The id that went by in a body that flows or failed, if an error may carry it. */
  get id(): string | undefined {
    return echoable(this.#watch?.id);
  }

  /** True when it was received and read to its end. */
  get whole(): boolean {
    return this.#state === 'whole';
  }

  /** True while there is a rest in which an id could still be found. */
  get hasRest(): boolean {
    return this.#state === 'flowing';
  }

  /**
   * Takes the rest away from whoever reads it, and reads on until the id has gone by.
   * *Bounded by* the limit on read bodies, and by both patiences.
   */
  async seekId(): Promise<string | undefined> {
    this.#release();
    this.#seeking = true;
    try {
      while (this.#watch?.id === undefined && this.#watch?.state === 'open') {
        if (this.receivedBytes > this.#limits.bodyBytes) break;
        const { done } = await this.#pull();
        if (done === true) break;
      }
    } catch {
      // What was refused stays refused; it only goes without an id.
    }
    // The bytes at hand may be the last: then the connection can go on.
    if (!this.#request.complete) await new Promise((resolve) => setImmediate(resolve));
    return this.id;
  }

  /**
   * Lets what is left of the body go by, so that a client that sends first and reads then sees its answer and
   * no reset. *Bounded by* {@link LINGER_MS}. `done` is called once.
   */
  discard(done: () => void): void {
    this.#release();
    const silent = this.problem === TOO_SLOW;
    if (silent || this.#request.complete || this.#request.destroyed || this.#state === 'over') {
      // What is received but not read would block the next request: Node only drops what nobody began to read. Somebody
      // who waits until there is something to read would keep it there.
      this.#request.removeListener('readable', onReadable);
      this.#request.resume();
      done();
      return;
    }
    this.#onDiscarded = done;
    if (this.#state === 'new') this.#request.on('end', onEnd);
    this.#state = 'discarding';
    this.#total.reset();
    this.#request[BODY] = this;
    this.#request.removeListener('readable', onReadable);
    this.#request.on('data', onData);
    this.#request.resume();
    this.#sweeper.add(this);
  }

  /** The exchange is over, or the client has left: nothing is read any more. */
  over(): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.#sweeper.delete(this);
    this.#gathered.take();
    this.#interrupt();
    this.#onDiscarded?.();
  }

  /** What carries the body broke. */
  fail(problem: Refusal): void {
    if (this.#state === 'collecting') {
      this.#giveUp(problem, NOTHING);
      return;
    }
    this.problem ??= problem;
    this.#interrupt();
  }

  data(chunk: Buffer): void {
    this.receivedBytes += chunk.length;
    if (this.#state !== 'collecting') return;
    this.#idle.reset();
    const { wholeBytes, beyond } = this.#plan as BodyPlan;
    if (this.#gathered.length + chunk.length <= wholeBytes) this.#gathered.append(chunk, wholeBytes);
    else if (beyond === 'refuse') this.#giveUp(TOO_LARGE, chunk);
    else this.#flow(chunk);
  }

  ended(): void {
    if (this.#state === 'collecting') {
      this.#state = 'whole';
      this.#sweeper.delete(this);
      this.#owner.collected({ kind: 'whole', bytes: this.#gathered.take() });
    } else if (this.#state === 'discarding') {
      this.over();
    } else {
      this.readable();
    }
  }

  /** Something has come, or nothing more will. */
  readable(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    this.#waiting = undefined;
    this.#sweeper.delete(this);
    this.#pull().then(waiting.resolve, waiting.reject);
  }

  sweep(elapsedMs: number): void {
    if (this.#state === 'discarding') {
      if (this.#total.waited(elapsedMs) >= LINGER_MS) this.over();
      return;
    }
    // A stream may take as long as its bytes flow; what is read here has its time.
    const timed = this.#seeking || (this.#state === 'collecting' && this.#plan?.beyond === 'refuse');
    const totalMs = timed ? this.#total.waited(elapsedMs) : 0;
    const idleMs = this.#idle.waited(elapsedMs);
    if (idleMs < this.#limits.bodyIdleMs && totalMs < this.#limits.requestTimeoutMs) return;
    this.#sweeper.delete(this);
    this.fail(TOO_SLOW);
  }

  /** No more of it is collected; what went by so far is searched for the id. */
  #stopCollecting(bytes: Buffer): void {
    this.#request.keep();
    this.#request.on('end', onEnd);
    this.#sweeper.delete(this);
    this.#watch = new JsonWatch();
    this.#watch.push(bytes);
  }

  #giveUp(problem: Refusal, chunk: Buffer): void {
    this.#stopCollecting(this.#gathered.take());
    this.#watch?.push(chunk);
    this.#state = 'released';
    this.problem = problem;
    this.#owner.collected({ kind: 'failed', refusal: problem });
  }

  #flow(chunk: Buffer): void {
    this.#gathered.append(chunk, 0);
    const bytes = this.#gathered.take();
    this.#stopCollecting(bytes);
    this.#state = 'flowing';
    this.#request.on('readable', onReadable);
    const iterator: AsyncIterator<Uint8Array> = {
      next: () => (this.#state === 'flowing' ? this.#pull() : Promise.resolve(DONE)),
      return: () => {
        this.#waiting?.resolve(DONE);
        this.#waiting = undefined;
        return Promise.resolve(DONE);
      },
    };
    this.#owner.collected({ kind: 'begun', bytes, rest: { [Symbol.asyncIterator]: () => iterator } });
  }

  #release(): void {
    if (this.#state === 'flowing') this.#state = 'released';
    this.#waiting?.resolve(DONE);
    this.#waiting = undefined;
  }

  #interrupt(): void {
    this.#waiting?.reject(this.#error());
    this.#waiting = undefined;
  }

  #error(): BodyError {
    return new BodyError(this.problem?.message ?? 'The client left before its request was whole');
  }

  #pull(): Promise<IteratorResult<Uint8Array>> {
    if (this.problem !== undefined) return Promise.reject(this.#error());
    const chunk = this.#request.read() as Buffer | null;
    if (chunk !== null) return this.#passOn(chunk);
    if (this.#request.readableEnded) return Promise.resolve(DONE);
    if (this.#state === 'over') return Promise.reject(this.#error());
    // Of a client that has left, `over` tells: first the signal, then whoever waits here.
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#idle.reset();
      this.#sweeper.add(this);
    });
  }

  #passOn(value: Buffer): Promise<IteratorResult<Uint8Array>> {
    this.receivedBytes += value.length;
    if (this.receivedBytes <= this.#limits.bodyBytes) this.#watch?.push(value);
    const most = this.#plan?.streamBytes;
    if (!this.#seeking && most !== undefined && this.receivedBytes > most) {
      this.problem = TOO_LARGE;
      return Promise.reject(this.#error());
    }
    return Promise.resolve({ done: false, value });
  }
}

/** An id as an error may carry it: a string or an integer, and valid JSON, which the watcher does not check. */
function echoable(id: string | undefined): string | undefined {
  if (id === undefined || !(id.startsWith('"') || /^-?\d+$/.test(id))) return undefined;
  try {
    JSON.parse(id);
    return id;
  } catch {
    return undefined;
  }
}
