/** What the YAML parser alone would not say, or not survive. */
import { CST, type ErrorCode, Lexer } from 'yaml';

/** Bound on written nesting. Beyond some thousand levels the parser ends the whole process, and no `catch` sees it. */
const MAX_WRITTEN_DEPTH = 100;

/**
 * True when the text opens more levels than any configuration has: brackets, or indicators on one line.
 * Indentation alone cannot get that deep in a file of 1 MiB.
 */
export function nestsTooDeep(text: string): boolean {
  let flowDepth = 0;
  let lineDepth = 0;
  for (const token of new Lexer().lex(text)) {
    switch (CST.tokenType(token)) {
      case 'newline':
        lineDepth = 0;
        break;
      case 'seq-item-ind':
      case 'map-value-ind':
      case 'explicit-key-ind':
        // Inside brackets only brackets nest: the members of a long flow map are neighbours.
        if (flowDepth === 0) lineDepth++;
        break;
      case 'flow-map-start':
      case 'flow-seq-start':
        flowDepth++;
        break;
      case 'flow-map-end':
      case 'flow-seq-end':
        flowDepth--;
        break;
    }
    if (flowDepth > MAX_WRITTEN_DEPTH || lineDepth > MAX_WRITTEN_DEPTH) return true;
  }
  return false;
}

/** Own words for every fault: the parser's may quote the file, and a broken line may hold a secret. */
export const SYNTAX_MENDS: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'write the alias alone: an anchor or a tag cannot be added to it',
  BAD_ALIAS: 'write the alias as *name, where &name stands on an earlier value',
  BAD_COLLECTION_TYPE: 'remove the tag: it does not fit the value',
  BAD_DIRECTIVE: 'remove the line that begins with %',
  BAD_DQ_ESCAPE: 'write \\\\ for a backslash between double quotes, or use single quotes',
  BAD_INDENT: 'indent this line like its neighbours, and close every [ and {',
  BAD_PROP_ORDER: 'write anchors and tags after the -, ? or : and before the value',
  BAD_SCALAR_START: 'quote the value: it begins with a character that means something in YAML',
  BLOCK_AS_IMPLICIT_KEY:
    'start the inner mapping or list on a line of its own, or quote a value that holds ": "',
  BLOCK_IN_FLOW: 'write only [ ] and { } inside [ ] and { }',
  DUPLICATE_KEY: 'keep one: the key is written twice',
  IMPOSSIBLE: 'write this as plain YAML: the parser cannot make sense of it',
  KEY_OVER_1024_CHARS: 'write a shorter key',
  MISSING_CHAR: 'complete this line: a quote, comma, colon, bracket or space is missing at or before it',
  MULTILINE_IMPLICIT_KEY: 'write the key on one line, followed by a colon and a space',
  MULTIPLE_ANCHORS: 'write one anchor only',
  MULTIPLE_DOCS: 'write one document only',
  MULTIPLE_TAGS: 'write one tag only',
  NON_STRING_KEY: 'write a plain word as the key',
  RESOURCE_EXHAUSTION: 'nest less deeply: no configuration needs that many levels',
  TAB_AS_INDENT: 'indent with spaces: YAML takes no tabs here',
  TAG_RESOLVE_FAILED: 'remove the tag: only plain strings, numbers, booleans, lists and mappings are read',
  UNEXPECTED_TOKEN: 'quote the value if it is text, or remove what does not belong here',
};

/** The mend for a fault on that line. `${VAR}` between `{ }` or `[ ]` is the slip that people make. */
export function syntaxMend(code: ErrorCode, line: string): string {
  return /[{[].*\$\{/.test(line) ? `write quotes around "\${…}" inside { } and [ ]` : SYNTAX_MENDS[code];
}
