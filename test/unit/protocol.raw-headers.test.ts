/** Headers by name from Node's raw list: the same as a table made of it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { readHead } from '../../src/protocol/headers.ts';
import { rawHeaders } from '../../src/protocol/raw-headers.ts';

const name = fc.constantFrom(
  'Host',
  'host',
  'Accept',
  'X-A',
  'x-b',
  'Mcp-Method',
  'mcp-name',
  'Cookie',
  'Connection',
);
const value = fc.constantFrom('', 'a', ' a', 'a\t ', ' \t', 'a b', 'close', 'keep-alive', 'Bearer x');
const list = fc.array(fc.tuple(name, value), { maxLength: 8 }).map((pairs) => pairs.flat());

/** A table of it; undefined where a name comes twice. */
function tableOf(raw: readonly string[]): ReadonlyMap<string, string> | undefined {
  const table = new Map<string, string>();
  for (let i = 0; i < raw.length; i += 2)
    table.set((raw[i] as string).toLowerCase(), (raw[i + 1] as string).replace(/^[ \t]+|[ \t]+$/g, ''));
  return 2 * table.size === raw.length ? table : undefined;
}

describe('raw headers', () => {
  test('any list reads as a table of it, in its order, however many orders came before', () => {
    fc.assert(
      fc.property(list, (raw) => {
        const [read, table] = [rawHeaders(raw), tableOf(raw)];
        assert.equal(read === undefined, table === undefined);
        if (read === undefined || table === undefined) return;
        assert.deepEqual([...read], [...table]);
        assert.deepEqual([...read.keys()], [...table.keys()]);
        for (const one of [
          'host',
          'accept',
          'x-a',
          'x-b',
          'mcp-method',
          'mcp-name',
          'cookie',
          'connection',
          'Host',
        ])
          assert.deepEqual([read.get(one), read.has(one)], [table.get(one), table.has(one)], one);
      }),
      { numRuns: 3_000 },
    );
  });

  test('R22: of two requests with the same names each has its own values', () => {
    const [one, two] = ['a', 'b'].map((token) =>
      readHead(['Host', 'x', 'Authorization', `Bearer ${token}`, 'Connection', 'keep-alive']),
    );
    assert.equal(one?.headers.get('authorization'), 'Bearer a');
    assert.equal(two?.headers.get('authorization'), 'Bearer b');
    assert.deepEqual([...(one?.hop ?? [])], ['keep-alive']);
  });

  test('R4: a name that comes twice is never one of the two alone', () => {
    const { headers, duplicated } = readHead([
      'Accept',
      'a',
      'Mcp-Name',
      '1',
      'accept',
      'b',
      'MCP-NAME',
      '2',
    ]);
    assert.deepEqual([headers.get('accept'), duplicated], ['a, b', 'mcp-name']);
  });
});
