/** What the admin port tells and shows of a running gateway, over real sockets. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ConfigAnswer, Content, ListAnswer, ReadAnswer, State } from '../../src/admin/page/contract.ts';
import { type AdminGateway, startAdminGateway } from '../support/admin-kit.ts';
import { CANARY } from '../support/config.ts';
import { type Gallery, PNG, startGallery } from '../support/gallery.ts';
import { call, until } from '../support/mcp.ts';
import { missingRedis, startRedis } from '../support/redis.ts';

const HOSTILE = 'art://x/\u202egnp.evil<script>alert(1)</script>';
const LONG_URI = `art://${'x'.repeat(9_000)}`;

describe('what the admin port shows', () => {
  let art: Gallery;
  let books: Gallery;
  let mine: Gallery;
  let gateway: AdminGateway;

  before(async () => {
    art = await startGallery({
      scheme: 'art',
      resources: [
        { uri: 'art://one', name: 'one', title: 'The first', mimeType: 'image/png', size: 70 },
        { uri: HOSTILE, name: 'n'.repeat(1_000), description: 'd'.repeat(5_000) },
        { uri: LONG_URI, name: 'long' },
      ],
      templates: ['art://{name}', 'art://rooms/{room}/{name}'],
      tools: ['paint'],
      contents: {
        'art://one': [{ mimeType: 'image/png', blob: PNG }],
        'art://svg': [
          {
            mimeType: 'image/svg+xml',
            blob: Buffer.from('<svg onload="alert(1)"></svg>').toString('base64'),
          },
        ],
        'art://lie': [{ mimeType: 'image/png', blob: Buffer.from('<script>').toString('base64') }],
        'art://html': [{ mimeType: 'text/html', text: '<img src=x onerror=alert(1)>' }],
        'art://many': Array.from({ length: 103 }, (_, i) => ({ text: `text ${i}` })),
        'art://big': [{ text: 'y'.repeat((1 << 20) + 5) }, { text: 'no room' }],
        'art://held': [{ text: 'z'.repeat((16 << 20) - 200) }],
        'art://huge': [{ text: 'z'.repeat(16 << 20) }],
        'art://flowing': [{ text: 'z'.repeat(33 << 20) }],
      },
      results: { 'art://asks': { resultType: 'input_required', inputRequests: {} } },
    });
    books = await startGallery({
      scheme: 'books',
      resources: Array.from({ length: 25 }, (_, i) => ({ uri: `books://${i}`, name: `book ${i}` })),
    });
    mine = await startGallery({ scheme: 'mine', closed: true, scope: 'private' });
    gateway = await startAdminGateway(
      `
secrets: ["\${TOKEN}-and-more-than-32-bytes"]
upstreams:
  art: { url: "${art.url}?key=\${TOKEN}", auth: { type: bearer, token: "\${TOKEN}" } }
  books: { url: "${books.url}" }
  mine: { url: "${mine.url}", auth: { type: forward } }
  gone: { url: "http://127.0.0.1:9/mcp" }
routes:
  - { path: /mcp, upstreams: [art, books], pageSize: 10 }
  - { path: /mine, upstreams: [mine] }
  - { path: /gone, upstreams: [gone], cache: false }
cache: { memory: { maxEntry: 32MiB } }
`,
      { env: { TOKEN: CANARY } },
    );
  });
  after(async () => {
    await gateway.stop();
    await Promise.all([art, books, mine].map((one) => one.close()));
  });

  const state = async (): Promise<State> => (await gateway.get<State>('/api/state')).json;
  const read = async (uri: string, route = '/mcp'): Promise<ReadAnswer> =>
    (await gateway.post<ReadAnswer>('/api/read', { route, uri })).json;
  const contents = async (uri: string): Promise<readonly Content[]> => {
    const { outcome } = await read(uri);
    return outcome.kind === 'contents' ? outcome.contents : assert.fail(JSON.stringify(outcome));
  };
  const list = async (body: Record<string, unknown>): Promise<ListAnswer> =>
    (await gateway.post<ListAnswer>('/api/list', body)).json;

  test('is what an operator looks at first', async () => {
    const seen = await state();
    assert.equal(seen.ready, true);
    assert.deepEqual(
      seen.checks.map(({ name }) => name),
      ['configuration', 'listening', 'not-draining'],
    );
    assert.ok(seen.at >= seen.startedAt && seen.at - seen.startedAt < 60_000);
    assert.deepEqual(seen.routes, [
      { path: '/mcp', upstreams: ['art', 'books'], cache: true },
      { path: '/mine', upstreams: ['mine'], cache: true },
      { path: '/gone', upstreams: ['gone'], cache: false },
    ]);
    const [first, , , gone] = seen.upstreams;
    assert.deepEqual(
      [first?.name, first?.state, first?.era, first?.circuit],
      ['art', 'up', '2026-07-28', 'closed'],
    );
    assert.deepEqual([gone?.state, gone?.about], ['unseen', 'not seen yet: connect']);
    assert.equal(gone?.lastError?.kind, 'connect');
    assert.equal(seen.redis, undefined);
    await until(async () => (await state()).upstreams[0]?.listen === 'open', 'the listen stream');
  });

  test('counts what the cache does, as it happens', async () => {
    const { cache: before } = await state();
    await call(`${gateway.mcp}/mcp`, 'resources/read', { uri: 'books://1' });
    await call(`${gateway.mcp}/mcp`, 'resources/read', { uri: 'books://1' });
    const { cache: then, upstreams } = await state();
    assert.ok(then.answered.hit > before.answered.hit && then.answered.miss > before.answered.miss);
    assert.ok((then.recent.samples.at(-1)?.hit ?? 0) > 0 || (then.recent.samples.at(-2)?.hit ?? 0) > 0);
    assert.ok(then.entries > before.entries && then.bytes > before.bytes && then.maxBytes === 256 << 20);
    const { latency } = upstreams.find(({ name }) => name === 'books') ?? {};
    assert.ok(latency !== undefined && latency.p50Ms > 0 && latency.p95Ms >= latency.p50Ms);
  });

  test('is the merged catalogue, a page at a time, with owners and templates', async () => {
    const first = await list({ route: '/mcp', list: 'resources' });
    assert.equal(first.items.length, 10);
    assert.deepEqual(first.items[0], {
      ...{ id: 'art://one', name: 'one', title: 'The first', mimeType: 'image/png', size: 70 },
      ...{ owner: 'art', template: 'art://{name}' },
    });
    const second = await list({ route: '/mcp', list: 'resources', cursor: first.nextCursor });
    assert.deepEqual(second.items[0], { id: 'books://7', name: 'book 7', owner: 'books' });
    const last = await list({ route: '/mcp', list: 'resources', cursor: second.nextCursor });
    assert.deepEqual([last.items.length, last.nextCursor, last.scope], [8, undefined, 'public']);
    const templates = await list({ route: '/mcp', list: 'templates' });
    assert.deepEqual(
      templates.items.map(({ id, owner }) => [id, owner]),
      [
        ['art://{name}', 'art'],
        ['art://rooms/{room}/{name}', 'art'],
      ],
    );
    const tools = await list({ route: '/mcp', list: 'tools' });
    assert.deepEqual(tools.items, [{ id: 'paint', owner: 'art' }]);
  });

  test('of a list is bounded, and as the upstream wrote it', async () => {
    const { items } = await list({ route: '/mcp', list: 'resources' });
    const hostile = items.find(({ id }) => id === HOSTILE);
    assert.deepEqual([hostile?.name?.length, hostile?.description?.length], [200, 500]);
    const long = items.find(({ name }) => name === 'long');
    assert.deepEqual([long?.id.length, long?.isCut], [8_192, true]);
  });

  test('of a read is how it was answered, first by the upstream and then from memory', async () => {
    const miss = await read('books://2');
    assert.deepEqual(
      [miss.how.kind, miss.how.cacheStatus, miss.upstream, miss.scope],
      ['miss', 'headgate; fwd=uri-miss; stored', 'books', 'public'],
    );
    assert.ok(miss.how.upstreamMs > 0);
    const hit = await read('books://2');
    assert.deepEqual([hit.how.kind, hit.how.ageSeconds, hit.upstream], ['hit', 0, 'books']);
    assert.match(hit.how.means, /Answered from memory/);
    assert.ok(hit.ttlMs !== undefined && hit.ttlMs > 50_000 && hit.ttlMs <= 60_000);
    assert.equal((await read('art://rooms/1/x')).template, 'art://rooms/{room}/{name}');
  });

  test('of contents is text, or an image by its bytes, and of anything else the first bytes', async () => {
    const [png] = await contents('art://one');
    assert.deepEqual(
      [png?.kind, png?.mimeType, png?.kind === 'image' && png.base64],
      ['image', 'image/png', PNG],
    );
    const [svg] = await contents('art://svg');
    assert.deepEqual([svg?.kind, svg?.mimeType], ['bytes', 'image/svg+xml']);
    const [lie] = await contents('art://lie');
    assert.deepEqual([lie?.kind, lie?.kind === 'bytes' && lie.hex], ['bytes', '3c7363726970743e']);
    const [html] = await contents('art://html');
    assert.deepEqual(
      [html?.kind, html?.kind === 'text' && html.text],
      ['text', '<img src=x onerror=alert(1)>'],
    );
  });

  test('of contents has bounds: a hundred of them, and 1 MiB of text', async () => {
    const { outcome } = await read('art://many');
    assert.ok(outcome.kind === 'contents');
    assert.deepEqual([outcome.contents.length, outcome.leftOut], [100, 3]);
    const [big, none] = await contents('art://big');
    assert.ok(big?.kind === 'text' && none?.kind === 'text');
    assert.deepEqual([big.text.length, big.leftOut, none.text, none.leftOut], [1 << 20, 5, '', 7]);
  });

  test('of an answer larger than 16 MiB is that it is large, whether it was held or would flow', async () => {
    const held = await read('art://held');
    assert.ok(held.outcome.kind === 'contents' && held.bytes <= 16 << 20, JSON.stringify(held).slice(0, 300));
    assert.deepEqual((await read('art://huge')).outcome, { kind: 'large' });
    assert.deepEqual((await read('art://flowing')).outcome, { kind: 'large' });
    const busy = async () => (await state()).upstreams[0]?.connections.running ?? 0;
    await until(async () => (await busy()) <= 1, 'nothing to be under way but the listen');
  });

  test('of what is no result is what a client is told', async () => {
    assert.deepEqual((await read('art://asks')).outcome, { kind: 'input-required' });
    const { outcome } = await read('books://nowhere');
    assert.ok(outcome.kind === 'trouble');
    assert.deepEqual([outcome.trouble.code, outcome.trouble.data], [-32602, '{"uri":"books://nowhere"}']);
    const gone = await read('x://y', '/gone');
    assert.ok(gone.outcome.kind === 'trouble');
    assert.deepEqual([gone.outcome.trouble.code, gone.how.kind], [-32603, 'bypass']);
    const lists = await list({ route: '/gone', list: 'resources' });
    assert.deepEqual([lists.items, lists.trouble?.code], [[], -32603]);
  });

  test("is asked as nobody: no operator's header goes on, and what needs a caller is refused", async () => {
    const headers = { Authorization: `Bearer ${CANARY}`, Cookie: 'a=b' };
    const { json } = await gateway.post<ReadAnswer>(
      '/api/read',
      { route: '/mine', uri: 'mine://x' },
      headers,
    );
    assert.ok(json.outcome.kind === 'trouble');
    assert.deepEqual(json.outcome.trouble, { status: 401, code: 401, message: 'Unauthorized' });
    assert.deepEqual([mine.lastHeaders.authorization, mine.lastHeaders.cookie], [undefined, undefined]);
  });

  test('is what was said to be over, and by whom', async () => {
    await read('art://one');
    const asked = art.askedFor('resources/read');
    await until(async () => {
      art.changed('art://one');
      const { cache } = await state();
      return cache.invalidations.some((one) => one.upstream === 'art' && one.source === 'notification');
    }, 'a notification');
    await until(async () => (await read('art://one')).how.kind === 'miss', 'a miss');
    assert.ok(art.askedFor('resources/read') > asked);
    await gateway.post('/api/purge', { upstream: 'books', uri: 'books://2' });
    assert.equal((await read('books://2')).how.kind, 'miss');
    const { happenings } = await state();
    assert.deepEqual(happenings[0]?.what, {
      ...{ kind: 'invalidated', upstream: 'books', source: 'admin', scope: 'uri' },
    });
  });

  test('is an upstream that goes and comes back', async () => {
    const stateOfBooks = async () => (await state()).upstreams.find(({ name }) => name === 'books');
    await books.down();
    await until(async () => {
      await read(`books://fresh-${Math.random()}`);
      return (await stateOfBooks())?.circuit === 'open';
    }, 'an open circuit');
    const down = await stateOfBooks();
    assert.deepEqual([down?.state, down?.lastError?.kind], ['down', 'connect']);
    await books.back();
    await until(
      async () => {
        await read('books://3');
        return (await stateOfBooks())?.state === 'up';
      },
      'the upstream to be up again',
      15_000,
    );
    assert.equal((await stateOfBooks())?.circuit, 'closed');
  });

  test('of the configuration is what it is, without its secrets', async () => {
    const { json } = await gateway.get<ConfigAnswer>('/api/config');
    assert.match(json.yaml, /^ {2}books:\n {4}url: http:\/\/127\.0\.0\.1/m);
    assert.match(json.yaml, /token: "?\[redacted\]/);
    assert.equal(json.configuration, (await state()).configuration);
  });

  test('says what to write instead of what cannot be asked', async () => {
    for (const [path, body, wanted] of [
      ['/api/list', {}, /no such route; known: \/mcp, \/mine, \/gone/],
      ['/api/list', { route: '/mcp', list: 'all' }, /write a list: resources, templates, tools, prompts/],
      ['/api/list', { route: '/mcp', list: 'tools', cursor: 5 }, /cursor/],
      ['/api/list', { route: '__proto__', list: 'tools' }, /no such route/],
      ['/api/read', { route: '/mcp' }, /write the uri/],
      ['/api/read', { route: '/mcp', uri: '' }, /write the uri/],
      ['/api/read', { route: '/mcp', uri: 'x'.repeat(8_193) }, /at most 8192 characters/],
      ['/api/read', [], /no such route/],
    ] as const) {
      const { status, json } = await gateway.post<{ error: string }>(path, body);
      assert.equal(status, 400, JSON.stringify(body));
      assert.match(json.error, wanted);
    }
    const cursor = await list({ route: '/mcp', list: 'resources', cursor: 'made up' });
    assert.equal(cursor.trouble?.code, -32602);
  });

  test('R46: holds no secret of the configuration, whatever is asked, and neither does the log', async () => {
    const texts = [
      (await gateway.get('/api/state')).text,
      (await gateway.get('/api/config')).text,
      (await gateway.post('/api/list', { route: '/mcp', list: 'resources' })).text,
      (await gateway.post('/api/read', { route: '/mcp', uri: 'art://one' })).text,
      (await gateway.post('/api/read', { route: '/gone', uri: 'art://one' })).text,
      gateway.output(),
    ];
    assert.equal(art.lastHeaders.authorization, `Bearer ${CANARY}`, 'the upstream has it');
    for (const text of texts) assert.ok(!text.includes(CANARY), text);
    assert.doesNotMatch(gateway.output(), /art:\/\/|books:\/\//, 'a URI may be private');
  });
});

test('what the admin port shows of Redis is whether it is there', {
  skip: missingRedis() ?? false,
}, async () => {
  const redis = await startRedis();
  const art = await startGallery({ scheme: 'art', resources: [{ uri: 'art://one', name: 'one' }] });
  const gateway = await startAdminGateway(`
upstreams: { art: { url: "${art.url}" } }
routes: [{ path: /mcp, upstreams: [art] }]
cache: { redis: { url: "${redis.url}", required: true, timeouts: { command: 1s } } }
`);
  const state = async (): Promise<State> => (await gateway.get<State>('/api/state')).json;
  try {
    // A busy machine may miss a deadline, and the circuit is open for a moment.
    await until(async () => {
      const { redis: told } = await state();
      return told?.state === 'up' && told.circuit === 'closed';
    }, 'the connection to Redis');
    const up = await state();
    assert.deepEqual(
      [up.ready, up.redis?.required, up.redis?.sealed, up.redis?.circuit],
      [true, true, false, 'closed'],
    );
    await redis.kill();
    await until(async () => (await state()).redis?.state === 'down', 'the loss of Redis');
    const down = await state();
    assert.equal(down.ready, false);
    assert.deepEqual(
      down.checks.filter(({ holds }) => !holds).map(({ name }) => name),
      ['redis'],
    );
    assert.ok(down.happenings.some(({ what }) => what.kind === 'redis' && what.state === 'down'));
  } finally {
    await gateway.stop();
    await Promise.all([art.close(), redis.close()]);
  }
});
