/** Listening to an upstream: what is asked, what is trusted, and what happens when a stream is refused or breaks. */
import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { ListenFilter } from '../../src/protocol/listen-filter.ts';
import type { StreamEnd } from '../../src/upstream/listen-take.ts';
import { LISTEN_TIMES, pauseMs } from '../../src/upstream/listen-times.ts';
import {
  answer,
  chunk,
  errorText,
  event,
  type Fault,
  LAST_CHUNK,
  openEvents,
  until,
} from '../support/fault-server.ts';
import { asking, type Heard, listenRig, type Station, startStation, TIMES } from '../support/listen-kit.ts';
import { now, readRequest } from '../support/upstream-kit.ts';

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
const TOOLS: Partial<ListenFilter> = { toolsListChanged: true };
const URIS: Partial<ListenFilter> = { resourceSubscriptions: ['a:b', 'a:c/d'] };
const first = async (): Promise<Heard> => {
  await until(() => station.streams.length > 0, 'a stream');
  return station.streams[0] as Heard;
};
const reset: Fault = ({ socket }) => void socket.resetAndDestroy();
const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('a listen', () => {
  test('asks for what is wanted, with the credentials and the meta of whoever listens', async () => {
    const ear = docs.listen(
      { ...TOOLS, ...URIS, taskIds: ['t1'] },
      { headers: { authorization: 'Bearer x', 'mcp-name': 'no' } },
    );
    assert.equal(ear.listening.state, 'opening');
    const { request, params, id } = await first();
    assert.equal(request.headers.authorization, 'Bearer x');
    assert.equal(request.headers['mcp-method'], 'subscriptions/listen');
    assert.equal(request.headers['mcp-protocol-version'], '2026-07-28');
    assert.equal(request.headers['mcp-name'], undefined);
    assert.match(id, /^"hg-/);
    assert.deepEqual(params, {
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
      },
      notifications: { toolsListChanged: true, resourceSubscriptions: ['a:b', 'a:c/d'], taskIds: ['t1'] },
    });
    const told = await ear.hears('acknowledged');
    const filter = asking({ ...TOOLS, ...URIS, taskIds: ['t1'] });
    assert.deepEqual(told, { kind: 'acknowledged', honoured: filter, gained: filter, first: true });
    assert.equal(ear.listening.state, 'open');
    assert.deepEqual(docs.seen.attempts, ['ok']);
    assert.deepEqual(docs.seen.states, ['up']);
  });

  test('tells what comes, with the parameters as they are', async () => {
    const ear = docs.listen({
      ...TOOLS,
      promptsListChanged: true,
      resourcesListChanged: true,
      ...URIS,
      taskIds: ['t'],
    });
    await ear.hears('acknowledged');
    const stream = await first();
    for (const list of ['tools', 'prompts', 'resources']) stream.notify(`notifications/${list}/list_changed`);
    const params = `{"uri":"a:b","big":12345678901234567890 ,"_meta":{"io.modelcontextprotocol/subscriptionId":${stream.id}}}`;
    stream.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":${params}}`);
    stream.updated('a:c/d/below');
    stream.notify('notifications/tasks', { taskId: 't', status: 'working' });
    await ear.hears('task');
    assert.deepEqual(
      ear.of('list-changed').map(({ list }) => list),
      ['tools', 'prompts', 'resources'],
    );
    assert.deepEqual(
      ear.of('updated').map(({ uri }) => uri),
      ['a:b', 'a:c/d/below'],
    );
    assert.equal(Buffer.from(ear.of('updated')[0]?.params ?? []).toString(), params);
    const task = await ear.hears('task');
    assert.deepEqual([task.method, task.taskId], ['notifications/tasks', 't']);
    assert.match(Buffer.from(task.params).toString(), /"status":"working"/);
  });

  test('is read compressed, too, and in any chunks', async () => {
    station.refuse = async (request) => {
      const id = await request.id();
      const meta = `"_meta":{"io.modelcontextprotocol/subscriptionId":${id}}`;
      const text =
        event(
          `{"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},${meta}}}`,
        ) + event(`{"method":"notifications/tools/list_changed","params":{${meta}}}`);
      openEvents(request, { 'Content-Encoding': 'gzip' });
      for (const byte of gzipSync(text)) {
        request.socket.write(chunk(Uint8Array.of(byte)));
        await pass(0);
      }
    };
    const ear = docs.listen(TOOLS);
    assert.equal((await ear.hears('list-changed')).list, 'tools');
  });

  test('of nothing asks nothing', async () => {
    const ear = docs.listen({});
    await pass(TIMES.gatherMs * 2);
    assert.equal(station.asked, 0);
    assert.equal(ear.listening.state, 'waiting');
    ear.listening.update(asking(TOOLS));
    await ear.hears('acknowledged');
  });

  test('does not count against reads and calls', async () => {
    await use({ connections: 1 });
    await docs.listen(TOOLS).hears('acknowledged');
    station.server.fault = 'ok';
    const outcome = await docs.upstream.read(readRequest());
    assert.equal(outcome.kind, 'answer');
  });

  test('R48: does nothing at all while it is open and silent', async () => {
    const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    await docs.upstream.close();
    await until(() => timers() === 0, 'no timer');
    docs = listenRig([station.server.url], { times: { ackMs: 250 } });
    const ear = docs.listen({ ...TOOLS, ...URIS });
    await ear.hears('acknowledged');
    await until(() => timers() === 0, 'no timer');
    const { bytesWritten } = (await first()).socket;
    await pass(500);
    assert.equal(timers(), 0);
    assert.equal(station.asked, 1);
    assert.equal((await first()).socket.bytesWritten, bytesWritten);
    assert.equal(ear.listening.state, 'open');
  });

  test('has the kernel ask whether the peer is still there', async (t) => {
    const asked = t.mock.method(Socket.prototype, 'setKeepAlive');
    await docs.listen(TOOLS).hears('acknowledged');
    assert.ok(asked.mock.calls.some((call) => call.arguments[0] === true && call.arguments[1] === 60_000));
  });
});

describe('closing', () => {
  test('ends the stream at the upstream, and nothing is told any more', async () => {
    const ear = docs.listen(TOOLS);
    await ear.hears('acknowledged');
    const stream = await first();
    ear.listening.close();
    ear.listening.close();
    assert.equal(ear.listening.state, 'closed');
    stream.notify('notifications/tools/list_changed');
    await until(() => stream.socket.destroyed, 'the connection to close');
    ear.listening.update(asking(URIS));
    await pass(TIMES.gatherMs * 2);
    assert.equal(ear.events.length, 1);
    assert.equal(station.asked, 1);
  });

  test('from within what is told is closing', async () => {
    station.behave = (stream) => {
      stream.acknowledge();
      stream.notify('notifications/tools/list_changed');
      stream.notify('notifications/tools/list_changed');
    };
    const told: string[] = [];
    const listening = docs.upstream.listen(
      { filter: asking(TOOLS), version: '2026-07-28', headers: {}, meta: '' },
      ({ kind }) => {
        told.push(kind);
        if (kind === 'list-changed') listening.close();
      },
    );
    await until(() => listening.state === 'closed', 'the end');
    await until(() => station.open.length === 0, 'the connection to close');
    assert.deepEqual(told, ['acknowledged', 'list-changed']);
  });

  for (const phase of [
    'before it is answered',
    'while it waits to ask again',
    'together with its upstream',
  ] as const) {
    test(`R48: ${phase} leaves nothing that keeps a process alive`, async () => {
      station.refuse =
        phase === 'while it waits to ask again'
          ? (request) => answer(request, '', { status: 404 })
          : () => {};
      const ear = docs.listen(TOOLS);
      await until(() => station.asked > 0, 'the request');
      if (phase === 'while it waits to ask again') await ear.hears('not-offered');
      if (phase === 'together with its upstream') await docs.upstream.close();
      else ear.listening.close();
      assert.equal(ear.listening.state, 'closed');
      await until(
        () => station.server.open.size === 0 || phase.startsWith('while'),
        'the connection to close',
      );
      await docs.upstream.close();
      await until(() => !process.getActiveResourcesInfo().includes('Timeout'), 'no timer');
    });
  }
});

describe('R39: not trusted is', () => {
  const silent = async (behave: (stream: Heard) => void): Promise<void> => {
    await use({ times: { ackMs: 250 } });
    station.behave = (stream) => {
      behave(stream);
      stream.notify('notifications/tools/list_changed');
    };
    const ear = docs.listen({ ...TOOLS, ...URIS });
    const { reason } = await ear.hears('unopened');
    assert.deepEqual([reason.kind, ear.events.length], ['timeout', 1]);
    assert.equal(ear.of('list-changed').length, 0);
  };

  test('what comes before the acknowledgment', () => silent(() => undefined));
  test('an acknowledgment with the id of another', () =>
    silent((stream) => stream.acknowledge(undefined, '"hg-0"')));
  test('an acknowledgment without an id', () =>
    silent((stream) =>
      stream.say(
        '{"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}',
      ),
    ));

  test('an event with another id, for what was not asked, or what is no notification', async () => {
    const ear = docs.listen({ ...TOOLS, ...URIS });
    await ear.hears('acknowledged');
    const stream = await first();
    stream.notify('notifications/tools/list_changed', {}, '"hg-0"');
    stream.say('{"method":"notifications/tools/list_changed"}');
    stream.say('{"method":"notifications/tools/list_changed","params":{}}');
    stream.notify('notifications/prompts/list_changed');
    stream.updated('a:bc');
    stream.updated('a:c');
    stream.notify('notifications/message', { level: 'info', data: 'x' });
    stream.notify('notifications/tasks', { taskId: 't' });
    stream.say(`{"jsonrpc":"2.0","id":7,"method":"roots/list"}`);
    stream.say('not json');
    stream.acknowledge(asking({ promptsListChanged: true }));
    stream.notify('notifications/prompts/list_changed');
    stream.say('{"jsonrpc":"2.0","id":"hg-0","result":{}}');
    stream.notify('notifications/cancelled', { requestId: 'hg-0' });
    stream.socket.write(
      chunk(`event: other\ndata: {"method":"notifications/tools/list_changed"}\n\n: comment\n\n`),
    );
    stream.updated('a:b');
    await ear.hears('updated');
    assert.deepEqual(
      ear.events.map(({ kind }) => kind),
      ['acknowledged', 'updated'],
    );
  });

  test('an acknowledgment of more than was asked', async () => {
    station.behave = (stream) => stream.acknowledge(asking({ ...TOOLS, promptsListChanged: true, ...URIS }));
    const ear = docs.listen(TOOLS);
    assert.deepEqual((await ear.hears('acknowledged')).honoured, asking(TOOLS));
    (await first()).updated('a:b');
    (await first()).notify('notifications/tools/list_changed');
    await ear.hears('list-changed');
    assert.equal(ear.of('updated').length, 0);
  });
});

describe('R40: a stream that breaks', () => {
  const BREAKS: Readonly<Record<string, readonly [(stream: Heard) => void, string]>> = {
    'is reset': [({ socket }) => socket.resetAndDestroy(), 'reset'],
    'is closed': [({ socket }) => socket.end(), 'reset'],
    'just ends': [({ socket }) => socket.write(LAST_CHUNK), 'reset'],
    'is ended with a result': [(stream) => stream.complete(), 'reset'],
    'is cancelled': [
      (stream) => stream.say(`{"method":"notifications/cancelled","params":{"requestId":${stream.id}}}`),
      'reset',
    ],
    'ends with an error': [(stream) => stream.say(errorText(stream.id, -32603)), 'broken'],
    'is no HTTP any more': [({ socket }) => socket.write('garbage\r\n'), 'broken'],
  };
  for (const [how, [breaks, kind]] of Object.entries(BREAKS)) {
    test(`as it ${how} is told as lost, and opened again`, async () => {
      const ear = docs.listen({ ...TOOLS, ...URIS });
      await ear.hears('acknowledged');
      breaks(await first());
      const lost = await ear.hears('lost');
      assert.equal(lost.reason.kind, kind);
      assert.deepEqual(lost.covered, asking({ ...TOOLS, ...URIS }));
      const again = await ear.hears('acknowledged', 2);
      assert.deepEqual(again, {
        kind: 'acknowledged',
        honoured: asking({ ...TOOLS, ...URIS }),
        gained: asking({ ...TOOLS, ...URIS }),
        first: false,
      });
      assert.notEqual(station.streams[0]?.id, station.streams[1]?.id);
      station.streams[1]?.updated('a:b');
      await ear.hears('updated');
    });
  }

  test('is opened again after longer and longer, and soon after it was open for a while', async () => {
    await use({ random: () => 0.999 });
    let quick = true;
    station.behave = (stream) => {
      stream.acknowledge();
      if (quick) stream.socket.resetAndDestroy();
    };
    const ear = docs.listen(TOOLS);
    await ear.hears('lost', 7);
    quick = false;
    await ear.hears('acknowledged', 8);
    const gaps = station.streams.slice(1).map(({ at }, i) => at - (station.streams[i] as Heard).at);
    for (const [i, gap] of gaps.entries()) assert.ok(gap >= Math.min(8 * 2 ** i, 64) * 0.9, `${i}: ${gap}`);
    await pass(TIMES.steadyMs * 1.1);
    const at = now();
    station.streams.at(-1)?.socket.resetAndDestroy();
    await ear.hears('acknowledged', 9);
    assert.ok(now() - at < 55, `${now() - at} ms`);
  });

  test('is tried again for as long as it is held, however long the upstream is away', async () => {
    const ear = docs.listen(TOOLS);
    await ear.hears('acknowledged');
    station.refuse = reset;
    (await first()).socket.resetAndDestroy();
    await ear.hears('unopened', 12);
    assert.equal(ear.of('lost').length, 1);
    assert.ok(['waiting', 'opening'].includes(ear.listening.state));
    station.refuse = undefined;
    await ear.hears('acknowledged', 2);
    assert.ok(docs.upstream.available(), 'what a listen meets opens no circuit');
  });

  test('for an event above 64 KiB is opened again, and nothing of it is held', async () => {
    const ear = docs.listen({ ...TOOLS, ...URIS });
    await ear.hears('acknowledged');
    const stream = await first();
    const filler = (bytes: number): string => 'x'.repeat(bytes);
    const base = 200;
    stream.notify('notifications/tools/list_changed', { filler: filler(64 * 1024 - base) });
    await ear.hears('list-changed');
    assert.equal(ear.of('lost').length, 0);
    stream.notify('notifications/tools/list_changed', { filler: filler(64 * 1024) });
    assert.equal((await ear.hears('lost')).reason.kind, 'too_large');
    await ear.hears('acknowledged', 2);
    // One that never ends.
    station.streams[1]?.socket.write(chunk(`data: ${filler(80 * 1024)}`));
    assert.equal((await ear.hears('lost', 2)).reason.kind, 'too_large');
  });

  test('may be acknowledged with as much as was asked for, however it is spelt', async () => {
    const uris = Array.from({ length: 500 }, (_, i) => `docs://${'ü'.repeat(100)}/${i}`);
    station.behave = (stream) => {
      const text = JSON.stringify(stream.filter.resourceSubscriptions).replaceAll('ü', '\\u00fc');
      stream.say(
        `{"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":${text}},"_meta":{"io.modelcontextprotocol/subscriptionId":${stream.id}}}}`,
      );
    };
    const ear = docs.listen({ resourceSubscriptions: uris });
    assert.equal((await ear.hears('acknowledged')).honoured.resourceSubscriptions.length, 500);
    // That much is for the acknowledgment alone.
    (await first()).socket.write(chunk(`data: ${'x'.repeat(80 * 1024)}`));
    assert.equal((await ear.hears('lost')).reason.kind, 'too_large');
  });

  test('goes to another endpoint after a failure', async () => {
    const other = await startStation();
    try {
      await docs.upstream.close();
      docs = listenRig([station.server.url, other.server.url]);
      station.refuse = reset;
      other.refuse = () => {};
      // The dead one has nothing to do, and would always be the least busy.
      const leaving = new AbortController();
      const reading = docs.upstream.read(readRequest({ signal: leaving.signal }));
      await until(() => other.asked === 1, 'a read');
      const ear = docs.listen(TOOLS);
      other.refuse = undefined;
      await ear.hears('acknowledged');
      assert.equal(other.open.length, 1);
      assert.ok(station.asked <= 2, 'the read, and the listen once');
      leaving.abort();
      await reading;
    } finally {
      await docs.upstream.close();
      await other.server.close();
    }
  });
});

describe('R40: not offered is', () => {
  const json =
    (text: (id: string) => string): Fault =>
    async (request) =>
      answer(request, text(await request.id()));
  const status =
    (code: number): Fault =>
    (request) =>
      answer(request, '{"secret":"of the upstream"}', { status: code });
  const REFUSALS: Readonly<Record<string, readonly [Fault, string]>> = {
    'a status 401': [status(401), 'status 401'],
    'a status 403': [status(403), 'status 403'],
    'a status 404': [status(404), 'status 404'],
    'a status 405': [status(405), 'status 405'],
    'a status 501': [status(501), 'status 501'],
    'an error -32601': [json((id) => errorText(id, -32601)), 'error -32601'],
    'a result without a stream': [
      json((id) => `{"jsonrpc":"2.0","id":${id},"result":{}}`),
      'answered without a stream',
    ],
    'a page': [
      (request) => answer(request, '<html>', { headers: { 'Content-Type': 'text/html' } }),
      'neither an event stream nor JSON',
    ],
  };
  for (const [what, [fault, reason]] of Object.entries(REFUSALS)) {
    test(`${what}: asked again after a while, not before`, async () => {
      station.refuse = fault;
      const ear = docs.listen(TOOLS);
      const told = await ear.hears('not-offered');
      assert.deepEqual(told, { kind: 'not-offered', reason, asked: asking(TOOLS) });
      assert.equal(ear.listening.state, 'not-offered');
      station.refuse = undefined;
      const at = now();
      await ear.hears('acknowledged');
      assert.ok(now() - at > TIMES.refusedMs, `${now() - at}`);
      assert.equal(station.asked, 2);
    });
  }

  const ENDS: Readonly<Record<string, (stream: Heard) => void>> = {
    'an acknowledgment of nothing': (stream) => {
      stream.acknowledge(asking({}));
      stream.complete();
    },
    'an acknowledgment of something else': (stream) =>
      stream.acknowledge(asking({ promptsListChanged: true })),
    'an acknowledgment that is none': (stream) =>
      stream.notify('notifications/subscriptions/acknowledged', { notifications: [] }),
    'an error in the stream': (stream) => stream.say(errorText(stream.id, -32601)),
    'a result before the acknowledgment': (stream) => stream.complete(),
  };
  for (const [what, behave] of Object.entries(ENDS)) {
    test(`${what}: the stream is closed, and asked again after a while`, async () => {
      station.behave = behave;
      const ear = docs.listen(TOOLS);
      await ear.hears('not-offered');
      assert.equal(ear.events.length, 1);
      await until(() => docs.upstream.stats().running === 0, 'the stream to close');
      assert.equal(ear.listening.state, 'not-offered');
      await pass(TIMES.lastPauseMs * 2);
      assert.equal(station.asked, 1);
      await until(() => station.asked === 2, 'the next question');
    });
  }

  test('none of what passes: 429, 503, an internal error are tried again, after what the upstream asks for', async () => {
    station.refuse = (request) => answer(request, '', { status: 429 });
    const ear = docs.listen(TOOLS);
    await ear.hears('unopened');
    station.refuse = (request) => answer(request, '', { status: 503, headers: { 'Retry-After': '0' } });
    await ear.hears('unopened', 3);
    station.refuse = async (request) => answer(request, errorText(await request.id(), -32603));
    await ear.hears('unopened', 5);
    station.refuse = undefined;
    await ear.hears('acknowledged');
    assert.equal(ear.of('not-offered').length, 0);
    assert.ok(docs.seen.attempts.includes('http_4xx') && docs.seen.attempts.includes('rpc_error'));
  });

  test('nothing that tells a credential', async () => {
    station.refuse = (request) =>
      answer(request, '', { status: 401, headers: { 'WWW-Authenticate': 'Bearer secret' } });
    const ear = docs.listen(TOOLS, { headers: { authorization: 'Bearer secret' } });
    await ear.hears('not-offered');
    station.refuse = ({ socket }) => void socket.end('SSH-2.0 secret\r\n\r\n');
    await ear.hears('unopened');
    assert.ok(!JSON.stringify(ear.events).includes('secret'));
  });
});

describe('R40: the pause before the next attempt', () => {
  const failed = (retryAfterSeconds?: number): StreamEnd => ({
    kind: 'failed',
    failure: {
      kind: 'reset',
      proxyError: '',
      detail: '',
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    },
    outcome: 'reset',
  });
  const refused: StreamEnd = { kind: 'not-offered', reason: '', outcome: 'http_4xx' };
  const pause = (end: StreamEnd, failures: number, random: number): number =>
    pauseMs(end, failures, random, LISTEN_TIMES);

  test('is somewhere between nothing and 200 ms, doubled up to 30 s', () => {
    const most = [0, 1, 2, 3, 7, 8, 9, 1_000].map((failures) => pause(failed(), failures, 1));
    assert.deepEqual(most, [200, 400, 800, 1_600, 25_600, 30_000, 30_000, 30_000]);
    assert.equal(pause(failed(), 9, 0), 0);
    assert.equal(pause(failed(), 9, 0.5), 15_000);
  });

  test('is what the upstream asks for and some more, at most five minutes and some', () => {
    assert.equal(pause(failed(7), 0, 0.5), 7_100);
    assert.equal(pause(failed(86_400), 0, 0), 300_000);
  });

  test('is five to six minutes after a refusal', () => {
    assert.deepEqual([pause(refused, 0, 0), pause(refused, 50, 1)], [300_000, 360_000]);
  });
});

describe('an upstream that nobody asks', () => {
  test('is down when its streams find no connection, and up when one is acknowledged', async () => {
    const ear = docs.listen(TOOLS);
    await ear.hears('acknowledged');
    assert.deepEqual(docs.seen.states, ['up']);
    await station.server.close();
    await until(() => docs.seen.states.length > 1, 'down');
    station = await startStation(station.server.port);
    await ear.hears('acknowledged', 2);
    assert.deepEqual(docs.seen.states, ['up', 'down', 'up']);
  });

  test('is not down while one of its endpoints takes connections', async () => {
    const gone = await startStation();
    await gone.server.close();
    await docs.upstream.close();
    docs = listenRig([gone.server.url, station.server.url]);
    await docs.listen(TOOLS).hears('acknowledged');
    assert.deepEqual(docs.seen.attempts, ['connect', 'ok']);
    assert.deepEqual(docs.seen.states, ['up']);
  });
});
