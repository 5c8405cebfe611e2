/** Templates and globs: what upstreams and operators write, against what clients ask for. */
import assert from 'node:assert/strict';
import { namePattern, uriPattern } from '../../../src/routing/pattern.ts';
import { compileTemplate, matchSteps } from '../../../src/routing/template.ts';
import { TemplateIndex } from '../../../src/routing/template-index.ts';
import { type Bindings, expand, rawBeyondAscii, type Value } from '../../support/expand-template.ts';
import { ITEMS } from '../corpus.ts';
import type { Target } from '../engine.ts';
import { mutateText } from '../mutate.ts';
import type { Random } from '../random.ts';

const NAMES = ['a', 'b', 'path', 'q', 'x.y', 'v_1'];
const LITERALS = ['file:///', 'res://', 'r:', '/', '-', 'x', 'a.b', '?fixed=1', '%2F', 'é', ' ', 'aa'];
const OPERATORS = ['', '', '+', '#', '.', '/', ';', '?', '&'];
const VALUES = ['', 'a', 'aa', 'a/b', 'é', '日本', '🌍x', '50%', 'a b', ',', '&=', '%41'];
const TEXTS = [
  ITEMS.resourceTemplates.uriTemplate,
  '{a}{b}{+path}',
  'r:{;a,b*}{?q:3}',
  'file:///{+path}/{a:2}.md',
  '{#x.y*}',
  '{a',
];
const TOKENS = [
  '{',
  '}',
  '{a}',
  '{+path}',
  '{?q*}',
  ':3',
  '*',
  ',',
  '%',
  '%zz',
  '\u0000',
  '{!a}',
  '{a:0}',
  '{}',
];

function template(random: Random): string {
  const parts = random.many(random.between(1, 5), () => {
    if (random.once(2)) return random.pick(LITERALS);
    const variables = random.many(
      random.between(1, 3),
      () => random.pick(NAMES) + random.pick(['', '', '*', ':1', ':3']),
    );
    // A name twice in one expression has no one meaning for the named operators.
    return `{${random.pick(OPERATORS)}${[...new Set(variables)].join(',')}}`;
  });
  return parts.join('');
}

/** A value as a field of a case: nothing, a text, a list, or pairs behind a mark. */
type Bound = string | null | readonly string[];
const PAIRS = '=pairs';

function bound(random: Random): Bound {
  switch (random.below(5)) {
    case 0:
      return null;
    case 1:
      return random.many(random.between(1, 3), () => random.pick(VALUES));
    case 2:
      return [
        PAIRS,
        ...random
          .many(random.between(1, 2), () => [random.pick(['k', 'l', 'é']), random.pick(VALUES)])
          .flat(),
      ];
    default:
      return random.pick(VALUES);
  }
}

function boundValue(field: Bound | undefined): Value {
  if (field === undefined || field === null) return undefined;
  if (typeof field === 'string') return field;
  if (field[0] !== PAIRS) return field;
  return {
    pairs: field
      .slice(1)
      .flatMap((key, at, all) => (at % 2 === 0 ? [[key, all[at + 1] ?? ''] as const] : [])),
  };
}

type TemplateCase = {
  readonly text: string;
  /** One for each of the names. */
  readonly bindings: readonly Bound[];
  readonly uri: string;
  readonly others: readonly string[];
};

/** Steps for each byte of a URI, for each character of the template. */
const STEPS_PER_CELL = 4;

export const templates: Target<TemplateCase> = {
  name: 'template',
  about:
    'never throws; steps within template × URI; every expansion matches; an index finds the earliest owner',
  generate(random) {
    const text = random.once(3)
      ? mutateText(random, random.once(2) ? template(random) : random.pick(TEXTS), TOKENS, TEXTS)
      : template(random);
    const uris = ['file:///a/b', 'r:;a=1;b', `r:${'a'.repeat(200)}`, '', 'res://x?q=1&a=2'];
    return {
      text,
      bindings: NAMES.map(() => bound(random)),
      uri: mutateText(random, random.pick(uris), ['%2F', '/', 'a', ';', '=', ',', 'é'], uris),
      others: random.many(random.below(4), () => template(random)),
    };
  },
  check({ text, bindings, uri, others }) {
    const compiled = compileTemplate(text);
    const values: Bindings = Object.fromEntries(NAMES.map((name, at) => [name, boundValue(bindings[at])]));
    const isPlain = isPlainTemplate(text, values);
    if (compiled.kind === 'invalid') {
      assert.ok(!isPlain, `a good template is refused: ${compiled.reason}`);
      assert.match(compiled.reason, /^[\x20-\x7e]{1,100}$/);
      return 'invalid';
    }
    const { template: one } = compiled;
    const expansions = isPlain ? [expand(text, values), expand(text, values, rawBeyondAscii)] : [];
    for (const expansion of expansions)
      assert.ok(one.matches(expansion), `does not match its expansion ${expansion}`);
    for (const candidate of [uri, ...expansions]) {
      const steps = matchSteps(one, candidate);
      const most = STEPS_PER_CELL * (Buffer.byteLength(candidate) + 1) * (text.length + 1);
      assert.ok(steps <= most, `${steps} steps, at most ${most}`);
      checkIndex([...others, text], candidate);
    }
    return expansions.length > 0 ? 'expanded' : one.matches(uri) ? 'matches' : 'differs';
  },
};

function checkIndex(texts: readonly string[], uri: string): void {
  const index = new TemplateIndex();
  const held = texts.flatMap((text, rank) => {
    const compiled = compileTemplate(text);
    return compiled.kind === 'template' && index.add(compiled.template, rank)
      ? [{ rank, one: compiled.template }]
      : [];
  });
  const owner = held.find(({ one }) => one.matches(uri))?.rank;
  assert.equal(index.lookup(uri), owner, 'the index finds another owner');
}

const PLAIN_TEMPLATE =
  /^(?:[^{}%\u0000-\u001f\u007f\p{Surrogate}]|%[0-9A-Fa-f]{2}|\{[+#./;?&]?[\w.]+(?:\*|:[1-9])?(?:,[\w.]+(?:\*|:[1-9])?)*\})*$/u;

/** Whether RFC 6570 says what the template expands to: `{x:3}` of a list has no meaning, a name twice has two. */
function isPlainTemplate(text: string, values: Bindings): boolean {
  if (!PLAIN_TEMPLATE.test(text)) return false;
  for (const [, inside = ''] of text.matchAll(/\{[+#./;?&]?([^}]*)\}/g)) {
    const variables = inside.split(',');
    const names = variables.map((variable) => variable.replace(/[*:].*/, ''));
    if (new Set(names).size < names.length || names.some((name) => !/^\w+(?:\.\w+)*$/.test(name)))
      return false;
    if (
      variables.some((variable, at) => variable.includes(':') && typeof values[names[at] ?? ''] === 'object')
    )
      return false;
  }
  return true;
}

type GlobCase = { readonly pattern: string; readonly candidate: string };

export const globs: Target<GlobCase> = {
  name: 'glob',
  about: 'agrees with a matcher that tries everything; a hostile candidate costs its length, never more',
  generate(random) {
    if (random.once(40)) {
      // What makes a backtracking matcher run for ever.
      return {
        pattern: `${'*a'.repeat(random.between(10, 60))}*b`,
        candidate: 'a'.repeat(random.between(500, 3_000)),
      };
    }
    const alphabet = ['*', '*', '**', '/', 'a', 'b', 'ab', '://', '***', 'é'];
    const pattern = random.text(12, alphabet);
    const candidate = random.once(3)
      ? random.text(12, ['a', 'b', '/', 'é', '*'])
      : pattern.replaceAll(/\*+/g, () => random.text(4, ['a', 'b', '/', '']));
    return { pattern, candidate };
  },
  check({ pattern, candidate }) {
    const name = namePattern(pattern).matches(candidate);
    const uri = pattern.includes('{') ? false : uriPattern(pattern).matches(candidate);
    if (pattern.length * candidate.length > 4_000) return 'long';
    assert.equal(name, slow(pattern.replaceAll(/\*+/g, '**'), candidate), 'a name glob');
    assert.equal(uri, slow(pattern, candidate), 'a URI glob');
    return `${name ? 'name' : '-'} ${uri ? 'uri' : '-'}`;
  },
};

/** `*` stops at `/`, two or more do not. Every place in a table: no cleverness to be wrong about. */
function slow(pattern: string, candidate: string): boolean {
  const tokens = pattern.match(/\*+|[^*]/gs) ?? [];
  let row = Array.from({ length: candidate.length + 1 }, (_, at) => at === 0);
  for (const token of tokens) {
    const next = row.map(() => false);
    for (let at = 0; at <= candidate.length; at++) {
      if (!row[at]) continue;
      if (!token.startsWith('*')) {
        if (candidate[at] === token) next[at + 1] = true;
        continue;
      }
      for (let end = at; end <= candidate.length; end++) {
        next[end] = true;
        if (token === '*' && candidate[end] === '/') break;
      }
    }
    row = next;
  }
  return row[candidate.length] === true;
}
