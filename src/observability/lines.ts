/**
 * The text of log lines: quoting, errors, and the form for a terminal.
 *
 * Whatever a client, an upstream or an operator named, a line stays one line and a terminal is only ever told
 * what this file tells it: control characters are written as escapes (R46).
 */

/** A line before it is text. */
export interface LogRecord {
  readonly level: string;
  readonly time: string;
  readonly msg?: string;
  readonly [field: string]: unknown;
}

/** What is legal in a JSON string but ends a line, starts a terminal command or turns text around somewhere. */
const UNSAFE = /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
/** Values that a person reads well without quotes. */
const BARE = /^[\w./:@%+*-]+$/;
/** Causes of causes that are followed. */
const MAX_CAUSES = 3;

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** A JSON text without the characters that JSON allows and a log should not hold. */
export function escapeLine(json: string): string {
  return json.replace(UNSAFE, escaped);
}

/** A string as JSON. */
export function quote(text: string): string {
  return isPlain(text) ? `"${text}"` : escapeLine(JSON.stringify(text));
}

/** Visible ASCII without `"` and `\`: its own JSON. A loop, as a pattern costs twice as much on a short text. */
function isPlain(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return false;
  }
  return true;
}

/** What is written of an error. */
export interface ErrorRecord {
  readonly name: string;
  readonly message: string;
  readonly code?: string | number;
  /** Where it was made: frames only. */
  readonly stack?: string;
  readonly cause?: ErrorRecord;
}

/**
 * An error for the log. *Never* its further members, which may hold received bytes, nor the message of a
 * `SyntaxError`, which quotes what could not be read.
 */
export function describeError(error: unknown, depth = 0): ErrorRecord {
  if (!(error instanceof Error)) return { name: 'NotAnError', message: typeof error };
  const { code } = error as { code?: unknown };
  const frames = error.stack?.split('\n').filter((line) => /^\s+at /.test(line)) ?? [];
  const cause = error.cause ?? (error instanceof AggregateError ? error.errors[0] : undefined);
  return {
    name: error.name,
    message: error instanceof SyntaxError ? 'unreadable text' : error.message,
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(frames.length > 0 ? { stack: frames.join('\n') } : {}),
    ...(cause === undefined || depth >= MAX_CAUSES ? {} : { cause: describeError(cause, depth + 1) }),
  };
}

const LEVEL_COLORS: Readonly<Record<string, number>> = { debug: 90, info: 36, warn: 33, error: 31 };

/** A record as one line for a person; an error's frames follow, indented. Never longer for being coloured. */
export function pretty(record: LogRecord, look: 'plain' | 'colors'): string {
  const { level, time, msg = '', err, ...fields } = record;
  const paint = (code: number, text: string): string =>
    look === 'colors' ? `\u001b[${code}m${text}\u001b[0m` : text;
  const parts = [
    paint(90, time.slice(11, 23)),
    paint(LEVEL_COLORS[level] ?? 0, level.toUpperCase().padEnd(5)),
    msg.replace(CONTROL, escaped),
    ...Object.entries(fields).map(
      ([name, value]) => `${paint(90, `${name.replace(CONTROL, escaped)}=`)}${shown(value)}`,
    ),
  ];
  return `${parts.join(' ')}\n${err === undefined ? '' : prettyError(err as ErrorRecord, '    ')}`;
}

function shown(value: unknown): string {
  if (typeof value === 'string') return BARE.test(value) ? value : quote(value);
  return escapeLine(JSON.stringify(value) ?? 'undefined');
}

function prettyError({ name, message, code, stack, cause }: ErrorRecord, indent: string): string {
  const head = `${name}${code === undefined ? '' : ` [${code}]`}: ${message}`;
  const lines = [head, ...(stack?.split('\n').map((line) => line.trim()) ?? [])];
  const text = lines.map((line) => `${indent}${line.replace(CONTROL, escaped)}\n`).join('');
  return cause === undefined ? text : `${text}${indent}caused by\n${prettyError(cause, `${indent}  `)}`;
}
