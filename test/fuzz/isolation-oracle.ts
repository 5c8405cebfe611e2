/** The oracle of the isolation model: what may be handed to whom, and for how long. */
import assert from 'node:assert/strict';
import type { Scripted } from '../support/scripted.ts';
import {
  type Headers,
  type Kind,
  type Method,
  type Policy,
  type Saying,
  seesCallers,
} from './isolation-moves.ts';

/** For how long an expired answer may stand in for a failed one, in these fleets. */
export const STALE_MS = 60_000;
/** For how long a private answer is served without its token being seen upstream. */
const FORWARDED_MS = 60_000;
/** How long the rest of a cut page is kept for its walk. */
const REMAINDER_MS = 60_000;

/** A request to an upstream, and what became of it. Places in one order of all that happens. */
export interface Question {
  readonly serial: number;
  readonly upstream: Kind;
  readonly policy: Policy;
  readonly method: string;
  readonly uri: string | undefined;
  readonly cursor: string | undefined;
  readonly madeFor: string;
  /** The request that it was asked for. */
  readonly madeIn: number;
  /** Values of the headers that this upstream is told. */
  readonly varying: string;
  readonly askedAt: number;
  /** When it was last handed out: the rest of a cut page is kept from then on. */
  handedMs: number;
  landed: { readonly at: number; readonly timeMs: number; readonly saying: Saying } | undefined;
  readonly answer: (said: Scripted) => void;
}

/** A request to the gateway. */
export interface Request {
  readonly number: number;
  /** Indexes, to ask it again. */
  readonly caller: number;
  readonly pick: number;
  readonly headers: Headers;
  readonly context: string;
  readonly method: Method;
  readonly uri: string | undefined;
  readonly cursor: string | undefined;
  readonly startedAt: number;
  readonly startedMs: number;
  readonly controller: AbortController;
  done: boolean;
}

/** What all runs together came across: a model that sees nothing proves nothing. */
export const seen = {
  own: 0,
  shared: 0,
  collapsed: 0,
  hits: 0,
  stale: 0,
  errors: 0,
  calls: 0,
  continued: 0,
  left: 0,
  labelled: 0,
};

export interface Result {
  readonly cacheScope?: string;
  readonly ttlMs?: number;
  readonly nextCursor?: string;
}

/** The values of the headers that an upstream is told: they make a public answer, too. */
export function varyingOf({ forwardHeaders }: Kind, headers: Headers): string {
  return JSON.stringify(forwardHeaders.map((name) => headers[name] ?? null));
}

export function isPublic({ policy, landed }: Question): boolean {
  if (policy !== 'respect') return policy === 'public';
  return landed?.saying.kind === 'result' && landed.saying.scope === 'public';
}

/** Nobody is handed what was made for another, unless it came public. */
export function checkAudience(
  questions: readonly Question[],
  request: Request,
  question: Question,
  result: Result | undefined,
): void {
  const { landed, madeFor, upstream, method } = question;
  const what = `${request.method} of ${request.context} shows what ${upstream.name} said to ${madeFor}`;
  const isComplete = landed?.saying.kind === 'result';
  const isShareable = isComplete && isPublic(question);
  if (result?.cacheScope === 'public') {
    seen.labelled++;
    assert.ok(isShareable, `${what}, labelled public`);
  }
  if (landed?.saying.kind === 'input_required')
    assert.equal(question.madeIn, request.number, `${what}, and asked of another request`);
  if (request.method === 'resources/read') assert.equal(question.uri, request.uri, what);
  if (method !== 'server/discover')
    assert.equal(varyingOf(upstream, request.headers), question.varying, `${what}, told other headers`);
  if (madeFor === request.context) {
    seen.own++;
    return;
  }
  seen.shared++;
  // What an upstream says of itself, where no caller can change it, is told to all.
  const isOfItself = method === 'server/discover' && (madeFor === 'gateway' || !seesCallers(upstream));
  assert.ok(isShareable || isOfItself, what);
  if (request.method === 'resources/read') checkTurned(questions, request, question, what);
}

/** Once an answer has come private, no public one that was asked for before is handed to others. */
function checkTurned(
  questions: readonly Question[],
  request: Request,
  question: Question,
  what: string,
): void {
  const turned = questions.find(
    (other) =>
      other.method === question.method &&
      other.upstream === question.upstream &&
      other.uri === question.uri &&
      other.varying === question.varying &&
      other.landed?.saying.kind === 'result' &&
      !isPublic(other) &&
      other.landed.at < request.startedAt &&
      question.askedAt < other.landed.at,
  );
  assert.equal(turned, undefined, `${what}, which has turned private`);
}

/** Nothing past its time, but for a stale answer in the place of a failed one, or the rest of a cut page. */
export function checkTime(
  questions: readonly Question[],
  request: Request,
  question: Question,
  result: Result,
): void {
  const { landed, upstream } = question;
  assert.ok(landed !== undefined);
  if (landed.saying.kind !== 'result') {
    assert.equal(question.madeFor, request.context);
    return;
  }
  const forwarded =
    upstream.auth === 'forward' && !isPublic(question) ? FORWARDED_MS : Number.POSITIVE_INFINITY;
  const ttlMs = Math.min(Math.max(0, landed.saying.ttlMs ?? 0), forwarded);
  const ttlTold = result.ttlMs ?? 0;
  assert.ok(
    Number.isSafeInteger(ttlTold) && ttlTold >= 0 && ttlTold <= ttlMs,
    `${ttlTold} ms of ${ttlMs} ms`,
  );
  if (landed.at > request.startedAt) return;
  const ageMs = request.startedMs - landed.timeMs;
  if (ageMs < ttlMs) {
    assert.ok(ttlTold <= ttlMs - ageMs, `${ttlTold} ms are left of ${ttlMs} ms after ${ageMs} ms`);
    return;
  }
  assert.equal(ttlTold, 0, `${ageMs} ms old, for ${ttlMs} ms, and said to live`);
  const isRest =
    request.cursor !== undefined &&
    request.startedMs - question.handedMs < REMAINDER_MS &&
    (question.madeFor === request.context || isPublic(question));
  const isStandIn =
    ttlMs > 0 && ageMs < Math.min(ttlMs + STALE_MS, forwarded) && hasFailed(questions, request, upstream);
  assert.ok(isRest || isStandIn, `${ageMs} ms old, for ${ttlMs} ms`);
}

/** Whether the upstream failed somebody since then, in a way for which the last good answer may stand in. */
function hasFailed(questions: readonly Question[], { startedAt }: Request, upstream: Kind): boolean {
  return questions.some(
    (question) =>
      question.upstream === upstream &&
      (question.landed?.at ?? 0) > startedAt &&
      question.landed?.saying.kind === 'failure' &&
      question.landed.saying.how !== 'broken',
  );
}
