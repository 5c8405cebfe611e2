import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RECENT_MAX } from '../../src/cache/keep.ts';
import type { Loaded } from '../../src/cache/types.ts';
import { createRig, failed, POLICY, said, uncacheable } from '../support/cache.ts';

describe('turning private', () => {
  it('R22: a private answer where a public entry was drops it for everybody', async () => {
    const { fill, ask, asked, complete, privately, clock } = createRig();
    await fill('alice', complete('everybody’s'), { policy: { ...POLICY, staleIfErrorMs: 600_000 } });
    clock.advance(60_000);
    await fill('bob', privately('bob’s'));
    const before = asked.length;
    assert.equal(said(await fill('alice', failed())), '502 miss not-storable');
    assert.equal(asked.length, before + 1);
    assert.match(said(await ask('bob')), /^bob’s private hit/);
  });

  it('R22 R28: no public answer that was asked for before a private one is stored or shared', async () => {
    const { ask, nth, complete, privately, asked } = createRig();
    const alice = ask('alice');
    const bob = ask('bob');
    nth(1).land(privately('bob’s'));
    await bob;
    nth(0).land(complete('everybody’s?'));
    assert.equal(said(await alice), 'own:everybody’s? private miss superseded ttl=0');
    void ask('carol');
    assert.equal(asked.length, 3);
  });

  it('R22: a flight that a private answer has overtaken is not joined when the key is public again', async () => {
    const { fill, ask, nth, complete, privately, clock, asked } = createRig();
    const slow = ask('dora');
    await fill('alice', complete('old'));
    clock.advance(60_000);
    void ask('bob');
    nth(0).land(privately('dora’s'));
    await slow;
    await fill('alice', complete('new'));
    clock.advance(60_000);
    const before = asked.length;
    void ask('carol');
    assert.equal(asked.length, before + 1);
  });

  it('a public answer that was asked for after the private one is stored again', async () => {
    const { fill, ask, complete, privately } = createRig();
    await fill('bob', privately('bob’s'));
    await fill('alice', complete('everybody’s'));
    assert.equal(said(await ask('carol')), 'everybody’s public hit ttl=60000');
  });
});

describe('reverse order', () => {
  it('R28: an answer asked for earlier does not replace one asked for later', async () => {
    const { ask, nth, complete } = createRig();
    const early = ask('alice');
    const late = ask('bob');
    nth(1).land(complete('late'));
    assert.equal(said(await late), 'own:late public miss stored ttl=60000');
    nth(0).land(complete('early'));
    assert.equal(said(await early), 'own:early public miss superseded ttl=0');
    assert.equal(said(await ask('carol')), 'late public hit ttl=60000');
  });

  it('R28: also when ten thousand other keys were answered in between', async () => {
    const { ask, nth, complete, fill, cache, request } = createRig();
    const early = ask('alice');
    await fill('bob', complete('late'));
    for (let i = 0; i < RECENT_MAX; i++) {
      await cache.through(request({ baseKey: `k${i}` }), async () => complete('x'));
    }
    nth(0).land(complete('early'));
    assert.equal(said(await early), 'own:early public miss superseded ttl=0');
    assert.match(said(await ask('carol')), /^late public hit/);
  });

  it('R28: nor does it fill the place of a later one that was not stored', async () => {
    const { ask, nth, complete, asked } = createRig();
    const early = ask('alice');
    const late = ask('bob');
    nth(1).land(complete('late', { hints: { ttlMs: 0, cacheScope: 'public' } }));
    await late;
    nth(0).land(complete('early'));
    assert.equal(said(await early), 'own:early public miss superseded ttl=0');
    void ask('carol');
    assert.equal(asked.length, 3);
  });

  it('R28: a caller’s own earlier answer does not hide a later public one', async () => {
    const { ask, nth, complete, privately } = createRig();
    const early = ask('alice');
    const late = ask('bob');
    nth(1).land(complete('late'));
    await late;
    nth(0).land(privately('early'));
    assert.equal(said(await early), 'own:early private miss superseded ttl=0');
  });
});

describe('stale if error', () => {
  it('R31: a failed refetch serves the last good entry with ttl 0, within its time', async () => {
    const { fill, complete, clock } = createRig();
    await fill('alice', complete('good'));
    clock.advance(60_000 + 59_999);
    const stale = await fill('bob', failed());
    assert.equal(said(stale), 'good public stale ttl=0');
    assert.deepEqual(stale.outcome, { kind: 'stale', ageMs: 119_999 });
    clock.advance(1);
    assert.equal(said(await fill('bob', failed())), '502 miss not-storable');
  });

  it('never on a failure that does not allow it, nor on an error', async () => {
    const { fill, complete, clock } = createRig();
    await fill('alice', complete('good'));
    clock.advance(61_000);
    assert.equal(said(await fill('alice', failed('never'))), '502 miss not-storable');
    assert.equal(said(await fill('alice', uncacheable('context'))), 'error miss not-storable');
    assert.equal(said(await fill('alice', failed())), 'good public stale ttl=0');
  });

  it('R22: never another context’s', async () => {
    const { fill, privately, clock } = createRig();
    await fill('alice', privately('alice’s'));
    clock.advance(61_000);
    assert.equal(said(await fill('bob', failed())), '502 miss not-storable');
    assert.equal(said(await fill('alice', failed())), 'alice’s private stale ttl=0');
  });

  it('never after an invalidation', async () => {
    const { fill, complete, privately, clock, cache, store } = createRig();
    for (const loaded of [complete('good'), privately('good')]) {
      const invalidations = [
        () => cache.invalidateKey('docs', 'base'),
        () => cache.invalidateMethod('docs', 'resources/read'),
        () => cache.invalidateUpstream('docs'),
      ];
      for (const invalidate of invalidations) {
        await fill('alice', { ...loaded, receivedAt: clock.at } as Loaded<string>);
        clock.advance(61_000);
        invalidate();
        assert.equal(said(await fill('alice', failed())), '502 miss not-storable');
        assert.equal(store.entryCount, 0);
      }
    }
  });

  it('by the policy of now', async () => {
    const { fill, complete, clock } = createRig();
    await fill('alice', complete('good'));
    clock.advance(61_000);
    const policy = { ...POLICY, staleIfErrorMs: 500 };
    assert.equal(said(await fill('alice', failed(), { policy })), '502 miss not-storable');
  });

  it('the newest of what may be served', async () => {
    const { fill, complete, privately, clock } = createRig();
    await fill('alice', privately('own, older'));
    clock.advance(1);
    await fill('bob', complete('public, newer'));
    clock.advance(60_000);
    assert.equal(said(await fill('alice', failed())), 'public, newer public stale ttl=0');
  });
});
