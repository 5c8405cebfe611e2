/**
 * Does one claim or rule take everything that another one would? *Never* guesses: true only where it is certain, so
 * that what is said of it can be acted on. What each text matches is decided by `routing/pattern.ts`.
 */
import { globPattern, type Pattern } from '../protocol/glob.ts';

/** How a text is read: as a URI pattern, or as a glob on the name of a tool or prompt or on a header's value. */
export type Reading = 'uri' | 'name';

/** A text that may cover others, made ready once. */
export interface Cover {
  readonly text: string;
  readonly reading: Reading;
  /** What everything it matches begins with. */
  readonly prefix: string;
  /** Undefined: certain of its own text alone. */
  readonly pattern: Pattern | undefined;
  /** `simple` expands to unreserved characters only; `glob` takes what is put for the stars of another glob. */
  readonly kind: 'literal' | 'glob' | 'simple';
}

/** In the place of what a narrower pattern leaves open: no claim and no rule can hold these. */
const WITHIN_SEGMENT = '\u0001';
const ANYTHING = '\u0002';

/** Visible ASCII that no value of `{name}` holds for certain. *Spec:* RFC 6570, section 3.2.2. */
const NOT_UNRESERVED = Array.from({ length: 0x5e }, (_, at) => String.fromCharCode(0x21 + at))
  .filter((char) => !/[A-Za-z0-9._~-]/.test(char))
  .join('');
/** Longer ones may hold more expressions than are compiled, and then match their own text alone. */
const SIMPLE_CHARS = 192;

/** Makes a text ready to be compared with many. */
export function coverOf(text: string, reading: Reading): Cover {
  const prefix = text.slice(0, text.search(reading === 'uri' ? /[*{]|$/ : /\*|$/));
  const rest = { text, reading, prefix };
  if (reading === 'uri' && text.includes('{')) {
    const isSimple = text.length < SIMPLE_CHARS && /^([^{}*%]|\{[A-Za-z0-9_]+\})+$/.test(text);
    const glob = text.replaceAll(/(\{[^{}]*\})+/g, '*');
    return { ...rest, kind: 'simple', pattern: isSimple ? globPattern(glob, NOT_UNRESERVED) : undefined };
  }
  if (!text.includes('*')) return { ...rest, kind: 'literal', pattern: undefined };
  return {
    ...rest,
    kind: 'glob',
    pattern: globPattern(text, reading === 'uri' ? `/${ANYTHING}` : ''),
  };
}

/** What a comparison costs that needs no walk, beside the characters of one that does. */
export const QUICK_STEPS = 5;

/** Comparisons that are still made: a file with tens of thousands of patterns is not compared to its end. */
export class Effort {
  #left: number;

  constructor(left: number) {
    this.#left = left;
  }

  get isSpent(): boolean {
    return this.#left < 0;
  }

  /** False when it is used up. */
  spend(amount: number): boolean {
    this.#left -= amount;
    return this.#left >= 0;
  }
}

/** True when whatever `text` matches is certainly matched by `cover`. */
export function covers(cover: Cover, text: string, reading: Reading, effort: Effort): boolean {
  if (cover.text === text && cover.reading === reading) return true;
  if (cover.pattern === undefined || !text.startsWith(cover.prefix))
    return effort.spend(QUICK_STEPS) && false;
  if (!effort.spend(cover.text.length * text.length)) return false;
  const isLiteral = !text.includes('*') && (reading === 'name' || !text.includes('{'));
  // Only of a literal is it known what is put for an expression.
  if (cover.kind === 'simple') return isLiteral && /^[!-~]+$/.test(text) && cover.pattern.matches(text);
  return cover.pattern.matches(reading === 'uri' ? openUri(text) : text.replaceAll(/\*+/g, ANYTHING));
}

/** A narrower URI pattern with marks in the place of what it leaves open: only a star as wide takes a mark. */
function openUri(text: string): string {
  return text
    .replaceAll(/\{[^{}]*\}/g, ANYTHING)
    .replaceAll(/\*\*+/g, ANYTHING)
    .replaceAll('*', WITHIN_SEGMENT);
}
