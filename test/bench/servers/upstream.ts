/**
 * The upstream of the bench: MCP 2026-07-28 on a plain socket, so cheap that it is never what is measured.
 *
 * `node upstream.js ITEMS`: how many resources each list holds. Paths: `/bench` and `/private` serve reads and
 * calls, `/list/N` a list of its own each. Not a model of a server: it believes whatever it is told.
 */
import { createServer, type Socket } from 'node:net';
import { callAnswer, readAnswer, SIZES, type SizeName, VERSION } from '../wire.ts';

const ITEMS = Number(process.argv[2] ?? 5_000);
/** Items of one upstream page: a list of 5,000 comes in ten. */
const PAGE = 500;
const HINTS = '"ttlMs":86400000,"cacheScope":"public"';
/** A large text goes out in pieces of this. */
const PIECE = Buffer.alloc(1024 * 1024, 'x');
const TICK_MS = 5;

interface Request {
  readonly path: string;
  /** Whether the connection ends with the answer. */
  readonly last: boolean;
  readonly method: string;
  /** JSON text. */
  readonly id: string;
  readonly params: {
    readonly uri?: string;
    readonly cursor?: string;
    readonly name?: string;
    readonly arguments?: { count?: number };
  };
}

function json(socket: Socket, body: string): void {
  socket.write(
    `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    'latin1',
  );
}

const SSE_HEAD =
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\nTransfer-Encoding: chunked\r\n\r\n';

function event(socket: Socket, data: string): void {
  const frame = `event: message\ndata: ${data}\n\n`;
  socket.write(`${frame.length.toString(16)}\r\n${frame}\r\n`, 'latin1');
}

function answer(socket: Socket, request: Request): void {
  switch (request.method) {
    case 'server/discover':
      return json(
        socket,
        `{"jsonrpc":"2.0","id":${request.id},"result":{"resultType":"complete",${HINTS},"supportedVersions":["${VERSION}"],"capabilities":{"resources":{},"tools":{}},"serverInfo":{"name":"bench","version":"1"}}}`,
      );
    case 'resources/list':
      return json(socket, listAnswer(request));
    case 'resources/read':
      return read(socket, request);
    case 'tools/list':
      return json(
        socket,
        `{"jsonrpc":"2.0","id":${request.id},"result":{"resultType":"complete",${HINTS},"tools":[${['text1k', 'text100k', 'ticks', 'idle'].map((name) => `{"name":"${name}","inputSchema":{"type":"object"}}`).join(',')}]}}`,
      );
    case 'tools/call':
      return call(socket, request);
    default:
      return json(
        socket,
        `{"jsonrpc":"2.0","id":${request.id},"result":{"resultType":"complete",${HINTS},"resourceTemplates":[],"prompts":[]}}`,
      );
  }
}

function listAnswer({ id, path, params }: Request): string {
  const which = path.startsWith('/list/') ? path.slice('/list/'.length) : 'bench';
  const total = path.startsWith('/list/') ? ITEMS : 3;
  const from = Number(params.cursor ?? 0);
  const to = Math.min(total, from + PAGE);
  const items: string[] = [];
  for (let i = from; i < to; i++) {
    items.push(
      `{"uri":"list://${which}/${i}","name":"item-${i}","title":"Item ${i} of list ${which}","description":"One of many entries, as long as a usual description is.","mimeType":"text/plain"}`,
    );
  }
  const next = to < total ? `,"nextCursor":"${to}"` : '';
  return `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete",${HINTS},"resources":[${items.join(',')}]${next}}}`;
}

function read(socket: Socket, { id, path, params }: Request): void {
  const uri = params.uri ?? '';
  const size = /^bench:\/\/(\w+)/.exec(uri)?.[1] ?? '2k';
  if (/^\d+mb$/.test(size)) return void readLarge(socket, id, uri, Number.parseInt(size, 10));
  const chars = SIZES[size as SizeName] ?? SIZES['2k'];
  json(socket, readAnswer(id, uri, chars, path === '/private' ? 'private' : 'public'));
}

async function readLarge(socket: Socket, id: string, uri: string, megabytes: number): Promise<void> {
  const [head = '', tail = ''] = readAnswer(id, uri, 0, 'public').split('"text":"');
  const begin = `${head}"text":"`;
  const length = begin.length + megabytes * PIECE.length + tail.length;
  socket.write(
    `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${begin}`,
    'latin1',
  );
  for (let i = 0; i < megabytes; i++) {
    if (socket.destroyed) return;
    if (!socket.write(PIECE))
      await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve));
  }
  socket.write(tail, 'latin1');
}

function call(socket: Socket, request: Request): void {
  const { id, params } = request;
  switch (params.name) {
    case 'text100k':
      return json(socket, callAnswer(id, 100 * 1024));
    case 'ticks':
      return ticks(socket, request);
    case 'idle':
      socket.write(SSE_HEAD);
      return event(socket, progress(0));
    default:
      return json(socket, callAnswer(id, 1024));
  }
}

function progress(step: number): string {
  return `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":${step},"sentAt":"${process.hrtime.bigint()}"}}`;
}

function ticks(socket: Socket, { id, last, params }: Request): void {
  socket.write(SSE_HEAD);
  const count = params.arguments?.count ?? 10;
  let step = 0;
  const timer = setInterval(() => {
    if (socket.destroyed) return clearInterval(timer);
    if (step++ < count) return event(socket, progress(step));
    clearInterval(timer);
    event(socket, callAnswer(id, 10));
    socket.write('0\r\n\r\n');
    if (last) socket.end();
  }, TICK_MS);
}

function serve(socket: Socket): void {
  let held: Buffer = Buffer.alloc(0);
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk) => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    for (;;) {
      const end = held.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = held.toString('latin1', 0, end);
      const whole = bodyOf(head, held.subarray(end + 4));
      if (whole === undefined) return;
      held = held.subarray(end + 4 + whole.taken);
      const { id, method, params = {} } = JSON.parse(whole.text);
      answer(socket, {
        path: head.split(' ', 2)[1] ?? '/',
        last: /\r\nconnection: close/i.test(head),
        id: JSON.stringify(id),
        method,
        params,
      });
    }
  });
}

/** The body of a request, and how many bytes it took; undefined when it is not all there. */
function bodyOf(head: string, rest: Buffer): { readonly text: string; readonly taken: number } | undefined {
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? -1);
  if (length >= 0)
    return rest.length < length ? undefined : { text: rest.toString('utf8', 0, length), taken: length };
  let text = '';
  for (let at = 0; ; ) {
    const end = rest.indexOf('\r\n', at);
    if (end < 0) return undefined;
    const size = Number.parseInt(rest.toString('latin1', at, end), 16);
    if (rest.length < end + 2 + size + 2) return undefined;
    if (size === 0) return { text, taken: end + 4 };
    text += rest.toString('utf8', end + 2, end + 2 + size);
    at = end + 2 + size + 2;
  }
}

const server = createServer(serve);
server.listen(0, '127.0.0.1', 4_096, () => {
  const address = server.address();
  console.log(JSON.stringify({ port: typeof address === 'object' && address !== null ? address.port : 0 }));
});
