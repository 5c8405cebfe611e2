/** Every way to Redis that the configuration knows, with real servers: TLS, Sentinel, Cluster. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { type Gateway, projectRoot, startGateway } from '../demo/gateway.ts';
import { call, until } from '../support/mcp.ts';
import { freePort, missingRedis, type RedisServer, startRedis } from '../support/redis.ts';
import { selfSigned } from '../support/self-signed.ts';
import { startTeller, type Teller } from '../support/teller.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'headgate-redis-kinds-'));
  closers.push(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

async function server(...args: string[]): Promise<RedisServer> {
  const started = await startRedis(...args);
  closers.push(() => started.close());
  return started;
}

interface Pair {
  readonly teller: Teller;
  readonly a: Gateway;
  readonly b: Gateway;
}

/** Two gateways over one upstream. @param redis YAML of `cache.redis`. */
async function pair(redis: string, env: Readonly<Record<string, string>> = {}): Promise<Pair> {
  const teller = await startTeller('docs');
  closers.push(() => teller.close());
  const file = join(folder(), 'headgate.yaml');
  writeFileSync(
    file,
    `version: 1
listen: 127.0.0.1:0
status: 127.0.0.1:0
admin: false
upstreams: { docs: { url: "${teller.url}" } }
routes: [{ path: /mcp, upstreams: [docs] }]
cache: { redis: ${redis} }
`,
  );
  const root = projectRoot(import.meta.dirname);
  const start = async (): Promise<Gateway> => {
    const running = await startGateway({ root, args: ['serve', '-c', file], env });
    closers.push(() => running.stop());
    return running;
  };
  return { teller, a: await start(), b: await start() };
}

async function read(gateway: Gateway, uri: string): Promise<{ text: string; status: string }> {
  const { json, headers } = await call(`${gateway.mcp}/mcp`, 'resources/read', { uri });
  return { text: json.result?.contents?.[0]?.text, status: String(headers['cache-status']) };
}

/** Something read on the one is there for the other, which never asked the upstream. */
async function shared({ a, b }: Pair, prefix: string): Promise<void> {
  let nth = 0;
  await until(
    async () => {
      const uri = `docs://${prefix}/${nth++}`;
      await read(a, uri);
      return /hit; ttl=\d+; detail=redis/.test((await read(b, uri)).status);
    },
    `${prefix}: what is read on one is a hit on the other`,
    20_000,
  );
}

/** A change that both hear of. */
async function changed({ a, b, teller }: Pair, uri: string): Promise<void> {
  const before = Number((await read(a, uri)).text);
  await until(async () => /hit/.test((await read(b, uri)).status), 'a hit');
  await until(() => teller.open.some(({ filter }) => filter.resourceSubscriptions.includes(uri)), 'a listen');
  teller.change(uri);
  for (const one of [a, b])
    await until(async () => Number((await read(one, uri)).text) > before, `what is new of ${uri}`);
}

describe('two replicas share', { skip: missingRedis() ?? false }, () => {
  test('by TLS, with a certificate that is verified', async () => {
    const { key, cert } = selfSigned();
    const home = folder();
    writeFileSync(join(home, 'key.pem'), key);
    writeFileSync(join(home, 'cert.pem'), cert);
    const port = await freePort();
    const redis = await server(
      ...['--tls-port', `${port}`, '--tls-auth-clients', 'no'],
      ...['--tls-cert-file', join(home, 'cert.pem'), '--tls-key-file', join(home, 'key.pem')],
    );
    await redis.admin.config('SET', 'requirepass', 'open sesame');
    const url = `rediss://:open%20sesame@localhost:${port}/3`;
    const trusting = await pair(`{ url: "${url}" }`, { NODE_EXTRA_CA_CERTS: join(home, 'cert.pem') });
    await shared(trusting, 'tls');
    await changed(trusting, 'docs://tls/change');
    const doubting = await pair(`{ url: "${url}" }`);
    assert.equal((await read(doubting.a, 'docs://1')).text, '0');
    assert.match(await (await fetch(`${doubting.a.status}/metrics`)).text(), /^headgate_redis_up 0$/m);
    assert.doesNotMatch(doubting.a.output(), /sesame/);
  });

  test('by Sentinel, and again when another server is the master', async (t) => {
    const quick = ['--repl-diskless-sync-delay', '0'];
    const [first, second] = [await server(...quick), await server(...quick)];
    await second.admin.replicaof('127.0.0.1', String(first.port));
    await until(
      async () => /master_link_status:up/.test(await second.admin.info('replication')),
      'a replica',
      20_000,
    );
    const sentinelPort = await freePort();
    const file = join(folder(), 'sentinel.conf');
    writeFileSync(
      file,
      `port ${sentinelPort}
bind 127.0.0.1
dir ${folder()}
sentinel monitor main 127.0.0.1 ${first.port} 1
sentinel down-after-milliseconds main 500
sentinel failover-timeout main 2000
`,
    );
    const sentinel = spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' });
    closers.push(async () => {
      const gone = new Promise((resolve) => sentinel.once('exit', resolve));
      sentinel.kill('SIGKILL');
      await gone;
    });
    const ask = new Redis({
      host: '127.0.0.1',
      port: sentinelPort,
      lazyConnect: true,
      retryStrategy: () => 50,
    });
    ask.on('error', () => undefined);
    closers.push(() => ask.disconnect());
    await until(
      async () =>
        ask.connect().then(
          () => true,
          () => ask.status === 'ready',
        ),
      'the sentinel',
      10_000,
    );
    const master = async (): Promise<number> =>
      Number(((await ask.call('sentinel', 'get-master-addr-by-name', 'main')) as string[])[1]);
    await until(
      async () => ((await ask.call('sentinel', 'replicas', 'main')) as unknown[]).length === 1,
      'its replica',
      15_000,
    );
    assert.equal(await master(), first.port);
    const both = await pair(`{ sentinel: { name: main, nodes: ["127.0.0.1:${sentinelPort}"] } }`);
    await shared(both, 'before');
    await changed(both, 'docs://sentinel/change');
    const killedAt = performance.now();
    await first.kill();
    for (const one of [both.a, both.b]) assert.equal((await read(one, 'docs://meanwhile')).text, '1');
    await until(async () => (await master()) === second.port, 'another master', 20_000);
    const chosenAt = performance.now();
    await shared(both, 'after');
    await changed(both, 'docs://sentinel/change');
    t.diagnostic(
      `another master after ${(chosenAt - killedAt).toFixed(0)} ms, shared again ${(performance.now() - chosenAt).toFixed(0)} ms later`,
    );
  });

  test('by a Cluster of three', async () => {
    const ports = [await freePort(), await freePort(), await freePort()];
    const nodes: RedisServer[] = [];
    for (const bus of ports) {
      nodes.push(
        await server(
          '--cluster-enabled',
          'yes',
          '--cluster-port',
          `${bus}`,
          '--cluster-node-timeout',
          '2000',
        ),
      );
    }
    const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
    await join3(nodes, ports);
    await until(
      async () =>
        (await Promise.all(nodes.map(({ admin }) => admin.cluster('INFO')))).every((info) =>
          /cluster_state:ok/.test(String(info)),
        ),
      'the cluster',
      20_000,
    );
    const all = await pair(`{ cluster: { nodes: ["${addresses[0]}"] } }`);
    await shared(all, 'cluster');
    await changed(all, 'docs://cluster/change');
  });
});

/** Shares the slots out and makes the nodes meet. */
async function join3(nodes: readonly RedisServer[], buses: readonly number[]): Promise<void> {
  const share = Math.ceil(16_384 / nodes.length);
  for (const [i, { admin }] of nodes.entries()) {
    const last = Math.min(16_383, (i + 1) * share - 1);
    await admin.call('cluster', 'addslotsrange', String(i * share), String(last));
  }
  const [first] = nodes;
  for (const [i, { port }] of nodes.entries())
    if (i > 0) await first?.admin.call('cluster', 'meet', '127.0.0.1', String(port), String(buses[i]));
}
