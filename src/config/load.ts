/** The door of this room: a file, or URLs, in; the normalised configuration, or every problem at once, out. */
import { checkDraft } from './checks.ts';
import { checkReach } from './checks-reach.ts';
import { type Document, documentWithoutFile, readDocument } from './document.ts';
import { type Draft, parseAuthored } from './draft.ts';
import { type Environment, expand } from './expand.ts';
import { type ReadFile, readFailure } from './files.ts';
import { isWithin, toProblem } from './issues.ts';
import { normalize, type Overrides, override } from './normalize.ts';
import { formatPath, type Path, type Problem, quote, sortProblems } from './problems.ts';
import type { Report } from './report.ts';
import type { HeadgateConfig } from './types.ts';

/** Stands for standard input; the `readFile` that is passed in knows how to read it. */
export const STANDARD_INPUT = '-';

/** `warnings` have severity `warning`, `problems` hold at least one error and the warnings. Both in the order of the file. */
export type LoadResult =
  | { readonly kind: 'ok'; readonly config: HeadgateConfig; readonly warnings: readonly Problem[] }
  | { readonly kind: 'invalid'; readonly problems: readonly Problem[] };

/**
 * Reads, expands, checks and normalises one file. *Never* throws for bad input.
 * @param source path of the file, or {@link STANDARD_INPUT}
 * @param env what `${VAR}` is looked up in
 */
export function loadConfig(
  source: string,
  env: Environment,
  readFile: ReadFile,
  overrides: Overrides = {},
): LoadResult {
  let text: string;
  try {
    text = readFile(source);
  } catch (error) {
    return { kind: 'invalid', problems: [unplaced(`make the file readable: ${readFailure(error)}`)] };
  }
  const file = source === STANDARD_INPUT ? './standard-input' : source;
  const reading = readDocument(text, (value) => expand(value, { env, readFile, file }));
  if (reading.kind === 'unreadable') return { kind: 'invalid', problems: sortProblems(reading.problems) };
  return conclude(reading.document, overrides, reading);
}

/**
 * The configuration of `serve URL…`: one `/mcp` route over all of them in the order given, each named by host and
 * port, URLs used as written. Problems are placed at the URL's number: the command line has no lines.
 */
export function fromUrls(urls: readonly string[], overrides: Overrides = {}): LoadResult {
  const names = uniqueNames(urls);
  const upstreams = Object.fromEntries(urls.map((url, index) => [names[index], { url }]));
  const result = conclude(
    documentWithoutFile({ version: 1, upstreams, routes: [{ path: '/mcp', upstreams: names }] }),
    overrides,
  );
  if (result.kind === 'ok') return result;
  const argument = (path: string) => {
    const index = names.findIndex((name) => path === `upstreams.${name}.url`);
    return index < 0 ? path : `URL ${index + 1}`;
  };
  return {
    kind: 'invalid',
    problems: result.problems.map((problem) => ({ ...problem, path: argument(problem.path) })),
  };
}

interface Read {
  readonly problems: readonly Problem[];
  readonly failed: readonly Path[];
}

function conclude(
  document: Document,
  overrides: Overrides,
  read: Read = { problems: [], failed: [] },
): LoadResult {
  const parsed = parseAuthored(document);
  const found =
    parsed.kind === 'pieces' ? parsed.findings.filter(({ path }) => !covered(path, read.failed)) : [];
  const problems: Problem[] = [...read.problems, ...found.map((finding) => toProblem(finding, document))];
  // A value that has its problem is not looked at again: a stand-in took its place.
  const faulty = [...read.failed, ...found.map(({ path }) => path)];
  const report = reportInto(problems, document, faulty);
  checkDraft(override<Draft>(parsed.draft, overrides), report);
  if (parsed.kind === 'whole') checkReach(parsed.authored, report);
  const sorted = sortProblems(problems);
  if (parsed.kind === 'pieces' || sorted.some(({ severity }) => severity === 'error')) {
    return { kind: 'invalid', problems: sorted };
  }
  return { kind: 'ok', config: normalize(override(parsed.authored, overrides), document), warnings: sorted };
}

function covered(path: Path, holders: readonly Path[]): boolean {
  return holders.some((holder) => isWithin(path, holder));
}

function reportInto(problems: Problem[], document: Document, faulty: readonly Path[]): Report {
  const tell = (severity: Problem['severity'], place: 'at' | 'atKey') => (path: Path, message: string) => {
    if (!covered(path, faulty))
      problems.push({ ...document[place](path), path: formatPath(path), message, severity });
  };
  return {
    error: tell('error', 'at'),
    errorAtKey: tell('error', 'atKey'),
    warn: tell('warning', 'at'),
    said: (path) => quote(document.authored(path) ?? 'it'),
    isExpanded: (path) => document.isExpanded(path),
    has: (path) => document.has(path),
  };
}

function unplaced(message: string): Problem {
  return { line: 0, column: 0, path: '(file)', message, severity: 'error' };
}

/** `http://127.0.0.1:3001/mcp` → `127-0-0-1-3001`; the second one of a name gets `-2`. */
function uniqueNames(urls: readonly string[]): readonly string[] {
  const known = new Set<string>();
  return urls.map((url) => {
    const host = URL.canParse(url) ? new URL(url).host : 'upstream';
    const plain = host
      .toLowerCase()
      .replaceAll(/[^a-z0-9_]+/g, '-')
      .replaceAll(/^[-_]+|-+$/g, '');
    const base = plain.slice(0, 56) || 'upstream';
    let name = base;
    for (let number = 2; known.has(name); number++) name = `${base}-${number}`;
    known.add(name);
    return name;
  });
}
