/** The kinds of value that a configuration is made of. Each knows what to write instead of a wrong one. */
import { z } from 'zod';
import { ADDRESS_HINT, parseAddress, parseRemote, REMOTE_HINT } from './address.ts';
import { isHeaderValue } from './headers.ts';
import { Secret } from './secret.ts';
import type { Address } from './types.ts';
import { DURATION_PATTERN, parseDuration, parseSize, SIZE_PATTERN } from './units.ts';

/** Bound on one string: enough for every URL and token, too little to be a mistake with a file. */
export const MAX_TEXT = 8192;

/** Says what to write instead, or nothing when the text is fine. */
export type Mend = (text: string) => string | undefined;

/** A message for a value of the wrong type, one that is absent, and one that is empty (`key:` with nothing behind it). */
export function say(hint: string): (issue: { readonly input?: unknown }) => string {
  return ({ input }) => {
    if (input === undefined) return `missing: ${hint}`;
    return input === null || input === '' ? `empty: ${hint}` : hint;
  };
}

/**
 * A mapping with exactly these keys.
 * The message for unknown keys is the list of the known ones; `issues.ts` makes a sentence of it.
 */
export function mapping<Shape extends z.core.$ZodLooseShape>(shape: Shape, hint: string) {
  const wrong = say(hint);
  return z.strictObject(shape, {
    error: (issue) => (issue.code === 'unrecognized_keys' ? Object.keys(shape).join(' ') : wrong(issue)),
  });
}

/** Text that is not empty and that `mend` has nothing against. `title` names its kind in the reference. */
export function text(title: string, hint: string, mend: Mend = () => undefined) {
  const wrong = say(hint);
  const quotes = 'put it in quotes: without them YAML reads a number or a boolean';
  return z
    .string({ error: (issue) => (/^(number|boolean)$/.test(typeof issue.input) ? quotes : wrong(issue)) })
    .min(1, { error: say(hint) })
    .max(MAX_TEXT, { error: `write at most ${MAX_TEXT} characters` })
    .refine((value) => mend(value) === undefined, {
      error: (issue) => mend(String(issue.input)) ?? hint,
      when: ({ issues }) => issues.length === 0,
    })
    .meta({ title });
}

/** A list of different values. */
export function list<Item extends z.ZodType>(item: Item, hint: string, maxCount: number) {
  return z
    .array(item, { error: say(hint) })
    .max(maxCount, { error: `write at most ${maxCount} entries` })
    .check(({ value, issues }) => {
      const known = new Set<unknown>();
      for (const [index, entry] of value.entries()) {
        const key = typeof entry === 'string' ? entry : Symbol(index);
        if (known.has(key)) {
          issues.push({
            code: 'custom',
            path: [index],
            message: 'remove it: the same entry stands above',
            input: entry,
          });
        }
        known.add(key);
      }
    });
}

/** `true` or `false`. */
export function flag() {
  return z.boolean({ error: say('write true or false') });
}

/** One of these words. */
export function choice<const Words extends readonly [string, ...string[]]>(words: Words) {
  return z.enum(words, { error: say(`write one of ${words.join(', ')}`) });
}

/** A whole number within bounds. */
export function count(from: number, to: number) {
  const hint = `write a whole number from ${from} to ${to}`;
  return z
    .int({ error: say(hint) })
    .min(from, { error: hint })
    .max(to, { error: hint });
}

/** Milliseconds out of a duration within bounds. */
export function duration(from: string, to: string) {
  const hint = 'write a duration such as 250ms, 30s, 5m or 24h';
  return quantity({
    hint,
    range: `write a duration from ${from} to ${to}`,
    pattern: DURATION_PATTERN,
    parse: parseDuration,
    from,
    to,
  }).meta({
    title: `duration, ${from} to ${to}`,
  });
}

/** Bytes out of a size within bounds. */
export function size(from: string, to: string) {
  const hint = 'write a size such as 512B, 64KiB, 4MiB or 1GiB';
  return quantity({
    hint,
    range: `write a size from ${from} to ${to}`,
    pattern: SIZE_PATTERN,
    parse: parseSize,
    from,
    to,
  }).meta({
    title: `size, ${from} to ${to}`,
  });
}

interface Quantity {
  readonly hint: string;
  readonly range: string;
  readonly pattern: RegExp;
  readonly parse: (text: string) => number | undefined;
  readonly from: string;
  readonly to: string;
}

function quantity({ hint, range, pattern, parse, from, to }: Quantity) {
  const [least = 0, most = 0] = [parse(from), parse(to)];
  return z
    .string({ error: say(hint) })
    .regex(pattern, { error: say(hint) })
    .transform((value, { issues }) => {
      const amount = parse(value) ?? Number.NaN;
      if (amount >= least && amount <= most) return amount;
      issues.push({ code: 'custom', message: range, input: value });
      return z.NEVER;
    });
}

/** An address of a listener. */
export function address(hint = ADDRESS_HINT) {
  return z
    .string({ error: say(hint) })
    .transform((value, { issues }): Address => {
      const parsed = parseAddress(value);
      if (parsed !== undefined) return parsed;
      issues.push({ code: 'custom', message: say(hint)({ input: value }), input: value });
      return z.NEVER;
    })
    .meta({ title: 'address' });
}

/** The address of a server that is not ours. */
export function node() {
  return z
    .string({ error: say(REMOTE_HINT) })
    .transform((value, { issues }): Address => {
      const parsed = parseRemote(value);
      if (parsed !== undefined) return parsed;
      issues.push({ code: 'custom', message: say(REMOTE_HINT)({ input: value }), input: value });
      return z.NEVER;
    })
    .meta({ title: 'node' });
}

/** Refuses what `print-config` writes in place of a secret: it would be a secret known to all. */
export const notPrinted: Mend = (value) =>
  value.includes('[redacted]')
    ? 'write the real value: [redacted] is what print-config shows in its place'
    : undefined;

/** A value that is never shown. */
export function secret(hint: string, mend: Mend = () => undefined) {
  return text('secret', hint, (value) => notPrinted(value) ?? mend(value)).transform(
    (value) => new Secret(value),
  );
}

/** A secret that travels in a header. */
export function headerSecret(hint: string, mend: Mend = () => undefined) {
  const printable = 'write visible ASCII characters only, without spaces or line breaks around them';
  return secret(hint, (value) => (isHeaderValue(value) ? mend(value) : printable));
}
