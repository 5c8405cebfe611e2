/** The fast lane on real sockets: it answers as Node's own server does, and stands aside where it must. */
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { laneOn, openLane } from '../../src/edge/lane.ts';
import { refusal } from '../../src/protocol/errors.ts';
import type { Exchange, Feed, Inbound, Outlet, Reply } from '../../src/protocol/exchange.ts';
import { Random } from '../fuzz/random.ts';
import { answer, head, listenReply, openEdge, request, type TestEdge, Wire } from '../support/edge-kit.ts';
import { until } from '../support/mcp.ts';

type Handler = (inbound: Inbound, exchange: Exchange) => Reply | Promise<Reply>;

let edge: TestEdge;
let handler: Handler = () => answer();
/** Requests that Node's parser has made: those of the lane it never sees. */
let parsedCount = 0;
const wires: Wire[] = [];
const count = (): void => {
  parsedCount++;
};

before(async () => {
  subscribe('http.server.request.start', count);
  edge = await openEdge(async (inbound, exchange) => handler(inbound, exchange), {
    listen: 'origins: ["https://app.example"], limits: { body: 8KiB, headers: 4KiB }',
  });
});
afterEach(() => {
  for (const wire of wires.splice(0)) wire.close();
});
after(async () => {
  unsubscribe('http.server.request.start', count);
  await edge.close();
});

async function open(sent = ''): Promise<Wire> {
  const wire = await Wire.open(edge.port, sent);
  wires.push(wire);
  return wire;
}

/** A connection whose next request of this shape takes the lane. Sets the handler. */
async function warm(like = request()): Promise<Wire> {
  handler = () => answer();
  const wire = await open(like);
  await wholeAnswer(wire);
  parsedCount = 0;
  return wire;
}

const INTERIM = 'HTTP/1.1 100 Continue\r\n\r\n';

/** Waits for an answer behind `from` chars. @returns its bytes, a char a byte; no interim ones */
async function wholeAnswer(wire: Wire, from = 0): Promise<string> {
  let end = 0;
  await until(
    () => {
      const text = wire.text.slice(from);
      const bodyAt = text.indexOf('\r\n\r\n') + 4;
      if (bodyAt < 4) return wire.closed;
      const length = /^content-length: (\d+)\r$/im.exec(text.slice(0, bodyAt))?.[1];
      const last = text.indexOf('\r\n0\r\n\r\n', bodyAt - 2);
      end = length === undefined ? (last < 0 ? 0 : last + 7) : bodyAt + Number(length);
      return wire.closed || (end > 0 && text.length >= end);
    },
    `an answer in ${JSON.stringify(wire.text.slice(from))}`,
  );
  return wire.text.slice(from).replaceAll(INTERIM, '');
}

/** A promise that somebody else settles. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

const undated = (text: string): string => text.replace(/^Date: .*\r$/gm, 'Date: D\r');

async function* pieces(texts: readonly string[], pauses: boolean): AsyncGenerator<Uint8Array> {
  for (const text of texts) {
    if (pauses) await sleep(1);
    yield Buffer.from(text);
  }
}

/** Every form of a reply, with contents by chance. */
function replyBy(random: Random): Handler {
  const text = random.text(random.pick([5, 60, 3_000]), ['a', 'é', '€', '\u{1f600}', '"', '\n', ' ']);
  const headers = random.pick([{}, { 'Cache-Status': 'headgate; hit; ttl=3', Age: '1' }]);
  const big = 'x'.repeat(random.pick([0, 100, 17_000, 300_000]));
  const status = random.pick([200, 200, 404, 500]);
  switch (random.below(9)) {
    case 0:
      return () => ({ kind: 'accepted' });
    case 1: {
      const reason = refusal(-32603, text, {
        status: random.pick([400, 502, 503]),
        ...(random.once(2) && { proxyError: 'connection_timeout' }),
        headers: random.pick([{}, { 'Retry-After': '1' }]),
      });
      return () => ({ kind: 'refused', refusal: reason, id: random.pick([undefined, '7', '"é"']) });
    }
    case 2:
      return async () => {
        if (random.once(2)) await sleep(1);
        throw new Error('a bug');
      };
    case 3:
    case 4: {
      const bytes = Buffer.from(text + big);
      const isFlowing = random.once(2);
      const parts = random.many(3, (i) =>
        bytes.subarray((i * bytes.length) / 3, ((i + 1) * bytes.length) / 3),
      );
      const body = (async function* () {
        for (const part of parts) {
          if (isFlowing) await sleep(1);
          yield part;
        }
      })();
      const length = random.once(2) ? { lengthBytes: bytes.length } : {};
      return () => ({ kind: 'relay', status, media: 'json', body, headers, ...length });
    }
    case 5: {
      const body = pieces([`data: ${big}\n\n`, ': hi\n\n', ''], random.once(2));
      return () => ({ kind: 'relay', status: 200, media: 'sse', body, headers });
    }
    case 6: {
      const feed = { start: (outlet: { end(): void }) => outlet.end() };
      return () => listenReply(feed as never);
    }
    case 7:
      return async (_, exchange) => {
        exchange.notify(Buffer.from(`{"n":"${text}"}`));
        await sleep(1);
        return { kind: 'answer', status: 200, head: '{"a":', tail: [Buffer.from(`"${big}"}`)], headers: {} };
      };
    default: {
      const wait = random.once(2);
      const tail = [Buffer.from(text), Buffer.from(big)];
      return async () => {
        if (wait) await sleep(1);
        return { kind: 'answer', status, head: `{"${text}":`, tail, headers };
      };
    }
  }
}

/** A request of one shape; what its headers and its body say is by chance. */
function requestBy(random: Random): string {
  const body = random.pick([
    '{"jsonrpc":"2.0","id":7,"method":"tools/call"}',
    `{"id":"é","x":"${'y'.repeat(random.below(500))}"}`,
    'no json',
    '',
    'z'.repeat(9_000),
  ]);
  return (
    head({
      Host: random.pick(['localhost', 'localhost', 'localhost', 'evil.example']),
      'Content-Type': random.pick(['application/json', 'application/json', 'text/plain']),
      Origin: random.pick(['https://app.example', 'https://app.example', 'https://evil.example']),
      'Mcp-Method': random.pick(['tools/call', 'server/discover', 'x']),
      'X-Padding': 'p'.repeat(random.pick([1, 1, 1, 3_000])),
      'Content-Length': Buffer.byteLength(body),
    }) + body
  );
}

const SEED = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 1e9));

test('its answers are those of Node’s own server, byte for byte, whatever is asked and replied', async (t) => {
  let taken = 0;
  const statuses = new Set<string>();
  for (let index = 0; index < 300; index++) {
    const seed = (SEED + index) >>> 0;
    const sent = requestBy(new Random(seed));
    const like = requestBy(new Random(0));
    const told: string[] = [];
    for (const lane of ['parser', 'lane'] as const) {
      const wire = await (lane === 'lane' ? warm(like) : open());
      const from = wire.text.length;
      const known = edge.access.length;
      parsedCount = 0;
      handler = replyBy(new Random(seed + 1));
      wire.send(sent);
      const text = await wholeAnswer(wire, from);
      if (lane === 'parser') assert.equal(parsedCount, 1);
      else if (parsedCount === 0) taken++;
      await until(() => edge.access.length > known, 'the access line');
      const { time, durationMs, overheadMs, ...line } = edge.access.at(-1) as Record<string, unknown>;
      statuses.add(String(line.status));
      told.push(undated(text), JSON.stringify(line));
      await until(() => wire.closed || !/^connection: close\r$/im.test(text), 'the end of the connection');
      wire.close();
    }
    const [plain, plainLine, fast, fastLine] = told;
    assert.equal(fast, plain, `seed ${seed}`);
    assert.equal(fastLine, plainLine, `seed ${seed}`);
  }
  t.diagnostic(`seed ${SEED}: ${taken} of 300 took the lane; status ${[...statuses].sort().join(', ')}`);
  assert.ok(taken > 150 && taken < 300, `${taken} took the lane`);
});

describe('requests behind one that the lane has', () => {
  test('wait for it, and are answered in their order', async () => {
    const first = gate();
    const order: string[] = [];
    const wire = await warm();
    const from = wire.text.length;
    handler = async ({ body }) => {
      const { id } = JSON.parse(Buffer.from(body.kind === 'whole' ? body.bytes : []).toString()) as {
        id: number;
      };
      order.push(`begin ${id}`);
      if (id === 1) await first.opened;
      order.push(`end ${id}`);
      return answer('"ok":true', String(id));
    };
    const numbered = (id: number): string => request().replace('"id":7', `"id":${id}`);
    wire.send(numbered(1));
    await until(() => order.length > 0, 'the first');
    wire.send(numbered(2));
    wire.send(numbered(3) + numbered(4));
    await sleep(20);
    assert.deepEqual(order, ['begin 1']);
    first.open();
    await wire.sees('"id":4,');
    const ids = [...wire.text.slice(from).matchAll(/"id":(\d),/g)].map(([, id]) => id);
    assert.deepEqual(ids, ['1', '2', '3', '4']);
    assert.equal(order[1], 'end 1');
  });

  test('are all answered to a client that sends no more', async () => {
    const first = gate();
    let begun = 0;
    const wire = await warm();
    const from = wire.text.length;
    handler = async () => {
      if (begun++ === 0) await first.opened;
      return answer();
    };
    wire.send(request());
    await until(() => begun === 1, 'the first');
    wire.send(request());
    wire.socket.end();
    await sleep(30);
    first.open();
    const text = await wire.end();
    assert.equal([...text.slice(from).matchAll(/"ok":true/g)].length, 2);
  });

  test('are held to a bound: who sends on and on has to wait', async () => {
    const first = gate();
    let begun = 0;
    const wire = await warm();
    handler = async () => {
      if (begun++ === 0) await first.opened;
      return answer();
    };
    const one = request('server/discover', { pad: 'x'.repeat(7_000) });
    const all = 4_000;
    wire.send(request());
    await until(() => begun === 1, 'the first');
    const from = wire.text.length;
    for (let i = 0; i < all; i++) wire.send(one);
    await sleep(300);
    // What the kernel holds is no memory of the gateway's.
    assert.ok(wire.socket.writableLength > 10 * 1024 * 1024, `${wire.socket.writableLength} unsent`);
    assert.equal(begun, 1);
    first.open();
    await until(() => wire.text.length - from > 0 && begun === all + 1, 'the rest', 20_000);
    await until(
      () => [...wire.text.slice(from).matchAll(/"ok":true/g)].length === all + 1,
      'every answer',
      20_000,
    );
  });
});

describe('a client that sends more behind a request than is read', () => {
  /** A request that goes on and on. */
  const flood = (): string => head({ 'Content-Length': 900_000 }) + 'x'.repeat(400_000);

  test('and leaves ends its work', async () => {
    const wire = await warm();
    let isEnded = false;
    handler = (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          isEnded = true;
          reject(signal.reason as Error);
        });
      });
    wire.send(request());
    await sleep(20);
    wire.send(flood());
    await sleep(50);
    wire.close();
    await until(() => isEnded, 'the abort', 4_000);
  });

  test('gets all of its answer when that is the last one', async () => {
    const own = await openEdge(async (inbound, exchange) => handler(inbound, exchange));
    handler = () => answer();
    const wire = await Wire.open(own.port, request());
    wires.push(wire);
    await wholeAnswer(wire);
    const from = wire.text.length;
    const ready = gate();
    const tail = [Buffer.alloc(1_500_000, 'a')];
    handler = async () => {
      await ready.opened;
      return { kind: 'answer', status: 200, head: '{', tail, headers: {} };
    };
    wire.send(request());
    await sleep(20);
    wire.send(flood());
    await sleep(50);
    const drained = own.edge.drain();
    wire.socket.pause();
    ready.open();
    await sleep(300);
    wire.socket.resume();
    const text = await wholeAnswer(wire, from);
    assert.match(text.slice(0, 200), /^HTTP\/1\.1 200 OK\r\n.*\r\nConnection: close\r\n/s);
    assert.equal(text.length - text.indexOf('\r\n\r\n') - 4, 1_500_001);
    wire.close();
    assert.deepEqual(await drained, { cutOff: 0 });
    assert.equal(own.access.at(-1)?.error, undefined);
  });
});

describe('what is not plain goes to the parser', () => {
  const cases: readonly [name: string, sent: readonly string[], answers: number][] = [
    ['two requests in one piece', [request() + request()], 2],
    ['a head in two pieces', [request().slice(0, 40), request().slice(40)], 1],
    ['a body in two pieces', [request().slice(0, -5), request().slice(-5)], 1],
    ['another header', [request('server/discover', {}, { 'X-Other': '1' })], 1],
    ['another case of a name', [request().replace('Host:', 'HOST:')], 1],
    ['no space behind a colon', [request().replace('Host: ', 'Host:')], 1],
    ['white space behind a value', [request().replace('Host: localhost', 'Host: localhost\t')], 1],
    ['an empty line before the request', [`\r\n${request()}`], 1],
  ];
  for (const [name, sent, answers] of cases) {
    test(name, async () => {
      handler = () => answer();
      const wire = await warm();
      const from = wire.text.length;
      for (const piece of sent) {
        wire.send(piece);
        await sleep(10);
      }
      await until(() => [...wire.text.slice(from).matchAll(/"ok":true/g)].length === answers, 'the answers');
      assert.equal(parsedCount, answers);
      // And the connection goes on, whichever way.
      const before = wire.text.length;
      wire.send(request());
      await wholeAnswer(wire, before);
    });
  }

  test('garbage is refused as ever', async () => {
    const wire = await warm();
    wire.send('GARBAGE\r\n\r\n');
    assert.match(await wire.end(), /HTTP\/1\.1 400 Bad Request/);
  });

  test('a CONNECT is refused, and nothing is read behind it', async () => {
    let begun = 0;
    const wire = await warm();
    handler = () => {
      begun++;
      return answer();
    };
    wire.send('CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await wire.sees('405 Method Not Allowed');
    // Node gives the parser that is free now to who comes next.
    const next = await open();
    wire.send(request());
    await wire.end();
    assert.equal(begun, 0);
    assert.equal(next.text, '');
  });

  test('a request whose head says another length than its parts were plain about is read once', async () => {
    let begun = 0;
    handler = () => {
      begun++;
      return answer();
    };
    // The second head stands within the body of the first: no part of it may be taken for a request.
    const inner = request();
    const outer = `${head({ 'Content-Length': inner.length + 3, 'Mcp-Method': 'server/discover' })}abc`;
    const wire = await open(outer);
    await sleep(10);
    wire.send(inner);
    await wholeAnswer(wire);
    await sleep(20);
    assert.equal(begun, 1);
  });
});

describe('a reply that does not keep to its form', () => {
  for (const way of ['parser', 'lane'] as const) {
    const ready = (): Promise<Wire> => (way === 'lane' ? warm() : open());

    test(`by the ${way}: a header that is none is a bug of the gateway, and told as one`, async () => {
      const wire = await ready();
      const from = wire.text.length;
      const headers = { 'X-A': 'a\nX-B: b' };
      handler = () => ({ kind: 'answer', status: 200, head: '{}', tail: [], headers });
      wire.send(request());
      const text = await wholeAnswer(wire, from);
      assert.match(text, /^HTTP\/1\.1 500 .*-32603/s);
      assert.doesNotMatch(text, /X-B/);
    });

    test(`by the ${way}: what is told behind the last event is not written`, async () => {
      const wire = await ready();
      const from = wire.text.length;
      let told: Exchange | undefined;
      handler = async (_, exchange) => {
        told = exchange;
        exchange.notify(Buffer.from(`{"n":"${'a'.repeat(8 * 1024 * 1024)}"}`), 'must');
        await sleep(1);
        return { kind: 'refused', refusal: refusal(-32603, 'x', { status: 500 }), id: '7' };
      };
      wire.socket.pause();
      wire.send(request());
      await sleep(200);
      // Ended, and not all of it written.
      told?.notify(Buffer.from('{"late":1}'), 'must');
      wire.socket.resume();
      const text = await wholeAnswer(wire, from);
      await sleep(50);
      assert.equal(wire.text.slice(from), text);
      assert.doesNotMatch(text, /late/);
    });

    test(`by the ${way}: who tells is not asked for more behind the end`, async () => {
      const wire = await ready();
      const from = wire.text.length;
      let outlet: Outlet | undefined;
      let isEnded = false;
      let askedCount = 0;
      const feed: Partial<Feed> = {
        start: (to) => {
          outlet = to;
        },
        drained: () => {
          if (isEnded) askedCount++;
        },
      };
      handler = () => listenReply(feed);
      wire.socket.pause();
      wire.send(request());
      await until(() => outlet !== undefined, 'the listen');
      outlet?.write(`"${'x'.repeat(8 * 1024 * 1024)}"`);
      await sleep(30);
      outlet?.end();
      isEnded = true;
      wire.socket.resume();
      await wholeAnswer(wire, from);
      await sleep(50);
      assert.equal(askedCount, 0);
    });

    test(`by the ${way}: an answer that the connection does not take is none`, async () => {
      const wire = await ready();
      let begun = 0;
      handler = () => {
        begun++;
        // Both ends are in this process: the server has not heard of it when it writes.
        wire.socket.resetAndDestroy();
        return answer();
      };
      const known = edge.access.length;
      wire.send(request());
      await until(() => edge.access.length > known, 'the access line');
      assert.equal(edge.access.at(-1)?.error, 'client_gone');
      assert.equal(begun, 1);
    });

    test(`by the ${way}: to a client that sends no more, the same head`, async () => {
      const wire = await ready();
      const from = wire.text.length;
      handler = async () => {
        await sleep(30);
        return answer();
      };
      wire.send(request());
      wire.socket.end();
      const text = (await wire.end()).slice(from).replaceAll(INTERIM, '');
      assert.match(text, /^HTTP\/1\.1 200 OK\r\n.*\r\nConnection: keep-alive\r\n.*"ok":true/s);
    });
  }
});

describe('a client on the lane', () => {
  test('takes the lane from its second request on', async () => {
    handler = () => answer();
    const wire = await warm();
    for (let i = 0; i < 5; i++) {
      const from = wire.text.length;
      wire.send(request());
      await wholeAnswer(wire, from);
    }
    assert.equal(parsedCount, 0);
  });

  test('that leaves ends its work', async () => {
    const wire = await warm();
    const known = edge.access.length;
    let reason: unknown;
    handler = (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          reason = signal.reason;
          reject(reason as Error);
        });
      });
    wire.send(request());
    await sleep(20);
    wire.close();
    await until(() => reason !== undefined, 'the abort');
    await until(() => edge.access.length > known, 'the access line');
    assert.equal(edge.access.at(-1)?.status, 499);
  });

  test('that only sends no more gets its answer, and then the end', async () => {
    const wire = await warm();
    const from = wire.text.length;
    handler = async () => {
      await sleep(100);
      return answer();
    };
    wire.send(request());
    wire.socket.end();
    assert.match((await wire.end()).slice(from), /"ok":true/);
  });

  test('that reads slowly gets all of a large answer', async () => {
    const wire = await warm();
    const from = wire.text.length;
    const tail = [Buffer.alloc(6 * 1024 * 1024, 'a')];
    handler = () => ({ kind: 'answer', status: 200, head: '{', tail, headers: {} });
    wire.socket.pause();
    wire.send(request());
    await sleep(100);
    wire.socket.resume();
    await wholeAnswer(wire, from);
    const text = wire.text.slice(from);
    assert.equal(text.length - text.indexOf('{') - 1, 6 * 1024 * 1024);
    // And is free for the next.
    handler = () => answer();
    const next = wire.text.length;
    wire.send(request());
    assert.match(await wholeAnswer(wire, next), /"ok":true/);
  });
});

test('a drain finishes what the lane has, says so, and closes what is idle', async () => {
  let takesMs = 0;
  const own = await openEdge(async () => {
    await sleep(takesMs);
    return answer();
  });
  const connect = async (): Promise<Wire> => {
    const wire = await Wire.open(own.port, request());
    wires.push(wire);
    await wholeAnswer(wire);
    return wire;
  };
  const [busy, busier, idle] = await Promise.all([connect(), connect(), connect()]);
  const from = busy.text.length;
  parsedCount = 0;
  for (const [wire, ms] of [
    [busy, 300],
    [busier, 1_000],
  ] as const) {
    takesMs = ms;
    wire.send(request());
    await sleep(50);
  }
  const drained = own.edge.drain();
  await idle.end();
  const text = (await busy.end()).slice(from);
  // Not at the end of the drain, when all is cut.
  assert.equal(busier.text.length, from);
  assert.equal(parsedCount, 0);
  busier.socket.end();
  assert.match(text, /^HTTP\/1\.1 200 OK\r\n.*Connection: close\r\n.*"ok":true/s);
  assert.match((await busier.end()).slice(from), /"ok":true/);
  assert.deepEqual(await drained, { cutOff: 0 });
});

test('a connection that is quiet under an answer is not idle; behind it, it is', async () => {
  const server = createServer({ keepAliveTimeout: 100 }, (_, response) => response.end('parsed'));
  server.on('connection', (socket: Socket) =>
    openLane(socket, {
      endpoint: async (request, response) => {
        request.handTo({ data: () => {}, ended: () => {} });
        await sleep(2_000);
        response.writeHead(200, ['Content-Length', '4']);
        response.end('lane');
      },
      headBytes: 1_000,
      bodyBytes: () => 1_000,
      keepAliveLines: '',
      onStalled: () => {},
    }),
  );
  server.on('request', (request, response) => laneOn(request.socket)?.parsed(request as never, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const wire = await Wire.open((server.address() as AddressInfo).port, request());
  wires.push(wire);
  await wire.sees('parsed');
  wire.send(request());
  // Node closes what is idle for 1.1 s here.
  await wire.sees('lane');
  await wire.end();
  server.close();
});
