/**
 * One upstream with a switch per fault: every row of the fault table has a path of its own on it.
 *
 * A switched-on fault meets lists, reads and calls; `server/discover` is always answered well, so that it is the
 * fault under test that shows and not an upstream that was never seen. Switched off, everything is answered well.
 */
import { once } from 'node:events';
import { setImmediate as breath, setTimeout as wait } from 'node:timers/promises';
import {
  chunk,
  type FaultRequest,
  type FaultServer,
  head,
  LAST_CHUNK,
  startFaultServer,
} from './fault-server.ts';
import { VERSION } from './mcp.ts';

/** What a client does: the three ways into an upstream. */
export type Surface = 'list' | 'read' | 'call';

/** In every header, HTML page and error that no client may ever see. */
export const CANARY = 'canary-10.0.0.7:3000';

/** How long `wait`s of the switches last; above the sampling of any test, far below any deadline of the table. */
const STEP_MS = 5;

/** One request that meets a switched-on fault. */
export interface Ask {
  readonly request: FaultRequest;
  readonly surface: Surface;
  readonly row: string;
  /** The cursor of a list request. */
  readonly cursor: string | undefined;
  /** JSON text of the request's id. */
  readonly id: string;
  /** How often this surface of this row was asked while the fault was on, this time included. */
  readonly nth: number;
  /** The result of a well-behaved server. */
  readonly result: Readonly<Record<string, unknown>>;
  /** JSON text of a well-behaved answer, with members of the result replaced. */
  text(changed?: Readonly<Record<string, unknown>>): string;
  /** Told what is sent as a whole body: a client that is shown it untouched saw it "as sent". */
  sent(body: Buffer): void;
}

/** A fault. Runs once per request, as soon as the request's body has come. */
export type Switch = (ask: Ask) => void | Promise<void>;

/** The headers that every answer of the simulator carries: none of them is for a client. */
const TELLTALES = { 'Set-Cookie': `session=${CANARY}`, 'X-Upstream': CANARY, Server: CANARY };

/** One answer with a length. */
export function say(
  { request, sent }: Pick<Ask, 'request'> & Partial<Pick<Ask, 'sent'>>,
  body: string | Uint8Array,
  { status = 200, headers = {} }: { status?: number; headers?: Record<string, string | number> } = {},
): void {
  const bytes = Buffer.from(body);
  sent?.(bytes);
  const all = {
    'Content-Type': 'application/json',
    ...TELLTALES,
    'Content-Length': bytes.length,
    ...headers,
  };
  request.socket.write(head(status, all));
  request.socket.write(bytes);
}

/** A web page where an answer should be. */
export const html =
  (status: number, headers: Record<string, string> = {}): Switch =>
  (ask) =>
    say(ask, `<html><h1>${status}</h1>at ${CANARY}</html>`, {
      status,
      headers: { 'Content-Type': 'text/html', ...headers },
    });

/** Begins an answer of unknown length. */
export function begin({ request }: Pick<Ask, 'request'>, type: string, headers: Record<string, string> = {}) {
  request.socket.write(
    head(200, { 'Content-Type': type, ...TELLTALES, ...headers, 'Transfer-Encoding': 'chunked' }),
  );
}

/** An event stream of these pieces, each a chunk of its own, ended properly. */
export async function stream(
  ask: Ask,
  pieces: Iterable<string | Uint8Array>,
  headers: Record<string, string> = {},
): Promise<void> {
  begin(ask, 'text/event-stream', headers);
  for (const piece of pieces) {
    if (ask.request.socket.destroyed) return;
    ask.request.socket.write(chunk(piece));
    await breath();
  }
  ask.request.socket.write(LAST_CHUNK);
}

/** Waits until the gateway gives up. */
export async function hang({ request: { socket } }: Pick<Ask, 'request'>): Promise<void> {
  if (!socket.destroyed) await once(socket, 'close');
}

/** Writes for as long as the gateway reads. @param pauseMs between two pieces. */
export async function goOn(
  { request: { socket } }: Ask,
  piece: () => string | Uint8Array,
  pauseMs = STEP_MS,
): Promise<void> {
  while (!socket.destroyed) {
    if (!socket.write(piece())) await Promise.race([once(socket, 'drain'), once(socket, 'close')]);
    await wait(pauseMs);
  }
}

/** The text of whatever a well-behaved server holds: marked, so that it can be told who said it and when. */
export const words = (mood: 'faulty' | 'healthy'): string => `${mood} grüße 🌍`;

function goodResult(surface: Surface, row: string, mood: 'faulty' | 'healthy'): Record<string, unknown> {
  const hints = { resultType: 'complete', ttlMs: 60_000, cacheScope: 'public' };
  switch (surface) {
    case 'list':
      return { resources: [{ uri: `${row}://${mood}`, name: words(mood) }], ...hints };
    case 'read':
      return { contents: [{ uri: `${row}://doc`, text: words(mood) }], ...hints };
    case 'call':
      return { content: [{ type: 'text', text: words(mood) }], resultType: 'complete' };
  }
}

const answerText = (id: string, result: unknown): string =>
  `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}`;

const SURFACES: Readonly<Record<string, Surface>> = {
  'resources/list': 'list',
  'resources/read': 'read',
  'tools/call': 'call',
};

/** What the simulator saw of one request. */
export interface Seen {
  readonly row: string;
  readonly method: string;
  readonly authorization: string | undefined;
  readonly uri: string | undefined;
}

export interface Simulator {
  readonly server: FaultServer;
  /** The URL of a row's upstream. */
  url(row: string): string;
  turn(row: string, state: 'on' | 'off'): void;
  /** Requests so far, `server/discover` left out. */
  seen(row: string): readonly Seen[];
  /** The last whole body that a fault of the row sent. */
  sent(row: string): Buffer | undefined;
  /** Faults of a row that still run. */
  running(row: string): number;
  close(): Promise<void>;
}

/** A row's switch; `early`: thrown as soon as the head of a request has come. */
export interface Switched {
  readonly run: Switch;
  readonly early?: true;
}

interface State {
  on: boolean;
  running: number;
  readonly asked: Record<Surface, number>;
  readonly seen: Seen[];
  sent?: Buffer;
}

/** Starts it; rows are switched off at first. A name without a row is a well-behaved upstream. */
export async function startSimulator(rows: ReadonlyMap<string, Switched>): Promise<Simulator> {
  const states = new Map<string, State>();
  const stateOf = (row: string): State => {
    const known = states.get(row);
    if (known !== undefined) return known;
    const state = { on: false, running: 0, asked: { list: 0, read: 0, call: 0 }, seen: [] };
    states.set(row, state);
    return state;
  };
  const server = await startFaultServer(async (request) => {
    const row = /^POST \/(\S*) /.exec(request.head)?.[1] ?? '';
    const method = request.headers['mcp-method'] ?? '';
    const state = stateOf(row);
    const { run, early } = rows.get(row) ?? {};
    const surface = SURFACES[method];
    const meets = state.on && run !== undefined && surface !== undefined;
    const body =
      meets && early
        ? { id: 7, params: undefined }
        : (JSON.parse((await request.body()).toString()) as {
            id: unknown;
            params?: { uri?: string; cursor?: string };
          });
    if (surface !== undefined) {
      const { authorization } = request.headers;
      state.seen.push({ row, method, authorization, uri: body.params?.uri });
    }
    const id = JSON.stringify(body.id);
    if (!meets) {
      const result =
        surface === undefined
          ? {
              supportedVersions: [VERSION],
              capabilities: { resources: {}, tools: {} },
              resultType: 'complete',
            }
          : goodResult(surface, row, 'healthy');
      say({ request }, answerText(id, result));
      return;
    }
    state.running++;
    const result = goodResult(surface, row, 'faulty');
    try {
      await run({
        request,
        surface,
        row,
        cursor: body.params?.cursor,
        id,
        nth: ++state.asked[surface],
        result,
        text: (changed) => answerText(id, { ...result, ...changed }),
        sent: (bytes) => {
          state.sent = bytes;
        },
      });
    } finally {
      state.running--;
    }
  });
  return {
    server,
    url: (row) => `http://127.0.0.1:${server.port}/${row}`,
    turn: (row, to) => {
      stateOf(row).on = to === 'on';
    },
    seen: (row) => stateOf(row).seen,
    sent: (row) => stateOf(row).sent,
    running: (row) => stateOf(row).running,
    close: () => server.close(),
  };
}
