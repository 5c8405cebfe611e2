/** A listening whose filter changes: wider before narrower, nothing lost, and no more streams than it takes. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { ListenFilter } from '../../src/protocol/listen-filter.ts';
import { answer, until } from '../support/fault-server.ts';
import {
  asking,
  type Ear,
  type Heard,
  listenRig,
  type Station,
  startStation,
  TIMES,
} from '../support/listen-kit.ts';

let station: Station;
let docs: ReturnType<typeof listenRig>;
beforeEach(async () => {
  station = await startStation();
  docs = listenRig([station.server.url]);
});
afterEach(async () => {
  await docs.upstream.close();
  await station.server.close();
});

const use = async (options: Parameters<typeof listenRig>[1]): Promise<void> => {
  await docs.upstream.close();
  docs = listenRig([station.server.url], options);
};
const uris = (...resourceSubscriptions: string[]): Partial<ListenFilter> => ({ resourceSubscriptions });
const many = (count: number, from = 0): string[] =>
  Array.from({ length: count }, (_, i) => `docs://${from + i}`);
const stream = (nth: number): Heard => station.streams[nth - 1] as Heard;
const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const updates = (ear: Ear): string[] => ear.of('updated').map(({ uri }) => uri);

describe('an update', () => {
  test('opens the wider stream before it closes the narrower one', async () => {
    const ear = docs.listen(uris('a:1'));
    await ear.hears('acknowledged');
    station.behave = () => undefined;
    ear.listening.update(asking(uris('a:1', 'a:2')));
    await until(() => station.streams.length === 2, 'the wider stream');
    assert.deepEqual(stream(2).filter.resourceSubscriptions, ['a:1', 'a:2']);
    // Unacknowledged, it is worth nothing yet.
    stream(1).updated('a:1');
    await ear.hears('updated');
    assert.equal(station.open.length, 2);
    assert.equal(ear.listening.state, 'open');
    stream(2).acknowledge();
    const told = await ear.hears('acknowledged', 2);
    assert.deepEqual(told.honoured, asking(uris('a:1', 'a:2')));
    assert.deepEqual(told.gained, asking(uris('a:2')));
    assert.equal(told.first, false);
    await until(() => station.open.length === 1, 'the narrower one to close');
    assert.ok(stream(1).socket.destroyed);
    assert.equal(ear.of('lost').length, 0);
  });

  test('loses nothing that was on its way, and tells once what the wider stream has told', async () => {
    const ear = docs.listen({ ...uris('a:1'), toolsListChanged: true, taskIds: ['t'] });
    await ear.hears('acknowledged');
    ear.listening.update(asking({ ...uris('a:1', 'a:2'), toolsListChanged: true, taskIds: ['t'] }));
    await ear.hears('acknowledged', 2);
    // Late on the narrower stream, and never on the wider one.
    stream(1).updated('a:1/late');
    await ear.hears('updated');
    // Over both.
    stream(2).updated('a:1');
    stream(2).notify('notifications/tools/list_changed');
    await ear.hears('list-changed');
    stream(1).updated('a:1');
    stream(1).notify('notifications/tools/list_changed');
    stream(1).notify('notifications/tasks', { taskId: 't' });
    await ear.hears('task');
    stream(2).updated('a:1');
    await ear.hears('updated', 3);
    assert.deepEqual(updates(ear), ['a:1/late', 'a:1', 'a:1']);
    assert.equal(ear.of('list-changed').length, 1);
    await until(() => station.open.length === 1, 'the narrower one to close');
  });

  test('in quick succession loses nothing of the first stream, either', async () => {
    await use({ times: { drainMs: 400 } });
    const ear = docs.listen(uris('a:1'));
    await ear.hears('acknowledged');
    ear.listening.update(asking(uris('a:1', 'a:2')));
    await ear.hears('acknowledged', 2);
    stream(2).updated('a:1');
    await ear.hears('updated');
    ear.listening.update(asking(uris('a:1', 'a:2', 'a:3')));
    await ear.hears('acknowledged', 3);
    assert.equal(station.open.length, 3);
    // The second stream has told it; the third has not.
    stream(1).updated('a:1');
    stream(2).updated('a:1');
    stream(1).updated('a:1/late');
    await until(() => updates(ear).includes('a:1/late'), 'what was late');
    assert.deepEqual(updates(ear).sort(), ['a:1', 'a:1', 'a:1/late']);
    await until(() => station.open.length === 1, 'the narrower ones to close');
  });

  test('is told as lost when the narrower stream breaks before it has run out', async () => {
    const ear = docs.listen(uris('a:1'));
    await ear.hears('acknowledged');
    await use({ times: { drainMs: 5_000 } });
    const held = docs.listen(uris('a:1'));
    await held.hears('acknowledged');
    held.listening.update(asking(uris('a:1', 'a:2')));
    await held.hears('acknowledged', 2);
    stream(2).socket.resetAndDestroy();
    assert.deepEqual((await held.hears('lost')).covered, asking(uris('a:1')));
    assert.deepEqual((await held.hears('acknowledged', 3)).gained, asking(uris('a:1')));
    assert.equal(station.asked, 3, 'nothing is opened for it');
  });

  test('R40: what is left out for a moment and is covered still is gained anew: meanwhile nothing was told of it', async () => {
    await use({ times: { shrinkMs: 5_000 } });
    const ear = docs.listen(uris('a:1', 'a:2'));
    await ear.hears('acknowledged');
    ear.listening.update(asking(uris('a:1')));
    stream(1).updated('a:2');
    stream(1).updated('a:1');
    await ear.hears('updated');
    assert.deepEqual(updates(ear), ['a:1']);
    ear.listening.update(asking(uris('a:1', 'a:2')));
    const { gained, first } = await ear.hears('acknowledged', 2);
    assert.deepEqual([gained, first], [asking(uris('a:2')), false]);
    assert.equal(station.asked, 1);
  });

  test('R40: one URI that the upstream takes offence at costs no other its place', async () => {
    station.behave = (heard) => {
      const { resourceSubscriptions } = heard.filter;
      if (!resourceSubscriptions.includes('bad:1')) return heard.acknowledge();
      heard.say(`{"jsonrpc":"2.0","id":${heard.id},"error":{"code":-32602,"message":"no such resource"}}`);
    };
    const good = many(30);
    const ear = docs.listen({
      ...uris(...good.slice(0, 17), 'bad:1', ...good.slice(17)),
      toolsListChanged: true,
    });
    await until(
      () => ear.listening.fate(asking(uris('bad:1', ...good))).honoured.resourceSubscriptions.length === 30,
    );
    const refused = await ear.hears('not-offered');
    assert.deepEqual(refused.asked, asking(uris('bad:1')));
    assert.deepEqual(ear.of('not-offered').length, 1);
    assert.equal(ear.listening.fate(asking({ toolsListChanged: true })).honoured.toolsListChanged, true);
    assert.ok(station.asked <= 14, `${station.asked} requests`);
    // What comes then goes where it is welcome.
    const before = station.asked;
    ear.listening.update(asking({ ...uris('bad:1', 'new:1', ...good), toolsListChanged: true }));
    await until(() => ear.listening.fate(asking(uris('new:1'))).honoured.resourceSubscriptions.length === 1);
    assert.equal(station.asked, before + 1);
    for (const heard of station.open)
      if (heard.filter.resourceSubscriptions.includes('docs://29')) heard.updated('docs://29');
    await ear.hears('updated');
  });

  test('says what has become of a part: listened to, refused, or to be decided', async () => {
    const ear = docs.listen({ ...uris('a:1'), toolsListChanged: true });
    const fate = (filter: Partial<ListenFilter>) => ear.listening.fate(asking(filter));
    station.behave = (heard) => heard.acknowledge(asking(uris('a:1')));
    assert.deepEqual(fate(uris('a:1')), { honoured: asking({}), undecided: asking(uris('a:1')) });
    await until(() => station.streams.length === 1, 'a stream');
    await ear.hears('acknowledged');
    assert.deepEqual(fate({ ...uris('a:1'), toolsListChanged: true }), {
      honoured: asking(uris('a:1')),
      undecided: asking({}),
    });
    station.behave = () => undefined;
    ear.listening.update(asking({ ...uris('a:1', 'a:2'), toolsListChanged: true }));
    assert.deepEqual(fate(uris('a:1', 'a:2', 'a:3')), {
      honoured: asking(uris('a:1')),
      undecided: asking(uris('a:2')),
    });
  });

  test('many of them at once open one stream', async () => {
    const ear = docs.listen(uris('a:0'));
    await ear.hears('acknowledged');
    for (let n = 1; n <= 100; n++) {
      ear.listening.update(asking(uris(...many(n))));
      if (n % 50 === 0) await Promise.resolve();
    }
    await until(
      () => ear.of('acknowledged').at(-1)?.honoured.resourceSubscriptions.length === 100,
      'all of it',
    );
    assert.equal(station.asked, 2);
  });

  test('while the last one is not acknowledged yet waits for it', async () => {
    const ear = docs.listen(uris('a:1'));
    await ear.hears('acknowledged');
    station.behave = () => undefined;
    ear.listening.update(asking(uris('a:1', 'a:2')));
    await until(() => station.streams.length === 2, 'the second stream');
    ear.listening.update(asking(uris('a:1', 'a:2', 'a:3')));
    await pass(TIMES.gatherMs * 2);
    assert.equal(station.asked, 2);
    station.behave = (third) => third.acknowledge();
    stream(2).acknowledge();
    assert.deepEqual((await ear.hears('acknowledged', 3)).honoured, asking(uris('a:1', 'a:2', 'a:3')));
  });

  test('that changes nothing opens nothing', async () => {
    const ear = docs.listen(uris('a:1', 'a:2'));
    await ear.hears('acknowledged');
    ear.listening.update(asking(uris('a:2', 'a:1', 'a:1')));
    await pass(TIMES.gatherMs + TIMES.shrinkMs * 1.5);
    assert.equal(station.asked, 1);
  });

  test('that only shrinks is in force at once, and the narrower stream is opened later', async () => {
    const ear = docs.listen({ ...uris('a:1', 'a:2'), toolsListChanged: true });
    await ear.hears('acknowledged');
    ear.listening.update(asking(uris('a:1')));
    stream(1).updated('a:2');
    stream(1).notify('notifications/tools/list_changed');
    stream(1).updated('a:1');
    await ear.hears('updated');
    await pass(TIMES.gatherMs * 2);
    assert.equal(station.asked, 1);
    assert.deepEqual(updates(ear), ['a:1']);
    assert.equal(ear.of('list-changed').length, 0);
    const told = await ear.hears('acknowledged', 2);
    assert.deepEqual(told.honoured, asking(uris('a:1')));
    assert.deepEqual(told.gained, asking({}));
    assert.deepEqual(stream(2).filter, asking(uris('a:1')));
    await until(() => station.open.length === 1, 'the wider one to close');
    assert.equal(ear.of('lost').length, 0);
  });

  test('that grows again before that keeps its stream', async () => {
    await use({ times: { shrinkMs: 1_000 } });
    const ear = docs.listen(uris('a:1', 'a:2'));
    await ear.hears('acknowledged');
    ear.listening.update(asking(uris('a:1')));
    await pass(50);
    ear.listening.update(asking(uris('a:1', 'a:2')));
    await pass(1_200);
    assert.equal(station.asked, 1);
    stream(1).updated('a:2');
    await ear.hears('updated');
  });

  test('that asks again for what is covered still leaves it on its stream, whoever else has room', async () => {
    await use({ times: { shrinkMs: 5_000 } });
    const ear = docs.listen(uris(...many(501)));
    await ear.hears('acknowledged', 2);
    const [first, ...others] = many(501);
    const last = others.pop() as string;
    ear.listening.update(asking(uris(...others)));
    await pass(TIMES.gatherMs * 2);
    ear.listening.update(asking(uris(...others, last)));
    await pass(TIMES.gatherMs * 4);
    assert.equal(station.asked, 2, `without ${first} there is room on the other`);
  });

  test('to nothing closes the stream later, and to something opens one again', async () => {
    const ear = docs.listen(uris('a:1'));
    await ear.hears('acknowledged');
    ear.listening.update(asking({}));
    await until(() => station.open.length === 0, 'the stream to close');
    assert.equal(ear.listening.state, 'waiting');
    assert.equal(ear.events.length, 1);
    ear.listening.update(asking({ promptsListChanged: true }));
    await ear.hears('acknowledged', 2);
    assert.deepEqual(stream(2).filter, asking({ promptsListChanged: true }));
  });
});

describe('R40: a wider stream', () => {
  test('that fails is tried again while the narrower one goes on', async () => {
    const ear = docs.listen(uris('a:1'));
    await ear.hears('acknowledged');
    station.refuse = ({ socket }) => void socket.resetAndDestroy();
    ear.listening.update(asking(uris('a:1', 'a:2')));
    await ear.hears('unopened', 3);
    assert.equal(ear.listening.state, 'open');
    stream(1).updated('a:1');
    await ear.hears('updated');
    station.refuse = undefined;
    await ear.hears('acknowledged', 2);
    assert.equal(ear.of('lost').length, 0);
  });

  test('that is refused leaves the narrower one, which is opened again soon when it breaks', async () => {
    await use({ times: { refusedMs: 60_000 } });
    const ear = docs.listen(uris('a:1'));
    await ear.hears('acknowledged');
    station.refuse = (request) => answer(request, '', { status: 404 });
    ear.listening.update(asking(uris('a:1', 'a:2')));
    await ear.hears('not-offered');
    assert.equal(ear.listening.state, 'open');
    await pass(TIMES.lastPauseMs * 2);
    assert.equal(station.asked, 2);
    station.refuse = undefined;
    stream(1).socket.resetAndDestroy();
    await ear.hears('lost');
    const told = await ear.hears('acknowledged', 2);
    assert.deepEqual(told.honoured, asking(uris('a:1', 'a:2')));
    assert.equal(station.asked, 3);
  });

  test('that honours less tells what is lost', async () => {
    const ear = docs.listen({ ...uris('a:1'), toolsListChanged: true });
    await ear.hears('acknowledged');
    station.behave = (second) => second.acknowledge(asking(uris('a:1', 'a:2')));
    ear.listening.update(asking({ ...uris('a:1', 'a:2'), toolsListChanged: true }));
    const told = await ear.hears('acknowledged', 2);
    assert.deepEqual(told.honoured, asking(uris('a:1', 'a:2')));
    assert.deepEqual((await ear.hears('lost')).covered, asking({ toolsListChanged: true }));
  });

  test('for which there is no connection takes that of the narrower one', async () => {
    await use({ connections: 1 });
    const ear = docs.listen(uris('a:1'));
    await ear.hears('acknowledged');
    ear.listening.update(asking(uris('a:1', 'a:2')));
    const lost = await ear.hears('lost');
    assert.deepEqual([lost.reason.kind, lost.covered], ['full', asking(uris('a:1'))]);
    const told = await ear.hears('acknowledged', 2);
    assert.deepEqual([told.honoured, told.gained], [asking(uris('a:1', 'a:2')), asking(uris('a:1', 'a:2'))]);
  });

  test('keeps its place where there is none for the narrower one, too', async () => {
    await use({ connections: 1 });
    const ear = docs.listen(uris('a:1', 'a:2'));
    await ear.hears('acknowledged');
    ear.listening.update(asking(uris('a:1')));
    assert.equal((await ear.hears('unopened')).reason.kind, 'full');
    stream(1).updated('a:1');
    await ear.hears('updated');
    assert.equal(ear.of('lost').length, 0);
  });

  test('is not asked for more of a kind that was not honoured', async () => {
    station.behave = (heard) => heard.acknowledge(asking({ toolsListChanged: true }));
    const ear = docs.listen({ ...uris('a:1'), toolsListChanged: true });
    assert.deepEqual((await ear.hears('acknowledged')).honoured, asking({ toolsListChanged: true }));
    for (let n = 2; n < 5; n++) {
      ear.listening.update(asking({ ...uris(...many(n)), toolsListChanged: true }));
      await pass(TIMES.gatherMs * 1.5);
    }
    assert.equal(station.asked, 1);
    ear.listening.update(asking({ ...uris('a:1'), toolsListChanged: true, promptsListChanged: true }));
    await ear.hears('acknowledged', 2);
  });

  test('of another kind is asked for at once after a refusal, more of the same is not', async () => {
    await use({ times: { refusedMs: 60_000 } });
    station.behave = (heard) => heard.acknowledge(asking({ promptsListChanged: true }));
    const ear = docs.listen(uris('a:1'));
    await ear.hears('not-offered');
    for (let n = 2; n < 5; n++) {
      ear.listening.update(asking(uris(...many(n))));
      await pass(TIMES.gatherMs * 1.5);
    }
    assert.equal(station.asked, 1);
    ear.listening.update(asking({ ...uris('a:1'), promptsListChanged: true }));
    await ear.hears('acknowledged');
    assert.equal(station.asked, 2);
  });
});

describe('many URIs', () => {
  /** URIs on each open stream, the largest first: streams open in any order. */
  const shape = (): number[] =>
    station.open.map(({ filter }) => filter.resourceSubscriptions.length).sort((a, b) => b - a);
  const streamOf = (uri: string): Heard =>
    station.open.find(({ filter }) => filter.resourceSubscriptions.includes(uri)) ??
    assert.fail(`nobody asked for ${uri}`);
  const covered = (ear: Ear): number =>
    ear.of('acknowledged').at(-1)?.honoured.resourceSubscriptions.length ?? 0;

  test('go on streams of 500, and one more makes one stream anew', async () => {
    const ear = docs.listen({ ...uris(...many(1_200)), toolsListChanged: true });
    await until(() => covered(ear) === 1_200, 'all of them');
    assert.deepEqual(shape(), [500, 500, 200]);
    assert.equal(station.open.filter(({ filter }) => filter.toolsListChanged).length, 1);
    assert.equal(ear.of('acknowledged').filter(({ first }) => first).length, 1);
    ear.listening.update(asking({ ...uris(...many(1_201)), toolsListChanged: true }));
    await until(() => covered(ear) === 1_201, 'the new one');
    assert.equal(station.asked, 4);
    assert.equal(stream(4).filter.resourceSubscriptions.length, 201);
    // On the stream that did not ask for it, it is not trusted.
    streamOf('docs://0').updated('docs://700');
    streamOf('docs://700').updated('docs://700');
    await ear.hears('updated');
    await pass(20);
    assert.equal(updates(ear).length, 1);
  });

  test('on one stream that breaks are lost, those on the others are not', async () => {
    const ear = docs.listen(uris(...many(600)));
    await until(() => covered(ear) === 600, 'all of them');
    streamOf('docs://599').socket.resetAndDestroy();
    assert.equal((await ear.hears('lost')).covered.resourceSubscriptions.length, 100);
    const told = await ear.hears('acknowledged', 3);
    assert.deepEqual(
      [told.honoured.resourceSubscriptions.length, told.gained.resourceSubscriptions.length],
      [600, 100],
    );
  });

  test('beyond 10,000 are not listened for, until there is room', async () => {
    const ear = docs.listen(uris(...many(10_001)));
    await until(() => covered(ear) === 10_000, 'the first 10,000');
    assert.deepEqual(shape(), Array(20).fill(500));
    ear.listening.update(asking(uris(...many(10_000, 1))));
    await until(
      () => ear.of('acknowledged').at(-1)?.gained.resourceSubscriptions[0] === 'docs://10000',
      'the last one',
    );
    assert.equal(covered(ear), 10_000);
    assert.equal(station.asked, 21);
  });

  test('that are long go on more streams, and one that is too long on none', async () => {
    const long = (i: number, chars: number): string => `docs://${i}/`.padEnd(chars, 'x');
    const ear = docs.listen(uris(...Array.from({ length: 65 }, (_, i) => long(i, 8_192)), long(99, 8_193)));
    await until(() => covered(ear) === 65, 'all but one');
    assert.deepEqual(shape(), [64, 1]);
  });
});
