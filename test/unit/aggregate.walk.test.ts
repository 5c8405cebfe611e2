/** Lists in the hard cases: what one caller may not see, what may not be lost, and what an upstream may not cost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret } from '../../src/config/secret.ts';
import { catalogue, type Fleet, fleet, resources, type Script, walk } from '../support/scripted.ts';

const forward = { auth: { type: 'forward', shared: true } } as const;
const bearer = { auth: { type: 'bearer', token: new Secret('own') } } as const;
const lists = (asked: readonly string[]): string[] => asked.filter((one) => one.includes('/list'));

/** Answers one method itself and everything else from a catalogue. */
function only(method: string, answer: Script, rest: Script = catalogue({})): Script {
  return (asked, params, request) =>
    asked === method ? answer(asked, params, request) : rest(asked, params, request);
}

const two = (a: Script, b: Script, configs: { a?: object; b?: object } = {}, route = {}): Fleet =>
  fleet({
    upstreams: [
      { name: 'a', script: a, config: configs.a ?? {} },
      { name: 'b', script: b, config: configs.b ?? {} },
    ],
    route,
  });

test('R46: what a call carries goes to nobody who is only asked what it has', async () => {
  const seen: string[] = [];
  const spy =
    (tools: string[]): Script =>
    (method, params, request) => {
      seen.push(request.params);
      return catalogue({ tools })(method, params, request);
    };
  const f = two(spy(['x']), spy(['y']));
  await f.ask('tools/call', { name: 'nope', arguments: { password: 'CANARY' }, requestState: 'CANARY' });
  await f.ask('resources/read', { uri: 'CANARY://x', requestState: 'CANARY' });
  assert.ok(lists(f.upstreams[0]?.asked ?? []).length > 0);
  assert.ok(!seen.some((text) => text.includes('CANARY')));
  const before = lists(f.upstreams[0]?.asked ?? []).length;
  await f.ask('tools/call', { name: 'nope', arguments: { other: 1 } });
  assert.equal(lists(f.upstreams[0]?.asked ?? []).length, before, 'another call does not list again');
});

test('R37: 401 of the gateway’s own credential is its own trouble on lists too', async () => {
  const refusing = only('tools/list', () => ({
    refused: 401,
    challenge: 'Bearer resource_metadata="http://internal/"',
  }));
  const told = await fleet({ upstreams: [{ name: 'a', config: bearer, script: refusing }] }).ask(
    'tools/list',
  );
  assert.deepEqual([told.status, told.error?.code], [502, -32603]);
  assert.doesNotMatch(JSON.stringify([told.headers, told.error]), /internal/);
});

test('R37: -32021 of the only upstream keeps its code and data on a list', async () => {
  const data = { requiredCapabilities: { sampling: {} } };
  const f = fleet({
    upstreams: [
      { name: 'a', script: only('tools/list', () => ({ error: { code: -32021, message: 'm', data } })) },
    ],
  });
  const told = await f.ask('tools/list');
  assert.deepEqual([told.status, told.error], [400, { code: -32021, message: 'm', data }]);
});

for (const [what, said] of [
  ['-32601', { error: { code: -32601, message: 'x' } }],
  ['403', { refused: 403 }],
] as const) {
  test(`a list that lacks an upstream which said ${what} to this caller alone is not for everybody`, async () => {
    const a: Script = only('tools/list', (_method, _params, request) =>
      request.headers.authorization === 'Bearer bob'
        ? { result: { tools: [], ttlMs: 60_000, cacheScope: 'public' } }
        : said,
    );
    const told = await two(a, catalogue({ tools: ['t'] }), { a: forward }).ask(
      'tools/list',
      {},
      'Bearer alice',
    );
    assert.equal(told.result.cacheScope, 'private');
  });
}

test('what a private list taught one caller leaves nothing out of a public one', async () => {
  const a = catalogue({ templates: ['s://{x}'], scope: 'private' });
  const f = two(
    only('resources/list', catalogue({ resources: resources('a', 1) }), a),
    catalogue({ resources: resources('s', 1) }),
    { a: forward },
  );
  await f.ask('resources/templates/list', {}, 'Bearer alice');
  const told = await f.ask('resources/list', {}, 'Bearer alice');
  assert.equal(told.result.cacheScope, 'public');
  assert.deepEqual(
    told.result.resources.map((item: { uri: string }) => item.uri),
    ['a://0', 's://0'],
  );
});

test('R27: the rest of a cut page does not replay what belonged to the request it came for', async () => {
  const script: Script = only('resources/list', () => ({
    result: { resources: resources('a', 30), ttlMs: 0, _meta: { traceparent: 'ALICE', 'acme/kept': 1 } },
  }));
  const f = fleet({ upstreams: [{ name: 'a', script }], route: { pageSize: 10 } });
  const first = await f.ask('resources/list');
  const second = await f.ask('resources/list', { cursor: first.result.nextCursor });
  assert.equal(second.result.resources.length, 10);
  assert.doesNotMatch(second.text, /ALICE/);
});

test('the only upstream fails in mid-walk: an error, never an empty success, and the cursor can be tried again', async () => {
  let down = true;
  const a: Script = (method, params, request) =>
    down && params.cursor !== undefined
      ? { failure: 'http_5xx' }
      : catalogue({ resources: resources('a', 20), pageSize: 10 })(method, params, request);
  const f = fleet({ upstreams: [{ name: 'a', script: a }], route: { pageSize: 10 } });
  const first = await f.ask('resources/list');
  const { nextCursor: cursor } = first.result;
  assert.equal((await f.ask('resources/list', { cursor })).status, 502);
  down = false;
  assert.equal((await f.ask('resources/list', { cursor })).result.resources.length, 10);
});

for (const said of [{ error: { code: -32601, message: 'x' } }, { refused: 404 }] as const) {
  test(`R17: ${JSON.stringify(said)} behind a first page is a failure, or the rest would be lost unseen`, async () => {
    const a: Script = (method, params, request) =>
      params.cursor !== undefined
        ? said
        : catalogue({ resources: resources('a', 20), pageSize: 10 })(method, params, request);
    const f = two(a, catalogue({ resources: resources('b', 1) }));
    await f.ask('server/discover');
    const page = await f.ask('resources/list');
    assert.deepEqual(page.result._meta['dev.headgate/incomplete'], ['a']);
    assert.equal(page.result.ttlMs, 0);
  });
}

test('a walk whose later part turns out private before anything was told is private from the start', async () => {
  const a: Script = only('resources/list', (_method, params) =>
    params.cursor === undefined
      ? { result: { resources: resources('a', 2), nextCursor: 'n', ttlMs: 1000, cacheScope: 'public' } }
      : { result: { resources: resources('z', 2), ttlMs: 1000, cacheScope: 'private' } },
  );
  const told = await fleet({ upstreams: [{ name: 'a', script: a }] }).ask('resources/list');
  assert.equal(told.result.cacheScope, 'private');
  assert.deepEqual(
    told.result.resources.map((item: { uri: string }) => item.uri),
    ['a://0', 'a://1', 'z://0', 'z://1'],
  );
});

test('R20: unknown members survive of a page without items, and are told once of a page that is cut', async () => {
  const empty = only('resources/list', () => ({ result: { resources: [], acme: { k: 1 }, ttlMs: 0 } }));
  assert.deepEqual(
    (await fleet({ upstreams: [{ name: 'a', script: empty }] }).ask('resources/list')).result.acme,
    { k: 1 },
  );
  const cut = only('resources/list', () => ({
    result: { resources: resources('a', 3), acme: 'x'.repeat(10_000), ttlMs: 60_000, cacheScope: 'public' },
  }));
  const pages = await walk(
    fleet({ upstreams: [{ name: 'a', script: cut }], route: { pageSize: 1 } }),
    'resources/list',
  );
  assert.deepEqual(
    pages.map((page) => page.text.includes('xxxx')),
    [true, false, false],
  );
});

test('members beside the items that are larger than 64 KiB are no reason for a larger page', async () => {
  const script = only('resources/list', () => ({
    result: { resources: resources('a', 1), acme: 'x'.repeat(5_000_000), ttlMs: 0 },
  }));
  const told = await fleet({ upstreams: [{ name: 'a', script }] }).ask('resources/list');
  assert.ok(told.text.length < 10_000);
  assert.equal(told.result.resources.length, 1);
});

test('R38: an upstream that sends nothing but empty pages is left out after its time, and the others are listed', async () => {
  const f: Fleet = two(
    only('resources/list', (_method, params) => {
      f.tick(500);
      return { result: { resources: [], nextCursor: `${Number(params.cursor ?? 0) + 1}`, ttlMs: 0 } };
    }),
    catalogue({ resources: resources('b', 2) }),
  );
  const told = await f.ask('resources/list');
  assert.deepEqual(told.result._meta['dev.headgate/incomplete'], ['a']);
  assert.equal(told.result.resources.length, 2);
  assert.ok(lists(f.upstreams[0]?.asked ?? []).length < 20);
});

test('R16: bad items are said in one line with their indexes, however many and however often', async () => {
  const script = only('resources/list', () => ({
    result: { resources: Array.from({ length: 5_000 }, () => ({})), ttlMs: 0 },
  }));
  const f = fleet({ upstreams: [{ name: 'a', script }] });
  for (let round = 0; round < 3; round++) await f.ask('resources/list');
  assert.equal(f.logged.filter((line) => line.includes('dropped')).length, 1);
  assert.equal(f.dropped.length, 15_000);
});

test('a list with requestState neither reads nor fills the cache', async () => {
  const f = fleet({ upstreams: [{ name: 'a', script: catalogue({ tools: ['t'] }) }] });
  for (let round = 0; round < 2; round++) {
    assert.doesNotMatch(
      (await f.ask('tools/list', { requestState: 'x' })).headers['cache-status'] ?? '',
      /hit/,
    );
  }
  assert.equal(lists(f.upstreams[0]?.asked ?? []).length, 2);
});

test('a page is no hit while an upstream was asked and had none of it', async () => {
  const f = two(
    only('tools/list', () => ({ error: { code: -32601, message: 'x' } })),
    catalogue({ tools: ['t'] }),
  );
  await f.ask('tools/list');
  assert.equal((await f.ask('tools/list')).headers['cache-status'], 'headgate; fwd=miss');
});

test('what an upstream calls its result cannot write members of ours', async () => {
  const script: Script = (method, params, request) =>
    method === 'completion/complete'
      ? { result: { resultType: 'x","evil":"1', completion: { values: [] } } }
      : catalogue({ templates: ['a://{x}'] })(method, params, request);
  const f = fleet({ upstreams: [{ name: 'a', script }] });
  const told = await f.ask('completion/complete', {
    ref: { type: 'ref/resource', uri: 'a://{x}' },
    argument: { name: 'x', value: '' },
  });
  assert.equal(told.result.evil, undefined);
  assert.equal(told.result.resultType, 'x","evil":"1');
});
