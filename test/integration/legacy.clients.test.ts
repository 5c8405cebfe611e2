/** Clients of older revisions over real sockets: what sessions cost, whose they are, and how their streams end. */
import assert from 'node:assert/strict';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type Running, startGateway } from '../../src/gateway.ts';
import { configOf } from '../support/config.ts';
import { startModern } from '../support/eras/modern.ts';
import { TICKER } from '../support/eras/world.ts';
import { type LegacyServer, startLegacy } from '../support/legacy-server.ts';
import { until } from '../support/mcp.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function weigh(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

type Json = Readonly<Record<string, unknown>>;
interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

const agent = new Agent({ keepAlive: true, maxSockets: 32 });
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: { elicitation: {} },
    clientInfo: { name: 'older', version: '1' },
  },
};

function send(
  url: string,
  message: Json | undefined,
  headers: Readonly<Record<string, string>> = {},
  method = 'POST',
): Promise<Answer> {
  const body = message === undefined ? undefined : JSON.stringify(message);
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      url,
      {
        method,
        agent,
        headers: {
          accept: 'application/json, text/event-stream',
          ...(body !== undefined && {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(body),
          }),
          ...headers,
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString(),
          }),
        );
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

/** Opens the stream of a session. */
function stream(
  url: string,
  session: string,
): Promise<{ heard: Json[]; ended: () => boolean; leave(): void }> {
  return new Promise((resolve, reject) => {
    const headers = { accept: 'text/event-stream', 'mcp-session-id': session };
    const request = httpRequest(url, { headers }, (response) => {
      const heard: Json[] = [];
      let ended = false;
      let text = '';
      if (response.statusCode !== 200) return reject(new Error(`status ${response.statusCode}`));
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString();
        for (let at = text.indexOf('\n\n'); at >= 0; at = text.indexOf('\n\n')) {
          const data = /^data: (.*)$/m.exec(text.slice(0, at))?.[1];
          if (data !== undefined) heard.push(JSON.parse(data) as Json);
          text = text.slice(at + 2);
        }
      });
      response.on('end', () => {
        ended = true;
      });
      response.on('error', () => {});
      resolve({ heard, ended: () => ended, leave: () => request.destroy() });
    });
    request.on('error', reject);
    request.end();
  });
}

const silent = { stdout: { write: () => true }, stderr: process.stderr, version: '0' } as never;

async function gatewayOver(upstream: Json): Promise<Running> {
  return startGateway(
    configOf(
      JSON.stringify({
        version: 1,
        listen: '127.0.0.1:0',
        status: '127.0.0.1:0',
        admin: false,
        log: { level: 'error', access: false },
        upstreams: { era: upstream },
        routes: [{ path: '/mcp', upstreams: ['era'] }],
      }),
    ),
    silent,
  );
}

async function sessionOf(url: string, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const { headers: got } = await send(url, INITIALIZE, headers);
  return String(got['mcp-session-id']);
}

describe('sessions of older clients', () => {
  let server: Awaited<ReturnType<typeof startModern>>;
  let gateway: Running;
  let url: string;
  before(async () => {
    server = await startModern();
    gateway = await gatewayOver({ url: server.url });
    url = `${gateway.addresses.mcp}/mcp`;
  });
  after(async () => {
    gateway.shutdown('test');
    await gateway.done;
    await server.close();
    agent.destroy();
  });

  test('R48: 100,000 that nobody ends cost no memory', async (t) => {
    const total = 100_000;
    const { hostname, port } = new URL(url);
    const body = JSON.stringify(INITIALIZE);
    const head = `POST /mcp HTTP/1.1\r\nHost: ${hostname}:${port}\r\nContent-Type: application/json\r\n`;
    const one = `${head}Accept: application/json, text/event-stream\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    /** One behind the other on a connection: what a client library costs is not what is weighed. */
    const begin = (count: number): Promise<void> =>
      new Promise((resolve, reject) => {
        const socket = connect(Number(port), hostname);
        let [sent, seen, rest] = [0, 0, ''];
        const more = (): void => {
          for (; sent < count && sent - seen < 64; sent++) socket.write(one);
        };
        socket.setEncoding('latin1');
        socket.on('connect', more);
        socket.on('error', reject);
        socket.on('data', (text: string) => {
          const parts = (rest + text).split('HTTP/1.1 ');
          rest = `HTTP/1.1 ${parts.pop() ?? ''}`;
          for (const part of parts) {
            if (part === '') continue;
            if (!/^200 .*mcp-session-id: /is.test(part)) return reject(new Error(part));
            seen++;
          }
          if (seen + 1 >= count && rest.endsWith('}}')) {
            socket.destroy();
            resolve();
          } else more();
        });
      });
    await begin(10_000);
    const before = weigh();
    await begin(total - 10_000);
    const grown = weigh() - before;
    t.diagnostic(`heap and external memory grew by ${(grown / 1024).toFixed(0)} KiB over ${total} sessions`);
    assert.ok(grown < 4 << 20, `${grown} bytes`);
  });

  test('a stream hears of what was subscribed to, and ends with its session', async () => {
    const session = await sessionOf(url);
    const own = { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' };
    const listening = await stream(url, session);
    const message = { jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri: TICKER } };
    assert.deepEqual(JSON.parse((await send(url, message, own)).text), { jsonrpc: '2.0', id: 1, result: {} });
    await until(() => listening.heard.length >= 2, 'updates');
    assert.deepEqual(listening.heard[0], {
      jsonrpc: '2.0',
      method: 'notifications/resources/updated',
      params: { uri: TICKER },
    });
    assert.equal((await send(url, undefined, own, 'DELETE')).status, 202);
    await until(listening.ended, 'the end');
    assert.equal((await send(url, { ...message, method: 'ping' }, own)).status, 404);
  });

  test('a stream needs a session, and says what it is', async () => {
    const accept = { accept: 'text/event-stream' };
    assert.equal((await send(url, undefined, accept, 'GET')).status, 405);
    assert.equal((await send(url, undefined, {}, 'DELETE')).status, 405);
    const other = { ...accept, 'mcp-session-id': 'x.y' };
    assert.equal((await send(url, undefined, other, 'GET')).status, 404);
    const session = await sessionOf(url);
    const wrong = { accept: 'application/json', 'mcp-session-id': session };
    assert.equal((await send(url, undefined, wrong, 'GET')).status, 406);
  });

  test('R35: a client that leaves its stream leaves nothing open', async () => {
    const session = await sessionOf(url);
    for (let i = 0; i < 3; i++) {
      const listening = await stream(url, session);
      listening.leave();
    }
    const last = await stream(url, session);
    const metrics = async (): Promise<string> => (await fetch(`${gateway.addresses.status}/metrics`)).text();
    await until(
      async () => /headgate_streams_open\{[^}]*"listen"[^}]*\} 1\b/.test(await metrics()),
      'one stream',
    );
    last.leave();
  });

  test('R43: a drain ends what waits for a client that can answer no more', async () => {
    const own = await gatewayOver({ url: server.url });
    const there = `${own.addresses.mcp}/mcp`;
    const headers = { 'mcp-session-id': await sessionOf(there), 'mcp-protocol-version': '2025-11-25' };
    const paint = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'paint', arguments: {} } };
    const called = send(there, paint, headers);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const startedAt = Date.now();
    own.shutdown('test');
    assert.equal(await own.done, 0);
    assert.ok(Date.now() - startedAt < 5_000);
    assert.match((await called).text, /session ends/);
  });

  test('R43: a drain ends streams well', async () => {
    const own = await gatewayOver({ url: server.url });
    const there = `${own.addresses.mcp}/mcp`;
    const listening = await stream(there, await sessionOf(there));
    own.shutdown('test');
    assert.equal(await own.done, 0);
    await until(listening.ended, 'the end');
  });
});

describe('older clients of an older server', () => {
  let server: LegacyServer;
  let gateway: Running;
  let url: string;
  before(async () => {
    server = await startLegacy({
      on: ({ method, params, headers, session }) =>
        method === 'resources/read'
          ? { contents: [{ uri: params.uri, text: `${headers.authorization} in ${session}` }] }
          : undefined,
    });
    gateway = await gatewayOver({
      url: String(server.url),
      auth: { type: 'forward' },
      cache: { ttl: { default: '1m' } },
    });
    url = `${gateway.addresses.mcp}/mcp`;
  });
  after(async () => {
    gateway.shutdown('test');
    await gateway.done;
    await server.close();
  });

  const read = (headers: Readonly<Record<string, string>>, uri = 'old://1'): Promise<Answer> =>
    send(url, { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri } }, headers);

  test('R22: a session of one caller never answers for another, here or at the server', async () => {
    const callers = await Promise.all(
      ['canary-alice', 'canary-bob', 'canary-cyd'].map(async (name) => {
        const authorization = `Bearer ${name}`;
        return { name, authorization, session: await sessionOf(url, { authorization }) };
      }),
    );
    for (let round = 0; round < 3; round++) {
      for (const { name, authorization, session } of callers) {
        const { text } = await read({ authorization, 'mcp-session-id': session });
        assert.ok(text.includes(name), text);
        for (const other of callers) if (other.name !== name) assert.ok(!text.includes(other.name), text);
      }
    }
    for (const { authorization } of callers)
      for (const other of callers) {
        if (other.authorization === authorization) continue;
        const { status, text } = await read({ authorization, 'mcp-session-id': other.session });
        assert.equal(status, 404);
        assert.ok(!text.includes('canary'), text);
      }
    const anonymous = await read({ 'mcp-session-id': callers[0]?.session ?? '' });
    assert.equal(anonymous.status, 404);
    assert.equal(new Set(server.of('resources/read').map(({ session }) => session)).size, 3);
  });

  test('a restart of the server under 50 reads costs one initialize, and no read', async () => {
    const authorization = 'Bearer restart';
    const headers = { authorization, 'mcp-session-id': await sessionOf(url, { authorization }) };
    assert.equal((await read(headers, 'old://before')).status, 200);
    const initialized = (): number =>
      server.of('initialize').filter((one) => one.headers.authorization === authorization).length;
    const before = initialized();
    server.restart();
    const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => read(headers, `old://${i}`)));
    for (const { text } of answers) assert.ok(text.includes('Bearer restart'), text);
    assert.equal(initialized() - before, 1);
  });
});

test('`protocol: modern` in front of an older server says what it answered, and what to write', async () => {
  const server = await startLegacy();
  const [out, err]: [string[], string[]] = [[], []];
  const io = {
    stdout: { write: (text: string) => out.push(text) > 0 },
    stderr: { write: (text: string) => err.push(text) > 0 },
    version: '0',
  } as never;
  const gateway = await startGateway(
    configOf(
      JSON.stringify({
        ...{ version: 1, listen: '127.0.0.1:0', status: '127.0.0.1:0', admin: false },
        log: { format: 'json' },
        upstreams: { era: { url: String(server.url), protocol: 'modern' } },
        routes: [{ path: '/mcp', upstreams: ['era'] }],
      }),
    ),
    io,
  );
  gateway.shutdown('test');
  await gateway.done;
  await server.close();
  assert.match(
    out.join(''),
    /upstream {3}era +speaks an older revision \(it answered error -32600\): write protocol: auto/,
  );
});
