/**
 * `npm run fuzz`: throws cases at everything that takes what others write, for a while.
 *
 *     npm run fuzz -- --seconds 120                        every target in turn (default: 30 s)
 *     npm run fuzz -- --only classifier,cursor --seed 7    some of them, the cases of another run
 *     npm run fuzz -- --only isolation                     callers and upstreams at the isolation model
 *
 * The isolation model has its turn after the targets. Prints the seed, cases and outcomes of each target, each finding with the smallest case that shows it, and
 * `N findings`; exits 1 when there are any. The work is done in a worker: a case that never ends is told by the
 * thread that watches it.
 */
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import fc from 'fast-check';
import { emptyTally, FINDINGS_PER_TARGET, runCases, type Tally, toldFinding, written } from './engine.ts';
import { isolate } from './isolation.ts';
import { Random, seedOf } from './random.ts';
import { TARGETS } from './targets.ts';

interface Plan {
  readonly seconds: number;
  readonly seed: number;
  readonly only: readonly string[];
  /** Where the worker notes the target and case in hand: `[target, case]`. */
  readonly place: Int32Array;
}

/** A case that takes longer than this never ends. */
const HANG_MS = 30_000;
/** Not a target: its cases are whole fleets. */
const ISOLATION = 'isolation';
/** Its part of the time, beside targets. */
const ISOLATION_SHARE = 0.2;
/** Cases of one target before it is the next one's turn. */
const TURN_MS = 200;

function work({ seconds, seed, only, place }: Plan): readonly Tally[] {
  const targets = TARGETS.filter(({ name }) => only.length === 0 || only.includes(name));
  const tallies = targets.map(({ name }) => emptyTally(name));
  const until = performance.now() + seconds * 1000;
  while (performance.now() < until) {
    for (const [at, target] of targets.entries()) {
      const tally = tallies[at] as Tally;
      const turnEnds = Math.min(until, performance.now() + TURN_MS);
      Atomics.store(place, 0, TARGETS.indexOf(target));
      while (performance.now() < turnEnds && tally.findings.length < FINDINGS_PER_TARGET) {
        runCases(target, seed, tally.caseCount, 20, tally, (index) => Atomics.store(place, 1, index));
      }
    }
  }
  return tallies;
}

/** Runs the plan in a worker; resolves with what it tallied, or with the case it never came back from. */
function watched(plan: Plan): Promise<readonly Tally[] | { readonly hung: string }> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: plan });
    let last = '';
    let since = performance.now();
    const timer = setInterval(() => {
      const now = plan.place.join(' ');
      if (now !== last) {
        last = now;
        since = performance.now();
      } else if (performance.now() - since > HANG_MS) {
        clearInterval(timer);
        void worker.terminate();
        resolve({ hung: toldHang(plan) });
      }
    }, 500);
    worker.once('message', (tallies: readonly Tally[]) => {
      clearInterval(timer);
      resolve(tallies);
    });
    worker.once('error', (error) => {
      clearInterval(timer);
      reject(error);
    });
  });
}

function toldHang({ seed, place }: Plan): string {
  const target = TARGETS[place[0] ?? 0];
  const index = place[1] ?? 0;
  if (target === undefined) return 'no case in hand';
  const given = target.generate(new Random(seedOf(seed, target.name, index)));
  return `FINDING ${target.name}: case ${index} of seed ${seed} never ends\n  case:  ${written(given)}`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function printTally({ target, caseCount, outcomes, findings }: Tally): void {
  const common = [...outcomes].sort((a, b) => b[1] - a[1]).slice(0, 4);
  const told = common
    .map(([outcome, count]) => `${outcome} ${Math.round((100 * count) / caseCount)}%`)
    .join(', ');
  print(
    `${target.padEnd(16)} ${String(caseCount).padStart(9)} cases  ${String(outcomes.size).padStart(3)} outcomes  ${findings.length} findings  ${told}`,
  );
}

async function isolated(
  seed: number,
  seconds: number,
): Promise<{ readonly runCount: number; readonly findings: number }> {
  const details = await isolate({ seed, runCount: Number.POSITIVE_INFINITY, forMs: seconds * 1000 });
  const findings = details.failed ? 1 : 0;
  print(`${ISOLATION.padEnd(16)} ${String(details.numRuns).padStart(9)} runs   ${findings} findings`);
  if (details.failed) print(`FINDING ${ISOLATION}: ${fc.defaultReportMessage(details)}`);
  return { runCount: details.numRuns, findings };
}

async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { seconds: { type: 'string' }, seed: { type: 'string' }, only: { type: 'string' } },
  });
  const seconds = Number(values.seconds ?? 30);
  const seed = Number(values.seed ?? Math.floor(Math.random() * 1e9));
  const only = values.only?.split(',') ?? [];
  const names = [...TARGETS.map(({ name }) => name), ISOLATION];
  if (!(seconds > 0) || !Number.isSafeInteger(seed) || !only.every((name) => names.includes(name))) {
    process.stderr.write(`--seconds N --seed N --only ${names.join(',')}\n`);
    return 2;
  }
  const isolating = only.length === 0 || only.includes(ISOLATION);
  const targeting = only.length === 0 || only.some((name) => name !== ISOLATION);
  const isolationShare = isolating ? (targeting ? ISOLATION_SHARE : 1) : 0;
  print(`seed ${seed}, ${seconds} s`);
  const place = new Int32Array(new SharedArrayBuffer(8));
  const targetSeconds = seconds * (1 - isolationShare);
  const outcome = targeting ? await watched({ seconds: targetSeconds, seed, only, place }) : [];
  if ('hung' in outcome) {
    print(outcome.hung);
    print('1 findings');
    return 1;
  }
  for (const tally of outcome) printTally(tally);
  for (const finding of outcome.flatMap(({ findings }) => findings)) print(toldFinding(finding));
  const isolation = isolating ? await isolated(seed, seconds * isolationShare) : { runCount: 0, findings: 0 };
  const caseCount = outcome.reduce((sum, tally) => sum + tally.caseCount, isolation.runCount);
  const count = outcome.reduce((sum, { findings }) => sum + findings.length, isolation.findings);
  print(`seed ${seed}: ${caseCount} cases`);
  print(`${count} findings`);
  return count === 0 ? 0 : 1;
}

if (isMainThread) process.exitCode = await main(process.argv.slice(2));
else parentPort?.postMessage(work(workerData as Plan));
