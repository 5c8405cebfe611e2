/** How a server of an older era says that it does not know a session. *Never* I/O. */
import { INVALID_PARAMS, LEGACY_NO_SESSION, LEGACY_NOT_FOUND, METHOD_NOT_FOUND } from '../protocol/errors.ts';
import type { Opened } from './legacy-session.ts';
import type { ReadOutcome } from './types.ts';

/** Errors that are about what was asked, whatever status a server gives them. */
const OF_THE_REQUEST: ReadonlySet<number> = new Set([METHOD_NOT_FOUND, INVALID_PARAMS, LEGACY_NOT_FOUND]);

/** Whether an answer says that the session is not known: 404, or what many servers say instead after a restart. */
export function isForgotten(outcome: ReadOutcome, { id }: Opened): boolean {
  if (id === undefined) return false;
  if (outcome.kind === 'refused') return outcome.status === 404;
  if (outcome.kind !== 'answer' || outcome.answer.kind !== 'error') return false;
  const { code } = outcome.answer;
  return outcome.status === 404
    ? !OF_THE_REQUEST.has(code)
    : outcome.status === 400 && code === LEGACY_NO_SESSION;
}

/** Whether it may say so: some servers answer with nothing but 400. */
export function isSuspect(outcome: ReadOutcome, { id }: Opened): boolean {
  return id !== undefined && outcome.kind === 'refused' && outcome.status === 400;
}
