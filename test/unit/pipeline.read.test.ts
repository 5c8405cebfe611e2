import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ReadRequest } from '../../src/upstream/types.ts';
import { catalogue, type Fleet, fleet, resources, type Script, type Scripted } from '../support/scripted.ts';

const read = (uri: string) => ({ uri });
const reads = (asked: readonly string[]): string[] => asked.filter((one) => one.startsWith('resources/read'));

/** A script that answers reads with who asked and how often it was asked. */
function counting(
  options: { ttlMs?: unknown; scope?: string; wrap?: (text: string) => unknown } = {},
): Script {
  let count = 0;
  const { ttlMs = 60_000, scope = 'public' } = options;
  return (method, params, request) => {
    if (method !== 'resources/read') return catalogue({})(method, params, request);
    count++;
    const text = `${request.headers.authorization ?? 'nobody'} ${count}`;
    return { result: { contents: [{ uri: params.uri, text }], ttlMs, cacheScope: scope } };
  };
}

test('R1: the wrapped and the plain spelling of a name share a cache entry', async () => {
  const f = fleet({ upstreams: [{ name: 'a', script: counting() }] });
  const first = await f.ask('resources/read', read('res://x'));
  const wrapped = { 'mcp-name': `=?base64?${Buffer.from('res://x').toString('base64')}?=` };
  const second = await f.ask('resources/read', read('res://x'), undefined, wrapped);
  assert.equal(first.headers['cache-status'], 'headgate; fwd=uri-miss; stored');
  assert.equal(second.headers['cache-status'], 'headgate; hit; ttl=60; detail=memory');
  assert.deepEqual(second.result.contents, first.result.contents);
});

test('R10: URIs that differ by case, percent-encoding or normalisation are different resources', async () => {
  const f = fleet({ upstreams: [{ name: 'a', script: counting() }] });
  for (const uri of ['res://a/x', 'res://a/X', 'res://a/%78', 'res://a/é', 'res://a/e\u0301', 'res://a/x/'])
    await f.ask('resources/read', read(uri));
  assert.equal(reads(f.upstreams[0]?.asked ?? []).length, 6);
});

test('R27: a hit at +50 s of 60 s says 10 s, and its Age', async () => {
  const f = fleet({ upstreams: [{ name: 'a', script: counting() }] });
  await f.ask('resources/read', read('res://x'));
  f.tick(50_000);
  const hit = await f.ask('resources/read', read('res://x'));
  assert.equal(hit.result.ttlMs, 10_000);
  assert.equal(hit.headers.age, '50');
  f.tick(10_000);
  assert.match(hit.headers['cache-status'] ?? '', /hit/);
  assert.equal(
    (await f.ask('resources/read', read('res://x'))).headers['cache-status'],
    'headgate; fwd=stale; stored',
  );
});

test('R27 R47: what belongs to one request, its trace above all, is not replayed to another', async () => {
  const script: Script = (method, params) =>
    method === 'resources/read'
      ? {
          result: {
            contents: [{ uri: params.uri, text: 'x' }],
            ttlMs: 60_000,
            cacheScope: 'public',
            _meta: {
              traceparent: 'T',
              progressToken: 5,
              'io.modelcontextprotocol/subscriptionId': 1,
              'acme/kept': 1.5,
            },
          },
        }
      : catalogue({})(method, params, undefined as never);
  const f = fleet({ upstreams: [{ name: 'a', script }] });
  assert.equal((await f.ask('resources/read', read('res://x'))).result._meta.traceparent, 'T');
  assert.deepEqual((await f.ask('resources/read', read('res://x'))).result._meta, { 'acme/kept': 1.5 });
});

test('R8: a hit carries the id of the one who asks, in its own spelling', async () => {
  const f = fleet({ upstreams: [{ name: 'a', script: counting() }] });
  await f.ask('resources/read', read('res://x'));
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 0,
    method: 'resources/read',
    params: {
      uri: 'res://x',
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  });
  const { readHead } = await import('../../src/protocol/headers.ts');
  const { mirrored, rawHeaders } = await import('../support/mcp.ts');
  const reply = await f.handle(
    {
      route: '/mcp',
      head: readHead(rawHeaders(mirrored('resources/read', 'res://x'))),
      body: {
        kind: 'whole',
        bytes: new TextEncoder().encode(body.replace('"id":0', '"id":9007199254740993')),
      },
    },
    { signal: new AbortController().signal, facts: {}, notify: () => undefined },
  );
  assert.ok(
    reply.kind === 'answer' &&
      reply.head.includes('"id":9007199254740993,') &&
      (reply.headers['cache-status'] ?? '').includes('hit'),
  );
});

for (const [what, a, b] of [
  ['Authorization', { authorization: 'Bearer a' }, { authorization: 'Bearer b' }],
  ['the case of Bearer', { authorization: 'Bearer a' }, { authorization: 'bearer a' }],
  ['Cookie', { cookie: 'a=1' }, { cookie: 'a=2' }],
  ['X-Api-Key', { 'x-api-key': '1' }, { 'x-api-key': '2' }],
  ['Proxy-Authorization', { 'proxy-authorization': 'Basic a' }, {}],
  ['a partition header', { 'x-tenant': '1' }, { 'x-tenant': '2' }],
  ['a forwarded header', { 'x-user': '1' }, { 'x-user': '2' }],
  [
    'one of two credentials',
    { authorization: 'Bearer a', cookie: 's=1' },
    { authorization: 'Bearer a', cookie: 's=2' },
  ],
  ['having a credential at all', { authorization: 'Bearer a' }, {}],
] as const) {
  test(`R22: callers who differ by ${what} share no private answer`, async () => {
    const f = fleet({
      upstreams: [
        { name: 'a', script: counting({ scope: 'private' }), config: { forwardHeaders: ['x-user'] } },
      ],
      partitionHeaders: ['x-tenant'],
    });
    const first = await f.ask('resources/read', read('res://x'), undefined, a);
    const other = await f.ask('resources/read', read('res://x'), undefined, b);
    assert.notDeepEqual(other.result.contents, first.result.contents);
    assert.match(
      (await f.ask('resources/read', read('res://x'), undefined, a)).headers['cache-status'] ?? '',
      /hit/,
    );
  });
}

test('R22: a value cannot imitate the next header', async () => {
  const f = fleet({ upstreams: [{ name: 'a', script: counting({ scope: 'private' }) }] });
  const one = await f.ask('resources/read', read('res://x'), undefined, { authorization: 'a;cookie:1:b' });
  const two = await f.ask('resources/read', read('res://x'), undefined, { authorization: 'a', cookie: 'b' });
  assert.notDeepEqual(one.result.contents, two.result.contents);
});

test('the values of forwarded headers tell public answers apart too', async () => {
  const f = fleet({ upstreams: [{ name: 'a', script: counting(), config: { forwardHeaders: ['x-lang'] } }] });
  const one = await f.ask('resources/read', read('res://x'), undefined, { 'x-lang': 'de' });
  const two = await f.ask('resources/read', read('res://x'), undefined, { 'x-lang': 'fr' });
  assert.notDeepEqual(one.result.contents, two.result.contents);
});

test('a public answer is served to every caller', async () => {
  const f = fleet({ upstreams: [{ name: 'a', script: counting() }] });
  const one = await f.ask('resources/read', read('res://x'), 'Bearer a');
  const two = await f.ask('resources/read', read('res://x'), 'Bearer b');
  assert.deepEqual(two.result.contents, one.result.contents);
});

test('R47: client capabilities and unknown _meta count for the key; who asks, tracing and progress do not', async () => {
  const f = fleet({ upstreams: [{ name: 'a', script: counting() }] });
  const asked = async (extra: Record<string, unknown>): Promise<boolean> => {
    const { meta } = await import('../support/mcp.ts');
    const told = await f.ask('resources/read', { uri: 'res://x', _meta: meta(extra) });
    return (told.headers['cache-status'] ?? '').includes('hit');
  };
  assert.equal(await asked({}), false);
  assert.equal(
    await asked({
      progressToken: 1,
      traceparent: '00-1',
      'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
      'io.modelcontextprotocol/logLevel': 'debug',
    }),
    true,
  );
  assert.equal(await asked({ 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } }), false);
  assert.equal(await asked({ 'acme/tenant': 1 }), false);
});

test('R47: trace context goes upstream as it came, in _meta and in the headers, well formed or not', async () => {
  const { meta } = await import('../support/mcp.ts');
  for (const [inMeta, inHeader] of [
    [
      '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      '00-ffffffffffffffffffffffffffffffff-b7ad6b7169203331-00',
    ],
    ['no trace at all', '00-1'],
    [7, undefined],
  ] as const) {
    let sent: ReadRequest | undefined;
    const usual = counting();
    const script: Script = (method, params, request) => {
      if (method === 'resources/read') sent = request;
      return usual(method, params, request);
    };
    const f = fleet({ upstreams: [{ name: 'a', script }] });
    const told = await f.ask(
      'resources/read',
      { uri: 'res://x', _meta: meta({ traceparent: inMeta, tracestate: 'a=1', baggage: 'b=2' }) },
      undefined,
      inHeader === undefined ? {} : { traceparent: inHeader },
    );
    assert.equal(told.status, 200);
    const { _meta } = JSON.parse(sent?.params ?? '{}') as { _meta: Record<string, unknown> };
    assert.deepEqual([_meta.traceparent, _meta.tracestate, _meta.baggage], [inMeta, 'a=1', 'b=2']);
    assert.equal(sent?.headers.traceparent, inHeader);
  }
});

test('R24: entries are keyed by the configured upstream, whatever serverInfo or contents say', async () => {
  const says =
    (text: string): Script =>
    (method, params, request) =>
      method === 'resources/read'
        ? {
            result: {
              contents: [{ uri: 'res://other', text }],
              ttlMs: 1e15,
              cacheScope: 'public',
              _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'same', version: '1' } },
            },
          }
        : catalogue({})(method, params, request);
  const f = fleet({
    upstreams: [
      { name: 'a', script: says('a'), config: { claims: { resources: ['a://**'], tools: [], prompts: [] } } },
      { name: 'b', script: says('b'), config: { claims: { resources: ['b://**'], tools: [], prompts: [] } } },
    ],
  });
  assert.equal((await f.ask('resources/read', read('a://x'))).result.contents[0].text, 'a');
  assert.equal((await f.ask('resources/read', read('b://x'))).result.contents[0].text, 'b');
  const hit = await f.ask('resources/read', read('a://x'));
  assert.equal(hit.result.ttlMs, 86_400_000, 'a huge ttl is clamped');
  assert.equal((await f.ask('resources/read', read('res://other'))).error?.code, -32602);
});

test('a retry of a round-trip neither reads nor fills the cache', async () => {
  const f = fleet({ upstreams: [{ name: 'a', script: counting() }] });
  await f.ask('resources/read', read('res://x'));
  for (const extra of [{ inputResponses: {} }, { requestState: '' }, { inputResponses: null }]) {
    const told = await f.ask('resources/read', { uri: 'res://x', ...extra });
    assert.equal(told.headers['cache-status'], 'headgate; fwd=bypass; detail=mrtr');
  }
  assert.equal(reads(f.upstreams[0]?.asked ?? []).length, 4);
  assert.match((await f.ask('resources/read', read('res://x'))).result.contents[0].text, / 1$/);
});

test('input_required passes untouched and is never stored', async () => {
  const result = {
    resultType: 'input_required',
    inputRequests: { q: { method: 'elicitation/create', params: {} } },
    requestState: 'opaque',
  };
  const f = fleet({
    upstreams: [
      {
        name: 'a',
        script: (method, params) =>
          method === 'resources/read' ? { result } : catalogue({})(method, params, undefined as never),
      },
    ],
  });
  for (let round = 0; round < 2; round++)
    assert.deepEqual((await f.ask('resources/read', read('res://x'))).result, result);
  assert.equal(reads(f.upstreams[0]?.asked ?? []).length, 2);
});

test('R20: an unknown resultType on a cacheable method is an error and is not stored', async () => {
  const f = fleet({
    upstreams: [
      {
        name: 'a',
        script: (method, params) =>
          method === 'resources/read'
            ? { result: { resultType: 'task', contents: [], ttlMs: 9e9, cacheScope: 'public' } }
            : catalogue({})(method, params, undefined as never),
      },
    ],
  });
  for (let round = 0; round < 2; round++) {
    const told = await f.ask('resources/read', read('res://x'));
    assert.equal(told.error?.code, -32603);
    assert.equal(told.status, 502);
  }
  assert.equal(reads(f.upstreams[0]?.asked ?? []).length, 2);
});

test('R31: not found, empty text and failure are three things', async () => {
  const answers: Record<string, unknown> = {
    'res://none': { error: { code: -32602, message: 'Resource not found', data: { uri: 'res://none' } } },
    'res://old': { error: { code: -32002, message: 'Resource not found' } },
    'res://empty': {
      result: { contents: [{ uri: 'res://empty', text: '' }], ttlMs: 60_000, cacheScope: 'public' },
    },
    'res://down': { failure: 'http_5xx' },
    'res://late': { failure: 'timeout' },
  };
  const f = fleet({
    upstreams: [
      {
        name: 'a',
        script: (method, params) =>
          method === 'resources/read'
            ? (answers[params.uri as string] as never)
            : catalogue({})(method, params, undefined as never),
      },
    ],
  });
  const none = await f.ask('resources/read', read('res://none'));
  assert.deepEqual([none.status, none.error?.code, none.error?.data], [200, -32602, { uri: 'res://none' }]);
  const old = await f.ask('resources/read', read('res://old'));
  assert.deepEqual([old.status, old.error?.code, old.error?.data], [200, -32602, { uri: 'res://old' }]);
  await f.ask('resources/read', read('res://empty'));
  const empty = await f.ask('resources/read', read('res://empty'));
  assert.equal(empty.result.contents[0].text, '');
  assert.match(empty.headers['cache-status'] ?? '', /hit/);
  const down = await f.ask('resources/read', read('res://down'));
  assert.deepEqual([down.status, down.error?.code], [502, -32603]);
  const late = await f.ask('resources/read', read('res://late'));
  assert.deepEqual([late.status, late.error?.code], [504, -32603]);
});

for (const [code, status] of [
  [-32021, 400],
  [-32099, 200],
  [7, 200],
  [-32603, 200],
] as const) {
  test(`R37: an upstream's method error ${code} is passed on with code, message and data`, async () => {
    const f = fleet({
      upstreams: [
        {
          name: 'a',
          script: (method, params) =>
            method === 'resources/read'
              ? { error: { code, message: 'm', data: { big: 1 } } }
              : catalogue({})(method, params, undefined as never),
        },
      ],
    });
    const told = await f.ask('resources/read', read('res://x'));
    assert.deepEqual([told.status, told.error], [status, { code, message: 'm', data: { big: 1 } }]);
  });
}

for (const said of [
  { error: { code: -32020, message: 'secret' } },
  { error: { code: -32022, message: 'secret' } },
  { refused: 401, challenge: 'Bearer realm="secret"' },
  { refused: 403 },
  { refused: 404 },
  { refused: 421 },
] as const) {
  test(`R37: ${JSON.stringify(said)} of an upstream is the gateway's own trouble: -32603 with 502`, async () => {
    const f = fleet({
      upstreams: [
        {
          name: 'a',
          script: (method, params) =>
            method === 'resources/read' ? said : catalogue({})(method, params, undefined as never),
        },
      ],
    });
    const told = await f.ask('resources/read', read('res://x'));
    assert.deepEqual([told.status, told.error?.code], [502, -32603]);
    assert.doesNotMatch(JSON.stringify([told.error, told.headers]), /secret/);
  });
}

test('R37: 429 of an upstream becomes 503 with Retry-After', async () => {
  const f = fleet({
    upstreams: [
      {
        name: 'a',
        script: (method, params) =>
          method === 'resources/read' ? { refused: 429 } : catalogue({})(method, params, undefined as never),
      },
    ],
  });
  const told = await f.ask('resources/read', read('res://x'));
  assert.equal(told.status, 503);
  assert.equal(told.headers['retry-after'], '1');
});

test('R37: where credentials are forwarded, 401 and its challenge pass', async () => {
  const f = fleet({
    upstreams: [
      {
        name: 'a',
        config: { auth: { type: 'forward', shared: false } },
        script: () => ({ refused: 401, challenge: 'Bearer resource_metadata="x"' }),
      },
    ],
  });
  for (const [method, params] of [
    ['resources/read', read('res://x')],
    ['resources/list', {}],
    ['server/discover', {}],
  ] as const) {
    const told = await f.ask(method, params, 'Bearer bad');
    assert.equal(told.status, 401, method);
    assert.equal(told.headers['www-authenticate'], 'Bearer resource_metadata="x"', method);
  }
});

test('R37: nothing of an upstream address reaches a client', async () => {
  const f = fleet({ upstreams: [{ name: 'a', script: () => ({ failure: 'connect' }) }] });
  const told = await f.ask('resources/read', read('res://x'));
  assert.doesNotMatch(JSON.stringify(told), /secret-address|invalid\/mcp/);
});

// Routing, design section 4.

const two = (
  a: Script,
  b: Script,
  rest: Partial<Parameters<typeof fleet>[0]> & { a?: object; b?: object } = {},
) =>
  fleet({
    ...rest,
    upstreams: [
      { name: 'a', script: a, config: rest.a ?? {} },
      { name: 'b', script: b, config: rest.b ?? {} },
    ],
  });

test('4.1 a rule of the route goes before every claim', async () => {
  const f = two(catalogue({ resources: resources('x', 1) }), catalogue({ resources: resources('x', 1) }), {
    a: { claims: { resources: ['x://**'], tools: [], prompts: [] } },
    route: { rules: [{ method: 'resources/read', name: 'x://**', headers: {}, upstream: 'b' }] },
  });
  await f.ask('resources/read', read('x://0'));
  assert.deepEqual(reads(f.upstreams[1]?.asked ?? []), ['resources/read x://0']);
});

test('4.2 a claim goes before what was learnt', async () => {
  const f = two(catalogue({ resources: resources('x', 1) }), catalogue({ resources: resources('x', 1) }), {
    b: { claims: { resources: ['x://**'], tools: [], prompts: [] } },
  });
  await f.ask('resources/list');
  await f.ask('resources/read', read('x://0'));
  assert.deepEqual(reads(f.upstreams[0]?.asked ?? []), []);
});

test('4.3 an exact URI that both list is the earlier upstream’s', async () => {
  const f = two(catalogue({ resources: resources('x', 1) }), catalogue({ resources: resources('x', 1) }));
  await f.ask('resources/list');
  await f.ask('resources/read', read('x://0'));
  assert.deepEqual(reads(f.upstreams[1]?.asked ?? []), []);
});

test('4.4 a template of an earlier upstream is not taken by an exact URI of a later one', async () => {
  const f = two(catalogue({ templates: ['x://{id}'] }), catalogue({ resources: resources('x', 1) }));
  await f.ask('resources/templates/list');
  await f.ask('resources/list');
  await f.ask('resources/read', read('x://0'));
  assert.deepEqual(reads(f.upstreams[0]?.asked ?? []), ['resources/read x://0']);
});

test('4.4 a template without a literal prefix owns nothing', async () => {
  const f = two(catalogue({ templates: ['{+anything}'] }), catalogue({ resources: resources('x', 1) }));
  await f.ask('resources/read', read('x://0'));
  assert.deepEqual(reads(f.upstreams[0]?.asked ?? []), []);
});

test('4.6 a URI nobody has listed yet is found by listing, once', async () => {
  const f = two(
    catalogue({ resources: resources('x', 30), ttlMs: 0 }),
    catalogue({ resources: resources('y', 30), ttlMs: 0 }),
  );
  assert.equal((await f.ask('resources/read', read('y://29'))).result.contents[0].text, 'of y://29');
  assert.deepEqual(reads(f.upstreams[0]?.asked ?? []), []);
  const before = f.upstreams[1]?.asked.length ?? 0;
  await f.ask('resources/read', read('y://28'));
  assert.equal(f.upstreams[1]?.asked.length, before + 1);
});

test('4.7 a URI in no list is asked for in order, and remembered for its caller', async () => {
  const hidden: Script = (method, params, request) =>
    method === 'resources/read' && params.uri === 'hidden://1'
      ? { result: { contents: [{ uri: 'hidden://1', text: 'found' }], ttlMs: 0 } }
      : catalogue({ resources: resources('y', 1) })(method, params, request);
  const f = two(catalogue({ resources: resources('x', 1) }), hidden);
  assert.equal((await f.ask('resources/read', read('hidden://1'))).result.contents[0].text, 'found');
  await f.ask('resources/read', read('hidden://1'));
  assert.equal(reads(f.upstreams[0]?.asked ?? []).length, 1);
  assert.equal(reads(f.upstreams[1]?.asked ?? []).length, 2);
});

test('4.7 a caller whose credentials are forwarded is not taken from door to door', async () => {
  const f = two(catalogue({}), catalogue({}), {
    a: { auth: { type: 'forward', shared: true } },
    b: { auth: { type: 'forward', shared: true } },
  });
  assert.equal((await f.ask('resources/read', read('x://9'), 'Bearer t')).error?.code, -32602);
  assert.deepEqual(reads([...(f.upstreams[0]?.asked ?? []), ...(f.upstreams[1]?.asked ?? [])]), []);
});

test('R31: a URI nobody has is -32602 with data.uri; while an upstream cannot be asked it is a failure', async () => {
  const f = two(catalogue({}), catalogue({}));
  const told = await f.ask('resources/read', read('x://9'));
  assert.deepEqual([told.status, told.error?.code, told.error?.data], [200, -32602, { uri: 'x://9' }]);
  const half = two(() => ({ failure: 'connect' }), catalogue({}));
  const failed = await half.ask('resources/read', read('x://9'));
  assert.deepEqual([failed.status, failed.error?.code], [502, -32603]);
});

test('what one caller’s list taught is not another caller’s knowledge', async () => {
  const mine: Script = (method, params, request) =>
    catalogue({
      resources: request.headers.authorization === 'Bearer a' ? resources('secret', 1) : [],
      scope: 'private',
    })(method, params, request);
  const f = two(mine, catalogue({ resources: resources('y', 1) }), {
    a: { auth: { type: 'forward', shared: true } },
  });
  await f.ask('resources/list', {}, 'Bearer a');
  assert.equal(f.routing.ownerOfListed('resources', 'secret://0', 'anonymous'), undefined);
  assert.equal(
    (await f.ask('resources/read', read('secret://0'), 'Bearer a')).result.contents[0].text,
    'of secret://0',
  );
  assert.equal((await f.ask('resources/read', read('secret://0'), 'Bearer b')).error?.code, -32602);
});

test('a completion goes to the owner of the template, by its text', async () => {
  const completing: Script = (method, params, request) =>
    method === 'completion/complete'
      ? { result: { completion: { values: ['b'] } } }
      : catalogue({ templates: ['b://{x}'] })(method, params, request);
  const f = two(catalogue({ templates: ['a://{x}'] }), completing);
  const told = await f.ask('completion/complete', {
    ref: { type: 'ref/resource', uri: 'b://{x}' },
    argument: { name: 'x', value: '' },
  });
  assert.deepEqual(told.result.completion.values, ['b']);
  const made = await f.ask('completion/complete', {
    ref: { type: 'ref/resource', uri: 'nope://{x}' },
    argument: { name: 'x', value: '' },
  });
  assert.equal(made.error?.code, -32602);
});

test('a rule sees decoded Mcp-Param headers; a malformed one that it names is -32020 (R2)', async () => {
  const completing =
    (name: string): Script =>
    (method, params, request) =>
      method === 'completion/complete'
        ? { result: { completion: { values: [name] } } }
        : catalogue({ templates: ['x://{x}'] })(method, params, request);
  const f = two(completing('a'), completing('b'), {
    route: {
      rules: [
        {
          method: 'completion/complete',
          name: undefined,
          headers: { 'mcp-param-region': 'eu-*' },
          upstream: 'b',
        },
      ],
    },
  });
  const params = { ref: { type: 'ref/resource', uri: 'x://{x}' }, argument: { name: 'x', value: '' } };
  const value = `=?base64?${Buffer.from('eu-ü').toString('base64')}?=`;
  assert.deepEqual(
    (await f.ask('completion/complete', params, undefined, { 'mcp-param-region': value })).result.completion
      .values,
    ['b'],
  );
  assert.deepEqual(
    (await f.ask('completion/complete', params, undefined, { 'mcp-param-region': 'us-1' })).result.completion
      .values,
    ['a'],
  );
  assert.equal(
    (await f.ask('completion/complete', params, undefined, { 'mcp-param-region': '=?base64?@?=' })).error
      ?.code,
    -32020,
  );
});

// Discover, design section 5.

test('discover answers with the union while upstreams are down, with no time to live', async () => {
  const f = two(() => ({ failure: 'connect' }), catalogue({}));
  const told = await f.ask('server/discover');
  assert.equal(told.status, 200);
  assert.deepEqual(Object.keys(told.result.capabilities).sort(), [
    'completions',
    'prompts',
    'resources',
    'tools',
  ]);
  assert.equal(told.result.ttlMs, 0);
  assert.equal(told.result._meta['io.modelcontextprotocol/serverInfo'].name, 'headgate');
});

test('discover remembers an upstream through its outage, and says each one’s instructions under its name', async () => {
  let down = false;
  const script: Script = (method) =>
    down || method !== 'server/discover'
      ? { failure: 'connect' }
      : {
          result: {
            supportedVersions: ['2026-07-28'],
            capabilities: { resources: { subscribe: true, listChanged: true, x: 1 } },
            instructions: 'read me',
            ttlMs: 0,
          },
        };
  const f = fleet({ upstreams: [{ name: 'docs', script }] });
  await f.ask('server/discover');
  down = true;
  f.tick(120_000);
  const told = await f.ask('server/discover');
  assert.deepEqual(told.result.capabilities, { resources: { subscribe: true, listChanged: true, x: 1 } });
  assert.equal(told.result.instructions, '## docs\n\nread me');
});

// Isolation, as a property: see also cache.model.test.ts.

test('R22 R23: two callers never receive each other’s private bytes, for arbitrary interleavings', async () => {
  const step = fc.record({
    caller: fc.constantFrom('Bearer a', 'Bearer b', undefined),
    scope: fc.constantFrom('public', 'private', 'Public', undefined),
    ttlMs: fc.constantFrom(0, 500, 5_000),
    tick: fc.nat(2_000),
    together: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      let hints: { ttlMs: number; cacheScope?: string | undefined } = { ttlMs: 0 };
      const madeFor = new Map<string, { caller: string; scope: string | undefined }>();
      const script: Script = async (method, params, request) => {
        if (method !== 'resources/read') return catalogue({})(method, params, request);
        const { ttlMs, cacheScope } = hints;
        await Promise.resolve();
        const text = `bytes ${madeFor.size}`;
        madeFor.set(text, { caller: request.headers.authorization ?? 'anonymous', scope: cacheScope });
        return {
          result: {
            contents: [{ uri: params.uri, text }],
            ttlMs,
            ...(cacheScope !== undefined && { cacheScope }),
          },
        };
      };
      const f = fleet({
        upstreams: [{ name: 'a', script, config: { auth: { type: 'forward', shared: false } } }],
      });
      let pending: Promise<void>[] = [];
      for (const { caller, scope, ttlMs, tick, together } of steps) {
        hints = { ttlMs, cacheScope: scope };
        f.tick(tick);
        pending.push(
          f.ask('resources/read', read('res://x'), caller).then((told) => {
            const made = madeFor.get(told.result.contents[0].text as string);
            assert.ok(made !== undefined);
            assert.ok(
              made.scope === 'public' || made.caller === (caller ?? 'anonymous'),
              `${caller} got bytes of ${made.caller}`,
            );
          }),
        );
        if (together) continue;
        await Promise.all(pending);
        pending = [];
      }
      await Promise.all(pending);
    }),
    { numRuns: 300 },
  );
});

const jwt = (exp: number): string =>
  `Bearer e30.${Buffer.from(JSON.stringify({ exp })).toString('base64url')}.sig`;

test('a private hit under a forwarded token lasts a minute at most, until its exp where that can be read', async () => {
  const forwarding = () =>
    fleet({
      upstreams: [
        {
          name: 'a',
          script: counting({ scope: 'private', ttlMs: 3_600_000 }),
          config: { auth: { type: 'forward', shared: false } },
        },
      ],
    });
  const opaque = forwarding();
  await opaque.ask('resources/read', read('res://x'), 'Bearer opaque');
  opaque.tick(59_000);
  const hit = await opaque.ask('resources/read', read('res://x'), 'Bearer opaque');
  assert.equal(hit.headers['cache-status'], 'headgate; hit; ttl=1; detail=memory');
  opaque.tick(1_000);
  assert.match(
    (await opaque.ask('resources/read', read('res://x'), 'Bearer opaque')).headers['cache-status'] ?? '',
    /fwd=/,
  );

  const readable = forwarding();
  const token = jwt((1_700_000_000_000 + 1_000_000) / 1000 + 300);
  const first = await readable.ask('resources/read', read('res://x'), token);
  assert.equal(first.result.ttlMs, 300_000);
  readable.tick(299_000);
  assert.match(
    (await readable.ask('resources/read', read('res://x'), token)).headers['cache-status'] ?? '',
    /hit; ttl=1;/,
  );
  readable.tick(1_000);
  assert.doesNotMatch(
    (await readable.ask('resources/read', read('res://x'), token)).headers['cache-status'] ?? '',
    /hit/,
  );
});

test('an anonymous caller has no credential to take along, and may be asked around for', async () => {
  const forward = { auth: { type: 'forward', shared: true } } as const;
  const hidden: Script = (method, params, request) =>
    method === 'resources/read' && params.uri === 'hidden://1'
      ? { result: { contents: [{ uri: 'hidden://1', text: 'found' }], ttlMs: 0 } }
      : catalogue({})(method, params, request);
  const f = two(catalogue({}), hidden, { a: forward, b: forward });
  assert.equal((await f.ask('resources/read', read('hidden://1'))).result.contents[0].text, 'found');
  assert.equal((await f.ask('resources/read', read('hidden://1'), 'Bearer t')).error?.code, -32602);
});

test('the last good answer stands in for a failed refetch, with no time to live, and says what failed', async () => {
  let said: Scripted | undefined;
  const script: Script = (method, params, request) =>
    said !== undefined && method === 'resources/read'
      ? said
      : catalogue({ resources: resources('x', 1), ttlMs: 1_000 })(method, params, request);
  const f = fleet({ upstreams: [{ name: 'a', script }] });
  await f.ask('resources/read', read('x://0'));
  f.tick(2_000);
  for (const [failure, status] of [
    ['http_5xx', 502],
    ['timeout', 504],
    ['circuit_open', 503],
  ] as const) {
    said = { failure };
    const told = await f.ask('resources/read', read('x://0'));
    assert.equal(
      told.headers['cache-status'],
      `headgate; fwd=stale; fwd-status=${status}; detail=stale-if-error`,
    );
    assert.deepEqual(
      [told.result.ttlMs, told.headers.age, told.result.contents[0].text],
      [0, '2', 'of x://0'],
    );
  }
  for (const never of [
    { refused: 401 },
    { error: { code: -32602, message: 'gone' } },
    { failure: 'broken' },
  ] as const) {
    said = never;
    assert.equal((await f.ask('resources/read', read('x://0'))).result, undefined, JSON.stringify(never));
  }
  said = { failure: 'connect' };
  f.tick(60_000);
  assert.equal((await f.ask('resources/read', read('x://0'))).status, 502);
});

test('the log names cache.ttl.default once where an upstream gives no time, not where it says 0', async () => {
  for (const [ttl, hinted] of [
    [{}, 1],
    [{ ttlMs: 0 }, 0],
  ] as const) {
    const f = fleet({
      upstreams: [
        {
          name: 'a',
          script: (method, params, request) =>
            method === 'resources/read'
              ? { result: { contents: [{ uri: params.uri, text: 'x' }], ...ttl } }
              : catalogue({})(method, params, request),
        },
      ],
    });
    for (let round = 0; round < 2; round++) {
      assert.equal(
        (await f.ask('resources/read', read('res://x'))).headers['cache-status'],
        'headgate; fwd=uri-miss; detail=ttl-zero',
      );
    }
    assert.equal(f.logged.filter((line) => line.includes('upstreams.a.cache.ttl.default')).length, hinted);
  }
});

for (const ttlMs of ['9000', null, true, {}, 1.5, -1]) {
  test(`a ttlMs of ${JSON.stringify(ttlMs)} is 0, also where the operator set a default for absent ones`, async () => {
    const f = fleet({
      upstreams: [
        {
          name: 'a',
          script: counting({ ttlMs }),
          config: {
            cache: {
              ttlDefaultMs: 30_000,
              ttlMaxMs: 86_400_000,
              rules: [],
              scope: 'respect',
              staleIfErrorMs: 0,
            },
          },
        },
      ],
    });
    const told = await f.ask('resources/read', read('res://x'));
    assert.equal(told.result.ttlMs, 0);
    assert.match(told.headers['cache-status'] ?? '', /ttl-zero/);
  });
}

test('a route without a cache says so, on reads, lists and discover', async () => {
  const f = fleet({
    upstreams: [{ name: 'a', script: catalogue({ resources: resources('x', 1) }) }],
    route: { cache: false },
  });
  for (const [method, params] of [
    ['resources/read', read('x://0')],
    ['resources/list', {}],
    ['server/discover', {}],
  ] as const) {
    assert.equal(
      (await f.ask(method, params)).headers['cache-status'],
      'headgate; fwd=bypass; detail=disabled',
      method,
    );
  }
});

test('an upstream of an older revision offers nothing through the gateway, and is not asked', async () => {
  const old: Script = () => ({ refused: 400 });
  const f = two(old, catalogue({ resources: resources('y', 1) }));
  assert.deepEqual(Object.keys((await f.ask('server/discover')).result.capabilities), ['resources', 'tools']);
  const page = await f.ask('resources/list');
  assert.equal(page.result._meta['dev.headgate/incomplete'], undefined);
});

test('4.6 a list without an end does not hold up unknown names for ever, nor a broken one pass for known', async () => {
  const f: Fleet = two(
    (method, params, request) => {
      if (method !== 'tools/list') return catalogue({})(method, params, request);
      f.tick(1_000);
      return { result: { tools: [], nextCursor: `${Number(params.cursor ?? 0) + 1}`, ttlMs: 0 } };
    },
    catalogue({ tools: ['b'] }),
  );
  const asked = () => f.upstreams[0]?.asked.filter((one) => one.startsWith('tools/list')).length;
  // What lies behind is unknown: nobody can be told that there is no such tool.
  assert.equal((await f.ask('tools/call', { name: 'unknown' })).status, 502);
  const before = asked();
  assert.equal((await f.ask('tools/call', { name: 'unknown' })).status, 502);
  assert.equal(asked(), before);
  assert.ok(f.logged.some((line) => line.includes('not walked to its end')));

  const broken = two(
    (method, params, request) =>
      method !== 'tools/list'
        ? catalogue({})(method, params, request)
        : params.cursor === undefined
          ? { result: { tools: [], nextCursor: 'x', ttlMs: 0 } }
          : { failure: 'http_5xx' },
    catalogue({ tools: ['b'] }),
  );
  assert.equal((await broken.ask('tools/call', { name: 'unknown' })).status, 502);
});
