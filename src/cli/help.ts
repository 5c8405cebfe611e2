/** Help texts, out of the command table. */
import { COMMANDS, type CommandRow } from './args.ts';

/** The help of one command, or of the program. */
export function helpText(command: CommandRow | undefined): string {
  return command === undefined ? programHelp() : commandHelp(command);
}

function programHelp(): string {
  return lines([
    'headgate: the caching gateway for MCP',
    '',
    'Usage: headgate COMMAND [OPTION…]',
    '',
    'Commands:',
    ...columns(COMMANDS.map(({ name, summary }) => [name, summary])),
    '',
    'Options:',
    ...columns([
      ['-h, --help', 'this text; headgate COMMAND --help says more'],
      ['-V, --version', 'the version'],
    ]),
    '',
    'Exit codes: 0 fine; 1 failed; 2 bad command line; 3 shut down with work cut off.',
  ]);
}

function commandHelp({ usage, summary, details, options }: CommandRow): string {
  const rows = options.map(({ name, short, value, help }): readonly [string, string] => [
    `${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`,
    help,
  ]);
  return lines([
    `${usage}: ${summary}`,
    ...(details.length === 0 ? [] : ['', ...details]),
    '',
    'Options:',
    ...columns([...rows, ['-h, --help', 'this text']]),
  ]);
}

function columns(rows: readonly (readonly [string, string])[]): readonly string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}

function lines(all: readonly string[]): string {
  return `${all.join('\n')}\n`;
}
