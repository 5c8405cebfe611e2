/** Whose templates match a URI: step 4 of "Whose URI is it?". */
import { ownsByPrefix, type Template } from './template.ts';
import { emptyTree, type Node, plant, uproot } from './template-tree.ts';
import { type Found, walk } from './template-walk.ts';

/** Templates of all owners together, the same text of two owners counted twice. Ten upstreams with a thousand each. */
export const INDEX_TEMPLATE_COUNT_MAX = 10_000;

/** Characters of a text, on average, when the index is full: what it holds in memory is proportional to them. */
export const INDEX_TEXT_LENGTH_MEAN = 128;

/** Steps a look-up takes before it gives up the higher half of the ranks, see `walk`: some 20 ms. */
export const LOOKUP_STEP_COUNT_MAX = 2 ** 20;

/**
 * The listed templates of the upstreams of a route, by rank: the place of the owner in the route's order.
 * *Bounded by:* `countMax` templates of `INDEX_TEXT_LENGTH_MEAN` characters each; learning the same again changes
 * nothing.
 */
export class TemplateIndex {
  /** Rank → text → where it ends in the tree. */
  readonly #owners = new Map<number, Map<string, { readonly template: Template; end: Node }>>();
  readonly #countMax: number;
  #tree = emptyTree();
  #count = 0;
  #textLength = 0;
  #witheredCount = 0;

  constructor(countMax: number = INDEX_TEMPLATE_COUNT_MAX) {
    this.#countMax = countMax;
  }

  /** How many templates it holds. */
  get size(): number {
    return this.#count;
  }

  /**
   * Takes in a template of an owner; `rank` is an integer ≥ 0. False when it is not held: the index is full, or the
   * template owns nothing because it has no literal prefix.
   */
  add(template: Template, rank: number): boolean {
    if (!ownsByPrefix(template)) return false;
    const owned = this.#owners.get(rank) ?? new Map();
    if (owned.has(template.text)) return true;
    if (this.#count >= this.#countMax) return false;
    if (this.#textLength + template.text.length > this.#countMax * INDEX_TEXT_LENGTH_MEAN) return false;
    owned.set(template.text, { template, end: plant(this.#tree, template.parts, rank) });
    this.#owners.set(rank, owned);
    this.#count++;
    this.#textLength += template.text.length;
    return true;
  }

  /** Forgets a template of an owner; false when that owner has none of this text. */
  remove(text: string, rank: number): boolean {
    const owned = this.#owners.get(rank);
    const entry = owned?.get(text);
    if (owned === undefined || entry === undefined) return false;
    uproot(entry.end, rank);
    owned.delete(text);
    if (owned.size === 0) this.#owners.delete(rank);
    this.#count--;
    this.#textLength -= text.length;
    this.#witheredCount++;
    if (this.#witheredCount > this.#count) this.#replant();
    return true;
  }

  /** Makes the templates of an owner exactly these, and returns how many of them are not held. */
  replace(rank: number, templates: Iterable<Template>): number {
    const wanted = new Map<string, Template>();
    for (const template of templates) wanted.set(template.text, template);
    for (const text of [...(this.#owners.get(rank)?.keys() ?? [])]) {
      if (!wanted.has(text)) this.remove(text, rank);
    }
    let refusedCount = 0;
    for (const template of wanted.values()) if (!this.add(template, rank)) refusedCount++;
    return refusedCount;
  }

  /** The lowest rank that has a matching template. *Bounded by:* `LOOKUP_STEP_COUNT_MAX`; beyond it, undefined. */
  lookup(uri: string): number | undefined {
    return this.#find(uri).rank;
  }

  /** The steps that `lookup(uri)` takes. */
  lookupSteps(uri: string): number {
    return this.#find(uri).stepCount;
  }

  #find(uri: string): Found {
    return walk(this.#tree, uri, LOOKUP_STEP_COUNT_MAX);
  }

  /** Grows the tree anew without the withered ways; paid for by as many removals as there are templates left. */
  #replant(): void {
    this.#tree = emptyTree();
    this.#witheredCount = 0;
    for (const [rank, owned] of this.#owners) {
      for (const entry of owned.values()) entry.end = plant(this.#tree, entry.template.parts, rank);
    }
  }
}
