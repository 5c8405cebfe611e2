/**
 * `npm run bench`: what Headgate costs, against what others cost for the same work, on this machine.
 *
 * Every server is a process of its own; rounds are interleaved, so that a machine that is busy for a while is busy
 * for all; every answer is checked, and a wrong one fails the bench. `--smoke` checks all works once and times none.
 */
import { execFile, execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { type Child, cpuUs, has, PINNING, pinned, pinSelf } from './children.ts';
import type { Loaded } from './job.ts';
import { type Engine, load } from './load.ts';
import { type Replica, startReplicas } from './replicas.ts';
import { type Figure, figuresTable, type Line, line, linesTable } from './report.ts';
import { LIST_COUNT, type Rig, startRig } from './rig.ts';
import { eventLatency, idleStreams, type Latency, largeReads, walk } from './singles.ts';
import { differenceSpread, ratioSpread, spread } from './stats.ts';
import { chart } from './svg.ts';
import { type Contender, FIRST_PAGE, LOAD_WORKS, type LoadWork } from './works.ts';

interface Options {
  readonly only: ReadonlySet<string> | undefined;
  readonly rounds: number;
  readonly seconds: number;
  readonly smoke: boolean;
  readonly json: string | undefined;
  readonly svg: string | undefined;
}

/** How much of everything: a measurement, or a look whether all answers are right. */
interface Amounts {
  readonly listItems: number;
  readonly events: number;
  readonly idleStreams: number;
  readonly largeReads: number;
  readonly largeMegabytes: number;
  readonly changes: number;
}

const FULL: Amounts = {
  listItems: 5_000,
  events: 300,
  idleStreams: 1_000,
  largeReads: 30,
  largeMegabytes: 100,
  changes: 200,
};
const SMOKE: Amounts = {
  listItems: 300,
  events: 20,
  idleStreams: 20,
  largeReads: 3,
  largeMegabytes: 4,
  changes: 3,
};
const SMOKE_REQUESTS = 24;
/** Works that start servers of their own are the slowest: these rounds of them are enough. */
const SLOW_ROUNDS = 3;

/** Young code costs a multiple here, too. */
const WARM_CHANGES = 100;
/** At most so long; a gateway on a busy machine takes five seconds. */
const WARM_SECONDS = 10;
/** Warm is who gains less than a tenth in a second. */
const WARM_SHARE = 0.9;

const NOTE = '×: CPU a request of the other ÷ CPU a request of Headgate, median of the rounds (min–max).';

const SINGLE_KEYS = ['list', 'sse', 'idle', 'large', 'replicas', 'account'] as const;
const KEYS: readonly string[] = [...LOAD_WORKS.map(({ key }) => key), ...SINGLE_KEYS];

const USAGE = `usage: npm run bench -- [--only WORK[,WORK…]] [--rounds N] [--seconds N] [--smoke] [--json FILE] [--svg FILE]
works: ${KEYS.join(' ')}`;

class WrongAnswer extends Error {
  override name = 'WrongAnswer';
}

interface Bench {
  readonly rig: Rig;
  readonly options: Options;
  readonly amounts: Amounts;
  readonly engine: Engine;
  readonly figures: Figure[];
  readonly lines: Line[];
  readonly failures: string[];
}

async function main(): Promise<number> {
  const options = readOptions();
  if (options === undefined) return 2;
  pinSelf();
  const amounts = options.smoke ? SMOKE : FULL;
  const engine: Engine = !options.smoke && has('wrk') ? 'wrk' : 'sockets';
  const machine = describeMachine(engine);
  for (const [name, value] of Object.entries(machine)) console.log(`${name.padEnd(10)} ${value}`);
  const rig = await startRig({ listItems: amounts.listItems });
  for (const word of rig.skipped) console.log(`skipped    ${word}`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  const bench: Bench = { rig, options, amounts, engine, figures: [], lines: [], failures: [] };
  try {
    await runAll(bench);
  } finally {
    await rig.stop();
  }
  const { figures, lines, failures } = bench;
  if (!options.smoke) console.log(`\n${figuresTable(figures)}\n\n${linesTable(lines)}\n\n${NOTE}`);
  for (const failure of failures) console.error(`bench: ${failure}`);
  if (failures.length > 0) return 1;
  if (options.smoke) {
    console.log('every answer was right; nothing was timed');
    return 0;
  }
  if (options.json !== undefined) {
    const { rounds, seconds } = options;
    const result = {
      machine,
      at: new Date().toISOString(),
      rounds,
      seconds,
      skipped: rig.skipped,
      figures,
      lines,
    };
    writeFileSync(options.json, `${JSON.stringify(result, undefined, 2)}\n`);
  }
  if (options.svg !== undefined) writeFileSync(options.svg, chart(lines, captionOf(machine)));
  return 0;
}

function readOptions(): Options | undefined {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: 'string' },
        rounds: { type: 'string', default: '7' },
        seconds: { type: 'string', default: '3' },
        smoke: { type: 'boolean', default: false },
        json: { type: 'string' },
        svg: { type: 'string' },
      },
    });
    const only = values.only?.split(',');
    const unknown = only?.filter((key) => !KEYS.includes(key)) ?? [];
    if (unknown.length > 0) throw new Error(`there is no work ${unknown.join(', ')}`);
    const { smoke, json, svg } = values;
    const [rounds, seconds] = [positive('rounds', values.rounds), positive('seconds', values.seconds)];
    return { only: only && new Set(only), rounds, seconds, smoke, json, svg };
  } catch (error) {
    console.error(`bench: ${(error as Error).message}\n${USAGE}`);
    return undefined;
  }
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} must be a whole number above 0`);
  return value;
}

function describeMachine(engine: Engine): Record<string, string> {
  const first = (command: string, ...args: string[]): string => {
    if (!has(command)) return 'not installed';
    // nginx says its version on standard error.
    const text = execFileSync('sh', ['-c', `${[command, ...args].join(' ')} 2>&1; true`], {
      encoding: 'utf8',
    });
    return text.split('\n', 1)[0] ?? '';
  };
  return {
    machine: `${cpus().length} × ${cpus()[0]?.model.trim() ?? '?'}, ${Math.round(totalmem() / 2 ** 30)} GB, ${PINNING}`,
    versions: `Node ${process.version}; ${first('nginx', '-v')}; ${first('haproxy', '-v')}`,
    load: engine === 'wrk' ? first('wrk', '-v') : 'sockets of our own',
  };
}

function captionOf({ machine = '', versions = '' }: Record<string, string>): string {
  return `${new Date().toISOString().slice(0, 10)}, ${machine.split(', ').slice(0, 2).join(', ')}, ${versions.split(';')[0]}`;
}

async function runAll(bench: Bench): Promise<void> {
  const { options } = bench;
  const wanted = (key: string): boolean => options.only?.has(key) ?? true;
  // Large answers are too few a second to warm code up: short ones do it for all.
  const [short] = LOAD_WORKS;
  if (short !== undefined && !options.smoke && LOAD_WORKS.some(({ key }) => wanted(key))) {
    const [own, plain] = short.contenders as [Contender, Contender];
    for (const one of [own, plain]) {
      await once(bench, short, one, { count: 2 }, 'warm-up');
      await warmUp(bench, short, one);
    }
  }
  for (const work of LOAD_WORKS)
    if (wanted(work.key)) await step(bench, work.title, () => runLoad(bench, work));
  if (wanted('list')) await step(bench, 'merged list', () => runList(bench));
  if (wanted('sse')) await step(bench, 'SSE latency', () => runEvents(bench));
  if (wanted('idle')) await step(bench, 'idle streams', () => runIdle(bench));
  if (wanted('large')) await step(bench, 'large reads', () => runLarge(bench));
  if (wanted('replicas') && has('redis-server')) await step(bench, 'replicas', () => runReplicas(bench));
  if (wanted('account')) await step(bench, 'metrics + access log', () => runAccount(bench));
}

/** Runs one work. What goes wrong fails the bench, but not the works after it. */
async function step(bench: Bench, title: string, run: () => Promise<void>): Promise<void> {
  const startedAt = performance.now();
  try {
    await run();
    console.log(`done       ${title}, ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  } catch (error) {
    bench.failures.push(`${title}: ${(error as Error).message}`);
    console.log(`FAILED     ${title}`);
  }
}

interface Measured extends Loaded {
  readonly cpuUs: number;
  readonly busy: number;
}

/** Everybody who does a work, in turn, round by round; the order turns, so that nobody is always first. */
async function runLoad(bench: Bench, work: LoadWork): Promise<void> {
  const { rig, options } = bench;
  const present = work.contenders.filter(({ server }) => rig.server(server) !== undefined);
  // Fills the caches, and finds what is wrong before time is spent on it.
  for (const one of present) await once(bench, work, one, { count: 2 * one.requests.length }, 'warm-up');
  if (options.smoke) {
    for (const one of present) await once(bench, work, one, { count: SMOKE_REQUESTS }, 'checked');
    return;
  }
  const rounds = new Map<string, Measured[]>(present.map(({ name }) => [name, []]));
  for (const one of present) await warmUp(bench, work, one);
  for (let round = 0; round < options.rounds; round++) {
    for (let i = 0; i < present.length; i++) {
      const one = present[(i + round) % present.length] as Contender;
      rounds.get(one.name)?.push(await once(bench, work, one, { seconds: options.seconds }, 'checked'));
    }
  }
  report(bench, work, rounds);
}

/** Loads a server until its CPU a request no longer falls: young code costs a multiple. */
async function warmUp(bench: Bench, work: LoadWork, one: Contender): Promise<void> {
  let last = Number.POSITIVE_INFINITY;
  for (let second = 0; second < WARM_SECONDS; second++) {
    const { cpuUs: cost } = await once(bench, work, one, { seconds: 1 }, 'checked');
    if (second >= 2 && !(cost < last * WARM_SHARE)) return;
    last = Math.min(last, cost);
  }
}

async function once(
  { rig, engine }: Bench,
  { title, connections }: LoadWork,
  one: Contender,
  until: { readonly seconds: number } | { readonly count: number },
  mode: 'checked' | 'warm-up',
): Promise<Measured> {
  const server = rig.server(one.server) as Child;
  const { header: _, ...anyHeader } = one.expected;
  const job = {
    port: server.port,
    requests: one.requests,
    expected: mode === 'warm-up' ? anyHeader : one.expected,
    // While a cache fills, one request at a time.
    connections: mode === 'warm-up' ? 1 : connections,
    until,
  };
  const before = cpuUs(server.pid) ?? Number.NaN;
  const loaded = await load(job, engine);
  const used = (cpuUs(server.pid) ?? Number.NaN) - before;
  if (loaded.wrong > 0 || (loaded.why !== undefined && loaded.why !== ''))
    throw new WrongAnswer(
      `${title}, ${one.name}: ${loaded.wrong} of ${loaded.count} answers wrong: ${loaded.why}`,
    );
  if (loaded.count === 0) throw new WrongAnswer(`${title}, ${one.name}: no answers`);
  return { ...loaded, cpuUs: used / loaded.count, busy: used / 1e6 / loaded.seconds };
}

function report(
  { figures, lines }: Bench,
  work: LoadWork,
  rounds: ReadonlyMap<string, readonly Measured[]>,
): void {
  const of = (name: string, pick: (one: Measured) => number): number[] => (rounds.get(name) ?? []).map(pick);
  for (const [contender, all] of rounds) {
    figures.push({
      work: work.title,
      contender,
      requestsPerSecond: spread(all.map((one) => one.count / one.seconds)),
      cpuUs: spread(all.map((one) => one.cpuUs)),
      busy: spread(all.map((one) => one.busy)),
      p50Us: spread(all.map((one) => one.p50Us)),
      p99Us: spread(all.map((one) => one.p99Us)),
      checked: all.reduce((sum, one) => sum + one.count, 0),
    });
  }
  const own = of('headgate', (one) => one.cpuUs);
  for (const name of rounds.keys()) {
    if (name !== 'headgate')
      lines.push(
        line(
          work.title,
          name,
          '×',
          ratioSpread(
            of(name, (one) => one.cpuUs),
            own,
          ),
        ),
      );
  }
}

async function runList(bench: Bench): Promise<void> {
  const { rig, options, amounts, lines } = bench;
  const { port } = rig.server('headgate') as Child;
  const items = LIST_COUNT * amounts.listItems;
  // Walked twice before it counts: once to fetch, once for what is only built when it is asked for again.
  const cold = await walk(port, items);
  await walk(port, items);
  await runLoad(bench, FIRST_PAGE);
  if (options.smoke) return;
  const warm: number[] = [];
  for (let round = 0; round < options.rounds; round++) warm.push(await walk(port, items));
  const title = `merged list, whole walk of ${items.toLocaleString('en-US')}`;
  lines.push(line(title, 'cold, once', 'ms', spread([cold])), line(title, 'warm', 'ms', spread(warm)));
}

async function runEvents({ rig, options, amounts, lines }: Bench): Promise<void> {
  const routes = [
    { name: 'direct', server: rig.server('upstream'), path: '/bench' },
    { name: 'headgate', server: rig.server('headgate'), path: '/mcp' },
    { name: 'nginx', server: rig.server('nginx'), path: '/bench' },
  ].filter(({ server }) => server !== undefined);
  const p50 = new Map<string, number[]>(routes.map(({ name }) => [name, []]));
  const p99 = new Map<string, number[]>(routes.map(({ name }) => [name, []]));
  for (const { server, path } of routes) await eventLatency((server as Child).port, path, 10);
  for (let round = 0; round < (options.smoke ? 1 : options.rounds); round++) {
    for (const { name, server, path } of routes) {
      const { p50Ms, p99Ms } = await eventLatency((server as Child).port, path, amounts.events);
      p50.get(name)?.push(p50Ms);
      p99.get(name)?.push(p99Ms);
    }
  }
  const of = (from: Map<string, number[]>, name: string): number[] => from.get(name) ?? [];
  for (const [label, from] of [
    ['p50', p50],
    ['p99', p99],
  ] as const) {
    lines.push(
      line(
        `SSE event added, ${label}`,
        'direct',
        'ms',
        differenceSpread(of(from, 'headgate'), of(from, 'direct')),
      ),
    );
    if (from.has('nginx'))
      lines.push(
        line(
          `SSE event added by nginx, ${label}`,
          'direct',
          'ms',
          differenceSpread(of(from, 'nginx'), of(from, 'direct')),
        ),
      );
  }
}

async function runIdle({ rig, options, amounts, lines }: Bench): Promise<void> {
  const own: number[] = [];
  const nginx: number[] = [];
  for (let round = 0; round < (options.smoke ? 1 : SLOW_ROUNDS); round++) {
    await withChild(await rig.freshGateway(), async (child) => {
      own.push(await idleStreams(child, '/roomy', amounts.idleStreams));
    });
    const other = await rig.freshNginx();
    if (other === undefined) continue;
    await withChild(other, async (child) => {
      nginx.push(await idleStreams(child, '/bench', amounts.idleStreams));
    });
  }
  lines.push(line('idle stream, RSS', 'before', 'KB', spread(own)));
  if (nginx.length > 0) lines.push(line('idle stream of nginx, RSS', 'before', 'KB', spread(nginx)));
}

/** Once: three gigabytes are long enough to be a mean of their own. */
async function runLarge({ rig, amounts, lines }: Bench): Promise<void> {
  const { largeReads: count, largeMegabytes } = amounts;
  await withChild(await rig.freshGateway(), async (child) => {
    const { beforeMb, peakMb, seconds } = await largeReads(child, count, largeMegabytes);
    const title = `${count} parallel ${largeMegabytes} MB reads`;
    lines.push(
      line(title, 'peak RSS, added', 'MB', spread([peakMb - beforeMb])),
      line(title, 'time', 's', spread([seconds])),
    );
  });
}

async function runReplicas({ options, amounts, lines }: Bench): Promise<void> {
  const latencies: Record<Replica, Latency[]> = { told: [], other: [] };
  const replicas = await startReplicas();
  try {
    for (const where of ['told', 'other'] as const)
      await replicas.freshness(where, Math.min(WARM_CHANGES, amounts.changes));
    for (let round = 0; round < (options.smoke ? 1 : SLOW_ROUNDS); round++) {
      for (const where of ['told', 'other'] as const)
        latencies[where].push(await replicas.freshness(where, amounts.changes));
    }
  } finally {
    await replicas.stop();
  }
  const row = (work: string, where: Replica): void => {
    const of = (pick: (one: Latency) => number) => spread(latencies[where].map(pick));
    const against = 'notification sent';
    lines.push(
      line(
        `${work}, p50`,
        against,
        'ms',
        of(({ p50Ms }) => p50Ms),
      ),
      line(
        `${work}, p99`,
        against,
        'ms',
        of(({ p99Ms }) => p99Ms),
      ),
    );
  };
  row('change read on the replica that is told', 'told');
  row('change read on one that hears through Redis', 'other');
}

async function withChild(child: Child, use: (child: Child) => Promise<void>): Promise<void> {
  try {
    await use(child);
  } finally {
    await child.stop();
  }
}

const run = promisify(execFile);

async function runAccount({ options, lines }: Bench): Promise<void> {
  const costs: number[] = [];
  for (let round = 0; round < (options.smoke ? 1 : options.rounds); round++) {
    const [file, args] = pinned(process.execPath, [join(import.meta.dirname, 'micro.js')], 'server');
    const { stdout } = await run(file, args);
    costs.push((JSON.parse(stdout) as { us: number }).us);
  }
  lines.push(line('metrics + access log', 'none', 'µs', spread(costs)));
}

process.exitCode = await main();
