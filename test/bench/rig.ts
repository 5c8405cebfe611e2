/** All servers of the bench: which there are, how each is started, which are missing and why. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projectRoot } from '../demo/gateway.ts';
import { type Child, freePort, has, startChild } from './children.ts';

export type ServerName =
  | 'upstream'
  | 'headgate'
  | 'fastify'
  | 'nginx'
  | 'haproxy'
  | 'reply-from'
  | 'bare'
  | 'sdk';

export interface Rig {
  /** Undefined for what is not installed. */
  server(name: ServerName): Child | undefined;
  /** A gateway of its own, for what leaves traces in memory. */
  freshGateway(): Promise<Child>;
  freshNginx(): Promise<Child | undefined>;
  /** What is missing, in words. */
  readonly skipped: readonly string[];
  stop(): Promise<void>;
}

export const LIST_COUNT = 10;
const PRINTED = /"port":(\d+)/;

export async function startRig({ listItems }: { readonly listItems: number }): Promise<Rig> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
  const children: Child[] = [];
  const byName = new Map<ServerName, Child>();
  const skipped: string[] = [];
  const keep = (child: Child): Child => {
    children.push(child);
    return child;
  };
  const script = (name: string, core: 'server' | 'client', ...args: string[]): Promise<Child> =>
    startChild({
      name,
      command: process.execPath,
      args: [join(import.meta.dirname, 'servers', `${name}.js`), ...args],
      port: PRINTED,
      core,
    }).then(keep);
  const stop = async (): Promise<void> => {
    await Promise.all(children.splice(0).map((child) => child.stop()));
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const upstream = await script('upstream', 'client', String(listItems));
    const freshGateway = (): Promise<Child> => startGateway(folder, upstream.port).then(keep);
    const freshNginx = async (): Promise<Child | undefined> =>
      has('nginx') ? keep(await startNginx(folder, upstream.port)) : undefined;
    byName.set('upstream', upstream);
    byName.set('headgate', await freshGateway());
    byName.set('fastify', await script('constant', 'server'));
    byName.set('reply-from', await script('reply-from', 'server', String(upstream.port)));
    byName.set('bare', await script('bare', 'server', String(upstream.port)));
    byName.set('sdk', await script('sdk', 'server'));
    const nginx = await freshNginx();
    if (nginx === undefined) skipped.push('nginx is not installed (apt-get install nginx-light)');
    else byName.set('nginx', nginx);
    if (has('haproxy')) byName.set('haproxy', keep(await startHaproxy(folder, upstream.port)));
    else skipped.push('HAProxy is not installed (apt-get install haproxy)');
    if (!has('redis-server')) skipped.push('redis-server is not installed (apt-get install redis-server)');
    skipped.push(
      'npm peers speak older revisions only; their figures are in the project’s performance notes',
    );
    return { server: (name) => byName.get(name), freshGateway, freshNginx, skipped, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** As users run it, metrics and access log on; the log goes where a reader is never slow. */
function startGateway(folder: string, upstream: number): Promise<Child> {
  const file = join(folder, 'headgate.yaml');
  const base = `http://127.0.0.1:${upstream}`;
  const lists = Array.from({ length: LIST_COUNT }, (_, i) => `l${i}`);
  writeFileSync(
    file,
    `version: 1
listen: 127.0.0.1:0
status: 127.0.0.1:0
admin: false
upstreams:
  bench: { url: ${base}/bench }
  private: { url: ${base}/private, auth: { type: forward } }
  # A stream takes a connection: a thousand are more than the default of 64. Large reads on a busy machine take long.
  roomy: { url: ${base}/bench, connections: 2048, timeouts: { response: 5m } }
${lists.map((name, i) => `  ${name}: { url: ${base}/list/${i} }`).join('\n')}
routes:
  - { path: /mcp, upstreams: [bench] }
  - { path: /private, upstreams: [private] }
  - { path: /roomy, upstreams: [roomy] }
  - { path: /many, upstreams: [${lists.join(', ')}] }
`,
  );
  return startChild({
    name: 'headgate',
    command: process.execPath,
    args: [join(projectRoot(import.meta.dirname), 'dist', 'main.js'), 'serve', '-c', file],
    port: /^listening {2}mcp {5}http:\/\/127\.0\.0\.1:(\d+)$/m,
    core: 'server',
  });
}

/** Debian's nginx: `/bench` passes on, `/cached/…` keeps. One process, no access log. */
async function startNginx(folder: string, upstream: number): Promise<Child> {
  const port = await freePort();
  const home = mkdtempSync(join(folder, 'nginx-'));
  const file = join(home, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${home}/pid; error_log stderr error;
worker_rlimit_nofile 8192;
events { worker_connections 4096; }
http {
  access_log off;
  keepalive_requests 100000000; keepalive_timeout 300s;
  client_body_temp_path ${home}/body; proxy_temp_path ${home}/proxy; fastcgi_temp_path ${home}/f;
  uwsgi_temp_path ${home}/u; scgi_temp_path ${home}/s;
  proxy_cache_path ${home}/cache keys_zone=bench:10m max_size=100m;
  proxy_http_version 1.1; proxy_set_header Connection ""; proxy_read_timeout 300s;
  upstream bench { server 127.0.0.1:${upstream}; keepalive 128; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / { proxy_pass http://bench; }
    location /cached/ {
      proxy_pass http://bench/bench;
      proxy_cache bench; proxy_cache_methods POST; proxy_cache_valid 200 1h;
      proxy_ignore_headers Cache-Control Expires;
      proxy_cache_key "$uri|$http_mcp_method|$http_mcp_name";
      add_header X-Cache $upstream_cache_status;
    }
  }
}
`,
  );
  return startChild({
    name: 'nginx',
    command: 'nginx',
    args: ['-c', file, '-e', 'stderr'],
    port,
    core: 'server',
  });
}

async function startHaproxy(folder: string, upstream: number): Promise<Child> {
  const port = await freePort();
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(
    file,
    `global
  nbthread 1
  maxconn 4000
defaults
  mode http
  timeout connect 5s
  timeout client 5m
  timeout server 5m
  http-reuse always
frontend bench
  bind 127.0.0.1:${port}
  default_backend upstream
backend upstream
  server one 127.0.0.1:${upstream} pool-max-conn 128
`,
  );
  return startChild({ name: 'haproxy', command: 'haproxy', args: ['-db', '-f', file], port, core: 'server' });
}
