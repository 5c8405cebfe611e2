import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { dataLines, EVENT_CLOSE, EVENT_OPEN, eventOf, KEEP_ALIVE } from '../../src/edge/events.ts';

function messages(text: string): readonly string[] {
  const found: string[] = [];
  const parser = createParser({ onEvent: (event) => found.push(`${event.event} ${event.data}`) });
  parser.feed(text);
  return found;
}

test('R33: any JSON text comes out of an event as it went in, but for how its lines end', () => {
  const json = fc
    .tuple(fc.json(), fc.constantFrom('', '\n', '\r', '\r\n', '\n\n', '\n \r\n'))
    .map(([text, end]) => `[${end}${text}${end}]`);
  fc.assert(
    fc.property(json, (text) => {
      const [message = ''] = messages(eventOf(text));
      assert.equal(message, `message ${text.replaceAll(/\r\n|\r/g, '\n')}`);
    }),
  );
});

test('an event in pieces carries the same JSON, wherever it was cut', () => {
  const text = '{\r\n  "a": "é",\n  "b": [1,\r2]\n}';
  const bytes = Buffer.from(text);
  for (let cut = 0; cut <= bytes.length; cut++) {
    const pieces = [bytes.subarray(0, cut), bytes.subarray(cut)].map((piece) => dataLines(piece));
    const [message = ''] = messages(`${EVENT_OPEN}${Buffer.concat(pieces).toString()}${EVENT_CLOSE}`);
    assert.deepEqual(JSON.parse(message.slice('message '.length)), JSON.parse(text));
  }
});

test('bytes without line ends are passed on themselves', () => {
  const bytes = Buffer.from('{"a":1}');
  assert.equal(dataLines(bytes), bytes);
});

test('a keep-alive is a comment: no event', () => {
  assert.deepEqual(messages(KEEP_ALIVE + eventOf('{}') + KEEP_ALIVE), ['message {}']);
});
