/** One page of an upstream's list, as spans into the bytes it came in. */
import { createHash } from 'node:crypto';
import { tailMembers } from '../protocol/answer.ts';
import {
  arrayElements,
  kindAt,
  type Member,
  memberOf,
  objectMembers,
  type Span,
  stringValue,
} from '../protocol/json.ts';
import type { ListShape } from '../protocol/methods.ts';
import { judgeItem } from './item.ts';

/** Most items of one page: far above any real one, and a bound on what one answer can make us do. */
export const MAX_PAGE_ITEMS = 500_000;

/** A fit item: where it is, and what identifies it. */
export interface Item extends Span {
  readonly id: string;
}

export interface BadItem {
  readonly index: number;
  readonly reason: 'invalid' | 'too_large';
  readonly why: string;
}

export interface Page {
  /** The bytes that the spans point into. */
  readonly tail: Uint8Array;
  readonly items: readonly Item[];
  readonly bad: readonly BadItem[];
  /** Undefined at the end of the list. `''` is a cursor. */
  readonly nextCursor: string | undefined;
  /** A `nextCursor` that is no string ends the walk; worth a warning (R13). */
  readonly oddCursor: boolean;
  /** Members of the result that are not the list's own, and those of its `_meta`. */
  readonly extras: readonly Member[];
  readonly meta: readonly Member[];
}

/** Pages already taken apart: a page served from memory a thousand times is scanned once. */
const scanned = new WeakMap<Uint8Array, Page>();
const digests = new WeakMap<Uint8Array, string>();

/** Takes a result's tail apart; undefined when it is no list of this shape. */
export function readPage(tail: Uint8Array, shape: ListShape): Page | undefined {
  const known = scanned.get(tail);
  if (known !== undefined) return known;
  const members = tailMembers(tail);
  const list = memberOf(members, shape.field);
  const spans = list && arrayElements(tail, list.start);
  if (spans === undefined || spans.length > MAX_PAGE_ITEMS) return undefined;
  const items: Item[] = [];
  const bad: BadItem[] = [];
  spans.forEach((span, index) => {
    const verdict = judgeItem(tail, span, shape);
    if (verdict.kind === 'good') items.push({ start: span.start, end: span.end, id: verdict.id });
    else bad.push({ index, reason: verdict.reason, why: verdict.why });
  });
  const next = memberOf(members, 'nextCursor');
  const nextCursor = next && stringValue(tail, next);
  const meta = memberOf(members, '_meta');
  const page: Page = {
    tail,
    items,
    bad,
    nextCursor,
    oddCursor: next !== undefined && nextCursor === undefined,
    extras: members.filter((member) => !OWN.has(member.key) && member.key !== shape.field),
    meta:
      meta !== undefined && kindAt(tail, meta.start) === 'object'
        ? (objectMembers(tail, meta.start) ?? [])
        : [],
  };
  scanned.set(tail, page);
  return page;
}

const OWN: ReadonlySet<string> = new Set(['nextCursor', '_meta']);

/** Tells whether a page that was fetched again is the same page: over its bytes, hints left out. */
export function pageDigest(page: Page): string {
  const known = digests.get(page.tail);
  if (known !== undefined) return known;
  const hash = createHash('sha256');
  for (const item of page.items) hash.update(page.tail.subarray(item.start, item.end)).update('\n');
  hash.update(page.nextCursor === undefined ? 'end' : `next ${page.nextCursor}`);
  const digest = hash.digest('base64url').slice(0, 12);
  digests.set(page.tail, digest);
  return digest;
}
