/**
 * The fuzzing engine: makes cases of a target, checks them, and makes a failing one small.
 *
 * A case is plain data, so that any of it can be printed, taken apart and given to `check` again in a test. Case
 * number `n` of a target depends on the seed, the target's name and `n` alone.
 */
import { inspect } from 'node:util';
import { Random, seedOf } from './random.ts';

export type Field = string | number | boolean | null | undefined | Uint8Array | readonly Field[];
export type Case = Readonly<Record<string, Field>>;

/** Something that takes what others write. */
export interface Target<C extends Case = Case> {
  readonly name: string;
  /** What must hold, in a line. */
  readonly about: string;
  generate(random: Random): C;
  /** Throws on a fault. @returns what became of the case, in a word, so that a run shows what it reached. */
  check(given: C): string;
}

/** A fault and the smallest case that still shows it. */
export interface Finding {
  readonly target: string;
  readonly seed: number;
  readonly index: number;
  readonly message: string;
  readonly reproducer: Case;
}

export interface Tally {
  readonly target: string;
  caseCount: number;
  readonly outcomes: Map<string, number>;
  readonly findings: Finding[];
}

/** CPU time one case may take: thousands of times what the slowest needs, and independent of what else runs. */
export const CASE_CPU_MS = 3_000;
/** Work spent on making one case small. */
const SHRINK_TRIES = 4_000;
const SHRINK_MS = 10_000;
/** Faults of one target that are told; it is left alone after that. */
export const FINDINGS_PER_TARGET = 3;

export function emptyTally(target: string): Tally {
  return { target, caseCount: 0, outcomes: new Map(), findings: [] };
}

/** Runs cases `from` … `from + count - 1` of a target. `before` is told the number of each. */
export function runCases<C extends Case>(
  target: Target<C>,
  seed: number,
  from: number,
  count: number,
  tally: Tally,
  before: (index: number) => void = () => undefined,
): void {
  for (let index = from; index < from + count; index++) {
    if (tally.findings.length >= FINDINGS_PER_TARGET) return;
    before(index);
    const given = target.generate(new Random(seedOf(seed, target.name, index)));
    tally.caseCount++;
    const verdict = judge(target, given);
    if (verdict.kind === 'fine') {
      tally.outcomes.set(verdict.outcome, (tally.outcomes.get(verdict.outcome) ?? 0) + 1);
      continue;
    }
    if (tally.findings.some((known) => known.message === verdict.message)) continue;
    const small = shrink(target, given);
    const finding = { target: target.name, seed, index, ...small };
    if (!tally.findings.some((known) => known.message === finding.message)) tally.findings.push(finding);
  }
}

type Verdict =
  | { readonly kind: 'fine'; readonly outcome: string }
  | { readonly kind: 'fault'; readonly message: string };

/** Checks one case; a case that takes too much CPU is at fault too. */
export function judge<C extends Case>(target: Target<C>, given: C): Verdict {
  const before = process.cpuUsage();
  try {
    const outcome = target.check(given);
    const { user, system } = process.cpuUsage(before);
    const cpuMs = (user + system) / 1000;
    return cpuMs > CASE_CPU_MS ? { kind: 'fault', message: 'takes too much CPU' } : { kind: 'fine', outcome };
  } catch (error) {
    return { kind: 'fault', message: messageOf(error) };
  }
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return `${error.name === 'AssertionError' ? '' : `${error.name}: `}${error.message.split('\n', 12).join('\n')}`;
}

/** Takes pieces out of the case for as long as it stays at fault. */
export function shrink<C extends Case>(
  target: Target<C>,
  given: C,
): { readonly reproducer: C; readonly message: string } {
  let best = given;
  let message = verdictMessage(target, given) ?? 'does not fail twice';
  let tries = 0;
  const until = performance.now() + SHRINK_MS;
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const candidate of smaller(best)) {
      if (++tries > SHRINK_TRIES || performance.now() > until) return { reproducer: best, message };
      const told = verdictMessage(target, candidate as C);
      if (told === undefined) continue;
      best = candidate as C;
      message = told;
      isSmaller = true;
      break;
    }
  }
  return { reproducer: best, message };
}

function verdictMessage<C extends Case>(target: Target<C>, given: C): string | undefined {
  const verdict = judge(target, given);
  return verdict.kind === 'fault' ? verdict.message : undefined;
}

function* smaller(given: Case): Generator<Case> {
  for (const [key, value] of Object.entries(given)) {
    for (const field of smallerFields(value)) yield { ...given, [key]: field };
  }
}

function* smallerFields(value: Field): Generator<Field> {
  if (typeof value === 'string' || value instanceof Uint8Array || Array.isArray(value)) {
    for (let size = value.length; size >= 1; size = Math.floor(size / 2)) {
      for (let at = 0; at < value.length; at += size)
        yield without(value, at, Math.min(value.length, at + size));
    }
  }
  if (Array.isArray(value)) {
    for (const [index, inner] of (value as readonly Field[]).entries()) {
      for (const field of smallerFields(inner)) yield value.with(index, field);
    }
  }
  if (typeof value === 'number' && value !== 0) yield* [0, Math.trunc(value / 2)].filter((n) => n !== value);
}

function without(value: string | Uint8Array | readonly Field[], start: number, end: number): Field {
  if (typeof value === 'string') return value.slice(0, start) + value.slice(end);
  if (value instanceof Uint8Array) {
    const out = new Uint8Array(value.length - (end - start));
    out.set(value.subarray(0, start));
    out.set(value.subarray(end), start);
    return out;
  }
  return value.toSpliced(start, end - start);
}

/** A case as JavaScript, to be pasted into a test. */
export function written(given: Case): string {
  const fields = Object.entries(given).map(([key, value]) => `${key}: ${writtenField(value)}`);
  return `{ ${fields.join(', ')} }`;
}

function writtenField(value: Field): string {
  if (value instanceof Uint8Array) {
    const text = Buffer.from(value).toString('latin1');
    return `Buffer.from(${JSON.stringify(text)}, 'latin1')`;
  }
  if (Array.isArray(value)) return `[${value.map(writtenField).join(', ')}]`;
  return typeof value === 'string' ? JSON.stringify(value) : inspect(value);
}

/** The fault, how to see it again, and the case. */
export function toldFinding({ target, seed, index, message, reproducer }: Finding): string {
  return [
    `FINDING ${target}: ${message}`,
    `  again: npm run fuzz -- --only ${target} --seed ${seed} (case ${index})`,
    `  case:  ${written(reproducer)}`,
  ].join('\n');
}
