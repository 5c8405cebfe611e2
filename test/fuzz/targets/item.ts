/** Items of upstreams' lists: whatever is handed on, the official client must be able to take (R16). */
import assert from 'node:assert/strict';
import { isSpecType } from '@modelcontextprotocol/client';
import { judgeItem } from '../../../src/aggregate/item.ts';
import { wholeValue } from '../../../src/protocol/json.ts';
import { LIST_METHODS, type ListShape } from '../../../src/protocol/methods.ts';
import { ITEMS } from '../corpus.ts';
import type { Target } from '../engine.ts';
import { readTree, treeOf } from '../json-tree.ts';
import { mutateBytes, mutatedJson } from '../mutate.ts';

const SHAPES: readonly ListShape[] = LIST_METHODS.flatMap((row) => row.list ?? []);
const TREES = Object.fromEntries(Object.entries(ITEMS).map(([field, item]) => [field, treeOf(item)]));
const TOKENS: readonly string[] = [
  '"uri":1,',
  '"name":null,',
  '"icons":[{}],',
  '"x-mcp-header":"A",',
  '"type":"object",',
  '"_meta":[],',
  '"arguments":[{}],',
  '{',
  '}',
  '"',
  ',',
];

type Item = { readonly field: string; readonly bytes: Uint8Array };

export const listItem: Target<Item> = {
  name: 'list-item',
  about:
    'never throws; an item that is handed on is one that the official client accepts, with the id it reads',
  generate(random) {
    const shape = random.pick(SHAPES);
    const tree = TREES[shape.field] ?? treeOf({});
    const bytes = new TextEncoder().encode(mutatedJson(random, tree));
    const others = Object.values(TREES).map((other) => new TextEncoder().encode(JSON.stringify(other)));
    return { field: shape.field, bytes: random.once(6) ? mutateBytes(random, bytes, TOKENS, others) : bytes };
  },
  check({ field, bytes }) {
    const shape = SHAPES.find((one) => one.field === field);
    const span = wholeValue(bytes);
    if (shape === undefined || span === undefined) return 'no item';
    const verdict = judgeItem(bytes, span, shape);
    if (verdict.kind === 'bad') {
      assert.match(verdict.why, /^[\x20-\x7e]{1,120}$/, 'a reason that is no plain line');
      if (verdict.why in TOO_STRICT)
        assert.ok(!acceptsText(shape, bytes), `drops what the client accepts: ${verdict.why}`);
      return `bad: ${verdict.why}`;
    }
    const text = Buffer.from(bytes).toString('utf8');
    assert.ok(readTree(text) !== undefined);
    const item = JSON.parse(text) as Record<string, unknown>;
    assert.equal(item[shape.idField], verdict.id, 'the client reads another id');
    assert.ok(accepts(shape, item), 'the official client would lose the whole list over it');
    if (field === 'tools') checkHeaders(item.inputSchema);
    return 'good';
  },
};

/** Reasons that are the client's own, not the gateway's: whoever drops for them must be right. */
const TOO_STRICT: Readonly<Record<string, true>> = Object.fromEntries(
  ['title', 'description', 'icons', '_meta', 'mimeType', 'size', 'annotations', 'arguments'].map((key) => [
    `${key} is not what the schema says`,
    true,
  ]),
);

function acceptsText(shape: ListShape, bytes: Uint8Array): boolean {
  const item: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'));
  return typeof item === 'object' && item !== null && accepts(shape, item as Record<string, unknown>);
}

/** `x-mcp-header` only on string, integer and boolean properties reached by `properties` alone, each name once. */
function checkHeaders(schema: unknown): void {
  const allowed = new Set<unknown>();
  const names: string[] = [];
  const descend = (one: unknown): void => {
    if (typeof one !== 'object' || one === null) return;
    const { properties } = one as { properties?: unknown };
    if (typeof properties !== 'object' || properties === null || Array.isArray(properties)) return;
    for (const property of Object.values(properties)) {
      allowed.add(property);
      descend(property);
    }
  };
  descend(schema);
  const look = (one: unknown): void => {
    if (typeof one !== 'object' || one === null) return;
    if (!Array.isArray(one) && Object.hasOwn(one, 'x-mcp-header')) {
      const { 'x-mcp-header': name, type } = one as { 'x-mcp-header': unknown; type?: unknown };
      // A property may be called so, too: then its value is a schema, and no name.
      assert.ok(
        allowed.has(one) && ['string', 'integer', 'boolean'].includes(type as string),
        'a header out of place',
      );
      assert.match(String(name), /^[\w!#$%&'*+.^`|~-]+$/);
      names.push(String(name).toLowerCase());
    }
    Object.values(one).forEach(look);
  };
  look(schema);
  assert.equal(new Set(names).size, names.length, 'a header for two properties');
}

/** The client's own schema; what only revision 2025-11-25 asks of a tool is left out. */
function accepts({ field }: ListShape, item: Record<string, unknown>): boolean {
  switch (field) {
    case 'resources':
      return isSpecType.Resource(item);
    case 'resourceTemplates':
      return isSpecType.ResourceTemplate(item);
    case 'prompts':
      return isSpecType.Prompt(item);
    case 'tools': {
      const { execution: _, inputSchema, outputSchema, ...rest } = item;
      return (
        isSpecType.Tool({
          ...rest,
          inputSchema: {
            ...dialect(inputSchema),
            type: (inputSchema as { type?: unknown } | undefined)?.type,
          },
          ...(outputSchema !== undefined && { outputSchema: { ...dialect(outputSchema), type: 'object' } }),
        }) &&
        [inputSchema, outputSchema].every((schema) => typeof (dialect(schema).$schema ?? '') === 'string')
      );
    }
  }
}

function dialect(schema: unknown): { $schema?: unknown } {
  const { $schema } = (schema ?? {}) as { $schema?: unknown };
  return $schema === undefined ? {} : { $schema };
}
