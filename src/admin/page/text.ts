/**
 * Text of upstreams, made harmless to look at: what is invisible, or would turn the text around, is shown as its number.
 * Pure. Nothing of it is ever markup: see `dom.ts`.
 */

/** A piece of a text: as it is, or a character that is shown by its number. */
export type Piece = { readonly kind: 'plain' | 'odd'; readonly text: string };

/** Controls, formats (bidi, zero width), private and unassigned characters, halves of characters, separators. */
const ODD = /[\p{C}\p{Zl}\p{Zp}]/gu;
/** Of many lines, these are what they are. */
const ODD_BUT_LINES = /[^\P{C}\n\t]|[\p{Zl}\p{Zp}]/gu;
/** Beyond that, odd characters of one text are all shown alike. */
const MAX_ODD = 2_000;

/** @param lines whether line ends and tabs are kept. */
export function pieces(text: string, lines: 'one-line' | 'lines'): readonly Piece[] {
  const found: Piece[] = [];
  let plain = '';
  let at = 0;
  let oddCount = 0;
  for (const match of text.matchAll(lines === 'lines' ? ODD_BUT_LINES : ODD)) {
    plain += text.slice(at, match.index);
    at = match.index + match[0].length;
    if (++oddCount > MAX_ODD) {
      plain += '\ufffd';
      continue;
    }
    if (plain !== '') found.push({ kind: 'plain', text: plain });
    plain = '';
    found.push({ kind: 'odd', text: numberOf(match[0]) });
  }
  plain += text.slice(at);
  if (plain !== '') found.push({ kind: 'plain', text: plain });
  return found;
}

function numberOf(char: string): string {
  return `\u27e8U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}\u27e9`;
}
