/** The targets of the project, as data. */
import type { Spread } from './stats.ts';

/** What is held against a floor and a goal. */
export interface Target {
  readonly goal: number;
  readonly floor: number;
  /** Which way is better. */
  readonly better: 'higher' | 'lower';
}

export type Verdict = 'goal' | 'between' | 'below the floor' | 'no target';

const atLeast = (goal: number, floor: number): Target => ({ goal, floor, better: 'higher' });
const atMost = (goal: number, floor: number): Target => ({ goal, floor, better: 'lower' });

/** By `work/against`. */
const TARGETS: Readonly<Record<string, Target>> = {
  'public 2 KB hit/fastify constant': atLeast(0.95, 0.8),
  'private 2 KB hit/fastify constant': atLeast(0.88, 0.72),
  'public 2 KB hit/nginx proxy_cache': atLeast(0.55, 0.45),
  '64 KB hit/constant Buffer': atLeast(0.95, 0.8),
  '1 MB hit/constant Buffer': atLeast(0.95, 0.8),
  'streamed 1 KB call/nginx proxy_pass': atLeast(0.33, 0.25),
  'streamed 1 KB call/reply-from': atLeast(1.4, 1.2),
  'streamed 100 KB call/nginx proxy_pass': atLeast(0.9, 0.7),
  'public 2 KB hit/SDK server': atLeast(15, 8),
  'SSE event added, p50/direct': atMost(0.25, 0.5),
  'idle stream, RSS/before': atMost(32, 48),
  'metrics + access log/none': atMost(3, 6),
};

export function targetOf(work: string, against: string): Target | undefined {
  return TARGETS[`${work}/${against}`];
}

/** Of the median. */
export function verdictOf({ median }: Spread, target: Target | undefined): Verdict {
  if (target === undefined) return 'no target';
  const sign = target.better === 'higher' ? 1 : -1;
  if (sign * median >= sign * target.goal) return 'goal';
  return sign * median >= sign * target.floor ? 'between' : 'below the floor';
}
