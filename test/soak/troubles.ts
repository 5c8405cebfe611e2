/**
 * When what was in trouble: an upstream down, nobody watching it, Redis gone, a gateway starting.
 *
 * Pure. *Bounded by* the troubles that a run makes.
 */

/** What can be in trouble. */
export type Part = `down:${string}` | `unwatched:${string}` | `gateway:${string}` | 'redis';

interface Span {
  readonly from: number;
  /** Infinity while it lasts. */
  until: number;
}

/** See the file's head. Times are of one monotonic clock. */
export class Troubles {
  readonly #spans = new Map<Part, Span[]>();

  /** It is in trouble from now on; again is the same trouble. */
  begin(part: Part, at: number): void {
    if (this.since(part) !== undefined) return;
    const spans = this.#spans.get(part) ?? [];
    spans.push({ from: at, until: Number.POSITIVE_INFINITY });
    this.#spans.set(part, spans);
  }

  end(part: Part, at: number): void {
    const last = this.#spans.get(part)?.at(-1);
    if (last !== undefined && last.until === Number.POSITIVE_INFINITY) last.until = at;
  }

  /** Since when it is in trouble; undefined while it is not. */
  since(part: Part): number | undefined {
    const last = this.#spans.get(part)?.at(-1);
    return last?.until === Number.POSITIVE_INFINITY ? last.from : undefined;
  }

  /** Whether one of them was in trouble at a time of these. */
  touch(parts: readonly Part[], from: number, until: number): boolean {
    return this.#of(parts).some((span) => span.from <= until && span.until >= from);
  }

  /**
   * Whether there was a stretch of `ms` in which none of them was in trouble.
   * @param afterMs a trouble counts for so long after its end.
   */
  quietFor(ms: number, parts: readonly Part[], from: number, until: number, afterMs = 0): boolean {
    let quietSince = from;
    for (const span of this.#of(parts)) {
      if (Math.min(span.from, until) - quietSince >= ms) return true;
      quietSince = Math.max(quietSince, span.until + afterMs);
    }
    return until - quietSince >= ms;
  }

  /** A line for each, in order: what a finding is read beside. */
  lines(startAt: number): readonly string[] {
    const seconds = (at: number): string => ((at - startAt) / 1000).toFixed(1);
    return [...this.#spans]
      .flatMap(([part, spans]) => spans.map((span) => ({ part, ...span })))
      .sort((a, b) => a.from - b.from)
      .map(({ part, from, until }) => `trouble ${seconds(from)} s to ${seconds(until)} s: ${part}`);
  }

  /** In the order of their beginning. */
  #of(parts: readonly Part[]): readonly Span[] {
    return parts.flatMap((part) => this.#spans.get(part) ?? []).sort((a, b) => a.from - b.from);
  }
}
