/**
 * Shutting down without losing work (design, section 9; R43): not ready → wait until traffic goes elsewhere →
 * accept no more → end listens, finish calls → cut what is left at the end of the grace.
 */
import type { HeadgateConfig } from '../config/types.ts';
import type { EdgeContext } from './live.ts';

/** How many requests were cut off. */
export interface DrainResult {
  readonly cutOff: number;
}

/** What a drain needs of the server. */
export interface Drainable {
  readonly context: EdgeContext;
  readonly shutdown: HeadgateConfig['shutdown'];
  /** Accepts no more connections, and closes those that carry no request. */
  stopAccepting(): Promise<void>;
  /** Closes every connection. */
  cutConnections(): void;
}

/** A client that does not read its listen does not read its end, either: it holds nobody up for longer than this. */
const LISTEN_ENDS_MS = 1_000;

/** How long those who were told to give up may take to say so to their clients. */
const LAST_WORDS_MS = 250;

/** A drain under way. */
export interface Drain {
  readonly done: Promise<DrainResult>;
  /** Cuts now. */
  force(): void;
}

/** Begins to drain. */
export function startDrain(server: Drainable): Drain {
  const forced = new AbortController();
  return { done: run(server, forced.signal), force: () => forced.abort() };
}

async function run(server: Drainable, forced: AbortSignal): Promise<DrainResult> {
  const { context, shutdown } = server;
  context.phase = 'draining';
  context.metrics.ready('not-ready');
  await waitFor(shutdown.delayMs, forced);
  context.phase = 'closing';
  const closed = server.stopAccepting();
  endListens(context);
  context.onClosing();
  await emptied(context, shutdown.graceMs, forced);
  const cutOff = [...context.open].filter((live) => !live.answered).length;
  if (cutOff > 0) {
    for (const live of context.open) live.abort('shutdown');
    await emptied(context, LAST_WORDS_MS, forced);
  }
  server.cutConnections();
  await closed;
  context.phase = 'closed';
  return { cutOff };
}

/** Gives every listen its result. */
function endListens({ open }: EdgeContext): void {
  const ended = [...open].filter((live) => live.endListen !== undefined);
  for (const live of ended) live.endListen?.();
  setTimeout(() => {
    for (const live of ended) if (!live.over) live.destroy();
  }, LISTEN_ENDS_MS).unref();
}

/** Waits until no request is open, `ms` are over, or the drain is forced. */
async function emptied(context: EdgeContext, ms: number, forced: AbortSignal): Promise<void> {
  if (context.open.size === 0) return;
  const empty = new AbortController();
  context.onEmpty = () => empty.abort();
  await waitFor(ms, AbortSignal.any([empty.signal, forced]));
  context.onEmpty = undefined;
}

function waitFor(ms: number, interrupt: AbortSignal): Promise<void> {
  if (ms <= 0 || interrupt.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      interrupt.removeEventListener('abort', done);
      resolve();
    }
    interrupt.addEventListener('abort', done);
  });
}
