/**
 * What a run of the suite is worth, compared with the same suite against the upstream itself. Pure.
 */

/** One check of the suite, as its `checks.json` has it. */
export interface Check {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly errorMessage?: string;
}

/** The checks of each scenario that ran. */
export type Results = ReadonlyMap<string, readonly Check[]>;

/** A loss that is known and explained. */
export interface ExpectedFailure {
  /** In which run. */
  readonly run: string;
  readonly scenario: string;
  /** The check's id. */
  readonly check: string;
  readonly reason: string;
}

/** Something that the upstream does and the gateway lost. */
export interface Loss {
  readonly scenario: string;
  readonly check: string;
  readonly name: string;
  /** What the check says instead of its former success. */
  readonly status: string;
  readonly message: string;
  /** Set when the loss is a known one. */
  readonly reason?: string;
}

/** The verdict on one run. */
export interface Verdict {
  readonly losses: readonly Loss[];
  /** Entries of the expected failures that did not fail. */
  readonly stale: readonly ExpectedFailure[];
  readonly passed: readonly string[];
  readonly failed: readonly string[];
}

/**
 * Reads the expected failures; throws on an entry that may not be one.
 * @param mayLose the runs that may lose something: those in which two revisions meet. In the others it is a fault.
 */
export function readExpected(json: string, mayLose: readonly string[]): readonly ExpectedFailure[] {
  const entries = JSON.parse(json) as readonly Partial<ExpectedFailure>[];
  return entries.map(({ run, scenario, check, reason }, index) => {
    const refuse = (why: string) => new Error(`expected failure ${index}: ${why}`);
    if (!run || !scenario || !check || !reason) throw refuse('run, scenario, check and reason are needed');
    if (!mayLose.includes(run)) throw refuse(`nothing may be lost in ${run}`);
    return { run, scenario, check, reason };
  });
}

/** Whether the upstream itself is clean, and what is not. */
export function faultsOf(results: Results): readonly Loss[] {
  return [...results].flatMap(([scenario, checks]) =>
    checks.filter(isFault).map((check) => lossOf(scenario, check, check)),
  );
}

/** Compares a run through the gateway with the run against the upstream. @param expected of this run. */
export function judge(baseline: Results, run: Results, expected: readonly ExpectedFailure[]): Verdict {
  const losses = [...baseline]
    .flatMap(([scenario, checks]) => lossesOf(scenario, checks, run.get(scenario)))
    .map((loss) => explain(loss, expected));
  const relevant = expected.filter(({ scenario }) => baseline.has(scenario));
  const stale = relevant.filter(({ scenario, check }) =>
    losses.every((loss) => loss.scenario !== scenario || loss.check !== check),
  );
  const bad = new Set([
    ...losses.filter(({ reason }) => reason === undefined).map(({ scenario }) => scenario),
    ...stale.map(({ scenario }) => scenario),
  ]);
  const scenarios = [...baseline.keys()];
  return {
    losses,
    stale,
    passed: scenarios.filter((scenario) => !bad.has(scenario)),
    failed: scenarios.filter((scenario) => bad.has(scenario)),
  };
}

const isFault = ({ status }: Check): boolean => status === 'FAILURE' || status === 'WARNING';

/** Several checks share an id, and some an id and a name: they are told apart by both and counted. */
const keyOf = ({ id, name }: Check): string => JSON.stringify([id, name]);

function lossesOf(scenario: string, before: readonly Check[], after: readonly Check[] | undefined): Loss[] {
  if (after === undefined) {
    return [{ scenario, check: 'not-run', name: 'NotRun', status: 'MISSING', message: 'no result' }];
  }
  const faults = after.filter(isFault);
  const faulty = new Set(faults.map(keyOf));
  const kept = countSuccesses(after);
  const vanished = [...countSuccesses(before)]
    .filter(([key, { count }]) => !faulty.has(key) && (kept.get(key)?.count ?? 0) < count)
    .map(([key, { check }]) => {
      const now = after.find((each) => keyOf(each) === key && each.status !== 'SUCCESS');
      return lossOf(scenario, check, now);
    });
  return [...faults.map((check) => lossOf(scenario, check, check)), ...vanished];
}

function countSuccesses(checks: readonly Check[]): Map<string, { check: Check; count: number }> {
  const counts = new Map<string, { check: Check; count: number }>();
  for (const check of checks) {
    if (check.status !== 'SUCCESS') continue;
    counts.set(keyOf(check), { check, count: (counts.get(keyOf(check))?.count ?? 0) + 1 });
  }
  return counts;
}

function lossOf(scenario: string, check: Check, now: Check | undefined): Loss {
  const status = now?.status ?? 'MISSING';
  return { scenario, check: check.id, name: check.name, status, message: now?.errorMessage ?? '' };
}

function explain(loss: Loss, expected: readonly ExpectedFailure[]): Loss {
  const known = expected.find(({ scenario, check }) => scenario === loss.scenario && check === loss.check);
  return known === undefined ? loss : { ...loss, reason: known.reason };
}
