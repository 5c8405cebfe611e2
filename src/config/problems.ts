/** What is wrong with a configuration, where, and what to write instead. */

/** Where a value sits: keys and list indexes from the top. */
export type Path = readonly (string | number)[];

/** Line and column count from 1; line 0 means that the value is in no file. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface Problem extends Position {
  /** The path as people write it: `upstreams.docs.timeouts.connect`. */
  readonly path: string;
  /** What to write instead. *Never* holds an expanded value: it could be a secret (R46). */
  readonly message: string;
  /** An error stops everything; a warning is printed and nothing more. */
  readonly severity: 'error' | 'warning';
}

const PLAIN_KEY = /^[A-Za-z0-9_$<][A-Za-z0-9_$<-]*$/;

/** `['routes', 0, 'rules']` → `routes[0].rules`; keys that are not plain words are quoted, so that they cannot forge a line. */
export function formatPath(path: Path): string {
  if (path.length === 0) return '(file)';
  let text = '';
  for (const segment of path) {
    if (typeof segment === 'number') text += `[${segment}]`;
    else if (PLAIN_KEY.test(segment)) text += text === '' ? segment : `.${segment}`;
    else text += `[${quote(segment)}]`;
  }
  return text;
}

/** What JSON leaves as it is but a terminal obeys, or turns the text around it. */
const UNSAFE = /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** Text of somebody else's in double quotes, control characters escaped, at most 80 characters of it. */
export function quote(text: string): string {
  const quoted = JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
  return quoted.replace(UNSAFE, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** `headgate.yaml:3:5: upstreams.docs.url: what to write instead`. */
export function formatProblem(file: string, problem: Problem): string {
  const place = problem.line === 0 ? file : `${file}:${problem.line}:${problem.column}`;
  const message = problem.severity === 'warning' ? `warning: ${problem.message}` : problem.message;
  return `${place}: ${problem.path}: ${message}`;
}

/** In the order of the file, each once. */
export function sortProblems(problems: readonly Problem[]): readonly Problem[] {
  const seen = new Set<string>();
  const distinct = problems.filter((problem) => {
    const line = formatProblem('', problem);
    return !seen.has(line) && seen.add(line) !== undefined;
  });
  return distinct.sort((a, b) => a.line - b.line || a.column - b.column);
}
