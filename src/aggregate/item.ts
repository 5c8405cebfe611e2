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
import { OPTIONAL_MEMBERS } from './item-members.ts';

/** Largest single item: one page's worth; anything larger is no list item. */
export const MAX_ITEM_BYTES = 1024 * 1024;

export type Verdict =
  | { readonly kind: 'good'; readonly id: string }
  | { readonly kind: 'bad'; readonly reason: 'invalid' | 'too_large'; readonly why: string };

/** Keys that the gateway or a client looks at. */
const watchedOf = (field: ListShape['field']): ReadonlySet<string> =>
  new Set(['uri', 'uriTemplate', 'name', 'inputSchema', ...Object.keys(OPTIONAL_MEMBERS[field])]);
const WATCHED: Readonly<Record<ListShape['field'], ReadonlySet<string>>> = {
  resources: watchedOf('resources'),
  resourceTemplates: watchedOf('resourceTemplates'),
  prompts: watchedOf('prompts'),
  tools: watchedOf('tools'),
};

/** Judges the item at `span` of a list of this shape. */
export function judgeItem(bytes: Uint8Array, span: Span, shape: ListShape): Verdict {
  if (span.end - span.start > MAX_ITEM_BYTES)
    return { kind: 'bad', reason: 'too_large', why: 'larger than 1 MiB' };
  const members = objectMembers(bytes, span.start);
  if (members === undefined) return invalid('no object');
  const optional = OPTIONAL_MEMBERS[shape.field];
  const doubled = doubledKey(members, WATCHED[shape.field]);
  if (doubled !== undefined) return invalid(`${doubled} comes twice`);
  const id = stringField(bytes, members, shape.idField);
  if (id === undefined) return invalid(`no ${shape.idField}`);
  if (stringField(bytes, members, 'name') === undefined) return invalid('no name');
  for (const [key, fits] of Object.entries(optional)) {
    const member = memberOf(members, key);
    if (member !== undefined && !fits(JSON.parse(textOf(bytes, member))))
      return invalid(`${key} is not what the schema says`);
  }
  const why = shapeProblem(bytes, members, shape, id);
  return why === undefined ? { kind: 'good', id } : invalid(why);
}

function invalid(why: string): Verdict {
  return { kind: 'bad', reason: 'invalid', why };
}

/** A key that matters and comes twice: a client could read the other of its values. */
function doubledKey(members: readonly Member[], watched: ReadonlySet<string>): string | undefined {
  const isDoubled = ({ key }: Member, at: number): boolean =>
    watched.has(key) && members.findIndex((member) => member.key === key) < at;
  return members.find(isDoubled)?.key;
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
  if (Object.hasOwn(schema, '$schema') && typeof schema.$schema !== 'string')
    return 'the $schema of inputSchema is no string';
  // A key can be spelled with escapes.
  if (!schemaText.includes('x-mcp-header') && !schemaText.includes('\\')) return undefined;
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
    // An annotation among what stands there for itself is none.
    if (DATA.has(key)) return undefined;
    if (!MAPS.has(key) || !isRecord(value)) return headerProblem(value, 'elsewhere', seen);
    const next: Place = key === 'properties' && place !== 'elsewhere' ? 'property' : 'elsewhere';
    return first(Object.values(value), (entry) => headerProblem(entry, next, seen));
  });
}

/** Keywords whose values are data, whatever they look like. *Spec:* JSON Schema 2020-12, validation. */
const DATA: ReadonlySet<string> = new Set(['default', 'const', 'enum', 'examples']);
/** Keywords whose keys are names of the author's choice, and whose values are schemas. */
const MAPS: ReadonlySet<string> = new Set([
  'properties',
  '$defs',
  'definitions',
  'patternProperties',
  'dependentSchemas',
  'dependencies',
]);

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
