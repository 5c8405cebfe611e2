/**
 * Headgate as a child process: started, its addresses learnt from the start-up summary, ended by its own id.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

/** Bounded by: a cold start on a busy machine takes about two seconds. */
const START_WITHIN_MS = 20_000;
/** Longer than an idle gateway needs to drain, shorter than anybody's patience. */
const STOP_WITHIN_MS = 10_000;
/** The end of the output is what explains a failure; under load it is the log of a few hundred requests. */
const KEPT_OUTPUT_CHARS = 256 << 10;

/** A running gateway. */
export interface Gateway {
  /** Origin of the MCP listener, `http://127.0.0.1:PORT`. */
  readonly mcp: string;
  /** Origin of the status listener. */
  readonly status: string;
  readonly pid: number;
  /** The end of what it printed so far, both streams together. */
  output(): string;
  /** Asks it to drain, forces it when it does not; resolves with its exit code, `null` when it had to be forced. */
  stop(): Promise<number | null>;
}

interface GatewayOptions {
  /** The project folder, where `dist/main.js` is. */
  readonly root: string;
  /** Arguments of the command line, `['serve', …]`. */
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Every line that it prints, also those that `output` has long lost. */
  readonly onLine?: (line: string) => void;
  /** Gives up on the start; a gateway that runs already is ended by `stop`. */
  readonly signal?: AbortSignal;
}

/** The folder with package.json, seen from a compiled or a source file. */
export function projectRoot(from: string): string {
  let folder = from;
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error(`no package.json above ${from}`);
    folder = parent;
  }
  return folder;
}

/** Starts `node dist/main.js` and waits until it says where it listens. */
export async function startGateway({
  root,
  args,
  env = {},
  onLine,
  signal,
}: GatewayOptions): Promise<Gateway> {
  signal?.throwIfAborted();
  const entry = join(root, 'dist', 'main.js');
  if (!existsSync(entry)) throw new Error(`${entry} is missing: run \`npm run build\` first`);
  const child = spawn(process.execPath, [entry, ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = new Promise<number | null>((done) => {
    child.once('exit', (code) => done(code));
    child.once('error', () => done(null));
  });
  const killOnExit = () => child.kill('SIGKILL'); // the last resort: whatever ends this process ends its child
  process.once('exit', killOnExit);
  void exited.then(() => process.off('exit', killOnExit));

  const output = keepEnd(KEPT_OUTPUT_CHARS);
  for (const stream of [child.stderr, child.stdout]) {
    stream?.setEncoding('utf8').on('data', output.add);
    if (stream && onLine) createInterface({ input: stream }).on('line', onLine);
  }

  const stop = () => stopChild(child, exited);
  try {
    const addresses = await announced(child, exited, signal);
    return { ...addresses, pid: child.pid as number, stop, output: output.text };
  } catch (cause) {
    await stop();
    throw new Error(`the gateway did not start: ${(cause as Error).message}\n${output.text().trim()}`, {
      cause,
    });
  }
}

/** Text of which the last `chars` are wanted, in the pieces in which it came. */
function keepEnd(chars: number): { add(piece: string): void; text(): string } {
  const pieces: string[] = [];
  let length = 0;
  return {
    add(piece) {
      pieces.push(piece);
      length += piece.length;
      while (length - (pieces[0]?.length ?? 0) >= chars) length -= pieces.shift()?.length ?? 0;
    },
    text: () => pieces.join(''),
  };
}

/** The lines of the start-up summary that other programs read. */
const LISTENING = /^listening {2}(mcp {5}|status {2})(http:\/\/\S+)$/gm;

function announced(
  child: ChildProcess,
  exited: Promise<number | null>,
  signal?: AbortSignal,
): Promise<{ mcp: string; status: string }> {
  return new Promise((done, failed) => {
    let head = '';
    const timer = setTimeout(
      () => failed(new Error(`no addresses within ${START_WITHIN_MS} ms`)),
      START_WITHIN_MS,
    );
    const settle = (act: () => void) => {
      clearTimeout(timer);
      child.stdout?.off('data', read);
      act();
    };
    const read = (chunk: string) => {
      head += chunk;
      const complete = head.slice(0, head.lastIndexOf('\n') + 1); // an address cut in two by a chunk is no address yet
      const found = new Map([...complete.matchAll(LISTENING)].map(([, kind, url]) => [kind?.trim(), url]));
      const mcp = found.get('mcp');
      const status = found.get('status');
      if (mcp !== undefined && status !== undefined) settle(() => done({ mcp, status }));
    };
    child.stdout?.on('data', read);
    signal?.addEventListener('abort', () => settle(() => failed(new Error('interrupted'))), { once: true });
    void exited.then((code) => settle(() => failed(new Error(`it ended with exit code ${code}`))));
  });
}

async function stopChild(child: ChildProcess, exited: Promise<number | null>): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
  const code = await exited;
  clearTimeout(timer);
  return code;
}
