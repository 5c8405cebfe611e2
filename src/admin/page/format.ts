/** Numbers and times for people. Pure. */
import type { Answered } from './contract.ts';

const STEPS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** The two largest units of a time: `3 h 20 min`. */
export function duration(ms: number): string {
  const first = STEPS.findIndex(([, size]) => ms >= size);
  if (first < 0) return ms < 1 ? `${ms.toFixed(2)} ms` : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  const [unit, size] = STEPS[first] as (typeof STEPS)[number];
  const [smallerUnit, smallerSize] = STEPS[first + 1] ?? [undefined, size];
  const rest = Math.floor((ms % size) / smallerSize);
  const head = `${Math.floor(ms / size)} ${unit}`;
  return smallerUnit === undefined || rest === 0 ? head : `${head} ${rest} ${smallerUnit}`;
}

/** How long ago, in one unit. */
export function ago(ms: number): string {
  if (ms < 2_000) return 'just now';
  const [unit, size] = STEPS.find(([, step]) => ms >= step) ?? ['s', 1_000];
  return `${Math.floor(ms / size)} ${unit} ago`;
}

/** Milliseconds that are measured: three figures. */
export function latency(ms: number): string {
  if (ms >= 10_000) return `${Math.round(ms / 1_000)} s`;
  if (ms >= 1_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

const SIZES = ['B', 'KiB', 'MiB', 'GiB'] as const;

export function bytes(count: number): string {
  const power = Math.min(SIZES.length - 1, count < 1 ? 0 : Math.floor(Math.log2(count) / 10));
  const value = count / 1024 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${SIZES[power]}`;
}

export function count(value: number): string {
  return value.toLocaleString('en');
}

/** `1 entry`, `2 entries`. */
export function many(value: number, one: string, more = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : more}`;
}

/** Of what was asked of the cache, bypasses aside, the share that no upstream was asked for; undefined of nothing. */
export function hitRatio({ hit, stale, miss }: Answered): number | undefined {
  const all = hit + stale + miss;
  return all === 0 ? undefined : hit / all;
}

/** Never 100 % while there was a miss, never 0 % while there was a hit. */
export function percent(ratio: number | undefined): string {
  if (ratio === undefined) return '\u2013';
  if (ratio > 0.99 && ratio < 1) return `${Math.min(99.9, Math.floor(ratio * 1_000) / 10)} %`;
  if (ratio > 0 && ratio < 0.01) return `${Math.max(0.1, Math.ceil(ratio * 1_000) / 10)} %`;
  return `${Math.round(ratio * 100)} %`;
}

/** A time of day, to the second. */
export function clock(at: number): string {
  return new Date(at).toLocaleTimeString('en-GB');
}

export function total(samples: Iterable<Answered>): Answered {
  const sum = { hit: 0, stale: 0, miss: 0, bypass: 0 };
  for (const { hit, stale, miss, bypass } of samples) {
    sum.hit += hit;
    sum.stale += stale;
    sum.miss += miss;
    sum.bypass += bypass;
  }
  return sum;
}
