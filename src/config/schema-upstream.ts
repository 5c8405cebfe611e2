/** One upstream. */
import { z } from 'zod';
import { choice, count, duration, flag, headerSecret, list, mapping, say, text } from './fields.ts';
import * as mend from './mends.ts';
import { processShape } from './schema-process.ts';

const auth = z.discriminatedUnion(
  'type',
  [
    mapping(
      { type: z.literal('none').meta({ description: 'Kind of credential.' }) },
      'write { type: none }',
    ).meta({
      description: 'No credential.',
    }),
    mapping(
      {
        type: z.literal('bearer').meta({ description: 'Kind of credential.' }),
        token: headerSecret(`write the token, such as \${file:/run/secrets/token}`, mend.tokenMend).meta({
          description: 'Sent as `Authorization: Bearer …`.',
        }),
      },
      'write { type: bearer, token: … }',
    ).meta({ description: "A token of the gateway's own." }),
    mapping(
      {
        type: z.literal('header').meta({ description: 'Kind of credential.' }),
        name: text(
          'header name',
          'write the name of a header, such as X-Api-Key',
          mend.staticHeaderMend,
        ).meta({
          description:
            'Name of the header. *Never* one that the gateway computes: `Mcp-*`, `Content-*`, `Host`, `Accept`, hop-by-hop.',
        }),
        value: headerSecret(`write the value, such as \${API_KEY}`).meta({
          description: 'Value of the header.',
        }),
      },
      'write { type: header, name: …, value: … }',
    ).meta({ description: "A header of the gateway's own." }),
    mapping(
      {
        type: z.literal('forward').meta({ description: 'Kind of credential.' }),
        shared: flag().default(false).meta({
          description:
            'True: one audience covers every upstream of the route, so that a token for one may be shown to all. Required on a route with several upstreams.',
        }),
      },
      'write { type: forward }',
    ).meta({
      description:
        "The caller's own `Authorization`; 401 and 403 of the upstream and their challenge pass back.",
    }),
  ],
  {
    error: say(
      'write auth as { type: none }, { type: bearer, token }, { type: header, name, value } or { type: forward }',
    ),
  },
);

/** Methods whose results can be kept. */
const CACHEABLE = [
  'resources/read',
  'resources/list',
  'resources/templates/list',
  'tools/list',
  'prompts/list',
] as const;

/** What is said where no URL is. */
export const URL_HINT = 'write the URL of the MCP server, such as http://127.0.0.1:3001/mcp';

const nameGlobs = (what: string) =>
  list(
    text('glob', 'write a name or a glob such as docs_*', mend.namePatternMend),
    'write a list of names or globs',
    10_000,
  )
    .default([])
    .meta({
      description: `${what} that belong to this upstream, by name glob. With any, it has none outside them.`,
    });

/** What is kept of results that say nothing of it. */
const cacheRule = mapping(
  {
    resources: text('URI pattern', 'write a URI, a glob such as docs://** or a template', mend.uriPatternMend)
      .optional()
      .meta({ description: 'Reads of these resources: a URI literal, glob or template.' }),
    method: choice(CACHEABLE)
      .optional()
      .meta({ description: 'In place of `resources`: all results of a method.' }),
    ttl: duration('0s', '720h').meta({ description: 'Time to live, where the result names none.' }),
    scope: choice(['private', 'public']).default('private').meta({
      description: 'Who may have it, where the result does not say: `public` is everybody, on your promise.',
    }),
  },
  'write a rule such as { resources: "docs://**", ttl: 5m, scope: public }',
).check(({ value, issues }) => {
  if ((value.resources === undefined) !== (value.method === undefined)) return;
  issues.push({
    code: 'custom',
    message: 'write either resources or method',
    input: value,
  });
});

/** Replicas of one server beyond this have a balancer of their own, and each costs three pools here. */
const MAX_ENDPOINTS = 16;

const endpoint = () => text('URL', URL_HINT, mend.upstreamUrlMend).transform((value) => new URL(value));

/** One upstream. That one of `url`, `endpoints` and `command` is there, `checks-process.ts` says. */
export const upstreamSchema = mapping(
  {
    url: endpoint()
      .optional()
      .meta({
        description:
          'The MCP endpoint of the server, used as written. This, `endpoints` or `command` is required.',
        examples: ['http://docs:3000/mcp'],
      }),
    endpoints: list(
      endpoint(),
      'write a list of URLs, such as [http://docs-0:3000/mcp, http://docs-1:3000/mcp]',
      MAX_ENDPOINTS,
    )
      .min(1, { error: 'write at least one URL' })
      .optional()
      .meta({
        description:
          'In place of `url`: several endpoints of one server that answer alike. Each request goes to the one with the fewest under way; one that fails is left alone for a while.',
        examples: [['http://docs-0:3000/mcp', 'http://docs-1:3000/mcp']],
      }),
    ...processShape,
    protocol: choice(['auto', 'modern', 'legacy']).default('auto').meta({
      description:
        'What the upstream speaks: `modern` is 2026-07-28, `legacy` the revisions before it with their `initialize`, `auto` finds out.',
    }),
    resources: list(
      text('URI pattern', 'write a URI, a glob such as docs://** or a template', mend.uriPatternMend),
      'write a list of URIs, globs or templates',
      10_000,
    )
      .default([])
      .meta({
        description:
          'Resources that belong to this upstream: URI literals, globs (`docs://**`) or RFC 6570 templates. With any, it has none outside them.',
        examples: [['docs://**', 'file:///manual/{page}']],
      }),
    tools: nameGlobs('Tools'),
    prompts: nameGlobs('Prompts'),
    auth: auth
      .prefault({ type: 'none' })
      .meta({ description: 'How the gateway identifies itself to the upstream.' }),
    forwardHeaders: list(
      text('header name', 'write the name of a header, such as X-Tenant', mend.forwardHeaderMend),
      'write a list of header names',
      64,
    )
      .default([])
      .meta({
        description:
          'Further request headers that this upstream may see. Each one also tells callers apart in the cache.',
        examples: [['X-Tenant']],
      }),
    timeouts: mapping(
      {
        connect: duration('10ms', '5m')
          .prefault('2s')
          .meta({ description: 'Until a connection stands, TLS included.' }),
        response: duration('10ms', '1h')
          .prefault('30s')
          .meta({ description: 'Until the answer to a read or a list is whole.' }),
        call: duration('10ms', '24h').prefault('5m').meta({
          description: 'Longest time for a streamed call to be answered: `tools/call`, `prompts/get`.',
        }),
        streamIdle: duration('100ms', '24h').prefault('5m').meta({
          description: 'Longest silence in a streamed answer. Does not apply to `subscriptions/listen`.',
        }),
      },
      'write a mapping of timeouts, such as { connect: 2s }',
    )
      .prefault({})
      .meta({ description: 'Deadlines.' }),
    connections: count(1, 10_000).default(64).meta({
      description:
        'Most connections at a time to an endpoint: for reads, for streamed calls and for listens each.',
    }),
    subscribe: flag().default(true).meta({
      description:
        'Listen to the upstream where it offers `subscriptions/listen`: its changes drop what is cached, and clients can listen through the gateway.',
    }),
    cache: mapping(
      {
        ttl: mapping(
          {
            default: duration('0s', '720h')
              .prefault('0s')
              .meta({ description: 'Time to live where the result names none.' }),
            max: duration('0s', '720h')
              .prefault('24h')
              .meta({ description: 'The upstream is never trusted for longer.' }),
          },
          'write a mapping, such as { default: 0s, max: 24h }',
        )
          .prefault({})
          .meta({ description: 'Times to live.' }),
        scope: choice(['respect', 'private', 'public']).default('respect').meta({
          description:
            "Whose answers are shared: `respect` follows the upstream's `cacheScope`, `private` never shares, `public` shares every answer, on the operator's promise.",
        }),
        rules: list(cacheRule, 'write a list of rules, such as [{ resources: "docs://**", ttl: 5m }]', 1_000)
          .default([])
          .meta({
            description:
              'Your word for results that carry no `ttlMs` or no `cacheScope`, as those of older servers: the first rule that fits.',
            examples: [[{ resources: 'docs://**', ttl: '5m', scope: 'public' }]],
          }),
        staleIfError: duration('0s', '168h').prefault('1m').meta({
          description: 'How long after its end an entry may stand in while the upstream fails.',
        }),
      },
      'write a mapping, such as { scope: respect }',
    )
      .prefault({})
      .meta({ description: 'What is kept of this upstream.' }),
  },
  'write a mapping such as { url: http://127.0.0.1:3001/mcp }',
);

export type AuthoredUpstream = z.output<typeof upstreamSchema>;
