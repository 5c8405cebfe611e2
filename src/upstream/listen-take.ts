/**
 * What the messages of a `subscriptions/listen` say, whatever they come over.
 *
 * Trusted is only what comes behind the acknowledgment and carries this listen's id (R39).
 * *Spec:* basic/patterns/subscriptions.
 */
import { readAnswer } from '../protocol/answer.ts';
import {
  HEADER_MISMATCH,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  MISSING_CLIENT_CAPABILITY,
  UNSUPPORTED_VERSION,
} from '../protocol/errors.ts';
import { sameId } from '../protocol/json-watch.ts';
import type { ListenFilter } from '../protocol/listen-filter.ts';
import { ACKNOWLEDGED, cancelledBy, honouredBy, type Notification, readNotice } from '../protocol/notice.ts';
import { failure, traitsOf } from './failure.ts';
import type { AttemptOutcome, Failure } from './types.ts';

/** Why a stream is not there, or no more. `outcome`: of the attempt, for metrics. */
export type StreamEnd =
  /** Asking again soon would get the same answer. */
  | {
      readonly kind: 'not-offered';
      readonly reason: string;
      readonly outcome: AttemptOutcome;
      /** What was asked for is at fault, or a part of it. */
      readonly blames?: 'filter';
    }
  | { readonly kind: 'failed'; readonly failure: Failure; readonly outcome: AttemptOutcome | undefined };

/** Who is told. Nothing is told after {@link ListenStream.stop}. */
export interface StreamHooks {
  /** Once, before everything else. */
  acknowledged(honoured: ListenFilter): void;
  /** A notification with the stream's id; what it is about is not checked. */
  notified(notification: Notification): void;
  /** Once, behind everything else. */
  ended(end: StreamEnd): void;
}

/** Errors that the same request gets again. */
const LASTING: ReadonlySet<number> = new Set([
  METHOD_NOT_FOUND,
  INVALID_REQUEST,
  HEADER_MISMATCH,
  MISSING_CLIENT_CAPABILITY,
  UNSUPPORTED_VERSION,
]);

/** Nobody listens there any more, or not yet. */
export const ended = (reason: Failure): StreamEnd => ({
  kind: 'failed',
  failure: reason,
  outcome: traitsOf(reason.kind).attempt,
});
export const notOffered = (reason: string, outcome: AttemptOutcome): StreamEnd => ({
  kind: 'not-offered',
  reason,
  outcome,
});
export const gone = (detail: string): StreamEnd =>
  ended(failure('reset', 'http_response_incomplete', detail));

/** Reads the messages of one listen. */
export class Listened {
  readonly #id: string;
  readonly #hooks: StreamHooks;
  readonly #onAcknowledged: () => void;
  #acknowledged = false;

  /** @param id JSON text of the id that it went out with. */
  constructor(id: string, hooks: StreamHooks, onAcknowledged: () => void) {
    this.#id = id;
    this.#hooks = hooks;
    this.#onAcknowledged = onAcknowledged;
  }

  get acknowledged(): boolean {
    return this.#acknowledged;
  }

  /** @returns why the stream is at its end, if this message says so. */
  take(message: Uint8Array): StreamEnd | undefined {
    const notice = readNotice(message);
    if (notice.kind === 'other') return undefined;
    if (notice.kind === 'response') return this.#isOurs(notice.id) ? this.#concluded(message) : undefined;
    const cancelled = cancelledBy(notice);
    // Belongs to stdio, but says what it says.
    if (cancelled !== undefined) return sameId(cancelled, this.#id) ? gone('cancelled by it') : undefined;
    if (notice.subscriptionId === undefined || !sameId(notice.subscriptionId, this.#id)) return undefined;
    if (this.#acknowledged) {
      if (notice.method !== ACKNOWLEDGED) this.#hooks.notified(notice);
    } else if (notice.method === ACKNOWLEDGED) {
      this.#acknowledged = true;
      this.#onAcknowledged();
      this.#hooks.acknowledged(honouredBy(notice));
    }
    return undefined;
  }

  /** An error without an id, on the stream of this request, can only be about this request. */
  #isOurs(id: string | undefined): boolean {
    return id === undefined || id === 'null' || sameId(id, this.#id);
  }

  #concluded(message: Uint8Array): StreamEnd | undefined {
    const answer = readAnswer(message, this.#id);
    if (answer.kind === 'broken') return undefined;
    if (answer.kind === 'error') return refusedWith(answer.code);
    return this.#acknowledged ? gone('ended by it') : notOffered('ended before it was acknowledged', 'ok');
  }
}

/** Why a listen was refused with this code. */
export function refusedWith(code: number): StreamEnd {
  const reason = `error ${code}`;
  if (code === INVALID_PARAMS) return { kind: 'not-offered', reason, outcome: 'rpc_error', blames: 'filter' };
  if (LASTING.has(code)) return notOffered(reason, 'rpc_error');
  return {
    kind: 'failed',
    failure: failure('broken', 'http_protocol_error', reason),
    outcome: 'rpc_error',
  };
}
