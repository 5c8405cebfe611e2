/** What an outcome counts as, whichever way it came. *Never* I/O. */
import { ERROR_TYPES, type ErrorType } from '../observability/labels.ts';
import { traitsOf } from './failure.ts';
import type { AttemptOutcome, ReadOutcome } from './types.ts';

/** Of one attempt; undefined where nothing was attempted. */
export function attemptOf(outcome: ReadOutcome): AttemptOutcome | undefined {
  switch (outcome.kind) {
    case 'answer':
      return outcome.answer.kind === 'error' ? 'rpc_error' : 'ok';
    case 'refused':
      return 'http_4xx';
    case 'failure':
      return traitsOf(outcome.failure.kind).attempt;
    case 'large':
      return 'ok';
  }
}

const LABELS: ReadonlySet<ErrorType> = new Set(ERROR_TYPES);

/** Of the whole operation: of a closed set, whatever code an upstream sends (R45). */
export function errorTypeOf(outcome: ReadOutcome): string {
  switch (outcome.kind) {
    case 'answer':
      if (outcome.answer.kind === 'result') return '';
      return LABELS.has(outcome.answer.code) ? String(outcome.answer.code) : 'other';
    case 'refused':
      return 'other';
    case 'failure':
      return traitsOf(outcome.failure.kind).errorType;
    case 'large':
      return '';
  }
}

/** Statuses that say something of who asks or of the moment, not of what was asked. */
export const OF_THE_CALLER: ReadonlySet<number> = new Set([401, 403, 407, 408, 421, 425, 429]);
