/** `${VAR}`, `${VAR:-default}` and `${file:/path}` inside a string; `$${` is a literal `${`. */
import { dirname, resolve } from 'node:path';
import { type ReadFile, readFailure } from './files.ts';
import { quote } from './problems.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface ExpandContext {
  readonly env: Environment;
  readonly readFile: ReadFile;
  /** The configuration file: relative `${file:…}` paths start at its folder. */
  readonly file: string;
}

export type Expansion =
  /** `expanded`: something was put in, so the text may be a secret and must not be shown. */
  | { readonly kind: 'text'; readonly text: string; readonly expanded: boolean }
  | { readonly kind: 'problem'; readonly message: string };

const REFERENCE = /\$\$\{|\$\{([^}]*)(\}?)/g;
const VARIABLE = /^([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/;

/**
 * Expands once: what was put in is never looked at again.
 * A variable counts as missing when it is unset; its default is also taken when it is empty, as in a shell.
 */
export function expand(source: string, context: ExpandContext): Expansion {
  let expanded = false;
  let message: string | undefined;
  const text = source.replaceAll(REFERENCE, (whole: string, inner: string, close: string) => {
    if (whole === `$\${`) return `\${`;
    expanded = true;
    const value = close === '' ? malformed() : lookUp(inner, context);
    if (value.kind === 'problem') message ??= value.message;
    return value.kind === 'text' ? value.text : '';
  });
  return message === undefined ? { kind: 'text', text, expanded } : { kind: 'problem', message };
}

type Value =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'problem'; readonly message: string };

function lookUp(inner: string, context: ExpandContext): Value {
  if (inner.startsWith('file:')) return readSecret(inner.slice('file:'.length), context);
  const match = VARIABLE.exec(inner);
  if (match === null) return malformed();
  const [, name = '', fallback] = match;
  const value = Object.hasOwn(context.env, name) ? context.env[name] : undefined;
  if (fallback !== undefined && (value === undefined || value === ''))
    return { kind: 'text', text: fallback };
  if (value !== undefined) return { kind: 'text', text: value };
  return { kind: 'problem', message: `set the environment variable ${name}, or write \${${name}:-default}` };
}

function readSecret(path: string, context: ExpandContext): Value {
  if (path === '') return malformed();
  try {
    const content = context.readFile(resolve(dirname(context.file), path));
    return { kind: 'text', text: content.replace(/\r?\n$/, '') };
  } catch (error) {
    return { kind: 'problem', message: `make the file ${quote(path)} readable: ${readFailure(error)}` };
  }
}

function malformed(): Value {
  return {
    kind: 'problem',
    message: `write \${VAR}, \${VAR:-default} or \${file:/path}; $\${ stands for a literal \${`,
  };
}
