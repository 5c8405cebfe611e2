/** What is left when everything is quiet: an idle gateway needs its own streams, and no more memory than warm. */
import { GROWTH_BYTES, IDLE_WITHIN_MS, WARM_MS } from './bounds.ts';
import type { Finding } from './findings.ts';
import type { Running } from './fleet.ts';
import { WATCHED } from './oracle.ts';
import type { World } from './world.ts';

/** Connections that a gateway may keep to one upstream: of its pools for reads, for calls, and its own stream. */
const IDLE_SOCKETS = 4;

/** Resident bytes of every process, taken once it was warm. */
export class Memory {
  readonly #warm = new Map<Running, number>();

  /** Notes those that have just become warm. */
  async note(world: World): Promise<void> {
    for (const running of world.fleet.running) {
      if (this.#warm.has(running) || performance.now() - running.startedAt < WARM_MS) continue;
      const bytes = (await metricsOf(running))('process_resident_memory_bytes');
      if (bytes > 0) this.#warm.set(running, bytes);
    }
  }

  async grown(world: World): Promise<readonly Finding[]> {
    const findings: Finding[] = [];
    for (const running of world.fleet.running) {
      const warm = this.#warm.get(running);
      const now = (await metricsOf(running))('process_resident_memory_bytes');
      if (warm !== undefined && now - warm > GROWTH_BYTES)
        findings.push({
          kind: 'leak',
          what: `gateway ${running.name}: ${mib(warm)} when warm, ${mib(now)} at the end`,
        });
    }
    return findings;
  }

  /** For the summary. */
  async told(world: World): Promise<string> {
    const parts = await Promise.all(
      world.fleet.running.map(async (running) => {
        const now = (await metricsOf(running))('process_resident_memory_bytes');
        return `${running.name} ${mib(this.#warm.get(running) ?? now)} → ${mib(now)}`;
      }),
    );
    return parts.join(', ');
  }
}

/** Waits until nothing but the gateways' own is open; finds what stays. */
export async function idle(world: World): Promise<readonly Finding[]> {
  const until = performance.now() + IDLE_WITHIN_MS;
  let left = await leftOpen(world);
  while (left.length > 0 && performance.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    left = await leftOpen(world);
  }
  return left.map((what) => ({ kind: 'leak', what }));
}

async function leftOpen(world: World): Promise<readonly string[]> {
  const { fleet, upstreams } = world;
  const left: string[] = [];
  for (const running of fleet.running) {
    const count = (await metricsOf(running))('headgate_streams_open');
    if (count !== 0) left.push(`gateway ${running.name}: headgate_streams_open is ${count}`);
  }
  const gateways = fleet.running.length;
  for (const { name, streamCount, socketCount } of Object.values(upstreams)) {
    const own = WATCHED.includes(name) ? gateways : 0;
    if (streamCount !== own) left.push(`${name} has ${streamCount} streams, its gateways need ${own}`);
    const sockets = gateways * IDLE_SOCKETS;
    if (socketCount > sockets) left.push(`${name} has ${socketCount} connections, more than ${sockets}`);
  }
  return left;
}

/** @returns the sum of a metric's series; NaN where there is none. */
async function metricsOf({ gateway }: Running): Promise<(name: string) => number> {
  const text = await (await fetch(`${gateway.status}/metrics`)).text();
  return (name) => {
    const values = [...text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gm'))].map(([, value]) =>
      Number(value),
    );
    return values.length === 0 ? Number.NaN : values.reduce((sum, value) => sum + value, 0);
  };
}

const mib = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`;
