/** Load on one server: by wrk where it is there and fair, otherwise by sockets of our own. Both check every answer. */
import { generate } from './generator.ts';
import type { Job, Loaded } from './job.ts';
import { wrk } from './wrk.ts';

export type Engine = 'wrk' | 'sockets';

/**
 * Answers above this are not for wrk: its Lua keeps one copy of a constant body, but makes a new string of each
 * answer that differs (a hit tells the rest of its time to live), and then measures itself.
 */
const WRK_BODY_BYTES = 16 * 1024;

/** Runs a job. Every byte of every answer is compared. */
export function load(job: Job, engine: Engine): Promise<Loaded> {
  const { until, expected } = job;
  const byWrk = engine === 'wrk' && 'seconds' in until && expected.suffix.length <= WRK_BODY_BYTES;
  return byWrk ? wrk(job, until.seconds) : generate(job);
}
