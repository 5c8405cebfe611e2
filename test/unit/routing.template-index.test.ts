import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { compileTemplate, type Template } from '../../src/routing/template.ts';
import {
  INDEX_TEMPLATE_COUNT_MAX,
  INDEX_TEXT_LENGTH_MEAN,
  LOOKUP_STEP_COUNT_MAX,
  LOOKUP_STEPS_PER_CHARACTER,
  TemplateIndex,
} from '../../src/routing/template-index.ts';

function compiled(text: string): Template {
  const result = compileTemplate(text);
  if (result.kind !== 'template') assert.fail(`${text}: ${result.reason}`);
  return result.template;
}

function indexOf(owned: Readonly<Record<number, readonly string[]>>): TemplateIndex {
  const index = new TemplateIndex();
  for (const [rank, texts] of Object.entries(owned)) {
    for (const text of texts) assert.equal(index.add(compiled(text), Number(rank)), true, text);
  }
  return index;
}

function series(write: (index: number) => string, length: number = INDEX_TEMPLATE_COUNT_MAX): string[] {
  return Array.from({ length }, (_, index) => write(index));
}

describe('lookup', () => {
  test('finds the earliest owner, in whatever order they were added', () => {
    const index = indexOf({
      3: ['res://{+x}'],
      7: ['res://a/{x}'],
      5: ['res://a/b'],
      1: ['res://a/{x}/{y}'],
    });
    assert.equal(index.lookup('res://a/b'), 3);
    assert.equal(index.lookup('res://a/b/c'), 1);
    assert.equal(index.lookup('file:///a'), undefined);
  });

  test('tells templates apart that begin alike', () => {
    const index = indexOf({
      0: ['res://a/{x}/n1'],
      1: ['res://a/{x}/n12'],
      2: ['res://a/{x}n1{?q}'],
      3: ['res://a/{x}'],
    });
    assert.equal(index.lookup('res://a/b/n1'), 0);
    assert.equal(index.lookup('res://a/b/n12'), 1);
    assert.equal(index.lookup('res://a/bn1?q=1'), 2);
    assert.equal(index.lookup('res://a/bn12'), 3);
  });

  test('tells a literal that was written raw from one that was written percent-encoded', () => {
    const index = indexOf({ 0: ['res://%C3%BC/{x}'], 1: ['res://ü/{x}'] });
    assert.equal(index.lookup('res://ü/1'), 1);
    assert.equal(index.lookup('res://%C3%BC/1'), 0);
  });

  test('never answers with a template that has no literal prefix', () => {
    const index = new TemplateIndex();
    assert.equal(index.add(compiled('{+uri}'), 0), false);
    assert.equal(index.lookup('res://a'), undefined);
    assert.equal(index.size, 0);
  });

  test('gives what asking every template would give, whatever was added and removed before', () => {
    const text = fc
      .array(fc.constantFrom('a', 'ab', '/', 'ü', '{x}', '{+y}', '{/z*}', '{?q}', '{?r,q}', '{w:1}'), {
        maxLength: 4,
      })
      .map((pieces) => `r${pieces.join('')}`);
    const rank = fc.nat({ max: 4 });
    const edit = fc.oneof(
      fc.record({ kind: fc.constant('add' as const), rank, text }),
      fc.record({ kind: fc.constant('remove' as const), rank, text }),
      fc.record({ kind: fc.constant('replace' as const), rank, texts: fc.array(text, { maxLength: 3 }) }),
    );
    const uri = fc.string({ unit: fc.constantFrom(...'ab/ü?q=&r'), maxLength: 6 }).map((rest) => `r${rest}`);
    fc.assert(
      fc.property(fc.array(edit, { maxLength: 12 }), fc.array(uri, { maxLength: 8 }), (edits, uris) => {
        const index = new TemplateIndex();
        const model = new Map<string, number>();
        for (const drawn of edits) apply(index, model, drawn);
        assert.equal(index.size, model.size);
        for (const asked of uris) {
          const ranks = [...model]
            .filter(([key]) => compiled(key.slice(2)).matches(asked))
            .map(([, owner]) => owner);
          assert.equal(index.lookup(asked), ranks.length === 0 ? undefined : Math.min(...ranks), asked);
        }
      }),
      { numRuns: 600 },
    );
  });
});

type Edit =
  | { readonly kind: 'add' | 'remove'; readonly rank: number; readonly text: string }
  | { readonly kind: 'replace'; readonly rank: number; readonly texts: readonly string[] };

function apply(index: TemplateIndex, model: Map<string, number>, edit: Edit): void {
  const key = (text: string) => `${edit.rank} ${text}`;
  switch (edit.kind) {
    case 'add':
      index.add(compiled(edit.text), edit.rank);
      model.set(key(edit.text), edit.rank);
      return;
    case 'remove':
      assert.equal(index.remove(edit.text, edit.rank), model.delete(key(edit.text)));
      return;
    case 'replace':
      assert.equal(index.replace(edit.rank, edit.texts.map(compiled)), 0);
      for (const [held, rank] of model) if (rank === edit.rank) model.delete(held);
      for (const text of edit.texts) model.set(key(text), edit.rank);
  }
}

describe('learning again', () => {
  test('the same template of the same owner is held once', () => {
    const index = indexOf({ 0: ['res://a/{x}', 'res://a/{x}'], 1: ['res://a/{x}'] });
    assert.equal(index.size, 2);
    assert.equal(index.remove('res://a/{x}', 0), true);
    assert.equal(index.remove('res://a/{x}', 0), false);
    assert.equal(index.lookup('res://a/1'), 1);
  });

  test('two texts that differ in variable names only are forgotten one by one', () => {
    const index = indexOf({ 0: ['res://a/{x}', 'res://a/{y}'] });
    index.remove('res://a/{x}', 0);
    assert.equal(index.lookup('res://a/1'), 0);
    index.remove('res://a/{y}', 0);
    assert.equal(index.lookup('res://a/1'), undefined);
  });

  test('replace leaves an owner with exactly the given templates, and the others with theirs', () => {
    const index = indexOf({ 0: ['res://a/{x}', 'res://b/{x}'], 1: ['res://b/{x}'] });
    assert.equal(index.replace(0, [compiled('res://a/{x}'), compiled('res://c/{x}')]), 0);
    assert.deepEqual(
      ['res://a/1', 'res://b/1', 'res://c/1'].map((uri) => index.lookup(uri)),
      [0, 1, 0],
    );
    assert.equal(index.replace(0, []), 0);
    assert.equal(index.size, 1);
  });

  test('replace counts what is not held', () => {
    const index = new TemplateIndex(1);
    assert.equal(index.replace(0, ['res://a/{x}', 'res://b/{x}', '{x}'].map(compiled)), 2);
  });

  test('what was forgotten costs a look-up no more than what is held', () => {
    const index = indexOf({ 0: ['res://a/{x}'] });
    const stepCount = index.lookupSteps('res://a/n/1');
    for (let round = 0; round < 3; round++) {
      index.replace(1, series((at) => `res://a/{x}{?q${at + round}}`, 200).map(compiled));
      index.replace(1, []);
    }
    assert.ok(index.lookupSteps('res://a/n/1') <= 2 * stepCount);
  });
});

describe('bounds', () => {
  test('one owner’s templates take no room of another’s', () => {
    const index = new TemplateIndex(1);
    assert.deepEqual(
      [1, 1, 0].map((rank, at) => index.add(compiled(`res://${at}/{x}`), rank)),
      [true, false, true],
    );
    assert.equal(index.lookup('res://2/1'), 0);
  });

  test('only owners below a rank are looked at, and the others cost nothing', () => {
    const index = indexOf({ 1: ['res://a/{x}'], 2: ['res://a/{+x}'] });
    assert.deepEqual(
      [undefined, 3, 2, 1].map((below) => index.lookup('res://a/1', below)),
      [1, 1, 1, undefined],
    );
    assert.equal(index.lookup('res://a/1/2', 2), undefined);
    assert.equal(index.lookupSteps('res://a/1', 1), 0);
  });

  test('look-ups for one page find nothing more when their steps are used up', () => {
    const index = indexOf({ 0: ['res://a/{x}'] });
    const budget = { stepsLeft: 1 };
    assert.equal(index.lookup('res://a/1', 1, budget), 0);
    assert.ok(budget.stepsLeft <= 0);
    assert.equal(index.lookup('res://a/1', 1, budget), undefined);
  });

  test('a long URI has the steps that its length takes', () => {
    const index = indexOf({ 0: ['res://a/{x}/{y}{?z}'] });
    assert.equal(index.lookup(`res://a/${'b'.repeat(50_000)}/c`), 0);
  });

  test('the index takes its greatest number of templates and not one more', () => {
    const index = new TemplateIndex(2);
    assert.equal(index.add(compiled('res://a/{x}'), 0), true);
    assert.equal(index.add(compiled('res://b/{x}'), 0), true);
    assert.equal(index.add(compiled('res://c/{x}'), 0), false);
    assert.equal(index.add(compiled('res://a/{x}'), 0), true);
    index.remove('res://a/{x}', 0);
    assert.equal(index.add(compiled('res://c/{x}'), 0), true);
    assert.equal(index.lookup('res://a/1'), undefined);
  });

  test('the index takes its greatest length of texts and not one character more', () => {
    const index = new TemplateIndex(3);
    assert.equal(index.add(compiled(`a${'x'.repeat(2 * INDEX_TEXT_LENGTH_MEAN - 1)}`), 0), true);
    assert.equal(index.add(compiled(`b${'x'.repeat(INDEX_TEXT_LENGTH_MEAN)}`), 0), false);
    assert.equal(index.add(compiled(`b${'x'.repeat(INDEX_TEXT_LENGTH_MEAN - 1)}`), 0), true);
    index.remove(`b${'x'.repeat(INDEX_TEXT_LENGTH_MEAN - 1)}`, 0);
    assert.equal(index.add(compiled(`c${'x'.repeat(INDEX_TEXT_LENGTH_MEAN - 1)}`), 0), true);
  });

  test('among ten thousand templates a look-up takes a few steps a character', () => {
    const shapes: readonly (readonly [(at: number) => string, string])[] = [
      [(at) => `res://s${at}/items/{id}`, 'res://s9999/items/42'],
      [(at) => `res://a/{x}/n${at}`, 'res://a/hello/n9999'],
      [(at) => `res://a/{x}n${at}`, 'res://a/hellon9999'],
      [(at) => `res://a/{+x}/n${at}/{y}`, 'res://a/b/c/d/n9999/q'],
      [(at) => `res://a{/p*}/n${at}{?q,r}`, 'res://a/b/c/n9999?r=2&q=1'],
    ];
    for (const [write, uri] of shapes) {
      const index = indexOf({ 0: series(write) });
      assert.equal(index.lookup(uri), 0, uri);
      assert.ok(index.lookupSteps(uri) <= 10 * uri.length, `${uri}: ${index.lookupSteps(uri)}`);
    }
  });

  const hostile = (last: string) => series((at) => `res://{+x}a{?q${at}}{+y}${last}`, 500);
  const long = `res://p/${'ab'.repeat(2_000)}`;
  const stepCountMax = LOOKUP_STEP_COUNT_MAX + LOOKUP_STEPS_PER_CHARACTER * long.length;

  test('templates that cost a look-up too much do not take an earlier owner its match', () => {
    const index = indexOf({ 0: ['res://p/{x}'], 6: hostile('c'), 7: hostile('d') });
    assert.equal(index.lookup(long), 0);
    const stepCount = index.lookupSteps(long);
    assert.ok(stepCount > stepCountMax && stepCount < 5 * stepCountMax, `${stepCount}`);
  });

  test('when an owner was given up, no later one is found in its place', () => {
    const index = indexOf({ 0: ['res://p/{x}!'], 1: hostile('d'), 2: ['res://p/{x}'] });
    assert.equal(index.lookup('res://p/ab'), 2);
    assert.equal(index.lookup(long), undefined);
  });

  test('when every owner left is too costly, the look-up ends', () => {
    const index = indexOf({ 0: hostile('c'), 1: hostile('d') });
    assert.equal(index.lookup(long), undefined);
    assert.ok(index.lookupSteps(long) < 4 * stepCountMax);
  });
});
