/** `cache.rules`: what the operator says of results that say nothing. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CacheRule } from '../../src/config/types.ts';
import { configOf, loadText } from '../support/config.ts';
import { fleet, type Script } from '../support/scripted.ts';

const CACHE = { ttlDefaultMs: 0, ttlMaxMs: 86_400_000, scope: 'respect', staleIfErrorMs: 0 } as const;

function silent(rules: readonly CacheRule[], hints: Readonly<Record<string, unknown>> = {}) {
  const script: Script = (method, params) => ({
    result:
      method === 'resources/read'
        ? { contents: [{ uri: params.uri, text: 'x' }], ...hints }
        : {
            supportedVersions: ['2026-07-28'],
            capabilities: { resources: {}, tools: {} },
            tools: [],
            ttlMs: 0,
          },
  });
  const f = fleet({ upstreams: [{ name: 'old', script, config: { cache: { ...CACHE, rules } } }] });
  const read = async (uri: string) => {
    const { result, headers } = await f.ask('resources/read', { uri });
    return [result.ttlMs, result.cacheScope, headers['cache-status']];
  };
  return { ...f, read };
}

const rule = (resources: string, ttlMs: number, scope: 'private' | 'public' = 'public'): CacheRule => ({
  method: 'resources/read',
  resources,
  ttlMs,
  scope,
});
/** What is wrong with a configuration. */
function problemsOf(text: string): string {
  const loaded = loadText(text);
  return loaded.kind === 'ok' ? '' : loaded.problems.map(({ message }) => message).join('; ');
}

const STORED = 'headgate; fwd=uri-miss; stored';

describe('cache.rules', () => {
  test('the first that fits says for how long and to whom', async () => {
    const { read } = silent([rule('docs://a/*', 5_000), rule('docs://**', 60_000, 'private')]);
    assert.deepEqual(await read('docs://a/1'), [5_000, 'public', STORED]);
    assert.deepEqual(await read('docs://a/b/1'), [60_000, 'private', STORED]);
    assert.deepEqual(await read('other://1'), [0, 'private', 'headgate; fwd=uri-miss; detail=ttl-zero']);
    assert.match(String((await read('docs://a/1'))[2]), /^headgate; hit/);
  });

  test('what a result says itself holds, each hint for itself', async () => {
    const rules = [rule('docs://**', 60_000)];
    assert.deepEqual(await silent(rules, { ttlMs: 1_000 }).read('docs://1'), [1_000, 'public', STORED]);
    assert.deepEqual(await silent(rules, { cacheScope: 'private' }).read('docs://1'), [
      60_000,
      'private',
      STORED,
    ]);
    assert.deepEqual((await silent(rules, { ttlMs: 0, cacheScope: 'public' }).read('docs://1'))[0], 0);
    assert.deepEqual((await silent(rules, { ttlMs: -1 }).read('docs://1'))[0], 0);
  });

  test('are written as resources or as a method, never as both', () => {
    const config = (rules: string) =>
      `version: 1\nupstreams: { docs: { url: http://a/, cache: { rules: ${rules} } } }\nroutes: [{ path: /mcp, upstreams: [docs] }]\n`;
    assert.deepEqual(
      configOf(
        config('[{ resources: "docs://**", ttl: 5m, scope: public }, { method: tools/list, ttl: 1h }]'),
      ).upstreams.get('docs')?.cache.rules,
      [
        rule('docs://**', 300_000),
        { method: 'tools/list', resources: undefined, ttlMs: 3_600_000, scope: 'private' },
      ],
    );
    for (const odd of ['[{ ttl: 5m }]', '[{ resources: "a:*", method: tools/list, ttl: 5m }]'])
      assert.match(problemsOf(config(odd)), /either resources or method/);
    assert.match(problemsOf(config('[{ method: tools/call, ttl: 5m }]')), /resources\/read/);
  });
});
