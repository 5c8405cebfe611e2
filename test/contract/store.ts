/**
 * What every cache store must do, whatever it keeps its entries in. Run with each implementation:
 * `storeContract('memory', (options) => createMemoryStore(…))`.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Entry } from '../../src/cache/types.ts';
import { bytes, createClock, entry, textOf } from '../support/cache.ts';

/** A store as the contract sees it: it may answer later. */
export interface AnyStore {
  get(key: string): Entry | undefined | Promise<Entry | undefined>;
  set(
    key: string,
    entry: Entry,
    account: string | undefined,
  ): 'ok' | 'too_large' | Promise<'ok' | 'too_large'>;
  delete(key: string): boolean | Promise<boolean>;
}

export interface ContractOptions {
  readonly maxEntryBytes: number;
  readonly now: () => number;
}

/** Bound on one answer, in every store that the contract makes. */
const MAX_ENTRY_BYTES = 4_096;

/** @param create makes an empty store. */
export function storeContract(
  name: string,
  create: (options: ContractOptions) => AnyStore | Promise<AnyStore>,
): void {
  const empty = async () => {
    const clock = createClock();
    return { clock, store: await create({ maxEntryBytes: MAX_ENTRY_BYTES, now: clock.now }) };
  };

  describe(`store contract: ${name}`, () => {
    it('has nothing under a key that nothing was stored under', async () => {
      const { store } = await empty();
      assert.equal(await store.get('a'), undefined);
      assert.equal(await store.delete('a'), false);
    });

    it('gives back what was stored, byte for byte and member for member', async () => {
      const { store, clock } = await empty();
      const tail = new Uint8Array([0, 1, 127, 128, 255, 0x22, 0x5c]);
      const public_ = entry({ tail, receivedAt: clock.at - 5, deleteAt: clock.at + 1_000, loadOrder: 7 });
      const private_ = entry({ tail: bytes('mine'), scope: 'private', ttlMs: undefined });
      assert.equal(await store.set('*a', public_, undefined), 'ok');
      assert.equal(await store.set('1:aalice', private_, 'alice'), 'ok');
      const found = await store.get('*a');
      assert.deepEqual(found && { ...found, tail: [...found.tail] }, { ...public_, tail: [...tail] });
      assert.equal((await store.get('1:aalice'))?.ttlMs, undefined);
      assert.equal((await store.get('1:aalice'))?.scope, 'private');
    });

    it('stores an answer of no bytes', async () => {
      const { store } = await empty();
      await store.set('a', entry({ tail: new Uint8Array() }), undefined);
      assert.equal((await store.get('a'))?.tail.byteLength, 0);
    });

    it('replaces what a key had', async () => {
      const { store } = await empty();
      await store.set('a', entry({ tail: bytes('one') }), undefined);
      await store.set('a', entry({ tail: bytes('two') }), undefined);
      const found = await store.get('a');
      assert.equal(found && textOf(found.tail), 'two');
    });

    it('deletes one key and leaves the others', async () => {
      const { store } = await empty();
      await store.set('a', entry(), undefined);
      await store.set('b', entry(), undefined);
      assert.equal(await store.delete('a'), true);
      assert.equal(await store.get('a'), undefined);
      assert.ok(await store.get('b'));
    });

    it('R30: takes an answer at the bound and none above it, which leaves what was there', async () => {
      const { store } = await empty();
      assert.equal(await store.set('a', entry({ tail: new Uint8Array(MAX_ENTRY_BYTES) }), undefined), 'ok');
      assert.equal(
        await store.set('a', entry({ tail: new Uint8Array(MAX_ENTRY_BYTES + 1) }), undefined),
        'too_large',
      );
      assert.equal((await store.get('a'))?.tail.byteLength, MAX_ENTRY_BYTES);
    });

    it('R26: keeps nothing at or after its time', async () => {
      const { store, clock } = await empty();
      await store.set('a', entry({ deleteAt: clock.at + 100 }), undefined);
      clock.advance(99);
      assert.ok(await store.get('a'));
      clock.advance(1);
      assert.equal(await store.get('a'), undefined);
    });

    it('has no key that is special', async () => {
      const { store } = await empty();
      for (const key of ['__proto__', 'constructor', '', ' ', '\u0000', 'ü'.repeat(300)]) {
        assert.equal(await store.get(key), undefined);
        await store.set(key, entry({ tail: bytes(key) }), undefined);
        const found = await store.get(key);
        assert.equal(found && textOf(found.tail), key);
      }
    });
  });
}
