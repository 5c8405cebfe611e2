/** What tests of stdio upstreams share: small programs, what was heard of them, and whether a process is gone. */
import { readFileSync } from 'node:fs';
import { Secret } from '../../src/config/secret.ts';
import type { ProcessConfig } from '../../src/config/types.ts';
import {
  CHILD_TIMES,
  type Child,
  type ChildHooks,
  type ChildTimes,
  startChild,
} from '../../src/upstream/child.ts';
import type { Failure } from '../../src/upstream/types.ts';
import { until } from './fault-server.ts';

type Env = Readonly<Record<string, string>>;

/** A Node program of a few lines (CommonJS), as the process of an upstream. */
export function program(script: string, env: Env = {}, rest: Partial<ProcessConfig> = {}): ProcessConfig {
  return {
    command: process.execPath,
    args: ['-e', script],
    env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, new Secret(value)])),
    cwd: undefined,
    shared: false,
    ...rest,
  };
}

/** Says every message back, and ends with its standard input. */
export const ECHO = 'process.stdin.pipe(process.stdout)';
/** Stays whatever happens to its standard input. */
export const STAY = 'setInterval(() => {}, 1000);';

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Takes log lines, and hands out those of one message. */
export function logTaker() {
  const lines: LogLine[] = [];
  return {
    lines,
    log: (level: string, message: string, fields: LogLine['fields']): void => {
      lines.push({ level, message, fields });
    },
    said: (part: string): LogLine[] => lines.filter(({ message }) => message.includes(part)),
  };
}

/** Patience that a test has. */
export const SHORT: ChildTimes = { ...CHILD_TIMES, patienceMs: 300 };

/** What was heard of a process. */
export class Ear implements ChildHooks {
  readonly messages: string[] = [];
  readonly reasons: Failure[] = [];

  message(bytes: Uint8Array): void {
    this.messages.push(Buffer.from(bytes).toString('utf8'));
  }

  ended(reason: Failure): void {
    this.reasons.push(reason);
  }

  /** The first `count` messages, read as JSON. */
  async heard(count: number): Promise<unknown[]> {
    await until(() => this.messages.length >= count, `${count} messages`, 10_000);
    return this.messages.map((text) => JSON.parse(text) as unknown);
  }

  /** Why it ended. */
  async end(): Promise<Failure> {
    await until(() => this.reasons.length > 0, 'the end of the process', 20_000);
    return this.reasons[0] as Failure;
  }
}

export interface Started extends ReturnType<typeof logTaker> {
  readonly child: Child;
  readonly ear: Ear;
}

/** Starts a process and listens to it. */
export function started(config: ProcessConfig, times: ChildTimes = SHORT): Started {
  const taker = logTaker();
  const ear = new Ear();
  return { ...taker, ear, child: startChild(config, { name: 'docs', log: taker.log, times }, ear) };
}

/** Whether a process has ended. One that nobody has fetched yet has. */
export function isGone(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return /^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
  } catch {
    // No such process, or a system without /proc.
  }
  try {
    return !process.kill(pid, 0);
  } catch {
    return true;
  }
}

export async function gone(pid: number): Promise<void> {
  await until(() => isGone(pid), `the end of process ${pid}`, 10_000);
}
