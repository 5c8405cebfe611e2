import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Gather } from '../../src/edge/gather.ts';

test('pieces of any sizes come out whole, in order', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 40_000 }), { maxLength: 8 }),
      fc.nat(60_000),
      (pieces, most) => {
        const gathered = new Gather();
        const copies = pieces.map((piece) => Buffer.from(piece));
        for (const piece of copies) gathered.append(piece, most);
        assert.equal(
          gathered.length,
          pieces.reduce((sum, piece) => sum + piece.length, 0),
        );
        assert.ok(gathered.take().equals(Buffer.concat(pieces)));
        // What somebody else may still hold is not written to.
        for (const [index, piece] of copies.entries()) assert.ok(piece.equals(pieces[index] as Uint8Array));
        assert.equal(gathered.take().length, 0);
      },
    ),
    { numRuns: 50 },
  );
});

test('one piece is not copied', () => {
  const gathered = new Gather();
  const piece = Buffer.from('{}');
  gathered.append(piece, 10);
  assert.equal(gathered.take(), piece);
});

test('R30: a body in pieces of one byte costs little more than its bytes', () => {
  const gathered = new Gather();
  const piece = Buffer.from('x');
  for (let i = 0; i < 1_000_000; i++) gathered.append(piece, 1 << 20);
  assert.equal(gathered.length, 1_000_000);
  assert.ok(gathered.take().buffer.byteLength <= 1 << 20);
});
