/**
 * Sends one request to one endpoint after the other, until there is an answer or nobody left who may be asked.
 *
 * What no byte was sent of goes to every endpoint there is; what may have been read and was not answered goes once
 * more, if it may be repeated at all, and rather to another than to the same (R36).
 */
import type { Signal } from '../protocol/signal.ts';
import type { Balance, Turn, Use } from './balance.ts';
import type { Attempt } from './call.ts';
import { type Again, againAfter } from './failure.ts';
import type { Endpoint } from './pool.ts';

/** A keep-alive race is lost once, hardly ever twice. */
const MAX_REPEATS = 1;

export interface Sending<Outcome> {
  readonly use: Use;
  /** May be read twice by the upstream. */
  readonly idempotent: boolean;
  readonly signal: Signal;
  once(turn: Turn): Promise<Attempt<Outcome>>;
  /** Says of an attempt what it showed of its endpoint. @param startedAt when it began. */
  settle(turn: Turn, attempt: Attempt<Outcome>, startedAt: number): void;
  /** Told before each repetition. */
  retrying(reason: 'connect' | 'reset'): void;
}

/** @returns the last attempt; undefined when every endpoint is left alone. */
export async function inTurns<Outcome>(
  balance: Balance,
  now: () => number,
  sending: Sending<Outcome>,
): Promise<Attempt<Outcome> | undefined> {
  const { use } = sending;
  const tried = new Set<Endpoint>();
  let repeats = 0;

  const after = (turn: Turn, attempt: Attempt<Outcome>): Turn | undefined => {
    const again = whereTo(turn, attempt, sending);
    if (again === 'never' || (again === 'anywhere' && repeats++ >= MAX_REPEATS)) return undefined;
    return balance.take(use, tried) ?? (again === 'anywhere' ? turn : undefined);
  };

  let turn = balance.take(use, tried);
  while (turn !== undefined) {
    const startedAt = now();
    const attempt = await sending.once(turn);
    tried.add(turn.endpoint);
    const next = after(turn, attempt);
    // A second chance at the same endpoint is one with the first.
    if (next !== turn) sending.settle(turn, attempt, startedAt);
    if (next === undefined) return attempt;
    sending.retrying(attempt.kind === 'unopened' && attempt.stage === 'unsent' ? 'connect' : 'reset');
    turn = next;
  }
  return undefined;
}

function whereTo<Outcome>(turn: Turn, attempt: Attempt<Outcome>, sending: Sending<Outcome>): Again {
  if (attempt.kind === 'opened' || sending.signal.aborted) return 'never';
  const { failure, stage } = attempt;
  // On trial it had less time than its request has.
  if (turn.limitMs !== undefined && failure.kind === 'timeout' && sending.idempotent) return 'elsewhere';
  return againAfter(failure, stage, sending);
}
