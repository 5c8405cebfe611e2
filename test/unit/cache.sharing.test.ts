import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PATIENCE_MS } from '../../src/cache/inflight.ts';
import { createRig, failed, POLICY, said, turn, uncacheable } from '../support/cache.ts';

describe('sharing a flight', () => {
  it('R23: misses of one context share one load; each gets bytes of its own', async () => {
    const { ask, nth, asked, privately, recorder } = createRig();
    const answers = [ask('alice'), ask('alice'), ask('alice')];
    nth(0).land(privately('v'));
    assert.deepEqual((await Promise.all(answers)).map(said), [
      'own:v private miss stored ttl=60000',
      'v private miss stored collapsed ttl=60000',
      'v private miss stored collapsed ttl=60000',
    ]);
    assert.equal(asked.length, 1);
    assert.equal(recorder.count('collapsed docs'), 2);
  });

  it('R23: contexts do not wait for each other while nothing is known of a key', async () => {
    const { ask, asked, nth, privately } = createRig();
    const alice = ask('alice');
    const bob = ask('bob');
    assert.equal(asked.length, 2);
    nth(1).land(privately('bob’s'));
    nth(0).land(privately('alice’s'));
    assert.equal(said(await bob), 'own:bob’s private miss stored ttl=60000');
    assert.equal(said(await alice), 'own:alice’s private miss stored ttl=60000');
  });

  it('R23: contexts wait for one flight when the last answer was public', async () => {
    const { fill, ask, asked, nth, complete, clock } = createRig();
    await fill('alice', complete('old'));
    clock.advance(60_000);
    const answers = [ask('bob'), ask('alice'), ask('carol')];
    assert.equal(asked.length, 2);
    nth(1).land(complete('new'));
    assert.deepEqual((await Promise.all(answers)).map(said), [
      'own:new public miss stored ttl=60000',
      'new public miss stored collapsed ttl=60000',
      'new public miss stored collapsed ttl=60000',
    ]);
  });

  it('R23: a flight that ends private is its leader’s context’s; the others ask for themselves, all at once', async () => {
    const { fill, ask, asked, nth, complete, privately, clock } = createRig();
    await fill('alice', complete('old'));
    clock.advance(60_000);
    const bob = [ask('bob'), ask('bob')];
    const others = [ask('alice'), ask('carol'), ask('alice')];
    nth(1).land(privately('bob’s'));
    assert.deepEqual((await Promise.all(bob)).map(said), [
      'own:bob’s private miss stored ttl=60000',
      'bob’s private miss stored collapsed ttl=60000',
    ]);
    await turn();
    assert.deepEqual(
      asked.slice(2).map(({ by }) => by),
      ['alice', 'carol'],
    );
    nth(3).land(privately('carol’s'));
    nth(2).land(privately('alice’s'));
    assert.deepEqual((await Promise.all(others)).map(said), [
      'own:alice’s private miss stored ttl=60000',
      'own:carol’s private miss stored ttl=60000',
      'alice’s private miss stored collapsed ttl=60000',
    ]);
  });

  it('R23: a failed leader fails its own context only', async () => {
    const { fill, ask, asked, nth, complete, clock } = createRig();
    const policy = { ...POLICY, staleIfErrorMs: 0 };
    await fill('alice', complete('old'), { policy });
    clock.advance(60_000);
    const bob = [ask('bob', { policy }), ask('bob', { policy })];
    const alice = ask('alice', { policy });
    nth(1).land(failed());
    assert.deepEqual((await Promise.all(bob)).map(said), [
      '502 miss not-storable',
      '502 miss not-storable collapsed',
    ]);
    await turn();
    assert.equal(asked.length, 3);
    nth(2).land(complete('new'));
    assert.equal(said(await alice), 'own:new public miss stored ttl=60000');
  });

  it('R23: nobody waits twice for another context: those whom a failure leaves ask each for itself', async () => {
    const { fill, ask, asked, nth, complete, clock } = createRig();
    await fill('alice', complete('old'));
    clock.advance(200_000);
    for (const caller of ['bob', 'alice', 'carol']) void ask(caller);
    nth(1).land(failed());
    await turn();
    assert.deepEqual(
      asked.slice(2).map(({ by }) => by),
      ['alice', 'carol'],
    );
  });

  it('R23: an error is for its own context; input_required for its leader alone', async () => {
    const { fill, ask, asked, nth, complete, clock } = createRig();
    for (const [i, share] of (['context', 'leader'] as const).entries()) {
      const baseKey = `base${i}`;
      const before = asked.length;
      await fill('alice', complete('old'), { baseKey });
      clock.advance(200_000);
      const leader = ask('bob', { baseKey });
      const mate = ask('bob', { baseKey });
      const other = ask('alice', { baseKey });
      nth(before + 1).land(uncacheable(share));
      assert.equal(said(await leader), 'error miss not-storable');
      await turn();
      assert.equal(asked.length, before + (share === 'context' ? 3 : 4));
      for (const { land } of asked.slice(before + 2)) land(complete('new'));
      assert.equal((await mate).kind, share === 'context' ? 'other' : 'complete');
      assert.equal((await other).kind, 'complete');
    }
  });

  it('R23: a leader who leaves neither holds nor fails the rest', async () => {
    const { ask, nth, asked, privately } = createRig();
    const leaver = new AbortController();
    const leader = ask('alice', { signal: leaver.signal });
    const mate = ask('alice');
    leaver.abort(new Error('gone'));
    await assert.rejects(leader, /gone/);
    assert.equal(nth(0).signal.aborted, false);
    nth(0).land(privately('v'));
    assert.equal(said(await mate), 'v private miss stored collapsed ttl=60000');
    assert.equal(asked.length, 1);
  });

  it('R23: what reaches a leader who has left is still not another context’s', async () => {
    const { fill, ask, nth, privately, complete, clock, asked } = createRig();
    await fill('alice', complete('old'));
    clock.advance(60_000);
    const leaver = new AbortController();
    const leader = ask('bob', { signal: leaver.signal });
    const other = ask('alice');
    leaver.abort(new Error('gone'));
    await assert.rejects(leader, /gone/);
    nth(1).land(privately('bob’s'));
    await turn();
    assert.equal(asked.length, 3);
    nth(2).land(privately('alice’s'));
    assert.equal(said(await other), 'own:alice’s private miss stored ttl=60000');
  });

  it('R35: the load is cancelled when the last has left', async () => {
    const { ask, nth, cache } = createRig();
    const leavers = [new AbortController(), new AbortController()];
    const answers = leavers.map(({ signal }) => ask('alice', { signal }));
    for (const leaver of leavers) leaver.abort(new Error('gone'));
    for (const answer of answers) await assert.rejects(answer, /gone/);
    assert.equal(nth(0).signal.aborted, true);
    assert.equal(cache.flightCount, 0);
  });

  it('R23: a slow leader holds other contexts for so long and no longer', async () => {
    const { fill, ask, nth, asked, complete, clock } = createRig();
    await fill('alice', complete('old'));
    clock.advance(60_000);
    const slow = ask('bob');
    const waiting = ask('alice');
    clock.advance(PATIENCE_MS);
    await turn();
    assert.equal(asked.length, 3);
    nth(2).land(complete('new'));
    assert.equal(said(await waiting), 'own:new public miss stored ttl=60000');
    nth(1).land(complete('late'));
    assert.equal(said(await slow), 'own:late public miss superseded ttl=0');
    assert.match(said(await ask('carol')), /^new public hit/);
  });

  it('R23: a load that rejects unexpectedly is its leader’s trouble; the others ask for themselves', async () => {
    const { ask, nth, asked, privately } = createRig();
    const leader = ask('alice');
    const mates = [ask('alice'), ask('alice')];
    nth(0).crash(new Error('bug'));
    await assert.rejects(leader, /bug/);
    await turn();
    assert.equal(asked.length, 2);
    nth(1).land(privately('v'));
    assert.deepEqual((await Promise.all(mates)).map(said), [
      'own:v private miss stored ttl=60000',
      'v private miss stored collapsed ttl=60000',
    ]);
  });

  it('R23: nobody waits for what could not be stored last time', async () => {
    const { fill, ask, nth, asked, complete } = createRig();
    const zero = (text: string) => complete(text, { hints: { ttlMs: 0, cacheScope: 'public' } });
    await fill('alice', zero('v'));
    const answers = [ask('alice'), ask('alice'), ask('bob')];
    assert.equal(asked.length, 4);
    for (const n of [1, 2, 3]) nth(n).land(zero(`v${n}`));
    assert.deepEqual((await Promise.all(answers)).map(said), [
      'own:v1 public miss ttl-zero ttl=0',
      'own:v2 public miss ttl-zero ttl=0',
      'own:v3 public miss ttl-zero ttl=0',
    ]);
  });

  it('R23: policies that differ in scope share no flight', async () => {
    const { fill, ask, asked, complete, clock } = createRig();
    await fill('alice', complete('old'));
    clock.advance(60_000);
    for (const scope of ['respect', 'public', 'private'] as const)
      void ask('bob', { policy: { ...POLICY, scope } });
    assert.equal(asked.length, 4);
  });
});
