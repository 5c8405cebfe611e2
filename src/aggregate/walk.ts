/** The state of one merged page while it is filled: where it stands, what it holds, and what can be said of it. */

import type { MethodRow } from '../protocol/methods.ts';
import { pageBudget } from '../routing/template-index.ts';
import type { Asking, Member, Told } from './ask.ts';
import type { Position } from './cursor.ts';
import type { Item, Page } from './page.ts';
import type { Part, Source } from './parts.ts';

/** A merged page ends when it holds this much. */
export const MERGED_PAGE_BYTES = 1024 * 1024;

/** Where in the route's upstreams a page begins. */
export type Place = Pick<Position, 'rank' | 'cursor' | 'offset' | 'digest' | 'pages'>;

export const START: Place = { rank: 0, cursor: undefined, offset: 0, digest: '', pages: 0 };

/** The beginning of the next upstream's list. */
export function nextUpstream(place: Place): Place {
  return { ...START, rank: place.rank + 1 };
}

/** Items of one upstream page, to be spliced in order. */
export interface Run {
  readonly page: Page;
  readonly items: readonly Item[];
  /** `with`: this is the beginning of the page, and its other members go along. */
  readonly extras: 'with' | 'without';
}

/** An upstream that had to be left out, and why. */
export interface Omission {
  readonly member: Member;
  readonly told: Told;
}

export type PagePart = Extract<Part, { kind: 'page' }>;

/** From the best to the worst: a merged page is as good as its worst part. */
const WORSE: readonly Source[] = ['hit', 'miss', 'stale', 'bypass'];

/** What is true of everything a page was made of. */
export class Terms {
  /** The least of the parts; 0 when there was none. */
  #ttlMs: number | undefined;
  ageMs = 0;
  source: Source = 'hit';

  get ttlMs(): number {
    return this.#ttlMs ?? 0;
  }

  absorb(part: PagePart): void {
    this.#ttlMs = Math.min(this.#ttlMs ?? Number.POSITIVE_INFINITY, part.ttlMs);
    this.ageMs = Math.max(this.ageMs, part.ageMs);
    this.sawSource(part.source);
  }

  sawSource(source: Source): void {
    if (WORSE.indexOf(source) > WORSE.indexOf(this.source)) this.source = source;
  }
}

export class Walk {
  readonly row: MethodRow;
  readonly asking: Asking;
  readonly startedAt: number;
  readonly terms = new Terms();
  scope: 'public' | 'private' = 'private';
  /** Ranks left out, in this request or an earlier one of the walk. */
  readonly excluded = new Set<number>();
  /** Those that failed in this request. */
  readonly omissions: Omission[] = [];
  /** Steps left for looking up whose the items are: hostile templates cost a page no more than that. */
  readonly budget = pageBudget();
  /** First pages, fetched together on page one. */
  readonly first = new Map<number, Part>();
  runs: Run[] = [];
  count = 0;
  bytes = 0;

  constructor(row: MethodRow, asking: Asking, startedAt: number) {
    this.row = row;
    this.asking = asking;
    this.startedAt = startedAt;
  }

  omit(member: Member, told: Told): void {
    this.excluded.add(member.rank);
    this.omissions.push({ member, told });
    this.terms.sawSource('miss');
  }

  /** Takes items; `extras` of the page weigh like items. */
  add(run: Run, bytes: number): void {
    this.runs.push(run);
    this.count += run.items.length;
    this.bytes += bytes;
  }

  /** Forgets what was taken so far: the page is filled again. */
  restart(): void {
    this.runs = [];
    this.count = 0;
    this.bytes = 0;
  }
}
