/**
 * A process that speaks newline-delimited JSON over its standard input and output.
 *
 * It leads a process group of its own, so that what it started in turn (`npx` starts a shell, which starts the
 * server) ends with it. Whatever it does, it can only end itself: nothing here throws, and why it ended is told once.
 * *Spec:* basic/transports, "stdio".
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { secretsOf } from '../config/display.ts';
import { environmentOf } from '../config/environment.ts';
import type { ProcessConfig } from '../config/types.ts';
import { skipSpace, wholeValue } from '../protocol/json.ts';
import { Lines } from './child-lines.ts';
import { type ChildLog, SideTalk } from './child-log.ts';
import { CANCELLED, failure } from './failure.ts';
import { ProcessGroup } from './process-group.ts';
import type { Failure } from './types.ts';

/** What is told of a process. *Never* before {@link startChild} has returned. */
export interface ChildHooks {
  /** One message: the bytes of one line that is a JSON object. */
  message(bytes: Uint8Array): void;
  /** The process is gone, or was never there. Told once; no message comes behind it. */
  ended(reason: Failure): void;
}

/** One process. */
export interface Child {
  /**
   * Writes one message as one line; false when it cannot be taken: the process is gone, or has long stopped reading.
   * See {@link writable} for when more should be written.
   */
  send(message: string | Uint8Array): boolean;
  /** Resolves when more should be written: at once, when what was written is taken, or when the process is gone. */
  readonly writable: Promise<void>;
  /** Whether it can be written to; false as soon as it is known that its end comes. */
  readonly isOpen: boolean;
  /** Undefined when it could not be started. */
  readonly pid: number | undefined;
  /**
   * Ends it: standard input closed, SIGTERM 2 s later, SIGKILL again 2 s later. Resolves when it is gone, with all
   * it started.
   */
  close(): Promise<void>;
}

export interface ChildDeps {
  /** Of the upstream, for the log. */
  readonly name: string;
  readonly log?: ChildLog;
  /** Default: {@link CHILD_TIMES}. */
  readonly times?: ChildTimes;
  /** Monotonic milliseconds. */
  readonly now?: () => number;
}

/** All in milliseconds; tests have shorter ones. */
export interface ChildTimes {
  /** From closing standard input to SIGTERM, and from there to SIGKILL. */
  readonly patienceMs: number;
  /** How long after its end, or that of one of its pipes, the rest is waited for. */
  readonly lastWordsMs: number;
}

/** A server that has work to finish does it in this time, or not at all. */
const PATIENCE_MS = 2_000;
/** What was written before the end is in the pipe by then; a grandchild could hold the pipe open for ever. */
const LAST_WORDS_MS = 500;
/** The largest answer that is read at all; a line above it is no message. */
const MAX_MESSAGE_BYTES = 64 << 20;
/** A process that leaves this much unread does not read any more. */
const MAX_UNREAD_BYTES = 64 << 20;

/** The times in use. */
export const CHILD_TIMES: ChildTimes = { patienceMs: PATIENCE_MS, lastWordsMs: LAST_WORDS_MS };

const OPEN_BRACE = 0x7b;

/** Starts a process. *Never* throws: one that cannot be started has ended. */
export function startChild(config: ProcessConfig, deps: ChildDeps, hooks: ChildHooks): Child {
  return new RunningChild(config, deps, hooks);
}

class RunningChild implements Child {
  readonly pid: number | undefined;
  readonly #hooks: ChildHooks;
  readonly #times: ChildTimes;
  readonly #talk: SideTalk;
  readonly #process: ChildProcess | undefined;
  readonly #group: ProcessGroup | undefined;
  readonly #out = new Lines(MAX_MESSAGE_BYTES, (line, length) =>
    length === 'whole' ? this.#message(line) : this.#tooLong(),
  );
  readonly #told = deferred();
  readonly #gone = deferred();
  /** Set as soon as it is known why the end comes: nothing is sent any more. */
  #reason: Failure | undefined;
  #state: 'running' | 'exited' | 'told' = 'running';
  #drained: ReturnType<typeof deferred> | undefined;
  #how = '';

  constructor(config: ProcessConfig, deps: ChildDeps, hooks: ChildHooks) {
    const { name, log, times = CHILD_TIMES, now = () => performance.now() } = deps;
    this.#hooks = hooks;
    this.#times = times;
    this.#talk = new SideTalk(name, secretsOf(config), log, now);
    try {
      this.#process = spawn(config.command, config.args, {
        cwd: config.cwd,
        env: environmentOf(config),
        stdio: ['pipe', 'pipe', 'pipe'],
        // A process group of its own.
        detached: true,
        windowsHide: true,
      });
    } catch (error) {
      // Too long a command line, for example: some errors are thrown, most are emitted.
      queueMicrotask(() => this.#unstarted(error, config));
      return;
    }
    this.pid = this.#process.pid;
    if (this.pid !== undefined) this.#group = new ProcessGroup(this.pid);
    this.#wire(this.#process, config);
  }

  get isOpen(): boolean {
    const isRunning = this.pid !== undefined && this.#state === 'running' && this.#reason === undefined;
    return isRunning && this.#process?.stdin?.writable === true;
  }

  send(message: string | Uint8Array): boolean {
    const stdin = this.#process?.stdin;
    if (!this.isOpen || !stdin || stdin.writableLength > MAX_UNREAD_BYTES) return false;
    stdin.cork();
    stdin.write(oneLine(message));
    stdin.write('\n');
    stdin.uncork();
    return true;
  }

  get writable(): Promise<void> {
    if (!this.isOpen || this.#process?.stdin?.writableNeedDrain !== true) return Promise.resolve();
    this.#drained ??= deferred();
    return this.#drained.promise;
  }

  close(): Promise<void> {
    if (this.#state === 'running' && this.pid !== undefined) this.#finish(CANCELLED, 'politely');
    return this.#gone.promise;
  }

  #wire(child: ChildProcess, config: ProcessConfig): void {
    child.once('error', (error) => {
      // Also emitted when a signal could not be sent: it is there, then.
      if (this.pid === undefined) this.#unstarted(error, config);
    });
    child.once('exit', (code, signal) => this.#exited(code, signal));
    child.once('close', () => this.#tell());
    child.stdin?.on('drain', () => this.#settleDrained());
    child.stdin?.on('error', () => this.#fade('closed its standard input'));
    child.stdout?.on('data', (chunk: Buffer) => this.#heard(chunk));
    child.stdout?.on('error', () => {});
    child.stdout?.once('end', () => this.#fade('closed its standard output'));
    child.stderr?.on('data', (chunk: Buffer) => this.#talk.stderr(chunk));
    child.stderr?.on('error', () => {});
  }

  #heard(chunk: Uint8Array): void {
    if (this.#state === 'told' || this.#reason?.kind === 'too_large') return;
    this.#out.add(chunk);
    if (this.#out.isTooLong) this.#tooLong();
  }

  #tooLong(): void {
    if (this.#reason?.kind === 'too_large') return;
    const text = `a line above ${MAX_MESSAGE_BYTES >> 20} MiB on standard output`;
    this.#finish(failure('too_large', 'http_response_body_size', text), 'at once');
  }

  #message(line: Uint8Array): void {
    if (this.#state === 'told' || this.#reason?.kind === 'too_large') return;
    const start = skipSpace(line, 0);
    if (start === line.length) return;
    if (line[start] === OPEN_BRACE && wholeValue(line) !== undefined) this.#hooks.message(line);
    else this.#talk.junk(line);
  }

  /** A pipe is closed. Mostly that is the end of the process, which has a better reason a moment later. */
  #fade(what: string): void {
    setTimeout(() => {
      if (this.#state === 'running' && this.#reason === undefined)
        this.#finish(failure('reset', 'connection_terminated', what), 'at once');
    }, this.#times.lastWordsMs).unref();
  }

  /** Ends what still runs, for this reason. */
  #finish(reason: Failure, how: 'politely' | 'at once'): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#settleDrained();
    this.#process?.stdin?.end();
    const { patienceMs } = this.#times;
    const terminate = (): void => {
      this.#group?.signal('SIGTERM');
      timers.push(setTimeout(() => this.#group?.signal('SIGKILL'), patienceMs));
    };
    const timers: NodeJS.Timeout[] = [];
    if (how === 'politely') timers.push(setTimeout(terminate, patienceMs));
    else terminate();
    this.#process?.once('exit', () => timers.forEach(clearTimeout));
  }

  #unstarted(error: unknown, { cwd }: ProcessConfig): void {
    const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
    const what = typeof code === 'string' ? code : String(message);
    // The system says the same of both.
    const which = code === 'ENOENT' && cwd !== undefined ? ' (the command, or its cwd)' : '';
    this.#reason = failure('connect', 'destination_unavailable', `spawn ${what}${which}`);
    this.#tell();
    this.#gone.resolve();
  }

  #exited(code: number | null, signal: string | null): void {
    if (this.#state === 'running') this.#state = 'exited';
    this.#how = signal === null ? `exited with code ${code}` : `ended by ${signal}`;
    this.#settleDrained();
    // What it said last is still to be read; whoever it left behind may hold the pipes open.
    const timer = setTimeout(() => this.#tell(), this.#times.lastWordsMs);
    this.#process?.once('close', () => clearTimeout(timer));
    const swept = this.#group?.sweep(this.#times.patienceMs);
    Promise.all([swept, this.#told.promise]).then(() => this.#gone.resolve());
  }

  #tell(): void {
    if (this.#state === 'told') return;
    this.#out.end();
    this.#talk.end();
    this.#state = 'told';
    const { lastLine } = this.#talk;
    const detail = lastLine === undefined ? this.#how : `${this.#how}: ${lastLine}`;
    this.#hooks.ended(this.#reason ?? failure('reset', 'connection_terminated', detail));
    for (const stream of [this.#process?.stdin, this.#process?.stdout, this.#process?.stderr])
      stream?.destroy();
    this.#told.resolve();
  }

  #settleDrained(): void {
    this.#drained?.resolve();
    this.#drained = undefined;
  }
}

/** In valid JSON a line break is white space between tokens; over this transport it would be the end of the message. */
function oneLine(message: string | Uint8Array): string | Uint8Array {
  if (typeof message === 'string') return message.replaceAll(/[\r\n]/g, ' ');
  if (!message.includes(0x0a) && !message.includes(0x0d)) return message;
  const line = Uint8Array.from(message);
  for (const byte of [0x0a, 0x0d])
    for (let at = line.indexOf(byte); at >= 0; at = line.indexOf(byte, at + 1)) line[at] = 0x20;
  return line;
}

function deferred(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
