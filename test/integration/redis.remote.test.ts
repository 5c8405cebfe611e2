/** What the shared tier promises to the cache, on a server that works. */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { BUMPED_MAX } from '../../src/cache/redis/bumps.ts';
import { until } from '../support/mcp.ts';
import { missingRedis, type RedisServer, startRedis, startWire } from '../support/redis.ts';
import {
  entryOf,
  MAX_ENTRY_BYTES,
  type Replica,
  type ReplicaOptions,
  slotOf,
  startReplica,
  UPSTREAM,
} from '../support/remote.ts';

const skip = missingRedis() ?? false;

describe('the shared tier', { skip }, () => {
  let server: RedisServer;
  let replicas: Replica[] = [];

  before(async () => {
    server = await startRedis();
  });
  beforeEach(() => server.admin.flushall());
  afterEach(async () => {
    await Promise.all(replicas.map(({ store }) => store.close()));
    replicas = [];
  });
  after(() => server.close());

  async function listening(count: number): Promise<boolean> {
    const [, listeners] = (await server.admin.pubsub('NUMSUB', 'headgate:1:bus')) as [string, number];
    return listeners === count;
  }

  async function replica(options: ReplicaOptions = {}, url = server.url): Promise<Replica> {
    const made = startReplica(url, options);
    replicas.push(made);
    await made.up();
    await until(() => listening(replicas.length), 'all of them listen');
    return made;
  }

  test('what one replica stored the other finds, with its hints and its age', async () => {
    const [a, b] = [await replica(), await replica()];
    const { token } = await a.ask();
    const entry = { ...entryOf(token, 'hello'), ageMs: 3_000, ttlMs: undefined };
    assert.equal(await a.store.store(entry), 'stored');
    const { shared } = await b.ask();
    assert.equal(Buffer.from(shared?.tail ?? []).toString(), 'hello');
    assert.deepEqual([shared?.scope, shared?.ttlMs, shared?.uris], ['public', undefined, ['u:abc']]);
    const ageMs = shared?.ageMs ?? 0;
    assert.ok(ageMs >= 3_000 && ageMs < 4_000, `${ageMs} ms`);
  });

  test('private answers are sealed, found by their own slot only, and opened after a rotation', async () => {
    const a = await replica();
    const { token } = await a.ask();
    const mine = { ...entryOf(token, 'secret text', 'mine'), scope: 'private' as const };
    assert.equal(await a.store.store(mine), 'stored');
    const keys = await server.admin.keys('*:e:mine');
    assert.ok(!(await server.admin.getBuffer(keys[0] as string))?.includes('secret text'));
    const both = { upstream: UPSTREAM, own: slotOf('mine'), shared: slotOf('abc') };
    const found = await a.store.lookup(both);
    assert.equal(found.kind === 'asked' && Buffer.from(found.own?.tail ?? []).toString(), 'secret text');
    const swapped = await a.store.lookup({ ...both, own: undefined, shared: slotOf('mine') });
    assert.equal(swapped.kind === 'asked' && swapped.shared, undefined);
    await a.load('public text');
    const plain = await a.store.lookup({ ...both, own: slotOf('abc') });
    assert.equal(plain.kind === 'asked' && plain.own, undefined);
  });

  test('without secrets nothing private is written or asked for', async () => {
    const a = await replica({ secrets: [] });
    assert.equal(a.store.sealsPrivate, false);
    const { token } = await a.ask();
    assert.equal(await a.store.store({ ...entryOf(token, 'x'), scope: 'private' }), 'unavailable');
  });

  test('an answer beyond the bound is not stored', async () => {
    const a = await replica();
    const { token } = await a.ask();
    assert.equal(await a.store.store(entryOf(token, 'x'.repeat(MAX_ENTRY_BYTES + 1))), 'too_large');
    assert.equal(await a.store.store(entryOf(token, 'x'.repeat(MAX_ENTRY_BYTES))), 'stored');
    assert.equal((await a.text())?.length, MAX_ENTRY_BYTES);
  });

  test('every key has a time to live, and holds no upstream, URI or token', async () => {
    const a = await replica();
    await a.load('hello');
    await a.store.bump(UPSTREAM, ['u:file:///etc/motd', '*'], 'told');
    const keys = await server.admin.keys('*');
    assert.equal(keys.length, 2);
    for (const key of keys) {
      assert.match(key, /^headgate:1:\{[0-9a-f]{16}\}:(g|e:abc)$/);
      assert.ok((await server.admin.pttl(key)) > 0, key);
    }
  });

  test('R28: a bump on one replica ends what the other was loading, and is told to it', async () => {
    const [a, b] = [await replica(), await replica()];
    const loading = await b.ask();
    const startedAt = performance.now();
    assert.equal(await a.store.bump(UPSTREAM, ['u:abc'], 'told'), true);
    assert.equal(await b.store.store(entryOf(loading.token, 'old')), 'superseded');
    await until(() => b.changes.length > 0, 'told');
    assert.ok(performance.now() - startedAt < 1_000);
    assert.deepEqual(b.changes, [{ upstream: UPSTREAM, fields: ['u:abc'], source: 'replica' }]);
    assert.deepEqual(a.changes, []);
    assert.equal(await b.load('new'), 'stored');
    assert.equal(await a.text(), 'new');
  });

  test('bumps of both at once are told to each other, each once, and nothing is taken for missed', async () => {
    const [a, b] = [await replica(), await replica()];
    const fields = Array.from({ length: 200 }, (_, i) => `u:${i}`);
    const written = await Promise.all(
      fields.flatMap((field) => [
        a.store.bump(UPSTREAM, [`${field}a`], 'told'),
        b.store.bump(UPSTREAM, [`${field}b`], 'told'),
      ]),
    );
    assert.ok(written.every(Boolean));
    await until(() => a.changes.length >= 200 && b.changes.length >= 200, 'told');
    // Twice as long as a gap is waited for.
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.deepEqual(
      new Set(a.changes.map(({ fields: [field] }) => field)),
      new Set(fields.map((f) => `${f}b`)),
    );
    assert.deepEqual([a.changes.length, b.changes.length], [200, 200]);
  });

  test('R28: nothing is looked up or stored while a bump of that upstream is under way', async () => {
    const a = await replica();
    const { token } = await a.ask();
    const bumping = a.store.bump(UPSTREAM, ['u:other'], 'told');
    assert.equal(await a.text(), 'unavailable');
    assert.equal(await a.store.store(entryOf(token, 'old')), 'unavailable');
    assert.equal(await bumping, true);
    assert.equal(await a.text(), undefined);
  });

  test('R28: a look-up that a bump overtakes brings nothing', async () => {
    const a = await replica();
    await a.load('old');
    const looking = a.text();
    const bumping = a.store.bump(UPSTREAM, ['u:abc'], 'told');
    assert.notEqual(await looking, 'old');
    await bumping;
    assert.equal(await a.text(), undefined);
  });

  test(`more than ${BUMPED_MAX} fields in one bump are everything`, async () => {
    const [a, b] = [await replica(), await replica()];
    const fields = Array.from({ length: BUMPED_MAX + 1 }, (_, i) => `u:${i}`);
    await a.store.bump(UPSTREAM, fields.slice(1), 'told');
    await a.store.bump(UPSTREAM, fields, 'told');
    await until(() => b.changes.length === 2, 'told');
    assert.deepEqual(
      b.changes.map((change) => change.fields),
      [fields.slice(1), ['*']],
    );
  });

  test('an upstream that was not announced is used after a moment', async () => {
    const a = await replica();
    const request = { upstream: 'late', own: undefined, shared: slotOf('abc') };
    assert.equal((await a.store.lookup(request)).kind, 'unavailable');
    await until(async () => (await a.store.lookup(request)).kind === 'asked', 'asked');
    assert.deepEqual(a.changes, []);
  });

  test('a start, and signs of life, are no change', async () => {
    const a = await replica();
    await replica();
    await until(() => a.lines.filter((line) => line === 'busMessage in').length >= 2, 'two signs of life');
    assert.deepEqual(a.changes, []);
    assert.ok(!a.lines.some((line) => line.startsWith('busResync')));
  });

  test('R28: a replica that could not listen hears of a bump within 5 s', async (t) => {
    const wire = await startWire(server.port);
    t.after(() => wire.close());
    const a = await replica();
    const b = await replica({}, wire.url);
    wire.cut();
    await a.store.bump(UPSTREAM, ['u:abc'], 'told');
    const bumpedAt = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    assert.deepEqual(b.changes, []);
    wire.mend();
    await until(() => b.changes.length > 0, 'told', 10_000);
    t.diagnostic(`told after ${Math.round(performance.now() - bumpedAt)} ms, 2,000 of them without a line`);
    assert.ok(performance.now() - bumpedAt < 5_000);
    assert.deepEqual(b.changes[0], { upstream: UPSTREAM, fields: ['*'], source: 'resync' });
  });

  test('R28: a replica whose subscription alone is gone hears of a bump within 5 s', async (t) => {
    const [a, b] = [await replica(), await replica()];
    await b.ask();
    await server.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    // As good as at the same time: nobody listens.
    await a.store.bump(UPSTREAM, ['u:abc'], 'told');
    const bumpedAt = performance.now();
    await until(() => b.changes.length > 0, 'told', 10_000);
    t.diagnostic(`told after ${Math.round(performance.now() - bumpedAt)} ms`);
    assert.ok(performance.now() - bumpedAt < 5_000);
  });

  test('R28: a bump whose message is lost is found by asking, also when later ones arrive', async (t) => {
    const [a, b] = [await replica(), await replica()];
    const [hash] = await server.admin.keys('*:g');
    const last = Number(await server.admin.hget(hash as string, 'last'));
    // What a bump writes, without telling.
    await server.admin.hset(hash as string, 'last', last + 10, 'high', last + 10, ':u:abc', last + 10);
    const lostAt = performance.now();
    await a.store.bump(UPSTREAM, ['u:other'], 'told');
    await until(() => b.changes.some(({ source }) => source === 'resync'), 'found', 10_000);
    t.diagnostic(`found after ${Math.round(performance.now() - lostAt)} ms`);
    assert.ok(performance.now() - lostAt < 5_000);
    await server.admin.hset(hash as string, 'last', last + 60_000_000_000, 'high', last + 60_000_000_000);
    const before = b.changes.length;
    await until(() => b.changes.length > before, 'found without a later one', 5_000);
  });

  test('R29: foreign messages on the channel are passed over', async () => {
    const [a, b] = [await replica(), await replica()];
    for (const text of [
      '',
      '{',
      'null',
      '[]',
      '{"o":1}',
      '{"o":"x","s":1,"u":"docs","f":["*"],"t":"9e99","p":"1"}',
    ])
      await server.admin.publish('headgate:1:bus', text);
    await a.store.bump(UPSTREAM, ['u:1'], 'told');
    await until(() => b.changes.length > 0, 'told');
    assert.deepEqual(b.changes[0]?.fields, ['u:1']);
  });

  test('a listener in trouble keeps nothing from the others', async () => {
    const [a, b] = [await replica(), await replica()];
    const told: string[] = [];
    b.store.onChange(() => {
      throw new Error('in trouble');
    });
    const stop = b.store.onChange(({ upstream }) => told.push(upstream));
    await a.store.bump(UPSTREAM, ['u:1'], 'told');
    await until(() => told.length === 1, 'told');
    stop();
    await a.store.bump(UPSTREAM, ['u:2'], 'told');
    await until(() => b.changes.length === 2, 'told');
    assert.equal(told.length, 1);
  });

  test('after its end it is down, asks nothing and holds nothing up', async () => {
    const a = await replica();
    await a.store.close();
    await a.store.close();
    assert.equal(a.store.state, 'down');
    assert.equal(await a.text(), 'unavailable');
    assert.equal(await a.store.bump(UPSTREAM, ['*'], 'told'), false);
  });

  test('a Cluster: one slot for all keys of an upstream, and the bus', async (t) => {
    const cluster = await startRedis('--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1');
    t.after(() => cluster.close());
    await cluster.admin.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await until(
      async () => String(await cluster.admin.call('CLUSTER', 'INFO')).includes('state:ok'),
      'a cluster',
    );
    const node = { host: '127.0.0.1', port: cluster.port };
    const config = { endpoint: { kind: 'cluster' as const, nodes: [node], tls: false } };
    const [a, b] = [startReplica('', { config }), startReplica('', { config })];
    replicas.push(a, b);
    await Promise.all([a.up(), b.up()]);
    assert.equal(await a.load('hello'), 'stored');
    assert.equal(await b.text(), 'hello');
    await until(() => a.lines.includes('busMessage in') && b.lines.includes('busMessage in'), 'listening');
    await a.store.bump(UPSTREAM, ['u:abc'], 'told');
    assert.equal(await b.text(), undefined);
    await until(() => b.changes.length > 0, 'told');
    assert.deepEqual(b.changes[0]?.fields, ['u:abc']);
    await cluster.kill();
    await until(() => a.store.state === 'down', 'down');
    assert.equal(await a.text(), 'unavailable');
  });

  test('what it costs', async (t) => {
    const a = await replica();
    await a.load('x'.repeat(2_048));
    const times: number[] = [];
    for (let i = 0; i < 2_000; i++) {
      const startedAt = performance.now();
      assert.equal((await a.text())?.length, 2_048);
      times.push(performance.now() - startedAt);
    }
    times.sort((x, y) => x - y);
    const startedAt = performance.now();
    for (let i = 0; i < 50; i++) await Promise.all(Array.from({ length: 64 }, () => a.text()));
    const each = (performance.now() - startedAt) / (50 * 64);
    const at = (part: number) => (times[Math.floor(times.length * part)] as number).toFixed(3);
    t.diagnostic(
      `lookup of 2 KiB: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms; ${Math.round(1_000 / each)}/s by 64`,
    );
  });
});
