/** Which items of a list are handed on: `x-mcp-header` in a tool's schema. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { schemaProblem } from '../../src/aggregate/item.ts';

const problem = (schema: object): string | undefined =>
  schemaProblem(JSON.stringify({ type: 'object', ...schema }));
const HEADER = 'x-mcp-header';
const annotated = { type: 'string', [HEADER]: 'Region' };

describe('R16: a value that is data is no annotation', () => {
  for (const keyword of ['default', 'const', 'enum', 'examples']) {
    test(keyword, () => {
      const value = { [HEADER]: 5 };
      const data = keyword === 'enum' || keyword === 'examples' ? [value] : value;
      assert.equal(problem({ [keyword]: data }), undefined);
      assert.equal(problem({ properties: { a: { type: 'object', [keyword]: data } } }), undefined);
    });
  }
});

describe('R16: what is named like the annotation is none', () => {
  for (const keyword of ['properties', '$defs', 'definitions', 'patternProperties', 'dependentSchemas']) {
    test(`a name under ${keyword}`, () => {
      assert.equal(problem({ [keyword]: { [HEADER]: { type: 'string' } } }), undefined);
      assert.equal(
        problem({ properties: { a: { [keyword]: { [HEADER]: { type: 'string' } } } } }),
        undefined,
      );
    });
  }

  test('and can be annotated itself', () => {
    assert.equal(problem({ properties: { [HEADER]: annotated } }), undefined);
    assert.notEqual(problem({ properties: { [HEADER]: { type: 'number', [HEADER]: 'X' } } }), undefined);
  });

  test('as can a property that is named like a keyword for data', () => {
    assert.notEqual(problem({ properties: { default: { type: 'number', [HEADER]: 'X' } } }), undefined);
    assert.notEqual(problem({ $defs: { const: annotated } }), undefined);
  });
});

describe('R16: an annotation that is not reached by "properties" alone makes its tool invalid', () => {
  for (const [keyword, value] of [
    ['$defs', { a: annotated }],
    ['definitions', { a: annotated }],
    ['patternProperties', { '^a': annotated }],
    ['dependentSchemas', { a: annotated }],
    ['dependentSchemas', { a: { properties: { b: annotated } } }],
    ['dependencies', { a: annotated, b: ['c'] }],
    ['items', annotated],
    ['prefixItems', [annotated]],
    ['additionalProperties', annotated],
    ['allOf', [{ properties: { a: annotated } }]],
    ['if', { properties: { a: annotated } }],
    ['novel', { a: annotated }],
    ['properties', { a: { type: 'array', items: annotated } }],
    ['properties', { a: { $defs: { b: { properties: { c: annotated } } } } }],
    ['$defs', [annotated]],
    [HEADER, 'Root'],
  ] as const) {
    test(`${keyword}: ${JSON.stringify(value)}`, () => {
      assert.match(problem({ [keyword]: value }) ?? '', /not on a property reached by "properties" alone/);
    });
  }
});

test('R16: an annotation whose key is spelled with escapes is one', () => {
  const text = '{"type":"object","properties":{"a":{"type":"number","x-mcp-\\u0068eader":"Name"}}}';
  assert.match(schemaProblem(text) ?? '', /no string, integer or boolean/);
});

test('R16: annotations down a chain of "properties" are good, and unlike each other whatever their case', () => {
  const nested = { type: 'object', properties: { b: { type: 'integer', [HEADER]: 'Tenant' } } };
  assert.equal(problem({ properties: { a: annotated, nested } }), undefined);
  assert.match(
    problem({ properties: { a: annotated, b: { ...annotated, [HEADER]: 'REGION' } } }) ?? '',
    /twice/,
  );
});
