/** One command line from arguments to exit code. */
import { packageVersion } from '../config/files.ts';
import { type CommandLine, type CommandName, readCommandLine } from './args.ts';
import { helpText } from './help.ts';
import { type CommandInput, complain, EXIT, type Terminal } from './terminal.ts';

type Run = (input: CommandInput, terminal: Terminal) => Promise<number>;

/** Loaded when asked for: a health check every few seconds should not pay for the whole gateway. */
const RUN: Readonly<Record<CommandName, () => Promise<Run>>> = {
  serve: async () => (await import('./serve.ts')).serve,
  validate: async () => (await import('./commands.ts')).validate,
  'print-config': async () => (await import('./commands.ts')).printEffectiveConfig,
  schema: async () => (await import('./commands.ts')).printSchema,
  healthcheck: async () => (await import('./healthcheck.ts')).healthcheck,
  purge: async () => (await import('./purge.ts')).purge,
  inspect: async () => (await import('./inspect.ts')).inspectServer,
};

/**
 * Runs one command and resolves with its exit code. Data goes to standard output, everything else to standard error.
 * @param args the arguments without the program's name
 */
export async function runCli(args: readonly string[], terminal: Terminal): Promise<number> {
  // What cannot even be complained of is no reason to end.
  terminal.stderr.on('error', () => {});
  let unwritten = false;
  terminal.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    // `headgate schema | head`: the reader has what it wanted, and that is no failure of ours.
    if (code === 'EPIPE' || unwritten) return;
    unwritten = true;
    complain(terminal, `standard output cannot be written: ${message}`);
  });
  const line = readCommandLine(args);
  const code = await runLine(line, terminal);
  // A gateway that served has done its work, whoever read the addresses that it told.
  if (line.kind === 'run' && line.command === 'serve') return code;
  await new Promise<void>((resolve) => {
    terminal.stdout.write('', () => resolve());
  });
  return unwritten && code === EXIT.fine ? EXIT.failed : code;
}

async function runLine(line: CommandLine, terminal: Terminal): Promise<number> {
  switch (line.kind) {
    case 'help':
      terminal.stdout.write(helpText(line.command));
      return EXIT.fine;
    case 'version':
      terminal.stdout.write(`headgate ${packageVersion()}\n`);
      return EXIT.fine;
    case 'bad':
      complain(terminal, line.message);
      terminal.stderr.write(
        `${line.command?.usage ?? 'headgate COMMAND [OPTION…]'}\nheadgate --help says more.\n`,
      );
      return EXIT.badCommandLine;
    case 'run':
      return (await RUN[line.command]())(line, terminal);
  }
}
