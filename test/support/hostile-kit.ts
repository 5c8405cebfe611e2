/**
 * Hostile clients against the gateway as a process: raw sockets, and a well-behaved client that must get its answers
 * all the while.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Gateway, projectRoot, startGateway } from '../demo/gateway.ts';
import { type Fault, type FaultServer, head as headOf, startFaultServer } from './fault-server.ts';
import { mirrored, rpc, until, VERSION } from './mcp.ts';

/** Stands in every secret place that a hostile client can fill. */
export const CANARY = 'canary-8f14e45fceea167a5a36dedd4bea2543';
export const BIG_BYTES = 5 << 20;
/** The patiences of the gateway under test. */
export const REQUEST_TIMEOUT_MS = 4_000;
export const BODY_IDLE_MS = 2_500;

const HINT = '"resultType":"complete","ttlMs":60000,"cacheScope":"public"';
/** As good clients see one answer of the upstream. */
const GOOD_URI = 'raw://good/1';
/** What stays may be this much more than before: the allocator's play and the cache's own entries. */
const PLAY_BYTES = 24 << 20;
/** Sockets to upstreams that are kept alive for a while. */
const PLAY_SOCKETS = 16;

/** Collects garbage when asked to by a file, so that what `/metrics` tells is what is held. */
const collectorOf = (file: string): string => `import { existsSync, unlinkSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
const look = () => {
  if (!existsSync(${JSON.stringify(file)})) return;
  collect();
  unlinkSync(${JSON.stringify(file)});
};
setInterval(look, 100).unref();`;

/** One answer on a raw socket. */
export interface Answer {
  readonly status: number;
  /** Status line and header lines. */
  readonly head: string;
  readonly body: string;
}

/** The JSON-RPC code of an answer; undefined for a result. */
export function codeOf(answer: Answer | undefined): number | undefined {
  const [, code] = /"error":\{"code":(-\d+)/.exec(answer?.body ?? '') ?? [];
  return code === undefined ? undefined : Number(code);
}

/** The JSON text of the id of an answer. */
export function idOf(answer: Answer | undefined): string | undefined {
  return /\{"jsonrpc":"2\.0","id":("(?:[^"\\]|\\.)*"|-?\d+)/.exec(answer?.body ?? '')?.[1];
}

/** Refused for the gateway's own sake (R38): whoever was, comes back when it says. */
export function wasShed(answer: Answer | undefined): boolean {
  return answer?.status === 503 && answer.body.includes('too much to do');
}
/** What it says; and how often somebody comes back. */
const COME_BACK_MS = 1_000;
export const COME_BACK_COUNT = 30;
export const comeBack = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, COME_BACK_MS));

/** A connection that sends exactly what it is told and takes answers apart. */
export class Raw {
  readonly socket: Socket;
  readonly answers: Answer[] = [];
  /** Interim answers seen. */
  interims = 0;
  closed = false;
  #rest: Buffer = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => {});
    socket.on('close', () => {
      this.closed = true;
    });
    socket.on('data', (chunk: Buffer) => {
      this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
      while (this.#takeOne());
    });
  }

  /** Bytes received that make no whole answer yet. */
  get pending(): string {
    return this.#rest.toString('latin1');
  }

  static async open(port: number, sent: string | Uint8Array = ''): Promise<Raw> {
    // Half-open: the gateway's end is seen, and ours is sent by the tests alone.
    const socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    const raw = new Raw(socket);
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    socket.on('end', () => socket.destroy());
    if (sent.length > 0) raw.send(sent);
    return raw;
  }

  /** Text is sent a byte a char. */
  send(bytes: string | Uint8Array): void {
    if (!this.socket.writable) return;
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  }

  /** Waits for so many answers, or the end of the connection. */
  async answered(count = 1, ms = 8_000): Promise<readonly Answer[]> {
    await until(
      () => this.answers.length >= count || this.closed,
      `answer ${count}, after ${this.answers.length} and ${JSON.stringify(this.pending.slice(0, 300))}`,
      ms,
    );
    return this.answers;
  }

  /** Waits for the end of the connection. */
  async ended(ms = 8_000): Promise<readonly Answer[]> {
    await until(() => this.closed, `the end, after ${JSON.stringify(this.answers.at(-1))}`, ms);
    return this.answers;
  }

  /** Sends FIN, and reads on. */
  finish(): void {
    this.socket.end();
  }

  close(): void {
    this.socket.destroy();
  }

  reset(): void {
    this.socket.resetAndDestroy();
  }

  #takeOne(): boolean {
    const end = this.#rest.indexOf('\r\n\r\n');
    if (end < 0) return false;
    const head = this.#rest.toString('latin1', 0, end);
    const status = Number(head.slice(9, 12));
    if (status < 200) {
      this.interims++;
      this.#rest = this.#rest.subarray(end + 4);
      return true;
    }
    const [, length] = /^content-length: (\d+)$/im.exec(head) ?? [];
    const from = end + 4;
    if (length === undefined && /^transfer-encoding: chunked$/im.test(head)) {
      const last = this.#rest.indexOf('\r\n0\r\n\r\n', from - 2);
      if (last < 0) return false;
      this.#push(status, head, from, last + 7);
      return true;
    }
    const until = from + Number(length ?? 0);
    if (this.#rest.length < until) return false;
    this.#push(status, head, from, until);
    return true;
  }

  #push(status: number, head: string, from: number, until: number): void {
    this.answers.push({ status, head, body: this.#rest.toString('latin1', from, until) });
    this.#rest = this.#rest.subarray(until);
  }
}

/** The head of a POST; a list of header lines where a name comes twice. */
export function head(
  headers: Readonly<Record<string, string | number>> | readonly (readonly [string, string | number])[],
  line = 'POST /mcp HTTP/1.1',
): string {
  const given = Array.isArray(headers)
    ? (headers as readonly (readonly [string, string | number])[])
    : Object.entries(headers as Readonly<Record<string, string | number>>);
  const names = new Set(given.map(([name]) => name.toLowerCase()));
  const usual: readonly (readonly [string, string])[] = [
    ['Host', 'localhost'],
    ['Content-Type', 'application/json'],
    ['Authorization', `Bearer ${CANARY}`],
  ];
  const all = [...usual.filter(([name]) => !names.has(name.toLowerCase())), ...given];
  return `${line}\r\n${all.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
}

/** A whole request around a body. */
export function post(
  method: string,
  name: string | undefined,
  body: string,
  headers: Readonly<Record<string, string | number>> = {},
  line?: string,
): string {
  const bytes = Buffer.from(body);
  return (
    head({ ...mirrored(method, name), 'Content-Length': bytes.length, ...headers }, line) +
    bytes.toString('latin1')
  );
}

/** A whole, correct request. */
export function request(
  method: string,
  params: Record<string, unknown> = {},
  headers: Readonly<Record<string, string | number>> = {},
  id: string | number = 7,
): string {
  const name = (params.uri ?? params.name) as string | undefined;
  return post(method, name, JSON.stringify(rpc(method, params, id)), headers);
}

/** A read of the upstream that the tests hold in their hand. */
export const read = (path: string, id: string | number = 7): string =>
  request('resources/read', { uri: `raw://${path}` }, {}, id);
/** A call of one of its tools: `echo` answers, `held` when it is let go, `flood` sends without an end. */
export const callOf = (name: string, id: string | number = 7): string =>
  request('tools/call', { name, arguments: {} }, {}, id);

/** The upstream behind the gateway. */
export interface Upstream extends FaultServer {
  /** `method name` of every request, in order. */
  readonly seen: readonly string[];
  /** Requests that are waiting to be let go. */
  readonly held: number;
  /** Clients that left while they were held. */
  readonly left: number;
  /** Bytes that floods have handed to their sockets. */
  readonly flooded: number;
  letGo(): void;
}

async function startUpstream(): Promise<Upstream> {
  const seen: string[] = [];
  const big = 'x'.repeat(BIG_BYTES);
  let gates: (() => void)[] = [];
  const counts = { left: 0, flooded: 0 };
  const hold = (socket: Socket): Promise<void> =>
    new Promise((resolve) => {
      const gone = (): void => {
        counts.left++;
        gates = gates.filter((gate) => gate !== open);
      };
      const open = (): void => {
        socket.removeListener('close', gone);
        resolve();
      };
      gates.push(open);
      socket.once('close', gone);
    });
  const flood = (socket: Socket): void => {
    const chunk = Buffer.from(`10000\r\ndata: ${'y'.repeat(0x10000 - 8)}\n\n\r\n`);
    const more = (): void => {
      while (!socket.destroyed) {
        counts.flooded += chunk.length;
        if (!socket.write(chunk)) break;
      }
    };
    socket.write(headOf(200, { 'Content-Type': 'text/event-stream', 'Transfer-Encoding': 'chunked' }));
    socket.on('drain', more);
    more();
  };
  const fault: Fault = async (asked) => {
    const { socket } = asked;
    const method = asked.headers['mcp-method'] ?? '';
    const name = asked.headers['mcp-name'] ?? '';
    seen.push(`${method} ${name}`);
    if (name === 'swallow') {
      await asked.body();
      return say(socket, 'null', '"content":[]');
    }
    const id = await asked.id();
    if (name.includes('held')) await hold(socket);
    if (name === 'flood') return flood(socket);
    return say(socket, id, membersOf(method, name, big));
  };
  const server = await startFaultServer(fault);
  return Object.defineProperties(server, {
    seen: { get: () => seen },
    held: { get: () => gates.length },
    left: { get: () => counts.left },
    flooded: { get: () => counts.flooded },
    letGo: {
      value: () => {
        for (const gate of gates.splice(0)) gate();
      },
    },
  }) as Upstream;
}

function membersOf(method: string, name: string, big: string): string | undefined {
  switch (method) {
    case 'server/discover':
      return `"supportedVersions":["${VERSION}"],"capabilities":{"tools":{},"resources":{}}`;
    case 'resources/list':
      return `"resources":[{"uri":"${GOOD_URI}","name":"good"}]`;
    case 'resources/templates/list':
      return '"resourceTemplates":[]';
    case 'tools/list':
      return `"tools":[${['echo', 'held', 'flood', 'swallow']
        .map((tool) => `{"name":"${tool}","inputSchema":{"type":"object"}}`)
        .join(',')}]`;
    case 'resources/read':
      if (name.includes('/none/')) return undefined;
      return `"contents":[{"uri":"${name}","text":"${name.includes('/big/') ? big : 'hello'}"}]`;
    case 'tools/call':
      return '"content":[{"type":"text","text":"done"}]';
    default:
      return undefined;
  }
}

function say(socket: Socket, id: string, members: string | undefined): void {
  const body =
    members === undefined
      ? `{"jsonrpc":"2.0","id":${id},"error":{"code":-32602,"message":"none"}}`
      : `{"jsonrpc":"2.0","id":${id},"result":{${members},${HINT}}}`;
  socket.write(headOf(200, { 'Content-Type': 'application/json', 'Content-Length': body.length }) + body);
}

/** A gateway, what is behind it, and what can be seen of it from outside. */
export interface Target {
  readonly port: number;
  readonly upstream: Upstream;
  /** The worst time of the well-behaved client so far, in milliseconds. */
  readonly worstMs: number;
  open(sent?: string | Uint8Array): Promise<Raw>;
  /** Sends on a connection of its own; the first answer. */
  ask(sent: string | Uint8Array): Promise<Answer | undefined>;
  /** The value of a series; 0 when there is none. */
  metric(series: string): Promise<number>;
  /** Every series of the gateway's own, without values. */
  series(): Promise<readonly string[]>;
  /** Heap and external memory. */
  weight(): Promise<number>;
  /**
   * Runs an attack. A well-behaved client asks all the while; `calm` waits until it has had so many more answers.
   * Afterwards the process is the same, nothing of the attack is left, and no label was made of it.
   */
  under(attack: (calm: (rounds?: number) => Promise<void>) => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

export async function openTarget(): Promise<Target> {
  const upstream = await startUpstream();
  const folder = mkdtempSync(join(tmpdir(), 'headgate-hostile-'));
  const file = join(folder, 'headgate.yaml');
  writeFileSync(
    file,
    `version: 1
listen: { address: 127.0.0.1:0, limits: { requestTimeout: ${REQUEST_TIMEOUT_MS}ms, bodyIdle: ${BODY_IDLE_MS}ms } }
status: 127.0.0.1:0
admin: false
upstreams:
  raw: { url: ${upstream.url}, resources: ["raw://**"] }
  dead: { url: http://127.0.0.1:1/mcp, resources: ["dead://**"], tools: [dead], prompts: [dead] }
routes: [{ path: /mcp, upstreams: [raw, dead] }]
log: { level: debug }
`,
  );
  const asked = join(folder, 'collect');
  const collector = `data:text/javascript,${encodeURIComponent(collectorOf(asked))}`;
  const gateway = await startGateway({
    root: projectRoot(import.meta.dirname),
    args: ['serve', '-c', file],
    env: { NODE_OPTIONS: `--import=${collector}` },
  });
  const wires = new Set<Raw>();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const port = Number(new URL(gateway.mcp).port);
  let worstMs = 0;
  const good = goodClient(port, agent, (ms) => {
    worstMs = Math.max(worstMs, ms);
  });
  const round = async (): Promise<void> => {
    await good();
    const output = gateway.output();
    assert.ok(!output.includes(CANARY), 'a secret is in the log (R46)');
  };
  const look = () => lookAt(gateway);
  const weigh = async (): Promise<Look> => {
    writeFileSync(asked, '');
    await until(() => !existsSync(asked), 'the garbage to be collected', 20_000);
    return look();
  };
  await round();
  const start = await weigh();

  async function under(attack: Parameters<Target['under']>[0]): Promise<void> {
    const { left } = upstream;
    let over = false;
    let rounds = 0;
    const calm = async (more = 5): Promise<void> => {
      const goal = rounds + more;
      await until(() => rounds >= goal, 'the well-behaved client', 60_000);
    };
    const going = attack(calm).finally(() => {
      over = true;
    });
    going.catch(() => {});
    do {
      await round();
      rounds++;
    } while (!over);
    await going;
    for (const wire of wires) wire.close();
    wires.clear();
    upstream.letGo();
    assert.ok(upstream.left >= left);
    let now = await weigh();
    await until(
      async () => {
        now = await weigh();
        return (
          now.inFlight === 0 &&
          now.sockets <= start.sockets + PLAY_SOCKETS &&
          now.weight <= start.weight + PLAY_BYTES
        );
      },
      `what is left: ${JSON.stringify({ start: plain(start), now: plain(now) })}`,
      12_000,
    );
    assert.equal(now.startedAt, start.startedAt, 'it is another process');
    const odd = now.series.filter((line) => !fromClosedSets(line));
    assert.deepEqual(odd, [], 'labels outside their sets (R45)');
    assert.ok(!now.text.includes(CANARY), 'a secret is in the metrics (R46)');
  }

  const open = async (sent: string | Uint8Array = ''): Promise<Raw> => {
    const wire = await Raw.open(port, sent);
    wires.add(wire);
    return wire;
  };
  return {
    port,
    upstream,
    get worstMs() {
      return worstMs;
    },
    open,
    async ask(sent) {
      for (let left = COME_BACK_COUNT; ; left--) {
        const wire = await open(sent);
        const [first] = await wire.answered(1, 20_000);
        wire.close();
        wires.delete(wire);
        if (left === 0 || !wasShed(first)) return first;
        await comeBack();
      }
    },
    async metric(series) {
      const line = (await look()).text.split('\n').find((text) => text.startsWith(`${series} `));
      return Number(line?.slice(series.length + 1) ?? 0);
    },
    series: async () => (await look()).series,
    weight: async () => (await weigh()).weight,
    under,
    async close() {
      agent.destroy();
      for (const wire of wires) wire.close();
      const code = await gateway.stop();
      await upstream.close();
      rmSync(folder, { recursive: true });
      assert.equal(code, 0, gateway.output());
    },
  };
}

/** One round: a hit and a call, on one connection that is kept. */
function goodClient(port: number, agent: Agent, took: (ms: number) => void): () => Promise<void> {
  const send = (method: string, params: Record<string, unknown>): Promise<string> =>
    new Promise((resolve, reject) => {
      const name = (params.uri ?? params.name) as string;
      const startedAt = performance.now();
      const sent = httpRequest(
        {
          port,
          host: '127.0.0.1',
          agent,
          method: 'POST',
          path: '/mcp',
          timeout: 30_000,
          headers: { 'content-type': 'application/json', ...mirrored(method, name) },
        },
        (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (chunk: string) => {
            text += chunk;
          });
          response.on('error', reject).on('end', () => {
            took(performance.now() - startedAt);
            resolve(text);
          });
        },
      );
      sent.on('timeout', () => sent.destroy(new Error('the well-behaved client waits in vain')));
      sent.on('error', reject);
      sent.end(JSON.stringify(rpc(method, params)));
    });
  const patiently = async (method: string, params: Record<string, unknown>): Promise<string> => {
    for (let left = COME_BACK_COUNT; ; left--) {
      const text = await send(method, params);
      if (left === 0 || !text.includes('too much to do')) return text;
      await comeBack();
    }
  };
  return async () => {
    assert.match(await patiently('resources/read', { uri: GOOD_URI }), /"id":7,"result":.*"text":"hello"/);
    assert.match(await patiently('tools/call', { name: 'echo', arguments: {} }), /"text":"done"/);
  };
}

interface Look {
  readonly text: string;
  readonly series: readonly string[];
  readonly weight: number;
  readonly sockets: number;
  readonly inFlight: number;
  readonly startedAt: number;
}

function plain({ weight, sockets, inFlight }: Look): Record<string, number> {
  return { weight, sockets, inFlight };
}

async function lookAt({ status }: Gateway): Promise<Look> {
  const response = await fetch(`${status}/metrics`);
  const text = await response.text();
  const sample = (name: string): number =>
    Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
  return {
    text,
    series: text
      .split('\n')
      .filter((line) => /^(headgate|mcp)_/.test(line))
      .map((line) => line.slice(0, line.lastIndexOf(' ')))
      .sort(),
    weight: sample('nodejs_heap_size_used_bytes') + sample('nodejs_external_memory_bytes'),
    sockets: sample('process_open_fds'),
    inFlight: sample('headgate_http_requests_in_flight'),
    startedAt: sample('process_start_time_seconds'),
  };
}

/** Nothing that a client can choose. */
const LABELS: Readonly<Record<string, RegExp>> = {
  method: /^(GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|TRACE|CONNECT|other)$/,
  code: /^([1-5]\d\d|other)$/,
  route: /^\/mcp$/,
  upstream: /^(raw|dead)$/,
  mcp_method_name:
    /^(other|server\/discover|resources\/(list|read|templates\/list)|tools\/(list|call)|prompts\/(list|get)|completion\/complete|subscriptions\/listen|tasks\/[a-z]+|notifications\/[a-z/_]+|initialize|ping|logging\/setLevel|resources\/(un)?subscribe)$/,
  notification: /^(other|notifications\/(resources\/updated|(tools|prompts|resources)\/list_changed))$/,
  error_type: /^(|-\d{5}|[a-z_]{1,24})$/,
  le: /^(\+Inf|[\d.e+-]+)$/,
  version: /^[\d.]+$/,
  node_version: /^v[\d.]+$/,
};
const WORD = /^[a-z][a-z0-9_-]{0,31}$/;

function fromClosedSets(series: string): boolean {
  return [...series.matchAll(/([a-z_]+)="([^"]*)"/g)].every(([, name = '', value = '']) =>
    (LABELS[name] ?? WORD).test(value),
  );
}
