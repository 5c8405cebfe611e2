/** How a command of Redis ended, as a value. */

/** `reply`: Redis answered, with an error. */
export type Trouble = 'timeout' | 'connection' | 'reply';

export type Outcome<T> =
  | { readonly kind: 'ok'; readonly value: T }
  | { readonly kind: 'failed'; readonly reason: Trouble };

const TIMED_OUT: Outcome<never> = { kind: 'failed', reason: 'timeout' };

/**
 * Waits for a command, for so long at most. *Never* rejects. ioredis' own `commandTimeout` is left off: when the loop
 * was late, its timer runs before the reply that is already there is read, and a busy replica would take a healthy
 * Redis for a slow one.
 */
export function within<T>(command: Promise<T>, ms: number): Promise<Outcome<T>> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      // One more look at the sockets first.
      setImmediate(() => resolve(TIMED_OUT));
    }, ms);
    command.then(
      (value) => {
        clearTimeout(timer);
        resolve({ kind: 'ok', value });
      },
      (error: unknown) => {
        clearTimeout(timer);
        resolve({ kind: 'failed', reason: isReply(error) ? 'reply' : 'connection' });
      },
    );
  });
}

/** Whether Redis said so itself, rather than the client about its connection. */
function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError';
}
