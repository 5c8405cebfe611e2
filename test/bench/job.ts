/** A job of a load generator, and what came of it. */
import type { Expectation } from './wire.ts';

export interface Job {
  readonly port: number;
  /** Sent in turn; each may hold a `SERIAL`. */
  readonly requests: readonly string[];
  readonly expected: Expectation;
  readonly connections: number;
  readonly until: { readonly seconds: number } | { readonly count: number };
}

export interface Loaded {
  readonly count: number;
  readonly wrong: number;
  /** Of the first wrong answer, as far as it is known. */
  readonly why: string | undefined;
  readonly seconds: number;
  readonly p50Us: number;
  readonly p99Us: number;
}

let serial = 100_000_000 + Math.floor(Math.random() * 100_000_000);

/** The next number for a `SERIAL`, never the same in one run. */
export function takeSerials(count: number): number {
  const first = serial;
  serial += count;
  return first;
}
