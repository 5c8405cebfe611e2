/** What the configuration tests put where the environment and files would be. */
import { basename, join } from 'node:path';
import { type ReadFile, readTextFile } from '../../src/config/files.ts';
import { type LoadResult, loadConfig } from '../../src/config/load.ts';
import type { HeadgateConfig } from '../../src/config/types.ts';

/** Put into every place that may hold a secret; found nowhere in what is printed. */
export const CANARY = 'canary-5d41402abc4b2a76b9719d911017c592';

export const ENVIRONMENT = {
  TOKEN: CANARY,
  OLD_SECRET: CANARY,
  API_KEY: CANARY,
  PATH_KEY: CANARY,
  SHORT: 'canary-5d41402',
  HOST: '127.0.0.1:3001',
  NESTED: `a\${HOST}b`,
  EMPTY: '',
  WORD: 'many',
};

/** Secrets at their usual places, any other file from `folder`. */
export function readFrom(folder: string): ReadFile {
  return (path) => {
    if (path === '/run/secrets/headgate' || basename(path) === 'api-key') return `${CANARY}\n`;
    return readTextFile(path.startsWith('/') ? path : join(folder, path));
  };
}

/** Loads a text as `headgate.yaml`. */
export function loadText(text: string, env: Readonly<Record<string, string>> = ENVIRONMENT): LoadResult {
  const secrets = readFrom('/nowhere');
  return loadConfig('headgate.yaml', env, (path) => (path === 'headgate.yaml' ? text : secrets(path)));
}

/** The configuration of a text that must be fine. */
export function configOf(text: string, env?: Readonly<Record<string, string>>): HeadgateConfig {
  const result = loadText(text, env);
  if (result.kind === 'invalid') throw new Error(JSON.stringify(result.problems));
  return result.config;
}
