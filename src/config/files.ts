/** The one place that touches the file system. */
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
} from 'node:fs';

/** Reads a whole text file, or throws. */
export type ReadFile = (path: string) => string;

/** Bound on one file: a configuration or a secret is never larger, and `/dev/zero` has no end. */
export const MAX_FILE_BYTES = 1024 * 1024;

/** Where `serve` and `validate` look when no `-c` is given. */
export const DEFAULT_FILES: readonly string[] = ['./headgate.yaml', '/etc/headgate/headgate.yaml'];

/** True for what holds its text each time it is read: no pipe, no terminal, no device. */
export function isRereadable(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Reads from disk; UTF-8 only, *bounded by* {@link MAX_FILE_BYTES}. Throws an Error whose message a person can act on. */
export const readTextFile: ReadFile = (path) => reading(path, constants.O_RDONLY, readWhole);

/** As {@link readTextFile}, for a program that has other things to do: *never* waits for somebody to write into a pipe. */
export const rereadTextFile: ReadFile = (path) =>
  reading(path, constants.O_RDONLY | constants.O_NONBLOCK, (handle) => {
    const found = fstatSync(handle);
    if (!found.isFile() && !found.isDirectory()) throw new Error('no file that can be read again');
    return readWhole(handle);
  });

function reading<T>(path: string, flags: number, read: (handle: number) => T): T {
  const handle = openSync(path, flags);
  try {
    return read(handle);
  } finally {
    closeSync(handle);
  }
}

function readWhole(handle: number): string {
  const buffer = Buffer.alloc(MAX_FILE_BYTES + 1);
  let length = 0;
  for (;;) {
    const count = readSync(handle, buffer, length, buffer.length - length, null);
    length += count;
    if (length > MAX_FILE_BYTES) throw new Error('larger than 1 MiB');
    if (count === 0) return decodeText(buffer.subarray(0, length));
  }
}

/** UTF-8 bytes as text, without a byte order mark. Throws on anything else. */
export function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error('not UTF-8 text');
  }
}

/** The first of the default files that exists. */
export function findDefaultFile(): string | undefined {
  return DEFAULT_FILES.find((path) => existsSync(path));
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of the path is no directory',
};

/** Why a file could not be read, without the path and without its content. */
export function readFailure(error: unknown): string {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  if (code !== undefined) return REASONS[code] ?? code;
  return error instanceof Error ? error.message : 'unreadable';
}

/** The version of this package. */
export function packageVersion(): string {
  return packageFound()?.version ?? 'unknown';
}

/**
 * The compiled scripts of the admin page, name and text. They are read from `dist` wherever this runs: a browser needs
 * what the sources are not, and a build for tests holds no second copy. Nothing where they were not built.
 */
export function readPageScripts(): readonly (readonly [name: string, text: string])[] {
  const folder = new URL('dist/admin/page/', packageFound()?.folder ?? import.meta.url);
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder).filter((name) => name.endsWith('.js'));
  return names.sort().map((name) => [name, readFileSync(new URL(name, folder), 'utf8')] as const);
}

/** The nearest `package.json` above that is this package's, so that a build folder finds it too. */
function packageFound(): { readonly folder: URL; readonly version: string } | undefined {
  let folder = new URL('.', import.meta.url);
  for (let level = 0; level < 6; level++) {
    const file = new URL('package.json', folder);
    if (existsSync(file)) {
      const manifest = JSON.parse(readFileSync(file, 'utf8')) as { name?: unknown; version?: unknown };
      if (manifest.name === 'headgate') return { folder, version: String(manifest.version) };
    }
    folder = new URL('../', folder);
  }
  return undefined;
}
