/** Event streams: the framer against eventsource-parser, and against a line reader of its own. */
import assert from 'node:assert/strict';
import { createParser } from 'eventsource-parser';
import { joinBytes } from '../../../src/protocol/answer.ts';
import { type SseEvent, SseFramer } from '../../../src/protocol/sse.ts';
import { ANSWERS } from '../corpus.ts';
import type { Target } from '../engine.ts';
import { spell } from '../json-tree.ts';
import { mutateBytes } from '../mutate.ts';
import type { Random } from '../random.ts';
import { chunksOf } from './json.ts';

const TOKENS: readonly string[] = [
  '\n',
  '\r',
  '\r\n',
  '\n\n',
  'data:',
  'data: ',
  'data',
  'event: message\n',
  'event:x\n',
  'id: 1\n',
  'retry: 5\n',
  ': hi\n\n',
  '\ufeff',
  ':',
  ' ',
  'ü',
  '🌍',
  'idx: y\n',
  'retry',
  'DATA: x\n',
  '\u0000',
];
const SEEDS: readonly string[] = [
  ...ANSWERS.map((tree) => `event: message\ndata: ${spell(tree)}\n\n`),
  `\ufeff: hello\n\ndata:\n\nid: 1\nretry: 5\n\nevent: ping\ndata: {}\n\ndata: not json\n\n`,
  ': x\r\nevent:message\r\ndata:a\r\ndata: b\r\n\r\n',
  'event:message\rdata:a\r\r',
  'data: {\ndata: "a": 1\ndata: }\n\n',
];
const SEED_BYTES = SEEDS.map((text) => new TextEncoder().encode(text));

function stream(random: Random): Uint8Array {
  const parts = random.many(random.between(1, 4), () =>
    random.once(3) ? random.many(random.size(12), () => random.pick(TOKENS)).join('') : random.pick(SEEDS),
  );
  const bytes = new TextEncoder().encode(parts.join(''));
  return random.once(2) ? mutateBytes(random, bytes, TOKENS, SEED_BYTES) : bytes;
}

interface Message {
  readonly data: string;
  readonly message: boolean;
}

const lossy = (pieces: readonly Uint8Array[]): string =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(joinBytes(pieces));

/** Puts parts together again. */
function messagesOf(events: readonly SseEvent[]): Message[] {
  const out: Message[] = [];
  let data: Uint8Array[] | undefined;
  let isFlowing = false;
  for (const event of events) {
    assert.equal(event.part === 'whole' || event.part === 'first', !isFlowing, 'parts out of order');
    isFlowing = event.part === 'first' || event.part === 'next';
    if (event.data !== undefined) {
      data ??= [];
      for (const piece of event.data) data.push(piece);
    }
    if (isFlowing) continue;
    if (data !== undefined) out.push({ data: lossy(data), message: event.message });
    data = undefined;
  }
  return out;
}

function framed(chunks: readonly Uint8Array[], maxBytes: number) {
  const framer = new SseFramer(maxBytes);
  const events: SseEvent[] = [];
  for (const chunk of chunks) {
    events.push(...framer.push(chunk));
    if (framer.heldBytes > maxBytes + chunk.length + 16) assert.fail('holds more than it may');
  }
  return { events, framer };
}

function oracle(text: string): Message[] {
  const out: Message[] = [];
  const parser = createParser({
    onEvent: ({ data, event }) => out.push({ data, message: event === undefined || event === 'message' }),
  });
  parser.feed(text.replace(/^\ufeff/, ''));
  return out;
}

/** Everything but the lines that ask for a resumption, byte for byte. */
function kept(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString('latin1');
  const lines = text.match(/[^\r\n]*(?:\r\n|\r|\n)/g) ?? [];
  return lines
    .filter(
      (line, index) =>
        !/^(?:id|retry)(?:[:\r\n])/.test(index === 0 ? line.replace(/^\u00ef\u00bb\u00bf/, '') : line),
    )
    .join('');
}

type Stream = { readonly bytes: Uint8Array; readonly cuts: readonly number[]; readonly maxBytes: number };

/** Any bytes, cut anywhere, give the messages that the official client's parser reads (R32, R34). */
export const sseFramer: Target<Stream> = {
  name: 'sse-framer',
  about: 'any chunks give the messages of eventsource-parser; what is relayed is the bytes that came',
  generate: (random) => ({
    bytes: stream(random),
    cuts: random.many(random.between(1, 6), () => random.between(1, 12)),
    maxBytes: random.pick([1, 8, 40, 1 << 20]),
  }),
  check({ bytes, cuts, maxBytes }) {
    // eventsource-parser waits on a CR at the end for what comes next.
    const ended = joinBytes([bytes, Uint8Array.of(10)]);
    const expected = oracle(new TextDecoder('utf-8', { ignoreBOM: true }).decode(ended));
    for (const [chunks, most] of [
      [[ended], 1 << 20],
      [chunksOf(ended, cuts), 1 << 20],
      [chunksOf(ended, cuts), maxBytes],
      [chunksOf(ended, [1]), maxBytes],
    ] as const) {
      const { events, framer } = framed(chunks, most);
      assert.equal(JSON.stringify(messagesOf(events)), JSON.stringify(expected));
      const raw = Buffer.from(joinBytes(events.flatMap((event) => event.raw))).toString('latin1');
      const whole = kept(ended);
      assert.ok(whole.startsWith(raw), 'relays other bytes than came');
      if (framer.atBoundary) assert.equal(raw, whole, 'holds something back between events');
    }
    return expected.length === 0 ? 'no message' : expected.length === 1 ? 'one message' : 'many messages';
  },
};
