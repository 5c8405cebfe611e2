/** docker-compose.yml and the files it mounts fit together: no engine is needed to see that. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { readCommandLine } from '../../src/cli/args.ts';
import { loadConfig } from '../../src/config/load.ts';

const ROOT = process.cwd();
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

interface Service {
  readonly image: string;
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly command?: readonly string[];
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>>;
}

const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};
const services = Object.entries(compose.services);
const named = new Set(Object.keys(compose.services));
const gateways = services.filter(([name]) => name.startsWith('gateway-'));
const config = loadConfig('deploy/compose/headgate.yaml', {}, (path) =>
  path === '/secrets/headgate' ? 's'.repeat(44) : read(path),
);

/** `host:port` of everything a text names with a service's port. */
function targets(text: string): readonly string[] {
  return [...text.matchAll(/\b([a-z][a-z0-9-]*):(\d+)\b/g)].map(([whole]) => whole);
}

describe('docker-compose.yml', () => {
  test('has two gateways, a balancer, Redis, Prometheus and two demo servers', () => {
    assert.equal(gateways.length, 2);
    for (const name of ['balancer', 'redis', 'prometheus', 'library', 'city'])
      assert.ok(named.has(name), name);
  });

  test('mounts and builds from files that are there, and waits for services that are', () => {
    for (const [name, { build, volumes = [], depends_on = {} }] of services) {
      if (build !== undefined) assert.ok(existsSync(join(ROOT, build.context, build.dockerfile)), name);
      for (const volume of volumes) {
        const [source = ''] = volume.split(':');
        assert.ok(
          source.startsWith('./') ? existsSync(join(ROOT, source)) : source in compose.volumes,
          volume,
        );
      }
      for (const other of Object.keys(depends_on)) assert.ok(named.has(other), other);
    }
  });

  test('publishes on loopback only: nothing here asks who is calling', () => {
    const ports = services.flatMap(([, service]) => service.ports ?? []);
    assert.ok(ports.length > 0);
    for (const port of ports) assert.match(port, /^127\.0\.0\.1:\d+:\d+$/);
  });

  test('runs commands that there are', () => {
    for (const [name, { command = [] }] of services) {
      const [program, file = '', ...rest] = command;
      if (program !== 'node') continue;
      if (file === 'dist/main.js') assert.equal(readCommandLine(rest).kind, 'run', name);
      else assert.ok(existsSync(join(ROOT, file.replace(/^build\/(.*)\.js$/, '$1.ts'))), file);
    }
  });
});

describe('what the services of docker-compose.yml run with', () => {
  test('is a configuration of the gateway that loads', () => {
    const errors = config.kind === 'ok' ? [] : config.problems;
    assert.deepEqual(errors, []);
  });

  test('names upstreams where demo servers listen, and Redis', () => {
    assert.ok(config.kind === 'ok');
    for (const { endpoints } of config.config.upstreams.values()) {
      for (const { hostname, port } of endpoints) {
        const command = compose.services[hostname]?.command ?? assert.fail(hostname);
        assert.equal(command.at(command.indexOf('--port') + 1), port);
      }
    }
    const { endpoint } = config.config.cache.redis ?? assert.fail();
    assert.ok(endpoint.kind === 'url');
    assert.deepEqual(endpoint.url.reveal(), 'redis://redis:6379/0');
    assert.ok(config.config.secrets.length > 0, 'both gateways must have one');
  });

  test('balances over both gateways and scrapes both', () => {
    assert.ok(config.kind === 'ok');
    const { listen, status } = config.config;
    const at = (port: number) => gateways.map(([name]) => `${name}:${port}`);
    assert.deepEqual(targets(read('deploy/nginx/nginx.conf')), at(listen.address.port));
    const { scrape_configs: jobs } = parse(read('deploy/prometheus/prometheus.yml'));
    assert.deepEqual(jobs[0].static_configs[0].targets, at(status.port));
  });

  test('passes on what the balancer is called by, which the gateways let in', () => {
    assert.ok(config.kind === 'ok');
    assert.match(read('deploy/nginx/nginx.conf'), /proxy_set_header Host \$http_host;/);
    assert.ok(config.config.listen.hosts.includes('localhost'));
  });
});
