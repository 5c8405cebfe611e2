/** A template matches exactly what it expands to, proven against an expander (`test/support/expand-template.ts`). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { compileTemplate, type Template } from '../../src/routing/template.ts';
import { type Bindings, expand, rawBeyondAscii, type Value } from '../support/expand-template.ts';

function compiled(text: string): Template {
  const result = compileTemplate(text);
  assert.equal(result.kind, 'template', `${text} does not compile`);
  if (result.kind !== 'template') throw new Error(text);
  return result.template;
}

function matches(text: string, uri: string): boolean {
  return compiled(text).matches(uri);
}

const OPERATORS = ['', '+', '#', '.', '/', ';', '?', '&'] as const;
const NAMES = ['x', 'y', 'long_name', 'dotted.name', 'pct%C3%BC'] as const;

const value: fc.Arbitrary<Value> = (() => {
  const unit = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...'ab0-.~_/?#,;=&:%+') },
    fc.constantFrom(' ', '"', '{', 'ü', '日', '😀', '\u0000'),
  );
  const text = fc.oneof(fc.string({ unit, maxLength: 6 }), fc.constantFrom('%2F', '%c3%BC', 'a%', ''));
  const pairs = fc.record({ pairs: fc.array(fc.tuple(text, text), { maxLength: 3 }) });
  return fc.oneof(text, fc.array(text, { maxLength: 3 }), pairs, fc.constant(undefined));
})();

const variable = fc.record({
  name: fc.constantFrom(...NAMES),
  modifier: fc.constantFrom('', '', '*', ':1', ':3', ':20'),
});
const expression = fc.record({
  operator: fc.constantFrom(...OPERATORS),
  variables: fc.uniqueArray(variable, { minLength: 1, maxLength: 3, selector: ({ name }) => name }),
});
const literal = fc.constantFrom('res://', '/', 'a', '?k=v', 'ü', '日b', '%C3%BC', '-', 'x=', ' ', '/end');
const parts = fc.array(fc.oneof(expression, literal), { maxLength: 6 });
const bindings = fc.record(Object.fromEntries(NAMES.map((name) => [name, value])));

type DrawnParts = readonly (
  | string
  | { operator: string; variables: readonly { name: string; modifier: string }[] }
)[];

function written(drawn: DrawnParts): string {
  const spell = ({ name, modifier }: { name: string; modifier: string }) => name + modifier;
  return drawn
    .map((part) =>
      typeof part === 'string' ? part : `{${part.operator}${part.variables.map(spell).join(',')}}`,
    )
    .join('');
}

/** A prefix modifier does not apply to lists and maps (section 2.4.1), so those lose theirs. */
function fitting(drawn: DrawnParts, drawnBindings: Bindings): DrawnParts {
  return drawn.map((part) => {
    if (typeof part === 'string') return part;
    const variables = part.variables.map(({ name, modifier }) => ({
      name,
      modifier: modifier.startsWith(':') && typeof drawnBindings[name] === 'object' ? '' : modifier,
    }));
    return { operator: part.operator, variables };
  });
}

describe('what a template expands to, it matches', () => {
  test('for any bindings, percent-encoded as the RFC says', () => {
    fc.assert(
      fc.property(parts, bindings, (drawn, values) => {
        const text = written(fitting(drawn, values));
        assert.ok(matches(text, expand(text, values)), `${text} and ${expand(text, values)}`);
      }),
      { numRuns: 1_500 },
    );
  });

  test('for any bindings, with characters outside ASCII left raw', () => {
    fc.assert(
      fc.property(parts, bindings, (drawn, values) => {
        const text = written(fitting(drawn, values));
        const uri = expand(text, values, rawBeyondAscii);
        assert.ok(matches(text, uri), `${text} and ${uri}`);
      }),
      { numRuns: 1_000 },
    );
  });

  test('with the named variables in any order', () => {
    fc.assert(
      fc.property(expression, fc.constantFrom(';', '?', '&'), bindings, (drawn, operator, values) => {
        const [straight] = fitting([{ ...drawn, operator }], values);
        if (typeof straight !== 'object') return;
        const turned = { operator, variables: [...straight.variables].reverse() };
        const uri = `r:a${expand(written([turned]), values)}`;
        assert.ok(matches(`r:a${written([straight])}`, uri), `${written([straight])} and ${uri}`);
      }),
      { numRuns: 500 },
    );
  });
});

describe('what a template cannot expand to, it does not match', () => {
  /** Every text over the alphabet up to this length, the empty one included. */
  function textsOver(alphabet: string, longest: number): string[] {
    const all = [''];
    for (let from = 0, length = 1; length <= longest; length++) {
      const end = all.length;
      for (; from < end; from++) for (const character of alphabet) all.push(all[from] + character);
    }
    return all;
  }

  /** Every list of 1 to `most` members out of `texts` whose members have at most `longest` characters together. */
  function listsOf(texts: readonly string[], most: number, longest: number): string[][] {
    if (most === 0) return [];
    const lists: string[][] = [];
    for (const text of texts) {
      if (text.length > longest) continue;
      lists.push([text]);
      for (const rest of listsOf(texts, most - 1, longest - text.length - 1)) lists.push([text, ...rest]);
    }
    return lists;
  }

  function valuesOver(alphabet: string, longest: number): Value[] {
    const texts = textsOver(alphabet, longest);
    const lists = listsOf(texts, longest + 1, longest);
    const pairs = lists
      .filter((list) => list.length % 2 === 0)
      .map((list) => ({
        pairs: Array.from(
          { length: list.length / 2 },
          (_, at) => [list[at * 2] ?? '', list[at * 2 + 1] ?? ''] as const,
        ),
      }));
    return [undefined, ...texts, ...lists, ...pairs];
  }

  function permutations(items: readonly string[]): string[][] {
    if (items.length < 2) return [[...items]];
    return items.flatMap((item, at) => permutations(items.toSpliced(at, 1)).map((rest) => [item, ...rest]));
  }

  /** All expansions of the expression up to this length, the named variables in any order. */
  function expansions(
    operator: string,
    variables: readonly string[],
    values: readonly Value[],
    longest: number,
  ) {
    const found = new Set<string>();
    const isNamed = operator === ';' || operator === '?' || operator === '&';
    for (const order of isNamed ? permutations(variables) : [variables]) {
      const text = `{${operator}${order.join(',')}}`;
      bindAll(order, values, (bound) => {
        const uri = expand(text, bound);
        if (uri.length <= longest) found.add(uri);
        return uri.length <= longest;
      });
    }
    return found;
  }

  /** Tries every binding of the variables; `visit` says of a partial one whether it is worth going on. */
  function bindAll(
    variables: readonly string[],
    values: readonly Value[],
    visit: (bound: Bindings) => boolean,
  ): void {
    const named = variables.map((variable) => ({ variable, name: variable.replace(/[:*].*/, '') }));
    const candidates = named.map(({ variable, name }) => {
      const applicable = values.filter((value) => !variable.includes(':') || typeof value !== 'object');
      return { name, values: applicable.filter((value) => visit({ [name]: value })) };
    });
    const bind = (bound: Bindings, at: number): void => {
      const next = candidates[at];
      if (!visit(bound) || next === undefined) return;
      for (const value of next.values) bind({ ...bound, [next.name]: value }, at + 1);
    };
    bind({}, 0);
  }

  function assertExact(operator: string, variables: readonly string[], alphabet: string): void {
    const text = `{${operator}${variables.join(',')}}`;
    const template = compiled(text);
    // Of a value only unreserved characters stay as they are, but for `+`, `#` and the keys of an exploded map.
    const keepsReserved =
      operator === '+' || operator === '#' || (operator !== '' && variables.includes('x*'));
    const longest = keepsReserved ? 4 : 5;
    const valueAlphabet = keepsReserved ? alphabet : alphabet.replaceAll(/[^a-z.]/g, '');
    const expected = expansions(operator, variables, valuesOver(valueAlphabet, longest), longest);
    for (const uri of textsOver(alphabet, longest)) {
      // Whether a list of one empty string is empty, section 3.2.1 leaves open: `;x=` and `;x` both match.
      if (operator === ';' && variables.includes('x') && /=(;|$)/.test(uri)) continue;
      assert.equal(template.matches(uri), expected.has(uri), `${text} and ${JSON.stringify(uri)}`);
    }
  }

  const oneVariable: readonly (readonly [string, string])[] = [
    ['', 'a,=/'],
    ['+', 'a,=/'],
    ['#', 'a,=#'],
    ['.', 'a.,='],
    ['/', 'a/,='],
    [';', 'x;,='],
    ['?', 'x?=&'],
    ['?', 'x?=,'],
    ['&', 'x&=a'],
  ];
  for (const [operator, alphabet] of oneVariable) {
    for (const variable of ['x', 'x*', 'x:2']) {
      test(`{${operator}${variable}} matches its expansions over "${alphabet}" and no other text`, () => {
        assertExact(operator, [variable], alphabet);
      });
    }
  }

  const severalVariables: readonly (readonly [string, readonly string[], string])[] = [
    ['', ['x:1', 'y:2'], 'a,'],
    ['', ['x*', 'y'], 'a=,'],
    ['+', ['x:1', 'y:2'], 'a,'],
    ['#', ['x:1', 'y:1'], 'a,#'],
    ['.', ['x:1', 'y:2'], 'a.'],
    ['/', ['x', 'y'], 'a/,'],
    ['/', ['x*', 'y:1'], 'a/='],
    ['/', ['x:1', 'y', 'z:1'], 'a/'],
    [';', ['x', 'y'], 'xy;'],
    ['?', ['x', 'y'], '?xy=&'],
    ['&', ['x:1', 'y'], '&xy='],
  ];
  for (const [operator, variables, alphabet] of severalVariables) {
    test(`{${operator}${variables.join(',')}} matches its expansions over "${alphabet}" and no other text`, () => {
      assertExact(operator, variables, alphabet);
    });
  }
});
