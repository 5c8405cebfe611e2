/** R28 R29: a replica whose way to Redis is cut or silent while another one hears of a change. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  type Pair,
  type Place,
  placesOf,
  ready,
  startPair,
  startReaders,
  startWiki,
  twoNames,
  used,
  type Wiki,
} from '../support/pair.ts';
import { missingRedis, type RedisServer, startRedis, startWire, type Wire } from '../support/redis.ts';

/** How long the way is in trouble. */
const TROUBLE_MS = 2_000;
/** So long that a machine that is busy with other things is no trouble: after one, all is asked for anew. */
const COMMAND = '1s';
/** From the change, the trouble included. */
const HEALED_MS = 10_000;

describe('R28 R29: a change while the way to Redis is in trouble', { skip: missingRedis() ?? false }, () => {
  let wiki: Wiki;
  let redis: RedisServer;
  let wires: readonly [first: Wire, second: Wire];
  let pair: Pair;
  let places: readonly Place[];

  before(async () => {
    [wiki, redis] = await Promise.all([startWiki(), startRedis()]);
    wires = [await startWire(redis.port), await startWire(redis.port)];
    pair = await startPair(
      twoNames(wiki, 'first', wires[0].url, COMMAND),
      twoNames(wiki, 'second', wires[1].url, COMMAND),
    );
    places = placesOf(pair);
    await ready(pair);
  });
  after(async () => {
    await pair?.stop();
    for (const wire of wires ?? []) await wire.close();
    await Promise.all([wiki?.close(), redis?.close()]);
  });

  const troubles: readonly (readonly [string, () => void])[] = [
    ['the subscription of the one who is to hear of it is cut', () => wires[1].cut('bus')],
    ['the subscription of the one who is to hear of it is silent', () => wires[1].hold('bus')],
    ['all lines of the one who is to hear of it are cut', () => wires[1].cut()],
    ['all lines of the one who is to hear of it are silent', () => wires[1].hold()],
    ['all lines of the one who is to tell of it are cut', () => wires[0].cut()],
    ['all lines of the one who is to tell of it are silent', () => wires[0].hold()],
  ];
  for (const [name, begin] of troubles) {
    test(`R28 R29: ${name}: it is read soon, no read fails, and nothing older comes after it`, async (t) => {
      const readers = startReaders(places);
      try {
        await used(pair);
        wiki.change();
        await readers.haveSeen(wiki.version, HEALED_MS);
        begin();
        // The trouble lasts: that is no wait for anything.
        const over = new Promise<void>((resolve) => {
          setTimeout(() => {
            for (const wire of wires) wire.mend();
            resolve();
          }, TROUBLE_MS);
        });
        wiki.change();
        const healedMs = await readers.haveSeen(wiki.version, HEALED_MS);
        t.diagnostic(`read everywhere ${healedMs.toFixed(0)} ms after the change`);
        await over;
        readers.atLeast(wiki.version);
        await used(pair);
        wiki.change();
        await readers.haveSeen(wiki.version, HEALED_MS);
        readers.atLeast(wiki.version);
        await readers.reads(20);
      } finally {
        for (const wire of wires) wire.mend();
        await readers.stop();
      }
    });
  }

  test('R29: once all is well again, a change is told in a moment', async () => {
    const readers = startReaders(places);
    try {
      await used(pair);
      for (let i = 0; i < 5; i++) {
        wiki.change();
        assert.ok((await readers.haveSeen(wiki.version, HEALED_MS)) < 1_000);
      }
    } finally {
      await readers.stop();
    }
  });
});
