/**
 * `npm run conformance`: the official suite against an upstream that passes all of it, then through the gateway in front
 * of that upstream, alone and beside a second one on the same route. What is lost on the way fails the run.
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
import { faultsOf, judge, type Loss, type Results, readExpected, type Verdict } from './judge.ts';
import { bringSuite, runSuite, SCENARIO_COUNT, type Suite } from './suite.ts';
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

async function compare(bench: Bench): Promise<Tally> {
  const upstream = await opened(bench, startUpstream());
  const baseline = await runSuite({ ...bench, url: upstream.url, out: join(bench.scratch, 'direct') });
  const faults = faultsOf(baseline);
  for (const fault of faults) console.log(lossLine(fault));
  const faulty = new Set(faults.map(({ scenario }) => scenario)).size;
  console.log(`direct: ${describe(baseline)}`);
  if (bench.direct) return { passed: baseline.size - faulty, failed: faulty };
  if (faulty > 0) throw new Error('the upstream itself does not conform: nothing can be compared with it');
  if (bench.scenario === undefined && baseline.size !== SCENARIO_COUNT) {
    throw new Error(`the suite ran ${baseline.size} scenarios instead of ${SCENARIO_COUNT}`);
  }

  const library = await opened(bench, startLibrary());
  const expected = readExpected(await readFile(join(folder, 'expected-failures.json'), 'utf8'));
  const tallies: Tally[] = [];
  for (const [name, upstreams] of Object.entries({
    alone: { conformance: upstream.url },
    together: { conformance: upstream.url, library: library.url },
  })) {
    try {
      const results = await runThroughGateway(bench, name, upstreams);
      const verdict = judge(baseline, results, expected);
      showVerdict(name, results, verdict);
      tallies.push({ passed: verdict.passed.length, failed: verdict.failed.length });
    } catch (error) {
      bench.signal.throwIfAborted();
      console.log(`${name}: ${messageOf(error)}`);
      tallies.push({ passed: 0, failed: baseline.size });
    }
  }
  const sum = (key: keyof Tally) => tallies.reduce((total, tally) => total + tally[key], 0);
  return { passed: sum('passed'), failed: sum('failed') };
}

async function opened(bench: Bench, starting: Promise<DemoServer>): Promise<DemoServer> {
  const server = await starting;
  bench.cleanup.push(() => server.close());
  return server;
}

async function runThroughGateway(
  bench: Bench,
  name: string,
  upstreams: Readonly<Record<string, string>>,
): Promise<Results> {
  const config = join(bench.scratch, `${name}.json`);
  await writeFile(config, configOf(upstreams));
  const gateway = await startGateway({ root, args: ['serve', '-c', config], signal: bench.signal });
  bench.cleanup.push(() => gateway.stop());
  const out = join(bench.scratch, name);
  const results = await runSuite({ ...bench, url: `${gateway.mcp}/mcp`, out });
  await gateway.stop();
  await writeFile(join(out, 'gateway.log'), gateway.output());
  return results;
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
