/** The cache in Redis: where it is, and how long anything waits for it. */
import type { z } from 'zod';
import { count, duration, flag, list, mapping, node, secret, size, text } from './fields.ts';
import * as mend from './mends.ts';

/** What is said where none of the three ways to Redis is. */
export const REDIS_URL_HINT =
  'write the URL of Redis, such as redis://127.0.0.1:6379/0, or sentinel or cluster';

const nodes = (what: string) =>
  list(node(), 'write a list of nodes, such as ["redis-0:6379", "redis-1:6379"]', 64)
    .min(1, { error: 'write at least one node, such as redis-0:6379' })
    .meta({ description: what, examples: [['redis-0:6379', 'redis-1:6379']] });

const username = () =>
  text('user name', 'write the name of a Redis user', mend.wordMend)
    .optional()
    .meta({ description: 'User of Redis (ACL); absent: the default one.' });

const password = (what: string) =>
  secret(`write the password, such as \${file:/run/secrets/redis}`).optional().meta({ description: what });

const sentinel = mapping(
  {
    name: text('name', 'write the name of the master group, such as mymaster', mend.wordMend).meta({
      description: 'Name of the master group that the sentinels watch.',
      examples: ['mymaster'],
    }),
    nodes: nodes('The sentinels, each as `host:port`.'),
    username: username(),
    password: password('Password of the servers.'),
    sentinelPassword: password('Password of the sentinels.'),
    db: count(0, mend.MAX_REDIS_DB).default(0).meta({ description: 'Number of the database.' }),
    tls: flag().default(false).meta({ description: 'TLS, to the sentinels and to the servers.' }),
  },
  'write a mapping, such as { name: mymaster, nodes: ["sentinel-0:26379"] }',
);

const cluster = mapping(
  {
    nodes: nodes('Some of the nodes, each as `host:port`; the others are found through them.'),
    username: username(),
    password: password('Password of the nodes.'),
    tls: flag().default(false).meta({ description: 'TLS, to all nodes.' }),
  },
  'write a mapping, such as { nodes: ["redis-0:6379", "redis-1:6379"] }',
);

/** The cache that replicas share. That exactly one of `url`, `sentinel` and `cluster` is there, `checks-redis.ts` says. */
export const redisSchema = mapping(
  {
    url: secret(REDIS_URL_HINT, mend.redisUrlMend)
      .optional()
      .meta({
        description:
          'One server: `redis://[[user]:password@]host[:port][/db]`, `rediss://` for TLS. *Never* shown. This, `sentinel` or `cluster` is required.',
        examples: ['redis://127.0.0.1:6379/0'],
      }),
    sentinel: sentinel.optional().meta({ description: 'In place of `url`: the master that sentinels name.' }),
    cluster: cluster.optional().meta({ description: 'In place of `url`: a Redis Cluster.' }),
    keyPrefix: text('prefix', 'write a prefix such as "headgate:"', mend.keyPrefixMend)
      .default('headgate:')
      .meta({ description: 'Begins every key and channel; the same on all replicas that share.' }),
    timeouts: mapping(
      {
        connect: duration('10ms', '5m')
          .prefault('2s')
          .meta({ description: 'Until a connection stands, TLS included.' }),
        command: duration('1ms', '10s').prefault('25ms').meta({
          description: 'What all commands for one request may take together; beyond it Redis is passed over.',
        }),
      },
      'write a mapping of timeouts, such as { connect: 2s, command: 25ms }',
    )
      .prefault({})
      .meta({ description: 'Deadlines of Redis.' }),
    maxEntry: size('1KiB', '256MiB').prefault('1MiB').meta({
      description:
        'Largest entry in Redis, never more than `cache.memory.maxEntry`; a larger one stays in memory.',
    }),
    required: flag().default(false).meta({
      description:
        'True: not ready while Redis does not answer. False: requests are served from memory meanwhile.',
    }),
  },
  'write a mapping, such as { url: redis://127.0.0.1:6379/0 }',
);

export type AuthoredRedis = z.output<typeof redisSchema>;
