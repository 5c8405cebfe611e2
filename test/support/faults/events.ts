/** Event streams: every framing, odd first events, and none that end. */
import { setImmediate as breath } from 'node:timers/promises';
import { chunk, event, PROGRESS, SERVER_REQUEST } from '../fault-server.ts';
import { begin, goOn, type Switch, stream } from '../simulator.ts';
import {
  type Answers,
  BROKEN_STREAM,
  FINE_STREAM,
  FLOWING_MIB,
  INCOMPLETE,
  late,
  REFUSED,
  type Row,
  row,
  STREAM_ERROR,
  TIMED,
  within,
} from './row.ts';

/** The answer in these pieces of an event stream. */
const framed =
  (pieces: (json: string) => Iterable<string | Uint8Array>): Switch =>
  (ask) =>
    stream(ask, pieces(ask.text()));

const pretty = (json: string): string[] => JSON.stringify(JSON.parse(json), null, 1).split('\n');
const dataLines = (lines: readonly string[], end: string, field = 'data: '): string =>
  `${lines.map((line) => `${field}${line}${end}`).join('')}${end}`;
const byByte = function* (text: string): Generator<Uint8Array> {
  for (const byte of Buffer.from(text)) yield Uint8Array.of(byte);
};
const FOREIGN = '{"jsonrpc":"2.0","id":"somebody-else","result":{"foreign":true}}';
const NOTED: Answers = {
  list: `200: good, ${TIMED}`,
  read: `200 stream: notifications, ${TIMED}`,
  call: '200 stream: notifications, faulty',
};

export const events: readonly Row[] = [
  row(
    'R32',
    'events that end in LF',
    framed((json) => [event(json)]),
    FINE_STREAM,
  ),
  row(
    'R32',
    'events that end in CR LF',
    framed((json) => [dataLines([json], '\r\n')]),
    FINE_STREAM,
  ),
  row(
    'R32',
    'events that end in CR',
    framed((json) => [dataLines([json], '\r')]),
    FINE_STREAM,
  ),
  row(
    'R32',
    'an event stream with a byte order mark',
    framed((json) => [`\ufeff${event(json)}`]),
    FINE_STREAM,
  ),
  row(
    'R32',
    'comments and empty data first',
    framed((json) => [': hi\n\n:\n\ndata:\n\ndata\n\n', event(json)]),
    FINE_STREAM,
  ),
  row(
    'R32',
    'many data lines',
    framed((json) => [dataLines(pretty(json), '\n')]),
    FINE_STREAM,
  ),
  row(
    'R32',
    'many data lines, CR LF, byte by byte',
    framed((json) => byByte(dataLines(pretty(json), '\r\n'))),
    FINE_STREAM,
  ),
  row(
    'R32',
    'no space behind the colon',
    framed((json) => [dataLines([json], '\n', 'data:')]),
    FINE_STREAM,
  ),
  row(
    'R32',
    'byte by byte, in mid-character too',
    framed((json) => byByte(event(json))),
    FINE_STREAM,
  ),
  row(
    'R32',
    'ids and retry times in between',
    framed((json) => [`id: 1\nretry: 1\n${event(json)}`]),
    FINE_STREAM,
  ),
  row(
    'R32',
    'unknown fields in between',
    framed((json) => [`x-y: z\nnonsense\n${event(json)}`]),
    FINE_STREAM,
  ),
  row(
    'R32',
    'notifications first',
    framed((json) => [event(PROGRESS), event(PROGRESS), event(json)]),
    NOTED,
  ),
  row(
    'R32',
    "a request of the server's own first",
    framed((json) => [event(SERVER_REQUEST), event(json)]),
    FINE_STREAM,
  ),
  row(
    'R32',
    'an event of another type first',
    framed((json) => [`event: ping\ndata: {}\n\n${event(json)}`]),
    FINE_STREAM,
  ),
  row(
    'R32',
    'an event that is not JSON first',
    framed((json) => ['data: hello\n\n', event(json)]),
    FINE_STREAM,
  ),
  row(
    'R32',
    "somebody else's answer first",
    framed((json) => [event(FOREIGN), event(json)]),
    { ...FINE_STREAM, call: '200 stream: foreign answer, faulty' },
  ),
  row(
    'R32',
    'a comment of 1 MB first',
    framed((json) => [`: ${'x'.repeat(1_000_000)}\n\n`, event(json)]),
    FINE_STREAM,
  ),
  row(
    'R32',
    'more events behind the answer',
    framed((json) => [event(json), event(PROGRESS), event(SERVER_REQUEST), event(json)]),
    FINE_STREAM,
  ),
  row(
    'R32 R35',
    'an event stream that never ends behind the answer',
    async (ask) => {
      begin(ask, 'text/event-stream');
      ask.request.socket.write(chunk(event(ask.text())));
      await goOn(ask, () => chunk(event(PROGRESS)));
    },
    FINE_STREAM,
  ),
  row(
    'R32 R37',
    'an event stream without an answer',
    framed(() => [event(PROGRESS)]),
    {
      list: INCOMPLETE,
      read: '200 stream: notifications, error -32603',
      call: '200 stream: notifications, error -32603',
    },
  ),
  row(
    'R32 R37',
    'an answer without the blank line',
    framed((json) => [`data: ${json}\n`]),
    BROKEN_STREAM,
  ),
  row(
    'R32 R37',
    'the answer in an event of another type',
    framed((json) => [`event: error\ndata: ${json}\n\n`]),
    BROKEN_STREAM,
  ),
  row(
    'R32 R37',
    "somebody else's answer only",
    framed(() => [event(FOREIGN)]),
    {
      ...REFUSED,
      call: '200 stream: foreign answer, error -32603',
    },
  ),
  row(
    'R34 R37',
    'an event stream cut in an event',
    async (ask) => {
      begin(ask, 'text/event-stream');
      ask.request.socket.write(chunk(`: hi\n\nevent: message\ndata: ${ask.text().slice(0, 50)}`));
      await breath();
      ask.request.socket.resetAndDestroy();
    },
    BROKEN_STREAM,
  ),
  row(
    'R34 R37',
    'an event stream cut in mid-character',
    async (ask) => {
      begin(ask, 'text/event-stream');
      const bytes = Buffer.from(`data: ${ask.text()}`);
      ask.request.socket.write(chunk(bytes.subarray(0, bytes.indexOf('ü') + 1)));
      await breath();
      ask.request.socket.end();
    },
    BROKEN_STREAM,
  ),
  row(
    'R34 R37',
    'a large event cut in its middle',
    async (ask) => {
      begin(ask, 'text/event-stream');
      ask.request.socket.write(chunk(`data: ${ask.text().slice(0, -2)}${' '.repeat(300_000)}`));
      await breath();
      ask.request.socket.resetAndDestroy();
    },
    BROKEN_STREAM,
  ),
  row(
    'R30 R32',
    'endless events of 64 KiB',
    async (ask) => {
      begin(ask, 'text/event-stream');
      const note = PROGRESS.replace('"progress":1', `"message":"${'x'.repeat(65_536)}"`);
      await goOn(ask, () => chunk(event(note)), 1);
    },
    {
      list: within('response', INCOMPLETE),
      read: within('call', '200 stream: notifications, error -32603'),
      call: within('call', '200 stream: notifications, error -32603'),
    },
    { memoryMiB: FLOWING_MIB },
  ),
  row(
    'R30 R32',
    'one endless event',
    async (ask) => {
      begin(ask, 'text/event-stream');
      ask.request.socket.write(chunk('data: {"jsonrpc":"2.0","method":"'));
      const piece = chunk('x'.repeat(16_384));
      await goOn(ask, () => piece);
    },
    late(within('call', STREAM_ERROR)),
    { memoryMiB: FLOWING_MIB },
  ),
];
