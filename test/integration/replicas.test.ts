import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { McpServer } from '@modelcontextprotocol/server';
import { type Gateway, projectRoot, startGateway } from '../demo/gateway.ts';
import { type DemoServer, serve } from '../demo/servers/serve.ts';
import { call, until } from '../support/mcp.ts';
import { missingRedis, startRedis } from '../support/redis.ts';

const URI = 'wiki://page';

/** An upstream on the official SDK whose one resource has versions. */
async function startWiki(): Promise<DemoServer & { change(): void }> {
  let version = 1;
  const server = await serve({
    build: () => {
      const mcp = new McpServer(
        { name: 'wiki', version: '1' },
        { capabilities: { resources: { subscribe: true, listChanged: true } } },
      );
      mcp.registerResource('page', URI, { mimeType: 'text/plain' }, () => ({
        contents: [{ uri: URI, mimeType: 'text/plain', text: `v${version}` }],
        ttlMs: 600_000,
        cacheScope: 'public',
      }));
      return mcp;
    },
  });
  return {
    ...server,
    change: () => {
      version++;
      server.notify.resourceUpdated(URI);
    },
  };
}

async function read(gateway: Gateway, token?: string): Promise<{ text: string; status: string }> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const { json, headers: got } = await call(
    `${gateway.mcp}/mcp`,
    'resources/read',
    { uri: URI },
    { headers },
  );
  return { text: json.result?.contents?.[0]?.text, status: String(got['cache-status']) };
}

describe('two replicas, one Redis, one upstream', { skip: missingRedis() ?? false }, () => {
  let folder: string;
  let wiki: Awaited<ReturnType<typeof startWiki>>;
  let redis: Awaited<ReturnType<typeof startRedis>>;
  let a: Gateway;
  let b: Gateway;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'headgate-replicas-'));
    [wiki, redis] = await Promise.all([startWiki(), startRedis()]);
    const file = join(folder, 'headgate.yaml');
    writeFileSync(
      file,
      `version: 1
listen: 127.0.0.1:0
status: 127.0.0.1:0
admin: false
secrets: ["a secret that both replicas have, long enough"]
upstreams:
  wiki: { url: ${wiki.url} }
routes:
  - { path: /mcp, upstreams: [wiki] }
cache:
  redis: { url: "${redis.url}" }
`,
    );
    const root = projectRoot(import.meta.dirname);
    [a, b] = (await Promise.all([1, 2].map(() => startGateway({ root, args: ['serve', '-c', file] })))) as [
      Gateway,
      Gateway,
    ];
  });
  after(async () => {
    await Promise.all([a?.stop(), b?.stop()]);
    await Promise.all([wiki?.close(), redis?.close()]);
    rmSync(folder, { recursive: true, force: true });
  });

  test('warm on one is a hit on the other, which does not ask the upstream', async () => {
    await until(async () => /detail=(memory|redis)/.test((await read(a)).status), 'warm');
    // What was read before its changes were told has been read again.
    await new Promise((resolve) => setTimeout(resolve, 600));
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
