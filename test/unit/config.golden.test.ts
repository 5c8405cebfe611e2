/**
 * Authored → normalised pairs, and bad files with what is said about them, in `test/golden/config`.
 *
 * `UPDATE_GOLDENS=1 npm test -- config.golden` writes what is; read the difference before committing it.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, test } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import { formatProblem } from '../../src/config/problems.ts';
import { CANARY, ENVIRONMENT, readFrom } from '../support/config.ts';

const FOLDER = join(process.cwd(), 'test/golden/config');
const FILES = readdirSync(FOLDER).filter((file) => file.endsWith('.yaml'));

function compare(file: string, actual: string): void {
  assert.ok(!actual.includes(CANARY), 'a secret is shown');
  const golden = join(FOLDER, file);
  if (process.env.UPDATE_GOLDENS === '1') writeFileSync(golden, actual);
  assert.equal(actual, existsSync(golden) ? readFileSync(golden, 'utf8') : '');
}

function load(file: string) {
  return loadConfig(join(FOLDER, file), ENVIRONMENT, readFrom(FOLDER));
}

describe('golden configurations', () => {
  for (const file of FILES.filter((name) => !name.startsWith('bad-'))) {
    const name = basename(file, '.yaml');
    test(`${name} is normalised as written down, with its warnings and without its secrets`, () => {
      const result = load(file);
      assert.equal(result.kind, 'ok', JSON.stringify(result));
      if (result.kind !== 'ok') return;
      const warnings = result.warnings.map((warning) => formatProblem(file, warning));
      const config = { ...result.config, upstreams: Object.fromEntries(result.config.upstreams) };
      compare(`${name}.json`, `${JSON.stringify({ warnings, config }, hideKeysOfUrls, 2)}\n`);
    });
  }

  for (const file of FILES.filter((name) => name.startsWith('bad-'))) {
    const name = basename(file, '.yaml');
    test(`${name} is refused with every problem in its place`, () => {
      const result = load(file);
      assert.equal(result.kind, 'invalid');
      if (result.kind !== 'invalid') return;
      compare(`${name}.txt`, result.problems.map((problem) => `${formatProblem(file, problem)}\n`).join(''));
    });
  }
});

/** Only here does a URL leave the program as it is: what the upstream gets. */
function hideKeysOfUrls(_: string, value: unknown): unknown {
  return typeof value === 'string' ? value.replaceAll(CANARY, 'KEY') : value;
}
