/** Answers larger than the cache keeps: passed on as they come. */
import { gzipSync } from 'node:zlib';
import { event, PROGRESS } from '../fault-server.ts';
import { type Ask, hang, type Switch, say, stream, words } from '../simulator.ts';
import { WRONG_ID } from './messages.ts';
import { type Answers, CUT, FLOWING_MIB, promise, type Row, row, sayAround, within } from './row.ts';

/** Ten MiB, to be put where an answer's text says `"LARGE"`: more than the cache keeps of one answer. */
const LARGE_BYTES = 10 * 2 ** 20;
let large: Buffer | undefined;
const largeRead =
  (
    change: (text: string) => string,
    send: (ask: Ask, bytes: Buffer) => void | Promise<void> = (ask, bytes) => say(ask, bytes),
  ): Switch =>
  (ask) => {
    large ??= Buffer.from(`"${'QUJD'.repeat(LARGE_BYTES / 4)}"`, 'latin1');
    const contents = [{ uri: `${ask.row}://doc`, text: words('faulty'), blob: 'LARGE' }];
    const [before = '', after = ''] = change(ask.text({ contents })).split('"LARGE"');
    return send(ask, Buffer.concat([Buffer.from(before), large, Buffer.from(after)]));
  };
const asIs = (text: string): string => text;
const LARGE_READ: Answers = { read: '200: faulty, 10 MB; ttl 0; private' };
const LARGE_CUT: Answers = { read: CUT };

/** A hundred MiB. */
const BLOB_BYTES = 100 * 2 ** 20;
let blob: Buffer | undefined;

export const largeReads: readonly Row[] = [
  row(
    'R18 R30',
    'a blob of 100 MB',
    (ask) => {
      blob ??= Buffer.from(`"${'QUJD'.repeat(BLOB_BYTES / 4)}"`, 'latin1');
      const contents = [{ uri: `${ask.row}://doc`, text: words('faulty'), blob: 'LARGE' }];
      const content = [
        { type: 'text', text: words('faulty') },
        { type: 'image', mimeType: 'image/png', data: 'LARGE' },
      ];
      sayAround(ask, ask.text(ask.surface === 'read' ? { contents } : { content }), blob);
    },
    {
      read: '200: faulty, 100 MB; ttl 0; private',
      call: '200 json: faulty, 100 MB',
    },
    { memoryMiB: FLOWING_MIB },
  ),
  row('R30', 'a read of 10 MB', largeRead(asIs), LARGE_READ),
  row(
    'R30 R33',
    'a read of 10 MB in gzip',
    largeRead(asIs, (ask, bytes) =>
      say(ask, gzipSync(bytes, { level: 1 }), { headers: { 'Content-Encoding': 'gzip' } }),
    ),
    LARGE_READ,
  ),
  row(
    'R30 R32',
    'a read of 10 MB in an event stream',
    largeRead(asIs, (ask, bytes) => stream(ask, ['data: ', bytes, '\n\n'])),
    LARGE_READ,
  ),
  row(
    'R30 R32',
    'a read of 10 MB in an event stream, behind notifications',
    largeRead(asIs, (ask, bytes) => stream(ask, [event(PROGRESS), 'data: ', bytes, '\n\n'])),
    {
      read: '200 stream: notifications, faulty, 10 MB; ttl 0; private',
    },
  ),
  row(
    'R25 R33',
    'a read of 10 MB that breaks off',
    largeRead(asIs, (ask, bytes) => {
      promise(ask, bytes.length);
      ask.request.socket.end(bytes.subarray(0, -1_000));
    }),
    LARGE_CUT,
  ),
  row(
    'R25 R37',
    'a read of 10 MB that breaks off behind notifications',
    largeRead(asIs, (ask, bytes) => stream(ask, [event(PROGRESS), 'data: ', bytes.subarray(0, -1_000)])),
    {
      read: '200 stream: notifications, error -32603',
    },
  ),
  row(
    'R25 R37',
    'a read of 10 MB that stalls',
    largeRead(asIs, async (ask, bytes) => {
      promise(ask, bytes.length);
      ask.request.socket.write(bytes.subarray(0, -1_000));
      await hang(ask);
    }),
    { read: within('response', CUT) },
  ),
  row(
    'R25 R37',
    'a read of 10 MB whose JSON is cut, said to be whole',
    largeRead((text) => text.slice(0, -3)),
    LARGE_CUT,
  ),
  row(
    'R25 R37',
    'a read of 10 MB with something behind it',
    largeRead((text) => `${text}{}`),
    LARGE_CUT,
  ),
  row(
    'R25 R37',
    "a read of 10 MB with another's id at its end",
    largeRead((text) => `${text.replace(/"id":[^,]+,/, '').slice(0, -1)},${WRONG_ID}}`),
    LARGE_CUT,
  ),
  row(
    'R25 R37',
    'a read of 10 MB with an error behind the result',
    largeRead((text) => `${text.slice(0, -1)},"error":{"code":-32602,"message":"x"}}`),
    LARGE_CUT,
  ),
  row(
    'R20 R25',
    'a read of 10 MB with an unknown result type at its end',
    largeRead(
      (text) => `${text.replace('"resultType":"complete",', '').slice(0, -2)},"resultType":"novel"}}`,
    ),
    LARGE_CUT,
  ),
  row(
    'R25',
    'a read of 10 MB with contents twice',
    largeRead((text) => `${text.slice(0, -2)},"contents":[]}}`),
    LARGE_CUT,
  ),
  row(
    'R25',
    'a read of 10 MB with two result types',
    largeRead((text) => `${text.slice(0, -2)},"resultType":"input_required"}}`),
    LARGE_CUT,
  ),
];
