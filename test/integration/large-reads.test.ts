/** R25, R30, R35: reads larger than an entry flow through the whole gateway: the same bytes, flat, never looking whole when they are not. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { after, before, beforeEach, describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { type Running, startGateway } from '../../src/gateway.ts';
import { configOf } from '../support/config.ts';
import { event, PROGRESS } from '../support/fault-server.ts';
import { call, mirrored, rpc, until } from '../support/mcp.ts';

const MIB = 1 << 20;
const MAX_ENTRY = 8 * MIB;
/** The entry bound, its envelope, and one chunk. */
const BLOCK = Buffer.alloc(64 * 1024, 'A');
const HINTS = '"ttlMs":60000,"cacheScope":"public","resultType":"complete"';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function weigh(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

type Form = 'length' | 'chunked' | 'event' | 'lines' | 'gzip';
interface Asked {
  readonly uri: string;
  readonly id: string;
  readonly response: ServerResponse;
  gone: boolean;
}

/** One answer of `size` bytes of blob, as its pieces. The hints stand behind the contents, where servers write them. */
function* pieces(id: string, uri: string, size: number, hints = HINTS): Generator<Buffer> {
  yield Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{"contents":[{"uri":"${uri}","blob":"`);
  for (let left = size; left > 0; left -= BLOCK.length) yield BLOCK.subarray(0, Math.min(left, BLOCK.length));
  yield Buffer.from(`"}],"x":1e400,${hints}}}`);
}

/** Writes at the pace of whoever reads. */
async function write(response: ServerResponse, parts: Iterable<Buffer>): Promise<void> {
  let wake: () => void = () => undefined;
  const woken = (): void => wake();
  response.on('drain', woken);
  response.on('close', woken);
  for (const part of parts) {
    if (response.destroyed) return;
    if (response.write(part)) continue;
    await new Promise<void>((resolve) => {
      wake = resolve;
      if (response.destroyed) resolve();
    });
  }
}

async function send(response: ServerResponse, parts: Iterable<Buffer>): Promise<void> {
  await write(response, parts);
  response.end();
}

function* asEvent(parts: Iterable<Buffer>, form: Form): Generator<Buffer> {
  yield Buffer.from(form === 'event' ? event(PROGRESS) : ': hello\n\n');
  yield Buffer.from('event: message\ndata: ');
  let n = 0;
  for (const part of parts) {
    // A line ends between tokens only: behind the first piece, and before the last.
    if (form === 'lines' && n++ === 0) yield Buffer.concat([Buffer.from('\ndata: '), part]);
    else yield part;
  }
  yield Buffer.from('\n\n');
}

const answerWith: Record<Form, (asked: Asked, size: number) => Promise<void>> = {
  async length({ response, id, uri }, size) {
    let length = 0;
    for (const part of pieces(id, uri, size)) length += part.length;
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': length });
    await send(response, pieces(id, uri, size));
  },
  async chunked({ response, id, uri }, size) {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    await send(response, pieces(id, uri, size));
  },
  async event({ response, id, uri }, size) {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    await send(response, asEvent(pieces(id, uri, size), 'event'));
  },
  async lines({ response, id, uri }, size) {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    await send(response, asEvent(pieces(id, uri, size), 'lines'));
  },
  async gzip({ response, id, uri }, size) {
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' });
    response.end(gzipSync(Buffer.concat([...pieces(id, uri, size)]), { level: 1 }));
  },
};

let reads: Asked[] = [];
/** What the next reads meet. */
let onRead: (asked: Asked) => unknown = () => undefined;
const upstream = createServer(async (request: IncomingMessage, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = JSON.parse(Buffer.concat(chunks).toString()) as {
    id: string;
    method: string;
    params: { uri: string };
  };
  if (body.method === 'resources/read') {
    const asked: Asked = { uri: body.params.uri, id: JSON.stringify(body.id), response, gone: false };
    response.on('close', () => {
      asked.gone = !response.writableFinished;
    });
    reads.push(asked);
    await onRead(asked);
    return;
  }
  const result = {
    supportedVersions: ['2026-07-28'],
    capabilities: { resources: {} },
    resources: [],
    resourceTemplates: [],
    resultType: 'complete',
    ttlMs: 60_000,
    cacheScope: 'public',
  };
  response.writeHead(200, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', id: body.id, result }));
});

let gateway: Running;
let url = '';
before(async () => {
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const { port } = upstream.address() as AddressInfo;
  const config = configOf(`
version: 1
listen: 127.0.0.1:0
status: 127.0.0.1:0
admin: false
upstreams: { docs: { url: "http://127.0.0.1:${port}/mcp" } }
routes: [{ path: /mcp, upstreams: [docs] }]
log: { level: silent }
`);
  const sink = new Writable({ write: (_chunk, _encoding, done) => done() });
  gateway = await startGateway(config, { stdout: sink, stderr: sink, version: '0' });
  url = `${gateway.addresses.mcp}/mcp`;
});
beforeEach(() => {
  reads = [];
});
after(async () => {
  gateway.force();
  gateway.shutdown('test');
  await gateway.done;
  upstream.closeAllConnections();
  upstream.close();
});

interface Read {
  readonly response: IncomingMessage;
  /** How it ended, what came first and last, and the digest of all of it. */
  readonly whole: Promise<{
    ended: 'whole' | 'broken';
    bytes: number;
    start: string;
    end: string;
    digest: string;
  }>;
  abort(): void;
}

/** Reads without holding; `pace` is awaited at each chunk. */
async function read(
  uri: string,
  {
    headers = {},
    pace,
  }: { headers?: Record<string, string>; pace?: (bytes: number) => Promise<void> | void } = {},
): Promise<Read> {
  const sent = httpRequest(url, {
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json', ...mirrored('resources/read', uri), ...headers },
  });
  sent.on('error', () => undefined);
  sent.end(JSON.stringify(rpc('resources/read', { uri }, 'mine')));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const hash = createHash('sha1');
  const run = async () => {
    let bytes = 0;
    let start = '';
    let end = '';
    let ended: 'whole' | 'broken' = 'broken';
    try {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        hash.update(chunk);
        bytes += chunk.length;
        if (start.length < 400) start += chunk.toString('latin1', 0, 400);
        end = (end + chunk.toString('latin1', Math.max(0, chunk.length - 400))).slice(-400);
        await pace?.(bytes);
      }
      if (response.complete) ended = 'whole';
    } catch {
      // A broken connection.
    }
    return { ended, bytes, start, end, digest: hash.digest('hex') };
  };
  return { response, whole: run(), abort: () => sent.destroy() };
}

/** What the client must have got. */
function expected(uri: string, size: number): { bytes: number; digest: string } {
  const hash = createHash('sha1');
  let bytes = 0;
  const add = (part: Buffer | string): void => {
    hash.update(part);
    bytes += part.length;
  };
  add('{"jsonrpc":"2.0","id":"mine","result":{"resultType":"complete","ttlMs":0,"cacheScope":"private"');
  add(`,"contents":[{"uri":"${uri}","blob":"`);
  for (let left = size; left > 0; left -= BLOCK.length) add(BLOCK.subarray(0, Math.min(left, BLOCK.length)));
  add('"}],"x":1e400}}');
  return { bytes, digest: hash.digest('hex') };
}

async function metric(series: string): Promise<number> {
  const text = await (await fetch(`${gateway.addresses.status}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1) ?? 0);
}

describe('R30: a read larger than maxEntry', () => {
  for (const form of ['length', 'chunked', 'lines', 'gzip'] as const) {
    test(`flows, whole and with a head of ours, from an upstream that answers as ${form}`, async () => {
      const uri = `big://${form}`;
      const size = 20 * MIB + 7;
      const bypasses = await metric('headgate_cache_bypasses_total{upstream="docs",reason="too_large"}');
      onRead = (asked) => answerWith[form](asked, size);
      for (let n = 0; n < 2; n++) {
        const { response, whole } = await read(uri);
        assert.equal(response.statusCode, 200);
        assert.equal(response.headers['cache-status'], 'headgate; fwd=uri-miss; detail=too-large');
        assert.equal(response.headers['content-length'], undefined);
        const { ended, bytes, digest } = await whole;
        assert.deepEqual({ ended, bytes, digest }, { ended: 'whole', ...expected(uri, size) });
      }
      assert.equal(reads.length, 2, 'nothing was kept');
      assert.equal(
        await metric('headgate_cache_bypasses_total{upstream="docs",reason="too_large"}'),
        bypasses + 2,
      );
    });
  }

  test('comes as the last event where a notification came before it', async () => {
    const uri = 'big://event';
    onRead = (asked) => answerWith.event(asked, 10 * MIB);
    const { response, whole } = await read(uri);
    assert.equal(response.headers['content-type'], 'text/event-stream');
    const { ended, bytes, start, end } = await whole;
    assert.equal(ended, 'whole');
    const progress = event(PROGRESS);
    const open = 'event: message\ndata: ';
    assert.equal(start.slice(0, progress.length), progress);
    assert.equal(bytes, progress.length + open.length + expected(uri, 10 * MIB).bytes + 2);
    assert.ok(end.endsWith('"}],"x":1e400}}\n\n'));
  });

  test('is kept up to the bound, and flows one byte above what may be held', async () => {
    const overhead = ',"contents":[{"uri":"edge://n","blob":""}],"x":1e400}}'.length;
    for (const [uri, size, status] of [
      ['edge://a', MAX_ENTRY - overhead, 'headgate; fwd=uri-miss; stored'],
      ['edge://b', MAX_ENTRY - overhead + 1, 'headgate; fwd=uri-miss; detail=too-large'],
      ['edge://c', MAX_ENTRY + 100_000, 'headgate; fwd=uri-miss; detail=too-large'],
    ] as const) {
      onRead = (asked) => answerWith.chunked(asked, size);
      const { response, whole } = await read(uri);
      assert.equal(response.headers['cache-status'], status);
      const { ended, end } = await whole;
      assert.equal(ended, 'whole');
      assert.ok(end.endsWith('"}],"x":1e400}}'));
    }
  });

  test('that has become small again is kept again', async () => {
    const uri = 'big://shrinks';
    onRead = (asked) => answerWith.chunked(asked, 10 * MIB);
    await (await read(uri)).whole;
    onRead = (asked) => answerWith.chunked(asked, 300_000);
    const small = await read(uri);
    assert.equal(small.response.headers['cache-status'], 'headgate; fwd=uri-miss; stored');
    await small.whole;
    const hit = await read(uri);
    assert.match(String(hit.response.headers['cache-status']), /^headgate; hit/);
    await hit.whole;
  });
});

describe('R23 R30 R35: who waited for a read that turns out to be large', () => {
  test('asks, streams and is told alone; later requests do not wait at all', async () => {
    const uri = 'big://crowd';
    const size = 12 * MIB;
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    onRead = async (asked) => {
      await gate;
      await answerWith.chunked(asked, size);
    };
    const crowd = [1, 2, 3, 4].map(() => read(uri));
    await until(() => reads.length === 1, 'the one flight');
    open();
    for (const one of await Promise.all(crowd)) {
      const { ended, bytes, digest } = await one.whole;
      assert.deepEqual({ ended, bytes, digest }, { ended: 'whole', ...expected(uri, size) });
    }
    assert.equal(reads.length, 4);
    onRead = () => undefined;
    const later = [1, 2, 3].map(() => call(url, 'resources/read', { uri }, { headers: {} }));
    await until(() => reads.length === 7, 'each asking at once');
    for (const { response } of reads.slice(4)) response.writeHead(500).end();
    await Promise.all(later);
  });

  test('is not left without an answer when the leader has gone', async () => {
    const uri = 'big://leaderless';
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    onRead = async (asked) => {
      if (reads.length > 1) return answerWith.chunked(asked, 10 * MIB);
      asked.response.writeHead(200, { 'Content-Type': 'application/json' });
      const all = [...pieces(asked.id, uri, 10 * MIB)];
      await write(asked.response, all.slice(0, all.length / 2));
      await gate;
      // More than all sockets and queues on its way can take.
      return write(asked.response, [...all.slice(all.length / 2, -1), ...Array(500).fill(BLOCK)] as Buffer[]);
    };
    const leaving = new AbortController();
    const leader = call(url, 'resources/read', { uri }, { signal: leaving.signal }).catch(() => undefined);
    await until(() => reads.length === 1, 'the flight');
    const waiter = read(uri);
    await new Promise((resolve) => setTimeout(resolve, 50));
    leaving.abort();
    await leader;
    const first = reads[0] as Asked;
    open();
    const { ended, bytes } = await (await waiter).whole;
    assert.deepEqual([ended, bytes], ['whole', expected(uri, 10 * MIB).bytes]);
    await until(() => first.gone, 'the end of the read that nobody may have');
  });

  test('a client that leaves in mid-answer ends its upstream request at once', async () => {
    const uri = 'big://left';
    onRead = (asked) => answerWith.chunked(asked, 400 * MIB);
    const { whole, abort } = await read(uri, {
      pace: (bytes) => {
        if (bytes > 12 * MIB) abort();
      },
    });
    await whole;
    await until(() => reads[0]?.gone === true, 'the end of the upstream request', 1_000);
  });
});

describe('R25 R37: a large read that goes wrong never looks whole', () => {
  const wrong: Record<string, (asked: Asked) => unknown> = {
    'is of another type': ({ response, id, uri }) => {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      return send(response, pieces(id, uri, 10 * MIB, '"resultType":"input_required"'));
    },
    'is no JSON at its end': async ({ response, id, uri }) => {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      await send(response, pieces(id, uri, 10 * MIB, '"ttlMs":01'));
    },
    'carries another id': ({ response, uri }) => {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      const [first, ...rest] = [...pieces('"x"', uri, 10 * MIB)];
      const start = Buffer.from(String(first).replace('"id":"x",', ''));
      return send(response, [start, ...rest.slice(0, -1), Buffer.from('"}]},"id":"x"}')]);
    },
    'is cut off by its upstream': async ({ response, id, uri }) => {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      await write(response, [...pieces(id, uri, 10 * MIB)].slice(0, -1));
      response.destroy();
    },
  };
  for (const [what, respond] of Object.entries(wrong)) {
    test(`JSON that ${what}`, async () => {
      onRead = respond;
      const { response, whole } = await read(`wrong://${what.replaceAll(' ', '-')}`);
      assert.equal(response.statusCode, 200);
      const { ended, bytes, end } = await whole;
      assert.equal(ended, 'broken');
      assert.ok(bytes > MIB && !end.endsWith('}}'), `${bytes}`);
    });
  }

  test('an event is abandoned, and an error event with the id follows', async () => {
    onRead = ({ response, id, uri }) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      return send(response, asEvent(pieces(id, uri, 10 * MIB, '"resultType":"task"'), 'event'));
    };
    const { whole } = await read('wrong://event');
    const { ended, end } = await whole;
    assert.equal(ended, 'whole');
    assert.match(
      end,
      /\nevent: incomplete\n\nevent: message\ndata: \{"jsonrpc":"2.0","id":"mine","error":\{"code":-32603,[^\n]*\}\n\n$/,
    );
  });

  test('what shows before the answer begins is an error as ever', async () => {
    onRead = ({ response, id }) => {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      return send(response, [
        Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{"resultType":"input_required","x":"`),
        ...Array.from({ length: 200 }, () => BLOCK),
        Buffer.from('"}}'),
      ]);
    };
    const got = await call(url, 'resources/read', { uri: 'wrong://begin' });
    assert.deepEqual([got.status, got.json.error?.code], [502, -32603]);
  });
});

test('R30: six reads of 40 MB side by side, one of them slow, cost no memory that stays', async (t) => {
  const size = 40 * MIB;
  for (const form of ['length', 'chunked', 'lines'] as const) {
    onRead = (asked) => answerWith[form](asked, size);
    // What the reads before have left in sockets goes first.
    let start = weigh();
    for (let n = 0; n < 10; n++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      start = Math.min(start, weigh());
    }
    let growth = 0;
    let next = 20 * MIB;
    let total = 0;
    const startedAt = performance.now();
    const run = async (n: number): Promise<void> => {
      let seen = 0;
      const { whole } = await read(`flat://${form}/${n}`, {
        pace: async (bytes) => {
          total += bytes - seen;
          seen = bytes;
          if (total >= next) {
            next += 20 * MIB;
            growth = Math.max(growth, weigh() - start);
          }
          if (n === 0 && bytes < 4 * MIB) await new Promise((resolve) => setTimeout(resolve, 2));
        },
      });
      const { ended, bytes, digest } = await whole;
      assert.deepEqual(
        { ended, bytes, digest },
        { ended: 'whole', ...expected(`flat://${form}/${n}`, size) },
      );
    };
    await Promise.all(Array.from({ length: 6 }, (_, n) => run(n)));
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    t.diagnostic(
      `${form}: 6 × 40 MB in ${seconds} s; heap + external grew by ${(growth / MIB).toFixed(1)} MB at most (client and upstream in the same process), and by ${((weigh() - start) / MIB).toFixed(1)} MB afterwards`,
    );
    // What may be held of six that are still coming, and as much again in sockets of both sides.
    assert.ok(growth < 6 * MAX_ENTRY + 32 * MIB, `${form} grew by ${growth} bytes`);
  }
});
