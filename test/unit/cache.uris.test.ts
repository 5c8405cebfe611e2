import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { dependsOn, MAX_CUTS, MAX_NAMED, updatedFields, uriField } from '../../src/cache/uris.ts';
import { createRig, said } from '../support/cache.ts';

describe('an update of a resource', () => {
  for (const [updated, read, over] of [
    ['docs://a/b', 'docs://a/b', true],
    ['docs://a/b/c', 'docs://a/b', true],
    ['docs://a/b/c', 'docs://a', true],
    ['docs://a/b', 'docs://a/', true],
    ['docs://a?x=1', 'docs://a', true],
    ['docs://a#f', 'docs://a', true],
    ['docs://a', 'docs://a/b', false],
    ['docs://ab', 'docs://a', false],
    ['docs://A', 'docs://a', false],
    ['x://a', 'docs://a', false],
  ] as const) {
    test(`of ${updated} ${over ? 'ends' : 'leaves'} a read of ${read}, for every caller`, async () => {
      const rig = createRig();
      await rig.fill('alice', rig.privately('hers'), { uri: read });
      await rig.fill('bob', rig.complete('everybody’s'), { uri: read });
      rig.cache.invalidateUri('docs', updated);
      const before = rig.asked.length;
      for (const caller of ['alice', 'bob']) void rig.ask(caller, { uri: read });
      assert.equal(rig.asked.length > before, over);
    });
  }

  test('ends a read whose contents name it', async () => {
    const rig = createRig();
    await rig.fill('alice', rig.complete('two', { uris: ['docs://x', 'docs://y'] }), { uri: 'docs://both' });
    rig.cache.invalidateUri('docs', 'docs://z');
    assert.match(said(await rig.ask('bob', { uri: 'docs://both' })), /hit/);
    rig.cache.invalidateUri('docs', 'docs://y');
    void rig.ask('bob', { uri: 'docs://both' });
    assert.equal(rig.asked.length, 2);
  });

  test('of another upstream is none of this one', async () => {
    const rig = createRig();
    await rig.fill('alice', rig.complete('a'), { uri: 'docs://a' });
    rig.cache.invalidateUri('city', 'docs://a');
    assert.match(said(await rig.ask('bob', { uri: 'docs://a' })), /hit/);
  });

  test('R28: outranks a read in flight: not stored, not fresh, not joined; in either order of completion', async () => {
    for (const first of [0, 1]) {
      const rig = createRig();
      const uri = 'docs://a/b';
      const before = rig.ask('alice', { uri });
      rig.cache.invalidateUri('docs', 'docs://a/b/c');
      const after = rig.ask('alice', { uri });
      assert.equal(rig.asked.length, 2, 'joined');
      const land = [
        async () => {
          rig.nth(0).land(rig.complete('old'));
          assert.equal(said(await before), 'own:old public miss superseded ttl=0');
        },
        async () => {
          rig.nth(1).land(rig.complete('new'));
          assert.equal(said(await after), 'own:new public miss stored ttl=60000');
        },
      ];
      await land[first]?.();
      await land[1 - first]?.();
      assert.equal(said(await rig.ask('bob', { uri })), 'new public hit ttl=60000');
    }
  });

  test('R28: of what the contents of a read in flight name outranks it too', async () => {
    const rig = createRig();
    const asked = rig.ask('alice', { uri: 'docs://both' });
    rig.cache.invalidateUri('docs', 'docs://x');
    rig.nth(0).land(rig.complete('old', { uris: ['docs://x'] }));
    assert.match(said(await asked), /superseded/);
  });
});

describe('the names of resources', () => {
  test('hold no URI', () => {
    assert.doesNotMatch(uriField('docs://secret'), /secret/);
  });

  test('of a URI with very many cuts are too many to name', () => {
    assert.equal(updatedFields(`docs:${'/a'.repeat(MAX_CUTS)}`)?.length, 2 * MAX_CUTS + 2);
    assert.equal(updatedFields(`docs:${'/a'.repeat(MAX_CUTS + 1)}`), undefined);
  });

  test('an answer that names very many depends on every update', () => {
    const named = Array.from({ length: MAX_NAMED }, (_, i) => `docs://${i}`);
    const fields = dependsOn('docs://all', named);
    assert.equal(fields.length, 2);
    assert.ok(fields.some((field) => updatedFields('docs://7')?.includes(field)));
  });
});

describe('what was read before its changes are told', () => {
  const uri = 'docs://a';
  test('is read again at its next use, and stands in when the upstream fails', async () => {
    const rig = createRig();
    await rig.fill('alice', rig.complete('old', { hints: { ttlMs: 600_000, cacheScope: 'public' } }), {
      uri,
    });
    rig.cache.watch('docs', [uri]);
    const again = rig.ask('bob', { uri });
    assert.equal(rig.asked.length, 2);
    rig.nth(1).land({ kind: 'failed', value: 'down', stale: 'allowed' });
    assert.equal(said(await again), 'old public stale ttl=0');
    const third = rig.ask('bob', { uri });
    rig.nth(2).land(rig.complete('new'));
    const { outcome } = await third;
    assert.equal(outcome.kind === 'miss' && outcome.why, 'rewatch');
    assert.equal(said(await rig.ask('carol', { uri })), 'new public hit ttl=60000');
  });

  test('is used to its end where that is near', async () => {
    const rig = createRig();
    await rig.fill('alice', rig.complete('old'), { uri });
    rig.cache.watch('docs', [uri]);
    assert.match(said(await rig.ask('bob', { uri })), /hit/);
  });

  test('is doubted also when it comes after', async () => {
    const rig = createRig();
    const asked = rig.ask('alice', { uri });
    rig.cache.watch('docs', [uri]);
    rig.nth(0).land(rig.complete('old', { hints: { ttlMs: 600_000, cacheScope: 'public' } }));
    await asked;
    void rig.ask('bob', { uri });
    assert.equal(rig.asked.length, 2);
  });

  test('R28: is read again, however little is left of it, where others are told that it may have changed', async () => {
    const rig = createRig();
    await rig.fill('alice', rig.complete('old'), { uri });
    const before = rig.ask('carol', { uri: 'docs://b', baseKey: 'b' });
    rig.cache.watch('docs', [uri, 'docs://b'], [uri, 'docs://b']);
    const again = rig.ask('bob', { uri });
    void rig.ask('carol', { uri: 'docs://b', baseKey: 'b' });
    assert.equal(rig.asked.length, 4, 'what was in flight is not joined');
    rig.nth(1).land(rig.complete('old'));
    assert.equal(said(await before), 'own:old public miss superseded ttl=0');
    rig.nth(2).land({ kind: 'failed', value: 'down', stale: 'allowed' });
    assert.equal(said(await again), 'old public stale ttl=0');
  });

  test('R28: and was in flight when it was doubted is joined by nobody', async () => {
    const rig = createRig();
    const list = { method: 'tools/list', baseKey: 'list' };
    const before = rig.ask('alice', list);
    rig.cache.doubt('docs', ['tools/list']);
    const after = rig.ask('alice', list);
    assert.equal(rig.asked.length, 2);
    rig.nth(1).land(rig.complete('new'));
    rig.nth(0).land(rig.complete('old'));
    await before;
    assert.match(said(await after), /^own:new/);
    assert.equal(said(await rig.ask('alice', list)), 'new public hit ttl=60000');
  });

  test('of a whole upstream or of a method is doubted at once, and of no other', async () => {
    const rig = createRig();
    await rig.fill('alice', rig.complete('a'), { uri });
    await rig.fill('alice', rig.complete('list'), { method: 'tools/list', baseKey: 'list' });
    rig.cache.doubt('docs', ['tools/list']);
    assert.match(said(await rig.ask('bob', { uri })), /hit/);
    void rig.ask('bob', { method: 'tools/list', baseKey: 'list' });
    assert.equal(rig.asked.length, 3);
    rig.cache.doubt('docs');
    void rig.ask('bob', { uri });
    assert.equal(rig.asked.length, 4);
  });
});
