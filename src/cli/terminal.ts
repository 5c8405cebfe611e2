/** What a command touches of the world: two streams, standard input, the environment, signals. */
import { formatProblem, type Problem } from '../config/problems.ts';

/** The part of `process` that commands use; a test passes its own. */
export type Terminal = Pick<NodeJS.Process, 'env' | 'stdin' | 'stdout' | 'stderr' | 'on' | 'off'>;

/** What a command gets of its line. */
export interface CommandInput {
  readonly options: Readonly<Record<string, string>>;
  readonly positionals: readonly string[];
}

/** Exit codes. */
export const EXIT = { fine: 0, failed: 1, badCommandLine: 2, cutOff: 3 } as const;

/** One line of the program's own to standard error. */
export function complain({ env, stderr }: Terminal, message: string): void {
  stderr.write(`${paint('headgate:', 'red', stderr, env)} ${message}\n`);
}

/** Each problem on a line of its own, on standard error; `file` is what stands before the line number. */
export function printProblems({ env, stderr }: Terminal, file: string, problems: readonly Problem[]): void {
  for (const problem of problems) {
    const line = formatProblem(file, problem);
    stderr.write(`${problem.severity === 'warning' ? paint(line, 'yellow', stderr, env) : line}\n`);
  }
}

const COLOURS = { red: 31, yellow: 33 } as const;

/** Coloured on a terminal, unless `NO_COLOR` is set and not empty (no-color.org). */
function paint(
  text: string,
  colour: keyof typeof COLOURS,
  stream: NodeJS.WriteStream,
  env: NodeJS.ProcessEnv,
): string {
  if (!stream.isTTY || (env.NO_COLOR ?? '') !== '') return text;
  return `\u001b[${COLOURS[colour]}m${text}\u001b[0m`;
}
