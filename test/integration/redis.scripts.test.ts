/** What the scripts decide, each on a real server. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import { type Connection, createConnection } from '../../src/cache/redis/connect.ts';
import { encode } from '../../src/cache/redis/envelope.ts';
import { ABSENT_MAX_MS, FIELDS_MAX } from '../../src/cache/redis/lua.ts';
import { namesOf } from '../../src/cache/redis/names.ts';
import { createScripts, type Scripts } from '../../src/cache/redis/scripts.ts';
import { Secret } from '../../src/config/secret.ts';
import { until } from '../support/mcp.ts';
import { missingRedis, type RedisServer, startRedis } from '../support/redis.ts';

const skip = missingRedis() ?? false;
const names = namesOf('headgate:', 'docs');
const MOST_BYTES = 4096;

describe('the scripts', { skip }, () => {
  let server: RedisServer;
  let connection: Connection;
  let scripts: Scripts;

  before(async () => {
    server = await startRedis();
    connection = createConnection('commands', {
      config: {
        endpoint: { kind: 'url', url: new Secret(server.url) },
        timeouts: { connectMs: 2_000, commandMs: 25 },
      },
      random: randomBytes,
      log: { info: () => undefined, warn: () => undefined },
      events: { ready: () => undefined, lost: () => undefined },
    });
    connection.open();
    await until(() => connection.ready, 'connected');
    scripts = createScripts(connection.client, () => 0);
  });
  beforeEach(() => server.admin.flushall());
  after(async () => {
    connection.close();
    await server.close();
  });

  const slot = (fields: readonly string[] = ['m:read']) => ({ key: 'abc', fields });
  const lookup = (fields?: readonly string[], floor = 0) =>
    scripts.lookup(names, floor, MOST_BYTES, [slot(fields)]);
  const envelope = (token: number, uris: readonly string[] = [], tail = 'tail') => {
    const entry = {
      token,
      receivedAtUs: token,
      uris,
      scope: 'public' as const,
      ttlMs: 1,
      tail: Buffer.from(tail),
    };
    return encode(entry, names.entry('abc'), undefined) ?? assert.fail();
  };
  const store = (
    { token, born }: { token: number; born: number },
    uris: readonly string[] = [],
    tail?: string,
    fields: readonly string[] = ['m:read'],
  ) =>
    scripts.store(names, 0, {
      key: 'abc',
      fields: [...fields, ...uris],
      token,
      born,
      keepMs: 60_000,
      envelope: envelope(token, uris, tail),
    });
  const bump = (...fields: string[]) => scripts.bump(names, 0, '{"o":"me","s":1', fields);
  const sync = (seen = 0, given = 0) => scripts.sync(names, seen, given);
  const found = async (fields?: readonly string[]) => (await lookup(fields)).found[0] !== undefined;
  const put = (field: string, value: number) => server.admin.hset(names.hash, field, String(value));

  test('what was stored is found, byte for byte, and has a time to live', async () => {
    const load = await lookup();
    assert.equal(load.found[0], undefined);
    assert.equal(await store(load, ['u:1']), 'stored');
    assert.deepEqual((await lookup()).found[0], envelope(load.token, ['u:1']));
    assert.ok((await server.admin.pttl(names.entry('abc'))) > 0);
    assert.ok((await server.admin.pttl(names.hash)) > 0);
  });

  test('tokens are in one order: looks-up and bumps, also in the same microsecond', async () => {
    // Whatever is not known to the server yet is sent twice.
    await Promise.all([lookup(), bump('u:0')]);
    const replies = await Promise.all(
      Array.from({ length: 200 }, async (_, i) => (i % 3 === 0 ? bump(`u:${i}`) : lookup())),
    );
    const tokens = replies.map(({ token }) => token);
    assert.deepEqual(
      tokens,
      [...new Set(tokens)].sort((a, b) => a - b),
    );
  });

  for (const field of ['*', 'm:read', 'u:1']) {
    test(`R28: a bump of ${field} ends what was loaded before it, stored before or after`, async () => {
      const load = await lookup();
      assert.equal(await store(load, ['u:1']), 'stored');
      await bump(field);
      assert.equal(await found(), false);
      assert.equal(await store(load, ['u:1']), 'superseded');
      const next = await lookup();
      assert.equal(await store(next, ['u:1']), 'stored');
      assert.equal(await found(), true);
    });
  }

  test('a bump of another field ends nothing', async () => {
    await store(await lookup(), ['u:1']);
    await bump('m:list', 'u:2');
    assert.equal(await found(), true);
  });

  test('fields have names of their own, whatever they are called', async () => {
    await bump('born', 'last', 'high', 'alive');
    const load = await lookup(['born']);
    await store(load, [], 'x', ['born']);
    assert.equal(await found(['born']), true);
    await bump('born');
    assert.equal(await found(['born']), false);
    assert.equal((await lookup()).born, load.born);
  });

  test('R28: of two loads the later one stays, whichever ends first', async () => {
    const [older, newer] = [await lookup(), await lookup()];
    assert.equal(await store(newer, [], 'newer'), 'stored');
    assert.equal(await store(older, [], 'older'), 'superseded');
    assert.deepEqual((await lookup()).found[0], envelope(newer.token, [], 'newer'));
  });

  test('R29: after a flush nothing begun before is stored, and the order goes on', async () => {
    const load = await lookup();
    const { token } = await bump('u:1');
    await server.admin.flushall();
    assert.equal(await store(load), 'superseded');
    const next = await lookup();
    assert.ok(next.token > token && next.born > load.token);
    assert.equal(await store(load), 'superseded');
  });

  test('R29: what was begun under another order is not stored, whatever the clock that made this one', async () => {
    const load = await lookup();
    await put('born', load.born - 1_000_000);
    assert.equal(await store(load), 'superseded');
  });

  test('R29: without its order an entry is over, also when the order alone was evicted', async () => {
    await store(await lookup());
    await server.admin.del(names.hash);
    assert.equal(await found(), false);
    await store(await lookup());
    assert.equal(await found(), true);
    await server.admin.del(names.hash);
    await bump('u:other');
    assert.equal(await found(), false);
  });

  test('R29: tokens do not go back with the clock of Redis', async () => {
    const load = await lookup();
    const ahead = load.token + 3_600_000_000;
    // As if the clock had stood an hour further, and has been set back.
    await put('high', ahead);
    const late = await lookup();
    assert.equal(late.token, ahead + 1);
    assert.equal(await store(late, ['u:1']), 'stored');
    const { token } = await bump('u:1');
    assert.equal(token, ahead + 2);
    assert.equal(await found(), false);
  });

  test('R29: a new order is above what the asking replica knows of the old one', async () => {
    const known = (await lookup()).token + 3_600_000_000;
    await server.admin.flushall();
    const reply = await lookup(undefined, known);
    assert.ok(reply.born > known && reply.token > reply.born);
  });

  test('R29: foreign values at our keys are replaced, and bring nothing back', async () => {
    await store(await lookup());
    await server.admin.set(names.hash, 'foreign');
    assert.equal(await found(), false);
    for (const [field, value] of [
      ['born', 'x'],
      ['last', '-1'],
      ['high', '1e3'],
      ['alive', ''],
      [':*', 'x'],
    ] as const) {
      await store(await lookup());
      assert.equal(await found(), true);
      await server.admin.hset(names.hash, field, value);
      assert.equal(await found(), false, field);
    }
    await store(await lookup());
    await server.admin.hset(names.hash, ':m:read', 'x');
    assert.equal(await found(), false);
  });

  test('R29: corrupt and foreign entries are counted, left out, and overwritten', async () => {
    const load = await lookup();
    const good = envelope(load.token, ['u:1']);
    const bad: (string | Buffer)[] = ['', 'x', 'hge1', good.subarray(0, 70), 'y'.repeat(MOST_BYTES + 1)];
    const future = envelope(load.token + 3_600_000_000);
    const field = Buffer.from(good);
    field.write('999', 67);
    for (const value of [...bad, future, field]) {
      await server.admin.set(names.entry('abc'), value, 'PX', 60_000);
      const reply = await lookup();
      assert.equal(reply.found[0], undefined);
      assert.equal(reply.corruptCount, value.length === 0 ? 0 : 1, String(value));
      assert.equal(await store(reply), 'stored');
    }
    await server.admin.del(names.entry('abc'));
    await server.admin.rpush(names.entry('abc'), 'a list');
    const reply = await lookup();
    assert.deepEqual([reply.found[0], reply.corruptCount], [undefined, 1]);
    assert.equal(await store(reply), 'stored');
    assert.equal(await found(), true);
  });

  test('a bump is told on the channel after it is written, with its token and the one before', async () => {
    const listener = server.admin.duplicate();
    const told: string[] = [];
    listener.on('message', (_channel, text) => told.push(text));
    await listener.subscribe(names.channel);
    const one = await bump('u:1');
    const two = await bump('u:2');
    await until(() => told.length === 2, 'told');
    listener.disconnect();
    assert.equal(two.previous, one.token);
    assert.deepEqual(JSON.parse(told[1] as string), {
      o: 'me',
      s: 1,
      t: String(two.token),
      p: String(one.token),
    });
  });

  test(`beyond ${FIELDS_MAX} fields everything is over, and they are forgotten`, async () => {
    await store(await lookup(), ['u:kept']);
    for (let at = 0; at < FIELDS_MAX - 4; at += 1_000) {
      const count = Math.min(1_000, FIELDS_MAX - 4 - at);
      await bump(...Array.from({ length: count }, (_, i) => `u:${at + i}`));
    }
    assert.equal(await server.admin.hlen(names.hash), FIELDS_MAX);
    assert.equal(await found(), true);
    await bump('u:one more');
    assert.equal(await server.admin.hlen(names.hash), 5);
    assert.equal(await found(), false);
    assert.ok((await server.admin.pttl(names.hash)) > 0);
  });

  test('R29: a server that has lost bumps is raised above them, and everything is over', async () => {
    const load = await lookup();
    await store(load);
    const { token } = await bump('u:1');
    const lost = token + 5_000_000;
    const reply = await sync(lost);
    assert.equal(reply.raised, true);
    assert.equal(reply.lastFound, token);
    assert.ok(reply.last > lost);
    assert.equal(await found(), false);
    assert.equal(await store(load), 'superseded');
    assert.deepEqual((await sync(reply.last)).raised, false);
  });

  test('R29: loads that a replica was given elsewhere are below the bumps that come', async () => {
    const { token } = await lookup();
    const given = token + 5_000_000;
    assert.equal((await sync(1, given)).raised, false);
    assert.ok((await bump('u:1')).token > given);
  });

  test('R29: a replica that starts trusts nothing that nobody watched', async () => {
    await store(await lookup());
    const first = await sync();
    assert.equal(first.raised, false);
    assert.equal(await found(), true);
    await put('alive', first.now - ABSENT_MAX_MS * 1_000 - 1_000_000);
    assert.equal((await sync(first.last)).raised, false, 'one that was there all the time knows better');
    await put('alive', first.now - ABSENT_MAX_MS * 1_000 - 1_000_000);
    assert.equal((await sync()).raised, true);
    assert.equal(await found(), false);
  });

  test('the first to synchronise makes the order', async () => {
    const reply = await sync();
    assert.deepEqual([reply.raised, reply.last], [false, reply.born]);
    assert.equal((await sync()).born, reply.born);
  });

  test('R29: out of memory, what is there is found, nothing is stored, and a bump still ends it', async () => {
    await store(await lookup());
    await server.admin.config('SET', 'maxmemory-policy', 'noeviction');
    await server.admin.config('SET', 'maxmemory', '1mb');
    const load = await lookup();
    assert.notEqual(load.found[0], undefined);
    await assert.rejects(store(load), /OOM/);
    assert.equal((await sync(1)).raised, false);
    await bump('m:read');
    assert.equal(await found(), false);
    await server.admin.del(names.hash);
    await bump('m:read');
    await server.admin.config('SET', 'maxmemory', '0');
    assert.equal(await store(load), 'superseded');
    assert.equal(await store(await lookup()), 'stored');
  });

  test('a server that has forgotten the scripts is sent them again', async () => {
    await server.admin.script('FLUSH');
    const load = await lookup();
    assert.equal(await store(load), 'stored');
  });
});
