/** The reply to a request, on real sockets: every form it can take, and every way it can end. */

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { refusal } from '../../src/protocol/errors.ts';
import type { Exchange, Feed, Inbound, Outlet, Reply } from '../../src/protocol/exchange.ts';
import type { Signal } from '../../src/protocol/signal.ts';
import { answer, listenReply, openEdge, request, type TestEdge, Wire } from '../support/edge-kit.ts';
import { until } from '../support/mcp.ts';

type Handler = (inbound: Inbound, exchange: Exchange) => Promise<Reply>;

let edge: TestEdge;
let handler: Handler;
let skippedMs = 0;
let wires: Wire[] = [];

before(async () => {
  edge = await openEdge((inbound, exchange) => handler(inbound, exchange), {
    listen: 'limits: { bodyIdle: 200ms }',
    now: () => performance.now() + skippedMs,
  });
});
afterEach(() => {
  for (const wire of wires) wire.close();
  wires = [];
});
after(() => edge.close());

async function open(sent = request()): Promise<Wire> {
  const wire = await Wire.open(edge.port, sent);
  wires.push(wire);
  return wire;
}

const bytes = (text: string): Uint8Array => Buffer.from(text);

/** A promise that somebody else settles. */
function gate<T = void>(): { readonly opened: Promise<T>; open(value: T): void; fail(error: Error): void } {
  let open: (value: T) => void = () => {};
  let fail: (error: Error) => void = () => {};
  const opened = new Promise<T>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return { opened, open: (value) => open(value), fail: (error) => fail(error) };
}

function relay(media: 'json' | 'sse', body: AsyncIterable<Uint8Array>, headers = {}): Reply {
  return { kind: 'relay', status: 200, media, body, headers };
}

const openStreams = (kind: string) => edge.metric(`headgate_streams_open{route="/mcp",kind="${kind}"}`);

describe('R33: an answer is as long as its Content-Length says', () => {
  const big = 'ü€\u{1f600}'.repeat(4_000);
  const tails: readonly [name: string, head: string, tail: readonly string[]][] = [
    ['small', '{"id":7,"a":', ['1}']],
    ['not ASCII in the head', '{"id":"日本","a":"é",', ['"b":"ü"}']],
    ['in many small pieces', '{"a":[', ['1', ',2', ',"é"', ']}']],
    ['above one string', '{"id":"é","a":"', [big, '"}']],
    ['one large piece', '{"id":"é","a":"', [`${big}"}`]],
    ['a large head alone', `{"a":"${big}"}`, []],
    ['empty pieces', '{}', ['', '']],
  ];
  for (const [name, head, tail] of tails) {
    test(name, async () => {
      handler = async () => ({
        kind: 'answer',
        status: 200,
        head,
        tail: tail.map(bytes),
        headers: { 'Cache-Status': 'headgate; hit; ttl=42', Age: '3' },
      });
      const wire = await open(request('server/discover', {}, { Connection: 'close' }));
      const text = await wire.end();
      const [headers = '', body = ''] = text.split('\r\n\r\n');
      assert.equal(Buffer.from(body, 'latin1').toString(), head + tail.join(''));
      assert.equal(Number(/content-length: (\d+)/i.exec(headers)?.[1]), body.length);
      for (const line of [
        'Cache-Status: headgate; hit; ttl=42',
        'Age: 3',
        'Cache-Control: no-store',
        'Content-Type: application/json',
      ]) {
        assert.ok(headers.split('\r\n').includes(line), line);
      }
      assert.doesNotMatch(headers, /transfer-encoding|content-encoding/i);
    });
  }

  test('R30: to a client that does not read, nothing is copied, and it comes whole when it does', async () => {
    const piece = Buffer.alloc(1 << 20, 'x');
    handler = async () => ({
      kind: 'answer',
      status: 200,
      head: '"',
      tail: [...Array.from({ length: 16 }, () => piece), bytes('"')],
      headers: {},
    });
    const wire = await open();
    wire.socket.pause();
    await until(async () => (await edge.metric('headgate_http_requests_in_flight')) === 1, 'the request');
    wire.socket.resume();
    await until(() => wire.text.endsWith('x"'), 'the end', 10_000);
    assert.equal(wire.text.split('\r\n\r\n')[1]?.length, (16 << 20) + 2);
  });
});

describe('R11, R37: small replies', () => {
  test('an accepted notification is 202 and empty', async () => {
    handler = async () => ({ kind: 'accepted' });
    const text = await (await open(request('x', {}, { Connection: 'close' }))).end();
    assert.match(text, /^HTTP\/1.1 202 Accepted\r\n[\s\S]*content-length: 0\r\n[\s\S]*\r\n\r\n$/i);
    assert.doesNotMatch(text, /content-type/i);
  });

  test('a refusal has its status, its id, its headers and its Proxy-Status, and is counted', async () => {
    const problem = refusal(-32603, 'The upstream is busy', {
      status: 503,
      proxyError: 'connection_limit_reached',
      reason: 'no_route',
      headers: { 'Retry-After': '2' },
      data: { a: 1 },
    });
    handler = async () => ({ kind: 'refused', refusal: problem, id: '"é"' });
    const wire = await open();
    const text = Buffer.from(await wire.sees('busy'), 'latin1').toString();
    assert.match(text, /^HTTP\/1.1 503 /);
    assert.ok(
      text.includes('\r\nRetry-After: 2\r\n') &&
        text.includes('\r\nProxy-Status: headgate; error=connection_limit_reached\r\n'),
    );
    assert.ok(
      text.endsWith(
        '{"jsonrpc":"2.0","id":"é","error":{"code":-32603,"message":"The upstream is busy","data":{"a":1}}}',
      ),
    );
    assert.equal(await edge.metric('headgate_requests_rejected_total{reason="no_route"}'), 1);
  });

  test('a bug in the request path is -32603 with the id and nothing else; it is logged', async () => {
    handler = () => Promise.reject(new Error('secret path /etc/x'));
    const text = await (await open()).sees('"error"');
    assert.match(
      text,
      /^HTTP\/1.1 500 [\s\S]*"id":7,"error":\{"code":-32603,"message":"Internal error of the gateway"\}\}$/,
    );
    assert.equal(edge.log.at(-1)?.msg, 'the request path failed');
  });

  test('a header that HTTP forbids costs the answer, not the process', async () => {
    handler = async () => ({ ...answer(), headers: { 'X-A': 'a\r\nSet-Cookie: b' } }) as Reply;
    assert.match(await (await open()).sees('"error"'), /^HTTP\/1.1 500 /);
    handler = async () => relay('json', (async function* () {})(), { 'X-A': 'a\nb' });
    await (await open()).end();
    handler = async () => answer();
    await (await open()).sees('"ok":true');
  });
});

describe('R34: a relayed stream', () => {
  test('SSE: the head comes at once, and each event as it comes', async () => {
    const [first, second] = [gate(), gate()];
    handler = async () =>
      relay(
        'sse',
        (async function* () {
          await first.opened;
          yield bytes('data: 1\n\n');
          await second.opened;
          yield bytes('data: 2\n\n');
        })(),
        { 'Cache-Status': 'headgate; fwd=method' },
      );
    const wire = await open();
    const head = await wire.sees('\r\n\r\n');
    for (const line of [
      'Content-Type: text/event-stream',
      'X-Accel-Buffering: no',
      'Cache-Control: no-store',
      'Cache-Status: headgate; fwd=method',
    ]) {
      assert.ok(head.split('\r\n').includes(line), line);
    }
    assert.doesNotMatch(head, /content-length|content-encoding/i);
    assert.equal(await openStreams('response'), 1);
    first.open();
    assert.ok(!(await wire.sees('data: 1\n\n')).includes('data: 2'));
    second.open();
    await wire.sees('data: 2\n\n');
    await wire.sees('0\r\n\r\n');
    await until(async () => (await openStreams('response')) === 0, 'the gauge');
  });

  test('JSON: status and bytes as they are', async () => {
    handler = async () =>
      relay(
        'json',
        (async function* () {
          yield bytes('{"a":');
          yield bytes('1}');
        })(),
      );
    const text = await (await open(request('x', {}, { Connection: 'close' }))).end();
    assert.match(text, /^HTTP\/1.1 200 OK\r\n[\s\S]*content-type: application\/json/i);
    assert.ok(text.includes('{"a":') && text.endsWith('0\r\n\r\n'));
  });

  test('a JSON body that breaks never looks whole', async () => {
    handler = async () =>
      relay(
        'json',
        (async function* () {
          yield bytes('{"a":');
          await new Promise((resolve) => setImmediate(resolve));
          throw new Error('upstream broke');
        })(),
      );
    const text = await (await open()).end();
    assert.ok(text.includes('{"a":') && !text.includes('0\r\n\r\n'), text);
    assert.equal(edge.log.at(-1)?.msg, 'an answer broke off');
  });

  test('an SSE body that breaks ends its stream', async () => {
    handler = async () =>
      relay(
        'sse',
        (async function* () {
          yield bytes('data: {"error":1}\n\n');
          throw new Error('upstream broke');
        })(),
      );
    await (await open()).sees('0\r\n\r\n');
  });
});

describe('R35: a client that leaves', () => {
  test('before the reply: the signal fires', async () => {
    const began = gate<Exchange>();
    const reply = gate<Reply>();
    handler = async (_inbound, exchange) => {
      began.open(exchange);
      return reply.opened;
    };
    const wire = await open();
    const { signal } = await began.opened;
    assert.equal(signal.aborted, false);
    wire.close();
    await until(() => signal.aborted, 'the signal');
    assert.equal((signal.reason as { code: string }).code, 'client_gone');
    let returned = false;
    const iterator: AsyncIterator<Uint8Array> = {
      next: () => new Promise<never>(() => {}),
      async return() {
        returned = true;
        return { done: true, value: undefined };
      },
    };
    const body = { [Symbol.asyncIterator]: () => iterator };
    reply.open(relay('sse', body));
    await until(() => returned, 'the late reply to be let go');
    await until(() => edge.access.at(-1)?.status === 499, 'its line');
  });

  test('a signal asked for too late has fired already', async () => {
    const began = gate<Exchange>();
    handler = async (_inbound, exchange) => {
      began.open(exchange);
      return new Promise<Reply>(() => {});
    };
    const lines = edge.access.length;
    const wire = await open();
    const exchange = await began.opened;
    wire.close();
    await until(() => edge.access.length > lines, 'the end');
    assert.equal(exchange.signal.aborted, true);
  });

  for (const reading of ['reads', 'does not read']) {
    test(`in the middle of a relay, a client that ${reading}: the body is returned`, async () => {
      let ended = '';
      let pulledCount = 0;
      let signal: Signal | undefined;
      handler = async (_inbound, exchange) => {
        signal = exchange.signal;
        return relay(
          'json',
          (async function* () {
            try {
              for (;;) {
                pulledCount++;
                yield Buffer.alloc(64 << 10);
                await new Promise((resolve) => setImmediate(resolve));
              }
            } finally {
              ended = 'returned';
            }
          })(),
        );
      };
      const wire = await open();
      await wire.sees('\0\0');
      if (reading !== 'reads') {
        wire.socket.pause();
        let before = -1;
        await until(() => {
          const stuck = pulledCount === before;
          before = pulledCount;
          return stuck;
        }, 'the body to be held back');
      }
      wire.close();
      await until(() => ended === 'returned', 'the body to be returned');
      assert.equal(signal?.aborted, true);
      await until(() => edge.access.at(-1)?.error === 'client_gone', 'its line');
      assert.equal(edge.access.at(-1)?.status, 200);
    });
  }

  for (const count of [1, 8])
    test(`a client that leaves in the middle of a large answer has left: ${count} pieces`, async () => {
      let signal: Signal | undefined;
      handler = async (_inbound, exchange) => {
        signal = exchange.signal;
        const tail = Array.from({ length: count }, () => Buffer.alloc((16 << 20) / count, 'x'));
        return { kind: 'answer', status: 200, head: '', tail, headers: {} };
      };
      const wire = await open();
      await wire.sees('xxx');
      const before = edge.access.length;
      wire.socket.pause();
      wire.socket.resetAndDestroy();
      await until(() => edge.access.length > before, 'its line');
      assert.equal(signal?.aborted, true);
      assert.deepEqual([edge.access.at(-1)?.status, edge.access.at(-1)?.error], [200, 'client_gone']);
    });

  test('a client that closes as soon as it has its answer has not left', async () => {
    handler = async () => ({ kind: 'answer', status: 200, head: '{}', tail: [], headers: {} });
    for (let i = 0; i < 50; i++) {
      const before = edge.access.length;
      const wire = await open(request('server/discover', {}, i % 2 === 0 ? { Connection: 'close' } : {}));
      wire.socket.once('data', () => wire.socket.resetAndDestroy());
      await until(() => edge.access.length > before, 'its line');
      assert.equal(edge.access.at(-1)?.error, undefined);
    }
  });

  test('a pipelined request whose connection goes is over too', async () => {
    let begun = 0;
    handler = async () => {
      begun++;
      return new Promise<Reply>(() => {});
    };
    const wire = await open(request() + request());
    await until(() => begun === 2, 'both');
    wire.close();
    await until(async () => (await edge.metric('headgate_http_requests_in_flight')) === 0, 'both to be over');
  });
});

describe('R34: notifications before the answer', () => {
  const note = bytes('{"jsonrpc":"2.0",\n"method":"notifications/progress"}');
  const replies: readonly [name: string, reply: () => Reply, last: string][] = [
    [
      'an answer',
      () => answer('\n"ok":\r\n"é"'),
      '{"jsonrpc":"2.0","id":7,"result":{\ndata: "ok":\ndata: "é"}}',
    ],
    [
      'a refusal',
      () => ({ kind: 'refused', refusal: refusal(-32602, 'no'), id: '7' }),
      '{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}',
    ],
    [
      'a relayed JSON body',
      () =>
        relay(
          'json',
          (async function* () {
            yield bytes('{"a":');
            yield bytes('\n1}');
          })(),
        ),
      '{"a":\ndata: 1}',
    ],
    [
      'a relayed stream',
      () =>
        relay(
          'sse',
          (async function* () {
            yield bytes('event: message\ndata: {"a":1}\n\n');
          })(),
        ),
      '{"a":1}',
    ],
  ];
  for (const [name, reply, last] of replies) {
    test(`${name} becomes the last event`, async () => {
      handler = async (_inbound, exchange) => {
        exchange.notify(note);
        exchange.notify(note);
        return reply();
      };
      const wire = await open(request('server/discover', {}, { Connection: 'close' }));
      const text = Buffer.from(await wire.end(), 'latin1').toString();
      const [headers = '', ...rest] = text.split('\r\n\r\n');
      assert.match(headers, /^HTTP\/1.1 200 OK\r\n[\s\S]*text\/event-stream/);
      const body = rest
        .join('\r\n\r\n')
        .replaceAll(/(^|\r\n)[0-9a-f]+\r\n/g, '')
        .replaceAll('\r\n', '');
      const event = 'event: message\ndata: {"jsonrpc":"2.0",\ndata: "method":"notifications/progress"}\n\n';
      assert.equal(body, `${event}${event}event: message\ndata: ${last}\n\n`);
    });
  }

  test('R30: a client that does not read them costs bounded memory', async () => {
    const large = Buffer.alloc(64 << 10, ' ');
    const told = gate<number>();
    handler = async (_inbound, exchange) => {
      const before = process.memoryUsage().arrayBuffers;
      for (let i = 0; i < 2_000; i++) exchange.notify(Buffer.from(large));
      told.open(process.memoryUsage().arrayBuffers - before);
      return answer();
    };
    const wire = await open();
    wire.socket.pause();
    await told.opened;
    wire.socket.resume();
    await wire.sees('"ok":true');
    assert.ok(wire.text.length < 16 << 20, `${wire.text.length} bytes of 128 MB were kept`);
  });
});

describe('subscriptions/listen', () => {
  const reply = listenReply();

  test('R39: opens at once, is counted, and is over when the client leaves', async () => {
    handler = async () => reply;
    const wire = await open();
    const text = await wire.sees('data: {"opening":1}\n\n');
    assert.match(text, /text\/event-stream[\s\S]*X-Accel-Buffering: no/);
    assert.doesNotMatch(text, /^id:/m);
    assert.equal(await openStreams('listen'), 1);
    wire.close();
    await until(async () => (await openStreams('listen')) === 0, 'the gauge');
  });

  test('R39, R41: tells behind the opening, waits for a client that does not read, and stops with it', async () => {
    let outlet: Outlet | undefined;
    const told: string[] = [];
    const feed: Feed = {
      start: (begun) => {
        outlet = begun;
        outlet.write('{"n":0,\n"lines":2}');
      },
      drained: () => void told.push('drained'),
      stop: () => void told.push('stop'),
    };
    handler = async () => listenReply(feed);
    const wire = await open();
    await wire.sees('event: message\ndata: {"n":0,\ndata: "lines":2}\n\n');
    assert.ok(wire.text.indexOf('{"opening":1}') < wire.text.indexOf('{"n":0'));
    wire.socket.pause();
    const large = JSON.stringify({ text: 'x'.repeat(1 << 20) });
    await until(() => outlet?.write(large) === false, 'a client that is behind');
    assert.equal(told.length, 0);
    wire.socket.resume();
    await until(() => told.includes('drained'), 'word of it');
    wire.close();
    await until(() => told.includes('stop'), 'the end');
  });

  test('one whose client has left before it opens is stopped', async () => {
    const left = new Promise<void>((resolve) => {
      handler = async (_inbound, exchange) => {
        setImmediate(() => wire.then((open) => open.close()));
        await new Promise<void>((gone) => exchange.signal.addEventListener('abort', () => gone()));
        return listenReply({ stop: resolve });
      };
    });
    const wire = open();
    await left;
  });

  test('a quiet one says every 15 s that it lives', async () => {
    handler = async () => reply;
    const wire = await open();
    await wire.sees('opening');
    assert.ok(!wire.text.includes('\n: keep-alive\n\n'));
    skippedMs += 15_000;
    await wire.sees('\n: keep-alive\n\n');
  });
});
