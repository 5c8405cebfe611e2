/** A Redis server of the test's own: on a free port, in a folder of its own, ended with the test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Redis } from 'ioredis';
import { until } from './mcp.ts';

/** Why the test is to be skipped; undefined where there is a redis-server. */
export function missingRedis(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.some((folder) => existsSync(join(folder, 'redis-server')))
    ? undefined
    : 'no redis-server here: install redis-server (Debian package of that name)';
}

export interface RedisServer {
  readonly port: number;
  readonly url: string;
  /** For the test itself: `admin.call('debug', 'sleep', '1')`. */
  readonly admin: Redis;
  /** Starts it, with what `args` add; returns when it answers. */
  start(...args: string[]): Promise<void>;
  /** Ends it at once; what it held is lost, unless it was started with an append-only file. */
  kill(): Promise<void>;
  /** Stops the process where it is, sockets open. */
  freeze(): void;
  thaw(): void;
  close(): Promise<void>;
}

const NOTHING_SAVED = ['--save', '', '--appendonly', 'no'];

/** A server, started. `args` are of this start only. */
export async function startRedis(...args: string[]): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-redis-'));
  const port = await freePort();
  let child: ChildProcess | undefined;
  const admin = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => 20 });
  admin.on('error', () => undefined);
  const server: RedisServer = {
    port,
    url: `redis://127.0.0.1:${port}/0`,
    admin,
    async start(...more) {
      const fixed = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder];
      const debug = ['--enable-debug-command', 'yes'];
      child = spawn('redis-server', [...fixed, ...debug, ...NOTHING_SAVED, ...more], { stdio: 'ignore' });
      await until(() => answers(port), 'redis-server answers', 10_000);
      if (admin.status === 'wait') await admin.connect();
    },
    async kill() {
      const ending = child;
      if (ending === undefined || ending.exitCode !== null || ending.signalCode !== null) return;
      const ended = new Promise((resolve) => ending.once('exit', resolve));
      ending.kill('SIGKILL');
      await ended;
    },
    freeze: () => void child?.kill('SIGSTOP'),
    thaw: () => void child?.kill('SIGCONT'),
    async close() {
      admin.disconnect();
      await server.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await server.start(...args);
  return server;
}

async function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    const done = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    // It answers whatever its state: +PONG, -NOAUTH, -LOADING. Only the last is no start yet.
    socket.once('data', (data) => done(!data.toString().startsWith('-LOADING')));
    socket.once('error', () => done(false));
  });
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** What of a wire is in trouble: all of it, or only the connections that subscribe. */
export type WirePart = 'everything' | 'bus';

/** A TCP proxy in front of a server, whose lines can be cut and mended. */
export interface Wire {
  readonly url: string;
  /** Cuts what is there and what comes. */
  cut(part?: WirePart): void;
  /** What comes is let through again. */
  mend(): void;
  /** From now on nothing is passed on in either direction, and nothing is closed. */
  hold(part?: WirePart): void;
  close(): Promise<void>;
}

interface WireLine {
  readonly near: Socket;
  readonly far: Socket;
  subscribes: boolean;
}

export async function startWire(port: number): Promise<Wire> {
  const lines = new Set<WireLine>();
  let trouble: { readonly how: 'cut' | 'held'; readonly part: WirePart } | undefined;
  const is = (how: 'cut' | 'held', line: WireLine): boolean =>
    trouble?.how === how && (trouble.part === 'everything' || line.subscribes);
  const end = (line: WireLine): void => {
    lines.delete(line);
    line.near.destroy();
    line.far.destroy();
  };

  function pass(line: WireLine, from: Socket, to: Socket): void {
    from.on('data', (data) => {
      if (from === line.near && /subscribe\r\n/i.test(data.toString('latin1'))) line.subscribes = true;
      if (is('cut', line)) end(line);
      else if (!is('held', line)) to.write(data);
    });
    from.on('error', () => undefined);
    from.on('close', () => void (is('held', line) || end(line)));
  }

  const proxy: Server = createServer((near) => {
    const line: WireLine = { near, far: connect(port, '127.0.0.1'), subscribes: false };
    lines.add(line);
    pass(line, near, line.far);
    pass(line, line.far, near);
    if (is('cut', line)) end(line);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const address = proxy.address() as { port: number };
  return {
    url: `redis://127.0.0.1:${address.port}/0`,
    cut(part = 'everything') {
      trouble = { how: 'cut', part };
      for (const line of lines) if (is('cut', line)) end(line);
    },
    mend() {
      trouble = undefined;
    },
    hold(part = 'everything') {
      trouble = { how: 'held', part };
    },
    async close() {
      for (const line of lines) end(line);
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}
