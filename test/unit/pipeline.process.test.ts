/** Who may use an upstream that is a process: it sees nobody's credentials. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isBarred } from '../../src/auth/forward.ts';
import { readHead } from '../../src/protocol/headers.ts';
import { fleet, type Script } from '../support/scripted.ts';

const script: Script = (method, params) => ({
  result:
    method === 'resources/read'
      ? { contents: [{ uri: params.uri, text: 'of the process' }], ttlMs: 60_000, cacheScope: 'private' }
      : method === 'tools/list'
        ? { tools: [{ name: 'tool', inputSchema: { type: 'object' } }], ttlMs: 0 }
        : { supportedVersions: ['2026-07-28'], capabilities: { resources: {}, tools: {} }, ttlMs: 0 },
});

function withProcess(shared: boolean) {
  const process = { command: 'server', args: [], env: {}, cwd: undefined, shared };
  return fleet({ upstreams: [{ name: 'local', script, config: { process, endpoints: [] } }] });
}

describe('R22: a process', () => {
  test('is for callers without credentials, and said to be so once', async () => {
    const f = withProcess(false);
    assert.equal((await f.ask('resources/read', { uri: 'a:1' })).result.contents[0].text, 'of the process');
    const refused = await f.ask('resources/read', { uri: 'a:1' }, 'Bearer alice');
    assert.deepEqual([refused.status, refused.error?.code], [502, -32603]);
    assert.equal((await f.ask('tools/list', {}, 'Bearer alice')).status, 502);
    const reads = (f.upstreams[0]?.asked ?? []).filter((line) => line.startsWith('resources/read'));
    assert.equal(reads.length, 1);
    assert.equal(f.logged.filter((line) => line.includes('shared: true')).length, 1);
  });

  test('is not for callers whom the operator has told apart', async () => {
    const process = {
      command: 'server',
      args: [],
      env: {},
      cwd: undefined,
      shared: false,
      tellers: ['x-user'],
    };
    const head = (...names: string[]) => readHead(names.flatMap((name) => [name, 'x']));
    assert.deepEqual(
      [head(), head('X-User'), head('Authorization'), head('X-Other')].map((one) =>
        isBarred({ process }, one),
      ),
      [false, true, true, false],
    );
    assert.equal(isBarred({ process: { ...process, shared: true } }, head('X-User')), false);
  });

  test('is for all where the operator says so', async () => {
    const f = withProcess(true);
    const read = await f.ask('resources/read', { uri: 'a:1' }, 'Bearer alice');
    assert.equal(read.result.contents[0].text, 'of the process');
  });
});
