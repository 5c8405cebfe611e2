/** One page of an upstream's list, as spans into the bytes it came in. */
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
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
/** Items judged in one go: others get their turn between. */
const ITEMS_AT_ONCE = 2_000;
/** Members beside the items that are passed on, of one page: they are a cursor's and a note's place, not content's. */
export const MAX_EXTRAS_BYTES = 64 * 1024;
/** What the spans of an item cost in memory. */
const ITEM_BYTES = 100;

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
  /** Members of the result that are not the list's own, and those of its `_meta`. Empty beyond {@link MAX_EXTRAS_BYTES}. */
  readonly extras: readonly Member[];
  readonly meta: readonly Member[];
  readonly extrasBytes: number;
}

/** Pages already taken apart: a page served from memory a thousand times is scanned once. */
const scanned = new WeakMap<Uint8Array, Promise<Page | undefined>>();
const digests = new WeakMap<Uint8Array, string>();

/** Takes a result's tail apart; undefined when it is no list of this shape. */
export function readPage(tail: Uint8Array, shape: ListShape): Promise<Page | undefined> {
  const known = scanned.get(tail);
  if (known !== undefined) return known;
  const scanning = scan(tail, shape);
  scanned.set(tail, scanning);
  return scanning;
}

async function scan(tail: Uint8Array, shape: ListShape): Promise<Page | undefined> {
  const members = tailMembers(tail);
  const list = memberOf(members, shape.field);
  const spans = list && arrayElements(tail, list.start);
  if (spans === undefined || spans.length > MAX_PAGE_ITEMS) return undefined;
  const items: Item[] = [];
  const bad: BadItem[] = [];
  for (const [index, span] of spans.entries()) {
    if (index > 0 && index % ITEMS_AT_ONCE === 0) await setImmediate();
    const verdict = judgeItem(tail, span, shape);
    if (verdict.kind === 'good') items.push({ start: span.start, end: span.end, id: verdict.id });
    else bad.push({ index, reason: verdict.reason, why: verdict.why });
  }
  const next = memberOf(members, 'nextCursor');
  const nextCursor = next && stringValue(tail, next);
  return {
    tail,
    items,
    bad,
    nextCursor,
    oddCursor: next !== undefined && nextCursor === undefined,
    ...extrasOf(tail, members, shape),
  };
}

const OWN: ReadonlySet<string> = new Set(['nextCursor', '_meta']);

function extrasOf(
  tail: Uint8Array,
  members: readonly Member[],
  shape: ListShape,
): Pick<Page, 'extras' | 'meta' | 'extrasBytes'> {
  const extras = members.filter((member) => !OWN.has(member.key) && member.key !== shape.field);
  const found = memberOf(members, '_meta');
  const meta =
    found !== undefined && kindAt(tail, found.start) === 'object'
      ? (objectMembers(tail, found.start) ?? [])
      : [];
  let extrasBytes = 0;
  for (const member of [...extras, ...meta]) extrasBytes += member.key.length + member.end - member.start + 4;
  return extrasBytes > MAX_EXTRAS_BYTES
    ? { extras: [], meta: [], extrasBytes: 0 }
    : { extras, meta, extrasBytes };
}

/** What a page costs in memory: its bytes and what was found in them. */
export function scannedBytes(page: Page): number {
  return page.tail.length + page.items.length * ITEM_BYTES;
}

/** Tells whether a page that was fetched again is the same page: over its items' bytes, hints left out. */
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
