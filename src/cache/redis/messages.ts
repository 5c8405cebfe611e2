/**
 * What replicas tell each other: that something is over, and that they are there. Pure.
 *
 *     {"o":"5f…","s":12,"u":"docs","f":["*"],"t":"1764491234567890","p":"1764491230000000"}
 *     {"o":"5f…","s":13}
 *
 * Origin, its sequence number; upstream, fields, token, token of the bump before. The tokens are added by the script.
 */
import { TOKEN_MAX } from './lua.ts';

export interface Bumped {
  readonly upstream: string;
  readonly fields: readonly string[];
  readonly token: number;
  readonly previous: number;
}

export interface Message {
  readonly origin: string;
  readonly sequence: number;
  /** Undefined: a sign of life. */
  readonly bumped: Bumped | undefined;
}

/** A sign of life. */
export function beat(origin: string, sequence: number): string {
  return `${JSON.stringify({ o: origin, s: sequence })}`;
}

/** The beginning of what a bump tells; the script writes the rest. */
export function beginning(
  origin: string,
  sequence: number,
  upstream: string,
  fields: readonly string[],
): string {
  return JSON.stringify({ o: origin, s: sequence, u: upstream, f: fields }).slice(0, -1);
}

/** @returns undefined for what no replica says. *Never* throws. */
export function parseMessage(text: string): Message | undefined {
  let said: Record<string, unknown>;
  try {
    said = JSON.parse(text) as typeof said;
  } catch {
    return undefined;
  }
  const { o, s, u, f, t, p } = said ?? {};
  if (typeof o !== 'string' || typeof s !== 'number' || !Number.isSafeInteger(s)) return undefined;
  if (u === undefined) return { origin: o, sequence: s, bumped: undefined };
  const token = tokenOf(t);
  const previous = tokenOf(p);
  if (typeof u !== 'string' || token === undefined || previous === undefined) return undefined;
  if (!Array.isArray(f) || !f.every((field) => typeof field === 'string')) return undefined;
  return { origin: o, sequence: s, bumped: { upstream: u, fields: f as string[], token, previous } };
}

function tokenOf(text: unknown): number | undefined {
  const token = typeof text === 'string' && /^\d{1,16}$/.test(text) ? Number(text) : TOKEN_MAX;
  return token < TOKEN_MAX ? token : undefined;
}
