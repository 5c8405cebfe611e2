/** Representations: content types and content codings. */
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { event, head } from '../fault-server.ts';
import { type Switch, say, stream } from '../simulator.ts';
import { BROKEN_STREAM, FINE, FINE_STREAM, HELD_MIB, REFUSED, type Row, row, UNREAD } from './row.ts';

const as =
  (type: string): Switch =>
  (ask) =>
    say(ask, ask.text(), { headers: { 'Content-Type': type } });

export const types: readonly Row[] = [
  row('R32', 'Application/JSON ;Charset=UTF-8', as('Application/JSON ;Charset=UTF-8'), FINE),
  row(
    'R32',
    'TEXT/Event-Stream;charset=utf-8',
    (ask) => say(ask, event(ask.text()), { headers: { 'Content-Type': 'TEXT/Event-Stream;charset=utf-8' } }),
    FINE_STREAM,
  ),
  row('R37', 'an answer as text/html', as('text/html'), REFUSED),
  row('R37', 'an answer as application/json-rpc', as('application/json-rpc'), REFUSED),
  row(
    'R37',
    'an answer of no type',
    (ask) => {
      const bytes = Buffer.from(ask.text());
      ask.request.socket.write(head(200, { 'Content-Length': bytes.length }));
      ask.request.socket.write(bytes);
    },
    REFUSED,
  ),
  row('R37', 'JSON said to be an event stream', as('text/event-stream'), BROKEN_STREAM),
  row('R37', 'an event stream said to be JSON', (ask) => say(ask, event(ask.text())), UNREAD),
  row('R37', '200 with nothing', (ask) => say(ask, ''), REFUSED),
  row('R37', 'an empty event stream', (ask) => stream(ask, []), BROKEN_STREAM),
  row(
    'R37',
    '202 with nothing',
    (ask) => say(ask, '', { status: 202, headers: { 'Content-Type': '' } }),
    REFUSED,
  ),
  row('R37', '204', ({ request }) => void request.socket.write(head(204, {})), REFUSED),
];

const coded =
  (coding: string, encode: (text: string) => Uint8Array): Switch =>
  (ask) =>
    say(ask, encode(ask.text()), { headers: { 'Content-Encoding': coding } });

/** 280 MiB of white space: 280 members of 1 MiB each make one gzip file. */
const BOMB_MEMBERS = 280;
let bomb: Buffer | undefined;

export const codings: readonly Row[] = [
  row('R32 R33', 'gzip', coded('gzip', gzipSync), FINE),
  row('R32 R33', 'GZIP', coded('GZIP', gzipSync), FINE),
  row('R32 R33', 'deflate', coded('deflate', deflateSync), FINE),
  row('R32 R33', 'raw deflate', coded('deflate', deflateRawSync), FINE),
  row('R32 R33', 'br', coded('br', brotliCompressSync), FINE),
  row('R32 R33', 'identity', coded('identity', Buffer.from), FINE),
  row(
    'R32 R33',
    'gzip in br',
    coded('gzip, br', (text) => brotliCompressSync(gzipSync(text))),
    FINE,
  ),
  row(
    'R32 R33',
    'gzip three times',
    coded('gzip, gzip, gzip', (text) => gzipSync(gzipSync(gzipSync(text)))),
    REFUSED,
  ),
  row('R33 R37', 'an unknown coding', coded('zstd', Buffer.from), REFUSED),
  row('R33 R37', 'plain said to be gzip', coded('gzip', Buffer.from), REFUSED),
  row('R33 R37', 'plain said to be br', coded('br', Buffer.from), REFUSED),
  row('R33 R37', 'br said to be gzip', coded('gzip', brotliCompressSync), REFUSED),
  row('R33 R37', 'gzip said to be plain', coded('identity', gzipSync), UNREAD),
  row(
    'R33 R37',
    'gzip that is cut',
    coded('gzip', (text) => gzipSync(text).subarray(0, -12)),
    REFUSED,
  ),
  row(
    'R32 R33',
    'an event stream in gzip',
    (ask) => stream(ask, [gzipSync(`: hi\n\n${event(ask.text())}`)], { 'Content-Encoding': 'gzip' }),
    FINE_STREAM,
  ),
  row(
    'R33 R34',
    'an event stream in gzip that is cut',
    (ask) => stream(ask, [gzipSync(event(ask.text())).subarray(0, 30)], { 'Content-Encoding': 'gzip' }),
    BROKEN_STREAM,
  ),
  row(
    'R30 R33',
    'a gzip bomb',
    (ask) => {
      bomb ??= Buffer.concat(new Array<Buffer>(BOMB_MEMBERS).fill(gzipSync(Buffer.alloc(1 << 20, 0x20))));
      say(ask, bomb, { headers: { 'Content-Encoding': 'gzip' } });
    },
    { ...REFUSED, call: '200 json: 280 MiB of white space' },
    { memoryMiB: HELD_MIB },
  ),
];
