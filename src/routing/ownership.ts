/**
 * Who owns a URI or a name, as learnt from the lists of a route's upstreams (design, section 4).
 *
 * An upstream is known by its rank: its place in the route's order, 0 first. What a list teaches everybody and what
 * it teaches one caller's context are kept apart. *Bounded by* the constants below; what is forgotten is learnt
 * again from the next list.
 */
import { BoundedMap } from '../protocol/bounded-map.ts';
import { compileTemplate } from './template.ts';
import { TemplateIndex } from './template-index.ts';

/** What can be owned: a resource by its URI, a tool or prompt by its name, a template by its text. */
export type Owned = 'resources' | 'templates' | 'tools' | 'prompts';

/** Ids of one kind that everybody is taught: ten upstreams of 5,000 resources five times over. */
export const SHARED_LIMIT = 250_000;
/** Ids of one kind that one context is taught. */
export const CONTEXT_LIMIT = 100_000;
/** Ids that all contexts together are taught: beyond it the context asked for longest ago is forgotten whole. */
export const CONTEXTS_LIMIT = 500_000;
/** Contexts remembered at once. */
export const CONTEXTS = 4_096;

/** Whom a list teaches: everybody, or the context of the caller it was fetched for. */
export type Audience =
  | { readonly kind: 'everybody' }
  | { readonly kind: 'context'; readonly context: string };

/** What one audience has been taught. */
class Lessons {
  readonly ids: Readonly<Record<Owned, BoundedMap<string, number>>>;
  readonly templates = new TemplateIndex();
  /** `kind rank` → until when a complete walk counts as known, monotonic milliseconds. */
  readonly listedUntil = new Map<string, number>();
  /** Pages already learnt, so that a page served from memory is not learnt item by item again. */
  pages = new WeakSet<object>();

  constructor(limit: number) {
    const forget = (): void => {
      // What is no longer all known must not pass for listed: an unknown id is then listed again, not refused.
      this.pages = new WeakSet();
      this.listedUntil.clear();
    };
    this.ids = {
      resources: new BoundedMap(limit, forget),
      templates: new BoundedMap(limit, forget),
      tools: new BoundedMap(limit, forget),
      prompts: new BoundedMap(limit, forget),
    };
  }

  get size(): number {
    const { resources, templates, tools, prompts } = this.ids;
    return resources.size + templates.size + tools.size + prompts.size;
  }

  owner(kind: Owned, id: string): number | undefined {
    const exact = this.ids[kind].get(id);
    if (kind !== 'resources' || exact === 0) return exact;
    const byTemplate = this.templates.lookup(id);
    if (exact === undefined || byTemplate === undefined) return exact ?? byTemplate;
    return Math.min(exact, byTemplate);
  }
}

export class Ownership {
  readonly #shared = new Lessons(SHARED_LIMIT);
  readonly #contexts = new BoundedMap<string, Lessons>(CONTEXTS, (forgotten) => {
    this.#contextsSize -= forgotten.size;
  });
  #contextsSize = 0;

  /**
   * Takes in a page of a list of the upstream at `rank`. An id that two upstreams list belongs to the earlier.
   * @param page identifies the page's bytes; the same page is taken in once.
   */
  learn(kind: Owned, audience: Audience, rank: number, ids: readonly string[], page: object): void {
    const lessons = this.#lessonsOf(audience);
    if (lessons.pages.has(page)) return;
    lessons.pages.add(page);
    const before = lessons.size;
    for (const id of ids) {
      const known = lessons.ids[kind].touch(id);
      if (known === undefined || known > rank) lessons.ids[kind].set(id, rank);
      if (kind === 'templates') learnTemplate(lessons.templates, id, rank);
    }
    if (audience.kind === 'context') this.#make(lessons.size - before, audience.context);
  }

  /** Accounts for what a context has learnt; makes room at the expense of the others. */
  #make(grown: number, context: string): void {
    this.#contextsSize += grown;
    while (this.#contextsSize > CONTEXTS_LIMIT) {
      const oldest = this.#contexts.oldest();
      if (oldest === undefined || oldest[0] === context) return;
      this.#contexts.delete(oldest[0]);
      this.#contextsSize -= oldest[1].size;
    }
  }

  /** The lowest rank that owns it for this context: an earlier upstream's match is never taken by a later one. */
  owner(kind: Owned, id: string, context: string): number | undefined {
    const shared = this.#shared.owner(kind, id);
    const own = this.#contexts.touch(context)?.owner(kind, id);
    if (shared === undefined || own === undefined) return shared ?? own;
    return Math.min(shared, own);
  }

  /** Notes that the whole list was walked. */
  markListed(kind: Owned, audience: Audience, rank: number, untilMs: number): void {
    this.#lessonsOf(audience).listedUntil.set(`${kind} ${rank}`, untilMs);
  }

  /** Whether the list of that upstream is known as this context sees it. */
  isListed(kind: Owned, rank: number, context: string, nowMs: number): boolean {
    const key = `${kind} ${rank}`;
    const until = Math.max(
      this.#shared.listedUntil.get(key) ?? 0,
      this.#contexts.get(context)?.listedUntil.get(key) ?? 0,
    );
    return nowMs < until;
  }

  #lessonsOf(audience: Audience): Lessons {
    if (audience.kind === 'everybody') return this.#shared;
    const known = this.#contexts.touch(audience.context);
    if (known !== undefined) return known;
    const lessons = new Lessons(CONTEXT_LIMIT);
    this.#contexts.set(audience.context, lessons);
    return lessons;
  }
}

function learnTemplate(index: TemplateIndex, text: string, rank: number): void {
  const compiled = compileTemplate(text);
  if (compiled.kind === 'template') index.add(compiled.template, rank);
}
