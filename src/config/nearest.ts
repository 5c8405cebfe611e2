/** Words further apart than this are not taken for a slip of the pen. */
const MAX_DISTANCE = 3;

/**
 * The candidate that `word` was probably meant to be, or undefined when none is near.
 * Case, `-` and `_` do not count: `max_entry` is `maxEntry`.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const wanted = fold(word);
  let best: string | undefined;
  let bestDistance = Math.min(MAX_DISTANCE, Math.max(1, Math.floor(wanted.length / 3))) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(wanted, fold(candidate));
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

function fold(word: string): string {
  return word.slice(0, 64).toLowerCase().replaceAll(/[-_]/g, '');
}

/** Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other. */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      let cost = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + (same ? 0 : 1));
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      if (swapped) cost = Math.min(cost, at(beforeLast, j - 2) + 1);
      row.push(cost);
    }
    [beforeLast, last] = [last, row];
  }
  return at(last, to.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
