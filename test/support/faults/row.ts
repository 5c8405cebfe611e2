/**
 * The table of broken servers: for each fault what it does, and what a client must see of it through a merged list
 * (beside a good upstream), a read and a streamed call; whether anything of it may be kept follows from that.
 *
 * What was seen is written in words, so that a row can be read and a difference explains itself:
 * - list: `200: good, faulty ×2; ttl ≤ 1 min; public`, `200: good; incomplete; ttl 0; public`
 * - read: `200: faulty; ttl ≤ 1 min; public`; behind `200 stream:` where notifications went before
 * - call: `200 json: faulty`, `200 stream: notifications, faulty`; `as sent`: the upstream's bytes, untouched
 * - `cut off`: the connection broke before the answer was whole
 */

import { head } from '../fault-server.ts';
import { type Ask, type Surface, type Switch, say } from '../simulator.ts';

/**
 * The deadlines of rows that run into one, in milliseconds: keys of `timeouts`, and the fixed time that an upstream's
 * list has to come to its first item.
 */
export const DEADLINES = { response: 1_000, call: 2_000, streamIdle: 1_000, firstPages: 5_000 } as const;
export type Deadline = keyof typeof DEADLINES;

/**
 * Heap and external memory of the gateway, in MiB, while something large is passed on: an idle gateway takes 60, and
 * what was passed on waits for the collector. A blob of 100 MB that is held shows.
 */
export const FLOWING_MIB = 250;
/** The same where a list's page is held whole to be cut: at most 64 MiB, in parts, joined, and while it is read. */
export const HELD_MIB = 450;

/** What is expected of one way in. */
export interface Expected {
  readonly saw: string;
  /** The answer comes when this deadline is over, not before and not much later; without: at once. */
  readonly within?: Deadline;
  /** Overrides what follows from `saw`: a timed answer of the faulty upstream is a hit, anything else is asked again. */
  readonly next?: 'hit' | 'asked again';
}

export interface Row {
  /** Names the row's upstream, its path and its URI scheme. */
  readonly key: string;
  readonly rules: string;
  readonly fault: string;
  readonly run: Switch;
  readonly expected: Readonly<Partial<Record<Surface, Expected>>>;
  /** The order of the route; default: the faulty one first, where it can do most harm. */
  readonly order: 'faulty first' | 'good first';
  /** The fault is met before the body of the request has come. */
  readonly early: boolean;
  /** A healthy request goes before, on the same connection. */
  readonly primed: boolean;
  /** The client's own credentials go upstream, and the route has no other upstream. */
  readonly forwards: boolean;
  /** The client holds the second half of a large request back until it sees an answer. */
  readonly uploads: boolean;
  /** Most merged pages that are walked; the official client gives up after 64. */
  readonly pages: number;
  /** Run alone, with the gateway's heap and external memory measured. */
  readonly memoryMiB: number | undefined;
  /** Known to differ, and why: shown, not failed. */
  readonly open: string | undefined;
}

export type Says = string | Expected;
export type Answers = Partial<Record<Surface, Says>>;
export type Options = Partial<Omit<Row, 'key' | 'rules' | 'fault' | 'run' | 'expected'>>;

export const GOOD = 'good; incomplete; ttl 0; public';
export const INCOMPLETE = `200: ${GOOD}`;
export const TIMED = 'faulty; ttl ≤ 1 min; public';
export const ABSENT = '200: good; ttl ≤ 1 min; public';
export const BAD_GATEWAY = '502 -32603';
export const TIMEOUT = '504 -32603';
export const CUT = '200 cut off';
export const STREAM_ERROR = '200 stream: error -32603';

/** As if nothing were wrong. */
export const FINE: Answers = { list: `200: good, ${TIMED}`, read: `200: ${TIMED}`, call: '200 json: faulty' };
export const FINE_STREAM: Answers = { ...FINE, call: '200 stream: faulty' };
/** The gateway's own error everywhere, and the good upstream's items in the list. */
export const REFUSED: Answers = { list: INCOMPLETE, read: BAD_GATEWAY, call: BAD_GATEWAY };
/** Read answers are looked at, streamed ones are not (R20). */
export const UNREAD: Answers = { ...REFUSED, call: '200 json: as sent' };
export const BROKEN_STREAM: Answers = { ...REFUSED, call: STREAM_ERROR };

export const within = (deadline: Deadline, saw: string): Expected => ({ saw, within: deadline });
/** Reads run into their deadline; a call into the one given. */
export const late = (call: Says): Answers => ({
  list: within('response', INCOMPLETE),
  read: within('response', TIMEOUT),
  call,
});

let rowCount = 0;
const keyOf = (fault: string): string =>
  `f${++rowCount}-${fault.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`.slice(0, 60);

/** A row of the table. */
export function row(rules: string, fault: string, run: Switch, answers: Answers, options: Options = {}): Row {
  const expected: Partial<Record<Surface, Expected>> = {};
  for (const surface of ['list', 'read', 'call'] as const) {
    const says = answers[surface];
    if (says !== undefined) expected[surface] = typeof says === 'string' ? { saw: says } : says;
  }
  const defaults = {
    order: 'faulty first',
    early: false,
    primed: false,
    forwards: false,
    uploads: false,
    pages: 64,
    memoryMiB: undefined,
    open: undefined,
  } as const;
  return { key: keyOf(fault), rules, fault, run, expected, ...defaults, ...options };
}

/** Whether the gateway may answer the next question of this kind by itself. */
export function keptAfter(surface: Surface, { saw, next }: Expected): 'hit' | 'asked again' {
  if (next !== undefined) return next;
  return surface !== 'call' && /faulty.*; ttl ≤/.test(saw) ? 'hit' : 'asked again';
}

export const JSON_TYPE = { 'Content-Type': 'application/json' };

/** A head of JSON that announces more than comes. */
export const promise = ({ request }: Ask, bytes = 5_000): void => {
  request.socket.write(head(200, { ...JSON_TYPE, 'Content-Length': bytes }));
};

/** An answer with something large in the place of `"LARGE"`. */
export function sayAround(ask: Ask, text: string, large: Uint8Array): void {
  const [before = '', after = ''] = text.split('"LARGE"');
  say(ask, Buffer.concat([Buffer.from(before), large, Buffer.from(after)]));
}
