/** An upstream that is a process, as the rest of the gateway sees one. */
import type { ProcessConfig, UpstreamConfig } from '../config/types.ts';
import { NOTHING } from '../protocol/listen-filter.ts';
import { traitsOf } from './failure.ts';
import type { UpstreamDeps } from './http.ts';
import { callTranslated, type Interlocutor } from './legacy.ts';
import { StdioWire } from './stdio.ts';
import { Supervisor } from './supervisor.ts';
import type { Listening, ReadOutcome } from './types.ts';
import type { BaseUpstream } from './upstream.ts';

const NO_CONNECTIONS = { connected: 0, free: 0, pending: 0, queued: 0, running: 0 };

/** Opens it; the process is started by the first request. */
export function createStdio(
  config: UpstreamConfig,
  process: ProcessConfig,
  deps: UpstreamDeps,
): BaseUpstream {
  const { name, timeouts } = config;
  const { now, observer, log } = deps;
  let state: 'up' | 'down' | undefined;
  const become = (next: 'up' | 'down'): void => {
    if (state !== next) observer.upstreamUp(name, next);
    state = next;
  };
  const attempted = (outcome: Parameters<typeof observer.attempt>[1] | undefined): void => {
    if (outcome !== undefined) observer.attempt(name, outcome);
  };
  const wire: StdioWire = new StdioWire(
    { timeouts, now, attempted },
    (made) =>
      new Supervisor({
        config: process,
        deps: { name, now, ...(log !== undefined && { log }) },
        attach: (child) => made.attach(child),
      }),
  );
  const read: BaseUpstream['read'] = async (request) => {
    const startedAt = now();
    const outcome = await wire.read(request);
    if (outcome.kind === 'answer') become('up');
    else if (outcome.kind === 'failure' && outcome.failure.kind === 'connect') become('down');
    observer.upstreamOperation(name, request.method, errorTypeOf(outcome), (now() - startedAt) / 1000);
    return outcome;
  };
  const asked: Interlocutor = {
    read,
    tell: async (_method, message) => {
      await wire.stream({ body: Buffer.from(message) });
    },
  };
  return {
    name,
    read,
    stream: (request) => callTranslated(asked, request),
    listen: (request, on) => deaf(request.filter, on),
    stats: () => NO_CONNECTIONS,
    available: () => true,
    close: () => wire.close(),
    sessions: {
      read,
      stream: (request) => wire.stream(request),
      end: () => wire.end(),
      events: (address, signal) => wire.events(address, signal),
      get life() {
        return wire.life;
      },
    },
  };
}

function errorTypeOf(outcome: ReadOutcome): string {
  if (outcome.kind === 'failure') return traitsOf(outcome.failure.kind).errorType;
  return outcome.kind === 'answer' && outcome.answer.kind === 'error' ? String(outcome.answer.code) : '';
}

/** A process of this era is not listened to yet. */
function deaf(
  ...[asked, on]: [Parameters<BaseUpstream['listen']>[0]['filter'], Parameters<BaseUpstream['listen']>[1]]
): Listening {
  let state: Listening['state'] = 'not-offered';
  const timer = setTimeout(() => {
    on({ kind: 'not-offered', reason: 'a process that speaks this revision is not listened to yet', asked });
  }, 0);
  return {
    get state() {
      return state;
    },
    update: () => undefined,
    fate: () => ({ honoured: NOTHING, undecided: NOTHING }),
    close: () => {
      clearTimeout(timer);
      state = 'closed';
    },
  };
}
