/** Whose templates match a URI: step 4 of "Whose URI is it?". */
import { ownsByPrefix, type Template } from './template.ts';
import { emptyTree, type Node, plant, uproot } from './template-tree.ts';
import { type Found, walk } from './template-walk.ts';

/** Templates of one owner: no owner can take another one's room. */
export const INDEX_TEMPLATE_COUNT_MAX = 10_000;

/** Characters of a text, on average, when an owner's share is full: its memory is proportional to them. */
export const INDEX_TEXT_LENGTH_MEAN = 128;

/**
 * Steps a look-up takes before it gives up the higher half of the ranks, see `walk`: 3 ms where every step is one into
 * cold memory, as among thousands of templates that all fit; a tenth of that otherwise.
 */
export const LOOKUP_STEP_COUNT_MAX = 2 ** 14;

/** So many more for each character of the URI: templates as people write them take up to ten. */
export const LOOKUP_STEPS_PER_CHARACTER = 16;

/**
 * Steps of all look-ups for one page of a list, some 90 ms at worst: a thousand URIs of fifty characters among
 * templates as people write them take half. An item whose earlier owner is not found any more is listed, maybe twice.
 */
export const PAGE_STEP_COUNT_MAX = 2 ** 19;

/** What is left of the steps for one page; look-ups take from it, and find nothing when it is used up. */
export interface LookupBudget {
  stepsLeft: number;
}

export function pageBudget(): LookupBudget {
  return { stepsLeft: PAGE_STEP_COUNT_MAX };
}

interface Owner {
  /** Text → where it ends in the tree. */
  readonly entries: Map<string, { readonly template: Template; end: Node }>;
  textLength: number;
}

/**
 * The listed templates of the upstreams of a route, by rank: the place of the owner in the route's order.
 * *Bounded by:* for each rank, `countMax` templates of `INDEX_TEXT_LENGTH_MEAN` characters each; learning the same
 * again changes nothing.
 */
export class TemplateIndex {
  /** By rank. */
  readonly #owners = new Map<number, Owner>();
  readonly #countMax: number;
  #tree = emptyTree();
  #count = 0;
  #witheredCount = 0;

  constructor(countMax: number = INDEX_TEMPLATE_COUNT_MAX) {
    this.#countMax = countMax;
  }

  /** How many templates it holds. */
  get size(): number {
    return this.#count;
  }

  /**
   * Takes in a template of an owner; `rank` is an integer ≥ 0. False when it is not held: the owner's share is full,
   * or the template owns nothing because it has no literal prefix.
   */
  add(template: Template, rank: number): boolean {
    if (!ownsByPrefix(template)) return false;
    const owner = this.#owners.get(rank) ?? { entries: new Map(), textLength: 0 };
    const { text } = template;
    if (owner.entries.has(text)) return true;
    if (owner.entries.size >= this.#countMax) return false;
    if (owner.textLength + text.length > this.#countMax * INDEX_TEXT_LENGTH_MEAN) return false;
    owner.entries.set(text, { template, end: plant(this.#tree, template.parts, rank) });
    owner.textLength += text.length;
    this.#owners.set(rank, owner);
    this.#count++;
    return true;
  }

  /** Forgets a template of an owner; false when that owner has none of this text. */
  remove(text: string, rank: number): boolean {
    const owner = this.#owners.get(rank);
    const entry = owner?.entries.get(text);
    if (owner === undefined || entry === undefined) return false;
    uproot(entry.end, rank);
    owner.entries.delete(text);
    owner.textLength -= text.length;
    if (owner.entries.size === 0) this.#owners.delete(rank);
    this.#count--;
    this.#witheredCount++;
    if (this.#witheredCount > this.#count) this.#replant();
    return true;
  }

  /** Makes the templates of an owner exactly these, and returns how many of them are not held. */
  replace(rank: number, templates: Iterable<Template>): number {
    const wanted = new Map<string, Template>();
    for (const template of templates) wanted.set(template.text, template);
    for (const text of [...(this.#owners.get(rank)?.entries.keys() ?? [])]) {
      if (!wanted.has(text)) this.remove(text, rank);
    }
    let refusedCount = 0;
    for (const template of wanted.values()) if (!this.add(template, rank)) refusedCount++;
    return refusedCount;
  }

  /**
   * The lowest rank below `below` that has a matching template; what is not below costs nothing.
   * *Bounded by:* {@link LOOKUP_STEP_COUNT_MAX} and {@link LOOKUP_STEPS_PER_CHARACTER}; beyond it, and without any
   * `budget` left, undefined.
   */
  lookup(uri: string, below?: number, budget?: LookupBudget): number | undefined {
    if (this.#count === 0 || (budget !== undefined && budget.stepsLeft <= 0)) return undefined;
    const { rank, stepCount } = this.#find(uri, below);
    if (budget !== undefined) budget.stepsLeft -= stepCount;
    return rank;
  }

  /** The steps that `lookup(uri, below)` takes. */
  lookupSteps(uri: string, below?: number): number {
    return this.#find(uri, below).stepCount;
  }

  #find(uri: string, below = Number.POSITIVE_INFINITY): Found {
    // An earlier owner's tree is not walked for what cannot be there: most lookups end here.
    if (this.#tree.root.lowest >= below) return { rank: undefined, stepCount: 0 };
    return walk(this.#tree, uri, LOOKUP_STEP_COUNT_MAX + LOOKUP_STEPS_PER_CHARACTER * uri.length, below);
  }

  /** Grows the tree anew without the withered ways; paid for by as many removals as there are templates left. */
  #replant(): void {
    this.#tree = emptyTree();
    this.#witheredCount = 0;
    for (const [rank, { entries }] of this.#owners) {
      for (const entry of entries.values()) entry.end = plant(this.#tree, entry.template.parts, rank);
    }
  }
}
