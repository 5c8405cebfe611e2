/** What of the page needs no browser: text made harmless, numbers for people, the geometry of the chart. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Answered } from '../../src/admin/page/contract.ts';
import { ago, bytes, duration, hitRatio, latency, percent, total } from '../../src/admin/page/format.ts';
import { type Box, barsOf, lineOf } from '../../src/admin/page/geometry.ts';
import { pieces } from '../../src/admin/page/text.ts';

const whole = (text: string, lines: 'one-line' | 'lines' = 'one-line') =>
  pieces(text, lines)
    .map((piece) => (piece.kind === 'odd' ? `[${piece.text}]` : piece.text))
    .join('');

describe('text of upstreams', () => {
  const ODD = [
    ['a right-to-left override', '\u202e', 'U+202E'],
    ['an isolate', '\u2066', 'U+2066'],
    ['a zero-width space', '\u200b', 'U+200B'],
    ['a byte order mark', '\ufeff', 'U+FEFF'],
    ['a soft hyphen', '\u00ad', 'U+00AD'],
    ['a control', '\u0007', 'U+0007'],
    ['an escape', '\u001b', 'U+001B'],
    ['a line separator', '\u2028', 'U+2028'],
    ['half a character', '\ud800', 'U+D800'],
    ['a tag', '\u{e0041}', 'U+E0041'],
    ['a private character', '\ue000', 'U+E000'],
  ] as const;
  for (const [what, char, number] of ODD) {
    test(`shows ${what} as its number`, () => {
      assert.equal(whole(`a${char}b`), `a[\u27e8${number}\u27e9]b`);
      assert.equal(whole(`a${char}b`, 'lines'), `a[\u27e8${number}\u27e9]b`);
    });
  }

  test('keeps its lines where it has lines, and nowhere else', () => {
    assert.equal(whole('a\n\tb', 'lines'), 'a\n\tb');
    assert.equal(whole('a\n\tb'), 'a[\u27e8U+000A\u27e9][\u27e8U+0009\u27e9]b');
  });

  test('leaves everything else as it is, markup too', () => {
    for (const text of ['', '<b>&amp;</b>', 'caf\u00e9 \u65e5\u672c \u{1f600}', '\u0639\u0631\u0628\u064a'])
      assert.equal(whole(text), text);
  });

  test('never shows what is not to be seen, however much there is of it', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '\u202e', '\n', '\u0000', '\ud800') });
    fc.assert(
      fc.property(text, (hostile) => {
        for (const piece of pieces(hostile, 'one-line'))
          assert.doesNotMatch(piece.text, /[\p{C}\p{Zl}\p{Zp}]/u);
      }),
    );
    const many = pieces('\u202e'.repeat(100_000), 'lines');
    assert.equal(many.length, 2_001);
    assert.doesNotMatch(many.at(-1)?.text ?? '', /\u202e/);
  });
});

describe('numbers for people', () => {
  test('durations have their two largest units', () => {
    assert.deepEqual([0.25, 5.04, 950, 1_000, 61_000, 3_600_000, 12_000_000, 180_000_000].map(duration), [
      '0.25 ms',
      '5.0 ms',
      '950 ms',
      '1 s',
      '1 min 1 s',
      '1 h',
      '3 h 20 min',
      '2 d 2 h',
    ]);
  });

  test('times ago have one', () => {
    assert.deepEqual([0, 1_999, 2_000, 90_000, 7_200_000].map(ago), [
      ...['just now', 'just now', '2 s ago', '1 min ago', '2 h ago'],
    ]);
  });

  test('latencies and sizes have three figures', () => {
    assert.deepEqual([0.44, 12.4, 999, 1_234, 60_000].map(latency), [
      ...['0.4 ms', '12 ms', '999 ms', '1.2 s', '60 s'],
    ]);
    assert.deepEqual([0, 1, 1_023, 1_024, 150_000, 256 << 20].map(bytes), [
      ...['0 B', '1 B', '1023 B', '1.0 KiB', '146 KiB', '256 MiB'],
    ]);
  });

  test('a share is never all while there was a miss, nor nothing while there was a hit', () => {
    assert.deepEqual([undefined, 0, 1, 0.5, 0.9999, 0.995, 0.0001].map(percent), [
      ...['\u2013', '0 %', '100 %', '50 %', '99.9 %', '99.5 %', '0.1 %'],
    ]);
  });

  test('stale answers count as no hit, and bypasses not at all', () => {
    assert.equal(hitRatio({ hit: 1, stale: 1, miss: 2, bypass: 9 }), 0.25);
    assert.equal(hitRatio({ hit: 0, stale: 0, miss: 0, bypass: 9 }), undefined);
  });
});

describe('the chart', () => {
  const BOX: Box = { left: 0, top: 10, width: 100, height: 50 };
  const of = (hit: number, miss: number): Answered => ({ hit, miss, stale: 0, bypass: 0 });

  test('has its newest step at the right, and its bars on the ground', () => {
    const bars = barsOf([of(1, 0), of(3, 1)], 10, BOX);
    assert.deepEqual(
      bars.map(({ kind, x, y, height }) => [kind, Math.round(x), y, height]),
      [
        ['hit', 81, 47.5, 12.5],
        ['hit', 91, 22.5, 37.5],
        ['miss', 91, 10, 12.5],
      ],
    );
    assert.equal(barsOf([of(0, 0)], 10, BOX).length, 0);
  });

  test('shows what there was, however little', () => {
    const [, one] = barsOf([of(10_000, 1)], 10, BOX);
    assert.equal(one?.height, 1);
  });

  test('draws the share of hits from where something was asked, and carries it on', () => {
    const { line } = lineOf([of(0, 0), of(1, 1), of(0, 0)], 10, BOX);
    assert.equal(line, 'M80.0 35.0L90.0 35.0L90.0 35.0L100.0 35.0');
    assert.deepEqual(lineOf([of(0, 0)], 10, BOX), { line: '', area: '' });
  });

  test('adds up', () => {
    assert.deepEqual(total([of(1, 2), of(3, 4)]), of(4, 6));
  });
});
