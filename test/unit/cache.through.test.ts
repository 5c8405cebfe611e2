import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CachePolicy, Loaded } from '../../src/cache/types.ts';
import { createRig, failed, POLICY, said, turn, uncacheable } from '../support/cache.ts';

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
