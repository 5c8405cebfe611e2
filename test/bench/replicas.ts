/** Two gateways that share Redis: how soon a change that the upstream tells one of them is read on the other. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projectRoot } from '../demo/gateway.ts';
import { call, until } from '../support/mcp.ts';
import { PAGE, startWiki, statusOf, textOf, twoNames, type Wiki } from '../support/pair.ts';
import { startRedis } from '../support/redis.ts';
import { type Child, startChild } from './children.ts';
import type { Latency } from './singles.ts';
import { quantile } from './stats.ts';

/** The one that listens to the upstream, and the one that does not: it hears through Redis alone. */
export type Replica = 'told' | 'other';

export interface Replicas {
  /**
   * From the upstream's notification to the end of the first read that brings the new content, read after read;
   * throws unless every read is answered, with that or what was before it.
   */
  freshness(where: Replica, count: number): Promise<Latency>;
  stop(): Promise<void>;
}

/** What no change takes. */
const LOST_MS = 10_000;

export async function startReplicas(): Promise<Replicas> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
  const agent = new Agent({ keepAlive: true });
  const closers: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    agent.destroy();
    for (const close of closers.splice(0).reverse()) await close();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const wiki = await startWiki();
    closers.push(wiki.close);
    const redis = await startRedis();
    closers.push(redis.close);
    const start = async (which: 'first' | 'second'): Promise<Child> => {
      const file = join(folder, `${which}.yaml`);
      writeFileSync(file, twoNames(wiki, which, redis.url));
      const child = await startChild({
        name: `headgate, the ${which}`,
        command: process.execPath,
        args: [join(projectRoot(import.meta.dirname), 'dist', 'main.js'), 'serve', '-c', file],
        port: /^listening {2}mcp {5}http:\/\/127\.0\.0\.1:(\d+)$/m,
        core: 'server',
      });
      closers.push(child.stop);
      return child;
    };
    const children = { told: await start('first'), other: await start('second') };
    const read = (where: Replica) =>
      call(`http://127.0.0.1:${children[where].port}/quiet`, 'resources/read', { uri: PAGE }, { agent });
    const again = async () => /detail=rewatch/.test(statusOf(await read('told')));
    await until(again, 'changes are told', LOST_MS);
    return { freshness: (where, count) => freshness(wiki, read, where, count), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function freshness(
  wiki: Wiki,
  read: (where: Replica) => ReturnType<typeof call>,
  where: Replica,
  count: number,
): Promise<Latency> {
  const version = async (at: Replica): Promise<number> => Number(textOf(await read(at))?.slice(1));
  const settled = async (): Promise<void> => {
    for (const at of ['told', 'other'] as const)
      await until(async () => (await version(at)) === wiki.version, `v${wiki.version}, ${at}`, LOST_MS);
  };
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    // Both hold what is to be over.
    await settled();
    const before = wiki.version;
    const startedAt = performance.now();
    wiki.change();
    let seen = before;
    while (seen === before && performance.now() - startedAt < LOST_MS) seen = await version(where);
    if (seen !== wiki.version) throw new Error(`v${seen} instead of v${wiki.version}`);
    times.push(performance.now() - startedAt);
  }
  times.sort((a, b) => a - b);
  return { p50Ms: quantile(times, 0.5), p99Ms: quantile(times, 0.99) };
}
