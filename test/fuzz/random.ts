/** Seeded choices: the same seed makes the same cases on every machine. */

/** Mixes texts and numbers into one seed (FNV-1a). */
export function seedOf(...parts: readonly (string | number)[]): number {
  let hash = 0x811c9dc5;
  for (const char of parts.join('\u0000')) {
    hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193);
  }
  return hash >>> 0;
}

/** mulberry32: small, quick, good enough to choose by. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  uint32(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /** A whole number in `[0, limit)`; 0 for a limit below 1. */
  below(limit: number): number {
    return limit < 1 ? 0 : this.uint32() % limit;
  }

  /** A whole number in `[least, most]`. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  /** True once in `times`. */
  once(times: number): boolean {
    return this.below(times) === 0;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T;
  }

  /** As many as `count` of what `make` makes. */
  many<T>(count: number, make: (index: number) => T): T[] {
    return Array.from({ length: count }, (_, index) => make(index));
  }

  /** Small numbers mostly, now and then a large one. */
  size(most: number): number {
    return this.once(8) ? this.below(most + 1) : this.below(Math.min(most, 6) + 1);
  }

  /** Characters that mean something somewhere, and plain ones. */
  text(most: number, alphabet: readonly string[] = CHARACTERS): string {
    return this.many(this.size(most), () => this.pick(alphabet)).join('');
  }
}

const CHARACTERS: readonly string[] = [
  ...'abcABC019 _-.~:/?#[]@!$&\'()*+,;=%{}"\\|<>^`',
  '\u0000',
  '\t',
  '\n',
  '\r',
  '\u007f',
  '\u00a0',
  'é',
  'e\u0301',
  '日',
  '🌍',
  '\u2028',
  '\ufeff',
  '\ud800',
  '\udc00',
  '%2F',
  '%2f',
  '=?base64?',
  '?=',
];
