/** The chart for the README: what has a target, each bar as a share of its goal, floor and goal marked. */
import { type Line, short } from './report.ts';

const WIDTH = 760;
const ROW = 30;
const TOP = 58;
const LABEL = 330;
const BAR = 300;
/** The right edge of the scale, in goals. */
const MOST = 1.5;

/** @param caption where and when it was measured. */
export function chart(lines: readonly Line[], caption: string): string {
  const rows = lines.filter(({ target, value }) => target !== undefined && Number.isFinite(value.median));
  const height = TOP + rows.length * ROW + 34;
  const goalAt = LABEL + BAR / MOST;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="Headgate: measured figures against their goals" font-family="system-ui, sans-serif" font-size="12">
<style>
text { fill: #1f2328 } .dim { fill: #59636e } .track { fill: #eaeef2 } .goal { fill: #1a7f37 } .between { fill: #9a6700 } .below { fill: #cf222e } .mark { stroke: #1f2328 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .dim { fill: #9198a1 } .track { fill: #21262d } .goal { fill: #3fb950 } .between { fill: #d29922 } .below { fill: #f85149 } .mark { stroke: #e6edf3 } }
</style>
<text x="8" y="20" font-size="15" font-weight="600">Measured against the goals</text>
<text x="8" y="38" class="dim">${escaped(caption)}</text>
<text x="${goalAt}" y="${TOP - 6}" class="dim" text-anchor="middle">goal</text>
${rows.map((row, i) => bar(row, TOP + i * ROW)).join('\n')}
<line x1="${goalAt}" x2="${goalAt}" y1="${TOP}" y2="${TOP + rows.length * ROW}" class="mark" stroke-dasharray="3 3"/>
<text x="8" y="${height - 12}" class="dim">Longer is better. The short mark in a bar is the floor. Green: goal reached; ochre: between; red: below the floor.</text>
</svg>
`;
}

function bar({ work, against, unit, value, target, verdict }: Line, top: number): string {
  if (target === undefined) return '';
  const share = (figure: number): number =>
    target.better === 'higher' ? figure / target.goal : target.goal / Math.max(figure, 1e-9);
  const length = (figure: number): number => (Math.min(MOST, Math.max(0, share(figure))) / MOST) * BAR;
  const floorAt = LABEL + length(target.floor);
  const colour = verdict === 'goal' ? 'goal' : verdict === 'between' ? 'between' : 'below';
  return `<text x="${LABEL - 10}" y="${top + 18}" text-anchor="end">${escaped(`${work} ÷ ${against}`)}</text>
<rect x="${LABEL}" y="${top + 6}" width="${BAR}" height="16" rx="3" class="track"/>
<rect x="${LABEL}" y="${top + 6}" width="${length(value.median).toFixed(1)}" height="16" rx="3" class="${colour}"/>
<line x1="${floorAt.toFixed(1)}" x2="${floorAt.toFixed(1)}" y1="${top + 4}" y2="${top + 24}" class="mark"/>
<text x="${LABEL + BAR + 8}" y="${top + 18}">${escaped(`${short(value.median)} ${unit}`)} <tspan class="dim">/ ${target.goal}</tspan></text>`;
}

function escaped(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}
