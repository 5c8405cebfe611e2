/** One command of Redis: within its deadline, timed, its failure counted. *Never* rejects. */
import type { RemoteObserver } from '../remote-types.ts';
import { type Outcome, within } from './deadline.ts';

type Operation = Parameters<RemoteObserver['redisError']>[0];

/** What each operation counts as in the histogram. */
const TIMED = { lookup: 'get', store: 'set', bump: 'generation', sync: 'generation' } as const;

export type Call = <T>(operation: Operation, command: Promise<T>, deadlineMs: number) => Promise<Outcome<T>>;

/** @param onSilence Redis did not answer: called before the outcome is known to anybody. */
export function createCall(
  observer: Pick<RemoteObserver, 'redisError' | 'redisOperation'>,
  now: () => number,
  onSilence: () => void,
): Call {
  return async (operation, command, deadlineMs) => {
    const startedAt = now();
    const outcome = await within(command, deadlineMs);
    observer.redisOperation(TIMED[operation], (now() - startedAt) / 1_000);
    if (outcome.kind === 'failed') {
      observer.redisError(operation, outcome.reason);
      if (outcome.reason !== 'reply') onSilence();
    }
    return outcome;
  };
}
