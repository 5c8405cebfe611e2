/**
 * A raw HTTP upstream with a switch per fault: real sockets on loopback, free ports, bytes written by hand.
 *
 * A fault is a function over one request; it may answer before the body has come (`body()` waits for it),
 * write half of something, or nothing. Name the reusable ones in {@link FAULTS}; pass a function for the rest.
 */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';

export interface FaultRequest {
  readonly head: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly socket: Socket;
  /** Counted from 1, on this socket. */
  readonly nth: number;
  /** The whole body, chunked coding undone. Rejects when the client goes first. */
  body(): Promise<Buffer>;
  /** JSON text of the id in the body. */
  id(): Promise<string>;
  /** Body bytes that have come so far. */
  readonly received: number;
}

export type Fault = (request: FaultRequest) => void | Promise<void>;

/** Waits for a condition; a test that never sees it fails with `what`. */
export async function until(condition: () => boolean, what = 'the condition', ms = 3_000): Promise<void> {
  const end = performance.now() + ms;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`waited ${ms} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

export const head = (status: number, headers: Readonly<Record<string, string | number>>): string =>
  `HTTP/1.1 ${status} Status\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`;

/** One whole answer with a content length. */
export function answer(
  { socket }: FaultRequest,
  body: string | Uint8Array,
  { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
): void {
  const bytes = Buffer.from(body);
  socket.write(
    head(status, { 'Content-Type': 'application/json', ...headers, 'Content-Length': bytes.length }),
  );
  socket.write(bytes);
}

export const chunk = (bytes: string | Uint8Array): Buffer => {
  const data = Buffer.from(bytes);
  return Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n')]);
};
export const LAST_CHUNK = '0\r\n\r\n';

/** Begins a chunked event stream. */
export function openEvents({ socket }: FaultRequest, headers: Record<string, string> = {}): void {
  socket.write(
    head(200, { 'Content-Type': 'text/event-stream', ...headers, 'Transfer-Encoding': 'chunked' }),
  );
}

/** The JSON text of a result. */
export const resultText = (id: string, text = 'hello'): string =>
  `{"jsonrpc":"2.0","id":${id},"result":{"contents":[{"uri":"a:b","text":"${text}"}],"resultType":"complete"}}`;
export const errorText = (id: string, code = -32602, message = 'no such thing'): string =>
  `{"jsonrpc":"2.0","id":${id},"error":{"code":${code},"message":"${message}","data":{"uri":"a:b"}}}`;
export const PROGRESS =
  '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":1}}';
export const SERVER_REQUEST = '{"jsonrpc":"2.0","id":7,"method":"roots/list","params":{}}';
export const event = (json: string): string => `event: message\ndata: ${json}\n\n`;

const json =
  (encode: (body: string) => Uint8Array, coding: string): Fault =>
  async (request) =>
    answer(request, encode(resultText(await request.id())), { headers: { 'Content-Encoding': coding } });

/** An event stream with this text, `ID` standing for the response. */
const events =
  (text: string): Fault =>
  async (request) => {
    openEvents(request);
    request.socket.write(chunk(text.replace('ANSWER', resultText(await request.id()))));
    request.socket.write(LAST_CHUNK);
  };

const BOMB_BYTES = 64 * 1024 * 1024;
let bomb: Buffer | undefined;

/** The named faults. */
export const FAULTS = {
  ok: async (request) => answer(request, resultText(await request.id())),
  rpcError: async (request) => answer(request, errorText(await request.id())),
  neverAnswers: () => {},
  stallsInBody: async (request) => {
    await request.body();
    request.socket.write(head(200, { 'Content-Type': 'application/json', 'Content-Length': 500 }));
    request.socket.write('{"jsonrpc":"2.0",');
  },
  halfAnAnswer: async (request) => {
    await request.body();
    request.socket.write(head(200, { 'Content-Type': 'application/json', 'Content-Length': 500 }));
    request.socket.end('{"jsonrpc":"2.0",');
  },
  halfAnAnswerUntilClose: async (request) => {
    const text = resultText(await request.id());
    request.socket.write(head(200, { 'Content-Type': 'application/json', Connection: 'close' }));
    request.socket.end(text.slice(0, -20));
  },
  wholeAnswerUntilClose: async (request) => {
    const text = resultText(await request.id());
    request.socket.write(head(200, { 'Content-Type': 'application/json', Connection: 'close' }));
    request.socket.end(text);
  },
  badJson: async (request) => {
    await request.body();
    answer(request, '{"jsonrpc":"2.0",');
  },
  bom: async (request) => answer(request, `\ufeff${resultText(await request.id())}`),
  wrongId: async (request) => {
    await request.body();
    answer(request, resultText('"somebody-else"'));
  },
  twoAnswers: async (request) => {
    const id = await request.id();
    answer(request, resultText(id, 'first') + resultText(id, 'second'));
  },
  wrongType: async (request) =>
    answer(request, resultText(await request.id()), { headers: { 'Content-Type': 'text/html' } }),
  oddType: async (request) =>
    answer(request, resultText(await request.id()), {
      headers: { 'Content-Type': 'Application/JSON ;Charset=UTF-8' },
    }),
  redirect: async (request) => {
    await request.body();
    answer(request, '', { status: 307, headers: { Location: 'http://127.0.0.1:1/stolen' } });
  },
  unauthorized: async (request) => {
    await request.body();
    answer(request, '{"error":"unauthorized"}', {
      status: 401,
      headers: { 'WWW-Authenticate': 'Bearer realm="x"' },
    });
  },
  htmlBadGateway: async (request) => {
    await request.body();
    answer(request, '<html>at 10.0.0.7</html>', { status: 502, headers: { 'Content-Type': 'text/html' } });
  },
  unavailable: async (request) => {
    await request.body();
    answer(request, '', { status: 503, headers: { 'Retry-After': '7' } });
  },
  reset: async (request) => {
    await request.body();
    request.socket.resetAndDestroy();
  },
  /** The keep-alive race: fine on a fresh connection, gone on a used one. */
  resetWhenReused: async (request) => {
    const id = await request.id();
    if (request.nth > 1) request.socket.resetAndDestroy();
    else answer(request, resultText(id));
  },
  garbage: async (request) => {
    await request.body();
    request.socket.end('SSH-2.0-OpenSSH_9.2\r\n');
  },
  gzip: json(gzipSync, 'gzip'),
  upperGzip: json(gzipSync, 'GZIP'),
  deflate: json(deflateSync, 'deflate'),
  rawDeflate: json(deflateRawSync, 'deflate'),
  brotli: json(brotliCompressSync, 'br'),
  twice: json((body) => brotliCompressSync(gzipSync(body)), 'gzip, br'),
  lyingGzip: json((body) => Buffer.from(body), 'gzip'),
  cutGzip: json((body) => gzipSync(body).subarray(0, -10), 'gzip'),
  unknownCoding: json((body) => Buffer.from(body), 'zstd, exi'),
  gzipBomb: async (request) => {
    await request.body();
    bomb ??= gzipSync(Buffer.alloc(BOMB_BYTES, 0x20));
    answer(request, bomb, { headers: { 'Content-Encoding': 'gzip' } });
  },
  events: events(event('ANSWER')),
  eventsOddType: async (request) => {
    const text = event(resultText(await request.id()));
    answer(request, text, { headers: { 'Content-Type': 'TEXT/Event-Stream;charset=utf-8' } });
  },
  eventsGzip: async (request) => {
    openEvents(request, { 'Content-Encoding': 'gzip' });
    const text = `: hi\n\n${event(PROGRESS)}${event(resultText(await request.id()))}`;
    request.socket.write(chunk(gzipSync(text)));
    request.socket.write(LAST_CHUNK);
  },
  eventsBusy: events(
    `\ufeff: hello\n\ndata:\n\nid: 1\nretry: 5\n\n${event(PROGRESS)}${event(SERVER_REQUEST)}event: ping\ndata: {}\n\n` +
      `${event(resultText('"somebody-else"', 'foreign'))}data: not json\n\n${event('ANSWER')}`,
  ),
  eventsCrLf: events(`: x\r\nevent:message\r\ndata:ANSWER\r\n\r\n`),
  eventsCr: events(`event:message\rdata:ANSWER\r\r`),
  eventsManyLines: async (request) => {
    openEvents(request);
    const lines = JSON.stringify(JSON.parse(resultText(await request.id())), null, 1).split('\n');
    request.socket.write(chunk(`${lines.map((line) => `data: ${line}\n`).join('')}\n`));
    request.socket.write(LAST_CHUNK);
  },
  eventsByteByByte: async (request) => {
    openEvents(request);
    for (const byte of Buffer.from(event(resultText(await request.id(), 'grüße 🌍')))) {
      request.socket.write(chunk(Uint8Array.of(byte)));
      await new Promise((resolve) => setImmediate(resolve));
    }
    request.socket.write(LAST_CHUNK);
  },
  eventsGoOn: async (request) => {
    openEvents(request);
    request.socket.write(
      chunk(event(resultText(await request.id())) + event(PROGRESS) + event(SERVER_REQUEST)),
    );
  },
  eventsEndWithout: events(event(PROGRESS)),
  eventsNoBlankLine: events('data: ANSWER\n'),
  eventsCut: async (request) => {
    await request.body();
    openEvents(request);
    request.socket.write(chunk(`${event(PROGRESS)}data: {"jsonrpc":`));
    await new Promise((resolve) => setImmediate(resolve));
    request.socket.resetAndDestroy();
  },
  eventsSilent: async (request) => {
    await request.body();
    openEvents(request);
    request.socket.write(chunk(': here\n\n'));
  },
} satisfies Record<string, Fault>;

export type FaultName = keyof typeof FAULTS;

export interface FaultServer {
  readonly url: URL;
  readonly port: number;
  /** What the next requests meet. */
  fault: FaultName | Fault;
  readonly requests: readonly FaultRequest[];
  /** Sockets that are open now. */
  readonly open: ReadonlySet<Socket>;
  /** Connections accepted so far. */
  readonly accepted: number;
  close(): Promise<void>;
}

/** Listens on a free port of the loopback interface. */
export async function startFaultServer(fault: FaultName | Fault = 'ok', at = 0): Promise<FaultServer> {
  const open = new Set<Socket>();
  const requests: FaultRequest[] = [];
  let accepted = 0;
  const server: Server = createServer((socket) => {
    accepted++;
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => {});
    serve(socket, (request) => {
      requests.push(request);
      const run = typeof state.fault === 'function' ? state.fault : FAULTS[state.fault];
      // A fault that waits for a body from a client that has gone just ends.
      Promise.resolve(run(request)).catch(() => {});
    });
  });
  server.listen(at, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const state: FaultServer = {
    url: new URL(`http://127.0.0.1:${port}/mcp`),
    port,
    fault,
    requests,
    open,
    get accepted() {
      return accepted;
    },
    close: async () => {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
  return state;
}

/** Reads requests off a socket, one after the other. */
function serve(socket: Socket, onRequest: (request: FaultRequest) => void): void {
  let rest: Buffer = Buffer.alloc(0);
  let nth = 0;
  let body: BodyReader | undefined;
  socket.on('close', () => body?.fail());
  socket.on('data', (bytes: Buffer) => {
    rest = Buffer.concat([rest, bytes]);
    for (;;) {
      if (body !== undefined) {
        rest = body.take(rest);
        if (!body.done) return;
        body = undefined;
      }
      const end = rest.indexOf('\r\n\r\n');
      if (end < 0) return;
      const text = rest.subarray(0, end).toString('latin1');
      rest = rest.subarray(end + 4);
      const headers = parseHeaders(text);
      const reader = new BodyReader(headers);
      body = reader;
      onRequest({
        head: text,
        headers,
        socket,
        nth: ++nth,
        body: () => reader.whole,
        id: async () => JSON.stringify((JSON.parse((await reader.whole).toString()) as { id: unknown }).id),
        get received() {
          return reader.received;
        },
      });
    }
  });
}

function parseHeaders(text: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of text.split('\r\n').slice(1)) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  return headers;
}

class BodyReader {
  readonly whole: Promise<Buffer>;
  received = 0;
  done = false;
  #left: number;
  #chunked: boolean;
  #parts: Buffer[] = [];
  #resolve: (body: Buffer) => void = () => {};
  #reject: (error: Error) => void = () => {};

  constructor(headers: Readonly<Record<string, string>>) {
    this.#chunked = headers['transfer-encoding'] === 'chunked';
    this.#left = this.#chunked ? 0 : Number(headers['content-length'] ?? 0);
    this.whole = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.whole.catch(() => {});
    if (!this.#chunked && this.#left === 0) this.#finish();
  }

  take(bytes: Buffer): Buffer {
    return this.#chunked ? this.#takeChunks(bytes) : this.#takeBytes(bytes, () => this.#finish());
  }

  fail(): void {
    this.#reject(new Error('the client has gone'));
  }

  #takeBytes(bytes: Buffer, whenAll: () => void): Buffer {
    const part = bytes.subarray(0, this.#left);
    this.#left -= part.length;
    this.received += part.length;
    this.#parts.push(part);
    if (this.#left === 0) whenAll();
    return bytes.subarray(part.length);
  }

  #takeChunks(bytes: Buffer): Buffer {
    let rest = bytes;
    while (!this.done) {
      if (this.#left > 0) {
        if (rest.length === 0) return rest;
        rest = this.#takeBytes(rest, () => {});
        if (this.#left > 0) return rest;
      }
      const from = rest.length >= 2 && rest[0] === 0x0d && rest[1] === 0x0a ? 2 : 0;
      const end = rest.indexOf('\r\n', from);
      if (end < 0) return rest;
      const size = Number.parseInt(rest.subarray(from, end).toString('latin1'), 16);
      if (size === 0) {
        if (rest.length < end + 4) return rest;
        this.#finish();
        return rest.subarray(end + 4);
      }
      rest = rest.subarray(end + 2);
      this.#left = size;
    }
    return rest;
  }

  #finish(): void {
    this.done = true;
    this.#resolve(Buffer.concat(this.#parts));
  }
}
