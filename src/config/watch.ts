/**
 * Says when a file may have changed, however that was done: written in place, renamed over, or behind a link that now
 * leads elsewhere, as Kubernetes does with what it mounts.
 *
 * Folders are watched, not files: a file that is renamed over is another one, and its watcher would watch what is gone.
 * Every folder counts that a path leads through by links. Of what is told nothing is believed but that it is time to
 * look; and it is looked now and then in any case, for file systems that tell nothing.
 */
import {
  type BigIntStats,
  type FSWatcher,
  lstatSync,
  readlinkSync,
  realpathSync,
  statSync,
  watch,
} from 'node:fs';
import { dirname, resolve } from 'node:path';

/** A change is seldom one event: it is over when nothing has come for so long. */
const QUIET_MS = 150;
/** Whoever writes on and on is not waited for longer. */
const MOST_MS = 2_000;
/** How often it is looked without having been told. */
const LOOK_MS = 5_000;
/** Links that a path leads through, beyond which it goes round in circles. */
const MAX_LINKS = 40;

export interface FileWatch {
  /** Watches these instead, and looks at them once. */
  follow(files: readonly string[]): void;
  /** Idempotent. */
  close(): void;
}

/**
 * @param onChange called when one of the files may be another than it was at the call before, and once at the beginning;
 * *never* within this call.
 */
export function watchFiles(files: readonly string[], onChange: () => void): FileWatch {
  const watchers = new Map<string, FSWatcher>();
  let followed: readonly string[] = files;
  let seen = '';
  let quiet: NodeJS.Timeout | undefined;
  let firstAt: number | undefined;
  let closed = false;

  const told = (): void => {
    if (closed) return;
    firstAt ??= performance.now();
    const left = firstAt + MOST_MS - performance.now();
    clearTimeout(quiet);
    quiet = setTimeout(look, Math.max(0, Math.min(QUIET_MS, left)));
    quiet.unref();
  };
  const look = (): void => {
    firstAt = undefined;
    arm();
    const now = fingerprint(followed);
    if (now === seen) return;
    seen = now;
    onChange();
  };
  const arm = (): void => {
    const wanted = new Set(followed.flatMap(foldersOf));
    for (const [key, watcher] of watchers) {
      if (wanted.has(key)) continue;
      watchers.delete(key);
      watcher.close();
    }
    for (const key of wanted) if (!watchers.has(key)) open(key);
  };
  const open = (key: string): void => {
    try {
      const watcher = watch(pathOf(key), { persistent: false }, told);
      const drop = (): void => {
        if (watchers.get(key) === watcher) watchers.delete(key);
        watcher.close();
      };
      watcher.on('error', drop);
      watchers.set(key, watcher);
    } catch {
      // Not there, or no more can be watched: it is looked now and then.
    }
  };

  const looking = setInterval(look, LOOK_MS);
  looking.unref();
  arm();
  // What has changed since the files were read last, before they were watched, was told to nobody.
  told();
  return {
    follow(next) {
      if (closed || next.join('\n') === followed.join('\n')) return;
      followed = next;
      arm();
      told();
    },
    close() {
      closed = true;
      clearTimeout(quiet);
      clearInterval(looking);
      for (const watcher of watchers.values()) watcher.close();
      watchers.clear();
    },
  };
}

/** The folders that the way to a file leads through by links, each with what tells it from another of its name. */
function foldersOf(file: string): string[] {
  const folders: string[] = [];
  let path = resolve(file);
  for (let links = 0; links < MAX_LINKS; links++) {
    folders.push(...linkedFolders(path));
    const target = linkTarget(path);
    if (target === undefined) break;
    path = target;
  }
  return folders;
}

/** The folder of a path and, where one of the folders above is a link, the folder that this link stands in. */
function linkedFolders(path: string): string[] {
  const folders = [keyOf(dirname(path))];
  for (let above = dirname(path); above !== dirname(above); above = dirname(above))
    if (linkTarget(above) !== undefined) folders.push(keyOf(dirname(above)));
  return folders;
}

function linkTarget(path: string): string | undefined {
  try {
    if (!lstatSync(path).isSymbolicLink()) return undefined;
    // From where the folder really is: `..` does not lead out of a folder by the name that a link has.
    return resolve(realpathSync(dirname(path)), readlinkSync(path));
  } catch {
    return undefined;
  }
}

/** A folder that was made anew is another one: its watcher watches what is gone. */
function keyOf(folder: string): string {
  const found = statOf(folder);
  return `${found?.dev ?? 0}:${found?.ino ?? 0}:${folder}`;
}

function statOf(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true });
  } catch {
    return undefined;
  }
}

function pathOf(key: string): string {
  return key.split(':').slice(2).join(':');
}

function fingerprint(files: readonly string[]): string {
  return files
    .map((file) => {
      const found = statOf(file);
      if (found === undefined) return 'none';
      const { dev, ino, size, mtimeNs, ctimeNs } = found;
      return [dev, ino, size, mtimeNs, ctimeNs].join(':');
    })
    .join(' ');
}
