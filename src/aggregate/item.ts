/**
 * Is this item of an upstream's list fit to be handed on? One bad item goes alone (R16): clients validate a whole
 * result and would lose the whole list over it. *Never* changes an item: it is spliced as it came, or left out.
 */

import { isUri } from '../protocol/classify.ts';
import {
  kindAt,
  type Member,
  memberOf,
  objectMembers,
  type Span,
  stringValue,
  textOf,
} from '../protocol/json.ts';
import type { ListShape } from '../protocol/methods.ts';
import { compileTemplate } from '../routing/template.ts';

/** Largest single item: one page's worth; anything larger is no list item. */
export const MAX_ITEM_BYTES = 1024 * 1024;

export type Verdict =
  | { readonly kind: 'good'; readonly id: string }
  | { readonly kind: 'bad'; readonly reason: 'invalid' | 'too_large'; readonly why: string };

type FieldKind = 'string' | 'number' | 'object' | 'array';

/** Fields whose wrong type makes clients reject the item. *Spec:* schema 2026-07-28, `Resource` and its like. */
const OPTIONAL: Readonly<Record<ListShape['field'], Readonly<Record<string, FieldKind>>>> = {
  resources: {
    title: 'string',
    description: 'string',
    mimeType: 'string',
    size: 'number',
    annotations: 'object',
    icons: 'array',
    _meta: 'object',
  },
  resourceTemplates: {
    title: 'string',
    description: 'string',
    mimeType: 'string',
    annotations: 'object',
    icons: 'array',
    _meta: 'object',
  },
  prompts: { title: 'string', description: 'string', arguments: 'array', icons: 'array', _meta: 'object' },
  tools: {
    title: 'string',
    description: 'string',
    outputSchema: 'object',
    annotations: 'object',
    icons: 'array',
    _meta: 'object',
  },
};

/** Judges the item at `span` of a list of this shape. */
export function judgeItem(bytes: Uint8Array, span: Span, shape: ListShape): Verdict {
  if (span.end - span.start > MAX_ITEM_BYTES)
    return { kind: 'bad', reason: 'too_large', why: 'larger than 1 MiB' };
  const members = objectMembers(bytes, span.start);
  if (members === undefined) return invalid('no object');
  const id = stringField(bytes, members, shape.idField);
  if (id === undefined) return invalid(`no ${shape.idField}`);
  if (stringField(bytes, members, 'name') === undefined) return invalid('no name');
  for (const [key, kind] of Object.entries(OPTIONAL[shape.field])) {
    const member = memberOf(members, key);
    if (member !== undefined && kindAt(bytes, member.start) !== kind) return invalid(`${key} is no ${kind}`);
  }
  const why = shapeProblem(bytes, members, shape, id);
  return why === undefined ? { kind: 'good', id } : invalid(why);
}

function invalid(why: string): Verdict {
  return { kind: 'bad', reason: 'invalid', why };
}

function stringField(bytes: Uint8Array, members: readonly Member[], key: string): string | undefined {
  const member = memberOf(members, key);
  return member && stringValue(bytes, member);
}

function shapeProblem(
  bytes: Uint8Array,
  members: readonly Member[],
  shape: ListShape,
  id: string,
): string | undefined {
  switch (shape.field) {
    case 'resources':
      return isUri(id) ? undefined : 'uri is no URI';
    case 'resourceTemplates': {
      const compiled = compileTemplate(id);
      return compiled.kind === 'template' ? undefined : `uriTemplate: ${compiled.reason}`;
    }
    case 'prompts':
      return id === '' ? 'name is empty' : undefined;
    case 'tools': {
      const schema = memberOf(members, 'inputSchema');
      if (schema === undefined || kindAt(bytes, schema.start) !== 'object') return 'no inputSchema';
      return id === '' ? 'name is empty' : schemaProblem(textOf(bytes, schema));
    }
  }
}

/**
 * What breaks the rules for `x-mcp-header` in a tool's input schema, if anything.
 * *Spec:* basic/transports/streamable-http, "Schema Extension".
 */
export function schemaProblem(schemaText: string): string | undefined {
  const schema: unknown = JSON.parse(schemaText);
  if (!isRecord(schema) || schema.type !== 'object') return 'inputSchema is not of type "object"';
  if (!schemaText.includes('x-mcp-header')) return undefined;
  return headerProblem(schema, 'root', new Set());
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const MIRRORED_TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);

/** `place`: `root` the schema itself, `property` reached by `properties` alone, `elsewhere` anywhere else. */
type Place = 'root' | 'property' | 'elsewhere';

function headerProblem(schema: unknown, place: Place, seen: Set<string>): string | undefined {
  if (Array.isArray(schema)) return first(schema, (entry) => headerProblem(entry, 'elsewhere', seen));
  if (!isRecord(schema)) return undefined;
  if (Object.hasOwn(schema, 'x-mcp-header')) {
    const why = annotationProblem(schema, place, seen);
    if (why !== undefined) return why;
  }
  return first(Object.entries(schema), ([key, value]) => {
    if (key !== 'properties' || !isRecord(value)) return headerProblem(value, 'elsewhere', seen);
    const next: Place = place === 'elsewhere' ? 'elsewhere' : 'property';
    return first(Object.values(value), (property) => headerProblem(property, next, seen));
  });
}

function annotationProblem(
  schema: Record<string, unknown>,
  place: Place,
  seen: Set<string>,
): string | undefined {
  const name = schema['x-mcp-header'];
  if (typeof name !== 'string' || !TOKEN.test(name)) return 'x-mcp-header is no header name token';
  if (place !== 'property') return 'x-mcp-header is not on a property reached by "properties" alone';
  if (!MIRRORED_TYPES.has(schema.type))
    return 'x-mcp-header is on a property that is no string, integer or boolean';
  if (seen.has(name.toLowerCase())) return 'x-mcp-header is used twice';
  seen.add(name.toLowerCase());
  return undefined;
}

function first<T>(values: readonly T[], problem: (value: T) => string | undefined): string | undefined {
  for (const value of values) {
    const why = problem(value);
    if (why !== undefined) return why;
  }
  return undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
