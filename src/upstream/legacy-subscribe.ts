/** What is asked of a session beside what anybody wants to know: to tell of a resource, and whether it is still there. */
import type { Signal } from '../protocol/signal.ts';
import { failure } from './failure.ts';
import type { LegacySession, Opened } from './legacy-session.ts';
import type { Failure, ReadOutcome } from './types.ts';

/** What a server says to it is small. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** A session with an open stream. */
export interface Standing {
  readonly session: LegacySession;
  readonly opened: Opened;
  /** Monotonic milliseconds. */
  readonly since: number;
}

/** What is asked beside what anybody wants to know. */
export const QUIET = {
  name: undefined,
  version: '',
  headers: {},
  idempotent: true,
  maxBytes: MAX_ANSWER_BYTES,
};

/** @returns what the server made of it; `failed`: nothing that will last. */
export async function subscribe(
  { session, opened }: Standing,
  what: 'subscribe' | 'unsubscribe',
  uri: string,
  signal: Signal,
): Promise<'granted' | 'refused' | 'failed'> {
  const method = `resources/${what}`;
  const outcome = await session.askIn(opened, { ...QUIET, method, params: JSON.stringify({ uri }), signal });
  if (outcome.kind === 'failure') return 'failed';
  return outcome.kind === 'answer' && outcome.answer.kind === 'result' ? 'granted' : 'refused';
}

/** Why there is no session. */
export function reasonOf(outcome: ReadOutcome): Failure {
  if (outcome.kind === 'failure') return outcome.failure;
  return failure('broken', 'destination_unavailable', `no session: ${outcome.kind}`);
}
