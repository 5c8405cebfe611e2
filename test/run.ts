/**
 * `npm test`: runs every compiled test file, says what failed in full, and which rules are proven.
 *
 *     npm test                          everything
 *     npm test -- unit/protocol cache   only files whose path holds one of these
 *     npm test -- hostile               the hard cases: hostile clients, too much load, proxies in between
 *
 * Two files run at a time; then, one at a time, those that measure memory or time or press hard.
 * A test that is skipped is printed with its reason; with `CI` set, one skipped for a missing tool is a failure,
 * and so is, always, one skipped without a reason.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { DUE_PART, REQUIREMENTS } from './requirements.ts';
import { endAll, type FileReport, runFile } from './runner/file.ts';

/** How long one file may take; those under `integration/` and `hostile/` start processes. */
const TIMEOUT_MS = { unit: 90_000, process: 240_000 };
const PROCESS_FOLDERS = ['integration/', 'hostile/'];
/** What measures memory or time, or waits for deadlines of a gateway in trouble, has the machine to itself. */
const ALONE = [
  'hostile/',
  'integration/endpoints',
  'integration/faults',
  'integration/gateway',
  'integration/large-reads',
  'integration/redis.faults',
  'integration/replicas.faults',
  'integration/subscriptions',
];

interface Outcome extends FileReport {
  /** `unit/layers`: the path below test/ without its ending. */
  readonly file: string;
}

const scratch = mkdtempSync(join(tmpdir(), 'headgate-test-'));
const colour = process.stdout.isTTY && !process.env.NO_COLOR;
const paint = (code: number, text: string): string => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);
const red = (text: string): string => paint(31, text);
const green = (text: string): string => paint(32, text);
const yellow = (text: string): string => paint(33, text);
const grey = (text: string): string => paint(90, text);

const print = (line: string): void => {
  process.stdout.write(`${line}\n`);
};
const indent = (text: string, by: string): string => text.trimEnd().replaceAll(/^/gm, by);

/**
 * The compiled test files below `root`, sorted. A file whose source is gone stays in the output folder after a
 * rename: it is left out.
 */
function findTests(root: string): readonly string[] {
  const sources = join(process.cwd(), 'test');
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.js') && !path.includes('node_modules'))
    .filter((path) => existsSync(join(sources, path.replace(/\.js$/, '.ts'))))
    .map((path) => path.split(sep).join('/'))
    .sort();
}

const isBelow = (path: string, parts: readonly string[]): boolean =>
  parts.some((part) => path.startsWith(part));

async function runAll(
  root: string,
  files: readonly string[],
  { width }: { readonly width: number },
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  const queue = [...files];
  const worker = async (): Promise<void> => {
    for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
      const report = await runFile(
        join(root, path),
        join(scratch, `${path.replaceAll('/', '.')}.record`),
        isBelow(path, PROCESS_FOLDERS) ? TIMEOUT_MS.process : TIMEOUT_MS.unit,
      );
      const outcome = strict({ ...report, file: path.replace(/\.test\.js$/, '') });
      outcomes.push(outcome);
      printFile(outcome);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
  return outcomes;
}

/** Turns skips that nobody may overlook into failures. */
function strict(outcome: Outcome): Outcome {
  const overlooked = outcome.skipped.filter(
    ({ reason }) => reason === '' || (process.env.CI && /\binstall\b/i.test(reason)),
  );
  const failures = overlooked.map(({ title, reason }) => ({
    title,
    detail: reason === '' ? 'skipped without a reason' : `skipped: ${reason}`,
  }));
  return {
    ...outcome,
    failures: [...outcome.failures, ...failures],
    skipped: outcome.skipped.filter((entry) => !overlooked.includes(entry)),
  };
}

function printFile({ file, passed, failures, skipped, notes, stdout, stderr, durationMs }: Outcome): void {
  const counts = [
    `${passed.length} passed`,
    ...(failures.length > 0 ? [`${failures.length} failed`] : []),
    ...(skipped.length > 0 ? [`${skipped.length} skipped`] : []),
  ].join(', ');
  const sign = failures.length > 0 ? red('✗') : green('✓');
  print(`${sign} ${file.padEnd(44)} ${counts.padEnd(24)} ${grey(`${(durationMs / 1000).toFixed(2)} s`)}`);
  for (const { title, reason } of skipped) print(yellow(`    skipped: ${title}: ${reason}`));
  for (const note of notes) print(grey(indent(note, '    ℹ ')));
  if (stdout !== '') print(grey(indent(stdout, '    │ ')));
  for (const { title, detail } of failures) {
    print(red(`    ✗ ${title}`));
    if (detail !== '') print(indent(detail, '        '));
  }
  if (failures.length > 0 && stderr !== '') print(indent(stderr, '    stderr │ '));
}

/** Rule ids that the names cite; a name carries the names of its suites. */
function citedIn(names: readonly string[]): ReadonlySet<string> {
  return new Set(names.flatMap((name) => name.match(/\bR[1-9]\d*\b/g) ?? []));
}

/** Prints which rules are proven; returns how many things about them are wrong. */
function printRules(outcomes: readonly Outcome[]): number {
  const cited = citedIn(outcomes.flatMap(({ passed }) => passed));
  const due = REQUIREMENTS.filter((rule) => rule.due <= DUE_PART);
  const missing = due.filter(({ id }) => !cited.has(id));
  const known = new Set<string>(REQUIREMENTS.map(({ id }) => id));
  const unknown = [...cited].filter((id) => !known.has(id));
  const rest = missing.length === 0 ? '' : `; without a test: ${missing.map(({ id }) => id).join(', ')}`;
  print(`rules proven: ${due.length - missing.length} of ${due.length} due with part ${DUE_PART}${rest}`);
  for (const { id, title } of missing) print(grey(`    ${id.padEnd(4)} ${title}`));
  if (unknown.length > 0) print(red(`rules cited that do not exist: ${unknown.join(', ')}`));
  return (missing.length > 0 ? 1 : 0) + (unknown.length > 0 ? 1 : 0);
}

async function main(filters: readonly string[]): Promise<number> {
  const root = import.meta.dirname;
  const all = findTests(root);
  const wanted =
    filters.length === 0 ? all : all.filter((path) => filters.some((part) => path.includes(part)));
  if (wanted.length === 0) {
    print(
      filters.length === 0
        ? 'no test was found: compile first'
        : `no test file matches: ${filters.join(' ')}`,
    );
    print('0 passed, 1 failed');
    return 1;
  }
  const together = wanted.filter((path) => !isBelow(path, ALONE));
  const alone = wanted.filter((path) => isBelow(path, ALONE));
  const outcomes = [
    ...(await runAll(root, together, { width: 2 })),
    ...(await runAll(root, alone, { width: 1 })),
  ];
  const broken = outcomes.flatMap(({ file, failures }) => failures.map(({ title }) => `${file}: ${title}`));
  print('');
  for (const line of broken) print(red(`✗ ${line}`));
  const skippedCount = outcomes.reduce((sum, { skipped }) => sum + skipped.length, 0);
  if (skippedCount > 0) print(yellow(`${skippedCount} skipped`));
  const ruleFaults = filters.length === 0 ? printRules(outcomes) : 0;
  const passedCount = outcomes.reduce((sum, { passed }) => sum + passed.length, 0);
  const failedCount = broken.length + ruleFaults;
  print(`${passedCount} passed, ${failedCount} failed`);
  return failedCount === 0 ? 0 : 1;
}

process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    endAll();
    process.exit(130);
  });
}
process.exitCode = await main(process.argv.slice(2));
