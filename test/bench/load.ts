/** Load on one server: by wrk where it is there, otherwise by sockets of our own. Both check every answer. */
import { generate } from './generator.ts';
import type { Job, Loaded } from './job.ts';
import { wrk } from './wrk.ts';

export type Engine = 'wrk' | 'sockets';

/** Runs a job. `sockets` compares every byte; wrk the ends of what is large. */
export function load(job: Job, engine: Engine): Promise<Loaded> {
  const { until } = job;
  return engine === 'wrk' && 'seconds' in until ? wrk(job, until.seconds) : generate(job);
}
