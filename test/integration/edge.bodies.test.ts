/** The body of a request, on real sockets: collected, flowing, too large, too slow, broken off. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, afterEach, before, describe, test } from 'node:test';
import { SCAN_BYTES } from '../../src/protocol/classify.ts';
import { refusal } from '../../src/protocol/errors.ts';
import type { Exchange, Inbound, Reply } from '../../src/protocol/exchange.ts';
import type { Signal } from '../../src/protocol/signal.ts';
import { answer, head, openEdge, type TestEdge, Wire } from '../support/edge-kit.ts';
import { mirrored, rpc, until } from '../support/mcp.ts';

type Handler = (inbound: Inbound, exchange: Exchange) => Promise<Reply>;

let edge: TestEdge;
let handler: Handler;
let wires: Wire[] = [];

before(async () => {
  edge = await openEdge((inbound, exchange) => handler(inbound, exchange), {
    listen: 'limits: { body: 256KiB, streamedBody: 8MiB, requestTimeout: 400ms, bodyIdle: 200ms }',
  });
});
afterEach(() => {
  for (const wire of wires) wire.close();
  wires = [];
});
after(() => edge.close());

async function open(sent: string): Promise<Wire> {
  const wire = await Wire.open(edge.port, sent);
  wires.push(wire);
  return wire;
}

/** The head of a call whose body flows. */
const callHead = (length: number | 'chunked'): string =>
  head({
    ...mirrored('tools/call', 'echo'),
    ...(length === 'chunked' ? { 'Transfer-Encoding': 'chunked' } : { 'Content-Length': length }),
  });

const chunk = (data: string): string => `${Buffer.byteLength(data).toString(16)}\r\n${data}\r\n`;

async function* parts(inbound: Inbound): AsyncGenerator<Uint8Array> {
  yield inbound.body.bytes;
  if (inbound.body.kind === 'begun') yield* inbound.body.rest;
}

async function digest(inbound: Inbound): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of parts(inbound)) hash.update(part);
  return hash.digest('hex');
}

describe('R30: a streamed call', () => {
  test('is whole up to the bound, and begun with the rest beyond it', async () => {
    const kinds: unknown[] = [];
    handler = async (inbound) => {
      kinds.push(
        inbound.body.kind,
        inbound.body.bytes.length >= Math.min(SCAN_BYTES, 10),
        await digest(inbound),
      );
      return answer();
    };
    for (const length of [10, SCAN_BYTES, SCAN_BYTES + 1, 3 << 20]) {
      const body = Buffer.alloc(length, 'abcdefghijk');
      const wire = await open(callHead(length));
      wire.send(body);
      assert.match(await wire.sees('"ok":true'), /^HTTP\/1.1 200/);
      assert.equal(kinds.pop(), createHash('sha256').update(body).digest('hex'));
      assert.deepEqual(kinds.splice(0), [length > SCAN_BYTES ? 'begun' : 'whole', true]);
      wire.close();
    }
  });

  test('of any chunks comes through in order', async () => {
    handler = async (inbound) => answer(`"sha":"${await digest(inbound)}"`);
    const hash = createHash('sha256');
    let sent = callHead('chunked');
    for (let i = 0; i < 9_000; i++) {
      const data = String(i).repeat(1 + (i % 7));
      hash.update(data);
      sent += chunk(data);
    }
    const wire = await open(`${sent}0\r\n\r\n`);
    await wire.sees(hash.digest('hex'));
  });

  test('that nobody reads holds the client back', async () => {
    let go: (() => void) | undefined;
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    handler = async (inbound) => {
      await gate;
      await digest(inbound);
      return answer();
    };
    const bytes = 8 << 20;
    const wire = await open(callHead(bytes));
    wire.send(Buffer.alloc(bytes));
    // Sockets of both sides hold some; the rest is with the client for as long as nobody reads.
    let stuck = 0;
    let last = -1;
    await until(() => {
      const left = wire.socket.writableLength;
      stuck = left === last ? stuck + 1 : 0;
      last = left;
      return stuck > 20;
    }, 'the client to be held back');
    assert.ok(wire.socket.writableLength > 0 || wire.socket.bytesWritten < bytes, 'everything was taken');
    go?.();
    await wire.sees('"ok":true');
  });

  test('may take longer than a read body, as long as its bytes flow', async () => {
    handler = async (inbound) => answer(`"sha":"${await digest(inbound)}"`);
    const wire = await open(callHead('chunked') + chunk('x'.repeat(SCAN_BYTES + 1)));
    const startedAt = performance.now();
    await until(() => {
      wire.send(chunk('y'));
      return performance.now() - startedAt > 900;
    }, 'more time than requestTimeout');
    wire.send('0\r\n\r\n');
    await wire.sees('"sha"');
  });
});

describe('R7: too large', () => {
  test('a declared length over the limit of streamed bodies is 413 at once', async () => {
    handler = async () => answer();
    const wire = await open(callHead((8 << 20) + 1));
    assert.match(await wire.sees('too large'), /^HTTP\/1.1 413/);
  });

  test('a stream that grows over the limit is 413, whatever the request path made of it', async () => {
    let broken: unknown;
    handler = async (inbound) => {
      await digest(inbound).catch((error: unknown) => {
        broken = error;
      });
      return { kind: 'refused', id: '7', refusal: refusal(-32603, 'upstream broke', { status: 502 }) };
    };
    const wire = await open(`${callHead('chunked')}${chunk('{"id":7,"x":"')}`);
    const piece = chunk('y'.repeat(256 << 10));
    for (let i = 0; i < 33; i++) wire.send(piece);
    const text = await wire.sees('too large');
    assert.match(text, /^HTTP\/1.1 413 /);
    assert.match(text, /"id":7/);
    assert.equal((broken as Error).name, 'BodyError');
    await wire.end();
  });
});

describe('R38: too slow', () => {
  const slow: readonly [name: string, sent: string, id: string][] = [
    [
      'a read body that stops',
      `${head({ ...mirrored('server/discover'), 'Content-Length': 100 })}{"id":7,`,
      '"id":7,',
    ],
    ['a body that never begins', head({ ...mirrored('server/discover'), 'Content-Length': 100 }), ''],
    ['a streamed body that stops while it is collected', `${callHead(100)}{"id":7,`, '"id":7,'],
  ];
  for (const [name, sent, id] of slow) {
    test(`${name} is 408, with the id that came, and the connection closes`, async () => {
      handler = async () => answer();
      const wire = await open(sent);
      const text = await wire.sees('in time');
      assert.match(text, /^HTTP\/1.1 408 [\s\S]*connection: close/i);
      assert.ok(text.includes(`{"jsonrpc":"2.0",${id}"error"`), text);
      await wire.end();
    });
  }

  test('a streamed body that stops while it flows is 408', async () => {
    handler = async (inbound) => {
      await digest(inbound);
      return answer();
    };
    const wire = await open(callHead(1 << 20) + 'x'.repeat(SCAN_BYTES + 1));
    assert.match(await wire.sees('in time'), /^HTTP\/1.1 408/);
  });

  test('a read body that trickles has its time and no more', async () => {
    handler = async () => answer();
    const wire = await open(head({ ...mirrored('server/discover'), 'Content-Length': 10_000 }));
    const startedAt = performance.now();
    await until(() => {
      if (!wire.closed) wire.send(' ');
      return wire.text.includes('in time');
    }, 'the end of its patience');
    assert.ok(performance.now() - startedAt >= 400);
  });

  test('a head that trickles is 408 in our shape; a connection that says nothing is closed without a word', async () => {
    const [half, silent] = [await open('POST /mcp HTTP/1.1\r\nHost:'), await open('')];
    assert.match(await half.sees('"jsonrpc"'), /^HTTP\/1.1 408 /);
    assert.equal(await silent.end(), '');
  });
});

describe('R8: a refusal in the middle of a body', () => {
  const large = (id: string): string => `{"params":{"x":"${'y'.repeat(2 * SCAN_BYTES)}"}${id}}`;
  const problem = refusal(-32602, 'No such tool');

  test('finds the id behind everything else', async () => {
    handler = async () => ({ kind: 'refused', refusal: problem, id: undefined });
    const body = large(',"id":"a-7"');
    const wire = await open(callHead(body.length) + body);
    await wire.sees('{"jsonrpc":"2.0","id":"a-7","error":{"code":-32602');
  });

  test('finds it also when somebody had begun to read', async () => {
    handler = async (inbound) => {
      const rest = inbound.body.kind === 'begun' ? inbound.body.rest[Symbol.asyncIterator]() : undefined;
      await rest?.next();
      const pending = rest?.next();
      void pending;
      return { kind: 'refused', refusal: problem, id: undefined };
    };
    const body = large(',"id":8');
    const wire = await open(callHead(body.length) + body.slice(0, -60_000));
    wire.send(body.slice(-60_000));
    await wire.sees('{"jsonrpc":"2.0","id":8,"error"');
  });

  test('looks no further than the limit on read bodies', async () => {
    handler = async () => ({ kind: 'refused', refusal: problem, id: undefined });
    const wire = await open(`${callHead(4 << 20)}{"params":"`);
    wire.send('y'.repeat(300 << 10));
    assert.ok((await wire.sees('"error"')).includes('{"jsonrpc":"2.0","error"'));
  });
});

describe('R35: a client that leaves', () => {
  test('while it uploads: the signal fires, and the rest breaks', async () => {
    let signal: Signal | undefined;
    let broken: unknown;
    handler = async (inbound, exchange) => {
      signal = exchange.signal;
      broken = await digest(inbound).catch((error: unknown) => error);
      return answer();
    };
    const wire = await open(callHead(1 << 20) + 'x'.repeat(2 * SCAN_BYTES));
    await until(() => signal !== undefined, 'the request path');
    wire.close();
    await until(() => broken !== undefined, 'the rest to break');
    assert.equal(signal?.aborted, true);
    assert.equal((signal.reason as { code: string }).code, 'client_gone');
    assert.equal((broken as Error).name, 'BodyError');
  });

  test('before its body is whole: nothing reaches the request path, and it is logged', async () => {
    handler = () => Promise.reject(new Error('reached'));
    const inFlight = () => edge.metric('headgate_http_requests_in_flight');
    await until(async () => (await inFlight()) === 0, 'the others to be over');
    const before = edge.access.length;
    const wire = await open(`${head({ 'Content-Length': 50 })}{`);
    await until(async () => (await inFlight()) > 0, 'the request');
    wire.close();
    await until(() => edge.access.length > before, 'its line');
    const line = edge.access.at(-1);
    assert.deepEqual([line?.status, line?.error], [499, 'client_gone']);
  });
});

test('a client that sends on after its answer still sees it whole, and is let go after a while', async () => {
  handler = async () => answer();
  const wire = await open(callHead(4 << 20) + 'x'.repeat(2 * SCAN_BYTES));
  assert.match(await wire.sees('"ok":true'), /^HTTP\/1.1 200 [\s\S]*connection: close/i);
  assert.equal(wire.closed, false);
  wire.send('y'.repeat(100_000));
  await wire.end();
  const rpcBody = JSON.stringify(rpc('tools/call', { name: 'echo' }));
  const next = await open(callHead(rpcBody.length) + rpcBody);
  await next.sees('"ok":true');
});
