/** `server/discover`: who is told what of whom, and what an answer shows of the era of a server. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startupSummary } from '../../src/admin/summary.ts';
import { DISCOVER_WAIT_MS, Discovery } from '../../src/aggregate/discover.ts';
import { PrivateBounds } from '../../src/auth/forward.ts';
import { createMemoryStore } from '../../src/cache/memory.ts';
import { createCache } from '../../src/cache/through.ts';
import {
  catalogue,
  fleet,
  type Script,
  type Scripted,
  ScriptedUpstream,
  upstreamConfig,
} from '../support/scripted.ts';

const FORWARD = { auth: { type: 'forward', shared: true } } as const;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A catalogue whose discover is another. */
function saying(
  discover: (who: string | undefined) => Scripted | Promise<Scripted>,
  rest = catalogue({}),
): Script {
  return (method, params, request) =>
    method === 'server/discover' ? discover(request.headers.authorization) : rest(method, params, request);
}

const shows = (capabilities: object, extra: object = {}): Scripted => ({
  result: {
    supportedVersions: ['2026-07-28'],
    capabilities,
    ttlMs: 1_000,
    cacheScope: 'private',
    ...extra,
  },
});

const namesOf = (told: { result: { tools: { name: string }[] } }): string[] =>
  told.result.tools.map((tool) => tool.name);

describe('R22 R23: what one caller was shown', () => {
  const alices = saying((who) =>
    who === 'Bearer alice' ? shows({ resources: {} }, { instructions: 'ALICE ONLY' }) : { refused: 401 },
  );

  test('is in the answer to that caller', async () => {
    const f = fleet({
      upstreams: [
        { name: 'a', script: alices, config: FORWARD },
        { name: 'b', script: catalogue({}) },
      ],
    });
    const alice = await f.ask('server/discover', {}, 'Bearer alice');
    assert.equal(alice.result.instructions, '## a\n\nALICE ONLY');
    assert.equal(alice.result.cacheScope, 'private');
  });

  test('is in no answer to another', async () => {
    const f = fleet({
      upstreams: [
        { name: 'a', script: alices, config: FORWARD },
        { name: 'b', script: catalogue({}) },
      ],
    });
    await f.ask('server/discover', {}, 'Bearer alice');
    const bob = await f.ask('server/discover', {}, 'Bearer bob');
    assert.equal(bob.result.instructions, undefined);
    // All that is known to Bob is that somebody was answered: it may offer anything.
    assert.deepEqual(Object.keys(bob.result.capabilities), ['resources', 'tools', 'prompts', 'completions']);
    assert.equal(bob.result.ttlMs, 0);
  });

  test('is under no label that is public, however the answers cross', async () => {
    let release = (): void => undefined;
    let slow = false;
    const a = saying((who) =>
      who === 'Bearer alice'
        ? shows({ resources: {} }, { ttlMs: 60_000, instructions: 'ALICE ONLY' })
        : shows({ resources: {} }, { ttlMs: 0, cacheScope: 'public' }),
    );
    const b = saying(async () => {
      if (slow) {
        slow = false;
        await new Promise<void>((resolve) => {
          release = resolve;
        });
      }
      return shows({ tools: {} }, { cacheScope: 'public', ttlMs: 0 });
    });
    const f = fleet({
      upstreams: [
        { name: 'a', script: a, config: FORWARD },
        { name: 'b', script: b },
      ],
    });
    await f.ask('server/discover', {}, 'Bearer carol');
    slow = true;
    const bob = f.ask('server/discover', {}, 'Bearer bob');
    await turn();
    // While Bob waits for b, Alice is told hers of a.
    assert.match((await f.ask('server/discover', {}, 'Bearer alice')).text, /ALICE/);
    release();
    const told = await bob;
    assert.doesNotMatch(told.text, /ALICE/);
    assert.equal(told.result.cacheScope, 'public');
  });

  test('takes no primitive from anybody else', async () => {
    const a = saying(
      (who) => shows(who === 'Bearer mallory' ? { resources: {} } : { resources: {}, tools: {} }),
      catalogue({ tools: ['t'], scope: 'private' }),
    );
    const f = fleet({
      upstreams: [
        { name: 'a', script: a, config: FORWARD },
        { name: 'b', script: catalogue({}) },
      ],
    });
    const mallory = await f.ask('server/discover', {}, 'Bearer mallory');
    assert.deepEqual(Object.keys(mallory.result.capabilities), ['resources', 'tools']);
    assert.deepEqual(namesOf(await f.ask('tools/list', {}, 'Bearer alice')), ['t']);
    assert.deepEqual(Object.keys((await f.ask('server/discover')).result.capabilities), [
      'resources',
      'tools',
    ]);
  });

  test('nor does what the gateway itself is shown, without a caller', async () => {
    const a = saying(
      (who) => shows(who === undefined ? {} : { tools: {} }),
      catalogue({ tools: ['t'], scope: 'private' }),
    );
    const f = fleet({ upstreams: [{ name: 'a', script: a, config: FORWARD }] });
    await f.ask('server/discover', {}, 'Bearer alice');
    assert.deepEqual(namesOf(await f.ask('tools/list', {}, 'Bearer alice')), ['t']);
  });

  test('is not what makes a server an old one for everybody', async () => {
    const a = saying(
      (who) => (who === 'Bearer mallory' ? { refused: 400 } : { refused: 401 }),
      catalogue({ tools: ['t'], scope: 'private' }),
    );
    const f = fleet({
      upstreams: [
        { name: 'a', script: a, config: FORWARD },
        { name: 'b', script: catalogue({}) },
      ],
    });
    await f.ask('server/discover', {}, 'Bearer mallory');
    assert.deepEqual(namesOf(await f.ask('tools/list', {}, 'Bearer alice')), ['t']);
  });
});

test('what an upstream says to all replaces what it said before', async () => {
  let capabilities: object = { tools: {} };
  const a = saying(
    () => shows(capabilities, { cacheScope: 'public', ttlMs: 0 }),
    catalogue({ tools: ['t'] }),
  );
  const f = fleet({ upstreams: [{ name: 'a', script: a, config: FORWARD }] });
  await f.ask('server/discover', {}, 'Bearer alice');
  assert.deepEqual(namesOf(await f.ask('tools/list', {}, 'Bearer bob')), ['t']);
  capabilities = {};
  await f.ask('server/discover', {}, 'Bearer alice');
  assert.equal((await f.ask('tools/list', {}, 'Bearer bob')).error?.code, -32601);
});

describe('the era of an upstream, by its answer to a discover', () => {
  const error = (code: number, data?: object): Scripted => ({
    error: { code, message: 'no', ...(data !== undefined && { data }) },
  });
  const supported = (...versions: string[]): object => ({ supported: versions, requested: '2026-07-28' });
  const rows: readonly (readonly [string, Scripted, number, 'offers' | 'legacy'])[] = [
    ['-32020 under 400', error(-32020), 400, 'offers'],
    ['-32021 under 400', error(-32021, { requiredCapabilities: { sampling: {} } }), 400, 'offers'],
    ['-32022 that names this revision', error(-32022, supported('2027-01-01', '2026-07-28')), 400, 'offers'],
    ['-32022 that names others', error(-32022, supported('2027-01-01')), 400, 'legacy'],
    ['-32022 that names none', error(-32022), 400, 'legacy'],
    ['another JSON-RPC error under 400', error(-32600), 400, 'legacy'],
    ['another JSON-RPC error under 404', error(-32000), 404, 'legacy'],
    ['"unknown method" under 200', error(-32601), 200, 'legacy'],
    ['another JSON-RPC error under 200', error(-32603), 200, 'offers'],
    ['"unknown method" under 401', error(-32601), 401, 'offers'],
    ['a JSON-RPC error under 429', error(-32600), 429, 'offers'],
    ...[400, 404, 405, 406, 415].map(
      (status) => [`HTTP ${status}`, { refused: status }, 0, 'legacy'] as const,
    ),
    ...[401, 403, 408, 421, 425, 429, 501].map(
      (status) => [`HTTP ${status}`, { refused: status }, 0, 'offers'] as const,
    ),
    ['a 5xx', { failure: 'http_5xx' }, 0, 'offers'],
    ['a redirect, or no MCP at all', { failure: 'broken' }, 0, 'offers'],
    ['a timeout', { failure: 'timeout' }, 0, 'offers'],
    ['other revisions only', shows({ tools: {} }, { supportedVersions: ['2027-01-01'] }), 0, 'legacy'],
  ];
  for (const [what, answer, status, era] of rows) {
    test(`${what}: ${era}`, async () => {
      const f = fleet({
        upstreams: [
          { name: 'a', script: saying(() => answer) },
          { name: 'b', script: catalogue({}) },
        ],
      });
      const [a] = f.upstreams;
      const read = a?.read.bind(a);
      if (a !== undefined && read !== undefined && status !== 0) {
        a.read = async (request) => {
          const outcome = await read(request);
          return outcome.kind === 'answer' ? { ...outcome, status } : outcome;
        };
      }
      const told = await f.ask('server/discover');
      // One that is not known yet counts as offering completions and prompts, which b does not.
      assert.equal('completions' in told.result.capabilities, era === 'offers');
    });
  }

  test('an old server that is down for a while is still an old one', async () => {
    let answer: Scripted = { refused: 404 };
    const f = fleet({ upstreams: [{ name: 'a', script: saying(() => answer) }] });
    await f.ask('server/discover');
    answer = { failure: 'connect' };
    assert.deepEqual((await f.ask('server/discover')).result.capabilities, {});
    answer = shows({ tools: {} });
    assert.deepEqual((await f.ask('server/discover')).result.capabilities, { tools: {} });
  });

  test('a server that was seen and then states other revisions is one no longer', async () => {
    let versions = ['2026-07-28'];
    const f = fleet({
      upstreams: [
        { name: 'a', script: saying(() => shows({ tools: {} }, { supportedVersions: versions, ttlMs: 0 })) },
      ],
    });
    assert.deepEqual((await f.ask('server/discover')).result.capabilities, { tools: {} });
    versions = ['2027-01-01'];
    assert.deepEqual((await f.ask('server/discover')).result.capabilities, {});
  });
});

test('the first discover over an upstream that hangs waits for it once, 2 s at most', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const f = fleet({
    upstreams: [
      { name: 'a', script: () => new Promise<never>(() => undefined) },
      { name: 'b', script: saying(() => shows({ tools: {} }, { instructions: 'b is here' })) },
    ],
  });
  let told: Awaited<ReturnType<typeof f.ask>> | undefined;
  void f.ask('server/discover').then((got) => {
    told = got;
  });
  for (let i = 0; i < 5; i++) await turn();
  t.mock.timers.tick(DISCOVER_WAIT_MS);
  for (let i = 0; i < 5; i++) await turn();
  assert.equal(told?.status, 200);
  assert.equal(told.result.instructions, '## b\n\nb is here');
  assert.equal(told.result.ttlMs, 0);
  assert.doesNotMatch(told.headers['cache-status'] ?? '', /hit/);
});

test('R35 R48: the probes of an upstream that is down leave nothing behind, and end with stop()', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const observer = {
    cacheRequest: () => undefined,
    cacheBypass: () => undefined,
    collapsed: () => undefined,
    cacheStore: () => undefined,
    cacheEviction: () => undefined,
    cacheOperation: () => undefined,
    cacheInvalidated: () => undefined,
  };
  const now = (): number => 0;
  const store = createMemoryStore({
    sizeBytes: 1 << 20,
    maxEntryBytes: 1 << 20,
    now,
    upstreamCount: () => 1,
    observer,
  });
  const upstream = new ScriptedUpstream('a', () => ({ failure: 'connect' }), now);
  const discovery = new Discovery({
    cache: createCache({ store, now, observer }),
    now,
    wallClock: now,
    bounds: new PrivateBounds(),
    logOnce: () => undefined,
    maxEntryBytes: 1 << 20,
    version: '0',
    members: [{ rank: 0, config: upstreamConfig('a'), upstream, identity: 'a' }],
  });
  let listeners = 0;
  const { addEventListener, removeEventListener } = EventTarget.prototype;
  t.mock.method(
    EventTarget.prototype,
    'addEventListener',
    function (this: EventTarget, ...args: Parameters<typeof addEventListener>) {
      if (this instanceof AbortSignal) listeners++;
      addEventListener.apply(this, args);
    },
  );
  t.mock.method(
    EventTarget.prototype,
    'removeEventListener',
    function (this: EventTarget, ...args: Parameters<typeof removeEventListener>) {
      if (this instanceof AbortSignal) listeners--;
      removeEventListener.apply(this, args);
    },
  );
  await discovery.start();
  for (let i = 0; i < 20; i++) {
    t.mock.timers.tick(60_000);
    for (let j = 0; j < 5; j++) await turn();
  }
  assert.equal(upstream.asked.length, 21);
  assert.ok(listeners <= 1, `${listeners} listeners are left`);
  discovery.stop();
  t.mock.timers.tick(600_000);
  await turn();
  assert.equal(upstream.asked.length, 21);
});

test('the union of capabilities reaches into each: what any of two offers is offered', async () => {
  const f = fleet({
    upstreams: [
      { name: 'a', script: saying(() => shows({ tools: {}, prompts: { 'com.example/y': 1 } })) },
      {
        name: 'b',
        script: saying(() =>
          shows({
            tools: { 'com.example/x': {} },
            prompts: { 'com.example/y': 2 },
          }),
        ),
      },
    ],
  });
  const { capabilities } = (await f.ask('server/discover')).result;
  assert.deepEqual(capabilities, { tools: { 'com.example/x': {} }, prompts: { 'com.example/y': 1 } });
});

test('R39: what one upstream tells of its changes is promised, unless it is not to be listened to', async () => {
  const f = fleet({
    upstreams: [
      { name: 'a', script: saying(() => shows({ tools: { listChanged: false }, resources: {} })) },
      {
        name: 'b',
        script: saying(() => shows({ tools: { listChanged: true }, resources: { subscribe: true } })),
      },
      {
        name: 'c',
        script: saying(() => shows({ tools: {}, prompts: { listChanged: true } })),
        config: { subscribe: false },
      },
    ],
  });
  const { capabilities } = (await f.ask('server/discover')).result;
  assert.deepEqual(capabilities, {
    tools: { listChanged: true },
    resources: { subscribe: true },
    prompts: {},
  });
});

test('R46: an upstream writes no line of the start-up summary', () => {
  const seen = {
    capabilities: new Map([
      ['x\nlistening  mcp     http://evil', '{}'],
      [`\u001b[2J\u202e${'y'.repeat(10_000)}`, '{}'],
    ]),
    instructions: undefined,
    versions: ['2026-07-28', '\r\nlistening  status  http://evil'],
  };
  const text = startupSummary({
    // biome-ignore lint/suspicious/noExplicitAny: only what is printed
    config: {} as any,
    addresses: { mcp: 'http://127.0.0.1:1', status: 'http://127.0.0.1:2', admin: 'http://127.0.0.1:3' },
    version: '1',
    revision: '2026-07-28',
    routes: [
      {
        config: { path: '/mcp' },
        members: [{ rank: 0, config: { name: 'a' } }],
        discovery: { standing: () => ({ kind: 'seen', seen }) },
        // biome-ignore lint/suspicious/noExplicitAny: only what is printed
      } as any,
    ],
  });
  assert.deepEqual(
    text.split('\n').filter((line) => line.startsWith('listening')),
    ['mcp     http://127.0.0.1:1', 'status  http://127.0.0.1:2', 'admin   http://127.0.0.1:3'].map(
      (to) => `listening  ${to}`,
    ),
  );
  assert.match(text, /^[\n\x20-\x7e]*$/);
  assert.ok(text.length < 2_000);
});
