/** Connections: silence, ends in the middle, and HTTP that is none. */
import { setImmediate as breath } from 'node:timers/promises';
import { chunk, event, head, LAST_CHUNK, PROGRESS } from '../fault-server.ts';
import { begin, CANARY, goOn, hang, html, say } from '../simulator.ts';
import {
  BAD_GATEWAY,
  FINE,
  INCOMPLETE,
  JSON_TYPE,
  late,
  promise,
  REFUSED,
  type Row,
  row,
  STREAM_ERROR,
  TIMEOUT,
  UNREAD,
  within,
} from './row.ts';

export const silences: readonly Row[] = [
  row('R38', 'never answers', hang, late(within('call', TIMEOUT))),
  row(
    'R38',
    'stalls behind the head',
    async (ask) => {
      promise(ask);
      await hang(ask);
    },
    late(within('streamIdle', TIMEOUT)),
  ),
  row(
    'R38',
    'stalls in the body',
    async (ask) => {
      promise(ask);
      ask.request.socket.write(ask.text().slice(0, 40));
      await hang(ask);
    },
    late(within('streamIdle', TIMEOUT)),
  ),
  row(
    'R38',
    'announces one byte more than it sends',
    async (ask) => {
      promise(ask, Buffer.byteLength(ask.text()) + 1);
      ask.request.socket.write(ask.text());
      await hang(ask);
    },
    late(within('streamIdle', TIMEOUT)),
  ),
  row(
    'R38',
    'drips for ever, a byte at a time',
    async (ask) => {
      promise(ask, 1_000_000);
      ask.request.socket.write('{');
      await goOn(ask, () => ' ');
    },
    late(within('call', TIMEOUT)),
  ),
  row(
    'R32 R38',
    'stalls in an event',
    async (ask) => {
      begin(ask, 'text/event-stream');
      ask.request.socket.write(chunk('data: {"jsonrpc"'));
      await hang(ask);
    },
    late(within('streamIdle', STREAM_ERROR)),
  ),
  row(
    'R32 R38',
    'comments for ever',
    async (ask) => {
      begin(ask, 'text/event-stream');
      await goOn(ask, () => chunk(': still here\n\n'));
    },
    late(within('call', STREAM_ERROR)),
  ),
  row(
    'R32 R38',
    'progress for ever',
    async (ask) => {
      begin(ask, 'text/event-stream');
      await goOn(ask, () => chunk(event(PROGRESS)));
    },
    {
      list: within('response', INCOMPLETE),
      read: within('call', '200 stream: notifications, error -32603'),
      call: within('call', '200 stream: notifications, error -32603'),
    },
  ),
];

export const endings: readonly Row[] = [
  row('R36', 'closes the connection without an answer', ({ request }) => void request.socket.end(), REFUSED),
  row('R36', 'resets the connection', ({ request }) => void request.socket.resetAndDestroy(), REFUSED),
  row(
    'R36',
    'resets a kept-alive socket',
    (ask) => {
      if (ask.request.nth > 1) ask.request.socket.resetAndDestroy();
      else say(ask, ask.text());
    },
    { ...FINE, call: BAD_GATEWAY },
    { primed: true },
  ),
  row(
    'R36',
    'closes a kept-alive socket',
    (ask) => {
      if (ask.request.nth > 1) ask.request.socket.end();
      else say(ask, ask.text());
    },
    { ...FINE, call: BAD_GATEWAY },
    { primed: true },
  ),
  row('R37', 'half a head', ({ request }) => void request.socket.end('HTTP/1.1 200 OK\r\nContent-'), REFUSED),
  row('R37', 'not HTTP', ({ request }) => void request.socket.end('SSH-2.0-OpenSSH_9.2\r\n'), REFUSED),
  row(
    'R33 R37',
    'half an answer, then closes',
    (ask) => {
      promise(ask);
      ask.request.socket.end(ask.text().slice(0, 60));
    },
    REFUSED,
  ),
  row(
    'R33 R37',
    'half an answer, then resets',
    async (ask) => {
      promise(ask);
      ask.request.socket.write(ask.text().slice(0, 60));
      await breath();
      ask.request.socket.resetAndDestroy();
    },
    REFUSED,
  ),
  row(
    'R33 R37',
    'half an answer in chunks, then closes',
    (ask) => {
      begin(ask, 'application/json');
      ask.request.socket.end(chunk(ask.text().slice(0, 60)));
    },
    REFUSED,
  ),
  row(
    'R33 R37',
    'a whole answer without the last chunk',
    (ask) => {
      begin(ask, 'application/json');
      ask.request.socket.end(chunk(ask.text()));
    },
    REFUSED,
  ),
  row(
    'R33 R37',
    'half an answer of no stated length',
    (ask) => {
      ask.request.socket.write(head(200, { ...JSON_TYPE, Connection: 'close' }));
      ask.request.socket.end(ask.text().slice(0, 60));
    },
    REFUSED,
  ),
  row(
    'R33',
    'a whole answer of no stated length',
    (ask) => {
      ask.request.socket.write(head(200, { ...JSON_TYPE, Connection: 'close' }));
      ask.request.socket.end(ask.text());
    },
    FINE,
  ),
  row(
    'R33 R37',
    'stops in mid-character, then closes',
    (ask) => {
      begin(ask, 'application/json');
      const bytes = Buffer.from(ask.text());
      ask.request.socket.end(chunk(bytes.subarray(0, bytes.indexOf('ü') + 1)));
    },
    REFUSED,
  ),
  row(
    'R33 R37',
    'a chunk size that is no number',
    (ask) => {
      begin(ask, 'application/json');
      ask.request.socket.end(`${chunk(ask.text().slice(0, 30))}zz\r\n${ask.text()}\r\n${LAST_CHUNK}`);
    },
    REFUSED,
  ),
];

export const http: readonly Row[] = [
  row(
    'R32',
    'drips the whole answer, a byte at a time',
    async (ask) => {
      begin(ask, 'application/json');
      for (const byte of Buffer.from(ask.text())) {
        ask.request.socket.write(chunk(Uint8Array.of(byte)));
        await breath();
      }
      ask.request.socket.write(LAST_CHUNK);
    },
    FINE,
  ),
  row(
    'R33',
    'a stated length below the true one',
    (ask) => {
      const bytes = Buffer.from(ask.text());
      ask.request.socket.write(head(200, { ...JSON_TYPE, 'Content-Length': bytes.length - 20 }));
      ask.sent(bytes.subarray(0, -20));
      ask.request.socket.write(bytes);
    },
    UNREAD,
  ),
  row(
    'R33 R36',
    'a second answer nobody asked for behind the first',
    (ask) => {
      say(ask, ask.text());
      say({ request: ask.request }, ask.text().replaceAll('faulty', 'poison'));
    },
    FINE,
  ),
  row(
    'R33 R37',
    'two lengths that differ',
    (ask) => {
      const { socket } = ask.request;
      socket.write(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n`);
      socket.write(`Content-Length: ${Buffer.byteLength(ask.text())}\r\n\r\n${ask.text()}`);
    },
    REFUSED,
  ),
  row(
    'R33 R37',
    'a length and chunks',
    (ask) => {
      ask.request.socket.write(
        head(200, { ...JSON_TYPE, 'Content-Length': 10, 'Transfer-Encoding': 'chunked' }),
      );
      ask.request.socket.write(Buffer.concat([chunk(ask.text()), Buffer.from(LAST_CHUNK)]));
    },
    REFUSED,
  ),
  row(
    'R37',
    '40 KiB of headers',
    (ask) => say(ask, ask.text(), { headers: { 'X-Big': 'x'.repeat(40_000) } }),
    REFUSED,
  ),
  row(
    'R32',
    '103 Early Hints before the answer',
    (ask) => {
      ask.request.socket.write(`HTTP/1.1 103 Early Hints\r\nLink: <${CANARY}>\r\n\r\n`);
      say(ask, ask.text());
    },
    FINE,
  ),
  row(
    'R37',
    '101 Switching Protocols',
    ({ request }) =>
      void request.socket.write('HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
    REFUSED,
  ),
  row(
    'R32',
    'trailers behind the chunks',
    (ask) => {
      begin(ask, 'application/json', { Trailer: 'X-After' });
      ask.request.socket.write(
        Buffer.concat([chunk(ask.text()), Buffer.from(`0\r\nX-After: ${CANARY}\r\n\r\n`)]),
      );
    },
    FINE,
  ),
  row(
    'R32 R35',
    'answers before the request has ended',
    (ask) => say(ask, ask.text()),
    { call: '200 json: faulty' },
    { early: true, uploads: true },
  ),
  row('R36', 'closes before the request has ended', ({ request }) => void request.socket.end(), REFUSED, {
    early: true,
  }),
  row('R37', 'refuses before the request has ended', (ask) => html(413)(ask), REFUSED, { early: true }),
  row(
    'R37',
    'refuses a large request before it has ended',
    (ask) => html(413)(ask),
    { call: BAD_GATEWAY },
    { early: true, uploads: true },
  ),
];
