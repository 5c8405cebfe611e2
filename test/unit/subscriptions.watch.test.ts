import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ListenFilter, NOTHING } from '../../src/protocol/listen-filter.ts';
import { Hub } from '../../src/subscriptions/hub.ts';
import { Watch } from '../../src/subscriptions/watch.ts';
import type { ListenEvent, Listening, ListenRequest } from '../../src/upstream/types.ts';
import { until } from '../support/mcp.ts';

const ALL = { lists: new Set(['tools', 'prompts', 'resources'] as const), resources: true };

/** A watch over an upstream that is listened to by hand, and what it did to the cache. */
function watching(held: string[] = []) {
  const did: string[] = [];
  const filters: ListenFilter[] = [];
  let request: ListenRequest | undefined;
  let tell: (event: ListenEvent) => void = () => undefined;
  let closed = 0;
  let state: Listening['state'] = 'open';
  let time = 0;
  const note =
    (what: string) =>
    (...about: unknown[]) => {
      did.push([what, ...about.flat()].join(' '));
      return Promise.resolve(false);
    };
  const hub = new Hub({
    cache: {
      invalidateMethod: note('method'),
      invalidateUri: note('uri'),
      doubt: note('doubt'),
      watch: note('watch'),
    },
    upstream: {
      name: 'docs',
      listen(asked, on) {
        request = asked;
        filters.push(asked.filter);
        tell = on;
        return {
          get state() {
            return state;
          },
          fate: () => ({ honoured: NOTHING, undecided: NOTHING }),
          update: ({ filter }) => void filters.push(filter),
          close: () => void closed++,
        };
      },
    },
    whose: 'gateway',
    request: { version: '2026-07-28', headers: {}, meta: '"a":1' },
    notified: () => undefined,
    onIdle: () => undefined,
    log: { info: () => undefined, warn: () => undefined },
  });
  const watch = new Watch({ hub, heldUris: () => held, now: () => time });
  return {
    hub,
    watch,
    did,
    filters,
    held,
    tell: (event: ListenEvent) => tell(event),
    tick: (ms: number) => {
      time += ms;
    },
    become: (next: Listening['state']) => {
      state = next;
    },
    get request() {
      return request;
    },
    get closed() {
      return closed;
    },
  };
}

const lost = (covered: Partial<ListenFilter>): ListenEvent => ({
  kind: 'lost',
  covered: { ...NOTHING, ...covered },
  reason: { kind: 'reset', proxyError: 'connection_terminated', detail: '' },
});

describe('a watch', () => {
  test('R48: listens to nobody who tells nothing, and to what is told otherwise', () => {
    const w = watching(['docs://a']);
    w.watch.announced({ lists: new Set(), resources: false });
    assert.deepEqual(w.filters, []);
    w.watch.announced({ lists: new Set(['tools']), resources: false });
    assert.deepEqual(w.filters, [{ ...NOTHING, toolsListChanged: true }]);
    assert.equal(w.request?.meta, '"a":1');
  });

  test('asks for the resources that are held, and for others when others are', async () => {
    const w = watching(['docs://a']);
    w.watch.announced(ALL);
    w.held.push('docs://b');
    w.watch.heldChanged();
    await until(() => w.filters.length === 2, 'an update');
    assert.deepEqual(
      w.filters.map(({ resourceSubscriptions }) => resourceSubscriptions),
      [['docs://a'], ['docs://a', 'docs://b']],
    );
  });

  test('looks at no more of what is held than is listened for', () => {
    let seen = 0;
    const w = watching([]);
    const watch = new Watch({
      hub: w.hub,
      heldUris: function* () {
        for (let i = 0; i < 1_000_000; i++) {
          seen++;
          yield `docs://${i}`;
        }
      },
      now: () => 0,
    });
    watch.announced({ lists: new Set(), resources: true });
    assert.equal(w.filters.at(-1)?.resourceSubscriptions.length, 10_000);
    assert.ok(seen <= 10_001, `${seen}`);
    watch.close();
  });

  test('R28: goes on asking for what has just gone from memory: its next change must not fall between', async () => {
    const w = watching(['docs://a']);
    w.watch.announced(ALL);
    w.held.pop();
    w.watch.heldChanged();
    await until(() => w.filters.length === 2, 'an update');
    assert.deepEqual(w.filters[1]?.resourceSubscriptions, ['docs://a']);
    w.tick(60_000);
    w.watch.heldChanged();
    await until(() => w.filters.length === 3, 'an update');
    assert.deepEqual(w.filters[2]?.resourceSubscriptions, []);
  });

  test('a changed list ends the answers that are of it, an update what it is of', () => {
    const w = watching();
    w.watch.announced(ALL);
    for (const list of ['tools', 'prompts', 'resources'] as const) w.tell({ kind: 'list-changed', list });
    w.tell({ kind: 'updated', uri: 'docs://a', params: Buffer.from('{}') });
    assert.deepEqual(w.did, [
      'method docs tools/list',
      'method docs prompts/list',
      'method docs resources/list',
      'method docs resources/templates/list',
      'uri docs docs://a',
    ]);
  });

  test('R40: what is told from now on was not told of before: lists are doubted, resources watched', () => {
    const w = watching();
    w.watch.announced(ALL);
    const gained = { ...NOTHING, toolsListChanged: true, resourceSubscriptions: ['docs://a'] };
    w.tell({ kind: 'acknowledged', honoured: gained, gained, first: true });
    assert.deepEqual(w.did, ['doubt docs tools/list', 'watch docs docs://a']);
  });

  test('R40: what a lost stream covered is doubted, and nothing else', () => {
    const w = watching();
    w.watch.announced(ALL);
    w.tell(lost({ resourcesListChanged: true }));
    w.tell(lost({ resourceSubscriptions: ['docs://a'] }));
    assert.deepEqual(w.did, [
      'doubt docs resources/list resources/templates/list',
      'doubt docs resources/read',
    ]);
  });

  test('that is closed listens no more, whatever is announced', () => {
    const w = watching();
    w.watch.announced(ALL);
    w.watch.close();
    w.watch.announced(ALL);
    w.watch.heldChanged();
    assert.equal(w.filters.length, 1);
    w.hub.close();
    assert.equal(w.closed, 1);
  });
});

describe('whether changes are heard', () => {
  test('is not said while there is nothing to listen for, nor where nothing is offered', () => {
    const { hub, watch, become } = watching();
    assert.equal(hub.isOpen, undefined);
    watch.announced(ALL);
    assert.equal(hub.isOpen, true);
    for (const state of ['waiting', 'opening'] as const) {
      become(state);
      assert.equal(hub.isOpen, false, state);
    }
    become('not-offered');
    assert.equal(hub.isOpen, undefined);
    watch.close();
  });
});
