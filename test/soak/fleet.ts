/** The processes of a soak: its gateways, and the Redis that they share. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
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
/** A change of the file is taken up within it, however busy the machine. */
const RELOADED_WITHIN_MS = 10_000;
const LOOK_MS = 50;
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
  /** Of the configuration: what it is made from, and how often it was changed. */
  readonly #sources: Sources;
  #turn = 0;
  /** Told of every change of the gateways that run. */
  onChange: () => void = () => undefined;

  private constructor(folder: string, sources: Sources, redis: RedisServer | undefined, troubles: Troubles) {
    this.#folder = folder;
    this.#file = join(folder, 'headgate.yaml');
    this.#sources = sources;
    this.redis = redis;
    this.#troubles = troubles;
    writeFileSync(this.#file, configuration(sources, this.#turn));
  }

  /** Starts two gateways and Redis; where there is none, one gateway. */
  static async start(urls: Readonly<Record<UpstreamName, string>>, troubles: Troubles): Promise<Fleet> {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-soak-'));
    const redis = missingRedis() === undefined ? await startRedis() : undefined;
    const fleet = new Fleet(folder, { urls, redis: redis?.url }, redis, troubles);
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

  /** Changes the file that all of them follow, which each must take up within a while. */
  async reload(): Promise<readonly Finding[]> {
    const before = new Map(
      await Promise.all(this.running.map(async (one) => [one, await takenUp(one)] as const)),
    );
    writeFileSync(`${this.#file}.next`, configuration(this.#sources, ++this.#turn));
    renameSync(`${this.#file}.next`, this.#file);
    const findings = await Promise.all(
      [...before].map(async ([running, count]): Promise<readonly Finding[]> => {
        const until = performance.now() + RELOADED_WITHIN_MS;
        while (performance.now() < until) {
          // One that ends meanwhile needs no other configuration.
          if (this.#running.get(running.name) !== running || (await takenUp(running)) > count) return [];
          await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
        }
        const output = running.gateway.output().slice(-OUTPUT_CHARS);
        return [{ kind: 'reload', what: `gateway ${running.name} did not take up its file: ${output}` }];
      }),
    );
    return findings.flat();
  }

  async close(): Promise<void> {
    await Promise.all(this.running.map(({ gateway }) => gateway.stop()));
    await this.redis?.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** What a configuration is made from. */
interface Sources {
  readonly urls: Readonly<Record<UpstreamName, string>>;
  readonly redis: string | undefined;
}

/** How often a gateway has taken up another configuration; what cannot be asked has taken up none. */
async function takenUp({ gateway }: Running): Promise<number> {
  const text = await fetch(`${gateway.status}/metrics`).then(
    (response) => response.text(),
    () => '',
  );
  return Number(/^headgate_config_reloads_total\{result="applied"\} (\d+)$/m.exec(text)?.[1] ?? -1);
}

/** At each turn one thing more is otherwise: an upstream is opened anew, another is judged otherwise, a route changes. */
function configuration({ urls, redis }: Sources, turn: number): string {
  const nth = (place: number): number => Math.floor((turn + 3 - place) / 4) % 2;
  return `version: 1
listen: 127.0.0.1:0
status: 127.0.0.1:0
admin: false
secrets: ["a secret that all gateways of a soak have"]
upstreams:
  alpha: { url: ${urls.alpha}, timeouts: { call: ${4 + nth(0)}m } }
  beta: { url: ${urls.beta}, forwardHeaders: [X-User], resources: ["beta://**"], cache: { staleIfError: ${60 + nth(1)}s } }
  gamma: { url: ${urls.gamma}, auth: { type: forward }, timeouts: { call: ${4 + nth(2)}m } }
routes:
  - { path: /mcp, upstreams: [alpha, beta], pageSize: ${10 + nth(3)} }
  - { path: /own, upstreams: [gamma], pageSize: 5 }
shutdown: { grace: 5s }
log: { level: warn, access: false }
${redis === undefined ? '' : `cache:\n  redis: { url: "${redis}" }\n`}`;
}
