/** The command line as data: which commands there are, what each takes, and how one line is read. */
import { parseArgs } from 'node:util';
import { nearest } from '../config/nearest.ts';
import { quote } from '../config/problems.ts';

export type CommandName =
  | 'serve'
  | 'validate'
  | 'print-config'
  | 'schema'
  | 'healthcheck'
  | 'purge'
  | 'inspect';

/** An option. */
export interface OptionRow {
  readonly name: string;
  readonly short?: string;
  /** What stands for the value in help texts; `undefined`: it takes none. */
  readonly value: string | undefined;
  readonly help: string;
}

export interface CommandRow {
  readonly name: CommandName;
  readonly usage: string;
  readonly summary: string;
  /** Further lines of its help. */
  readonly details: readonly string[];
  readonly options: readonly OptionRow[];
  /** `undefined`: takes no arguments. */
  readonly positional: string | undefined;
}

const CONFIG: OptionRow = {
  name: 'config',
  short: 'c',
  value: 'FILE',
  help: 'configuration file; - reads standard input (default: ./headgate.yaml, then /etc/headgate/headgate.yaml)',
};

/** Every command; a new command is a new row. */
export const COMMANDS: readonly CommandRow[] = [
  {
    name: 'serve',
    usage: 'headgate serve [-c FILE] [--listen A] [--status A] [--admin A] [URL…]',
    summary: 'run the gateway',
    details: [
      'With URLs there is no file: one route /mcp over those MCP servers, named by host and port.',
      'An address is host:port, such as 127.0.0.1:8080, [::1]:8080 or :8080; port 0 is a free one.',
      'SIGTERM and SIGINT drain, a second one cuts what still runs.',
      'The file is read again when it changes, and at SIGHUP; one that is no good changes nothing.',
    ],
    options: [
      CONFIG,
      { name: 'listen', value: 'ADDRESS', help: 'where MCP clients connect, in place of the file' },
      {
        name: 'status',
        value: 'ADDRESS',
        help: 'where /livez, /readyz and /metrics answer, in place of the file',
      },
      {
        name: 'admin',
        value: 'ADDRESS',
        help: 'where the admin API answers, or false, in place of the file',
      },
    ],
    positional: 'URL',
  },
  {
    name: 'validate',
    usage: 'headgate validate [-c FILE]',
    summary: 'check a configuration without opening a port',
    details: ['Prints each problem as FILE:line:column: path: what to write instead.'],
    options: [CONFIG],
    positional: undefined,
  },
  {
    name: 'print-config',
    usage: 'headgate print-config [-c FILE]',
    summary: 'print the effective configuration, secrets redacted',
    details: [],
    options: [CONFIG],
    positional: undefined,
  },
  {
    name: 'schema',
    usage: 'headgate schema',
    summary: 'print the JSON Schema of the configuration',
    details: [],
    options: [],
    positional: undefined,
  },
  {
    name: 'healthcheck',
    usage: 'headgate healthcheck [--url URL]',
    summary: 'ask a running gateway whether it is ready',
    details: ['Exits with 0 when it is, with 1 when it is not or does not answer within two seconds.'],
    options: [{ name: 'url', value: 'URL', help: 'what to ask (default: http://127.0.0.1:9902/readyz)' }],
    positional: undefined,
  },
  {
    name: 'purge',
    usage: 'headgate purge [-c FILE] [--all | [--upstream NAME] [--uri URI | --method METHOD]]',
    summary: 'drop what a running gateway caches, for every caller',
    details: [
      'Asks the admin port that the configuration names, with its token. Without an option: everything.',
      'What comes afterwards is answered by the upstreams; replicas that share Redis are told.',
    ],
    options: [
      CONFIG,
      { name: 'all', value: undefined, help: 'everything' },
      { name: 'upstream', value: 'NAME', help: 'only of this upstream' },
      { name: 'uri', value: 'URI', help: 'only this resource' },
      { name: 'method', value: 'METHOD', help: 'only of this method, such as tools/list' },
    ],
    positional: undefined,
  },
  {
    name: 'inspect',
    usage:
      'headgate inspect [--bearer-file FILE] [--read URI] [--timeout TIME] [--json] [URL | -c FILE --upstream NAME]',
    summary: 'look at one MCP server as the gateway would, and say what is wrong with it',
    details: [
      'Reads its lists and a few resources, and asks what a server must refuse; never calls a tool, gets a prompt or',
      'changes anything. Exits with 0 when there are no violations, with 1 when there are, or when nobody answers.',
      'A token can also stand in HEADGATE_BEARER. With -c FILE --upstream NAME it asks as that upstream is configured.',
    ],
    options: [
      CONFIG,
      { name: 'upstream', value: 'NAME', help: 'an upstream of the configuration, with its credential' },
      { name: 'bearer-file', value: 'FILE', help: 'a file with the bearer token to send' },
      { name: 'read', value: 'URI', help: 'the resource to read, in place of the first five listed' },
      {
        name: 'timeout',
        value: 'TIME',
        help: 'longest wait for an answer, such as 10s (default: 10s, or that of the configuration)',
      },
      { name: 'json', value: undefined, help: 'the report for machines' },
    ],
    positional: 'URL',
  },
];

export type CommandLine =
  | {
      readonly kind: 'run';
      readonly command: CommandName;
      readonly options: Readonly<Record<string, string>>;
      readonly positionals: readonly string[];
    }
  | { readonly kind: 'help'; readonly command: CommandRow | undefined }
  | { readonly kind: 'version' }
  /** Exit code 2. */
  | { readonly kind: 'bad'; readonly message: string; readonly command: CommandRow | undefined };

/** Reads one command line, without the program's name. Pure; *never* throws. */
export function readCommandLine(args: readonly string[]): CommandLine {
  const [first, ...rest] = args;
  switch (first) {
    case undefined:
      return bad('a command is missing');
    case '-h':
    case '--help':
      return { kind: 'help', command: undefined };
    case '-V':
    case '--version':
      return { kind: 'version' };
    case 'help':
      return help(rest[0]);
  }
  const command = COMMANDS.find(({ name }) => name === first);
  if (command !== undefined) return readCommand(command, rest);
  if (first.startsWith('-')) return bad(`unknown option ${quote(first)} before a command; ${KNOWN_COMMANDS}`);
  if (/^https?:/.test(first))
    return bad('a URL needs a command before it: headgate serve URL, or headgate inspect URL');
  return unknownCommand(first);
}

const KNOWN_COMMANDS = `commands: ${COMMANDS.map(({ name }) => name).join(', ')}`;

function help(topic: string | undefined): CommandLine {
  const command = COMMANDS.find(({ name }) => name === topic);
  return topic !== undefined && command === undefined ? unknownCommand(topic) : { kind: 'help', command };
}

function unknownCommand(word: string): CommandLine {
  const meant = nearest(
    word,
    COMMANDS.map(({ name }) => name),
  );
  return bad(
    `unknown command ${quote(word)}; ${meant === undefined ? KNOWN_COMMANDS : `did you mean ${quote(meant)}?`}`,
  );
}

function readCommand(command: CommandRow, args: readonly string[]): CommandLine {
  const { tokens } = parseArgs({
    args: [...args],
    // Not strict: Node's own words for a mistake name no likely option and vary between versions.
    strict: false,
    allowPositionals: true,
    tokens: true,
    options: {
      help: { type: 'boolean', short: 'h' },
      ...Object.fromEntries(
        command.options.map(({ name, short, value }) => [
          name,
          {
            type: value === undefined ? ('boolean' as const) : ('string' as const),
            ...(short === undefined ? {} : { short }),
          },
        ]),
      ),
    },
  });
  const options: Record<string, string> = {};
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue;
    if (token.kind === 'positional') {
      if (command.positional === undefined) return bad(`${command.name} takes no arguments`, command);
      positionals.push(token.value);
      continue;
    }
    if (token.name === 'help') return { kind: 'help', command };
    const row = command.options.find(({ name }) => name === token.name);
    if (row === undefined) return bad(unknownOption(token.rawName, command), command);
    if (token.name in options) return bad(`${token.rawName} is given twice`, command);
    if (row.value === undefined) {
      if (token.value !== undefined) return bad(`${token.rawName} takes no value`, command);
      options[token.name] = 'true';
      continue;
    }
    const swallowsOption = !token.inlineValue && token.value !== undefined && /^-./.test(token.value);
    if (token.value === undefined || token.value === '' || swallowsOption) {
      return bad(`${token.rawName} needs a value: ${token.rawName} ${row.value}`, command);
    }
    options[token.name] = token.value;
  }
  return { kind: 'run', command: command.name, options, positionals };
}

function unknownOption(written: string, command: CommandRow): string {
  const known = [...command.options.map(({ name }) => `--${name}`), '--help'];
  const meant = nearest(written, known);
  return `unknown option ${quote(written)}; ${meant === undefined ? `known here: ${known.join(', ')}` : `did you mean ${quote(meant)}?`}`;
}

function bad(message: string, command?: CommandRow): CommandLine {
  return { kind: 'bad', message, command };
}
