import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { catalogue, type Fleet, fleet, resources, type Script, walk } from '../support/scripted.ts';

const uris = (pages: Awaited<ReturnType<typeof walk>>): string[] =>
  pages.flatMap((page) => page.result.resources.map((item: { uri: string }) => item.uri));

/** A script that serves these very pages, cursors `c1`, `c2`, … */
function paged(
  pages: readonly (readonly unknown[])[],
  hints: Record<string, unknown> = { ttlMs: 60_000, cacheScope: 'public' },
): Script {
  return (method, params) => {
    if (method !== 'resources/list') return catalogue({})(method, params, undefined as never);
    const at = params.cursor === undefined ? 0 : Number(String(params.cursor).slice(1));
    return {
      result: { resources: pages[at], ...hints, ...(at + 1 < pages.length && { nextCursor: `c${at + 1}` }) },
    };
  };
}

const partOf = (f: Fleet, method = 'resources/list') => f.ask(method);

test('R18: any split of items into upstream pages comes out complete, once, in order', async () => {
  const split = fc.array(fc.nat(7), { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(split, { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 9 }),
      fc.boolean(),
      async (splits, pageSize, kept) => {
        let made = 0;
        const upstreams = splits.map((sizes, rank) => {
          const pages = sizes.map((size) =>
            Array.from({ length: size }, () => ({ uri: `u${rank}://${made++}`, name: 'n', extra: made })),
          );
          return {
            name: `u${rank}`,
            script: paged(pages, { ttlMs: kept ? 60_000 : 0, cacheScope: 'public' }),
            pages,
          };
        });
        const f = fleet({ upstreams, route: { pageSize } });
        const pages = await walk(f, 'resources/list');
        assert.deepEqual(
          pages.flatMap((page) => page.result.resources),
          upstreams.flatMap((upstream) => upstream.pages.flat()),
        );
        const sizes = pages.map((page) => page.result.resources.length as number);
        assert.ok(!sizes.slice(0, -1).includes(0), 'only the last page may be empty');
        assert.ok(sizes.every((size) => size <= pageSize));
      },
    ),
    { numRuns: 150 },
  );
});

test('R13: an empty page with a cursor is not the end, and an empty cursor is a cursor', async () => {
  const script: Script = (method, params) => {
    if (method !== 'resources/list') return catalogue({})(method, params, undefined as never);
    if (params.cursor === undefined)
      return { result: { resources: [], nextCursor: '', ttlMs: 0, cacheScope: 'public' } };
    return { result: { resources: resources('a', 2), ttlMs: 0, cacheScope: 'public' } };
  };
  const f = fleet({ upstreams: [{ name: 'a', script }] });
  assert.deepEqual(uris(await walk(f, 'resources/list')), ['a://0', 'a://1']);
  assert.deepEqual(
    f.upstreams[0]?.asked.filter((asked) => asked.startsWith('resources/list')),
    ['resources/list', 'resources/list '],
  );
});

for (const odd of ['null', '5', '{}', 'true']) {
  test(`R13: nextCursor ${odd} ends the walk with a warning`, async () => {
    const text = `{"jsonrpc":"2.0","id":1,"result":{"resources":[{"uri":"a://0","name":"n"}],"nextCursor":${odd},"ttlMs":0}}`;
    const f = fleet({
      upstreams: [
        {
          name: 'a',
          script: (method, params) =>
            method === 'resources/list' ? { text } : catalogue({})(method, params, undefined as never),
        },
      ],
    });
    const [page] = await walk(f, 'resources/list');
    assert.equal(Object.hasOwn(page?.result, 'nextCursor'), false);
    assert.ok(f.logged.some((line) => line.includes('nextCursor')));
  });
}

test('R13: an upstream whose cursors never end ends by a bound, and is named in the log', async () => {
  const script: Script = (method, params) =>
    method === 'resources/list'
      ? { result: { resources: [], nextCursor: 'again', ttlMs: 0 } }
      : catalogue({})(method, params, undefined as never);
  const f = fleet({
    upstreams: [
      { name: 'a', script },
      { name: 'b', script: catalogue({ resources: resources('b', 1) }) },
    ],
  });
  assert.deepEqual(uris(await walk(f, 'resources/list')), ['b://0']);
  assert.ok(f.logged.includes('list walk ended early'));
});

for (const [what, cursor] of [
  ['foreign', 'bm8tc3VjaC1jdXJzb3I'],
  ['empty', ''],
  ['too long', 'A'.repeat(100_000)],
  ['not base64', '!!!'],
] as const) {
  test(`R14: a cursor that is ${what} is -32602, never page one`, async () => {
    const f = fleet({
      upstreams: [{ name: 'a', script: catalogue({ resources: resources('a', 30) }) }],
      route: { pageSize: 10 },
    });
    const told = await f.ask('resources/list', { cursor });
    assert.equal(told.error?.code, -32602);
    assert.equal(told.status, 200);
  });
}

test('R14: a cursor of another method or of a route with another order is -32602', async () => {
  const a = { name: 'a', script: catalogue({ resources: resources('a', 30), templates: ['a://{x}'] }) };
  const b = { name: 'b', script: catalogue({ resources: resources('b', 30) }) };
  const f = fleet({ upstreams: [a, b], route: { pageSize: 10 } });
  const cursor = (await f.ask('resources/list')).result.nextCursor as string;
  assert.equal((await f.ask('resources/templates/list', { cursor })).error?.code, -32602);
  const reordered = fleet({ upstreams: [b, a], route: { pageSize: 10 } });
  assert.equal((await reordered.ask('resources/list', { cursor })).error?.code, -32602);
});

test('R14: a cursor with one character changed is -32602', async () => {
  const f = fleet({
    upstreams: [{ name: 'a', script: catalogue({ resources: resources('a', 30) }) }],
    route: { pageSize: 10 },
  });
  const cursor = (await f.ask('resources/list')).result.nextCursor as string;
  for (let at = 0; at < cursor.length; at++) {
    const other = `${cursor.slice(0, at)}${cursor[at] === 'A' ? 'B' : 'A'}${cursor.slice(at + 1)}`;
    assert.equal((await f.ask('resources/list', { cursor: other })).error?.code, -32602, `character ${at}`);
  }
});

test('a cursor is continued by another replica of the same configuration', async () => {
  const upstreams = [
    { name: 'a', script: catalogue({ resources: resources('a', 25) }) },
    { name: 'b', script: catalogue({ resources: resources('b', 5) }) },
  ];
  const one = fleet({ upstreams, route: { pageSize: 7 } });
  const first = await one.ask('resources/list');
  const seen = [...first.result.resources];
  let cursor = first.result.nextCursor as string | undefined;
  while (cursor !== undefined) {
    const page = await fleet({ upstreams, route: { pageSize: 7 } }).ask('resources/list', { cursor });
    seen.push(...page.result.resources);
    cursor = page.result.nextCursor;
  }
  assert.deepEqual(seen, [...resources('a', 25), ...resources('b', 5)]);
});

test('R15: an upstream that refuses its own cursor in mid-walk: -32602, and its stored pages are dropped', async () => {
  let version = 1;
  const script: Script = (method, params) => {
    if (method !== 'resources/list') return catalogue({})(method, params, undefined as never);
    if (params.cursor !== undefined && params.cursor !== `v${version}`)
      return { error: { code: -32602, message: 'Invalid cursor' } };
    return params.cursor === undefined
      ? {
          result: {
            resources: resources(`a${version}`, 10),
            nextCursor: `v${version}`,
            ttlMs: 60_000,
            cacheScope: 'public',
          },
        }
      : { result: { resources: resources(`z${version}`, 10), ttlMs: 60_000, cacheScope: 'public' } };
  };
  const f = fleet({ upstreams: [{ name: 'a', script }], route: { pageSize: 10 } });
  const first = await f.ask('resources/list');
  version = 2;
  assert.equal((await f.ask('resources/list', { cursor: first.result.nextCursor })).error?.code, -32602);
  assert.deepEqual(
    uris(await walk(f, 'resources/list')),
    [...resources('a2', 10), ...resources('z2', 10)].map((item) => item.uri),
  );
});

test('R16: one bad item goes alone, counted with the upstream and its index', async () => {
  const good = resources('a', 2);
  const items = [
    good[0],
    null,
    { name: 'no uri' },
    { uri: 5, name: 'n' },
    { uri: 'a://x' },
    { uri: 'no-scheme', name: 'n' },
    { uri: 'a://d', name: 'n', description: 5 },
    'text',
    good[1],
  ];
  const f = fleet({ upstreams: [{ name: 'a', script: paged([items]) }] });
  assert.deepEqual(uris(await walk(f, 'resources/list')), ['a://0', 'a://1']);
  assert.deepEqual(
    f.dropped,
    Array.from({ length: 7 }, () => ['a', 'invalid']),
  );
});

test('R16: an oversized item goes alone', async () => {
  const items = [
    { uri: 'a://0', name: 'n', description: 'x'.repeat(1 << 20) },
    { uri: 'a://1', name: 'n' },
  ];
  const f = fleet({ upstreams: [{ name: 'a', script: paged([items]) }] });
  assert.deepEqual(uris(await walk(f, 'resources/list')), ['a://1']);
  assert.deepEqual(f.dropped, [['a', 'too_large']]);
});

const headerTool = (schema: unknown) => ({ name: 'bad', inputSchema: schema });
for (const [what, schema] of [
  ['an empty name', { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': '' } } }],
  [
    'a name that is no token',
    { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': 'a b' } } },
  ],
  ['a line break', { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': 'a\r\nb' } } }],
  ['a number property', { type: 'object', properties: { a: { type: 'number', 'x-mcp-header': 'A' } } }],
  [
    'two names that differ by case',
    {
      type: 'object',
      properties: { a: { type: 'string', 'x-mcp-header': 'A' }, b: { type: 'string', 'x-mcp-header': 'a' } },
    },
  ],
  [
    'a place below items',
    { type: 'object', properties: { a: { type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } } } },
  ],
  [
    'a place below anyOf',
    { type: 'object', anyOf: [{ properties: { a: { type: 'string', 'x-mcp-header': 'A' } } }] },
  ],
  ['a place at the root', { type: 'object', 'x-mcp-header': 'A' }],
  ['a schema that is no object type', { type: 'string' }],
] as const) {
  test(`R16: a tool whose x-mcp-header has ${what} goes alone`, async () => {
    const fine = {
      name: 'fine',
      inputSchema: {
        type: 'object',
        properties: { a: { type: 'object', properties: { b: { type: 'integer', 'x-mcp-header': 'B' } } } },
      },
    };
    const script: Script = (method, params) =>
      method === 'tools/list'
        ? { result: { tools: [headerTool(schema), fine], ttlMs: 0 } }
        : catalogue({})(method, params, undefined as never);
    const f = fleet({ upstreams: [{ name: 'a', script }] });
    assert.deepEqual((await f.ask('tools/list')).result.tools, [fine]);
  });
}

test('R16: resources that is no array: that upstream failed, the others are served and it is named', async () => {
  const broken: Script = (method, params) =>
    method === 'resources/list'
      ? { result: { resources: {}, ttlMs: 9 } }
      : catalogue({})(method, params, undefined as never);
  const f = fleet({
    upstreams: [
      { name: 'a', script: broken },
      { name: 'b', script: catalogue({ resources: resources('b', 1) }) },
    ],
  });
  const page = await partOf(f);
  assert.deepEqual(page.result._meta['dev.headgate/incomplete'], ['a']);
  assert.equal(page.result.ttlMs, 0);
  assert.deepEqual(page.result.resources.length, 1);
});

for (const [what, said] of [
  ['-32601', { error: { code: -32601, message: 'no' } }],
  ['404', { refused: 404 }],
  ['405', { refused: 405 }],
] as const) {
  test(`R17: ${what} from an upstream that was seen means it has none of it`, async () => {
    const script: Script = (method, params) =>
      method === 'resources/list' ? said : catalogue({})(method, params, undefined as never);
    const f = fleet({
      upstreams: [
        { name: 'a', script },
        { name: 'b', script: catalogue({ resources: resources('b', 1) }) },
      ],
    });
    await f.ask('server/discover');
    const page = await partOf(f);
    assert.equal(page.result._meta['dev.headgate/incomplete'], undefined);
    assert.equal(page.result.ttlMs, 60_000);
  });
}

for (const said of [
  { refused: 401 },
  { refused: 403 },
  { failure: 'http_5xx' },
  { failure: 'timeout' },
] as const) {
  test(`R17: ${JSON.stringify(said)} is a failure, not absence`, async () => {
    const script: Script = (method, params) =>
      method === 'resources/list' ? said : catalogue({})(method, params, undefined as never);
    const f = fleet({
      upstreams: [
        { name: 'a', script },
        { name: 'b', script: catalogue({ resources: resources('b', 1) }) },
      ],
    });
    await f.ask('server/discover');
    assert.deepEqual((await partOf(f)).result._meta['dev.headgate/incomplete'], ['a']);
  });
}

test('R17: what an upstream does not announce is not asked for', async () => {
  const script: Script = (method, params) =>
    method === 'server/discover'
      ? { result: { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } } }
      : catalogue({})(method, params, undefined as never);
  const f = fleet({
    upstreams: [
      { name: 'a', script },
      { name: 'b', script: catalogue({ resources: resources('b', 1) }) },
    ],
  });
  await f.ask('server/discover');
  await partOf(f);
  assert.deepEqual(
    f.upstreams[0]?.asked.filter((asked) => asked !== 'server/discover'),
    [],
  );
});

test('R17: nobody has any of it: the method is unknown here', async () => {
  const f = fleet({ upstreams: [{ name: 'a', script: catalogue({}) }] });
  await f.ask('server/discover');
  const told = await f.ask('prompts/list');
  assert.equal(told.error?.code, -32601);
  assert.equal(told.status, 404);
});

test('all failed is an error, never an empty success', async () => {
  const down: Script = () => ({ failure: 'connect' });
  const f = fleet({
    upstreams: [
      { name: 'a', script: down },
      { name: 'b', script: down },
    ],
  });
  const told = await partOf(f);
  assert.equal(told.error?.code, -32603);
  assert.equal(told.status, 502);
});

test('partial: fail makes a list fail with one upstream', async () => {
  const f = fleet({
    upstreams: [
      { name: 'a', script: () => ({ failure: 'connect' }) },
      { name: 'b', script: catalogue({ resources: resources('b', 1) }) },
    ],
    route: { partial: 'fail' },
  });
  assert.equal((await partOf(f)).error?.code, -32603);
});

test('a failed upstream stays out of its walk, also when it comes back', async () => {
  let down = true;
  const a = catalogue({ resources: resources('a', 3) });
  const script: Script = (method, params, request) =>
    down ? { failure: 'connect' } : a(method, params, request);
  const f = fleet({
    upstreams: [
      { name: 'b', script: catalogue({ resources: resources('b', 20) }) },
      { name: 'a', script },
    ],
    route: { pageSize: 10 },
  });
  const first = await partOf(f);
  down = false;
  const second = await f.ask('resources/list', { cursor: first.result.nextCursor });
  assert.deepEqual(second.result._meta['dev.headgate/incomplete'], ['a']);
  assert.equal(second.result.resources.length, 10);
  assert.equal(second.result.nextCursor, undefined);
});

test('R19: names and order are those of the configuration, whoever is up', async () => {
  const upstreams = [
    { name: 'a', script: catalogue({ resources: resources('a', 2) }) },
    { name: 'b', script: catalogue({ resources: resources('b', 2) }) },
  ];
  assert.deepEqual(uris(await walk(fleet({ upstreams }), 'resources/list')), [
    'a://0',
    'a://1',
    'b://0',
    'b://1',
  ]);
  assert.deepEqual(uris(await walk(fleet({ upstreams: upstreams.slice(1) }), 'resources/list')), [
    'b://0',
    'b://1',
  ]);
});

test('R20: fields unknown to the gateway survive in items, results and _meta, byte for byte', async () => {
  const item =
    '{"uri":"a://0","name":"n","size":1e2,"x":{"a":-0,"b":1e400,"a":123456789012345678901234567890,"s":"\\ud800\\u0041"}}';
  const text = `{"jsonrpc":"2.0","id":1,"result":{"resources":[ ${item} ],"acme":{"k":1.0},"_meta":{"acme/x":1e2},"ttlMs":5000,"cacheScope":"public"}}`;
  const f = fleet({
    upstreams: [
      {
        name: 'a',
        script: (method, params) =>
          method === 'resources/list' ? { text } : catalogue({})(method, params, undefined as never),
      },
    ],
  });
  const told = await partOf(f);
  assert.ok(told.text.includes(`[${item}]`), told.text);
  assert.ok(told.text.includes('"acme":{"k":1.0}'));
  assert.ok(told.text.includes('"acme/x":1e2'));
});

test('R21: page one carries the least remaining ttl of all first pages and the worst scope', async () => {
  const f = fleet({
    upstreams: [
      { name: 'a', script: catalogue({ resources: resources('a', 30), ttlMs: 60_000 }) },
      { name: 'b', script: catalogue({ resources: resources('b', 2), ttlMs: 7_000, scope: 'private' }) },
    ],
    route: { pageSize: 10 },
  });
  const pages = await walk(f, 'resources/list');
  assert.equal(pages[0]?.result.ttlMs, 7_000);
  assert.deepEqual(new Set(pages.map((page) => page.result.cacheScope)), new Set(['private']));
});

for (const hints of [
  {},
  { ttlMs: 0, cacheScope: 'public' },
  { ttlMs: -5, cacheScope: 'public' },
  { ttlMs: 1.5, cacheScope: 'public' },
  { ttlMs: '9', cacheScope: 'PUBLIC' },
]) {
  test(`R21: with ${JSON.stringify(hints)} from one upstream the merged ttl is 0, an integer`, async () => {
    const f = fleet({
      upstreams: [
        { name: 'a', script: paged([resources('a', 1)], hints) },
        { name: 'b', script: catalogue({ resources: resources('b', 1) }) },
      ],
    });
    const page = await partOf(f);
    assert.equal(page.result.ttlMs, 0);
    assert.ok(['public', 'private'].includes(page.result.cacheScope));
  });
}

test('a later part that turns private ends the walk, and the next walk is private from its first page', async () => {
  const script: Script = (method, params) => {
    if (method !== 'resources/list') return catalogue({})(method, params, undefined as never);
    return params.cursor === undefined
      ? { result: { resources: resources('a', 10), nextCursor: 'n', ttlMs: 1000, cacheScope: 'public' } }
      : { result: { resources: resources('z', 10), ttlMs: 1000, cacheScope: 'private' } };
  };
  const f = fleet({ upstreams: [{ name: 'a', script }], route: { pageSize: 10 } });
  await assert.rejects(walk(f, 'resources/list'), { code: -32602 });
  const pages = await walk(f, 'resources/list');
  assert.deepEqual(
    pages.map((page) => page.result.cacheScope),
    ['private', 'private'],
  );
});

test('the same URI on two upstreams is listed once, by the earlier; counted, and said once', async () => {
  const f = fleet({
    upstreams: [
      { name: 'a', script: catalogue({ resources: resources('s', 3) }) },
      { name: 'b', script: catalogue({ resources: [...resources('s', 4)] }) },
    ],
  });
  for (let round = 0; round < 2; round++)
    assert.deepEqual(uris(await walk(f, 'resources/list')), ['s://0', 's://1', 's://2', 's://3']);
  assert.ok(f.dropped.every(([upstream, reason]) => upstream === 'b' && reason === 'duplicate'));
  assert.equal(f.logged.filter((line) => line.includes('belong to another')).length, 1);
});

test('an upstream with claims lists nothing outside them', async () => {
  const f = fleet({
    upstreams: [
      {
        name: 'a',
        config: { claims: { resources: ['a://**'], tools: [], prompts: [] } },
        script: catalogue({ resources: [...resources('a', 2), ...resources('b', 2)] }),
      },
      { name: 'b', script: catalogue({ resources: resources('b', 2) }) },
    ],
  });
  assert.deepEqual(uris(await walk(f, 'resources/list')), ['a://0', 'a://1', 'b://0', 'b://1']);
  assert.deepEqual(f.dropped.filter(([upstream]) => upstream === 'a').length, 2);
});

test('a page larger than 1 MiB is cut; a page without ttl is continued from memory for its walk', async () => {
  const big = Array.from({ length: 30 }, (_, i) => ({
    uri: `a://${i}`,
    name: 'n',
    description: 'x'.repeat(100_000),
  }));
  const f = fleet({ upstreams: [{ name: 'a', script: paged([big], { ttlMs: 0 }) }] });
  const pages = await walk(f, 'resources/list');
  assert.equal(pages.length, 3);
  assert.deepEqual(
    uris(pages),
    big.map((item) => item.uri),
  );
  assert.equal(f.upstreams[0]?.asked.filter((asked) => asked.startsWith('resources/list')).length, 1);
});

test('a cut page that changed while nobody kept it: -32602, never a silent restart', async () => {
  let items = resources('a', 30);
  const f = fleet({
    upstreams: [
      {
        name: 'a',
        script: (method, params, request) => paged([items], { ttlMs: 0 })(method, params, request),
      },
    ],
    route: { pageSize: 10 },
  });
  const first = await partOf(f);
  f.tick(61_000);
  items = resources('a', 29);
  assert.equal((await f.ask('resources/list', { cursor: first.result.nextCursor })).error?.code, -32602);
  items = resources('a', 30);
  assert.equal(
    (await f.ask('resources/list', { cursor: first.result.nextCursor })).result.resources[0].uri,
    'a://10',
  );
});

test('a merged page says hit only when no upstream was asked', async () => {
  const f = fleet({
    upstreams: [
      { name: 'a', script: catalogue({ resources: resources('a', 3) }) },
      { name: 'b', script: catalogue({ resources: resources('b', 3) }) },
    ],
  });
  assert.equal((await partOf(f)).headers['cache-status'], 'headgate; fwd=miss');
  f.tick(5_000);
  const second = await partOf(f);
  assert.equal(second.headers['cache-status'], 'headgate; hit; ttl=55; detail=memory');
  assert.equal(second.headers.age, '5');
  assert.equal(second.result.ttlMs, 55_000);
});

test('the last complete page serves while its upstream fails, with no time to live', async () => {
  let down = false;
  const a = catalogue({ resources: resources('a', 3), ttlMs: 1_000 });
  const f = fleet({
    upstreams: [
      {
        name: 'a',
        script: (method, params, request) => (down ? { failure: 'connect' } : a(method, params, request)),
      },
    ],
  });
  await partOf(f);
  down = true;
  f.tick(2_000);
  const page = await partOf(f);
  assert.equal(page.result.resources.length, 3);
  assert.equal(page.result.ttlMs, 0);
  assert.equal(page.result._meta['dev.headgate/incomplete'], undefined);
});

test('R18: a single page of 40 MB is walked to its end from one request, each item once, and asked for once', async () => {
  const items = Array.from({ length: 4_000 }, (_, i) => ({
    uri: `a://${i}`,
    name: 'n',
    description: 'x'.repeat(10_400),
  }));
  for (const ttlMs of [0, 600_000]) {
    const f = fleet({ upstreams: [{ name: 'a', script: paged([items], { ttlMs, cacheScope: 'public' }) }] });
    const seen = uris(await walk(f, 'resources/list'));
    assert.deepEqual(
      seen,
      items.map((item) => item.uri),
    );
    assert.equal(f.upstreams[0]?.asked.filter((asked) => asked.startsWith('resources/list')).length, 1);
  }
});
