/**
 * The MCP Inspector's command line, in front of the gateway, as a client of either era: what it says is what the
 * upstream has.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Suite } from './suite.ts';

const run = promisify(execFile);
const ERAS = ['legacy', 'auto', 'modern'] as const;
const CALL_WITHIN_MS = 30_000;

/** What is asked, and what must be in the answer. */
const ASKED: readonly (readonly [args: readonly string[], said: string])[] = [
  [['--method', 'resources/list'], '"uri": "test://static-text"'],
  [
    ['--method', 'resources/read', '--uri', 'test://static-text'],
    'This is the content of the static text resource.',
  ],
  [['--method', 'tools/list'], '"name": "test_simple_text"'],
  [
    ['--method', 'tools/call', '--tool-name', 'test_simple_text'],
    'This is a simple text response for testing.',
  ],
  [
    ['--method', 'prompts/get', '--prompt-name', 'test_simple_prompt'],
    'This is a simple prompt for testing.',
  ],
];

/** Asks everything in every era. @returns what went wrong, and of how many. */
export async function runInspector(
  { node, inspector }: Pick<Suite, 'node' | 'inspector'>,
  url: string,
  signal: AbortSignal,
): Promise<{ readonly count: number; readonly faults: readonly string[] }> {
  const faults: string[] = [];
  for (const era of ERAS) {
    for (const [args, said] of ASKED) {
      const command = [inspector, ...['--cli', url, '--transport', 'http', '--protocol-era', era, ...args]];
      const what = `${era} ${args.join(' ')}`;
      try {
        const { stdout } = await run(node, command, { signal, timeout: CALL_WITHIN_MS });
        if (!stdout.includes(said)) faults.push(`${what}: ${stdout.slice(0, 500)}`);
      } catch (error) {
        signal.throwIfAborted();
        faults.push(`${what}: ${error instanceof Error ? error.message.slice(0, 500) : String(error)}`);
      }
    }
  }
  return { count: ERAS.length * ASKED.length, faults };
}
