/** What was found, each kind of it a few times. */

export type FindingKind =
  | 'wrong caller'
  | 'stale'
  | 'past its time'
  | 'lost item'
  | 'unexpected error'
  | 'listen'
  | 'exit'
  | 'unwatched'
  | 'reload'
  | 'leak';

export interface Finding {
  readonly kind: FindingKind;
  readonly what: string;
}

/** How many of a kind are told in full. */
const TOLD = 10;

export class Findings {
  readonly #all: (Finding & { readonly atMs: number })[] = [];
  readonly startedAt = performance.now();

  add(...findings: readonly Finding[]): void {
    for (const finding of findings) this.#all.push({ ...finding, atMs: performance.now() - this.startedAt });
  }

  get count(): number {
    return this.#all.length;
  }

  /** A line for each, at most {@link TOLD} of a kind. */
  lines(): readonly string[] {
    const counts = new Map<FindingKind, number>();
    return this.#all.flatMap(({ kind, what, atMs }) => {
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      if (count > TOLD + 1) return [];
      return count > TOLD
        ? [`FINDING ${kind}: and more of the kind`]
        : [`FINDING ${kind} at ${(atMs / 1000).toFixed(1)} s: ${what}`];
    });
  }
}
