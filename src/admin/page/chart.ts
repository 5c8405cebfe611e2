/** The chart of the last minutes: the share of hits as a line, and below it how many there were, as bars. */
import type { Answered } from './contract.ts';
import { h, svg } from './dom.ts';
import { hitRatio, percent, total } from './format.ts';
import { type Bar, barsOf, lineOf } from './geometry.ts';

const WIDTH = 720;
const HEIGHT = 150;
/** The line has the upper part, the bars the lower. */
const LINE = { left: 0, top: 8, width: WIDTH, height: 84 };
const BARS = { left: 0, top: 104, width: WIDTH, height: 46 };

export interface Chart {
  readonly element: Element;
  update(samples: readonly Answered[], slots: number): void;
}

/** @param slots steps that the whole width stands for. */
export function createChart(): Chart {
  const grid = svg('g', { class: 'grid' });
  for (const share of [0, 0.5, 1]) {
    const y = String(LINE.top + LINE.height * (1 - share));
    grid.append(svg('line', { x1: '0', x2: String(WIDTH), y1: y, y2: y }));
  }
  const area = svg('path', { class: 'area' });
  const line = svg('path', { class: 'line' });
  const bars = svg('g', {});
  const drawing = svg(
    'svg',
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: 'none',
      'aria-hidden': 'true',
      focusable: 'false',
    },
    ...[grid, area, line, bars],
  );
  const figure = h(
    'div',
    { class: 'chart', role: 'img' },
    drawing,
    h('span', { class: 'y top' }, '100 %'),
    h('span', { class: 'y middle' }, '50 %'),
    h('span', { class: 'y bottom' }, '0 %'),
    h('p', { class: 'x' }, h('span', {}, '10 min ago'), h('span', {}, 'now')),
  );
  return {
    element: figure,
    update(samples, slots) {
      const paths = lineOf(samples, slots, LINE);
      line.setAttribute('d', paths.line);
      area.setAttribute('d', paths.area);
      bars.replaceChildren(...barsOf(samples, slots, BARS).map(barOf));
      figure.setAttribute('aria-label', described(samples));
    },
  };
}

function barOf({ kind, x, y, width, height }: Bar): SVGElement {
  const at = { x: x.toFixed(1), y: y.toFixed(1), width: width.toFixed(1), height: height.toFixed(1) };
  return svg('rect', { class: kind, ...at });
}

function described(samples: readonly Answered[]): string {
  const { hit, stale, miss, bypass } = total(samples);
  if (hit + stale + miss + bypass === 0) return 'Hit ratio over the last ten minutes: nothing was asked.';
  return `Hit ratio over the last ten minutes: ${percent(hitRatio({ hit, stale, miss, bypass }))}; ${hit} hits, ${stale} stale, ${miss} misses, ${bypass} bypassed.`;
}
