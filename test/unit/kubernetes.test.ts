/** The Kubernetes manifests fit together, and the gateway loads what they mount: no cluster is needed to see that. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { readCommandLine } from '../../src/cli/args.ts';
import { loadConfig } from '../../src/config/load.ts';

const FOLDER = 'deploy/kubernetes';
const BASE = `${FOLDER}/base`;
const OVERLAY = `${FOLDER}/overlays/example`;
const MANIFEST = JSON.parse(readFileSync('package.json', 'utf8'));

type Labels = Readonly<Record<string, string>>;

interface Port {
  readonly name: string;
  readonly containerPort: number;
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

interface Mount {
  readonly name: string;
  readonly mountPath: string;
  readonly subPath?: string;
}

interface Container {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly ports: readonly Port[];
  readonly startupProbe: Probe;
  readonly readinessProbe: Probe;
  readonly livenessProbe: Probe;
  readonly volumeMounts: readonly Mount[];
  readonly securityContext: unknown;
  readonly resources: { readonly limits: { readonly memory: string } };
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Labels };
  // biome-ignore lint/suspicious/noExplicitAny: each kind has a specification of its own
  readonly spec?: any;
  readonly [key: string]: unknown;
}

const read = (path: string): string => readFileSync(join(process.cwd(), path), 'utf8');

function manifests(path: string): readonly Manifest[] {
  return parseAllDocuments(read(path)).map((document) => {
    assert.deepEqual(document.errors, [], path);
    return document.toJS() as Manifest;
  });
}

interface Kustomization {
  readonly resources?: readonly string[];
  readonly components?: readonly string[];
  readonly images?: readonly { readonly name: string; readonly newTag: string }[];
  readonly configMapGenerator?: readonly { readonly name: string; readonly files: readonly string[] }[];
  readonly [key: string]: unknown;
}

const kustomizationOf = (folder: string): Kustomization =>
  manifests(`${folder}/kustomization.yaml`)[0] as unknown as Kustomization;

/** The manifests a kustomization names, also by way of others; not what its generators make. */
function named(folder: string): readonly Manifest[] {
  const { resources = [], components = [] } = kustomizationOf(folder);
  return [...resources, ...components].flatMap((entry) => {
    const path = join(folder, entry);
    return path.endsWith('.yaml') ? manifests(path) : named(path);
  });
}

const all = named(OVERLAY);
const base = named(BASE);

function one(kind: string, name = 'headgate'): Manifest {
  const found = all.filter((manifest) => manifest.kind === kind && manifest.metadata.name === name);
  assert.equal(found.length, 1, `${kind} ${name}`);
  return found[0] ?? assert.fail();
}

const deployment = one('Deployment');
const pod = deployment.spec.template.spec;
const container = pod.containers[0] as Container;
const podLabels = deployment.spec.template.metadata.labels as Labels;

const selects = (selector: Labels, labels: Labels): boolean =>
  Object.keys(selector).length > 0 && Object.entries(selector).every(([key, value]) => labels[key] === value);

const portOf = (name: string): number =>
  container.ports.find((port) => port.name === name)?.containerPort ?? assert.fail(name);

/** The configuration of a kustomization, with every file of a mounted secret in place. */
function configOf(folder: string) {
  const path = `${folder}/headgate.yaml`;
  const mount = container.volumeMounts.find(({ name }) => name === 'secret') ?? assert.fail();
  const loaded = loadConfig(path, {}, (file) =>
    file.startsWith(`${mount.mountPath}/`) ? 's'.repeat(44) : read(path),
  );
  assert.deepEqual(loaded.kind === 'ok' ? [] : loaded.problems, []);
  return loaded.kind === 'ok' ? loaded.config : assert.fail();
}

describe('the Kubernetes manifests', () => {
  test('are all named by a kustomization, and those name only what is there', () => {
    const kept = (readdirSync(FOLDER, { recursive: true }) as string[]).filter((file) =>
      file.endsWith('.yaml'),
    );
    const texts = kept
      .filter((file) => file.endsWith('kustomization.yaml'))
      .map((file) => read(join(FOLDER, file)));
    for (const file of kept) {
      const name = file.split('/').at(-1) ?? '';
      if (name !== 'kustomization.yaml')
        assert.ok(
          texts.some((text) => text.includes(name)),
          file,
        );
    }
    assert.ok(all.length > base.length && base.length > 0);
    for (const { kind } of all) assert.equal(typeof kind, 'string');
  });

  test('write out their labels: those of kustomize would also be put on whom the policies let in', () => {
    for (const folder of [BASE, OVERLAY]) {
      const { labels, commonLabels } = kustomizationOf(folder);
      assert.deepEqual([labels, commonLabels], [undefined, undefined]);
    }
  });

  test('select by labels that the pods have, and by nothing empty', () => {
    assert.ok(selects(deployment.spec.selector.matchLabels, podLabels));
    assert.ok(selects(one('PodDisruptionBudget').spec.selector.matchLabels, podLabels));
    assert.ok(selects(one('NetworkPolicy').spec.podSelector.matchLabels, podLabels));
    for (const { labelSelector } of pod.topologySpreadConstraints)
      assert.ok(selects(labelSelector.matchLabels, podLabels));
    const redis = one('Deployment', 'headgate-redis').spec.template.metadata.labels as Labels;
    for (const { metadata, spec } of all.filter(({ kind }) => kind === 'Service')) {
      const labels = metadata.name === 'headgate-redis' ? redis : podLabels;
      assert.ok(selects(spec.selector, labels), metadata.name);
      assert.ok(!selects(spec.selector, labels === redis ? podLabels : redis), metadata.name);
    }
    const policy = one('NetworkPolicy', 'headgate-redis').spec;
    assert.ok(selects(policy.podSelector.matchLabels, redis));
    assert.ok(selects(policy.ingress[0].from[0].podSelector.matchLabels, podLabels));
  });

  test('let the autoscaler, and nothing else, say how many replicas there are: two at least', () => {
    const { scaleTargetRef, minReplicas, maxReplicas } = one('HorizontalPodAutoscaler').spec;
    assert.deepEqual(scaleTargetRef, { apiVersion: 'apps/v1', kind: 'Deployment', name: 'headgate' });
    assert.equal(deployment.spec.replicas, undefined);
    assert.ok(minReplicas >= 2 && maxReplicas > minReplicas);
    // A budget that lets no pod go would keep nodes from being emptied.
    assert.equal(one('PodDisruptionBudget').spec.maxUnavailable, 1);
  });

  test('lead every port to one that the container has', () => {
    assert.deepEqual(
      one('Service').spec.ports.map((port: { targetPort: string }) => port.targetPort),
      ['mcp'],
    );
    const status = one('Service', 'headgate-status');
    assert.equal(status.spec.ports[0].targetPort, 'status');
    const monitor = one('ServiceMonitor').spec;
    assert.ok(selects(monitor.selector.matchLabels, status.metadata.labels ?? {}));
    assert.ok(!selects(monitor.selector.matchLabels, one('Service').metadata.labels ?? {}));
    assert.equal(monitor.endpoints[0].port, status.spec.ports[0].name);
    const policy = one('NetworkPolicy').spec;
    const open = policy.ingress.flatMap((rule: { ports: { port: string }[] }) => rule.ports);
    assert.deepEqual(
      open.map(({ port }: { port: string }) => port),
      ['mcp', 'status'],
    );
    for (const name of ['mcp', 'status']) assert.ok(portOf(name) > 1023);
  });

  test('probe the status port: ready and started by readiness, alive by nothing else', () => {
    assert.deepEqual(container.startupProbe.httpGet, { path: '/readyz', port: 'status' });
    assert.deepEqual(container.readinessProbe.httpGet, { path: '/readyz', port: 'status' });
    assert.deepEqual(container.livenessProbe.httpGet, { path: '/livez', port: 'status' });
  });

  test('run the command of the image with a file that is mounted as a folder', () => {
    const line = readCommandLine(container.args);
    assert.ok(line.kind === 'run' && line.command === 'serve');
    const mount = container.volumeMounts.find(({ name }) => name === 'config') ?? assert.fail();
    assert.equal(mount.subPath, undefined);
    assert.equal(line.options.config, `${mount.mountPath}/headgate.yaml`);
    const volume = pod.volumes.find(({ name }: { name: string }) => name === 'config');
    for (const folder of [BASE, OVERLAY]) {
      const { configMapGenerator, generatorOptions } = kustomizationOf(folder);
      assert.deepEqual(
        configMapGenerator?.map(({ name, files }) => [name, files]),
        [[volume.configMap.name, ['headgate.yaml']]],
      );
      // With a suffix a changed configuration would be new pods, not a reload.
      assert.deepEqual(generatorOptions, { disableNameSuffixHash: true });
    }
  });

  test('give no right that is not needed: pods of all kinds pass the restricted standard', () => {
    for (const { metadata, spec } of all.filter(({ kind }) => kind === 'Deployment')) {
      const { securityContext, automountServiceAccountToken, containers } = spec.template.spec;
      assert.equal(securityContext.runAsNonRoot, true, metadata.name);
      assert.ok(securityContext.runAsUser > 0, metadata.name);
      assert.deepEqual(securityContext.seccompProfile, { type: 'RuntimeDefault' });
      assert.equal(automountServiceAccountToken, false, metadata.name);
      for (const { securityContext: inner, resources } of containers as readonly Container[]) {
        assert.deepEqual(inner, {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        assert.match(resources.limits.memory, /^\d+[MG]i$/);
      }
    }
    assert.equal(one('ServiceAccount').automountServiceAccountToken, false);
    assert.equal(pod.serviceAccountName, 'headgate');
    const user = /^USER (\d+):/m.exec(read('deploy/Dockerfile'))?.[1];
    assert.equal(String(pod.securityContext.runAsUser), user, 'the user of the image');
  });

  test('hold no secret: the one that is mounted is made by hand', () => {
    assert.equal(
      all.some(({ kind }) => kind === 'Secret'),
      false,
    );
    for (const folder of [BASE, OVERLAY]) assert.equal(kustomizationOf(folder).secretGenerator, undefined);
    const { secret } = pod.volumes.find(({ name }: { name: string }) => name === 'secret');
    assert.equal(secret.secretName, 'headgate');
    assert.match(read(`${OVERLAY}/kustomization.yaml`), /create secret generic headgate /);
  });

  test('name the version of the image that is built here', () => {
    const { images = [] } = kustomizationOf(OVERLAY);
    assert.deepEqual(
      images.map(({ name, newTag }) => [name, newTag]),
      [[container.image, MANIFEST.version]],
    );
  });
});

for (const folder of [BASE, OVERLAY]) {
  describe(`${folder}/headgate.yaml`, () => {
    const config = configOf(folder);

    test('listens where the manifests say, and keeps the admin port to the pod', () => {
      assert.deepEqual(config.listen.address, { host: '0.0.0.0', port: portOf('mcp') });
      assert.deepEqual(config.status, { host: '0.0.0.0', port: portOf('status') });
      assert.ok(config.admin !== false && config.admin.address.host === '127.0.0.1');
    });

    test('can drain within the time that the pod is given', () => {
      const { delayMs, graceMs } = config.shutdown;
      assert.ok(delayMs > 0, 'balancers hear late of a pod that ends');
      assert.ok(pod.terminationGracePeriodSeconds * 1_000 > delayMs + graceMs);
    });

    test('signs with the secret that all replicas have', () => {
      assert.ok(config.secrets.length > 0);
    });

    test('leaves room beside its cache in the memory of the pod', () => {
      const limit = /^(\d+)Gi$/.exec(container.resources.limits.memory)?.[1];
      assert.ok(Number(limit) * 2 ** 30 >= 3 * config.cache.memory.sizeBytes);
    });
  });
}

describe(`${OVERLAY}/headgate.yaml`, () => {
  test('names the Redis that the overlay brings', () => {
    const { endpoint } = configOf(OVERLAY).cache.redis ?? assert.fail();
    assert.ok(endpoint.kind === 'url');
    const { hostname, port } = new URL(endpoint.url.reveal());
    const service = one('Service', hostname).spec;
    assert.equal(String(service.ports[0].port), port);
  });
});
