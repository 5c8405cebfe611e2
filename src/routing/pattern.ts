/**
 * What a claim or a rule says about a URI or a name: a literal, a glob, or an RFC 6570 template.
 * Pure; linear in the text for a given pattern.
 */
import { compileTemplate } from './template.ts';

export interface Pattern {
  readonly text: string;
  matches(candidate: string): boolean;
}

/** For URIs: `*` stays within a path segment, `**` crosses `/`; braces make it a template. */
export function uriPattern(text: string): Pattern {
  if (text.includes('{')) {
    const compiled = compileTemplate(text);
    if (compiled.kind === 'template') return { text, matches: (uri) => compiled.template.matches(uri) };
  }
  return globPattern(text, '/');
}

/** For names of tools and prompts, and for header values: `*` is any run of characters. */
export function namePattern(text: string): Pattern {
  return globPattern(text, '');
}

function globPattern(text: string, barrier: string): Pattern {
  if (!text.includes('*')) return { text, matches: (candidate) => candidate === text };
  const tokens = text.split(/(\*+)/).filter((token) => token !== '');
  return { text, matches: (candidate) => globMatches(tokens, candidate, barrier) };
}

/**
 * Walks the tokens once, keeping every position the candidate can have been read up to: no backtracking, so a
 * hostile name costs its length times the pattern's, never more.
 */
function globMatches(tokens: readonly string[], candidate: string, barrier: string): boolean {
  let reached: Set<number> = new Set([0]);
  for (const token of tokens) {
    reached = token.startsWith('*')
      ? afterStar(token, reached, candidate, barrier)
      : afterLiteral(token, reached, candidate);
    if (reached.size === 0) return false;
  }
  return reached.has(candidate.length);
}

function afterLiteral(token: string, reached: ReadonlySet<number>, candidate: string): Set<number> {
  const next = new Set<number>();
  for (const at of reached) {
    if (candidate.startsWith(token, at)) next.add(at + token.length);
  }
  return next;
}

function afterStar(
  token: string,
  reached: ReadonlySet<number>,
  candidate: string,
  barrier: string,
): Set<number> {
  const next = new Set<number>();
  const crosses = barrier === '' || token.length > 1;
  for (const start of reached) {
    for (let at = start; at <= candidate.length && !next.has(at); at++) {
      next.add(at);
      if (!crosses && candidate[at] === barrier) break;
    }
  }
  return next;
}
