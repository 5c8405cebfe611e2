/** The state of the gateway, again and again while somebody looks. */
import { get } from './client.ts';
import { STATE_PATH, type State } from './contract.ts';
import { allowed } from './dialogs.ts';

/** Often enough to see a hit happen. */
const EVERY_MS = 2_000;

export interface Watching {
  readonly seen: (state: State) => void;
  /** It does not answer; it is asked on. */
  readonly lost: () => void;
  /** Waits for the token. */
  readonly locked: () => void;
}

/** Looks until the page is closed, and never while it is hidden. */
export function watch({ seen, lost, locked }: Watching): void {
  let timer: number | undefined;
  let looking: Promise<void> | undefined;
  const look = async (): Promise<void> => {
    const got = await allowed(() => get<State>(STATE_PATH), locked);
    if (got.kind === 'ok') seen(got.value);
    else lost();
  };
  const again = async (): Promise<void> => {
    clearTimeout(timer);
    looking ??= look().finally(() => {
      looking = undefined;
    });
    await looking;
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(again, EVERY_MS);
  };
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) clearTimeout(timer);
    else void again();
  });
  void again();
}
