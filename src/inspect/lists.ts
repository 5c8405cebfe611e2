/** Walks the lists of a server to their ends, within what the gateway's own walks are bounded by. */
import { type Page, readPage } from '../aggregate/page.ts';
import { endless, MAX_PAGE_BYTES, MAX_WALK_PAGES } from '../aggregate/parts.ts';
import { INVALID_PARAMS, METHOD_NOT_FOUND } from '../protocol/errors.ts';
import { type ListShape, methodRow } from '../protocol/methods.ts';
import { compileTemplate, ownsByPrefix } from '../routing/template.ts';
import type { ReadOutcome } from '../upstream/types.ts';
import { type Asker, ask, hintsOf, median } from './asker.ts';
import type { HintFacts, ListFacts, Some, Trouble, WalkEnd } from './facts.ts';
import { completeTail } from './hello.ts';
import { troubleOf } from './words.ts';

/** Items of one list that are looked at: what a gateway learns of one upstream. */
const MAX_ITEMS = 250_000;
/** Bytes of one list: nobody reads more than that over and over. */
const MAX_LIST_BYTES = 256 * 1024 * 1024;
/** Named of many. */
const SHOWN = 5;
/** Templates compared with resources: beyond it nothing is said of the rest. */
const MAX_COMPARISONS = 100_000;

/** Every list that a server may offer, by the capability that announces it. */
const LISTS: Readonly<Record<string, readonly string[]>> = {
  resources: ['resources/list', 'resources/templates/list'],
  tools: ['tools/list'],
  prompts: ['prompts/list'],
};

/** What was found in all lists, and the resources that can be read. */
export interface Listed {
  readonly facts: readonly ListFacts[];
  readonly uris: readonly string[];
}

/** Walks what is announced. @param walkMs most time for one list. */
export async function walkLists(
  asker: Asker,
  capabilities: ReadonlySet<string>,
  walkMs: number,
): Promise<Listed> {
  const facts: ListFacts[] = [];
  let uris: readonly string[] = [];
  for (const method of Object.entries(LISTS).flatMap(([name, methods]) =>
    capabilities.has(name) ? methods : [],
  )) {
    const walk = new Walk(asker, method, walkMs);
    const came = await walk.run();
    if (method === 'resources/list') uris = walk.ids;
    facts.push(method === 'resources/templates/list' ? withTemplates(came, walk.ids, uris) : came);
  }
  return { facts, uris };
}

/** One walk through one list. */
class Walk {
  readonly ids: string[] = [];
  readonly #asker: Asker;
  readonly #method: string;
  readonly #shape: ListShape;
  readonly #walkMs: number;
  readonly #times: number[] = [];
  readonly #known = new Set<string>();
  readonly #duplicates = new Gathered();
  readonly #dropped = new Gathered();
  readonly #cursors = new Set<string>();
  #bytes = 0;
  #largestPageBytes = 0;
  #items = 0;
  #hints: HintFacts | undefined;
  #hintsDiffer = false;

  constructor(asker: Asker, method: string, walkMs: number) {
    this.#asker = asker;
    this.#method = method;
    this.#shape = methodRow(method).list as ListShape;
    this.#walkMs = walkMs;
  }

  async run(): Promise<ListFacts> {
    const method = this.#method;
    const startedAt = this.#asker.now();
    let cursor: string | undefined;
    for (;;) {
      const { outcome, ms } = await ask(this.#asker, {
        method,
        params: cursor === undefined ? {} : { cursor },
        maxBytes: MAX_PAGE_BYTES,
      });
      const pages = this.#times.length;
      const tail = completeTail(outcome);
      const page = tail && (await readPage(tail, this.#shape));
      if (page === undefined) return this.#without(outcome, cursor, startedAt);
      this.#times.push(ms);
      this.#take(page, outcome, pages);
      const next = page.nextCursor;
      const end = this.#endAt(page, next, { cursor, pages, spentMs: this.#asker.now() - startedAt });
      if (end !== undefined) return this.#walked(end, startedAt);
      cursor = next;
    }
  }

  #take(page: Page, outcome: ReadOutcome, pages: number): void {
    this.#bytes += page.tail.length;
    this.#largestPageBytes = Math.max(this.#largestPageBytes, page.tail.length);
    this.#items += page.items.length + page.bad.length;
    for (const { id } of page.items) {
      if (this.#known.has(id)) this.#duplicates.add(id);
      else this.ids.push(id);
      this.#known.add(id);
    }
    for (const { index, why } of page.bad) this.#dropped.add(`item ${index} of page ${pages + 1}: ${why}`);
    const hints = hintsOf(this.#asker.config, this.#method, undefined, outcome);
    this.#hints ??= hints;
    this.#hintsDiffer ||= differ(hints, this.#hints);
  }

  #endAt(
    page: Page,
    next: string | undefined,
    at: { readonly cursor: string | undefined; readonly pages: number; readonly spentMs: number },
  ): WalkEnd | undefined {
    if (page.oddCursor) return 'odd-cursor';
    if (next === undefined) return 'end';
    if (next === at.cursor) return 'same-cursor';
    if (at.pages + 1 >= MAX_WALK_PAGES) return 'pages';
    if (endless(next, at) !== undefined) return 'long-cursor';
    if (this.#cursors.has(next)) return 'repeated-cursor';
    this.#cursors.add(next);
    if (this.#items >= MAX_ITEMS) return 'items';
    if (this.#bytes >= MAX_LIST_BYTES) return 'bytes';
    return at.spentMs >= this.#walkMs ? 'time' : undefined;
  }

  #without(outcome: ReadOutcome, cursor: string | undefined, startedAt: number): ListFacts {
    const method = this.#method;
    const trouble = listTrouble(outcome);
    if (cursor === undefined)
      return trouble.code === METHOD_NOT_FOUND
        ? { method, kind: 'absent', trouble }
        : { method, kind: 'failed', trouble, pages: 0 };
    return trouble.code === INVALID_PARAMS
      ? this.#walked('refused-cursor', startedAt)
      : { method, kind: 'failed', trouble, pages: this.#times.length };
  }

  #walked(end: WalkEnd, startedAt: number): ListFacts {
    return {
      method: this.#method,
      kind: 'walked',
      pages: this.#times.length,
      items: this.#items,
      bytes: this.#bytes,
      largestPageBytes: this.#largestPageBytes,
      firstMs: this.#times[0] ?? 0,
      medianMs: median(this.#times),
      totalMs: this.#asker.now() - startedAt,
      hints: this.#hints as HintFacts,
      hintsDiffer: this.#hintsDiffer,
      end,
      dropped: this.#dropped.some,
      duplicates: this.#duplicates.some,
      unowning: NONE,
      unmatched: NONE,
    };
  }
}

const NONE: Some = { count: 0, first: [] };

/** Counts all, and keeps some. */
class Gathered {
  readonly #first: string[] = [];
  #count = 0;

  add(text: string): void {
    this.#count++;
    if (this.#first.length < SHOWN) this.#first.push(text);
  }

  get some(): Some {
    return { count: this.#count, first: this.#first };
  }
}

function differ(one: HintFacts, other: HintFacts): boolean {
  return one.scope !== other.scope || JSON.stringify(one.ttl) !== JSON.stringify(other.ttl);
}

function listTrouble(outcome: ReadOutcome): Trouble {
  if (outcome.kind === 'large') throw new Error('a list that flows: it was not allowed to');
  if (
    outcome.kind === 'answer' &&
    outcome.answer.kind === 'result' &&
    outcome.answer.resultType === 'complete'
  )
    return { kind: 'odd', words: 'a result that is no such list', status: outcome.status };
  return troubleOf(outcome);
}

/** What can be said of templates beside the resources of the same server. */
function withTemplates(came: ListFacts, texts: readonly string[], uris: readonly string[]): ListFacts {
  if (came.kind !== 'walked') return came;
  const unowning = new Gathered();
  const unmatched = new Gathered();
  let comparisons = 0;
  for (const text of texts) {
    const compiled = compileTemplate(text);
    if (compiled.kind === 'invalid') continue;
    if (!ownsByPrefix(compiled.template)) unowning.add(text);
    const { literalPrefix } = compiled.template;
    const fits = (uri: string): boolean => {
      if (!uri.startsWith(literalPrefix) || comparisons > MAX_COMPARISONS) return false;
      comparisons++;
      return compiled.template.matches(uri);
    };
    if (!uris.some(fits) && comparisons <= MAX_COMPARISONS) unmatched.add(text);
  }
  return { ...came, unowning: unowning.some, unmatched: unmatched.some };
}
