/** The byte-level framer: any chunking gives the same events, and the same messages as eventsource-parser. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { joinBytes } from '../../src/protocol/answer.ts';
import { type SseEvent, SseFramer } from '../../src/protocol/sse.ts';

const RUNS = Number(process.env.FC_RUNS ?? 300);
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (pieces: readonly Uint8Array[]): string =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(joinBytes(pieces));

interface Message {
  readonly data: string;
  readonly message: boolean;
}

function frame(
  chunks: readonly Uint8Array[],
  maxEventBytes = 1 << 20,
): { events: SseEvent[]; framer: SseFramer } {
  const framer = new SseFramer(maxEventBytes);
  return { events: chunks.flatMap((chunk) => framer.push(chunk)), framer };
}

/** Puts parts together again. */
function messages(events: readonly SseEvent[]): Message[] {
  const out: Message[] = [];
  let data: Uint8Array[] | undefined;
  for (const event of events) {
    if (event.data !== undefined) data = [...(data ?? []), ...event.data];
    if (event.part === 'first' || event.part === 'next') continue;
    if (data !== undefined) out.push({ data: text(data), message: event.message });
    data = undefined;
  }
  return out;
}

const raw = (events: readonly SseEvent[]): string => text(events.flatMap((event) => event.raw));
const byteByByte = (all: Uint8Array): Uint8Array[] => Array.from(all, (byte) => Uint8Array.of(byte));

/** What eventsource-parser reads, as the official client does: behind a decoder that takes a BOM off. */
function oracle(stream: string): Message[] {
  const out: Message[] = [];
  const parser = createParser({
    onEvent: (event) =>
      out.push({ data: event.data, message: event.event === undefined || event.event === 'message' }),
  });
  parser.feed(stream.replace(/^\ufeff/, ''));
  return out;
}

const END = fc.constantFrom('\n', '\r\n', '\r');
const VALUE = fc.string({
  unit: fc.constantFrom('a', ' ', ':', '{', '"', 'ü', '🌍', '\ufeff', '-'),
  maxLength: 8,
});
const LINE = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.constantFrom('data:', 'data: ', 'data:  ', 'data'), VALUE)
      .map(([a, b]) => (a === 'data' ? a : a + b)),
  },
  fc.constantFrom(
    'event: message',
    'event:message',
    'event: ping',
    'event',
    'event:',
    'event: messages',
    'event: message ',
  ),
  fc.constantFrom(
    'id: 4',
    'id',
    'id:',
    'retry: 10',
    'retry',
    'ide: x',
    'retries: 1',
    'Data: x',
    ' data: x',
    'data : x',
  ),
  fc.constantFrom(':', ': keep-alive', ':data: x', ': '),
  VALUE,
);
const BLOCK = fc.tuple(fc.array(fc.tuple(LINE, END), { maxLength: 5 }), END);
/** Ends in LF: on a trailing CR eventsource-parser waits for what comes next. */
const STREAM = fc
  .tuple(fc.constantFrom('', '\ufeff'), fc.array(BLOCK, { maxLength: 6 }))
  .map(([bom, blocks]) => `${bom}${blocks.map(([lines, end]) => lines.flat().join('') + end).join('')}\n`);
/** Where to cut: each chunk takes so many bytes, over and over. */
const CUTS = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 });

function cut(all: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const out: Uint8Array[] = [];
  for (let at = 0, n = 0; at < all.length; n++) {
    const size = sizes[n % sizes.length] as number;
    // Copies, as a socket gives them.
    out.push(all.slice(at, at + size));
    at += size;
  }
  return out;
}

test('R32: any stream, cut anywhere, gives the messages that eventsource-parser reads', () => {
  fc.assert(
    fc.property(STREAM, CUTS, (stream, sizes) => {
      const all = bytes(stream);
      const expected = oracle(stream);
      assert.deepEqual(messages(frame([all]).events), expected);
      assert.deepEqual(messages(frame(cut(all, sizes)).events), expected);
      assert.deepEqual(messages(frame(byteByByte(all)).events), expected);
    }),
    { numRuns: RUNS },
  );
});

test('R32: an event stream split at every byte gives one message', () => {
  const all = bytes('\ufeff: hi\r\nevent: message\r\nid: 7\r\ndata: {"a":\r\ndata: "grüße 🌍"}\r\n\r\n');
  for (let at = 0; at <= all.length; at++) {
    const { events, framer } = frame([all.slice(0, at), all.slice(at)]);
    assert.deepEqual(messages(events), [{ data: '{"a":\n"grüße 🌍"}', message: true }], `cut at ${at}`);
    assert.ok(framer.atBoundary);
  }
});

test('R34: what is given out is what came, without id and retry lines, however it was cut', () => {
  fc.assert(
    fc.property(STREAM, CUTS, fc.constantFrom(0, 3, 1 << 20), (stream, sizes, bound) => {
      const all = bytes(stream);
      const expected = stream
        .split(/(?<=\r\n|\n|\r(?!\n))/)
        .filter((line) => !/^\ufeff?(id|retry)(:|\r|\n)/.test(line))
        .join('');
      const whole = raw(frame([all], bound).events);
      assert.equal(whole, expected);
      assert.equal(raw(frame(cut(all, sizes), bound).events), expected);
      assert.equal(raw(frame(byteByByte(all), bound).events), expected);
    }),
    { numRuns: RUNS },
  );
});

test('parts of events above the bound make the same messages', () => {
  fc.assert(
    fc.property(STREAM, CUTS, fc.integer({ min: 0, max: 12 }), (stream, sizes, bound) => {
      assert.deepEqual(messages(frame(cut(bytes(stream), sizes), bound).events), oracle(stream));
    }),
    { numRuns: RUNS },
  );
});

test('an unfinished event is held up to the bound and flows beyond it', () => {
  const framer = new SseFramer(16);
  assert.deepEqual(framer.push(bytes('data: 0123456789')), []);
  assert.equal(framer.heldBytes, 16);
  assert.equal(framer.flowing, false);
  assert.equal(framer.atBoundary, false);
  const [first] = framer.push(bytes('x'));
  assert.equal(first?.part, 'first');
  assert.equal(text(first?.raw ?? []), 'data: 0123456789x');
  assert.equal(framer.heldBytes, 0);
  assert.ok(framer.flowing && framer.midLine);
  const [next] = framer.push(bytes('yz\n'));
  assert.equal(next?.part, 'next');
  assert.ok(framer.flowing && !framer.midLine);
  const [last] = framer.push(bytes('\n'));
  assert.equal(last?.part, 'last');
  assert.ok(framer.atBoundary);
});

test('an id line in an event that flows is left out', () => {
  const { events } = frame(['data: 0123456789\n', 'i', 'd: 5', '\n', 'data: x\n', '\n'].map(bytes), 4);
  assert.equal(raw(events), 'data: 0123456789\ndata: x\n\n');
});

test('an event that is complete in its chunk is whole, whatever its size', () => {
  const { events } = frame([bytes(`data: ${'x'.repeat(100)}\n\n`)], 10);
  assert.deepEqual(
    events.map((event) => event.part),
    ['whole'],
  );
});

test('R34: a keep-alive comment is given out at once, also without a blank line', () => {
  const framer = new SseFramer(100);
  assert.equal(raw(framer.push(bytes(': ping\n'))), ': ping\n');
  assert.ok(framer.atBoundary);
  // Behind a field it belongs to the event.
  assert.equal(raw(framer.push(bytes('data: x\n: ping\n'))), '');
});

test('an event that ends in CR is given out without waiting for a LF', () => {
  const framer = new SseFramer(100);
  assert.deepEqual(messages(framer.push(bytes('data: x\r\r'))), [{ data: 'x', message: true }]);
  assert.equal(raw(framer.push(bytes('\n'))), '\n');
  assert.deepEqual(messages(framer.push(bytes('data: y\n\n'))), [{ data: 'y', message: true }]);
});

test('data lines may be empty, and no data is not empty data', () => {
  const { events } = frame([bytes('data\n\ndata:\ndata:\n\nevent: message\n\n')]);
  assert.deepEqual(messages(events), [
    { data: '', message: true },
    { data: '\n', message: true },
  ]);
  assert.equal(events[2]?.data, undefined);
});
