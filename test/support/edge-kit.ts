/** An edge on real sockets with a request path of the test's own, and a client that says exactly what it is told. */
import { connect, type Socket } from 'node:net';
import { createEdge, type Edge } from '../../src/edge/server.ts';
import { createLogger } from '../../src/observability/log.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import type { Feed, Handle, Reply } from '../../src/protocol/exchange.ts';
import { configOf } from './config.ts';
import { mirrored, rpc, until } from './mcp.ts';

export interface TestEdge {
  readonly edge: Edge;
  /** The endpoint. */
  readonly url: string;
  readonly port: number;
  readonly status: string;
  /** Access lines so far. */
  readonly access: readonly Record<string, unknown>[];
  /** Other lines so far. */
  readonly log: readonly Record<string, unknown>[];
  /** The value of a series as `/metrics` tells it; 0 when there is none. */
  metric(series: string): Promise<number>;
  close(): Promise<void>;
}

export interface TestEdgeOptions {
  /** In YAML's short form: `limits: { body: 1KiB }, hosts: [a]`. */
  readonly listen?: string;
  /** Likewise: `grace: 1s`. */
  readonly shutdown?: string;
  readonly now?: () => number;
}

/** An answer of a result with these members. */
export function answer(members = '"ok":true', id = '7'): Reply {
  const head = `{"jsonrpc":"2.0","id":${id},"result":{`;
  return { kind: 'answer', status: 200, head, tail: [Buffer.from(`${members}}}`)], headers: {} };
}

/** A listen that tells nothing of its own. */
export function listenReply(feed: Partial<Feed> = {}): Reply {
  const silent: Feed = { start: () => undefined, drained: () => undefined, stop: () => undefined };
  return { kind: 'listen', opening: '{"opening":1}', closing: '{"closing":1}', feed: { ...silent, ...feed } };
}

/** Opens an edge with the route `/mcp`. */
export async function openEdge(handle: Handle, options: TestEdgeOptions = {}): Promise<TestEdge> {
  const config = configOf(`
version: 1
listen: { address: 127.0.0.1:0, ${options.listen ?? ''} }
status: 127.0.0.1:0
admin: false
upstreams: { docs: { url: http://127.0.0.1:1/mcp } }
routes: [{ path: /mcp, upstreams: [docs] }]
shutdown: { ${options.shutdown ?? ''} }
`);
  const lines: Record<string, unknown>[] = [];
  const sink = {
    write(bytes: Uint8Array) {
      for (const line of Buffer.from(bytes).toString().split('\n'))
        if (line !== '') lines.push(JSON.parse(line) as Record<string, unknown>);
    },
  };
  const metrics = createMetrics({ upstreams: ['docs'], routes: ['/mcp'], version: '0' });
  const log = createLogger({ ...config.log, level: 'debug', sink });
  const edge = createEdge({ config, handle, metrics, log, now: options.now ?? (() => performance.now()) });
  const { mcp, status } = await edge.listen();
  return {
    edge,
    url: `${mcp}/mcp`,
    port: Number(new URL(mcp).port),
    status,
    get access() {
      log.flush();
      return lines.filter((line) => line.msg === 'request');
    },
    get log() {
      log.flush();
      return lines.filter((line) => line.msg !== 'request');
    },
    async metric(series) {
      const { body } = await metrics.render();
      const line = body.split('\n').find((text) => text.startsWith(`${series} `));
      return Number(line?.slice(series.length + 1) ?? 0);
    },
    async close() {
      edge.force();
      await edge.drain();
    },
  };
}

/** A connection. */
export class Wire {
  readonly socket: Socket;
  /** Received so far, a char a byte. */
  text = '';
  closed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => {});
    socket.on('close', () => {
      this.closed = true;
    });
    socket.on('data', (chunk) => {
      this.text += chunk.toString('latin1');
    });
  }

  static async open(port: number, sent: string | Uint8Array = ''): Promise<Wire> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    const wire = new Wire(socket);
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    if (sent.length > 0) wire.send(sent);
    return wire;
  }

  send(bytes: string | Uint8Array): void {
    this.socket.write(bytes);
  }

  /** Waits for this text, and then returns all there is. */
  async sees(text: string): Promise<string> {
    await until(() => this.text.includes(text) || this.closed, `${text} in ${JSON.stringify(this.text)}`);
    if (!this.text.includes(text)) throw new Error(`closed after ${JSON.stringify(this.text)}`);
    return this.text;
  }

  /** Waits for the end of the connection. */
  async end(): Promise<string> {
    await until(() => this.closed, `the end after ${JSON.stringify(this.text)}`, 8_000);
    return this.text;
  }

  close(): void {
    this.socket.destroy();
  }
}

/** The head of a POST, header lines as given; `Host` first. */
export function head(
  headers: Readonly<Record<string, string | number>>,
  line = 'POST /mcp HTTP/1.1',
): string {
  const lines = Object.entries({ Host: 'localhost', 'Content-Type': 'application/json', ...headers });
  return `${line}\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
}

/** A request in full. */
export function request(
  method = 'server/discover',
  params: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): string {
  const body = JSON.stringify(rpc(method, params));
  const name = typeof params.name === 'string' ? params.name : undefined;
  return head({ ...mirrored(method, name), 'Content-Length': Buffer.byteLength(body), ...headers }) + body;
}
