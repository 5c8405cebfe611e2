/**
 * What an answer says of the era of the server it came from. *Never* I/O. *Spec:* basic/versioning; protocol digest,
 * "Eras".
 */
import { tailMembers } from '../protocol/answer.ts';
import {
  HEADER_MISMATCH,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  MISSING_CLIENT_CAPABILITY,
  UNSUPPORTED_VERSION,
} from '../protocol/errors.ts';
import { arrayElements, memberOf, stringValue } from '../protocol/json.ts';
import { CURRENT_VERSION } from '../protocol/meta.ts';
import { OF_THE_CALLER } from './outcomes.ts';
import type { Failure, ReadOutcome } from './types.ts';

/** Failures of a process that was there. */
const NO_WORD: ReadonlySet<Failure['kind']> = new Set(['reset', 'timeout']);

type Answered = Extract<ReadOutcome, { kind: 'answer' }>;

/** Codes that only servers of this era know. */
const MODERN: ReadonlySet<number> = new Set([
  HEADER_MISMATCH,
  MISSING_CLIENT_CAPABILITY,
  UNSUPPORTED_VERSION,
]);
/** Statuses by which a server of another era answers. */
export const OTHER_ERA: ReadonlySet<number> = new Set([400, 404, 405, 406, 415]);

/**
 * What came of a `server/discover`. Processes of an older era may end, or say nothing, when they are asked what they
 * do not know (*Spec:* basic/transports/stdio, "Backward Compatibility").
 */
export function eraOf(outcome: ReadOutcome, over: 'http' | 'process'): 'modern' | 'legacy' | 'undecided' {
  switch (outcome.kind) {
    case 'refused':
      return OTHER_ERA.has(outcome.status) ? 'legacy' : 'undecided';
    case 'answer':
      return OF_THE_CALLER.has(outcome.status) ? 'undecided' : eraOfAnswer(outcome);
    case 'failure':
      return over === 'process' && NO_WORD.has(outcome.failure.kind) ? 'legacy' : 'undecided';
    case 'large':
      return 'undecided';
  }
}

/** Whether an error is one that only servers of this era know. */
export function isModern(outcome: ReadOutcome): boolean {
  return outcome.kind === 'answer' && outcome.answer.kind === 'error' && MODERN.has(outcome.answer.code);
}

/** Whether what came of anything else is how a server of another era answers. */
export function isDoubtful(outcome: ReadOutcome): boolean {
  if (outcome.kind === 'refused') return OTHER_ERA.has(outcome.status);
  if (outcome.kind !== 'answer' || outcome.answer.kind !== 'error') return false;
  const { code } = outcome.answer;
  // These two are a matter of what was asked.
  const isMethod = code === METHOD_NOT_FOUND || code === INVALID_PARAMS;
  return OTHER_ERA.has(outcome.status) && !isMethod && !MODERN.has(code);
}

function eraOfAnswer({ answer }: Answered): 'modern' | 'legacy' | 'undecided' {
  if (answer.kind === 'error') {
    if (answer.code !== UNSUPPORTED_VERSION) return MODERN.has(answer.code) ? 'modern' : 'legacy';
    return isOlder(supportedBy(answer.data)) ? 'legacy' : 'modern';
  }
  const { tail } = answer.result;
  const members = tailMembers(tail);
  const versions = memberOf(members, 'supportedVersions');
  const spans = versions && arrayElements(tail, versions.start);
  if (spans === undefined || memberOf(members, 'capabilities') === undefined) return 'undecided';
  return isOlder(spans.map((span) => stringValue(tail, span))) ? 'legacy' : 'modern';
}

/** Whether these are revisions of an older era, all of them. */
function isOlder(versions: readonly unknown[]): boolean {
  return (
    versions.length > 0 &&
    versions.every((version) => typeof version === 'string' && version < CURRENT_VERSION)
  );
}

function supportedBy(data: string | undefined): readonly unknown[] {
  const parsed: unknown = data === undefined ? undefined : JSON.parse(data);
  const supported = (parsed as { supported?: unknown } | null | undefined)?.supported;
  return Array.isArray(supported) ? supported : [];
}
