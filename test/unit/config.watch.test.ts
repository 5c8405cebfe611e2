import assert from 'node:assert/strict';
import {
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { type FileWatch, watchFiles } from '../../src/config/watch.ts';
import { until } from '../support/mcp.ts';

let folder = '';
let watching: FileWatch | undefined;
let changes = 0;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'headgate-watch-')));
  changes = 0;
});
afterEach(() => {
  watching?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Watches, and waits for the first look. */
async function watched(...files: readonly string[]): Promise<void> {
  watching = watchFiles(files, () => {
    changes++;
  });
  assert.equal(changes, 0);
  await until(() => changes === 1, 'the first look');
}

const seen = (what: string): Promise<void> => {
  const before = changes;
  return until(() => changes > before, what, 3_000);
};

describe('a file is watched', () => {
  test('written in place, renamed over, removed and made again: each is told', async () => {
    const file = join(folder, 'a.yaml');
    writeFileSync(file, 'one');
    await watched(file);
    const acts: readonly (readonly [string, () => void])[] = [
      ['written in place', () => writeFileSync(file, 'two')],
      [
        'renamed over',
        () => {
          writeFileSync(`${file}~`, 'three');
          renameSync(`${file}~`, file);
        },
      ],
      ['removed', () => rmSync(file)],
      ['made again', () => writeFileSync(file, 'four')],
      ['written in place once more', () => writeFileSync(file, 'five')],
    ];
    for (const [what, act] of acts) {
      const told = seen(what);
      act();
      await told;
    }
  });

  test('a change behind a link is told, wherever the link stands on the way', async () => {
    mkdirSync(join(folder, 'v1'));
    mkdirSync(join(folder, 'v2'));
    writeFileSync(join(folder, 'v1', 'a.yaml'), 'one');
    writeFileSync(join(folder, 'v2', 'a.yaml'), 'two');
    mkdirSync(join(folder, 'etc'));
    symlinkSync('../v1', join(folder, 'etc', 'data'));
    symlinkSync('data/a.yaml', join(folder, 'etc', 'a.yaml'));
    await watched(join(folder, 'etc', 'a.yaml'));
    const inPlace = seen('written where the links lead');
    writeFileSync(join(folder, 'v1', 'a.yaml'), 'one and a half');
    await inPlace;
    const swapped = seen('the link in the middle');
    symlinkSync('../v2', join(folder, 'etc', 'next'));
    renameSync(join(folder, 'etc', 'next'), join(folder, 'etc', 'data'));
    await swapped;
    const behind = seen('written where it leads now');
    writeFileSync(join(folder, 'v2', 'a.yaml'), 'two and a half');
    await behind;
  });

  test('a link that leads out of a linked folder is followed from where that folder really is', async () => {
    mkdirSync(join(folder, 'srv', 'x', 'cfg'), { recursive: true });
    mkdirSync(join(folder, 'etc'));
    writeFileSync(join(folder, 'srv', 'x', 'real.yaml'), 'one');
    symlinkSync('../real.yaml', join(folder, 'srv', 'x', 'cfg', 'a.yaml'));
    symlinkSync('../srv/x/cfg', join(folder, 'etc', 'cfg'));
    await watched(join(folder, 'etc', 'cfg', 'a.yaml'));
    const told = seen('written where it leads');
    writeFileSync(join(folder, 'srv', 'x', 'real.yaml'), 'two');
    await told;
  });

  test('a folder that is made anew is watched as the old one was', async () => {
    const inner = join(folder, 'conf');
    const file = join(inner, 'a.yaml');
    mkdirSync(inner);
    writeFileSync(file, 'one');
    await watched(file);
    const gone = seen('it is gone');
    rmSync(inner, { recursive: true });
    await gone;
    const back = until(() => changes >= 3, 'it is back', 8_000);
    mkdirSync(inner);
    writeFileSync(file, 'two');
    await back;
    const again = seen('and changes');
    writeFileSync(file, 'three');
    await again;
  });

  test('other files of the folder, and what is read only, are nobody’s news', async () => {
    const file = join(folder, 'a.yaml');
    writeFileSync(file, 'one');
    await watched(file);
    writeFileSync(join(folder, 'other'), 'x');
    utimesSync(join(folder, 'other'), 1, 1);
    await new Promise((resolve) => setTimeout(resolve, 400));
    assert.equal(changes, 1);
  });

  test('another set of files is looked at once, and then watched', async () => {
    const [one, two] = [join(folder, 'a'), join(folder, 'b')];
    writeFileSync(one, '1');
    writeFileSync(two, '2');
    await watched(one);
    const looked = seen('the other set');
    watching?.follow([one, two]);
    await looked;
    const told = seen('the second');
    writeFileSync(two, '3');
    await told;
  });

  test('links that go round in circles are no reason to hang', async () => {
    symlinkSync('b', join(folder, 'a'));
    symlinkSync('a', join(folder, 'b'));
    await watched(join(folder, 'a'));
  });

  test('closed, it tells nothing', async () => {
    const file = join(folder, 'a.yaml');
    writeFileSync(file, 'one');
    await watched(file);
    watching?.close();
    writeFileSync(file, 'two');
    await new Promise((resolve) => setTimeout(resolve, 400));
    assert.equal(changes, 1);
  });
});
