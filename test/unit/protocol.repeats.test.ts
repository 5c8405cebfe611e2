import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { McpRequest } from '../../src/protocol/classify.ts';
import { readHead } from '../../src/protocol/headers.ts';
import { paramsText } from '../../src/protocol/params.ts';
import { REPEATED_BYTES, REPEATED_WORDINGS, Repeats } from '../../src/protocol/repeats.ts';
import { mirrored, rawHeaders, rpc } from '../support/mcp.ts';

const URI = 'note://a';

/** Sends a read of {@link URI} with this id, as JSON text; `over` adds params. */
function read(
  lane: Repeats,
  id: string,
  over: Record<string, unknown> = {},
  headers: object = {},
): McpRequest {
  const body = JSON.stringify({ ...rpc('resources/read', { uri: URI, ...over }), id: 4711 }).replace(
    '4711',
    id,
  );
  const head = readHead(rawHeaders({ ...mirrored('resources/read', URI), ...headers }));
  const message = lane.classify(head, { kind: 'whole', bytes: Buffer.from(body) });
  assert.ok(message.kind === 'request', JSON.stringify(message));
  return message.request;
}

const isRepeat = ({ keys }: McpRequest): boolean => keys !== undefined;

describe('the fast lane', () => {
  test('a read that comes again with another id is not taken apart, and has its own id and headers (R8)', () => {
    const lane = new Repeats();
    assert.ok(!isRepeat(read(lane, '1')));
    for (const id of ['2', '-30', '"a b"', '12345678901234567890']) {
      const again = read(lane, id, {}, { authorization: `Bearer ${id.length}` });
      assert.ok(isRepeat(again), id);
      assert.equal(again.id, id);
      assert.equal(again.head.headers.get('authorization'), `Bearer ${id.length}`);
    }
  });

  test('an id that could be understood otherwise is taken apart', () => {
    const lane = new Repeats();
    read(lane, '1');
    for (const id of ['"\\u0041"', '"\u00e9"']) assert.ok(!isRepeat(read(lane, id)), id);
  });

  test('other words are other questions, and some of them are remembered side by side', () => {
    const lane = new Repeats();
    for (let n = 0; n <= REPEATED_WORDINGS; n++) read(lane, '1', { n });
    assert.ok(!isRepeat(read(lane, '2', { n: 0 })), 'forgotten: it came first');
    for (let n = 2; n <= REPEATED_WORDINGS; n++) {
      const again = read(lane, '2', { n });
      assert.ok(isRepeat(again));
      assert.match(paramsText(again.params as NonNullable<McpRequest['params']>), new RegExp(`"n":${n}`));
    }
  });

  test('a large request is taken apart each time', () => {
    const lane = new Repeats();
    const text = 'x'.repeat(REPEATED_BYTES);
    read(lane, '1', { text });
    assert.ok(!isRepeat(read(lane, '2', { text })));
  });

  test('what is remembered is a copy: the bytes received are another request’s soon', () => {
    const lane = new Repeats();
    const bytes = Buffer.from(JSON.stringify(rpc('resources/read', { uri: URI })));
    const head = readHead(rawHeaders(mirrored('resources/read', URI)));
    lane.classify(head, { kind: 'whole', bytes });
    bytes.fill(0x20);
    const again = read(lane, '1');
    assert.ok(isRepeat(again));
    assert.match(paramsText(again.params as NonNullable<McpRequest['params']>), /"uri":"note:/);
  });
});
