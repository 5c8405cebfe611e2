import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PATIENCE_MS } from '../../src/cache/inflight.ts';
import { RECENT_MAX } from '../../src/cache/keep.ts';
import type { CachePolicy, Loaded } from '../../src/cache/types.ts';
import { createRig, POLICY, said, turn } from '../support/cache.ts';

const failed = (stale: 'allowed' | 'never' = 'allowed'): Loaded<string> => ({
  kind: 'failed',
  value: '502',
  stale,
});
const uncacheable = (share: 'leader' | 'context', value = 'error'): Loaded<string> => ({
  kind: 'uncacheable',
  value,
  share,
});

describe('lookup', () => {
  it('R27: a hit at +50 s of 60 s says 10 s', async () => {
    const { fill, ask, complete, clock, asked } = createRig();
    assert.equal(said(await fill('alice', complete('v'))), 'own:v public miss stored ttl=60000');
    clock.advance(50_000);
    const hit = await ask('bob');
    assert.equal(said(hit), 'v public hit ttl=10000');
    assert.deepEqual(hit.outcome, { kind: 'hit', tier: 'memory', ageMs: 50_000, ttlMs: 10_000 });
    assert.equal(asked.length, 1);
  });

  it('R27: a fill that took 5 s starts its life when it was received', async () => {
    const { ask, complete, clock, nth } = createRig();
    const first = ask('alice');
    clock.advance(5_000);
    nth(0).land(complete('v'));
    assert.equal(said(await first), 'own:v public miss stored ttl=60000');
    clock.advance(59_999);
    assert.equal(said(await ask('bob')), 'v public hit ttl=1');
  });

  it('R27: an answer that waited before it was stored has that much less to live', async () => {
    const { fill, ask, complete, clock } = createRig();
    const answer = await fill('alice', complete('v', { receivedAt: clock.at - 20_000 }));
    assert.equal(said(answer), 'own:v public miss stored ttl=40000');
    assert.equal(said(await ask('alice')), 'v public hit ttl=40000');
  });

  it('is over at the end of its time, to the millisecond', async () => {
    const { fill, ask, complete, clock, nth } = createRig();
    await fill('alice', complete('v'));
    clock.advance(60_000);
    const next = ask('alice');
    nth(1).land(complete('w'));
    const answer = await next;
    assert.equal(said(answer), 'own:w public miss stored ttl=60000');
    assert.equal(answer.outcome.kind === 'miss' && answer.outcome.why, 'stale');
  });

  it('R22: a private answer is a hit for its own context only', async () => {
    const { fill, ask, privately, asked } = createRig();
    await fill('alice', privately('alice’s'));
    assert.equal(said(await ask('alice')), 'alice’s private hit ttl=60000');
    void ask('bob');
    void ask('anonymous');
    assert.equal(asked.length, 3);
  });

  it('the caller’s own entry goes before the public one', async () => {
    const { fill, ask, privately, complete, clock } = createRig();
    await fill('alice', privately('alice’s'));
    clock.advance(1_000);
    await fill('bob', complete('everybody’s'));
    assert.equal(said(await ask('alice')), 'alice’s private hit ttl=59000');
    assert.equal(said(await ask('carol')), 'everybody’s public hit ttl=60000');
  });

  it('R27: what belongs to one request is not replayed to another', async () => {
    const { fill, ask, complete } = createRig();
    assert.match(said(await fill('alice', complete('v'))), /^own:v /);
    assert.match(said(await ask('alice')), /^v /);
  });

  it('a policy that was tightened binds what is stored', async () => {
    const { fill, ask, complete, privately, asked } = createRig();
    const as = (policy: Partial<CachePolicy>, baseKey = 'base') => ({
      policy: { ...POLICY, ...policy },
      baseKey,
    });
    await fill('alice', complete('v'));
    assert.equal(said(await ask('alice', as({ ttlMaxMs: 10_000 }))), 'v public hit ttl=10000');
    void ask('alice', as({ scope: 'private' }));
    assert.equal(asked.length, 2);

    await fill('alice', privately('p'), as({ scope: 'public' }, 'promised'));
    assert.equal(said(await ask('bob', as({ scope: 'public' }, 'promised'))), 'p public hit ttl=60000');
    void ask('bob', as({ scope: 'respect' }, 'promised'));
    assert.equal(asked.length, 4);
  });

  it('a shorter maximum ends what is stored', async () => {
    const { fill, ask, complete, clock, asked } = createRig();
    await fill('alice', complete('v'));
    clock.advance(10_000);
    void ask('alice', { policy: { ...POLICY, ttlMaxMs: 10_000 } });
    assert.equal(asked.length, 2);
  });

  it('what came without a hint lives by the default of now', async () => {
    const { fill, ask, complete } = createRig();
    const policy = { ...POLICY, ttlDefaultMs: 5_000 };
    await fill('alice', complete('v', { hints: { ttlMs: undefined, cacheScope: 'public' } }), { policy });
    assert.equal(said(await ask('bob', { policy })), 'v public hit ttl=5000');
    assert.equal(
      said(await ask('bob', { policy: { ...policy, ttlDefaultMs: 2_000 } })),
      'v public hit ttl=2000',
    );
  });

  it('R30: reports every request once', async () => {
    const { fill, ask, complete, recorder, clock, nth } = createRig();
    await fill('alice', complete('v'));
    await ask('bob');
    clock.advance(61_000);
    await fill('bob', failed());
    const { signal } = new AbortController();
    const bypass = ask('bob', { use: { bypass: 'mrtr' }, signal });
    nth(2).land(complete('m'));
    await bypass;
    const leaver = new AbortController();
    const left = ask('carol', { signal: leaver.signal });
    leaver.abort(new Error('gone'));
    await assert.rejects(left, /gone/);
    assert.deepEqual(
      recorder.lines.filter((line) => line.startsWith('cacheRequest')),
      [
        'cacheRequest docs resources/read miss none',
        'cacheRequest docs resources/read hit memory',
        'cacheRequest docs resources/read stale memory',
        'cacheRequest docs resources/read bypass none',
        'cacheRequest docs resources/read miss none',
      ],
    );
  });
});

describe('what is not stored', () => {
  const cases: readonly (readonly [string, Loaded<string>, string])[] = (() => {
    const { complete } = createRig();
    const zero = { ttlMs: 0, cacheScope: 'public' };
    return [
      ['an error', uncacheable('context'), 'error miss not-storable'],
      ['input_required', uncacheable('leader', 'ask back'), 'ask back miss not-storable'],
      ['a failure', failed(), '502 miss not-storable'],
      ['anything with ttl 0', complete('v', { hints: zero }), 'own:v public miss ttl-zero ttl=0'],
      ['contents: []', complete('v', { storableAtAll: false }), 'own:v public miss not-storable ttl=60000'],
    ];
  })();
  for (const [name, loaded, expected] of cases) {
    it(`R25: ${name}`, async () => {
      const { fill, store, asked, ask } = createRig();
      assert.equal(said(await fill('alice', loaded)), expected);
      assert.equal(store.entryCount, 0);
      void ask('alice');
      assert.equal(asked.length, 2);
    });
  }

  it('R25: an answer to a retry with inputs or state, which is neither looked up nor shared', async () => {
    const { fill, ask, complete, store, asked, nth, recorder } = createRig();
    await fill('alice', complete('stored'));
    const one = ask('alice', { use: { bypass: 'mrtr' } });
    const two = ask('alice', { use: { bypass: 'mrtr' } });
    assert.equal(asked.length, 3);
    nth(1).land(complete('first'));
    nth(2).land(complete('second', { hints: { ttlMs: 5, cacheScope: 'private' } }));
    assert.equal(said(await one), 'own:first public bypass ttl=60000');
    assert.equal(said(await two), 'own:second private bypass ttl=5');
    assert.equal(store.entryCount, 1);
    assert.equal(said(await ask('alice')), 'stored public hit ttl=60000');
    assert.equal(recorder.count('cacheBypass docs mrtr'), 2);
  });

  it('R30: what is larger than the bound; its waiters ask for themselves', async () => {
    const { ask, complete, store, nth, asked, recorder } = createRig({ maxEntryBytes: 10 });
    const leader = ask('alice');
    const mate = ask('alice');
    nth(0).land(complete('more than ten bytes'));
    assert.equal(said(await leader), 'own:more than ten bytes public miss too-large ttl=60000');
    await turn();
    assert.equal(asked.length, 2);
    nth(1).land(complete('small'));
    assert.equal(said(await mate), 'own:small public miss stored ttl=60000');
    assert.equal(store.entryCount, 1);
    assert.equal(recorder.count('cacheBypass docs too_large'), 1);
  });

  it('a store that throws costs the entry, not the answer', async () => {
    const { fill, complete, store, recorder } = createRig();
    store.set = () => {
      throw new Error('disk on fire');
    };
    const answer = await fill('alice', complete('v'));
    assert.equal(answer.kind, 'complete');
    assert.equal(recorder.count('cacheStore memory error'), 1);
  });

  it('R25: ttl 0 is counted, with the upstream’s name', async () => {
    const { fill, complete, recorder } = createRig();
    await fill('alice', complete('v', { hints: { ttlMs: undefined, cacheScope: 'public' } }));
    assert.equal(recorder.count('cacheBypass docs ttl_zero'), 1);
  });

  it('an answer that may not be kept ends what was kept before it', async () => {
    const { fill, complete, clock, store } = createRig();
    await fill('alice', complete('old'));
    clock.advance(60_000);
    await fill('alice', complete('new', { hints: { ttlMs: 0, cacheScope: 'public' } }));
    assert.equal(store.entryCount, 0);
    assert.equal(said(await fill('alice', failed())), '502 miss not-storable');
  });

  it('also what was kept for its caller alone, when it is for everybody now', async () => {
    const { fill, complete, privately, clock, store } = createRig();
    await fill('alice', privately('old'));
    clock.advance(60_000);
    await fill('alice', complete('new', { hints: { ttlMs: 0, cacheScope: 'public' } }));
    assert.equal(store.entryCount, 0);
  });

  it('R24: a caller’s private answers are booked on the caller', async () => {
    const { fill, ask, complete, privately, asked } = createRig({ sizeBytes: 100_000 });
    await fill('bob', privately('bob’s'), { baseKey: 'his' });
    await fill('alice', complete('everybody’s'), { baseKey: 'shared' });
    for (let i = 0; i < 40; i++) await fill('alice', privately('x'.repeat(5_000)), { baseKey: `k${i}` });
    const before = asked.length;
    assert.match(said(await ask('bob', { baseKey: 'his' })), /hit/);
    assert.match(said(await ask('carol', { baseKey: 'shared' })), /hit/);
    assert.match(said(await ask('alice', { baseKey: 'k39' })), /hit/);
    void ask('alice', { baseKey: 'k30' });
    assert.equal(asked.length, before + 1);
  });
});

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
