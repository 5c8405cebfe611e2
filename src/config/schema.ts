/**
 * The configuration as people write it. The JSON Schema and the reference in the README derive from this file and
 * its three neighbours: every key has a description, every default stands here and nowhere else.
 */
import { z } from 'zod';
import { choice, duration, flag, list, mapping, say, secret, size, text } from './fields.ts';
import * as mend from './mends.ts';
import { adminSchema, DEFAULT_ADDRESSES, listenSchema, statusSchema } from './schema-listen.ts';
import { redisSchema } from './schema-redis.ts';
import { routeSchema } from './schema-route.ts';
import { upstreamSchema } from './schema-upstream.ts';

/** The cache in memory. */
export const memorySchema = mapping(
  {
    size: size('64KiB', '1024GiB')
      .prefault('256MiB')
      .meta({ description: 'Most bytes of all entries together.' }),
    maxEntry: size('1KiB', '1GiB').prefault('8MiB').meta({
      description: 'Largest entry, never more than `size`; a larger answer passes uncached.',
    }),
  },
  'write a mapping, such as { size: 256MiB, maxEntry: 8MiB }',
)
  .prefault({})
  .meta({ description: "The cache in this process's memory." });

/** What seals, encrypts and tells callers apart. */
export const secretsSchema = list(
  secret(`write a secret of 32 bytes or more, such as \${file:/run/secrets/headgate}`, mend.secretMend),
  `write a list of secrets, such as ["\${file:/run/secrets/headgate}"]`,
  16,
)
  .prefault([])
  .meta({
    description:
      'Secrets of 32 bytes or more, the same on all replicas. The first signs and encrypts, all verify. Empty: a key of this process, and nothing private in Redis.',
    examples: [[`\${file:/run/secrets/headgate}`]],
  });

/** The whole file. */
export const configSchema = mapping(
  {
    version: z
      .literal(1, { error: say('write version: 1') })
      .meta({ description: 'Version of this format: 1.' }),
    secrets: secretsSchema,
    listen: listenSchema
      .prefault(DEFAULT_ADDRESSES.listen)
      .meta({ description: 'Where MCP clients connect: an address, or a mapping.' }),
    status: statusSchema
      .prefault(DEFAULT_ADDRESSES.status)
      .meta({ description: 'Where `/livez`, `/readyz` and `/metrics` answer.' }),
    admin: adminSchema.prefault(DEFAULT_ADDRESSES.admin).meta({
      description:
        'Where the admin API answers: an address on loopback, or a mapping with a token; `false`: nowhere.',
    }),
    upstreams: z
      .record(
        // `checks.ts` says what is wrong with a name: zod would not look at the upstream behind it.
        z.string().meta({ pattern: mend.UPSTREAM_NAME.source }),
        upstreamSchema,
        {
          error: say(
            'write a mapping of names to upstreams, such as docs: { url: http://127.0.0.1:3001/mcp }',
          ),
        },
      )
      .refine((upstreams) => Object.keys(upstreams).length > 0, { error: 'write at least one upstream' })
      .meta({ description: 'The MCP servers, by name.' }),
    routes: z
      .array(routeSchema, {
        error: say('write a list of routes, such as - { path: /mcp, upstreams: [docs] }'),
      })
      .min(1, { error: 'write at least one route, such as - { path: /mcp, upstreams: [docs] }' })
      .max(1000, { error: 'write at most 1000 routes' })
      .meta({ description: 'The virtual MCP servers that clients see.' }),
    cache: mapping(
      {
        memory: memorySchema,
        redis: redisSchema.optional().meta({
          description: 'The cache that replicas share, behind the memory of each. Absent: memory only.',
        }),
        partition: mapping(
          {
            headers: list(
              text('header name', 'write the name of a header', mend.headerNameMend),
              'write a list of header names',
              64,
            )
              .default([])
              .meta({
                description:
                  'Further request headers that tell callers apart, beside `Authorization`, `Cookie`, `Proxy-Authorization`, `X-Api-Key` and every `forwardHeaders` name.',
              }),
          },
          'write a mapping, such as { headers: [X-Tenant] }',
        )
          .prefault({})
          .meta({ description: 'What makes two callers different.' }),
      },
      'write a mapping, such as { memory: { size: 256MiB } }',
    )
      .prefault({})
      .meta({ description: 'The cache.' }),
    shutdown: mapping(
      {
        delay: duration('0s', '10m').prefault('0s').meta({
          description: 'Time between answering "not ready" and refusing new work, for balancers to notice.',
        }),
        grace: duration('0s', '1h')
          .prefault('30s')
          .meta({ description: 'Time that running calls get to finish; then they are cut.' }),
      },
      'write a mapping, such as { grace: 30s }',
    )
      .prefault({})
      .meta({ description: 'How the gateway stops.' }),
    log: mapping(
      {
        level: choice(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
          .default('info')
          .meta({ description: 'Least level that is written.' }),
        format: choice(['auto', 'json', 'pretty']).default('auto').meta({
          description: '`auto`: pretty on a terminal, JSON lines elsewhere.',
        }),
        access: flag().default(true).meta({ description: 'One line for each request.' }),
      },
      'write a mapping, such as { level: info }',
    )
      .prefault({})
      .meta({ description: 'The log.' }),
  },
  'write a mapping with version, upstreams and routes',
);

/** What the schema makes of a valid file: defaults filled in, durations and sizes as numbers, secrets wrapped. */
export type Authored = z.output<typeof configSchema>;
