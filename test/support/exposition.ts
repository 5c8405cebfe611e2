/** The metrics: what the README says there are, and what a scrape says. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A metric without its series. */
export interface Family {
  readonly type: string;
  /** Names, sorted; without the `le` of a histogram. */
  readonly labels: readonly string[];
}

/** What the table of the README has, by name. */
export function documentedFamilies(): ReadonlyMap<string, Family> {
  const readme = readFileSync(join(process.cwd(), 'README.md'), 'utf8');
  const section = readme.slice(readme.indexOf('\n### Metrics\n'), readme.indexOf('\n### Access log\n'));
  const rows = [...section.matchAll(/^\| (`[^|]+`) \| (counter|gauge|histogram) \| ([^|]*)\|/gm)];
  return new Map(
    rows.flatMap(([, names = '', type = '', labels = '']) => {
      const families = [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name as string);
      // Several metrics in a row have the same labels, or each its own.
      const each = labels.split(';').map((list) => list.match(/\w+/g)?.sort() ?? []);
      return families.map((name, i) => [name, { type, labels: each[i] ?? each[0] ?? [] }] as const);
    }),
  );
}

/** One line. */
export interface Series {
  /** The metric it belongs to: a histogram's without `_bucket`, `_sum` and `_count`. */
  readonly family: string;
  /** As written. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A scrape. */
export interface Exposition {
  readonly types: ReadonlyMap<string, string>;
  readonly series: readonly Series[];
}

export function parseExposition(text: string): Exposition {
  const types = new Map([...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => [name, type]));
  const familyOf = (name: string): string => {
    const whole = name.replace(/_(bucket|sum|count)$/, '');
    return types.has(name) ? name : whole;
  };
  const series = [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(
    ([, name = '', labels = '', value]) => ({
      family: familyOf(name),
      name,
      labels: Object.fromEntries(
        [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, said]) => [label, said]),
      ) as Record<string, string>,
      value: Number(value),
    }),
  );
  return { types: types as Map<string, string>, series };
}

/** The label names that the series of a family have in a scrape, without `le`. */
export function labelsOf({ series }: Exposition, family: string): ReadonlySet<string> {
  const names = series.filter((one) => one.family === family).flatMap(({ labels }) => Object.keys(labels));
  return new Set(names.filter((name) => name !== 'le'));
}
