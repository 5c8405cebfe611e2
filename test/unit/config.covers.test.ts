import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { coverOf, covers, Effort, type Reading } from '../../src/config/covers.ts';
import { namePattern, uriPattern } from '../../src/routing/pattern.ts';

function certain(earlier: string, later: string, reading: Reading = 'uri'): boolean {
  return covers(coverOf(earlier, reading), later, reading, new Effort(1_000_000));
}

/** Short texts over few letters: covers and what they cover meet often. */
const piece = fc.constantFrom('a', 'b', '/', '*', '**', '{x}', '{+x}', '{a}{b}', '-', '.', ':', '%2F', 'é');
const text = fc.array(piece, { minLength: 1, maxLength: 6 }).map((pieces) => `s://${pieces.join('')}`);
/** Something in the place of each star and expression. */
const filling = fc.array(fc.constantFrom('a', 'b', '/', '', 'a/b', '~', '%2F'), {
  minLength: 8,
  maxLength: 8,
});

function filled(pattern: string, fillings: readonly string[]): string {
  let at = 0;
  return pattern.replaceAll(/\*+|\{[^}]*\}/g, () => fillings[at++ % fillings.length] ?? '');
}

describe('covers', () => {
  test('what is certain of literals, globs and templates', () => {
    const pairs: readonly (readonly [string, string])[] = [
      ['docs://a', 'docs://a'],
      ['docs://*', 'docs://a'],
      ['docs://**', 'docs://a/*'],
      ['docs://**', 'docs://{+path}'],
      ['docs://**/b', 'docs://*/b'],
      ['docs://{page}', 'docs://a.b~c'],
      ['docs://{page}/x', 'docs://a/x'],
      ['docs://{+page}', 'docs://{+page}'],
    ];
    for (const [earlier, later] of pairs)
      assert.equal(certain(earlier, later), true, `${earlier} > ${later}`);
  });

  test('what is not so, or not certain', () => {
    const pairs: readonly (readonly [string, string])[] = [
      ['docs://*', 'docs://**'],
      ['docs://*', 'docs://{page}'],
      ['docs://*', 'docs://a/b'],
      ['docs://{page}', 'docs://a/b'],
      ['docs://{page}', 'docs://*'],
      ['docs://{+page}', 'docs://a'],
      ['docs://a', 'docs://*'],
    ];
    for (const [earlier, later] of pairs)
      assert.equal(certain(earlier, later), false, `${earlier} > ${later}`);
    assert.equal(covers(coverOf('a', 'uri'), 'a', 'name', new Effort(9)), false, 'not read in the same way');
  });

  test('whatever the later of two matches, the one that covers it matches', () => {
    let coveredCount = 0;
    const property = fc.property(
      text,
      text,
      filling,
      fc.constantFrom<Reading>('uri', 'name'),
      (a, b, c, reading) => {
        if (!certain(a, b, reading)) return;
        const read = reading === 'uri' ? uriPattern : namePattern;
        const candidate = filled(b, c);
        if (!read(b).matches(candidate)) return;
        coveredCount += a === b ? 0 : 1;
        assert.equal(read(a).matches(candidate), true, `${a} does not match ${candidate}, ${b} does`);
      },
    );
    fc.assert(property, { numRuns: 60_000 });
    assert.ok(coveredCount > 100, `only ${coveredCount} pairs were compared`);
  });

  test('a cover read as a URI pattern says nothing wrong of a name', () => {
    const property = fc.property(text, text, filling, (a, b, c) => {
      if (!covers(coverOf(a, 'uri'), b, 'name', new Effort(1_000_000))) return;
      const candidate = filled(b, c);
      if (namePattern(b).matches(candidate))
        assert.equal(uriPattern(a).matches(candidate), true, `${a} > ${b}`);
    });
    fc.assert(property, { numRuns: 40_000 });
  });

  test('when the effort is spent nothing is certain but equal texts', () => {
    const spent = new Effort(10);
    assert.equal(covers(coverOf('docs://**', 'uri'), 'docs://a', 'uri', spent), false);
    assert.equal(covers(coverOf('docs://**', 'uri'), 'docs://**', 'uri', spent), true);
  });
});
