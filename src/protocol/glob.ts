/** Globs: `*` is any run of characters short of a barrier, `**` any run at all. Linear in the text for a given glob. */

/** What a text has to be like. */
export interface Pattern {
  readonly text: string;
  matches(candidate: string): boolean;
}

/** @param barriers characters that `*` does not cross; where there are none, `*` is as good as `**`. */
export function globPattern(text: string, barriers: string): Pattern {
  if (!text.includes('*')) return { text, matches: (candidate) => candidate === text };
  const tokens = text.split(/(\*+)/).filter((token) => token !== '');
  return { text, matches: (candidate) => globMatches(tokens, candidate, barriers) };
}

/**
 * Walks the tokens once, keeping every position the candidate can have been read up to: no backtracking, so a
 * hostile name costs its length times the pattern's, never more.
 */
function globMatches(tokens: readonly string[], candidate: string, barriers: string): boolean {
  let reached: Set<number> = new Set([0]);
  for (const token of tokens) {
    reached = token.startsWith('*')
      ? afterStar(token, reached, candidate, barriers)
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
  barriers: string,
): Set<number> {
  const next = new Set<number>();
  const crosses = barriers === '' || token.length > 1;
  for (const start of reached) {
    for (let at = start; at <= candidate.length && !next.has(at); at++) {
      next.add(at);
      if (!crosses && barriers.includes(candidate.charAt(at))) break;
    }
  }
  return next;
}
