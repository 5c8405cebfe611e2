/**
 * A result too large to be held: what has come of it, and then the rest at the pace of whoever reads.
 *
 * The client's answer has begun by the time something turns out to be wrong; then the iterator throws, so that
 * what was written is never given an end (design, sections 3.5 and 6; R25, R30).
 */
import type { ResultFlow } from '../protocol/result-flow.ts';
import type { Exchange } from './exchange.ts';
import { CANCELLED, failure, UpstreamError } from './failure.ts';
import type { Holding } from './held.ts';
import type { Failure, FlowingTail } from './types.ts';

type Step = IteratorResult<Uint8Array, undefined>;
const DONE: Step = { done: true, value: undefined };

export interface LargeParts {
  readonly exchange: Exchange;
  /** The bytes of the JSON-RPC message that are still to come. */
  readonly source: AsyncIterator<Uint8Array>;
  /** Has begun. */
  readonly flow: ResultFlow;
  readonly holding: Holding;
}

/** Read once. *Bounded by* what had come when it began, one chunk, and the exchange's own queue. */
export class LargeResult implements FlowingTail, AsyncIterator<Uint8Array, undefined> {
  readonly #parts: LargeParts;
  /** Given out by the flow and not yet taken. */
  #queue: Uint8Array[];
  #ended = false;
  #failure: Failure | undefined;
  #onEnd: ((reason: Failure | undefined) => void) | undefined;

  /** @param begun what the flow has given out so far; taken over, and let go piece by piece. */
  constructor(parts: LargeParts, begun: Uint8Array[]) {
    this.#parts = parts;
    this.#queue = begun;
  }

  /** `told` is called once, when nothing is left of it, with what ended it too soon. */
  onEnd(told: (reason: Failure | undefined) => void): void {
    this.#onEnd = told;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<Step> {
    for (;;) {
      const piece = this.#queue.shift();
      if (piece !== undefined) {
        this.#parts.holding.shrink(piece.length);
        return { done: false, value: piece };
      }
      if (this.#failure !== undefined) throw new UpstreamError(this.#failure);
      if (this.#ended) return DONE;
      await this.#pull();
    }
  }

  /** The reader has gone: the upstream is stopped at once, also when it has nothing to say. */
  async return(): Promise<Step> {
    await this.#parts.exchange.return();
    this.#finish(CANCELLED);
    await this.#parts.source.return?.();
    return DONE;
  }

  abort(): void {
    if (this.#ended) return;
    this.#parts.exchange.refuse(CANCELLED);
    this.#finish(CANCELLED);
  }

  async #pull(): Promise<void> {
    const { exchange, source, flow } = this.#parts;
    let step: IteratorResult<Uint8Array>;
    try {
      step = await source.next();
    } catch (error) {
      this.#finish(error instanceof UpstreamError ? error.failure : CANCELLED);
      throw error;
    }
    if (this.#ended) throw new UpstreamError(CANCELLED);
    if (step.done !== true) this.#queue = flow.push(step.value);
    if (flow.state === 'broken' || (step.done === true && flow.state === 'open')) {
      const reason = failure('broken', 'http_protocol_error', flow.reason);
      exchange.refuse(reason);
      this.#finish(reason);
      throw new UpstreamError(reason);
    }
    if (step.done !== true) return;
    exchange.discard();
    this.#queue = [flow.end];
    this.#finish(undefined);
  }

  #finish(reason: Failure | undefined): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#failure = reason;
    if (reason !== undefined) this.#queue = [];
    this.#parts.holding.release();
    this.#onEnd?.(reason);
  }
}

/** A result that came whole and is too large to be kept all the same, where its parts cannot be told from others'. */
export function wholeLarge(tail: Uint8Array): FlowingTail {
  let aborted = false;
  async function* once(): AsyncGenerator<Uint8Array> {
    if (aborted) throw new UpstreamError(CANCELLED);
    yield tail;
  }
  const body = once();
  return {
    [Symbol.asyncIterator]: () => body,
    abort: () => {
      aborted = true;
    },
  };
}
