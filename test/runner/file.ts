/**
 * Runs one compiled test file in a process of its own and says what happened.
 *
 * The process leads a group of its own, so that whatever it started and forgot is found, named and ended.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestRecord } from './reporter.ts';

/** Something that went wrong: a test, or the file as a whole. */
export interface Failure {
  /** `suite › test`, or what the file did. */
  readonly title: string;
  /** In full; empty when the title says it all. */
  readonly detail: string;
}

export interface FileReport {
  readonly passed: readonly string[];
  readonly failures: readonly Failure[];
  readonly skipped: readonly { readonly title: string; readonly reason: string }[];
  readonly notes: readonly string[];
  readonly stdout: string;
  readonly stderr: string;
  readonly durationMs: number;
}

/** How the process ended. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly timedOut: 'yes' | 'no';
  /** Command lines of processes that the file left behind. */
  readonly leftBehind: readonly string[];
}

/** Output kept per stream and file; a file that prints more than this is cut at its head. */
const MAX_OUTPUT_CHARS = 256 << 10;
/** How long processes that a file started may take to follow it. */
const FOLLOW_MS = 2_000;

const reporterUrl = new URL('reporter.js', import.meta.url).href;
const active = new Set<ChildProcess>();

/** Ends every test process that still runs, with all it started. */
export function endAll(): void {
  for (const child of active) endGroup(child.pid);
}

/**
 * Runs a test file; one that is not done after `timeoutMs` is ended, and that is a failure. What happened is
 * recorded at `recordPath`, a file that nobody else uses.
 */
export async function runFile(path: string, recordPath: string, timeoutMs: number): Promise<FileReport> {
  const startedAt = performance.now();
  const reporting = [`--test-reporter=${reporterUrl}`, `--test-reporter-destination=${recordPath}`];
  const child = spawn(process.execPath, [...process.execArgv, ...reporting, path], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  active.add(child);
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  const ending = await ended(child, timeoutMs);
  active.delete(child);
  const records = parse(await readFile(recordPath, 'utf8').catch(() => ''));
  const durationMs = performance.now() - startedAt;
  return { ...judge(records, ending), stdout: stdout(), stderr: stderr(), durationMs };
}

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(-MAX_OUTPUT_CHARS);
  });
  return () => text;
}

async function ended(child: ChildProcess, timeoutMs: number): Promise<Ending> {
  let timedOut: 'yes' | 'no' = 'no';
  const timer = setTimeout(() => {
    timedOut = 'yes';
    endGroup(child.pid);
  }, timeoutMs);
  // 'exit', not 'close': a process left behind may hold the pipes open.
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
    child.once('exit', (...how) => resolve(how));
    child.once('error', () => resolve([1, null]));
  });
  clearTimeout(timer);
  const leftBehind = await stragglers(child.pid);
  endGroup(child.pid);
  await Promise.race([closed, sleep(FOLLOW_MS, undefined, { ref: false })]);
  return { code, signal, timedOut, leftBehind };
}

/** Waits for the rest of a process group and names what stays. */
async function stragglers(group: number | undefined): Promise<readonly string[]> {
  const until = performance.now() + FOLLOW_MS;
  let alive = membersOf(group);
  while (alive.length > 0 && performance.now() < until) {
    await sleep(50);
    alive = membersOf(group);
  }
  return alive;
}

/** The command lines of the living members of a process group; none where /proc does not tell. */
function membersOf(group: number | undefined): readonly string[] {
  if (group === undefined || process.platform !== 'linux') return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        // "pid (name) state ppid pgrp …"; the name may hold anything, so it is cut off at its last bracket.
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
        const [state, , pgrp] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        if (Number(pgrp) !== group || state === 'Z') return [];
        return [readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()];
      } catch {
        return [];
      }
    });
}

function endGroup(group: number | undefined): void {
  if (group === undefined) return;
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // Nothing of it is left.
  }
}

function parse(text: string): readonly TestRecord[] {
  // A process that was cut off may have left half a line.
  return text
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line) as TestRecord);
}

/** What the record of a file and the way its process ended amount to. */
export function judge(
  records: readonly TestRecord[],
  ending: Ending,
): Pick<FileReport, 'passed' | 'failures' | 'skipped' | 'notes'> {
  const passed: string[] = [];
  const failures: Failure[] = [];
  const skipped: { title: string; reason: string }[] = [];
  const notes: string[] = [];
  const running = new Map<string, number>();
  const path: string[] = [];
  let open = 0;
  let complete = false;
  for (const record of records) {
    switch (record.kind) {
      case 'enqueued':
        open++;
        break;
      case 'running':
        running.set(record.name, (running.get(record.name) ?? 0) + 1);
        break;
      case 'settled':
        running.set(record.name, (running.get(record.name) ?? 0) - 1);
        break;
      case 'started':
        path.length = record.nesting;
        path[record.nesting] = record.name;
        break;
      case 'passed':
      case 'failed': {
        open--;
        path.length = record.nesting;
        path[record.nesting] = record.name;
        const title = path.join(' › ');
        const pending = record.skip ?? record.todo;
        if (record.kind === 'failed' && pending === undefined) {
          if (record.error !== undefined) failures.push({ title, detail: record.error });
        } else if (pending !== undefined) {
          skipped.push({ title, reason: pending === true ? '' : pending });
        } else if (record.what === 'test') {
          passed.push(title);
        }
        break;
      }
      case 'note':
        notes.push(record.message);
        break;
      case 'ended':
        complete = true;
    }
  }
  const whole = (title: string, detail = ''): void => {
    failures.push({ title, detail });
  };
  const stuck = [...running].filter(([, count]) => count > 0).map(([name]) => name);
  const ran = passed.length + failures.length + skipped.length > 0;
  if (ending.timedOut === 'yes') {
    whole(
      'the file timed out',
      stuck.length > 0
        ? `still running: ${stuck.join(', ')}`
        : 'every test was done: something keeps the process alive',
    );
  } else if (ending.signal !== null) {
    whole(`the file was ended by ${ending.signal}`, stuck.length > 0 ? `in: ${stuck.join(', ')}` : '');
  } else if (!ran) {
    whole(ending.code === 0 ? 'the file ran no test' : 'the file failed before its first test');
  } else if (!complete || open > 0) {
    whole('the file ended before its tests did', stuck.length > 0 ? `in: ${stuck.join(', ')}` : '');
  } else if (ending.code !== 0 && failures.length === 0) {
    whole(`the file exited with ${ending.code} though no test failed`, notes.join('\n'));
  }
  if (ending.leftBehind.length > 0) whole('the file left processes behind', ending.leftBehind.join('\n'));
  return { passed, failures, skipped, notes };
}
