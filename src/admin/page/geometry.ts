/** Where the parts of the chart are. Pure. */
import type { Answered } from './contract.ts';
import { hitRatio } from './format.ts';

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

export interface Bar {
  readonly kind: keyof Answered;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** From the bottom up. */
const KINDS = ['hit', 'stale', 'miss', 'bypass'] as const;

/** The newest step stands at the right; where there are fewer steps than slots, the left stays empty. */
function placeOf(at: number, samples: readonly Answered[], slots: number, { left, width }: Box) {
  const step = width / slots;
  return { x: left + (slots - samples.length + at) * step, step };
}

/** The bars of each step, as high as the busiest step allows; every count that is not 0 can be seen. */
export function barsOf(samples: readonly Answered[], slots: number, box: Box): readonly Bar[] {
  const most = Math.max(1, ...samples.map((sample) => KINDS.reduce((sum, kind) => sum + sample[kind], 0)));
  return samples.flatMap((sample, at) => {
    const { x, step } = placeOf(at, samples, slots, box);
    let y = box.top + box.height;
    return KINDS.filter((kind) => sample[kind] > 0).map((kind) => {
      const height = Math.max(1, (sample[kind] / most) * box.height);
      y -= height;
      return { kind, x: x + step * 0.1, y, width: step * 0.8, height };
    });
  });
}

/** The share of hits in each step; steps in which nothing was asked carry the line on, and begin none. */
export function lineOf(
  samples: readonly Answered[],
  slots: number,
  box: Box,
): { readonly line: string; readonly area: string } {
  const bottom = (box.top + box.height).toFixed(1);
  const points: string[] = [];
  let first = '';
  let last = '';
  let ratio: number | undefined;
  for (const [at, sample] of samples.entries()) {
    ratio = hitRatio(sample) ?? ratio;
    if (ratio === undefined) continue;
    const { x, step } = placeOf(at, samples, slots, box);
    const y = (box.top + box.height * (1 - ratio)).toFixed(1);
    if (points.length === 0) first = x.toFixed(1);
    last = (x + step).toFixed(1);
    points.push(`${x.toFixed(1)} ${y}`, `${last} ${y}`);
  }
  if (points.length === 0) return { line: '', area: '' };
  const line = `M${points.join('L')}`;
  return { line, area: `${line}L${last} ${bottom}L${first} ${bottom}Z` };
}
