/** Two gateways as processes, one Redis, one upstream whose resources have versions, and callers who read steadily. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { McpServer } from '@modelcontextprotocol/server';
import { type Gateway, projectRoot, startGateway } from '../demo/gateway.ts';
import { type DemoServer, serve } from '../demo/servers/serve.ts';
import { call, type Got, until } from './mcp.ts';

/** Lasts: what is old of it is old because nobody was told. */
export const PAGE = 'wiki://page';
/** Kept for a moment only: whoever reads it asks Redis. */
export const BRIEF = 'wiki://brief';
const BRIEF_TTL_MS = 30;

export interface Wiki extends DemoServer {
  readonly version: number;
  /** A new version, told to everybody who listens to the page, or to the resource named. */
  change(uri?: string): void;
}

/** An upstream on the official SDK. The text of every resource is its version, `v1` at first. */
export async function startWiki(): Promise<Wiki> {
  let version = 1;
  const server = await serve({
    build: () => {
      const capabilities = { resources: { subscribe: true, listChanged: true } };
      const mcp = new McpServer({ name: 'wiki', version: '1' }, { capabilities });
      mcp.server.setRequestHandler('resources/read', ({ params: { uri } }) => ({
        contents: [{ uri, mimeType: 'text/plain', text: `v${version}` }],
        ttlMs: uri === BRIEF ? BRIEF_TTL_MS : 600_000,
        cacheScope: 'public',
      }));
      return mcp;
    },
  });
  return {
    ...server,
    get version() {
      return version;
    },
    change(uri = PAGE) {
      version++;
      server.notify.resourceUpdated(uri);
    },
  };
}

export interface Pair {
  readonly a: Gateway;
  readonly b: Gateway;
  stop(): Promise<void>;
}

/** What both gateways have in common: ports of their own, no admin port. */
export const COMMON = `version: 1
listen: 127.0.0.1:0
status: 127.0.0.1:0
admin: false
`;
export const SECRETS = 'secrets: ["a secret that both replicas have, long enough"]\n';

/**
 * The wiki under two names: of `wiki` both gateways hear from the upstream itself, of `quiet` only the first one
 * does, and the other through Redis alone. `command`: how long Redis may take.
 */
export function twoNames(wiki: Wiki, which: 'first' | 'second', redisUrl: string, command = '25ms'): string {
  return `${COMMON}${SECRETS}upstreams:
  wiki: { url: ${wiki.url} }
  quiet: { url: ${wiki.url}, subscribe: ${which === 'first'} }
routes:
  - { path: /wiki, upstreams: [wiki] }
  - { path: /quiet, upstreams: [quiet] }
cache:
  redis: { url: "${redisUrl}", timeouts: { command: ${command} } }
`;
}

/** Starts two gateways with these configurations. */
export async function startPair(first: string, second: string): Promise<Pair> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-pair-'));
  const root = projectRoot(import.meta.dirname);
  const started = await Promise.allSettled(
    [first, second].map((text, i) => {
      const file = join(folder, `${i}.yaml`);
      writeFileSync(file, text);
      return startGateway({ root, args: ['serve', '-c', file] });
    }),
  );
  const running = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const stop = async (): Promise<void> => {
    await Promise.all(running.map((gateway) => gateway.stop()));
    rmSync(folder, { recursive: true, force: true });
  };
  const [a, b] = running;
  if (a !== undefined && b !== undefined) return { a, b, stop };
  await stop();
  throw new Error(`a gateway did not start: ${JSON.stringify(started)}`);
}

/** One `resources/read`, with the caller's token where there is one. */
export function read(gateway: Gateway, path: string, uri: string, token?: string): Promise<Got> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return call(`${gateway.mcp}${path}`, 'resources/read', { uri }, { headers });
}

export const textOf = ({ json }: Got): string | undefined => json.result?.contents?.[0]?.text;
export const statusOf = ({ headers }: Got): string => String(headers['cache-status']);

/** The sum of what `/metrics` says of this name, of the series that hold all of `labels`: `reason="corrupt"`. */
export async function metric(gateway: Gateway, name: string, ...labels: string[]): Promise<number> {
  const text = await (await fetch(`${gateway.status}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return lines
    .filter((line) => labels.every((label) => line.includes(label)))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

/** Waits until both use Redis. */
export async function used({ a, b }: Pair): Promise<void> {
  const uses = async (gateway: Gateway): Promise<boolean> =>
    (await metric(gateway, 'headgate_redis_up')) === 1 &&
    (await metric(gateway, 'headgate_redis_circuit_open')) === 0;
  await until(async () => (await uses(a)) && (await uses(b)), 'Redis is used', 10_000);
}

/** Waits until the changes of that resource are told there: then it is read again, once. */
export async function watched(gateway: Gateway, path: string, uri = PAGE): Promise<void> {
  const again = async () => /detail=rewatch/.test(statusOf(await read(gateway, path, uri)));
  await until(again, 'changes are told');
}

/** The same for all that are told by the wiki of {@link twoNames}. To be called once. */
export async function ready(pair: Pair): Promise<void> {
  await used(pair);
  await watched(pair.a, '/wiki');
  await watched(pair.a, '/quiet');
  await watched(pair.b, '/wiki');
}

/** Where somebody reads. */
export interface Place {
  /** `A /wiki`. */
  readonly name: string;
  readonly gateway: Gateway;
  readonly path: string;
  /** The newest version that was read here. */
  seen: number;
}

/** The four places of a pair with {@link twoNames}. */
export function placesOf({ a, b }: Pair): readonly Place[] {
  return ['/wiki', '/quiet'].flatMap((path) => [
    { name: `A ${path}`, gateway: a, path, seen: 0 },
    { name: `B ${path}`, gateway: b, path, seen: 0 },
  ]);
}

export interface Took {
  readonly reads: readonly number[];
  /** Looks at `/livez`, which need nothing: what the machine itself made of that time. */
  readonly probes: readonly number[];
}

export interface Readers {
  /** Waits for so many more reads of each caller. @returns how long all of that time took, ascending, in ms. */
  reads(count: number): Promise<Took>;
  /** From now on nothing older may come anywhere. */
  atLeast(version: number): void;
  /** Waits until this version, or a newer one, has been read everywhere. @returns ms. */
  haveSeen(version: number, withinMs: number, places?: readonly Place[]): Promise<number>;
  /** Ends them. Throws unless every read was answered, and none with less than was known to its place before. */
  stop(): Promise<void>;
}

const CALLERS_EACH = 2;
/** The upstream is in this process too: more load would be measured as latency. */
const PACE_MS = 10;

/** Callers at each place, who read in turn what lasts and what does not, until they are stopped. */
export function startReaders(places: readonly Place[]): Readers {
  const agent = new Agent({ keepAlive: true });
  const wrong: string[] = [];
  const counts: number[] = [];
  let times: number[] = [];
  let probes: number[] = [];
  let least = 0;
  let stopped = false;

  async function readOnce(place: Place, uri: string): Promise<void> {
    const floor = Math.max(place.seen, least);
    const startedAt = performance.now();
    const got = await call(`${place.gateway.mcp}${place.path}`, 'resources/read', { uri }, { agent });
    times.push(performance.now() - startedAt);
    const version = Number(textOf(got)?.slice(1));
    if (got.status !== 200 || !(version > 0))
      wrong.push(`${place.name} ${uri}: ${got.status} ${got.text.slice(0, 200)}`);
    if (uri !== PAGE) return;
    if (version < floor) wrong.push(`${place.name}: v${version} after v${floor}, ${statusOf(got)}`);
    place.seen = Math.max(place.seen, version || 0);
  }

  async function caller(place: Place, i: number): Promise<void> {
    for (counts[i] = 0; !stopped; counts[i] = (counts[i] ?? 0) + 1) {
      await readOnce(place, (counts[i] ?? 0) % 2 === 0 ? PAGE : BRIEF).catch((error: unknown) => {
        wrong.push(`${place.name}: ${String(error)}`);
      });
      await new Promise((resolve) => setTimeout(resolve, PACE_MS));
    }
  }

  async function prober({ status }: Gateway): Promise<void> {
    while (!stopped) {
      const startedAt = performance.now();
      await (await fetch(`${status}/livez`)).text();
      probes.push(performance.now() - startedAt);
      await new Promise((resolve) => setTimeout(resolve, PACE_MS));
    }
  }

  const callers = places.flatMap((place, i) =>
    Array.from({ length: CALLERS_EACH }, (_, j) => caller(place, i * CALLERS_EACH + j)),
  );
  const probers = [...new Set(places.map(({ gateway }) => gateway))].map(prober);
  return {
    async reads(count) {
      [times, probes] = [[], []];
      const before = [...counts];
      const done = () => counts.every((now, i) => now >= (before[i] ?? 0) + count);
      await until(done, `${count} reads of each caller`, 30_000);
      const sorted = (all: readonly number[]) => all.toSorted((x, y) => x - y);
      return { reads: sorted(times), probes: sorted(probes) };
    },
    atLeast(version) {
      least = version;
    },
    async haveSeen(version, withinMs, where = places) {
      const startedAt = performance.now();
      const late = () =>
        where.filter(({ seen }) => seen < version).map(({ name, seen }) => `${name} v${seen}`);
      await until(() => late().length === 0, `v${version} everywhere`, withinMs).catch(() => {
        throw new Error(`v${version} was not read within ${withinMs} ms: ${late().join(', ')}`);
      });
      return performance.now() - startedAt;
    },
    async stop() {
      stopped = true;
      await Promise.all([...callers, ...probers]);
      agent.destroy();
      assert.deepEqual(wrong, []);
    },
  };
}
