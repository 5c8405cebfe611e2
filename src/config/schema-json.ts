/** The JSON Schema of a configuration file, for editors and for the reference in the README. */
import { z } from 'zod';
import { configSchema } from './schema.ts';

/** A JSON Schema, as far as this room looks into one. */
export interface JsonSchema {
  readonly $schema?: string;
  readonly $id?: string;
  readonly title?: string;
  readonly description?: string;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly pattern?: string;
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: JsonSchema;
  readonly oneOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly propertyNames?: JsonSchema;
  readonly additionalProperties?: JsonSchema | false;
  readonly required?: readonly string[];
}

/** Draft 2020-12, of what is written (not of what is made of it). */
export function jsonSchema(): JsonSchema {
  const schema = z.toJSONSchema(configSchema, {
    io: 'input',
    target: 'draft-2020-12',
    override: ({ jsonSchema: node }) => {
      // The forms of a value exclude each other, and editors say more about `oneOf`.
      if (node.anyOf === undefined) return;
      node.oneOf = node.anyOf;
      delete node.anyOf;
    },
  }) as JsonSchema;
  const { $schema, ...rest } = schema;
  return {
    ...($schema === undefined ? {} : { $schema }),
    title: 'Headgate configuration',
    description: 'Configuration of Headgate, the caching gateway for MCP.',
    ...rest,
  };
}

/** The text of `config/headgate.schema.json`, and what `headgate schema` prints. */
export function jsonSchemaText(): string {
  const schema = withExpansions(jsonSchema());
  const { properties } = schema;
  const { upstreams, cache } = properties ?? {};
  const upstream = { ...(upstreams?.additionalProperties || {}), oneOf: ONE_ADDRESS };
  const redis = { ...cache?.properties?.redis, oneOf: ONE_REDIS };
  const all = {
    ...properties,
    upstreams: { ...upstreams, additionalProperties: upstream },
    cache: { ...cache, properties: { ...cache?.properties, redis } },
  };
  return `${JSON.stringify({ ...schema, properties: all }, null, 2)}\n`;
}

/** What the schema of zod cannot say of several keys, the checks do. */
const ONE_ADDRESS: readonly JsonSchema[] = ['url', 'endpoints', 'command'].map((key) => ({
  required: [key],
}));
const ONE_REDIS: readonly JsonSchema[] = ['url', 'sentinel', 'cluster'].map((key) => ({ required: [key] }));

/** Where `${VAR}` may stand for a number or a patterned text, editors should not underline it. */
function withExpansions(schema: JsonSchema): JsonSchema {
  const { pattern, type, minimum, maximum, enum: words, ...rest } = schema;
  const own = {
    ...(type === undefined ? {} : { type }),
    ...(words === undefined ? {} : { enum: words }),
    ...(minimum === undefined ? {} : { minimum }),
    ...(maximum === undefined ? {} : { maximum }),
  };
  if (type === 'integer' || type === 'boolean' || words !== undefined) {
    return { ...rest, anyOf: [own, { type: 'string', pattern: EXPANSION }] };
  }
  return {
    ...rest,
    ...own,
    ...(pattern === undefined ? {} : { pattern: `${pattern}|${EXPANSION}` }),
    ...(rest.items === undefined ? {} : { items: withExpansions(rest.items) }),
    ...(rest.oneOf === undefined ? {} : { oneOf: rest.oneOf.map(withExpansions) }),
    ...(rest.additionalProperties ? { additionalProperties: withExpansions(rest.additionalProperties) } : {}),
    ...(rest.properties === undefined ? {} : { properties: withExpansionsIn(rest.properties) }),
  };
}

function withExpansionsIn(properties: NonNullable<JsonSchema['properties']>): JsonSchema['properties'] & {} {
  return Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, withExpansions(value)]));
}

const EXPANSION = '\\$\\{';
