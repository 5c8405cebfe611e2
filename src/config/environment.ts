/** What a process that the gateway starts gets of the gateway's own environment. */
import type { ProcessConfig } from './types.ts';

/** Programs do not find each other, their files or their language without these, and none of them is a secret. */
const PASSED_ON = ['PATH', 'HOME', 'LANG', 'TMPDIR', 'USER', 'SHELL'] as const;

/** The variables of a process: its own win. *Never* holds a further one of the gateway's, which may be a credential. */
export function environmentOf(
  { env }: ProcessConfig,
  own: Readonly<Record<string, string | undefined>> = process.env,
): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const name of PASSED_ON) {
    const value = own[name];
    if (value !== undefined) variables[name] = value;
  }
  for (const [name, value] of Object.entries(env)) variables[name] = value.reveal();
  return variables;
}
