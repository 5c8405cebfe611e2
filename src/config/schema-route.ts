/** One route and its rules. */
import { z } from 'zod';
import { choice, count, flag, list, mapping, say, text } from './fields.ts';
import * as mend from './mends.ts';

/** One rule. */
export const ruleSchema = mapping(
  {
    match: mapping(
      {
        method: text('method', 'write a method such as resources/read', mend.methodMend).optional().meta({
          description: 'The method, in full.',
        }),
        name: text('pattern', 'write a name, URI, glob or template', mend.namePatternMend).optional().meta({
          description: 'URI literal, glob or template for resources; name glob for tools and prompts.',
        }),
        header: z
          .record(
            text('header name', 'write an mcp-param-… header', mend.paramHeaderMend),
            text('glob', 'write the value as a literal or a glob', mend.namePatternMend),
            { error: say('write a mapping such as { mcp-param-region: "eu-*" }') },
          )
          .optional()
          .meta({
            description: '`mcp-param-*` headers and globs on their decoded values.',
            examples: [{ 'mcp-param-region': 'eu-*' }],
          }),
      },
      'write a mapping with method, name or header',
    )
      .check(({ value, issues }) => {
        if (
          value.method !== undefined ||
          value.name !== undefined ||
          Object.keys(value.header ?? {}).length > 0
        )
          return;
        issues.push({
          code: 'custom',
          message: 'write at least one of method, name and header',
          input: value,
        });
      })
      .meta({ description: 'Conditions; every one that is written must hold.' }),
    upstream: text('upstream name', 'write the name of an upstream of this route').meta({
      description: 'Where matching requests go.',
    }),
  },
  'write a rule such as { match: { method: resources/read, name: "docs://**" }, upstream: docs }',
);

/** One route. */
export const routeSchema = mapping(
  {
    path: text('path', 'write a path such as /mcp', mend.pathMend).meta({
      description: 'The HTTP path of one virtual MCP server.',
      examples: ['/mcp'],
    }),
    upstreams: list(
      text('upstream name', 'write the name of an upstream'),
      'write a list of upstream names',
      256,
    )
      .min(1, { error: 'write at least one upstream' })
      .meta({ description: 'Its upstreams, in order of precedence.', examples: [['docs', 'city']] }),
    rules: z
      .array(ruleSchema, { error: say('write a list of rules') })
      .max(10_000, { error: 'write at most 10000 rules' })
      .default([])
      .meta({ description: 'Tried before ownership; the first match wins. Rules route, they never permit.' }),
    partial: choice(['allow', 'fail']).default('allow').meta({
      description: 'What a merged list does when an upstream fails: leave it out and say so, or fail.',
    }),
    pageSize: count(1, 10_000).default(1000).meta({
      description: 'Most items on a page of a merged list (a page also ends at 1 MiB).',
    }),
    cache: flag().default(true).meta({ description: 'False: this route neither looks up nor stores.' }),
    legacyClients: flag().default(true).meta({
      description: 'False: clients of 2025-11-25 and older are told that they are not served here.',
    }),
  },
  'write a route such as { path: /mcp, upstreams: [docs] }',
);

export type AuthoredRoute = z.output<typeof routeSchema>;
export type AuthoredRule = z.output<typeof ruleSchema>;
