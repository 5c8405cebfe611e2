/** Text that somebody else chose, before it is shown. Pure. */

/** On one line, in visible ASCII, at most so long: it must not make lines of its own, nor move the cursor. */
export function printable(text: string, maxChars: number): string {
  const plain = text.slice(0, maxChars).replaceAll(/[^\x20-\x7e]/g, '?');
  return text.length > maxChars ? `${plain}...` : plain;
}

/** At most so long, and never ending in half a character. What it holds is defused where it is shown. */
export function cut(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const kept = text.slice(0, maxChars);
  return /[\ud800-\udbff]$/.test(kept) ? kept.slice(0, -1) : kept;
}
