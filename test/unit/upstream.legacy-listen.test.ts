/** Listening to servers of an older era that forget, hang, refuse and come back. */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { Coverage, type ListenFilter } from '../../src/protocol/listen-filter.ts';
import { Abort } from '../../src/protocol/signal.ts';
import type { ListenEvent, ReadOutcome, Upstream } from '../../src/upstream/types.ts';
import { createUpstream } from '../../src/upstream/upstream.ts';
import { until } from '../support/fault-server.ts';
import { type LegacyOptions, startLegacy } from '../support/legacy-server.ts';
import { asking, listenRequest, TIMES } from '../support/listen-kit.ts';
import { now, recorder, upstreamConfig, VERSION } from '../support/upstream-kit.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const ALL = asking({ toolsListChanged: true, resourceSubscriptions: ['old://1', 'old://2'] });

const read = (upstream: Upstream): Promise<ReadOutcome> =>
  upstream.read({
    ...{ method: 'resources/read', name: 'old://1', params: '{"uri":"old://1"}', version: VERSION },
    ...{ headers: {}, idempotent: true, signal: new Abort(), maxBytes: 1 << 20 },
  });

async function listening(options: LegacyOptions = {}, filter: ListenFilter = ALL) {
  const server = await startLegacy(options);
  closers.push(() => server.close());
  const upstream = createUpstream(
    { ...upstreamConfig(server.url), protocol: 'legacy' },
    { now, observer: recorder(), random: () => 0.5, listenTimes: TIMES },
  );
  closers.push(() => upstream.close());
  const events: ListenEvent[] = [];
  const listen = upstream.listen(listenRequest(filter), (event) => events.push(event));
  const count = (kind: ListenEvent['kind']): number => events.filter((event) => event.kind === kind).length;
  const heard = (kind: ListenEvent['kind'], times = 1) =>
    until(() => count(kind) >= times, `${kind} ${times}`);
  return { server, upstream, events, listen, heard, count };
}

describe('listening to a server of an older era', () => {
  for (const status of [404, 400] as const) {
    test(`R40: a session that a read finds forgotten (${status}) is lost to those who listen in it`, async () => {
      const { server, upstream, heard } = await listening({ unknown: status });
      await heard('acknowledged');
      server.restart('kept');
      assert.equal((await read(upstream)).kind, 'answer');
      await heard('lost');
      await heard('acknowledged', 2);
      assert.deepEqual([...(server.subscribed.get('s-2') ?? [])].sort(), ['old://1', 'old://2']);
      server.notify('notifications/resources/updated', { uri: 'old://1' });
      await heard('updated');
    });

    test(`R40: a session that a subscription finds forgotten (${status}) is lost, too`, async () => {
      const { server, listen, heard } = await listening({ unknown: status });
      await heard('acknowledged');
      server.restart('kept');
      listen.update(new Coverage(asking({ resourceSubscriptions: ['old://1', 'old://3'] })));
      await heard('lost');
      await heard('acknowledged', 2);
      server.notify('notifications/resources/updated', { uri: 'old://3' });
      await heard('updated');
    });
  }

  test('R40: an event stream that is refused with 400 may be that of a forgotten session', async () => {
    const known = new Set<string>(['s-1']);
    const { server, heard, count } = await listening({
      unknown: 400,
      onGet: (session) => (known.has(session ?? '') ? undefined : 400),
    });
    await heard('acknowledged');
    known.clear();
    known.add('s-2');
    server.restart();
    await heard('acknowledged', 2);
    assert.equal(count('not-offered'), 0);
  });

  test('R40, R48: a server without event streams keeps its session', async () => {
    for (const status of [400, 404]) {
      const { server, heard } = await listening({ onGet: () => status });
      await heard('not-offered', 2);
      assert.equal(server.of('initialize').length, 1);
    }
  });

  test('R40: an event stream that is refused for the moment is asked for again soon', async () => {
    let busy = true;
    const { heard, count } = await listening({ onGet: () => (busy ? 409 : undefined) });
    await heard('unopened', 2);
    busy = false;
    await heard('acknowledged');
    assert.equal(count('not-offered'), 0);
  });

  test('R40: an event stream that ends at once is not opened again and again', async () => {
    const { server } = await listening({ onGet: () => 'end' });
    await new Promise((resolve) => setTimeout(resolve, 600));
    // 8 ms, doubled up to 64, half of it on the average.
    assert.ok(server.gets > 3 && server.gets < 30, `${server.gets}`);
  });

  test('R40: a subscription that hangs in a session that is lost holds up nothing of the next', async () => {
    let hangs = true;
    const { server, heard } = await listening({
      on: ({ method }) =>
        method === 'resources/subscribe' && hangs ? new Promise(() => undefined) : undefined,
    });
    await until(() => server.of('resources/subscribe').length === 2, 'subscriptions');
    hangs = false;
    server.restart();
    await heard('acknowledged');
    server.notify('notifications/resources/updated', { uri: 'old://2' });
    await heard('updated');
  });

  test('what changes while it settles is settled, too', async () => {
    let release: () => void = () => undefined;
    const released = new Promise<undefined>((resolve) => {
      release = () => resolve(undefined);
    });
    const { server, listen, heard, events } = await listening({
      on: ({ method }) => (method === 'resources/subscribe' ? released : undefined),
    });
    await until(() => server.of('resources/subscribe').length === 2, 'subscriptions');
    listen.update(new Coverage(asking({ resourceSubscriptions: ['old://2', 'old://3'] })));
    release();
    await heard('acknowledged', 2);
    const last = events.at(-1);
    assert.deepEqual(
      last?.kind === 'acknowledged' && last.honoured,
      asking({ resourceSubscriptions: ['old://2', 'old://3'] }),
    );
    assert.deepEqual([...(server.subscribed.get('s-1') ?? [])].sort(), ['old://2', 'old://3']);
  });

  test('R40: a subscription that failed for the moment is asked for again', async () => {
    let failures = 2;
    const { server, listen, events } = await listening({
      on: ({ method, params }) => {
        if (failures > 0 && method === 'resources/subscribe' && params.uri === 'old://2') {
          failures--;
          // The connection breaks, twice: what may be sent again is sent again.
          throw new Error('broken');
        }
        return undefined;
      },
    });
    const both = asking({ resourceSubscriptions: ['old://1', 'old://2'] });
    await until(
      () => listen.fate(both).honoured.resourceSubscriptions.length === 2,
      `both ${JSON.stringify(events)}`,
    );
    assert.equal(server.subscribed.get('s-1')?.size, 2);
  });

  test('a question of the server on its event stream is answered', async () => {
    const { server, heard } = await listening();
    await heard('acknowledged');
    server.say({ id: 'p-1', method: 'ping' });
    server.say({ id: 'r-1', method: 'roots/list' });
    const answers = () => server.seen.map(({ message }) => message).filter((one) => !('method' in one));
    await until(() => answers().length === 2, 'answers');
    assert.deepEqual(answers().find(({ id }) => id === 'p-1')?.result, {});
    assert.match(JSON.stringify(answers().find(({ id }) => id === 'r-1')), /-32601/);
  });

  test('R43: what is subscribed to is not taken back one by one at the end', async () => {
    const many = Array.from({ length: 2_000 }, (_, i) => `old://${i}`);
    const { server, upstream, heard } = await listening({}, asking({ resourceSubscriptions: many }));
    await heard('acknowledged');
    const begun = now();
    await upstream.close();
    assert.ok(now() - begun < 1_000);
    assert.ok(server.of('resources/unsubscribe').length <= 16);
    assert.deepEqual(server.ended, ['s-1']);
  });
});
