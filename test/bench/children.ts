/** Servers as child processes: pinned to a core, known by their port, watched by their id, ended by it. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { availableParallelism } from 'node:os';

/** A busy machine starts a server in a few seconds. */
const START_WITHIN_MS = 30_000;
const STOP_WITHIN_MS = 10_000;
const KEPT_OUTPUT_CHARS = 4_000;

/** A running server. */
export interface Child {
  readonly name: string;
  readonly pid: number;
  readonly port: number;
  stop(): Promise<void>;
}

export interface StartOptions {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Where on standard output the port stands: the first group. A number where it was chosen beforehand. */
  readonly port: RegExp | number;
  readonly core: 'server' | 'client';
}

/** Whether a command is there. */
export function has(command: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;
}

const pins = availableParallelism() > 1 && has('taskset');

/** Says where things run. */
export const PINNING = pins ? 'servers under test on core 0, load and upstreams on core 1' : 'not pinned';

/** `command` so that it runs on its core. */
export function pinned(
  command: string,
  args: readonly string[],
  core: 'server' | 'client',
): [string, string[]] {
  return pins ? ['taskset', ['-c', core === 'server' ? '0' : '1', command, ...args]] : [command, [...args]];
}

/** Moves this process out of the way of the servers under test. */
export function pinSelf(): void {
  if (pins) execFileSync('taskset', ['-apc', '1', String(process.pid)], { stdio: 'ignore' });
}

/** A port that was free a moment ago, for servers that cannot say which one they got. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

const running = new Set<ChildProcess>();
// The last resort: whatever ends this process ends its children.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts a server and waits until it can be reached. Its standard error goes nowhere, as a log would be shipped. */
export async function startChild({ name, command, args, port, core }: StartOptions): Promise<Child> {
  const [file, all] = pinned(command, args, core);
  const child = spawn(file, all, { stdio: ['ignore', 'pipe', typeof port === 'number' ? 'pipe' : 'ignore'] });
  running.add(child);
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  void exited.then(() => running.delete(child));
  let output = '';
  const keep = (text: Buffer): void => {
    output = (output + text.toString()).slice(-KEPT_OUTPUT_CHARS);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
    await exited;
    clearTimeout(timer);
  };
  try {
    const found = await within(
      START_WITHIN_MS,
      typeof port === 'number' ? reachable(port, child) : announced(child, port),
      exited,
    );
    return { name, pid: child.pid as number, port: found, stop };
  } catch (cause) {
    await stop();
    throw new Error(`${name} did not start: ${(cause as Error).message}\n${output}`, { cause });
  }
}

async function within<T>(ms: number, wanted: Promise<T>, exited: Promise<void>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${ms} ms`)), ms);
  });
  const gone = exited.then<never>(() => {
    throw new Error('it has ended');
  });
  try {
    return await Promise.race([wanted, late, gone]);
  } finally {
    clearTimeout(timer);
  }
}

function announced(child: ChildProcess, pattern: RegExp): Promise<number> {
  return new Promise((resolve) => {
    let text = '';
    const read = (chunk: Buffer): void => {
      text += chunk.toString();
      const port = pattern.exec(text)?.[1];
      if (port === undefined) return;
      child.stdout?.off('data', read);
      resolve(Number(port));
    };
    child.stdout?.on('data', read);
  });
}

async function reachable(port: number, child: ChildProcess): Promise<number> {
  const { connect } = await import('node:net');
  while (child.exitCode === null) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.destroy();
        resolve(true);
      });
      socket.once('error', () => resolve(false));
    });
    if (open) return port;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('it has ended');
}

/** One tick of `/proc/PID/stat`, on every Linux there is. */
const TICK_US = 10_000;

/** CPU time a process has used, all its threads, in µs; undefined where there is no `/proc`. */
export function cpuUs(pid: number): number | undefined {
  const stat = readProc(pid, 'stat');
  if (stat === undefined) return undefined;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_US;
}

/** Resident memory now, and the most it ever was, in KB. */
export function memoryKb(pid: number): { readonly rss: number; readonly peak: number } | undefined {
  const status = readProc(pid, 'status');
  if (status === undefined) return undefined;
  const of = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
  return { rss: of('VmRSS'), peak: of('VmHWM') };
}

function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return undefined;
  }
}
