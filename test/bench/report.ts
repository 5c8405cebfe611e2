/** The results as values, and as a table for people. */
import type { Spread } from './stats.ts';
import { type Target, targetOf, type Verdict, verdictOf } from './targets.ts';

/** One line of the table: a figure of Headgate against something. */
export interface Line {
  readonly work: string;
  readonly against: string;
  /** `×`: CPU of the other over CPU of Headgate, or as `unit` says. */
  readonly unit: string;
  readonly value: Spread;
  readonly target: Target | undefined;
  readonly verdict: Verdict;
}

/** One contender of a load work, over all rounds. */
export interface Figure {
  readonly work: string;
  readonly contender: string;
  readonly requestsPerSecond: Spread;
  readonly cpuUs: Spread;
  /** How much of its core the server used: below 0.9 it was not what held the load up. */
  readonly busy: Spread;
  readonly p50Us: Spread;
  readonly p99Us: Spread;
  readonly checked: number;
}

export function line(work: string, against: string, unit: string, value: Spread): Line {
  const target = targetOf(work, against);
  return { work, against, unit, value, target, verdict: verdictOf(value, target) };
}

/** Three significant digits. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString('en-US');
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

export function shown({ median, min, max }: Spread): string {
  return min === max ? short(median) : `${short(median)} (${short(min)}–${short(max)})`;
}

export function figuresTable(figures: readonly Figure[]): string {
  const rows = figures.map((one) => [
    one.work,
    one.contender,
    shown(one.requestsPerSecond),
    shown(one.cpuUs),
    short(one.busy.median),
    shown(one.p50Us),
    shown(one.p99Us),
    String(one.checked),
  ]);
  return table(
    ['work', 'server', 'requests/s', 'CPU µs a request', 'busy', 'p50 µs', 'p99 µs', 'answers checked'],
    rows,
  );
}

export function linesTable(lines: readonly Line[]): string {
  const rows = lines.map(({ work, against, unit, value, target, verdict }) => [
    work,
    against,
    `${shown(value)} ${unit}`,
    target === undefined ? '–' : String(target.floor),
    target === undefined ? '–' : String(target.goal),
    verdict,
  ]);
  return table(['work', 'against', 'figure', 'floor', 'goal', 'verdict'], rows);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((name, i) =>
    Math.max(name.length, ...rows.map((row) => (row[i] as string).length)),
  );
  const cells = (row: readonly string[]): string =>
    `| ${row.map((cell, i) => cell.padEnd(widths[i] as number)).join(' | ')} |`;
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`;
  return [cells(head), rule, ...rows.map(cells)].join('\n');
}
