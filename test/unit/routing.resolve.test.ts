import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LEARN_MS, LISTED_MS } from '../../src/aggregate/learn.ts';
import type { Exchange } from '../../src/protocol/exchange.ts';
import { readHead } from '../../src/protocol/headers.ts';
import type { Signal } from '../../src/protocol/signal.ts';
import { Routing } from '../../src/routing/resolve.ts';
import { LOOKUP_STEP_COUNT_MAX, PAGE_STEP_COUNT_MAX, pageBudget } from '../../src/routing/template-index.ts';
import { meta, mirrored, rawHeaders, rpc, until } from '../support/mcp.ts';
import {
  catalogue,
  type Fleet,
  fleet,
  resources,
  type Script,
  type Scripted,
  upstreamConfig,
  walk,
} from '../support/scripted.ts';

const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const none = { resources: [], tools: [], prompts: [] };

const two = (a: Script, b: Script, rest: Omit<Parameters<typeof fleet>[0], 'upstreams'> = {}): Fleet =>
  fleet({
    ...rest,
    upstreams: [
      { name: 'a', script: a },
      { name: 'b', script: b },
    ],
  });

/** The ids that a list names, page by page. */
async function listed(f: Fleet, method: string, field: string, id: string): Promise<string[]> {
  const pages = await walk(f, method);
  return pages.flatMap(({ result }) =>
    (result[field] as Record<string, string>[]).map((item) => item[id] as string),
  );
}

const listings = (f: Fleet, rank: number): number =>
  (f.upstreams[rank]?.asked ?? []).filter((one) => one.includes('/list')).length;

/** Lists what it is told to, with no time to live. */
function moving(catalogued: () => Parameters<typeof catalogue>[0]): Script {
  return (method, params, request) => catalogue({ ttlMs: 0, ...catalogued() })(method, params, request);
}

/** Sends a tool call whose client can leave. */
async function call(f: Fleet, name: string, signal: Signal): Promise<unknown> {
  const exchange: Exchange = { signal, facts: {}, notify: () => undefined };
  const bytes = new TextEncoder().encode(JSON.stringify(rpc('tools/call', { name })));
  return f.handle(
    {
      route: '/mcp',
      head: readHead(rawHeaders(mirrored('tools/call', name))),
      body: { kind: 'whole', bytes },
    },
    exchange,
  );
}

describe('what moves to another upstream', () => {
  test('a resource is listed and read where it is now', async () => {
    let moved = false;
    const f = two(
      moving(() => ({ resources: moved ? [] : resources('x', 1) })),
      moving(() => ({ resources: moved ? resources('x', 1) : [] })),
    );
    assert.deepEqual(await listed(f, 'resources/list', 'resources', 'uri'), ['x://0']);
    moved = true;
    assert.deepEqual(await listed(f, 'resources/list', 'resources', 'uri'), ['x://0']);
    assert.equal((await f.ask('resources/read', { uri: 'x://0' })).result.contents[0].text, 'of x://0');
  });

  test('one of a list of several pages is forgotten when the list was walked to its end', async () => {
    let moved = false;
    const all = resources('x', 25);
    const f = two(
      moving(() => ({ resources: moved ? all.slice(0, 24) : all })),
      moving(() => ({ resources: moved ? all.slice(24) : [] })),
    );
    assert.equal((await listed(f, 'resources/list', 'resources', 'uri')).length, 25);
    moved = true;
    assert.equal((await listed(f, 'resources/list', 'resources', 'uri')).length, 25);
    assert.equal(f.routing.ownerOfListed('resources', 'x://24', 'c'), 1);
  });

  test('a template no longer owns what it matches', async () => {
    let moved = false;
    const f = two(
      moving(() => ({ templates: moved ? [] : ['x://{id}'] })),
      moving(() => ({ resources: resources('x', 1) })),
    );
    await f.ask('resources/templates/list');
    assert.deepEqual(await listed(f, 'resources/list', 'resources', 'uri'), []);
    moved = true;
    await f.ask('resources/templates/list');
    assert.deepEqual(await listed(f, 'resources/list', 'resources', 'uri'), ['x://0']);
  });

  test('R17: an upstream that says it has none any more has none', async () => {
    let gone = false;
    const f = two(
      (method, params, request) =>
        gone && method === 'tools/list'
          ? { error: { code: -32601, message: 'none' } }
          : catalogue({ tools: ['t'], ttlMs: 0 })(method, params, request),
      catalogue({ tools: ['t'], ttlMs: 0 }),
    );
    await f.ask('tools/list');
    assert.equal(f.routing.ownerOfListed('tools', 't', 'c'), 0);
    gone = true;
    await f.ask('tools/list');
    assert.equal(f.routing.ownerOfListed('tools', 't', 'c'), 1);
  });
});

describe('4.6 listing first', () => {
  test('what was listed without a capability is not known with it', async () => {
    const script: Script = (method, params, request) => {
      const { [CAPABILITIES]: capabilities } = params._meta as Record<string, { elicitation?: unknown }>;
      return catalogue({ tools: capabilities?.elicitation ? ['asks'] : [] })(method, params, request);
    };
    const f = two(script, catalogue({}));
    await f.ask('tools/call', { name: 'nope' });
    await assert.rejects(
      f.ask('tools/call', { name: 'asks', _meta: meta({ [CAPABILITIES]: { elicitation: {} } }) }),
      /not scripted/,
      'routed to the upstream that has it',
    );
  });

  test('R15: after a refused cursor the list is walked again', async () => {
    let version = 1;
    const tool = (name: string) => ({ name, inputSchema: { type: 'object' } });
    const hints = { ttlMs: 3_600_000, cacheScope: 'public' };
    const script: Script = (method, params, request): Scripted => {
      if (method !== 'tools/list') return catalogue({})(method, params, request) as Scripted;
      if (params.cursor === undefined)
        return { result: { tools: [tool('first')], nextCursor: `v${version}`, ...hints } };
      if (params.cursor !== `v${version}`) return { error: { code: -32602, message: 'gone' } };
      return { result: { tools: [tool(`t${version}`)], ...hints, ttlMs: 0 } };
    };
    const f = two(script, catalogue({}), { route: { pageSize: 1 } });
    const { nextCursor } = (await f.ask('tools/list')).result;
    assert.equal((await f.ask('tools/call', { name: 'nope' })).error?.code, -32602);
    version = 2;
    assert.equal((await f.ask('tools/list', { cursor: nextCursor })).error?.code, -32602);
    await assert.rejects(f.ask('tools/call', { name: 't2' }), /not scripted/);
  });

  test('R28, R31: a list that changes while it is walked is walked again: a name is new, or unknown, and no failure', async () => {
    let changes = 0;
    let most = 1;
    const f: Fleet = two(catalogue({}), async (method, params, request) => {
      if (method !== 'tools/list') return catalogue({})(method, params, request);
      const tools = changes === 0 ? [] : ['new'];
      if (changes < most) {
        changes++;
        // As its notification does, while the answer is on its way.
        void f.cache.invalidateMethod('b', 'tools/list');
        f.routing.ownership.forgetListed('tools', 1);
      }
      return catalogue({ tools })(method, params, request);
    });
    await assert.rejects(
      f.ask('tools/call', { name: 'new' }),
      /not scripted/,
      'routed to the one that has it',
    );
    assert.equal(listings(f, 1), 2);
    // One that never stops changing is taken for what it was last.
    most = 100;
    f.routing.ownership.forgetListed('tools', 1);
    await f.cache.invalidateMethod('b', 'tools/list');
    const unknown = await f.ask('tools/call', { name: 'unknown' });
    assert.deepEqual([unknown.status, unknown.error?.code], [200, -32602]);
    assert.equal(listings(f, 1), 5);
  });

  test('R31: of a list that was cut short, an unknown name is a failure; it is not walked again meanwhile', async () => {
    const f: Fleet = two(
      (method, params, request) => {
        if (method !== 'tools/list') return catalogue({})(method, params, request);
        f.tick(LEARN_MS / 5);
        return { result: { tools: [], nextCursor: `${Number(params.cursor ?? 0) + 1}`, ttlMs: 0 } };
      },
      catalogue({ tools: ['b'] }),
    );
    const unknown = () => f.ask('tools/call', { name: 'unknown' });
    assert.deepEqual([(await unknown()).status, (await unknown()).error?.code], [502, -32603]);
    const before = listings(f, 0);
    assert.equal((await unknown()).status, 502);
    assert.equal(listings(f, 0), before);
    f.tick(LISTED_MS);
    await unknown();
    assert.ok(listings(f, 0) > before);
  });

  test('a page that is asked for late has the time that a client’s list would give it', async () => {
    const deadlines: (number | undefined)[] = [];
    const f: Fleet = two((method, params, request) => {
      if (method !== 'tools/list') return catalogue({})(method, params, request);
      deadlines.push(request.deadlineMs);
      f.tick(LEARN_MS - 1);
      return catalogue({ tools: ['t', 'u'], pageSize: 1 })(method, params, request);
    }, catalogue({}));
    await f.ask('tools/call', { name: 'unknown' });
    assert.deepEqual(deadlines, [LEARN_MS, LEARN_MS]);
  });

  /** Upstream a answers a list when it is released. */
  function held(): { f: Fleet; signals: Signal[]; release: () => void } {
    const signals: Signal[] = [];
    let release: () => void = () => undefined;
    const answered = new Promise<void>((resolve) => {
      release = resolve;
    });
    const script: Script = async (method, params, request) => {
      if (method === 'tools/list') {
        signals.push(request.signal);
        await answered;
      }
      return catalogue({ tools: ['t'] })(method, params, request);
    };
    return { f: two(script, catalogue({})), signals, release };
  }

  test('R35: when the last who waits has left, the list is no longer asked for', async () => {
    const { f, signals } = held();
    const [first, second] = [new AbortController(), new AbortController()];
    const calls = [first, second].map(({ signal }) => call(f, 'x', signal));
    await until(() => signals.length === 1, 'the list to be asked for');
    first.abort();
    await calls[0];
    assert.equal(signals[0]?.aborted, false);
    second.abort();
    await calls[1];
    await until(() => signals[0]?.aborted === true, 'the request to be aborted');
  });

  test('R23: who comes after the last has left asks anew', async () => {
    const { f, signals, release } = held();
    const first = new AbortController();
    const left = call(f, 'x', first.signal);
    await until(() => signals.length === 1, 'the list to be asked for');
    first.abort();
    await left;
    const told = f.ask('tools/call', { name: 'x' });
    await until(() => signals.length === 2, 'the list to be asked for again');
    release();
    assert.equal((await told).error?.code, -32602);
  });
});

describe('4.7 asking around', () => {
  test('R22: a caller with any forwarded header is not taken from door to door', async () => {
    const config = { forwardHeaders: ['x-session-token'] };
    const f = fleet({
      upstreams: ['a', 'b'].map((name) => ({ name, script: catalogue({}), config })),
    });
    const told = await f.ask('resources/read', { uri: 'q://1' }, undefined, { 'x-session-token': 'SECRET' });
    assert.equal(told.error?.code, -32602);
    const reads = f.upstreams.flatMap(({ asked }) => asked.filter((one) => one.startsWith('resources/read')));
    assert.deepEqual(reads, []);
    await f.ask('resources/read', { uri: 'q://1' });
    assert.ok(f.upstreams.every(({ asked }) => asked.includes('resources/read q://1')));
  });

  test('a list that names it later goes before what was found so', async () => {
    let lists = false;
    const has = (uri: unknown) => uri === 'x://0';
    const a: Script = (method, params, request) =>
      method === 'resources/read' && has(params.uri)
        ? { result: { contents: [{ uri: params.uri, text: 'of a' }], ttlMs: 0 } }
        : catalogue({})(method, params, request);
    const f = two(
      a,
      moving(() => ({ resources: lists ? resources('x', 1) : [] })),
    );
    assert.equal((await f.ask('resources/read', { uri: 'x://0' })).result.contents[0].text, 'of a');
    lists = true;
    assert.deepEqual(await listed(f, 'resources/list', 'resources', 'uri'), ['x://0']);
    assert.equal((await f.ask('resources/read', { uri: 'x://0' })).result.contents[0].text, 'of x://0');
  });
});

test('a completion for a template that is claimed word for word goes to its claimant', async () => {
  const completing: Script = (method, params, request) =>
    method === 'completion/complete'
      ? { result: { completion: { values: ['v'] } } }
      : catalogue({ templates: ['docs://item/{id}'] })(method, params, request);
  const claiming = (name: string, script: Script, claim: string) => ({
    name,
    script,
    config: { claims: { ...none, resources: [claim] } },
  });
  const f = fleet({
    upstreams: [
      claiming('a', catalogue({}), 'file:///other/**'),
      claiming('b', completing, 'docs://item/{id}'),
    ],
  });
  const told = await f.ask('completion/complete', {
    ref: { type: 'ref/resource', uri: 'docs://item/{id}' },
    argument: { name: 'id', value: '' },
  });
  assert.deepEqual(told.result?.completion.values, ['v']);
});

describe('rules and lists', () => {
  const byRegion = { method: 'tools/call', name: undefined, headers: { 'mcp-param-region': 'eu-*' } };
  const byName = { method: 'tools/call', name: 'w*', headers: {} };
  const tools = (f: Fleet) => listed(f, 'tools/list', 'tools', 'name');

  test('what a rule on headers can reach is listed, although another rule has its name', async () => {
    const f = two(catalogue({}), catalogue({ tools: ['weather'] }), {
      route: {
        rules: [
          { ...byRegion, upstream: 'b' },
          { ...byName, upstream: 'a' },
        ],
      },
    });
    assert.deepEqual(await tools(f), ['weather']);
  });

  test('what both rules can reach is listed once, from the earlier upstream that has it', async () => {
    for (const [header, name] of [
      ['b', 'a'],
      ['a', 'b'],
    ] as const) {
      const f = two(catalogue({ tools: ['weather', 'x'] }), catalogue({ tools: ['weather'] }), {
        route: {
          rules: [
            { ...byRegion, upstream: header },
            { ...byName, upstream: name },
          ],
        },
      });
      assert.deepEqual(await tools(f), ['weather', 'x']);
      assert.deepEqual(f.dropped, [['b', 'duplicate']]);
    }
  });

  test('what no rule reaches because an earlier one takes it is not listed', async () => {
    const f = two(catalogue({}), catalogue({ tools: ['weather'] }), {
      route: {
        rules: [
          { ...byName, upstream: 'a' },
          { ...byRegion, upstream: 'b' },
        ],
      },
    });
    assert.deepEqual(await tools(f), []);
  });
});

describe('templates that cost much', () => {
  /** A route of three; the first lists nothing but templates that are open at every character of a URI. */
  function costly(): Routing {
    const configs = ['a', 'b', 'c'].map((name) => upstreamConfig(name));
    const route = {
      path: '/mcp',
      upstreams: ['a', 'b', 'c'],
      rules: [],
      partial: 'allow',
      pageSize: 1_000,
      cache: true,
      legacyClients: true,
    } as const;
    const routing = new Routing(route, configs);
    const templates = Array.from({ length: 4_000 }, (_, at) => `b://{+a:${1_000 + at}}`);
    routing.ownership.learn('templates', { kind: 'everybody' }, 0, templates, {});
    return routing;
  }
  const uris = Array.from({ length: 1_000 }, (_, at) => `b://${'0123456789x'.repeat(8)}${at} `);

  test('R18: a page of a later upstream costs a bounded number of steps', () => {
    const routing = costly();
    const budget = pageBudget();
    for (const uri of uris) routing.ownerOfListed('resources', uri, 'c', { rank: 1, budget });
    assert.ok(budget.stepsLeft <= 0 && budget.stepsLeft > -4 * LOOKUP_STEP_COUNT_MAX, `${budget.stepsLeft}`);
  });

  test('R18: an upstream’s items cost nothing of what comes behind it', () => {
    const routing = costly();
    const budget = pageBudget();
    for (const uri of uris) routing.ownerOfListed('resources', uri, 'c', { rank: 0, budget });
    routing.ownership.learn('resources', { kind: 'everybody' }, 0, uris, {});
    for (const uri of uris)
      assert.equal(routing.ownerOfListed('resources', uri, 'c', { rank: 1, budget }), 0);
    assert.equal(budget.stepsLeft, PAGE_STEP_COUNT_MAX);
  });
});
