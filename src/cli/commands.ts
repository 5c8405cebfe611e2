/** The commands that answer at once. */
import { printConfig } from '../config/print.ts';
import { jsonSchemaText } from '../config/schema-json.ts';
import { loadFile } from './source.ts';
import { type CommandInput, EXIT, type Terminal } from './terminal.ts';

export async function validate({ options }: CommandInput, terminal: Terminal): Promise<number> {
  const source = await loadFile(options.config, terminal);
  if (source.kind === 'exit') return source.code;
  const { upstreams, routes } = source.config;
  const counts = [
    plural(upstreams.size, 'upstream'),
    plural(routes.length, 'route'),
    plural(source.warningCount, 'warning'),
  ];
  terminal.stdout.write(`${source.name}: fine (${counts.join(', ')})\n`);
  return EXIT.fine;
}

export async function printEffectiveConfig({ options }: CommandInput, terminal: Terminal): Promise<number> {
  const source = await loadFile(options.config, terminal);
  if (source.kind === 'exit') return source.code;
  terminal.stdout.write(printConfig(source.config));
  return EXIT.fine;
}

export async function printSchema(_: CommandInput, terminal: Terminal): Promise<number> {
  terminal.stdout.write(jsonSchemaText());
  return EXIT.fine;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
