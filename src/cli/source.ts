/** From command-line options to a configuration, or to the exit code of a failure that has been printed. */
import { createHash } from 'node:crypto';
import { TEN_LINE_EXAMPLE } from '../config/example.ts';
import {
  DEFAULT_FILES,
  decodeText,
  findDefaultFile,
  isRereadable,
  MAX_FILE_BYTES,
  type ReadFile,
  readFailure,
  readTextFile,
  rereadTextFile,
} from '../config/files.ts';
import { fromUrls, type LoadResult, loadConfig, STANDARD_INPUT } from '../config/load.ts';
import type { Overrides } from '../config/normalize.ts';
import type { HeadgateConfig } from '../config/types.ts';
import { complain, EXIT, printProblems, type Terminal } from './terminal.ts';

export type Source =
  | {
      readonly kind: 'loaded';
      readonly config: HeadgateConfig;
      readonly name: string;
      readonly warningCount: number;
      /** What was read; absent where there is nothing to read again. */
      readonly file?: ConfigFile;
    }
  | { readonly kind: 'exit'; readonly code: number };

/** What was made of a file at one time. */
export interface Reading {
  readonly result: LoadResult;
  /** The file, and those that it refers to, in the order in which they were read. */
  readonly files: readonly string[];
  /** Differs where the content of any of them does. */
  readonly digest: string;
}

/** A configuration that can be read again. */
export interface ConfigFile {
  readonly name: string;
  /** What the configuration in use was made of. */
  readonly first: Reading;
  read(): Reading;
  /** The digest of these files as they are now, without a look at what they say: that is soon done. */
  digest(files: readonly string[]): string;
}

/** Reads a configuration, and notes what was read for it. */
function readNoting(source: string, env: Terminal['env'], overrides: Overrides, readFile: ReadFile): Reading {
  const noted = noting(readFile);
  const result = loadConfig(source, env, noted.readFile, overrides);
  return { result, files: noted.files, digest: noted.digest() };
}

function digestOf(files: readonly string[], readFile: ReadFile): string {
  const noted = noting(readFile);
  for (const file of files) {
    try {
      noted.readFile(file);
    } catch {
      // That it cannot be read is noted, too.
    }
  }
  return noted.digest();
}

/** Reads, and notes what came of it, once a file. */
function noting(readFile: ReadFile): {
  readonly readFile: ReadFile;
  readonly files: readonly string[];
  digest(): string;
} {
  const files: string[] = [];
  const hash = createHash('sha256');
  const note = (path: string, what: string): void => {
    if (files.includes(path)) return;
    files.push(path);
    hash.update(`${path.length}:${path}${what.length}:${what}`);
  };
  return {
    files,
    digest: () => hash.digest('hex'),
    readFile(path) {
      try {
        const text = readFile(path);
        note(path, text);
        return text;
      } catch (error) {
        note(path, readFailure(error));
        throw error;
      }
    },
  };
}

/** Loads `-c FILE`, or the first default file; prints its problems and warnings. */
export async function loadFile(
  file: string | undefined,
  terminal: Terminal,
  overrides: Overrides = {},
): Promise<Source> {
  const source = file ?? findDefaultFile();
  if (source === undefined) {
    complain(
      terminal,
      `there is no ${DEFAULT_FILES.join(' and no ')}; save this as headgate.yaml, or name URLs of MCP servers:`,
    );
    terminal.stderr.write(`\n${TEN_LINE_EXAMPLE}`);
    return { kind: 'exit', code: EXIT.badCommandLine };
  }
  const name = source === STANDARD_INPUT ? '<stdin>' : source;
  const typed = source === STANDARD_INPUT ? await readStandardInput(terminal) : undefined;
  const readFile = (path: string) =>
    path === STANDARD_INPUT && typed !== undefined ? decodeText(typed) : readTextFile(path);
  const first = readNoting(source, terminal.env, overrides, readFile);
  const loaded = conclude(first.result, name, EXIT.failed, terminal);
  if (loaded.kind === 'exit' || typed !== undefined || !isRereadable(source)) return loaded;
  const again: ConfigFile = {
    ...{ name, first },
    read: () => readNoting(source, terminal.env, overrides, rereadTextFile),
    digest: (files) => digestOf(files, rereadTextFile),
  };
  return { ...loaded, file: again };
}

/** The configuration of `serve URL…`; what is wrong with it is wrong with the command line. */
export function loadUrls(urls: readonly string[], terminal: Terminal, overrides: Overrides): Source {
  return conclude(fromUrls(urls, overrides), 'command line', EXIT.badCommandLine, terminal);
}

function conclude(result: LoadResult, name: string, codeOfFailure: number, terminal: Terminal): Source {
  const problems = result.kind === 'ok' ? result.warnings : result.problems;
  printProblems(terminal, name, problems);
  if (result.kind === 'ok')
    return { kind: 'loaded', config: result.config, name, warningCount: problems.length };
  const count = problems.filter(({ severity }) => severity === 'error').length;
  complain(terminal, `${count} ${count === 1 ? 'problem' : 'problems'} in ${name}`);
  return { kind: 'exit', code: codeOfFailure };
}

async function readStandardInput({ stdin }: Terminal): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk as Uint8Array);
    length += bytes.length;
    chunks.push(bytes);
    // The rest is not read: what is above the bound is refused as a file would be.
    if (length > MAX_FILE_BYTES) break;
  }
  return Buffer.concat(chunks);
}
