/** The isolation model at work: `test/hostile/isolation` for a bounded number of runs, `npm run fuzz` for a time. */
import fc, { type RunDetails } from 'fast-check';
import { RUN } from './isolation-moves.ts';
import { World } from './isolation-world.ts';

/** How far to look; the first bound that is met ends it. */
export interface Reach {
  readonly seed: number;
  readonly runCount: number;
  readonly forMs: number;
}

/** Runs fleets, each through its own moves; one that fails is made small. */
export function isolate({ seed, runCount, forMs }: Reach): Promise<RunDetails<unknown>> {
  const holds = fc.asyncProperty(RUN, async ({ moves, ...start }) => {
    const world = new World(start);
    for (const move of moves) await world.move(move);
    await world.drain();
  });
  return fc.check(holds, { seed, numRuns: runCount, interruptAfterTimeLimit: forMs }) as Promise<
    RunDetails<unknown>
  >;
}
