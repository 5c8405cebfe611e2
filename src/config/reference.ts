/** The configuration reference of the README, in Markdown, out of the schema. */
import { stringify } from 'yaml';
import { type JsonSchema, jsonSchema } from './schema-json.ts';

/** The generated part of the README stands between these two lines. */
export const REFERENCE_START = '<!-- config-reference:start -->';
export const REFERENCE_END = '<!-- config-reference:end -->';

/** One table for each mapping: key, type, default, meaning. */
export function configReference(): string {
  return sections('', jsonSchema()).join('\n\n');
}

/** `readme` with the current reference between the markers; undefined when they are not there. */
export function withReference(readme: string): string | undefined {
  const start = readme.indexOf(REFERENCE_START);
  const end = readme.indexOf(REFERENCE_END, start);
  if (start < 0 || end < 0) return undefined;
  const before = readme.slice(0, start + REFERENCE_START.length);
  return `${before}\n\n${configReference()}\n\n${readme.slice(end)}`;
}

function sections(path: string, schema: JsonSchema): readonly string[] {
  const own = schema.properties === undefined ? [] : [table(path, schema)];
  return [...own, ...children(path, schema).flatMap(([childPath, child]) => sections(childPath, child))];
}

/** The mappings inside a schema, each under the path that people write. */
function children(path: string, schema: JsonSchema): readonly (readonly [string, JsonSchema])[] {
  const found: (readonly [string, JsonSchema])[] = [];
  for (const [key, value] of Object.entries(schema.properties ?? {})) {
    found.push([path === '' ? key : `${path}.${key}`, value]);
  }
  if (schema.additionalProperties) found.push([`${path}.<name>`, schema.additionalProperties]);
  if (schema.items !== undefined) found.push([`${path}[]`, schema.items]);
  for (const form of schema.oneOf ?? []) {
    const type = form.properties?.type?.const;
    found.push([type === undefined ? path : `${path} (type: ${String(type)})`, form]);
  }
  return found;
}

function table(path: string, schema: JsonSchema): string {
  const rows = Object.entries(schema.properties ?? {}).map(([key, value]) => {
    const standard = schema.required?.includes(key) ? '*required*' : fallback(value);
    return `| \`${key}\` | ${cell(typeOf(value))} | ${cell(standard)} | ${cell(meaning(value))} |`;
  });
  const heading = path === '' ? '#### Top level' : `#### \`${path}\``;
  const intro = path !== '' && schema.description !== undefined ? [schema.description, ''] : [];
  return [
    heading,
    '',
    ...intro,
    '| key | type | default | meaning |',
    '| --- | --- | --- | --- |',
    ...rows,
  ].join('\n');
}

function typeOf(schema: JsonSchema): string {
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum !== undefined) return schema.enum.map((word) => `\`${String(word)}\``).join(' | ');
  if (schema.oneOf !== undefined) {
    const types = schema.oneOf.map(typeOf);
    return [...new Set(types)].join(' or ');
  }
  if (schema.title !== undefined) return schema.title;
  switch (schema.type) {
    case 'array':
      return `list of ${plural(typeOf(schema.items ?? {}))}`;
    case 'integer':
      return `whole number, ${schema.minimum} to ${schema.maximum}`;
    case 'object':
      return 'mapping';
    default:
      return schema.type ?? 'any';
  }
}

function plural(type: string): string {
  return type.endsWith('s') ? type : `${type}s`;
}

function fallback(schema: JsonSchema): string {
  if (schema.default === undefined) return 'none';
  const isEmptyMapping = JSON.stringify(schema.default) === '{}';
  if (isEmptyMapping && schema.properties !== undefined) return 'see below';
  return asYaml(schema.default);
}

function meaning(schema: JsonSchema): string {
  const examples = (schema.examples ?? []).map(asYaml);
  const shown = examples.length === 0 ? '' : ` Example: ${examples.join(', ')}.`;
  return `${schema.description ?? ''}${shown}`;
}

function asYaml(value: unknown): string {
  return `\`${stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trim()}\``;
}

/** A pipe would end the cell. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
