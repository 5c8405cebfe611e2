import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CacheRequest } from '../../src/cache/types.ts';
import { createRig, said, turn } from '../support/cache.ts';
import { createRemoteServer } from '../support/remote-server.ts';

const URI = 'docs://a';
const READ: Partial<CacheRequest> = { uri: URI };

/** Two replicas on one server. `settle`: everything that is not held is through. */
function two(options: { readonly sealsPrivate?: boolean } = {}) {
  const server = createRemoteServer();
  const [remoteA, remoteB] = [server.replica(options), server.replica(options)];
  const a = { ...createRig({}, remoteA), remote: remoteA };
  const b = { ...createRig({}, remoteB), remote: remoteB };
  const settle = async (): Promise<void> => {
    for (let round = 0; round < 5; round++) await turn();
  };
  return { server, a, b, settle };
}
type Replica = ReturnType<typeof two>['a'];

/** Asks, lets its load (the n-th of that replica) bring what it should, and says what came. */
async function fill(
  { a, b, settle }: ReturnType<typeof two>,
  at: 'a' | 'b',
  by: string,
  text: string,
  how: 'public' | 'private' = 'public',
  over: Partial<CacheRequest> = READ,
): Promise<string> {
  const rig = at === 'a' ? a : b;
  const answer = rig.ask(by, over);
  await settle();
  const load = rig.asked.length - 1;
  rig.nth(load).land(how === 'public' ? rig.complete(text) : rig.privately(text));
  const came = said(await answer);
  await settle();
  return came;
}

/** What a replica answers at once or from the shared tier; `asks`: it would ask the upstream. */
async function answer(rig: Replica, by: string, over: Partial<CacheRequest> = READ): Promise<string> {
  const before = rig.asked.length;
  const asked = rig.ask(by, over);
  for (let round = 0; round < 5; round++) await turn();
  return rig.asked.length > before ? 'asks' : said(await asked);
}

describe('replicas that share a tier', () => {
  test('warm on one is a hit on the other, which asks nobody', async () => {
    const world = two();
    await fill(world, 'a', 'alice', 'one');
    const hit = await world.b.ask('bob', READ);
    assert.equal(said(hit), 'one public hit ttl=60000');
    assert.deepEqual(hit.outcome, { kind: 'hit', tier: 'redis', ageMs: 0, ttlMs: 60_000 });
    assert.equal(world.b.asked.length, 0);
    const again = await world.b.ask('carol', READ);
    assert.equal(again.outcome.kind === 'hit' && again.outcome.tier, 'memory');
  });

  test('R22: a private answer is a hit for its own caller alone, on every replica', async () => {
    const world = two();
    await fill(world, 'a', 'alice', 'hers', 'private');
    assert.equal(await answer(world.b, 'alice'), 'hers private hit ttl=60000');
    assert.equal(await answer(world.b, 'bob'), 'asks');
  });

  test('R22: without secrets a private answer stays where it is', async () => {
    const world = two({ sealsPrivate: false });
    await fill(world, 'a', 'alice', 'hers', 'private');
    assert.equal(await answer(world.a, 'alice'), 'hers private hit ttl=60000');
    assert.equal(await answer(world.b, 'alice'), 'asks');
    assert.deepEqual(world.server.keys, []);
  });

  test('names neither URI nor caller to the shared tier', async () => {
    const world = two();
    await fill(world, 'a', 'alice', 'hers', 'private');
    await fill(world, 'a', 'bob', 'all', 'public', { uri: URI, baseKey: 'other' });
    assert.equal(world.server.keys.length, 2);
    for (const key of world.server.keys) assert.doesNotMatch(key, /alice|bob|docs:\/\//);
  });

  for (const [what, end] of [
    ['the upstream', (rig: Replica) => rig.cache.invalidateUpstream('docs')],
    ['the method', (rig: Replica) => rig.cache.invalidateMethod('docs', 'resources/read')],
    ['the key', (rig: Replica) => rig.cache.invalidateKey('docs', 'base')],
    ['the resource', (rig: Replica) => rig.cache.invalidateUri('docs', URI)],
    ['a resource below it', (rig: Replica) => rig.cache.invalidateUri('docs', `${URI}/x`)],
  ] as const) {
    test(`R28: an end of ${what} on one ends it on the other, in memory and in the shared tier`, async () => {
      const world = two();
      await fill(world, 'a', 'alice', 'old');
      await answer(world.b, 'bob');
      await end(world.a);
      await world.settle();
      assert.equal(await answer(world.a, 'alice'), 'asks');
      assert.equal(await answer(world.b, 'bob'), 'asks');
    });

    test(`R28: an end of ${what} outranks the load of another replica that is in flight, told before it lands`, async () => {
      const world = two();
      const old = world.b.ask('bob', READ);
      await world.settle();
      await end(world.a);
      await world.settle();
      const late = world.b.ask('carol', READ);
      await world.settle();
      assert.equal(world.b.asked.length, 2, 'joined');
      world.b.nth(0).land(world.b.complete('old'));
      assert.match(said(await old), /superseded ttl=0$/);
      world.b.nth(1).land(world.b.complete('new'));
      assert.match(said(await late), /^own:new public miss stored/);
      await world.settle();
      assert.equal(await answer(world.a, 'alice'), 'new public hit ttl=60000');
    });

    test(`R28: an end of ${what} outranks it also when it is told later: the shared tier refuses it`, async () => {
      const world = two();
      world.server.holdMessages();
      const old = world.b.ask('bob', READ);
      await world.settle();
      await end(world.a);
      world.b.nth(0).land(world.b.complete('old'));
      await old;
      await world.settle();
      assert.equal(await answer(world.b, 'carol'), 'asks', 'stayed fresh here');
      assert.equal(await answer(world.a, 'alice'), 'asks', 'came back there');
    });
  }

  test('R28: of two loads the one that began later stays, whichever comes back first', async () => {
    for (const first of ['older', 'newer'] as const) {
      const world = two();
      const older = world.a.ask('alice', READ);
      await world.settle();
      const newer = world.b.ask('bob', READ);
      await world.settle();
      const land = {
        older: () => world.a.nth(0).land(world.a.complete('older')),
        newer: () => world.b.nth(0).land(world.b.complete('newer')),
      };
      land[first]();
      await world.settle();
      land[first === 'older' ? 'newer' : 'older']();
      await Promise.all([older, newer]);
      await world.settle();
      const third = createRig({}, world.server.replica());
      assert.match(said(await third.ask('carol', READ)), /^newer /, first);
    }
  });

  test('R28: while a bump is on its way, the replica that made it takes nothing old from the shared tier', async () => {
    const world = two();
    await fill(world, 'a', 'alice', 'old');
    const release = world.a.remote.hold('bump');
    const ended = world.a.cache.invalidateUri('docs', URI);
    assert.equal(await answer(world.a, 'alice'), 'asks');
    release();
    await ended;
  });

  test('R28: an answer from the shared tier that was asked for before an invalidation here is not used', async () => {
    const world = two();
    await fill(world, 'a', 'alice', 'old');
    const release = world.b.remote.hold('lookup');
    const asked = world.b.ask('bob', READ);
    await world.settle();
    world.server.holdMessages();
    void world.b.cache.invalidateUri('docs', URI);
    release();
    await world.settle();
    assert.equal(world.b.asked.length, 1);
    world.b.nth(0).land(world.b.complete('new'));
    assert.match(said(await asked), /^own:new/);
  });

  test('R23: an answer that is not for everybody any more ends the public one everywhere', async () => {
    const world = two();
    await fill(world, 'a', 'alice', 'all');
    await answer(world.b, 'carol');
    // Its time is over there; on the other replica it is a little younger.
    world.b.clock.advance(61_000);
    world.server.advance(61_000);
    await fill(world, 'b', 'bob', 'his', 'private');
    assert.equal(await answer(world.a, 'alice'), 'asks');
    assert.equal(await answer(world.b, 'bob'), 'his private hit ttl=60000');
  });

  test('R23: and ends it also when the shared tier could not be asked at that moment', async () => {
    const world = two();
    await fill(world, 'a', 'alice', 'all');
    const release = world.b.remote.hold('bump');
    void world.b.cache.invalidateKey('docs', 'another');
    await fill(world, 'b', 'bob', 'his', 'private');
    release();
    await world.settle();
    assert.equal(await answer(world.a, 'alice'), 'asks');
  });

  test('R23: and no public answer that was asked for before it comes back', async () => {
    const world = two();
    const early = world.a.ask('alice', READ);
    await world.settle();
    await fill(world, 'b', 'bob', 'his', 'private');
    world.a.nth(0).land(world.a.complete('all'));
    await early;
    await world.settle();
    const third = { ...createRig({}, world.server.replica()), remote: world.server.replica() };
    assert.equal(await answer(third, 'carol'), 'asks');
    assert.equal(await answer(world.a, 'carol'), 'asks');
  });

  test('a later page does not outlive the first page it came behind, on any replica', async () => {
    const page = (n: number): Partial<CacheRequest> => ({
      method: 'tools/list',
      baseKey: `page${n}`,
      chain: { id: 'tools', position: n === 1 ? 'first' : 'later' },
    });
    const world = two();
    for (const n of [1, 2]) await fill(world, 'a', 'alice', `p${n}`, 'public', page(n));
    assert.equal(await answer(world.b, 'bob', page(2)), 'p2 public hit ttl=60000');
    const third = { ...createRig({}, world.server.replica()), remote: world.server.replica() };
    const c = { ...world, a: third as Replica };
    await c.a.cache.invalidateKey('docs', 'page1');
    await world.settle();
    await fill(c, 'a', 'alice', 'p1 anew', 'public', page(1));
    assert.equal(await answer(third as Replica, 'dora', page(2)), 'asks');
  });

  test('what the shared tier has but is stale stands in when the upstream fails', async () => {
    const world = two();
    await fill(world, 'a', 'alice', 'good');
    world.server.advance(61_000);
    const asked = world.b.ask('bob', READ);
    await world.settle();
    world.b.nth(0).land({ kind: 'failed', value: 'down', stale: 'allowed' });
    assert.equal(said(await asked), 'good public stale ttl=0');
  });

  test('R27: time in the shared tier counts', async () => {
    const world = two();
    await fill(world, 'a', 'alice', 'one');
    world.server.advance(50_000);
    const hit = await world.b.ask('bob', READ);
    assert.deepEqual(hit.outcome, { kind: 'hit', tier: 'redis', ageMs: 50_000, ttlMs: 10_000 });
    world.b.clock.advance(10_000);
    world.server.advance(10_000);
    assert.equal(await answer(world.b, 'bob'), 'asks');
  });
});

describe('what is counted of the shared tier', () => {
  test('answers that were stored there, and those that came too late', async () => {
    const world = two();
    await fill(world, 'a', 'alice', 'one');
    assert.equal(world.a.recorder.count('cacheStore redis ok'), 1);
    const asked = world.a.ask('alice', { uri: 'docs://b', baseKey: 'b' });
    await world.settle();
    const release = world.a.remote.hold('store');
    world.a.nth(1).land(world.a.complete('two'));
    await asked;
    await world.b.cache.invalidateUpstream('docs');
    release();
    await world.settle();
    assert.equal(world.a.recorder.count('cacheStore redis superseded'), 1);
  });

  test('who said that something is over: another replica, or that it was not known what was missed', async () => {
    const { a, b, settle } = two();
    await b.cache.invalidateMethod('docs', 'tools/list');
    await settle();
    assert.equal(a.recorder.count('cacheInvalidated docs replica method'), 1);
    const told: Parameters<typeof a.remote.onChange>[0][] = [];
    const missing = createRig(
      {},
      {
        ...a.remote,
        onChange: (listener) => {
          told.push(listener);
          return () => undefined;
        },
      },
    );
    told[0]?.({ upstream: 'docs', fields: ['*'], source: 'resync' });
    assert.deepEqual(missing.recorder.lines, ['cacheInvalidated docs resync upstream']);
  });
});
