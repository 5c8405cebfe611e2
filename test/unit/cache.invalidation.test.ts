import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createGenerations, MARKS_MAX } from '../../src/cache/generations.ts';
import type { CacheRequest } from '../../src/cache/types.ts';
import { createRig, said, turn } from '../support/cache.ts';

type Rig = ReturnType<typeof createRig>;
const ways: readonly (readonly [string, (cache: Rig['cache']) => void])[] = [
  ['the key', (cache) => cache.invalidateKey('docs', 'base')],
  ['the method', (cache) => cache.invalidateMethod('docs', 'resources/read')],
  ['the upstream', (cache) => cache.invalidateUpstream('docs')],
];

describe('invalidation', () => {
  for (const [name, invalidate] of ways) {
    it(`of ${name} ends public and private entries of every caller`, async () => {
      const rig = createRig();
      await rig.fill('alice', rig.privately('alice’s'));
      await rig.fill('bob', rig.privately('bob’s'));
      await rig.fill('carol', rig.complete('everybody’s'));
      invalidate(rig.cache);
      const before = rig.asked.length;
      for (const caller of ['alice', 'bob', 'carol']) void rig.ask(caller);
      // The last answer was public: they wait for one load.
      assert.equal(rig.asked.length, before + 1);
    });

    it(`R28: of ${name} outranks a read in flight: not stored, not fresh, not joined`, async () => {
      const rig = createRig();
      const before = rig.ask('alice');
      invalidate(rig.cache);
      const after = rig.ask('alice');
      assert.equal(rig.asked.length, 2);
      rig.nth(0).land(rig.complete('old'));
      assert.equal(said(await before), 'own:old public miss superseded ttl=0');
      const between = rig.ask('alice');
      assert.equal(rig.asked.length, 2);
      rig.nth(1).land(rig.complete('new'));
      assert.equal(said(await after), 'own:new public miss stored ttl=60000');
      assert.equal(said(await between), 'new public miss stored collapsed ttl=60000');
      assert.equal(said(await rig.ask('bob')), 'new public hit ttl=60000');
      assert.equal(rig.recorder.count('cacheStore memory superseded'), 1);
    });

    it(`R28: of ${name}, when the later read comes back first`, async () => {
      const rig = createRig();
      const before = rig.ask('alice');
      invalidate(rig.cache);
      const after = rig.ask('alice');
      rig.nth(1).land(rig.complete('new'));
      assert.equal(said(await after), 'own:new public miss stored ttl=60000');
      rig.nth(0).land(rig.complete('old'));
      assert.equal(said(await before), 'own:old public miss superseded ttl=0');
      assert.equal(said(await rig.ask('bob')), 'new public hit ttl=60000');
    });

    it(`R28: of ${name}: those who waited before it ask again, together`, async () => {
      const rig = createRig();
      const leader = rig.ask('alice');
      const mates = [rig.ask('alice'), rig.ask('alice'), rig.ask('alice')];
      invalidate(rig.cache);
      rig.nth(0).land(rig.complete('old'));
      await leader;
      await turn();
      assert.equal(rig.asked.length, 2);
      rig.nth(1).land(rig.complete('new'));
      for (const mate of mates) assert.match(said(await mate), /new public/);
    });
  }

  it('of a key gives its public bytes back at once', async () => {
    const rig = createRig();
    await rig.fill('alice', rig.complete('v'));
    rig.cache.invalidateKey('docs', 'base');
    assert.equal(rig.store.sizeBytes, 0);
    assert.equal(rig.recorder.count('cacheEviction memory invalidated'), 1);
  });

  it('of one thing leaves the others alone', async () => {
    const rig = createRig();
    await rig.fill('alice', rig.complete('v'));
    rig.cache.invalidateKey('docs', 'another');
    rig.cache.invalidateMethod('docs', 'tools/list');
    rig.cache.invalidateUpstream('city');
    assert.equal(said(await rig.ask('bob')), 'v public hit ttl=60000');
  });

  it('R24: more marks than are remembered one by one cost their own upstream entries, never freshness', async () => {
    const rig = createRig();
    await rig.fill('alice', rig.complete('docs'));
    await rig.fill('alice', rig.complete('city'), { upstream: 'city', baseKey: 'other' });
    rig.cache.invalidateKey('docs', 'base');
    for (let i = 0; i < MARKS_MAX; i++) rig.cache.invalidateKey('docs', `k${i}`);
    const before = rig.asked.length;
    void rig.ask('alice');
    assert.equal(rig.asked.length, before + 1);
    assert.match(said(await rig.ask('bob', { upstream: 'city', baseKey: 'other' })), /^city public hit/);
  });

  it('R30: marks are bounded, and what is forgotten counts for all', () => {
    const generations = createGenerations();
    const subject = (baseKey: string) => ({ upstream: 'docs', method: 'm', baseKey, partition: 'alice' });
    generations.invalidateKey('docs', 'first');
    const first = generations.ownFloor(subject('first'));
    for (let i = 0; i < MARKS_MAX - 1; i++) generations.invalidateKey('docs', `k${i}`);
    assert.equal(generations.ownFloor(subject('unmarked')), 0);
    generations.invalidateKey('docs', 'one more');
    assert.equal(generations.ownFloor(subject('unmarked')), first);
    assert.equal(generations.ownFloor(subject('first')), first);
    generations.invalidateKey('docs', 'k0');
    generations.invalidateKey('docs', 'another');
    assert.equal(
      generations.ownFloor(subject('unmarked')),
      first + 2,
      'k0 was marked again: k1 is the oldest',
    );
  });
});

describe('pages of one list', () => {
  const page = (n: number): Partial<CacheRequest> => ({
    method: 'tools/list',
    baseKey: `page${n}`,
    chain: { id: 'docs tools/list', position: n === 1 ? 'first' : 'later' },
  });
  const refetchFirst = async (rig: Rig, loaded: Parameters<Rig['fill']>[1], by = 'alice') => {
    rig.cache.invalidateKey('docs', 'page1');
    await rig.fill(by, loaded, page(1));
  };

  it('a first page fetched anew ends the later pages of the earlier chain', async () => {
    const rig = createRig();
    for (const n of [1, 2, 3]) await rig.fill('alice', rig.complete(`p${n}`), page(n));
    assert.match(said(await rig.ask('bob', page(3))), /hit/);
    await refetchFirst(rig, rig.complete('new p1'));
    const before = rig.asked.length;
    void rig.ask('bob', page(2));
    void rig.ask('bob', page(3));
    assert.equal(rig.asked.length, before + 2);
    assert.match(said(await rig.ask('bob', page(1))), /^new p1 public hit/);
  });

  it('also when the new first page is not stored', async () => {
    const rig = createRig();
    for (const n of [1, 2]) await rig.fill('alice', rig.complete(`p${n}`), page(n));
    await refetchFirst(rig, rig.complete('new', { hints: { ttlMs: 0, cacheScope: 'public' } }));
    const before = rig.asked.length;
    void rig.ask('bob', page(2));
    assert.equal(rig.asked.length, before + 1);
  });

  it('R28: a later page in flight from the earlier chain is not stored', async () => {
    const rig = createRig();
    await rig.fill('alice', rig.complete('p1'), page(1));
    const flying = rig.asked.length;
    const later = rig.ask('alice', page(2));
    await refetchFirst(rig, rig.complete('new p1'));
    rig.nth(flying).land(rig.complete('old p2'));
    assert.equal(said(await later), 'own:old p2 public miss superseded ttl=0');
  });

  it('later pages of the new chain stay', async () => {
    const rig = createRig();
    for (const n of [1, 2]) await rig.fill('alice', rig.complete(`p${n}`), page(n));
    await refetchFirst(rig, rig.complete('new p1'));
    await rig.fill('alice', rig.complete('new p2'), page(2));
    assert.match(said(await rig.ask('bob', page(2))), /^new p2 public hit/);
  });

  it('R22: a caller’s own first page ends the caller’s own later pages and no others', async () => {
    const rig = createRig();
    for (const by of ['alice', 'bob']) {
      for (const n of [1, 2]) await rig.fill(by, rig.privately(`${by}${n}`), page(n));
    }
    await refetchFirst(rig, rig.privately('new'));
    assert.match(said(await rig.ask('bob', page(2))), /^bob2 private hit/);
    const before = rig.asked.length;
    void rig.ask('alice', page(2));
    assert.equal(rig.asked.length, before + 1);
  });

  it('R22: private chains are each caller’s own', async () => {
    const rig = createRig();
    for (const by of ['alice', 'bob']) {
      for (const n of [1, 2]) await rig.fill(by, rig.privately(`${by}${n}`), page(n));
    }
    rig.clock.advance(1_000);
    rig.cache.dropChain('docs', 'docs tools/list', 'alice');
    const before = rig.asked.length;
    void rig.ask('alice', page(1));
    void rig.ask('alice', page(2));
    assert.equal(rig.asked.length, before + 2);
    assert.match(said(await rig.ask('bob', page(1))), /^bob1 private hit/);
    assert.match(said(await rig.ask('bob', page(2))), /^bob2 private hit/);
  });

  it('R15: a refused cursor drops every page, the first one too, also for those who come while one is in flight', async () => {
    const rig = createRig();
    for (const n of [1, 2]) await rig.fill('alice', rig.complete(`p${n}`), page(n));
    const flying = rig.asked.length;
    const three = rig.ask('alice', page(3));
    rig.cache.dropChain('docs', 'docs tools/list', 'alice');
    for (const n of [1, 2, 3]) void rig.ask('bob', page(n));
    assert.equal(rig.asked.length, flying + 4);
    rig.nth(flying).land(rig.complete('p3'));
    assert.match(said(await three), /superseded ttl=0$/);
  });

  it('a first page that turns private ends the public pages behind it', async () => {
    const rig = createRig();
    for (const n of [1, 2]) await rig.fill('alice', rig.complete(`p${n}`), page(n));
    rig.clock.advance(60_000);
    await rig.fill('bob', rig.complete('p2 again'), page(2));
    await rig.fill('bob', rig.privately('bob’s p1'), page(1));
    const before = rig.asked.length;
    void rig.ask('carol', page(2));
    assert.equal(rig.asked.length, before + 1);
  });
});

describe('an upstream that the configuration knows no more by that name', () => {
  it('R44: loses all its entries at once, and gives their bytes back', async () => {
    const rig = createRig();
    await rig.fill('alice', rig.privately('alice’s'));
    await rig.fill('carol', rig.complete('everybody’s'));
    assert.ok(rig.store.sizeBytes > 0);
    rig.cache.forget('docs');
    assert.deepEqual([rig.store.sizeBytes, rig.store.entryCount], [0, 0]);
    assert.equal(rig.recorder.count('cacheInvalidated docs reload upstream'), 1);
    const before = rig.asked.length;
    void rig.ask('alice');
    assert.equal(rig.asked.length, before + 1);
  });

  it('R44: a read that was on its way is not kept for the next one of that name', async () => {
    const rig = createRig();
    const before = rig.ask('alice');
    rig.cache.forget('docs');
    rig.nth(0).land(rig.complete('old'));
    assert.equal(said(await before), 'own:old public miss superseded ttl=0');
    assert.equal(rig.store.entryCount, 0);
  });
});
