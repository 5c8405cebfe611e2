/**
 * `npm run soak`: two real gateways and a real Redis, in front of upstreams that change, for a while.
 *
 *     npm run soak -- --seconds 60             default: 600 s
 *     npm run soak -- --seconds 600 --seed 7   the choices of another run; what is on its way when differs
 *
 * Callers read, walk, call and listen; upstreams change, restart and add and remove; Redis and gateways are ended and
 * started. What an answer may show is said in `oracle.ts`, what a listen must tell in `listen-oracle.ts`, what may be
 * left at the end in `idle.ts`. Prints the seed, a line now and then, each finding, and `N findings`; exits 1 when
 * there are any.
 */
import { setMaxListeners } from 'node:events';
import { parseArgs } from 'node:util';
import { missingRedis } from '../support/redis.ts';
import { callOne, changeOne, readOne, relistOne, repeat, rest, sweep, walkOne } from './actors.ts';
import { HEAL_MS } from './bounds.ts';
import { idle, Memory } from './idle.ts';
import { listens } from './listeners.ts';
import { Mischief } from './mischief.ts';
import { World } from './world.ts';

const READERS = 5;
const WALKERS = 2;
const LISTENERS = 10;
const PROGRESS_MS = 15_000;
/** Everything has started and been read before anything goes wrong. */
const CALM_MS = 4_000;

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function told({ counts, findings }: World): string {
  const figures = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
  return `${figures.join(', ')}, ${findings.count} findings`;
}

/** All that happens until the signal. */
async function act(world: World, memory: Memory, signal: AbortSignal): Promise<void> {
  const again = (
    actor: string,
    count: number,
    pauseMs: readonly [number, number],
    turn: (world: World, random: ReturnType<World['random']>) => Promise<void> | void,
  ): readonly Promise<void>[] =>
    Array.from({ length: count }, (_, at) => {
      const random = world.random(`${actor} ${at}`);
      return repeat(signal, random, pauseMs, () => turn(world, random));
    });
  const mischief = new Mischief(world, world.random('mischief'));
  const random = world.random('mischief, when');
  const misbehave = async (): Promise<void> => {
    await rest(signal, CALM_MS);
    await repeat(signal, random, [3_000, 9_000], () => mischief.once());
  };
  await Promise.all([
    ...again('reader', READERS, [10, 120], readOne),
    ...again('walker', WALKERS, [50, 900], walkOne),
    ...again('caller', 1, [50, 900], callOne),
    ...again('changer', 1, [50, 1_200], changeOne),
    ...again('lister', 1, [3_000, 12_000], relistOne),
    ...again('watcher', 1, [1_000, 1_000], async () => {
      mischief.look();
      await memory.note(world);
    }),
    ...Array.from({ length: LISTENERS }, (_, at) => listens(world, world.random(`listener ${at}`), signal)),
    misbehave(),
  ]);
}

async function soak(seed: number, seconds: number): Promise<number> {
  const world = await World.start(seed);
  const memory = new Memory();
  try {
    const over = AbortSignal.timeout(seconds * 1000);
    // Every actor waits for it.
    setMaxListeners(0, over);
    const startedAt = performance.now();
    const progress = setInterval(
      () =>
        print(`${String(Math.round((performance.now() - startedAt) / 1000)).padStart(5)} s  ${told(world)}`),
      PROGRESS_MS,
    );
    await act(world, memory, over);
    clearInterval(progress);
    await new Promise((resolve) => setTimeout(resolve, HEAL_MS));
    await sweep(world, world.random('sweep'));
    world.findings.add(...(await idle(world)), ...(await memory.grown(world)));
    print(`memory: ${await memory.told(world)}`);
    for (const { name } of world.fleet.running) world.findings.add(...(await world.fleet.end(name)));
    print(`drains: ${world.fleet.drainsMs.map((ms) => Math.round(ms)).join(' ')} ms`);
  } finally {
    await world.close();
  }
  if (world.findings.count > 0)
    for (const line of world.troubles.lines(world.findings.startedAt)) print(line);
  for (const line of world.findings.lines()) print(line);
  print(`seed ${seed}: ${told(world)}`);
  print(`${world.findings.count} findings`);
  return world.findings.count === 0 ? 0 : 1;
}

async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { seconds: { type: 'string' }, seed: { type: 'string' } },
  });
  const seconds = Number(values.seconds ?? 600);
  const seed = Number(values.seed ?? Math.floor(Math.random() * 1e9));
  if (!(seconds > 0) || !Number.isSafeInteger(seed)) {
    process.stderr.write('--seconds N --seed N\n');
    return 2;
  }
  const missing = missingRedis();
  print(`seed ${seed}, ${seconds} s`);
  if (missing !== undefined) {
    print(`${missing}; one gateway, without it`);
    if (process.env.CI !== undefined) return 1;
  }
  return soak(seed, seconds);
}

process.exitCode = await main(process.argv.slice(2));
