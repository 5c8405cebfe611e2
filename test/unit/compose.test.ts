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
  readonly restart?: string;
  readonly read_only?: boolean;
  readonly user?: string;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly stop_grace_period?: string;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly command?: readonly string[];
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}

const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};
const services = Object.entries(compose.services);
const named = new Set(Object.keys(compose.services));
const gateways = services.filter(([name]) => name.startsWith('gateway-'));
const config = loadConfig('deploy/compose/headgate/headgate.yaml', {}, (path) =>
  path === '/secrets/headgate' ? 's'.repeat(44) : read(path),
);

/** Where a path inside a service comes from, by its mounts. */
function mounted({ volumes = [] }: Service, path: string): string | undefined {
  for (const [source = '', target = ''] of volumes.map((volume) => volume.split(':')))
    if (path === target || path.startsWith(`${target}/`)) return join(source, path.slice(target.length));
  return undefined;
}

/** `host:port` of everything a text names with a service's port. */
function targets(text: string): readonly string[] {
  return [...text.matchAll(/\b([a-z][a-z0-9-]*):(\d+)\b/g)].map(([whole]) => whole);
}

describe('docker-compose.yml', () => {
  test('has two gateways, a balancer, Redis, Prometheus, Grafana and two demo servers', () => {
    assert.equal(gateways.length, 2);
    for (const name of ['balancer', 'redis', 'prometheus', 'grafana', 'library', 'city'])
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
    for (const [name, { image, command = [] }] of services) {
      const [program, file = ''] = command;
      if (image === 'headgate') assert.equal(readCommandLine(command).kind, 'run', name);
      if (program === 'node')
        assert.ok(existsSync(join(ROOT, file.replace(/^build\/(.*)\.js$/, '$1.ts'))), file);
    }
  });

  test('runs the gateways from the image for production', () => {
    for (const [, { image, build }] of gateways)
      assert.deepEqual([image, build?.dockerfile], ['headgate', 'deploy/Dockerfile']);
  });

  test('names a version of every image that it does not build', () => {
    for (const [, { image, build }] of services)
      if (build === undefined) assert.match(image, /:v?\d[\w.-]*$/);
  });

  test('lets no service write to its image, keep a capability or win one', () => {
    for (const [name, { read_only, cap_drop, security_opt }] of services) {
      assert.equal(read_only, true, name);
      assert.deepEqual(cap_drop, ['ALL'], name);
      assert.deepEqual(security_opt, ['no-new-privileges:true'], name);
    }
  });

  test('asks every service that stays whether it is well, and waits for nothing less', () => {
    for (const [name, { restart, healthcheck, depends_on = {} }] of services) {
      assert.equal(healthcheck === undefined, restart === 'no', name);
      for (const [other, { condition }] of Object.entries(depends_on)) {
        const once = compose.services[other]?.restart === 'no';
        assert.equal(condition, once ? 'service_completed_successfully' : 'service_healthy', other);
      }
    }
  });

  test('mounts what is configured as a folder where the gateway reads it, so that a new file is seen', () => {
    for (const [name, service] of gateways) {
      const [, , file = assert.fail()] = service.command ?? [];
      assert.equal(mounted(service, file), 'deploy/compose/headgate/headgate.yaml', name);
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

  test('gives the gateways the time that a drain may take', () => {
    assert.ok(config.kind === 'ok');
    const { delayMs, graceMs } = config.config.shutdown;
    for (const [, { stop_grace_period = '' }] of gateways)
      assert.ok(Number(/^(\d+)s$/.exec(stop_grace_period)?.[1]) * 1_000 > delayMs + graceMs);
  });
});
