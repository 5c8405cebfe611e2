/** promtool, which Prometheus brings: the judge of metrics, rules and expressions. */
import { spawnSync } from 'node:child_process';

/** Why the test is to be skipped; undefined where there is a promtool. */
export function missingPromtool(): string | undefined {
  return spawnSync('promtool', ['--version']).error === undefined
    ? undefined
    : 'no promtool here: install prometheus (Debian package of that name)';
}

/** Runs it to its end. @returns its exit code, and all that it printed. */
export function promtool(
  args: readonly string[],
  input = '',
): { readonly code: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' });
  return { code: status, said: `${stdout}${stderr}` };
}
