/** The whole gateway as a process of its own, over real servers and real sockets, with the official client. */
import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { afterEach, describe, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { type Gateway, projectRoot, startGateway } from '../demo/gateway.ts';
import { start as startCity } from '../demo/servers/city.ts';
import { start as startLibrary } from '../demo/servers/library.ts';
import {
  chunk,
  event,
  type Fault,
  head,
  LAST_CHUNK,
  PROGRESS,
  startFaultServer,
} from '../support/fault-server.ts';
import { call, mirrored, post, rpc, until, VERSION } from '../support/mcp.ts';

const root = projectRoot(import.meta.dirname);
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function kept<T extends { stop(): Promise<unknown> } | { close(): Promise<unknown> }>(thing: T): T {
  closers.push(() => ('stop' in thing ? thing.stop() : thing.close()));
  return thing;
}

async function gateway(...urls: (string | URL)[]): Promise<Gateway & { url: string }> {
  const args = [
    'serve',
    '--listen',
    '127.0.0.1:0',
    '--status',
    '127.0.0.1:0',
    '--admin',
    'false',
    ...urls.map(String),
  ];
  const running = kept(await startGateway({ root, args }));
  return { ...running, url: `${running.mcp}/mcp` };
}

async function client(url: string): Promise<Client> {
  const connected = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: { pin: VERSION } } },
  );
  await connected.connect(new StreamableHTTPClientTransport(new URL(url)));
  closers.push(() => connected.close());
  return connected;
}

/** What a rejected call says, and how long it took. */
async function rejection(
  work: Promise<unknown>,
): Promise<{ error: Error & { code?: unknown; status?: unknown }; ms: number }> {
  const startedAt = performance.now();
  try {
    await work;
  } catch (error) {
    return { error: error as Error, ms: performance.now() - startedAt };
  }
  throw new Error('expected a rejection');
}

/** An upstream that knows one tool and whose calls meet a fault. */
function withTools(names: readonly string[], onCall: Fault): Fault {
  return async (request) => {
    const id = await request.id();
    const method = request.headers['mcp-method'];
    if (method === 'tools/call') return onCall(request);
    const result =
      method === 'server/discover'
        ? { supportedVersions: [VERSION], capabilities: { tools: {} } }
        : { tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })) };
    const body = Buffer.from(
      `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify({ ...result, resultType: 'complete', ttlMs: 60_000, cacheScope: 'public' })}}`,
    );
    request.socket.write(head(200, { 'Content-Type': 'application/json', 'Content-Length': body.length }));
    request.socket.write(body);
    return undefined;
  };
}

describe('a call that goes wrong is a typed error with its id within a second', () => {
  test('R31 R37: an unknown tool', async () => {
    const city = kept(await startCity({ port: 0 }));
    const library = kept(await startLibrary({ port: 0 }));
    const { url } = await gateway(city.url, library.url);
    const mcp = await client(url);
    const { error, ms } = await rejection(mcp.callTool({ name: 'no-such-tool', arguments: {} }));
    assert.equal(error.code, -32602);
    assert.ok(ms < 1_000, `${ms} ms`);
    const raw = await call(url, 'tools/call', { name: 'no-such-tool' }, { id: 'my-id' });
    assert.deepEqual(
      [raw.status, raw.json.id, raw.json.error?.data],
      [200, 'my-id', { name: 'no-such-tool' }],
    );
  });

  test('R31 R37: a dead upstream', async () => {
    const dead = await startFaultServer(withTools(['echo'], () => undefined));
    const { url } = await gateway(dead.url);
    const mcp = await client(url);
    await dead.close();
    const { error, ms } = await rejection(mcp.callTool({ name: 'echo', arguments: {} }));
    assert.equal(error.constructor.name, 'SdkHttpError');
    assert.equal(error.status, 502);
    assert.ok(ms < 1_000, `${ms} ms`);
    const raw = await call(url, 'tools/call', { name: 'echo' }, { id: 12 });
    assert.deepEqual([raw.status, raw.json.id, raw.json.error?.code], [502, 12, -32603]);
    assert.match(String(raw.headers['proxy-status']), /^headgate; error=connection_refused/);
    assert.doesNotMatch(raw.text + JSON.stringify(raw.headers), new RegExp(String(dead.port)));
  });

  for (const [what, rest] of [
    ['between two events', ''],
    ['in the middle of an event', 'event: message\ndata: {"jsonrpc":"2.0","id":'],
  ] as const) {
    test(`R34 R37: a stream cut ${what}`, async () => {
      const cutting: Fault = async (request) => {
        await request.body();
        request.socket.write(
          head(200, { 'Content-Type': 'text/event-stream', 'Transfer-Encoding': 'chunked' }),
        );
        request.socket.write(chunk(event(PROGRESS) + rest));
        setTimeout(() => request.socket.destroy(), 50);
      };
      const { url } = await gateway(kept(await startFaultServer(withTools(['echo'], cutting))).url);
      const mcp = await client(url);
      const { error, ms } = await rejection(mcp.callTool({ name: 'echo', arguments: {} }));
      assert.equal(error.code, -32603);
      assert.ok(ms < 1_000, `${ms} ms`);
      const raw = await call(url, 'tools/call', { name: 'echo' }, { id: 'cut' });
      assert.deepEqual([raw.json.id, raw.json.error?.code], ['cut', -32603]);
    });
  }

  /** Breaks off in the middle of an answer, that many bytes into it. */
  const breakingOff =
    (bytes: number): Fault =>
    async (request) => {
      await request.body();
      request.socket.write(head(200, { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' }));
      request.socket.write(chunk(`{"jsonrpc":"2.0","id":7,"result":{"x":"${'x'.repeat(bytes)}"`));
      setTimeout(() => request.socket.destroy(), 50);
    };

  test('R37: a small JSON answer that breaks off', async () => {
    const { url } = await gateway(kept(await startFaultServer(withTools(['echo'], breakingOff(10)))).url);
    const { error, ms } = await rejection((await client(url)).callTool({ name: 'echo', arguments: {} }));
    assert.equal(error.status, 502);
    assert.ok(ms < 1_000, `${ms} ms`);
    const raw = await call(url, 'tools/call', { name: 'echo' }, { id: 'cut' });
    assert.deepEqual([raw.status, raw.json.id, raw.json.error?.code], [502, 'cut', -32603]);
  });

  test('R33 R37: a large JSON answer that breaks off never looks whole', async () => {
    const { url } = await gateway(
      kept(await startFaultServer(withTools(['echo'], breakingOff(200_000)))).url,
    );
    await assert.rejects(call(url, 'tools/call', { name: 'echo' }));
  });
});

test('R34: events of a call are relayed one by one, as they come', async () => {
  const gates: (() => void)[] = [];
  const stepping: Fault = async (request) => {
    const id = await request.id();
    request.socket.write(head(200, { 'Content-Type': 'text/event-stream', 'Transfer-Encoding': 'chunked' }));
    for (let step = 0; step < 3; step++) {
      request.socket.write(chunk(event(PROGRESS)));
      await new Promise<void>((open) => gates.push(open));
    }
    request.socket.write(
      chunk(event(`{"jsonrpc":"2.0","id":${id},"result":{"content":[]}}`)) + String(LAST_CHUNK),
    );
  };
  const { url } = await gateway(kept(await startFaultServer(withTools(['echo'], stepping))).url);
  let seen = '';
  const finished = new Promise<void>((done, failed) => {
    const req = httpRequest(
      url,
      {
        method: 'POST',
        agent: false,
        headers: { 'content-type': 'application/json', ...mirrored('tools/call', 'echo') },
      },
      (res) => {
        assert.equal(res.headers['x-accel-buffering'], 'no');
        res.setEncoding('utf8').on('data', (text: string) => {
          seen += text;
        });
        res.on('end', done).on('error', failed);
      },
    );
    req.on('error', failed).end(JSON.stringify(rpc('tools/call', { name: 'echo' })));
  });
  // The upstream sends the next event only after the client has seen this one: any buffering would stop it all.
  for (let step = 1; step <= 3; step++) {
    await until(
      () => seen.split('progressToken').length - 1 === step && gates.length === step,
      `event ${step}`,
    );
    gates[step - 1]?.();
  }
  await finished;
  assert.match(seen, /"id":7,"result"/);
});

test('R35: a client that leaves cancels its upstream work, in a read and in a call', async () => {
  const hanging: Fault = async (request) => {
    await request.body();
  };
  const silent = kept(
    await startFaultServer(async (request) => {
      const method = request.headers['mcp-method'];
      return method === 'server/discover' ? withTools(['echo'], hanging)(request) : hanging(request);
    }),
  );
  const { url } = await gateway(silent.url);
  for (const [method, params] of [
    ['resources/read', { uri: 'res://x' }],
    ['tools/call', { name: 'echo' }],
  ] as const) {
    const before = silent.requests.length;
    const leave = new AbortController();
    const work = call(url, method, params, { signal: leave.signal });
    await until(() => silent.requests.length > before, `${method} arrives`);
    const { socket } = silent.requests.at(-1) as { socket: { destroyed: boolean } };
    leave.abort();
    await assert.rejects(work);
    await until(() => socket.destroyed, `${method} is cancelled upstream`);
  }
});

test('R18: 10 upstreams × 5,000 resources, walked to the end with the official client: every item once', async (t) => {
  const many =
    (name: string): Fault =>
    async (request) => {
      const params = JSON.parse((await request.body()).toString()) as {
        id: string;
        params: { cursor?: string };
      };
      const from = Number(params.params.cursor ?? 0);
      const items = Array.from({ length: 500 }, (_, i) => ({
        uri: `${name}://items/${from + i}`,
        name: `item ${from + i}`,
        description: `number ${from + i} of ${name}`,
      }));
      const result =
        request.headers['mcp-method'] === 'server/discover'
          ? { supportedVersions: [VERSION], capabilities: { resources: {} } }
          : { resources: items, ...(from + 500 < 5_000 && { nextCursor: String(from + 500) }) };
      const body = Buffer.from(
        JSON.stringify({
          jsonrpc: '2.0',
          id: params.id,
          result: { ...result, resultType: 'complete', ttlMs: 600_000, cacheScope: 'public' },
        }),
      );
      request.socket.write(head(200, { 'Content-Type': 'application/json', 'Content-Length': body.length }));
      request.socket.write(body);
    };
  const servers = await Promise.all(
    Array.from({ length: 10 }, async (_, i) => kept(await startFaultServer(many(`u${i}`)))),
  );
  const running = await gateway(...servers.map((server) => server.url));
  const mcp = await client(running.url);
  for (const round of ['cold', 'warm']) {
    const startedAt = performance.now();
    const seen: string[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      const page = await mcp.request({
        method: 'resources/list',
        params: cursor === undefined ? {} : { cursor },
      });
      seen.push(...page.resources.map((resource) => resource.uri));
      cursor = page.nextCursor as string | undefined;
      pages++;
    } while (cursor !== undefined);
    const expected = Array.from(
      { length: 50_000 },
      (_, i) => `u${Math.floor(i / 5_000)}://items/${i % 5_000}`,
    );
    assert.deepEqual(seen, expected);
    assert.ok(pages <= 64, `${pages} pages: clients give up after 64`);
    const { rss, heap } = await memory(running);
    t.diagnostic(
      `${round}: 50,000 items on ${pages} pages in ${((performance.now() - startedAt) / 1000).toFixed(2)} s; gateway heap + external ${mib(heap)}, RSS ${mib(rss)}`,
    );
  }
});

const mib = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`;

async function memory(running: Gateway): Promise<{ rss: number; heap: number }> {
  const text = await (await fetch(`${running.status}/metrics`)).text();
  const value = (name: string): number =>
    Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
  return {
    rss: value('process_resident_memory_bytes'),
    heap: value('nodejs_heap_size_used_bytes') + value('nodejs_external_memory_bytes'),
  };
}

test('200 MB up and 200 MB down through a call, with flat memory', async (t) => {
  const size = 200 * 1024 * 1024;
  let received = 0;
  const big: Fault = async (request) => {
    // Not collected: counted as it comes.
    await until(
      () => {
        received = request.received;
        return received >= size;
      },
      'the upload',
      120_000,
    );
    request.socket.write(head(200, { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' }));
    const piece = chunk('x'.repeat(1024 * 1024));
    request.socket.write(chunk('{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"'));
    for (let sent = 0; sent < size; sent += 1024 * 1024) {
      if (!request.socket.write(piece)) await new Promise((drained) => request.socket.once('drain', drained));
    }
    request.socket.write(chunk('"}]},"id":"last"}'));
    request.socket.write(LAST_CHUNK);
  };
  const running = await gateway(kept(await startFaultServer(withTools(['big'], big))).url);
  await call(running.url, 'tools/list');
  const before = await memory(running);
  let peak = before;
  const sampling = setInterval(() => {
    void memory(running).then(
      (now) => {
        peak = { rss: Math.max(peak.rss, now.rss), heap: Math.max(peak.heap, now.heap) };
      },
      () => undefined,
    );
  }, 100);
  const down = await new Promise<number>((done, failed) => {
    const req = httpRequest(
      running.url,
      {
        method: 'POST',
        agent: false,
        headers: { 'content-type': 'application/json', ...mirrored('tools/call', 'big') },
      },
      (res) => {
        let bytes = 0;
        res.on('data', (data: Buffer) => {
          bytes += data.length;
        });
        res.on('end', () => done(bytes)).on('error', failed);
      },
    );
    req.on('error', failed);
    const meta = JSON.stringify(rpc('tools/call', { name: 'big' }).params).slice(0, -1);
    req.write(`{"jsonrpc":"2.0","method":"tools/call","params":${meta},"arguments":{"blob":"`);
    const piece = 'y'.repeat(1024 * 1024);
    void (async () => {
      for (let sent = 0; sent < size; sent += piece.length) {
        if (!req.write(piece)) await new Promise((drained) => req.once('drain', drained));
      }
      req.end('"}},"id":"last"}');
    })();
  });
  clearInterval(sampling);
  assert.ok(down > size && received > size);
  const grown = peak.heap - before.heap;
  t.diagnostic(`heap + external grew by ${mib(grown)} at most, RSS to ${mib(peak.rss)}`);
  assert.ok(grown < 96 * 1024 * 1024, `grew by ${mib(grown)}`);
});

test('R45: 2,000 requests with random methods and names add no series', async () => {
  const { url, status } = await gateway(
    kept(await startFaultServer(withTools(['echo'], () => undefined))).url,
  );
  const series = async (): Promise<string[]> => {
    const text = await (await fetch(`${status}/metrics`)).text();
    return text
      .split('\n')
      .filter((line) => /^(headgate|mcp)_/.test(line))
      .map((line) => line.slice(0, line.lastIndexOf(' ')))
      .sort();
  };
  const random = (i: number) => post(url, rpc(`m${i}/x`), mirrored(`m${i}/y`, `n${i}`));
  await Promise.all(Array.from({ length: 20 }, (_, i) => random(i)));
  const before = await series();
  let next = 0;
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      while (next < 2_000) await random(next++);
    }),
  );
  assert.deepEqual(await series(), before);
  assert.ok(!before.some((line) => /m1\/|n1\b/.test(line)));
});

test('R43: drain: not ready at once, a listen ends with its empty result, a call under way is finished, exit code 0', async () => {
  let release = (): void => undefined;
  const slow: Fault = async (request) => {
    const id = await request.id();
    await new Promise<void>((open) => {
      release = open;
    });
    const body = `{"jsonrpc":"2.0","id":${id},"result":{"content":[]}}`;
    request.socket.write(
      head(200, { 'Content-Type': 'application/json', 'Content-Length': body.length }) + body,
    );
  };
  const server = kept(await startFaultServer(withTools(['slow'], slow)));
  const running = await gateway(server.url);
  const listen = call(
    running.url,
    'subscriptions/listen',
    { notifications: { toolsListChanged: true } },
    { id: 'L' },
  );
  const working = call(running.url, 'tools/call', { name: 'slow' });
  await until(
    () => server.requests.some((request) => request.headers['mcp-method'] === 'tools/call'),
    'the call is under way',
  );
  const stopped = running.stop();
  const ended = await listen;
  assert.equal(ended.json.result?.resultType, 'complete');
  assert.match(ended.text, /notifications\/subscriptions\/acknowledged/);
  await until(
    () =>
      fetch(`${running.status}/readyz`).then(
        (res) => res.status === 503,
        () => true,
      ),
    'not ready',
  );
  release();
  assert.deepEqual((await working).json.result, { content: [] });
  assert.equal(await stopped, 0);
});
