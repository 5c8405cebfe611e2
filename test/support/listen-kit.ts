/** What tests of listening share: an upstream that is told what to say on each stream, and an ear. */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import {
  Coverage,
  filterText,
  type ListenFilter,
  NOTHING,
  readFilter,
} from '../../src/protocol/listen-filter.ts';
import type { ListenTimes } from '../../src/upstream/listen-times.ts';
import type { ListenEvent, Listening, ListenRequest } from '../../src/upstream/types.ts';
import { createUpstream } from '../../src/upstream/upstream.ts';
import {
  chunk,
  event,
  type FaultRequest,
  type FaultServer,
  LAST_CHUNK,
  openEvents,
  startFaultServer,
  until,
} from './fault-server.ts';
import { now, recorder, upstreamConfig, VERSION } from './upstream-kit.ts';

/** A hundredth of those in use, more or less. */
export const TIMES: ListenTimes = {
  ackMs: 2_500,
  gatherMs: 20,
  shrinkMs: 120,
  drainMs: 80,
  firstPauseMs: 8,
  lastPauseMs: 64,
  steadyMs: 150,
  refusedMs: 400,
};

/** One stream, seen by the server. */
export interface Heard {
  readonly request: FaultRequest;
  readonly socket: Socket;
  /** JSON text. */
  readonly id: string;
  readonly filter: ListenFilter;
  readonly params: Record<string, unknown>;
  readonly at: number;
  /** Sends an event with this JSON. */
  say(json: string): void;
  /** Acknowledges what was asked, or something else. */
  acknowledge(filter?: ListenFilter, id?: string): void;
  /** Sends a notification that carries the id. */
  notify(method: string, params?: Record<string, unknown>, id?: string): void;
  updated(uri: string): void;
  /** Ends with a complete result. */
  complete(): void;
}

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';

/** Reads what a stream asks for. */
export async function heardOn(request: FaultRequest): Promise<Heard> {
  const body = await request.body();
  const { params } = JSON.parse(body.toString()) as { params: Record<string, unknown> };
  const id = await request.id();
  const text = Buffer.from(JSON.stringify(params.notifications));
  const filter = readFilter(text, { start: 0, end: text.length });
  assert.ok(filter !== undefined);
  const say = (json: string): void => {
    request.socket.write(chunk(event(json)));
  };
  const notify: Heard['notify'] = (method, rest = {}, own = id) => {
    const _meta = { [SUBSCRIPTION]: JSON.parse(own) as unknown };
    say(JSON.stringify({ jsonrpc: '2.0', method, params: { ...rest, _meta } }));
  };
  return {
    request,
    socket: request.socket,
    id,
    filter,
    params,
    at: now(),
    say,
    notify,
    acknowledge: (honoured = filter, own = id) => {
      const notifications = JSON.parse(filterText(honoured)) as unknown;
      notify('notifications/subscriptions/acknowledged', { notifications }, own);
    },
    updated: (uri) => notify('notifications/resources/updated', { uri }),
    complete: () => {
      say(
        `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","_meta":{"${SUBSCRIPTION}":${id}}}}`,
      );
      request.socket.write(LAST_CHUNK);
    },
  };
}

export interface Station {
  readonly server: FaultServer;
  readonly streams: readonly Heard[];
  /** What happens to the next stream; its head has been sent. */
  behave: (stream: Heard) => void;
  /** What happens to the next request instead, where set. */
  refuse: ((request: FaultRequest) => void | Promise<void>) | undefined;
  /** Requests so far, refused ones included. */
  readonly asked: number;
  /** Streams that are open now. */
  readonly open: readonly Heard[];
}

/** An upstream that acknowledges whatever is asked. */
export async function startStation(port = 0): Promise<Station> {
  const streams: Heard[] = [];
  const server = await startFaultServer(async (request) => {
    if (station.refuse !== undefined) {
      await request.body();
      await station.refuse(request);
      return;
    }
    const stream = await heardOn(request);
    openEvents(request);
    streams.push(stream);
    station.behave(stream);
  }, port);
  const station: Station = {
    server,
    streams,
    behave: (stream) => stream.acknowledge(),
    refuse: undefined,
    get asked() {
      return server.requests.length;
    },
    get open() {
      return streams.filter(({ socket }) => !socket.destroyed);
    },
  };
  return station;
}

export interface Ear {
  readonly listening: Omit<Listening, 'update'> & { update(filter: ListenFilter): void };
  readonly events: readonly ListenEvent[];
  /** Events of one kind. */
  of<Kind extends ListenEvent['kind']>(kind: Kind): readonly Extract<ListenEvent, { kind: Kind }>[];
  /** Waits for the nth event of a kind, counted from 1. */
  hears<Kind extends ListenEvent['kind']>(
    kind: Kind,
    nth?: number,
  ): Promise<Extract<ListenEvent, { kind: Kind }>>;
}

export const asking = (filter: Partial<ListenFilter>): ListenFilter => ({ ...NOTHING, ...filter });

export const listenRequest = (filter: ListenFilter, rest: Partial<ListenRequest> = {}): ListenRequest => ({
  filter,
  version: VERSION,
  headers: {},
  meta: `"io.modelcontextprotocol/protocolVersion":"${VERSION}","io.modelcontextprotocol/clientCapabilities":{}`,
  ...rest,
});

/** An upstream with short times. */
export function listenRig(
  urls: readonly URL[],
  options: {
    readonly times?: Partial<ListenTimes>;
    readonly random?: () => number;
    readonly connections?: number;
  } = {},
) {
  const { times = {}, random = () => 0.5, connections = 64 } = options;
  const seen = recorder();
  const upstream = createUpstream(
    { ...upstreamConfig(urls[0] as URL, { connections }), endpoints: [...urls] },
    { now, observer: seen, random, listenTimes: { ...TIMES, ...times } },
  );
  const listen = (filter: Partial<ListenFilter>, rest: Partial<ListenRequest> = {}): Ear => {
    const events: ListenEvent[] = [];
    const own = upstream.listen(listenRequest(asking(filter), rest), (told) => events.push(told));
    const listening: Ear['listening'] = {
      get state() {
        return own.state;
      },
      fate: (part) => own.fate(part),
      update: (wanted) => own.update(new Coverage(wanted)),
      close: () => own.close(),
    };
    const of: Ear['of'] = (kind) => events.filter((told) => told.kind === kind) as never;
    return {
      listening,
      events,
      of,
      hears: async (kind, nth = 1) => {
        await until(() => of(kind).length >= nth, `${kind} ${nth}`);
        return of(kind)[nth - 1] as never;
      },
    };
  };
  return { upstream, seen, listen };
}
