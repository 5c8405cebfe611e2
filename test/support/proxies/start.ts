/**
 * nginx and HAProxy in front of a gateway: minimal configurations, default buffering, foreground, ended by their ids.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { until } from '../mcp.ts';

export interface ProxyKind {
  readonly name: 'nginx' | 'haproxy';
  /** Written to `file`; requests to `port` go to `to`. `folder` is its own. */
  configuration(port: number, to: string, folder: string): string;
  arguments(file: string, folder: string): readonly string[];
}

const NGINX: ProxyKind = {
  name: 'nginx',
  // Everything about buffering is left as it is: what must not be held back says so itself (X-Accel-Buffering).
  configuration: (port, to, folder) => `${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
worker_processes 1;
pid ${folder}/pid;
error_log stderr warn;
events {}
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  upstream headgate { server ${to}; keepalive 8; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://headgate;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      client_max_body_size 4m;
      proxy_read_timeout 5m;
    }
  }
}
`,
  arguments: (file, folder) => ['-p', folder, '-c', file, '-e', 'stderr'],
};

const HAPROXY: ProxyKind = {
  name: 'haproxy',
  // Without abortonclose it goes on waiting for a server when its client has left; without http-no-delay a small event
  // may wait for the next one.
  configuration: (port, to) => `global
  maxconn 500
defaults
  mode http
  option abortonclose
  option http-no-delay
  timeout connect 5s
  timeout client 5m
  timeout server 5m
frontend mcp
  bind 127.0.0.1:${port}
  default_backend gateway
backend gateway
  server headgate ${to}
`,
  arguments: (file) => ['-db', '-f', file],
};

export const PROXIES: readonly ProxyKind[] = [NGINX, HAPROXY];

/** Why a proxy cannot be started here; false when it can. */
export function missing({ name }: ProxyKind): string | false {
  // Debian has them where only root looks.
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  return folders.some((folder) => existsSync(join(folder, name)))
    ? false
    : `install the Debian package ${name}`;
}

export interface RunningProxy {
  /** Origin, `http://127.0.0.1:PORT`. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a proxy in front of `to`, `HOST:PORT`. */
export async function startProxy(kind: ProxyKind, to: string): Promise<RunningProxy> {
  const folder = mkdtempSync(join(tmpdir(), `headgate-${kind.name}-`));
  const file = join(folder, 'proxy.conf');
  const port = await freePort();
  writeFileSync(file, kind.configuration(port, to, folder));
  const child = spawn(kind.name, kind.arguments(file, folder), {
    env: { ...process.env, PATH: `${process.env.PATH ?? ''}${delimiter}/usr/sbin` },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-4_000);
  });
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  const stop = async (): Promise<void> => {
    if (alive(child)) child.kill('SIGTERM');
    await exited;
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await until(
      () => {
        if (!alive(child)) throw new Error(`${kind.name} has ended`);
        return accepts(port);
      },
      `${kind.name} to listen`,
      10_000,
    );
  } catch (cause) {
    await stop();
    throw new Error(`${(cause as Error).message}\n${output}`, { cause });
  }
  return { url: `http://127.0.0.1:${port}`, stop };
}

const alive = (child: ChildProcess): boolean =>
  child.pid !== undefined && child.exitCode === null && child.signalCode === null;

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
