/** Durations (`250ms`, `30s`, `5m`, `24h`) and sizes (`512B`, `64KiB`, `4MiB`, `1GiB`) as people write them. */

const DURATION_UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;
const SIZE_UNITS = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 } as const;

/** Also the `pattern` of the JSON Schema. */
export const DURATION_PATTERN = /^[0-9]{1,12}(ms|s|m|h)$/;
/** Also the `pattern` of the JSON Schema. */
export const SIZE_PATTERN = /^[0-9]{1,12}(B|KiB|MiB|GiB)$/;

/** Milliseconds, or undefined when it is no duration. */
export function parseDuration(text: string): number | undefined {
  return DURATION_PATTERN.test(text) ? scale(text, DURATION_UNITS) : undefined;
}

/** Bytes, or undefined when it is no size. */
export function parseSize(text: string): number | undefined {
  return SIZE_PATTERN.test(text) ? scale(text, SIZE_UNITS) : undefined;
}

/** The shortest exact spelling in the largest whole unit. */
export function formatDuration(ms: number): string {
  return spell(ms, DURATION_UNITS, 's');
}

/** The shortest exact spelling in the largest whole unit. */
export function formatSize(bytes: number): string {
  return spell(bytes, SIZE_UNITS, 'B');
}

function scale(text: string, units: Readonly<Record<string, number>>): number {
  const digits = Number.parseInt(text, 10);
  return digits * (units[text.replace(/^[0-9]+/, '')] ?? Number.NaN);
}

function spell(amount: number, units: Readonly<Record<string, number>>, unitOfZero: string): string {
  if (amount === 0) return `0${unitOfZero}`;
  const fitting = Object.entries(units).filter(([, factor]) => amount % factor === 0);
  const [unit, factor] = fitting.at(-1) ?? ['', 1];
  return `${amount / factor}${unit}`;
}
