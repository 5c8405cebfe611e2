/**
 * What a claim or a rule says about a URI or a name: a literal, a glob, or an RFC 6570 template.
 * Pure; linear in the text for a given pattern.
 */
import { globPattern, type Pattern } from '../protocol/glob.ts';
import { compileTemplate } from './template.ts';

export type { Pattern } from '../protocol/glob.ts';

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
