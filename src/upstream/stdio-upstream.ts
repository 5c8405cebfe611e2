/** An upstream that is a process, as the rest of the gateway sees one. */
import type { ProcessConfig, UpstreamConfig } from '../config/types.ts';
import { Balance } from './balance.ts';
import { HeldBytes } from './held.ts';
import type { UpstreamDeps } from './http.ts';
import { callTranslated, type Interlocutor } from './legacy.ts';
import { openListening } from './listen.ts';
import type { ListenDeps } from './listen-held.ts';
import { LISTEN_TIMES } from './listen-times.ts';
import { errorTypeOf } from './outcomes.ts';
import type { Endpoint } from './pool.ts';
import { StdioWire } from './stdio.ts';
import { StdioListenStream } from './stdio-listen.ts';
import { Supervisor } from './supervisor.ts';
import type { Listening } from './types.ts';
import type { BaseUpstream } from './upstream.ts';

const NOTHING_THERE = (): never => {
  throw new Error('a process has no connections');
};

/** Where the streams of a process go: there is but one place, and it is found by other means. */
const NOWHERE: Endpoint = {
  url: new URL('stdio:'),
  underWay: 0,
  path: '',
  get reads() {
    return NOTHING_THERE();
  },
  get streams() {
    return NOTHING_THERE();
  },
  listens: NOTHING_THERE,
  stats: () => NO_CONNECTIONS,
  close: async () => undefined,
};

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
    tell: async (method, message) => {
      await wire.tell(undefined, method, message);
    },
  };
  let lastListen = 0;
  const listenings = new Set<Listening>();
  const listenDeps: ListenDeps = {
    link: {
      held: new HeldBytes(0),
      timeouts,
      now,
      nextId: () => `"hl-${(++lastListen).toString(36)}"`,
      attempted,
    },
    balance: new Balance({
      endpoints: [NOWHERE],
      now,
      onEndpoint: () => undefined,
      onChange: () => undefined,
    }),
    times: deps.listenTimes ?? LISTEN_TIMES,
    random: deps.random ?? Math.random,
    answered: (turn, startedAt) => turn.settle('ignored', startedAt),
    open: (parts) => new StdioListenStream(parts, wire),
  };
  return {
    name,
    read,
    stream: (request) => callTranslated({ session: () => asked }, request),
    listen: (request, on) => {
      const listening = openListening(listenDeps, request, on, () => listenings.delete(listening));
      listenings.add(listening);
      return listening;
    },
    stats: () => ({ ...NO_CONNECTIONS, running: wire.underWay }),
    available: () => true,
    close: async () => {
      for (const listening of listenings) listening.close();
      await wire.close();
    },
    events: (address, signal) => wire.events(address, signal),
    sessions: {
      read,
      tell: (...told) => wire.tell(...told),
      end: () => wire.end(),
      get life() {
        return wire.life;
      },
    },
  };
}
