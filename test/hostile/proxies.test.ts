/**
 * The official client through nginx and HAProxy to Headgate and real servers: nothing is held back, nothing is lost.
 *
 * What is checked of the protocol is what the harness's client check looks at; what streams is checked with barriers:
 * the upstream says the next thing only when the client has seen the one before.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { type Gateway, projectRoot, startGateway } from '../demo/gateway.ts';
import { cityUris, start as startCity, WEATHER_TEMPLATE } from '../demo/servers/city.ts';
import { libraryUris, start as startLibrary } from '../demo/servers/library.ts';
import {
  answer,
  chunk,
  event,
  type Fault,
  type FaultServer,
  LAST_CHUNK,
  openEvents,
  startFaultServer,
} from '../support/fault-server.ts';
import { call, mirrored, post, rpc, until, VERSION } from '../support/mcp.ts';
import { missing, PROXIES, type RunningProxy, startProxy } from '../support/proxies/start.ts';

const BLOB = randomBytes(5 << 20);
const BLOB_URI = 'raw://blob';
const NAMES = [
  'raw://plain',
  'raw://ünïcode/ß✓🌍',
  'raw://a%2Fb%20c%C3%BC',
  'raw://q?x=1&y=%26#f',
  'raw://=?base64?eA==?=',
];
const PAGE_SIZE = 40;
const STEPS = 5;
/** Of the circuit of an upstream. */
const FAILURES_TO_OPEN = 5;

const closers: (() => Promise<unknown>)[] = [];
const proxies = new Map<string, RunningProxy & { readonly quiet: Quiet }>();
let gateway: Gateway;
let raw: FaultServer;
/** Calls under way that wait for the test, and how many of their clients left. */
let waiting: (() => void)[] = [];
let left = 0;
/** Events sent by the call under way. */
let sent = 0;

/** The upstream that does what no demo server does. */
const special: Fault = async (asked) => {
  const id = await asked.id();
  const method = asked.headers['mcp-method'] ?? '';
  const say = (members: string) =>
    answer(
      asked,
      `{"jsonrpc":"2.0","id":${id},"result":{${members},"resultType":"complete","ttlMs":60000,"cacheScope":"public"}}`,
    );
  const hold = () =>
    new Promise<void>((resolve) => {
      const gone = (): void => {
        left++;
      };
      asked.socket.once('close', gone);
      waiting.push(() => {
        asked.socket.removeListener('close', gone);
        resolve();
      });
    });
  switch (method) {
    case 'server/discover':
      return say(`"supportedVersions":["${VERSION}"],"capabilities":{"tools":{},"resources":{}}`);
    case 'resources/list':
      return say(`"resources":${JSON.stringify([...NAMES, BLOB_URI].map((uri) => ({ uri, name: uri })))}`);
    case 'resources/templates/list':
      return say('"resourceTemplates":[]');
    case 'tools/list':
      return say(
        `"tools":${JSON.stringify(['steps', 'held', 'boom'].map((name) => ({ name, inputSchema: { type: 'object' } })))}`,
      );
    case 'resources/read': {
      const { params } = JSON.parse((await asked.body()).toString()) as { params: { uri: string } };
      if (!params.uri.startsWith('raw://')) {
        return answer(asked, `{"jsonrpc":"2.0","id":${id},"error":{"code":-32602,"message":"none"}}`);
      }
      if (params.uri.startsWith('raw://held')) await hold();
      const content =
        params.uri === BLOB_URI ? { blob: BLOB.toString('base64') } : { text: `text of ${params.uri}` };
      return say(`"contents":${JSON.stringify([{ uri: params.uri, ...content }])}`);
    }
    default: {
      const { params } = JSON.parse((await asked.body()).toString()) as {
        params: { name: string; _meta: { progressToken: unknown } };
      };
      if (params.name === 'boom') {
        return answer(
          asked,
          `{"jsonrpc":"2.0","id":${id},"error":{"code":-32099,"message":"boom","data":{"from":"special"}}}`,
        );
      }
      if (params.name === 'held') {
        await hold();
        return say('"content":[]');
      }
      openEvents(asked);
      for (sent = 1; sent <= STEPS; sent++) {
        const progress = { progressToken: params._meta.progressToken, progress: sent, total: STEPS };
        asked.socket.write(
          chunk(
            event(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params: progress })),
          ),
        );
        await hold();
      }
      asked.socket.write(
        chunk(
          event(
            `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"done"}],"resultType":"complete"}}`,
          ),
        ),
      );
      asked.socket.write(LAST_CHUNK);
      return undefined;
    }
  }
};

before(async () => {
  if (PROXIES.every((kind) => missing(kind) !== false)) return;
  const library = await startLibrary();
  const city = await startCity();
  raw = await startFaultServer(special);
  closers.push(library.close, city.close, raw.close);
  const folder = mkdtempSync(join(tmpdir(), 'headgate-proxies-'));
  closers.push(async () => rmSync(folder, { recursive: true }));
  const file = join(folder, 'headgate.yaml');
  writeFileSync(
    file,
    `version: 1
listen: 127.0.0.1:0
status: 127.0.0.1:0
admin: false
upstreams:
  library: { url: ${library.url} }
  city: { url: ${city.url} }
  raw: { url: ${raw.url} }
  gone: { url: http://127.0.0.1:1/mcp, resources: ["gone://**"], tools: [gone], prompts: [gone] }
routes: [{ path: /mcp, upstreams: [library, city, raw, gone], pageSize: ${PAGE_SIZE} }]
`,
  );
  gateway = await startGateway({ root: projectRoot(import.meta.dirname), args: ['serve', '-c', file] });
  closers.push(gateway.stop);
  for (const kind of PROXIES.filter((one) => missing(one) === false)) {
    const proxy = await startProxy(kind, new URL(gateway.mcp).host);
    const quiet = listen(`${proxy.url}/mcp`);
    proxies.set(kind.name, { ...proxy, quiet });
    closers.push(async () => {
      quiet.close();
      await proxy.stop();
    });
  }
});
after(async () => {
  for (const close of closers.reverse()) await close();
});

async function rejection(
  work: Promise<unknown>,
): Promise<Error & { code?: unknown; data?: unknown; status?: unknown }> {
  try {
    await work;
  } catch (error) {
    return error as Error;
  }
  throw new Error('expected a rejection');
}

for (const kind of PROXIES) {
  const skip = missing(kind);
  describe(`R34: through ${kind.name}`, { skip }, () => {
    let url: string;
    let client: Client;
    let quiet: Quiet;

    async function connected(options: ConstructorParameters<typeof Client>[1] = {}): Promise<Client> {
      const made = new Client(
        { name: 'test', version: '1' },
        { versionNegotiation: { mode: { pin: VERSION } }, ...options },
      );
      await made.connect(new StreamableHTTPClientTransport(new URL(url)));
      return made;
    }

    before(async () => {
      if (skip !== false) return;
      const proxy = proxies.get(kind.name) ?? assert.fail();
      url = `${proxy.url}/mcp`;
      quiet = proxy.quiet;
      client = await connected();
    });
    after(() => client?.close());

    test('discover says what the gateway offers, to a client that probes too', async () => {
      const discovered = await client.discover();
      assert.deepEqual(discovered.supportedVersions, [VERSION]);
      assert.ok(
        discovered.capabilities.resources && discovered.capabilities.tools && discovered.capabilities.prompts,
      );
      const probing = await connected({ versionNegotiation: { mode: 'auto' } });
      assert.equal(probing.getProtocolEra(), 'modern');
      await probing.close();
    });

    test('merged lists come page by page, each item once and in order, like the whole that the client makes of them', async () => {
      const uris: string[] = [];
      let cursor: string | undefined;
      let pages = 0;
      do {
        const page = await client.request({
          method: 'resources/list',
          params: cursor === undefined ? {} : { cursor },
        });
        uris.push(...(page.resources as { uri: string }[]).map(({ uri }) => uri));
        cursor = page.nextCursor as string | undefined;
        pages++;
      } while (cursor !== undefined);
      assert.deepEqual(uris, [...libraryUris, ...cityUris, ...NAMES, BLOB_URI]);
      assert.equal(pages, Math.ceil(uris.length / PAGE_SIZE));
      const { resources } = await client.listResources();
      assert.deepEqual(
        resources.map(({ uri }) => uri),
        uris,
      );
      const { tools } = await client.listTools();
      assert.deepEqual(
        tools.map(({ name }) => name),
        ['forecast', 'steps', 'held', 'boom'],
      );
      const { prompts } = await client.listPrompts();
      assert.deepEqual(
        prompts.map(({ name }) => name),
        ['summarize_document', 'reading_list'],
      );
      const { resourceTemplates } = await client.listResourceTemplates();
      assert.ok(resourceTemplates.some(({ uriTemplate }) => uriTemplate === WEATHER_TEMPLATE));
    });

    test('R1, R10: names of every spelling arrive as they were written', async () => {
      for (const uri of NAMES) {
        const { contents } = await client.readResource({ uri }, { cacheMode: 'bypass' });
        assert.deepEqual(contents, [{ uri, text: `text of ${uri}` }]);
      }
      const wrapped = `=?base64?${Buffer.from('raw://plain').toString('base64')}?=`;
      const { status, json } = await call(
        url,
        'resources/read',
        { uri: 'raw://plain' },
        { name: 'raw://plain', headers: { 'mcp-name': wrapped } },
      );
      assert.deepEqual([status, json.result.contents[0].uri], [200, 'raw://plain']);
    });

    test('100 reads at once are not mixed up', async () => {
      const got = await Promise.all(
        Array.from({ length: 100 }, (_, i) =>
          client.readResource({ uri: libraryUris[i % 40] as string }, { cacheMode: 'bypass' }),
        ),
      );
      for (const [i, { contents }] of got.entries()) assert.equal(contents[0]?.uri, libraryUris[i % 40]);
    });

    test('R27: what the cache says comes through: a miss, then a hit with its age', async () => {
      const uri = `raw://fresh-${kind.name}`;
      const [first, second] = [
        await call(url, 'resources/read', { uri }),
        await call(url, 'resources/read', { uri }),
      ];
      assert.equal(first.headers['cache-status'], 'headgate; fwd=uri-miss; stored');
      assert.match(String(second.headers['cache-status']), /^headgate; hit; ttl=\d+; detail=memory$/);
      assert.match(String(second.headers.age), /^\d+$/);
      for (const { headers } of [first, second]) assert.equal(headers['cache-control'], 'no-store');
      assert.deepEqual(second.json.result.contents, first.json.result.contents);
    });

    test('R33: a blob of 5 MB arrives byte by byte', async () => {
      for (const cacheMode of ['bypass', 'refresh'] as const) {
        const { contents } = await client.readResource(
          { uri: BLOB_URI },
          { cacheMode: cacheMode as 'bypass' },
        );
        const { blob } = contents[0] as { blob: string };
        const bytes = Buffer.from(blob, 'base64');
        const [got, made] = [bytes, BLOB].map((part) => createHash('sha256').update(part).digest('hex'));
        assert.equal(got, made);
      }
      const through = await call(url, 'resources/read', { uri: BLOB_URI });
      const direct = await call(`${gateway.mcp}/mcp`, 'resources/read', { uri: BLOB_URI });
      const contentsOf = (text: string) => text.slice(text.indexOf('"contents"'));
      assert.equal(contentsOf(through.text), contentsOf(direct.text));
    });

    test('the events of a call arrive one by one: the next is sent when the last was seen', async () => {
      const seen: number[] = [];
      const work = client.callTool(
        { name: 'steps', arguments: {} },
        {
          onprogress: ({ progress }) => {
            seen.push(progress);
            assert.equal(sent, progress, 'the upstream was ahead of the client');
            const [go] = waiting.splice(0);
            go?.();
          },
        },
      );
      // The event can be here before its sender waits.
      await until(() => {
        if (seen.length > 0 && waiting.length > 0 && sent <= seen.length) waiting.splice(0).map((go) => go());
        return seen.length === STEPS && sent > STEPS;
      }, 'all steps');
      const result = await work;
      assert.deepEqual(result.content, [{ type: 'text', text: 'done' }]);
      assert.deepEqual(seen, [1, 2, 3, 4, 5]);
    });

    test('a real server reports its progress', async () => {
      const seen: number[] = [];
      await client.callTool(
        { name: 'forecast', arguments: { city: 'oslo' } },
        { onprogress: ({ progress }) => seen.push(progress) },
      );
      assert.deepEqual(seen, [1, 2, 3]);
    });

    test('a prompt and a completion', async () => {
      const { messages } = await client.getPrompt({ name: 'reading_list', arguments: { shelf: 'music' } });
      assert.equal(messages.length, 1);
      const { completion } = await client.complete({
        ref: { type: 'ref/resource', uri: WEATHER_TEMPLATE },
        argument: { name: 'name', value: 'o' },
      });
      assert.deepEqual(completion.values, ['odense', 'osaka', 'oslo']);
    });

    test('R37: errors keep their code, data, status and id', async () => {
      const unknown = await rejection(client.readResource({ uri: 'nobody://x' }));
      assert.deepEqual([unknown.code, unknown.data], [-32602, { uri: 'nobody://x' }]);
      const tool = await rejection(client.callTool({ name: 'no-such', arguments: {} }));
      assert.equal(tool.code, -32602);
      const boom = await rejection(client.callTool({ name: 'boom', arguments: {} }));
      assert.deepEqual([boom.code, boom.data], [-32099, { from: 'special' }]);
      const cursor = await rejection(client.listResources({ cursor: 'bm8tc3VjaC1jdXJzb3I' }));
      assert.equal(cursor.code, -32602);
      const raws: readonly (readonly [
        number,
        number,
        Promise<{ status: number; json: { id?: unknown; error?: { code: number } } }>,
      ])[] = [
        [404, -32601, call(url, 'no/such', {}, { id: 'a' })],
        [400, -32020, call(url, 'resources/read', { uri: 'raw://plain' }, { id: 'a', name: 'raw://other' })],
        [400, -32020, post(url, rpc('server/discover', {}, 'a'), { 'mcp-protocol-version': VERSION })],
        [
          415,
          -32600,
          post(url, rpc('server/discover', {}, 'a'), {
            ...mirrored('server/discover'),
            'content-type': 'text/plain',
          }),
        ],
      ];
      for (const [status, code, work] of raws) {
        const got = await work;
        assert.deepEqual([got.status, got.json.error?.code, got.json.id], [status, code, 'a']);
      }
      assert.equal((await fetch(url)).status, 405);
    });

    test('R37, R38: an upstream that is down is a 502, and a 503 once it is left alone', async () => {
      // Lists and discovers have asked it too: how many failures are left until then is not ours to say.
      const statuses: number[] = [];
      while (statuses.at(-1) !== 503 && statuses.length <= FAILURES_TO_OPEN) {
        const dead = await call(url, 'resources/read', { uri: 'gone://x' }, { id: 'a' });
        statuses.push(dead.status);
        assert.equal(
          dead.headers['proxy-status'],
          `headgate; error=${dead.status === 503 ? 'destination_unavailable' : 'connection_refused'}`,
        );
        assert.equal(/^[1-9]\d*$/.test(String(dead.headers['retry-after'])), dead.status === 503);
        assert.deepEqual([dead.json.error?.code, dead.json.id], [-32603, 'a']);
      }
      assert.deepEqual(statuses, [...statuses.slice(0, -1).map(() => 502), 503]);
    });

    test('a body in chunks is accepted, and so is the notification that the client posts on closing', async () => {
      const accepted = await post(
        url,
        { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'listen:0' } },
        { 'mcp-protocol-version': VERSION },
      );
      assert.deepEqual([accepted.status, accepted.text], [202, '']);
      const got = await post(url, rpc('server/discover'), {
        ...mirrored('server/discover'),
        'transfer-encoding': 'chunked',
      });
      assert.equal(got.status, 200);
    });

    test('R35: a client that gives up ends its upstream work, in a read and in a call', async () => {
      for (const work of [
        (signal: AbortSignal) =>
          client.readResource({ uri: `raw://held-${kind.name}` }, { signal, cacheMode: 'bypass' }),
        (signal: AbortSignal) => client.callTool({ name: 'held', arguments: {} }, { signal }),
      ]) {
        waiting = [];
        const before = left;
        const abort = new AbortController();
        const failed = rejection(work(abort.signal));
        await until(() => waiting.length === 1, 'the upstream to be asked');
        abort.abort();
        await failed;
        await until(() => left === before + 1, 'the upstream to be told');
      }
      waiting = [];
      await client.discover();
    });

    test('a listen is acknowledged, and a quiet one says that it lives', async () => {
      await until(() => quiet.text().includes('\n: keep-alive\n'), 'a comment', 20_000);
      assert.match(
        quiet.text(),
        /^HTTP 200 text\/event-stream\nevent: message\ndata: \{"jsonrpc":"2\.0","method":"notifications\/subscriptions\/acknowledged"/,
      );
      assert.doesNotMatch(quiet.text(), /^id:/m);
    });
  });
}

/** A listen that is left alone, until it has said that it lives. */
interface Quiet {
  /** Status, media type, and the stream. */
  text(): string;
  close(): void;
}

function listen(url: string): Quiet {
  let text = '';
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...mirrored('subscriptions/listen'),
  };
  const opened = httpRequest(url, { method: 'POST', agent: false, headers }, (response) => {
    text = `HTTP ${response.statusCode} ${response.headers['content-type']}\n`;
    response.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    response.on('error', () => {});
  });
  opened.on('error', () => {});
  opened.end(
    JSON.stringify(rpc('subscriptions/listen', { notifications: { toolsListChanged: true } }, 'quiet')),
  );
  return { text: () => text, close: () => opened.destroy() };
}
