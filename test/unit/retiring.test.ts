import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { MAX_RETIRING, Retiring } from '../../src/retiring.ts';
import type { Upstream } from '../../src/upstream/types.ts';
import { until } from '../support/mcp.ts';
import { ScriptedUpstream } from '../support/scripted.ts';

const failed: string[] = [];
const made: Retiring[] = [];
afterEach(async () => {
  for (const one of made.splice(0)) await one.close();
  failed.length = 0;
});

function retiring(): Retiring {
  const one = new Retiring({ onFailed: (upstream) => failed.push(upstream) });
  made.push(one);
  return one;
}

/** An upstream with so much under way, and how often it was closed. */
function busy(name: string, running: number) {
  const work = { running, closed: 0, refuses: false };
  const upstream: Upstream = Object.assign(
    new ScriptedUpstream(
      name,
      () => ({ result: {} }),
      () => 0,
    ),
    {
      stats: () => ({ connected: 1, free: 0, pending: 0, queued: 0, running: work.running }),
      close: async () => {
        work.closed++;
        if (work.refuses) throw new Error('cannot be closed');
      },
    },
  );
  return { work, upstream };
}

describe('an upstream that was replaced', () => {
  test('R44: is closed when nothing runs there and nobody is on the way there, and once', async () => {
    const all = retiring();
    const { work, upstream } = busy('docs', 1);
    let awaited = true;
    all.add(upstream, () => awaited);
    awaited = false;
    await new Promise((resolve) => setTimeout(resolve, 400));
    assert.equal(work.closed, 0);
    work.running = 0;
    await until(() => work.closed === 1, 'the close');
    assert.equal(all.count, 0);
  });

  test('R44: is waited for while somebody may still come', async () => {
    const all = retiring();
    const { work, upstream } = busy('docs', 0);
    let awaited = true;
    all.add(upstream, () => awaited);
    await new Promise((resolve) => setTimeout(resolve, 400));
    assert.equal(work.closed, 0);
    awaited = false;
    await until(() => work.closed === 1, 'the close');
  });

  test('beyond the bound the one that waits longest is closed at once', () => {
    const all = retiring();
    const each = Array.from({ length: MAX_RETIRING + 1 }, (_, nth) => busy(`u${nth}`, 1));
    for (const { upstream } of each) all.add(upstream, () => true);
    assert.deepEqual(
      each.map(({ work }) => work.closed),
      [1, ...Array.from({ length: MAX_RETIRING }, () => 0)],
    );
    assert.equal(all.count, MAX_RETIRING);
  });

  test('R43: is closed with the gateway, whatever runs; one that cannot be is told of and keeps nobody up', async () => {
    const all = retiring();
    const [one, other] = [busy('one', 5), busy('other', 5)];
    one.work.refuses = true;
    for (const { upstream } of [one, other]) all.add(upstream, () => true);
    await all.close();
    assert.deepEqual([one.work.closed, other.work.closed], [1, 1]);
    assert.deepEqual(failed, ['one']);
  });
});
