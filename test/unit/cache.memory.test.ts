import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ACCOUNT_OVERHEAD_BYTES, createMemoryStore, ENTRY_OVERHEAD_BYTES } from '../../src/cache/memory.ts';
import type { Entry } from '../../src/cache/types.ts';
import { storeContract } from '../contract/store.ts';
import { bytes, createClock, createRecorder, entry, textOf } from '../support/cache.ts';

storeContract('memory', ({ maxEntryBytes, now }) =>
  createMemoryStore({
    sizeBytes: 1024 * 1024,
    maxEntryBytes,
    now,
    upstreamCount: () => 2,
    observer: createRecorder().observer,
  }),
);

const KB = 1024;
const SIZE = 400 * KB;

function createStore(over: { readonly sizeBytes?: number; readonly upstreams?: number } = {}) {
  const clock = createClock();
  const recorder = createRecorder();
  const upstreams = { count: over.upstreams ?? 2 };
  const store = createMemoryStore({
    sizeBytes: over.sizeBytes ?? SIZE,
    maxEntryBytes: 64 * KB,
    now: clock.now,
    upstreamCount: () => upstreams.count,
    observer: recorder.observer,
  });
  const put = (key: string, kb: number, of: Partial<Entry> = {}, partition?: string) =>
    store.set(key, entry({ tail: new Uint8Array(kb * KB), ...of }), partition);
  /** Stores `count` entries of `kb`, the oldest first, and returns their keys. */
  const fill = (
    name: string,
    count: number,
    kb: number,
    of: Partial<Entry> = {},
    partition?: string,
  ): string[] => {
    const keys = Array.from({ length: count }, (_, i) => `${name}${i}`);
    for (const key of keys) put(key, kb, of, partition);
    return keys;
  };
  const held = (keys: readonly string[]): string[] => keys.filter((key) => store.get(key) !== undefined);
  return { clock, recorder, store, upstreams, put, fill, held };
}

describe('memory store', () => {
  it('R30: counts tail, key and overhead, and gives back to the byte what is removed', () => {
    const { store, put } = createStore();
    put('abcd', 1);
    assert.equal(store.sizeBytes, KB + 2 * 4 + ENTRY_OVERHEAD_BYTES + ACCOUNT_OVERHEAD_BYTES);
    put('abcd', 2);
    assert.equal(store.sizeBytes, 2 * KB + 2 * 4 + ENTRY_OVERHEAD_BYTES + ACCOUNT_OVERHEAD_BYTES);
    assert.equal(store.entryCount, 1);
    store.delete('abcd');
    assert.equal(store.sizeBytes, 0);
    assert.equal(store.entryCount, 0);
  });

  it('R30: keeps only the bytes of a tail that is a view into a larger buffer', () => {
    const { store } = createStore();
    const page = bytes(`${'x'.repeat(10_000)}tail${'x'.repeat(10_000)}`);
    store.set('a', entry({ tail: page.subarray(10_000, 10_004) }), undefined);
    const found = store.get('a');
    assert.equal(found && textOf(found.tail), 'tail');
    assert.equal(found?.tail.buffer.byteLength, 4);
  });

  it('R30: stays within its bound whatever is stored', () => {
    const { store, fill, recorder } = createStore();
    fill('a', 100, 20);
    fill('p', 100, 20, {}, 'alice');
    fill('q', 100, 7, {}, 'bob');
    fill('b', 100, 20, { upstream: 'city' });
    assert.ok(store.sizeBytes <= SIZE);
    assert.equal(recorder.count('cacheEviction memory size'), 400 - store.entryCount);
  });

  it('R24: an upstream that fills its half loses its own oldest entries and no others', () => {
    const { fill, held } = createStore();
    const docs = fill('docs', 5, 10);
    const city = fill('city', 100, 10, { upstream: 'city' });
    assert.deepEqual(held(docs), docs);
    assert.deepEqual(held(city), city.slice(-held(city).length));
    assert.ok(held(city).length * 10 <= 200 && held(city).length >= 18);
  });

  it('R24: upstreams that share what is left: the one with the most loses', () => {
    const { fill, held } = createStore();
    const city = fill('city', 30, 10, { upstream: 'city' });
    const docs = fill('docs', 5, 10);
    fill('mine', 9, 10, {}, 'alice');
    const news = fill('news', 8, 10, { upstream: 'news' });
    assert.deepEqual(held(docs), docs);
    assert.deepEqual(held(news), news);
    assert.ok(held(city).length < 18 && held(city).length > 8);
  });

  it('R24: the half of one upstream counts only where there are several', () => {
    const alone = createStore({ upstreams: 1 });
    const all = alone.fill('docs', 36, 10);
    assert.deepEqual(alone.held(all), all);
    alone.upstreams.count = 2;
    alone.put('more', 10);
    assert.ok(alone.store.sizeBytes <= SIZE / 2);
  });

  it('R24 R30: a caller that fills its quarter loses its own oldest entries and no others', () => {
    const { fill, held } = createStore();
    const alice = fill('alice', 3, 10, {}, 'alice');
    const shared = fill('docs', 3, 10);
    const bob = fill('bob', 100, 10, {}, 'bob');
    assert.deepEqual(held(alice), alice);
    assert.deepEqual(held(shared), shared);
    assert.deepEqual(held(bob), bob.slice(-held(bob).length));
    assert.ok(held(bob).length * 10 <= 100 && held(bob).length >= 8);
  });

  it('R24: within a caller’s quarter, the upstream with the most loses', () => {
    const { fill, held } = createStore();
    const docs = fill('docs', 2, 10, {}, 'alice');
    fill('city', 100, 10, { upstream: 'city' }, 'alice');
    assert.deepEqual(held(docs), docs);
  });

  it('R30: private entries keep to their half; the caller who has been idle for longest loses', () => {
    const { fill, held, store } = createStore();
    const shared = fill('docs', 15, 10);
    const callers = ['a', 'b', 'c', 'd', 'e'].map((name) => fill(name, 3, 10, {}, name));
    store.get('a0');
    const late = fill('late', 3, 10, {}, 'late');
    assert.deepEqual(held(shared), shared);
    assert.deepEqual(held(late), late);
    assert.deepEqual(held(callers[0] ?? []), callers[0]);
    assert.ok(held(callers[1] ?? []).length < 3);
  });

  it('R30: ten thousand callers with one entry each leave no account behind', () => {
    const { store, recorder } = createStore();
    for (let i = 0; i < 10_000; i++) store.set(`k${i}`, entry(), `caller${i}`);
    assert.ok(store.sizeBytes <= SIZE / 2);
    for (let i = 0; i < 10_000; i++) store.delete(`k${i}`);
    assert.equal(store.sizeBytes, 0);
    assert.equal(
      recorder.count('cacheEviction memory size') + recorder.count('cacheEviction memory invalidated'),
      10_000,
    );
  });

  it('R30: an answer above what its account may have is too large, and moves nobody', () => {
    const { put, held, fill } = createStore({ sizeBytes: 100 * KB });
    const docs = fill('docs', 3, 5);
    assert.equal(put('p', 25, {}, 'alice'), 'too_large');
    assert.equal(put('p', 20, {}, 'alice'), 'ok');
    assert.equal(put('q', 50), 'too_large');
    assert.deepEqual(held(docs), docs);
  });

  it('the least recently used entry goes first', () => {
    const { fill, held, store, put } = createStore();
    const keys = fill('docs', 18, 10);
    store.get('docs0');
    put('one', 10);
    put('two', 10);
    assert.ok(held(['docs0', 'one', 'two']).length === 3);
    assert.ok(held(keys).length < 18);
  });

  it('R48: entries whose time is over go with the writes of others, a few at each', () => {
    const { clock, fill, store, recorder, put } = createStore();
    fill('old', 8, 1, { deleteAt: clock.at + 1_000 });
    clock.advance(1_000);
    for (let i = 0; i < 5; i++) put('new', 1);
    assert.equal(store.entryCount, 1);
    assert.equal(recorder.count('cacheEviction memory expired'), 8);
    assert.equal(recorder.count('cacheEviction memory size'), 0);
  });

  it('R30: its books are right after any sequence of writes, reads, deletions and waits', () => {
    const op = fc.oneof(
      fc.record({
        kind: fc.constant('set' as const),
        key: fc.nat(30),
        kb: fc.nat(40),
        upstream: fc.constantFrom('docs', 'city', 'news'),
        lives: fc.nat(2_000),
      }),
      fc.record({ kind: fc.constant('get' as const), key: fc.nat(30) }),
      fc.record({ kind: fc.constant('delete' as const), key: fc.nat(30) }),
      fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(1_000) }),
    );
    const accountOf = (key: number): string | undefined => (key % 3 === 0 ? undefined : `caller${key % 5}`);
    fc.assert(
      fc.property(fc.array(op, { maxLength: 80 }), (ops) => {
        const { clock, store, recorder } = createStore();
        let written = 0;
        let replaced = 0;
        for (const step of ops) {
          if (step.kind === 'wait') clock.advance(step.ms);
          else if (step.kind === 'get') store.get(`k${step.key}`);
          else if (step.kind === 'delete') store.delete(`k${step.key}`);
          else {
            const before = store.get(`k${step.key}`);
            const made = entry({
              tail: new Uint8Array(step.kb * KB),
              upstream: step.upstream,
              deleteAt: clock.at + step.lives,
            });
            if (store.set(`k${step.key}`, made, accountOf(step.key)) === 'ok') {
              written++;
              if (before !== undefined) replaced++;
            }
          }
          assert.ok(store.sizeBytes <= SIZE);
          assert.equal(written - replaced - recorder.count('cacheEviction'), store.entryCount);
        }
        for (let key = 0; key <= 30; key++) store.delete(`k${key}`);
        assert.equal(store.sizeBytes, 0);
        assert.equal(store.entryCount, 0);
      }),
      { numRuns: 200 },
    );
  });
});

it('what it takes to write is timed, what it takes to look up is not', () => {
  let clock = 0;
  const timed: string[] = [];
  const store = createMemoryStore({
    sizeBytes: SIZE,
    maxEntryBytes: 10_000,
    now: () => {
      clock += 2;
      return clock;
    },
    upstreamCount: () => 1,
    observer: {
      cacheEviction: () => undefined,
      cacheOperation: (...said) => void timed.push(said.join(' ')),
    },
  });
  store.set('a', entry({ deleteAt: 1_000_000 }), undefined);
  assert.notEqual(store.get('a'), undefined);
  // It looks at the clock once more, for the entries whose time is over.
  assert.deepEqual(timed, ['memory set 0.004']);
});
