/** When new requests are refused for want of time, and when no more. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FEW_UNDER_WAY, LateLoop, MAX_UNDER_WAY, Shedding, WINDOW_MS } from '../../src/edge/shedding.ts';
import type { Reply } from '../../src/protocol/exchange.ts';
import { answer, openEdge, request, Wire } from '../support/edge-kit.ts';
import { call, until } from '../support/mcp.ts';

describe('the loop', () => {
  const late = (loop: LateLoop, lateMs: number, turns: number): void => {
    for (let n = 0; n < turns; n++) loop.turn(lateMs, 100 + lateMs);
  };

  test('is not late for one turn, nor for two, however long', () => {
    const loop = new LateLoop();
    for (let n = 0; n < 10; n++) {
      late(loop, 10_000, 1);
      late(loop, 2_000, 1);
      assert.equal(loop.late, false);
      late(loop, 10, 30);
    }
  });

  test('is late when most of three seconds was lost', () => {
    const steady = new LateLoop();
    late(steady, 140, 100);
    assert.equal(steady.late, false);
    late(steady, 151, 10);
    assert.equal(steady.late, false, 'not for long');
    late(steady, 160, 10);
    assert.equal(steady.late, true);
    const jerky = new LateLoop();
    late(jerky, 1_300, 1);
    late(jerky, 600, 1);
    late(jerky, 10, 2);
    assert.equal(jerky.late, false);
    late(jerky, 1_900, 1);
    assert.equal(jerky.late, true);
  });

  test('is late when every turn takes seconds, though hardly two of them fit the window', () => {
    const loop = new LateLoop();
    late(loop, 2_000, 2);
    assert.equal(loop.late, false);
    late(loop, 2_000, 1);
    assert.equal(loop.late, true);
    late(loop, 5, 40);
    assert.equal(loop.late, false);
  });

  test('stays late until hardly any of three seconds was lost, so that it does not flap', () => {
    const loop = new LateLoop();
    late(loop, 1_000, 3);
    assert.equal(loop.late, true);
    late(loop, 40, 100);
    assert.equal(loop.late, true, 'better, but not well');
    late(loop, 5, 10);
    assert.equal(loop.late, true, 'not for long');
    late(loop, 5, 10);
    assert.equal(loop.late, false);
  });
});

describe('requests under way', () => {
  test('are bounded, listens aside, and taken again well below the bound', () => {
    let openCount = 0;
    const changes: string[] = [];
    const shedding = new Shedding({
      now: () => 0,
      openCount: () => openCount,
      onChange: (strain) => changes.push(strain),
    });
    const ends = [1, 2, 3].map(() => shedding.listening());
    openCount = MAX_UNDER_WAY + 3;
    assert.equal(shedding.arrived(), false, 'three of them are listens');
    ends[0]?.();
    assert.equal(shedding.arrived(), true);
    openCount = MAX_UNDER_WAY;
    assert.equal(shedding.arrived(), true, 'no flapping at the bound');
    openCount = 0.9 * MAX_UNDER_WAY;
    assert.equal(shedding.arrived(), false);
    assert.deepEqual(changes, ['too-many-requests', 'none']);
  });
});

test('R48: the loop is looked at only while there is something to do', async (t) => {
  const begun = t.mock.method(globalThis, 'setInterval').mock;
  const ended = t.mock.method(globalThis, 'clearInterval').mock;
  let openCount = 1;
  const shedding = new Shedding({
    now: () => performance.now(),
    openCount: () => openCount,
    onChange: () => undefined,
  });
  for (let n = 0; n < 5; n++) shedding.arrived();
  assert.deepEqual([begun.callCount(), ended.callCount()], [1, 0]);
  openCount = 0;
  await until(() => ended.callCount() === 1, 'the last look');
  shedding.arrived();
  assert.equal(begun.callCount(), 2);
  await until(() => ended.callCount() === 2, 'the last look');
});

function busy(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test('a few requests are taken however late the loop is', async () => {
  let openCount = FEW_UNDER_WAY + 1;
  const shedding = new Shedding({
    now: () => performance.now(),
    openCount: () => openCount,
    onChange: () => undefined,
  });
  await until(() => {
    busy(WINDOW_MS / 4);
    return shedding.arrived();
  }, 'the strain');
  openCount = FEW_UNDER_WAY;
  assert.equal(shedding.arrived(), false);
  openCount = 0;
});

test('a busy loop refuses new requests, answers those under way, and recovers', async () => {
  let finish: (reply: Reply) => void = () => undefined;
  const slow = new Promise<Reply>((resolve) => {
    finish = resolve;
  });
  const edge = await openEdge(({ head }) =>
    head.headers.get('mcp-name') === 'slow' ? slow : Promise.resolve(answer()),
  );
  try {
    const underWay = Array.from({ length: FEW_UNDER_WAY }, () =>
      call(edge.url, 'tools/call', { name: 'slow' }),
    );
    const listen = await Wire.open(edge.port, request('tools/call', { name: 'slow' }));
    const inFlight = (): Promise<number> => edge.metric('headgate_http_requests_in_flight');
    await until(async () => (await inFlight()) === FEW_UNDER_WAY + 1, 'all under way');
    for (let n = 0; n < 4; n++) {
      busy(WINDOW_MS / 4);
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    await until(() => edge.log.some(({ strain }) => strain === 'loop-late'), 'the strain');
    const refused = await call(edge.url, 'resources/read', { uri: 'a:b' }, { id: 'mine' });
    assert.deepEqual(
      [refused.status, refused.json.id, refused.json.error?.code, refused.headers['retry-after']],
      [503, 'mine', -32603, '3'],
    );
    assert.equal(refused.headers['proxy-status'], 'headgate; error=proxy_internal_response');
    assert.equal(
      (await call(edge.url, 'server/discover')).status,
      200,
      'a failed discover is never forgotten',
    );
    assert.equal((await fetch(`${edge.status}/livez`)).status, 200);
    assert.equal((await fetch(`${edge.status}/readyz`)).status, 200);
    finish(answer());
    for (const got of await Promise.all(underWay)) assert.equal(got.status, 200);
    await listen.sees('"ok":true');
    listen.close();
    await until(() => edge.log.some(({ msg }) => msg === 'requests are taken again'), 'calm', 20_000);
    assert.equal((await call(edge.url, 'resources/read', { uri: 'a:b' })).status, 200);
    assert.ok((await edge.metric('headgate_http_requests_total{method="POST",code="503"}')) >= 1);
    const told = edge.log.filter(({ msg }) => /refused|taken/.test(String(msg)));
    assert.equal(told.length, 2, 'one beginning and one end');
  } finally {
    await edge.close();
  }
});
