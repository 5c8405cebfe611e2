/** R22: private answers of one caller, on two replicas that share Redis. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { McpServer } from '@modelcontextprotocol/server';
import { type DemoServer, serve } from '../demo/servers/serve.ts';
import { until } from '../support/mcp.ts';
import { COMMON, type Pair, read, SECRETS, startPair, statusOf, textOf, used } from '../support/pair.ts';
import { missingRedis, type RedisServer, startRedis } from '../support/redis.ts';

const URI = 'diary://today';
const USERS: ReadonlyMap<string, string> = new Map([
  ['token of alice', 'alice'],
  ['token of bob', 'bob'],
]);

/** An upstream on the official SDK that tells callers apart by their token. */
const startDiary = (): Promise<DemoServer> =>
  serve({
    userOf: (token) => USERS.get(token),
    build: ({ authInfo }) => {
      const mcp = new McpServer({ name: 'diary', version: '1' }, { capabilities: { resources: {} } });
      mcp.server.setRequestHandler('resources/read', ({ params: { uri } }) => ({
        contents: [{ uri, mimeType: 'text/plain', text: `a secret of ${authInfo?.clientId ?? 'nobody'}` }],
        ttlMs: 60_000,
        cacheScope: 'private',
      }));
      return mcp;
    },
  });

describe('R22: a private answer, two replicas, one Redis', { skip: missingRedis() ?? false }, () => {
  let diary: DemoServer;
  let redis: RedisServer;
  let sharing: Pair;
  let alone: Pair;

  const config = (secrets: string, keyPrefix: string): string => `${COMMON}${secrets}upstreams:
  diary: { url: ${diary.url}, auth: { type: forward } }
routes:
  - { path: /mcp, upstreams: [diary] }
cache:
  redis: { url: "${redis.url}", keyPrefix: "${keyPrefix}" }
`;

  before(async () => {
    [diary, redis] = await Promise.all([startDiary(), startRedis()]);
    [sharing, alone] = await Promise.all([
      startPair(config(SECRETS, 'sharing:'), config(SECRETS, 'sharing:')),
      startPair(config('', 'alone:'), config('', 'alone:')),
    ]);
    await Promise.all([used(sharing), used(alone)]);
  });
  after(async () => {
    await Promise.all([sharing?.stop(), alone?.stop()]);
    await Promise.all([diary?.close(), redis?.close()]);
  });

  const readAs = async (gateway: Pair['a'], user: string) => {
    const got = await read(gateway, '/mcp', URI, `token of ${user}`);
    return { text: textOf(got), status: statusOf(got) };
  };
  const entries = async (keyPrefix: string) =>
    (await redis.admin.keys(`${keyPrefix}*`)).filter((key) => key.includes(':e:'));

  test('R22: with `secrets` it is a hit on the other replica for its caller, and for nobody else', async () => {
    const { a, b } = sharing;
    assert.match((await readAs(a, 'alice')).status, /fwd=uri-miss; stored/);
    await until(async () => (await entries('sharing:')).length === 1, 'it is in Redis');
    const asked = diary.stats.of('resources/read');

    const own = await readAs(b, 'alice');
    assert.equal(own.text, 'a secret of alice');
    assert.match(own.status, /^headgate; hit; ttl=\d+; detail=redis$/);
    assert.equal(diary.stats.of('resources/read'), asked);

    const others = await readAs(b, 'bob');
    assert.equal(others.text, 'a secret of bob');
    assert.match(others.status, /fwd=uri-miss/);
    assert.equal(diary.stats.of('resources/read'), asked + 1);
  });

  test('R22: what is private is sealed in Redis: neither text, token nor URI can be read there', async () => {
    const keys = await entries('sharing:');
    assert.ok(keys.length >= 1);
    for (const key of keys) {
      const value = String(await redis.admin.getBuffer(key));
      for (const word of ['secret of', 'token of', 'diary']) {
        assert.ok(!value.includes(word), word);
        assert.ok(!key.includes(word), word);
      }
    }
  });

  test('R22: without `secrets` it stays in the memory of the replica that read it', async () => {
    const { a, b } = alone;
    assert.match((await readAs(a, 'alice')).status, /fwd=uri-miss; stored/);
    assert.match((await readAs(a, 'alice')).status, /^headgate; hit; ttl=\d+; detail=memory$/);
    const asked = diary.stats.of('resources/read');

    const own = await readAs(b, 'alice');
    assert.equal(own.text, 'a secret of alice');
    assert.match(own.status, /fwd=uri-miss/);
    assert.equal(diary.stats.of('resources/read'), asked + 1);
    assert.match((await readAs(b, 'bob')).status, /fwd=uri-miss/);
    assert.deepEqual(await entries('alone:'), []);
  });
});
