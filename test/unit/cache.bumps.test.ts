import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createBumps } from '../../src/cache/redis/bumps.ts';
import { createCall } from '../../src/cache/redis/calls.ts';
import { Ledger } from '../../src/cache/redis/ledger.ts';
import { namesOf } from '../../src/cache/redis/names.ts';
import type { BumpReply } from '../../src/cache/redis/scripts.ts';
import type { Upstream } from '../../src/cache/redis/upstream.ts';
import { until } from '../support/mcp.ts';

/** Bumps whose commands end when the test says so. */
function scene() {
  const sent: { fields: readonly string[]; end(how: 'written' | 'refused'): void }[] = [];
  const upstream: Upstream = {
    name: 'docs',
    names: namesOf('headgate:', 'docs'),
    ledger: new Ledger(0),
    syncedIn: 0,
    writingCount: 0,
    unwrittenCount: 0,
  };
  const observer = { redisError: () => undefined, redisOperation: () => undefined };
  const bumps = createBumps({
    scripts: {
      bump: (_names, _floor, _message, fields) =>
        new Promise<BumpReply>((resolve, reject) => {
          const end = (how: 'written' | 'refused') =>
            how === 'written'
              ? resolve({ token: 1_000 + sent.length, previous: 999 + sent.length, born: 1 })
              : reject(Object.assign(new Error('NOPERM'), { name: 'ReplyError' }));
          sent.push({ fields, end });
        }),
    },
    call: createCall(
      observer,
      () => performance.now(),
      () => undefined,
    ),
    commandMs: 1_000,
    bus: { announce: () => '' },
    isUp: () => true,
    onWritten: () => undefined,
  });
  return { bumps, sent, upstream };
}

describe('R28: a bump that could not be written', () => {
  test('leaves its upstream marked until a bump of everything is', async () => {
    const { bumps, sent, upstream } = scene();
    const bump = bumps.write(upstream, ['u:1'], 'told');
    assert.equal(upstream.writingCount, 1);
    sent[0]?.end('refused');
    assert.equal(await bump, false);
    assert.deepEqual([upstream.writingCount, upstream.unwrittenCount], [0, 1]);
    await until(() => sent.length === 2, 'tried again');
    sent[1]?.end('refused');
    await until(() => sent.length === 3, 'tried again');
    assert.equal(upstream.unwrittenCount, 1);
    assert.deepEqual(sent[2]?.fields, ['*']);
    sent[2]?.end('written');
    await until(() => upstream.unwrittenCount === 0, 'made good');
    await bumps.close();
  });

  test('while one is made good leaves the mark: it may be later', async () => {
    const { bumps, sent, upstream } = scene();
    const first = bumps.write(upstream, ['u:1'], 'told');
    sent[0]?.end('refused');
    await first;
    bumps.makeGood([upstream]);
    const second = bumps.write(upstream, ['u:2'], 'told');
    assert.equal(sent.length, 3);
    sent[2]?.end('refused');
    await second;
    sent[1]?.end('written');
    await until(() => sent.length === 4, 'tried again');
    assert.ok(upstream.unwrittenCount > 0);
    sent[3]?.end('written');
    await until(() => upstream.unwrittenCount === 0, 'made good');
    await bumps.close();
  });
});
