/** Medians of rounds, and ratios taken round by round: what is common to a round (a busy machine) falls out. */

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** Of no values: all NaN. */
export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  return { median: quantile(sorted, 0.5), min: quantile(sorted, 0), max: quantile(sorted, 1) };
}

/** @param sorted ascending. Between two values: their mean, weighted. */
export function quantile(sorted: readonly number[], q: number): number {
  if (sorted.length === 0) return Number.NaN;
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)] as number;
  const high = sorted[Math.ceil(at)] as number;
  return low + (high - low) * (at - Math.floor(at));
}

/** `top[i] / bottom[i]`, spread. */
export function ratioSpread(top: readonly number[], bottom: readonly number[]): Spread {
  return spread(top.map((value, round) => value / (bottom[round] as number)));
}

/** `left[i] - right[i]`, spread. */
export function differenceSpread(left: readonly number[], right: readonly number[]): Spread {
  return spread(left.map((value, round) => value - (right[round] as number)));
}
