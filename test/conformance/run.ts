/**
 * `npm run conformance`: the official suite of two revisions, each against an upstream that passes all of it, then
 * through the gateway: in front of that upstream, of one beside it on the same route, and of the one that speaks the
 * other revision. What is lost on the way fails the run.
 *
 * `--direct` stops after the upstream itself, `--scenario NAME` runs one scenario. The last line is `N passed, M failed`.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { projectRoot, startGateway } from '../demo/gateway.ts';
import { start as startLibrary } from '../demo/servers/library.ts';
import type { DemoServer } from '../demo/servers/serve.ts';
import { runInspector } from './inspector.ts';
import { faultsOf, judge, type Loss, type Results, readExpected, type Verdict } from './judge.ts';
import { startOlderUpstream } from './older-upstream.ts';
import { bringSuite, type Revision, runSuite, SCENARIO_COUNT, type Suite } from './suite.ts';
import { start as startUpstream } from './upstream.ts';

const root = projectRoot(import.meta.dirname);
const folder = join(root, 'test', 'conformance');

interface Options {
  readonly direct: boolean;
  readonly scenario: string | undefined;
}

/** What a run has at hand. */
interface Bench extends Options {
  readonly suite: Suite;
  readonly scratch: string;
  readonly signal: AbortSignal;
  /** What to undo, newest first. */
  readonly cleanup: Array<() => Promise<unknown>>;
}

interface Tally {
  readonly passed: number;
  readonly failed: number;
}

async function main(): Promise<number> {
  const options = readOptions();
  if (options === undefined) return 2;
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());
  const cleanup: Bench['cleanup'] = [];
  const scratch = await mkdtemp(join(tmpdir(), 'headgate-conformance-'));
  let tally: Tally = { passed: 0, failed: 1 }; // what a run that broke off is worth
  try {
    const suite = await bringSuite(folder, interrupted.signal);
    tally = await compare({ ...options, suite, scratch, signal: interrupted.signal, cleanup });
  } catch (error) {
    console.error(`conformance: ${messageOf(error)}`);
  } finally {
    for (const undo of cleanup.reverse()) await undo().catch((error: unknown) => console.error(error));
  }
  if (tally.failed === 0) await rm(scratch, { recursive: true });
  else console.log(`results and logs: ${scratch}`);
  console.log(`${tally.passed} passed, ${tally.failed} failed`);
  return tally.failed === 0 ? 0 : 1;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function readOptions(): Options | undefined {
  try {
    const { values } = parseArgs({
      options: { direct: { type: 'boolean', default: false }, scenario: { type: 'string' } },
    });
    return { direct: values.direct, scenario: values.scenario };
  } catch (error) {
    console.error(`conformance: ${messageOf(error)}`);
    console.error('usage: npm run conformance [-- [--direct] [--scenario NAME]]');
    return undefined;
  }
}

/** A run through the gateway: what is asked, and in front of which upstreams. */
interface Run {
  readonly name: string;
  readonly revision: Revision;
  readonly upstreams: Readonly<Record<string, string>>;
  /** Whether client and server speak two revisions, or both an older one: something may be lost then, with a reason. */
  readonly across: boolean;
}

async function compare(bench: Bench): Promise<Tally> {
  const upstream = await opened(bench, startUpstream());
  const older = await opened(bench, startOlderUpstream());
  const baselines = new Map<Revision, Results>();
  for (const [revision, { url }] of [
    ['2026-07-28', upstream],
    ['2025-11-25', older],
  ] as const) {
    const out = join(bench.scratch, `direct-${revision}`);
    const running = runSuite({ ...bench, url, revision, out });
    // One scenario may be none of this revision's.
    const results = await (bench.scenario === undefined ? running : running.catch((): Results => new Map()));
    for (const fault of faultsOf(results)) console.log(lossLine(fault));
    console.log(`direct, ${revision}: ${describe(results)}`);
    baselines.set(revision, results);
  }
  const all = [...baselines.values()];
  const faulty = all.flatMap((results) => [...new Set(faultsOf(results).map(({ scenario }) => scenario))]);
  if (bench.direct) {
    const count = all.reduce((sum, results) => sum + results.size, 0);
    return { passed: count - faulty.length, failed: faulty.length };
  }
  if (faulty.length > 0)
    throw new Error('an upstream itself does not conform: nothing can be compared with it');
  for (const [revision, results] of baselines)
    if (bench.scenario === undefined && results.size !== SCENARIO_COUNT[revision])
      throw new Error(`the suite ran ${results.size} scenarios instead of ${SCENARIO_COUNT[revision]}`);

  const library = await opened(bench, startLibrary());
  const [now, then] = [{ conformance: upstream.url }, { conformance: older.url }];
  const runs: readonly Run[] = [
    { name: 'alone', revision: '2026-07-28', upstreams: now, across: false },
    { name: 'together', revision: '2026-07-28', upstreams: { ...now, library: library.url }, across: false },
    { name: 'older server', revision: '2026-07-28', upstreams: then, across: true },
    { name: 'older client', revision: '2025-11-25', upstreams: now, across: true },
    { name: 'both older', revision: '2025-11-25', upstreams: then, across: true },
  ];
  const expected = readExpected(
    await readFile(join(folder, 'expected-failures.json'), 'utf8'),
    runs.filter(({ across }) => across).map(({ name }) => name),
  );
  const tallies: Tally[] = [];
  for (const run of runs) {
    const baseline = baselines.get(run.revision) as Results;
    if (baseline.size === 0) continue;
    try {
      const results = await runThroughGateway(bench, run);
      const verdict = judge(
        baseline,
        results,
        expected.filter((one) => one.run === run.name),
      );
      showVerdict(`${run.revision}, ${run.name}`, results, verdict);
      tallies.push({ passed: verdict.passed.length, failed: verdict.failed.length });
    } catch (error) {
      bench.signal.throwIfAborted();
      console.log(`${run.name}: ${messageOf(error)}`);
      tallies.push({ passed: 0, failed: baseline.size });
    }
  }
  if (bench.scenario === undefined) tallies.push(await inspect(bench, { conformance: upstream.url }));
  const sum = (key: keyof Tally) => tallies.reduce((total, tally) => total + tally[key], 0);
  return { passed: sum('passed'), failed: sum('failed') };
}

async function opened<Server extends Pick<DemoServer, 'close'>>(
  bench: Bench,
  starting: Promise<Server>,
): Promise<Server> {
  const server = await starting;
  bench.cleanup.push(() => server.close());
  return server;
}

async function runThroughGateway(bench: Bench, { name, revision, upstreams }: Run): Promise<Results> {
  const folder = name.replaceAll(' ', '-');
  const config = join(bench.scratch, `${folder}.json`);
  await writeFile(config, configOf(upstreams));
  const gateway = await startGateway({ root, args: ['serve', '-c', config], signal: bench.signal });
  bench.cleanup.push(() => gateway.stop());
  const out = join(bench.scratch, folder);
  const results = await runSuite({ ...bench, revision, url: `${gateway.mcp}/mcp`, out });
  await gateway.stop();
  await writeFile(join(out, 'gateway.log'), gateway.output());
  return results;
}

async function inspect(bench: Bench, upstreams: Run['upstreams']): Promise<Tally> {
  const config = join(bench.scratch, 'inspector.json');
  await writeFile(config, configOf(upstreams));
  const gateway = await startGateway({ root, args: ['serve', '-c', config], signal: bench.signal });
  bench.cleanup.push(() => gateway.stop());
  const { count, faults } = await runInspector(bench.suite, `${gateway.mcp}/mcp`, bench.signal);
  for (const fault of faults) console.log(`  LOST ${fault}`);
  console.log(`inspector: ${count - faults.length} of ${count} as they should be`);
  return { passed: count - faults.length, failed: faults.length };
}

/** JSON is YAML. */
const configOf = (upstreams: Readonly<Record<string, string>>): string =>
  JSON.stringify({
    version: 1,
    listen: '127.0.0.1:0',
    status: '127.0.0.1:0',
    admin: false,
    upstreams: Object.fromEntries(Object.entries(upstreams).map(([name, url]) => [name, { url }])),
    routes: [{ path: '/mcp', upstreams: Object.keys(upstreams) }],
  });

function showVerdict(name: string, results: Results, { losses, stale, passed, failed }: Verdict): void {
  for (const loss of losses) console.log(lossLine(loss));
  for (const { scenario, check } of stale) {
    console.log(`  PASSES: ${scenario} ${check}: take it out of expected-failures.json`);
  }
  const scenarioCount = passed.length + failed.length;
  console.log(`${name}: ${describe(results)}, ${passed.length} of ${scenarioCount} as they should be`);
}

function describe(results: Results): string {
  const checks = [...results.values()].flat().filter(({ status }) => status === 'SUCCESS').length;
  return `scenarios ${results.size}, checks succeeded ${checks}`;
}

/** Schema violations quote whole messages; `checks.json` has them in full. */
const SHOWN_MESSAGE_CHARS = 240;

function lossLine({ scenario, check, name, status, message, reason }: Loss): string {
  const [line = ''] = message.split('\n', 1);
  const short = line.length > SHOWN_MESSAGE_CHARS ? `${line.slice(0, SHOWN_MESSAGE_CHARS)}…` : line;
  const what = `${scenario} ${check} (${name}): ${status}${short === '' ? '' : `, ${short}`}`;
  return reason === undefined ? `  LOST ${what}` : `  expected: ${what}\n    ${reason}`;
}

process.exitCode = await main();
