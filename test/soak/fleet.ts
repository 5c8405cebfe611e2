/** The processes of a soak: its gateways, and the Redis that they share. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Gateway, projectRoot, startGateway } from '../demo/gateway.ts';
import { missingRedis, type RedisServer, startRedis } from '../support/redis.ts';
import type { Finding } from './findings.ts';
import type { Troubles } from './troubles.ts';
import type { UpstreamName } from './truth.ts';

export type GatewayName = 'a' | 'b';

/** One gateway process. */
export interface Running {
  readonly name: GatewayName;
  readonly gateway: Gateway;
  readonly startedAt: number;
}

/** Work is on its way for less, also what waits before it asks: nothing is sent for so long before it is told to stop. */
const LEAVE_MS = 500;
/** What a gateway said last explains its end. */
const OUTPUT_CHARS = 2_000;

export class Fleet {
  readonly redis: RedisServer | undefined;
  readonly #troubles: Troubles;
  readonly #file: string;
  readonly #folder: string;
  readonly #running = new Map<GatewayName, Running>();
  /** How long each took that was told to end. */
  readonly drainsMs: number[] = [];
  /** Told of every change of the gateways that run. */
  onChange: () => void = () => undefined;

  private constructor(folder: string, file: string, redis: RedisServer | undefined, troubles: Troubles) {
    this.#folder = folder;
    this.#file = file;
    this.redis = redis;
    this.#troubles = troubles;
  }

  /** Starts two gateways and Redis; where there is none, one gateway. */
  static async start(urls: Readonly<Record<UpstreamName, string>>, troubles: Troubles): Promise<Fleet> {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-soak-'));
    const redis = missingRedis() === undefined ? await startRedis() : undefined;
    const file = join(folder, 'headgate.yaml');
    writeFileSync(file, configuration(urls, redis?.url));
    const fleet = new Fleet(folder, file, redis, troubles);
    const names: readonly GatewayName[] = redis === undefined ? ['a'] : ['a', 'b'];
    try {
      await Promise.all(names.map((name) => fleet.begin(name)));
    } catch (fault) {
      await fleet.close();
      throw fault;
    }
    return fleet;
  }

  /** Those that take new work. */
  get running(): readonly Running[] {
    return [...this.#running.values()];
  }

  async begin(name: GatewayName): Promise<void> {
    const root = projectRoot(import.meta.dirname);
    this.#troubles.begin(`gateway:${name}`, performance.now());
    const gateway = await startGateway({ root, args: ['serve', '-c', this.#file] });
    const startedAt = performance.now();
    this.#running.set(name, { name, gateway, startedAt });
    this.#troubles.end(`gateway:${name}`, startedAt);
    this.onChange();
  }

  /** Ends one as an operator would, which must end well. */
  async end(name: GatewayName): Promise<readonly Finding[]> {
    const running = this.#running.get(name);
    if (running === undefined) return [];
    this.#running.delete(name);
    this.onChange();
    await new Promise((resolve) => setTimeout(resolve, LEAVE_MS));
    const toldAt = performance.now();
    this.#troubles.begin(`gateway:${name}`, toldAt);
    const code = await running.gateway.stop();
    this.drainsMs.push(performance.now() - toldAt);
    const output = running.gateway.output().slice(-OUTPUT_CHARS);
    return code === 0 ? [] : [{ kind: 'exit', what: `gateway ${name} ended with ${code}: ${output}` }];
  }

  async close(): Promise<void> {
    await Promise.all(this.running.map(({ gateway }) => gateway.stop()));
    await this.redis?.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function configuration(urls: Readonly<Record<UpstreamName, string>>, redis: string | undefined): string {
  return `version: 1
listen: 127.0.0.1:0
status: 127.0.0.1:0
admin: false
secrets: ["a secret that all gateways of a soak have"]
upstreams:
  alpha: { url: ${urls.alpha} }
  beta: { url: ${urls.beta}, forwardHeaders: [X-User], resources: ["beta://**"] }
  gamma: { url: ${urls.gamma}, auth: { type: forward } }
routes:
  - { path: /mcp, upstreams: [alpha, beta], pageSize: 10 }
  - { path: /own, upstreams: [gamma], pageSize: 5 }
shutdown: { grace: 5s }
log: { level: warn, access: false }
${redis === undefined ? '' : `cache:\n  redis: { url: "${redis}" }\n`}`;
}
