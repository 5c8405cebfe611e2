import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Gateway } from '../demo/gateway.ts';
import { until } from '../support/mcp.ts';
import {
  COMMON,
  PAGE,
  type Pair,
  read as readAt,
  SECRETS,
  startPair,
  startWiki,
  statusOf,
  textOf,
  type Wiki,
  watched,
} from '../support/pair.ts';
import { missingRedis, type RedisServer, startRedis } from '../support/redis.ts';

async function read(gateway: Gateway): Promise<{ text: string | undefined; status: string }> {
  const got = await readAt(gateway, '/mcp', PAGE);
  return { text: textOf(got), status: statusOf(got) };
}

describe('two replicas, one Redis, one upstream', { skip: missingRedis() ?? false }, () => {
  let wiki: Wiki;
  let redis: RedisServer;
  let pair: Pair;
  let a: Gateway;
  let b: Gateway;

  before(async () => {
    [wiki, redis] = await Promise.all([startWiki(), startRedis()]);
    const config = `${COMMON}${SECRETS}upstreams:
  wiki: { url: ${wiki.url} }
routes:
  - { path: /mcp, upstreams: [wiki] }
cache:
  redis: { url: "${redis.url}" }
`;
    pair = await startPair(config, config);
    ({ a, b } = pair);
  });
  after(async () => {
    await pair?.stop();
    await Promise.all([wiki?.close(), redis?.close()]);
  });

  test('warm on one is a hit on the other, which does not ask the upstream', async () => {
    await watched(a, '/mcp');
    await until(async () => /hit/.test((await read(a)).status), 'warm and watched');
    const asked = wiki.stats.of('resources/read');
    const { text, status } = await read(b);
    assert.equal(text, 'v1');
    assert.match(status, /^headgate; hit; ttl=\d+; detail=redis$/);
    assert.equal(wiki.stats.of('resources/read'), asked);
  });

  test('R28: a change in the upstream is read on both, soon', async (t) => {
    for (let version = 2; version < 7; version++) {
      await until(async () => /hit/.test((await read(a)).status), 'a hit');
      await until(async () => /hit/.test((await read(b)).status), 'a hit');
      const startedAt = performance.now();
      wiki.change();
      for (const replica of [b, a]) {
        await until(async () => (await read(replica)).text === `v${version}`, `v${version}`);
        t.diagnostic(`v${version} after ${(performance.now() - startedAt).toFixed(1)} ms`);
      }
    }
  });

  test('R29: nothing of it is in a key of Redis, and every key expires', async () => {
    const keys = await redis.admin.keys('*');
    assert.ok(keys.length >= 2, String(keys));
    for (const key of keys) {
      assert.doesNotMatch(key, /wiki:\/\//);
      assert.ok((await redis.admin.pttl(key)) > 0, `${key} never expires`);
    }
  });

  test('R29: without Redis both go on', async () => {
    await redis.kill();
    for (const replica of [a, b]) assert.equal((await read(replica)).text, 'v6');
    wiki.change();
    for (const replica of [a, b]) await until(async () => (await read(replica)).text === 'v7', 'v7');
  });
});
