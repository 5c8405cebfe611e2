/** What the lists of one kind of one upstream taught one audience: every edition of the list, within one share. */
import { Edition, type Extent, type Place } from './edition.ts';
import { compileTemplate, ownsByPrefix } from './template.ts';
import type { TemplateIndex } from './template-index.ts';

/** Longest id that is learnt, in UTF-16 code units. What is longer (a `data:` URI) is read by asking around. */
export const ID_LENGTH_MAX = 8 * 1024;

/**
 * Editions of one list that are remembered: clients of a fleet differ in a handful of capabilities. Beyond it the
 * one learnt longest ago is forgotten with its marks, and listed again when somebody needs it.
 */
export const EDITIONS = 8;

/** What an id costs beside its text: its string's head and its slots in a map (measured: 80 to 110). */
const ID_BYTES = 96;
const CHARACTER_BYTES = 2;
/** What a character of a template costs in the index, at worst: a name in `{?name}` is a row of states (measured). */
const TEMPLATE_CHARACTER_BYTES = 200;
/** What an edition costs before it holds anything. */
const EDITION_BYTES = 1024;

/** Most that one upstream's lists of one kind may hold. */
export interface Bound {
  readonly count: number;
  readonly bytes: number;
}

/** Where the templates of the ledgers of one audience are found by what they match. */
export interface Templates {
  readonly index: TemplateIndex;
  readonly rank: number;
}

/**
 * *Bounded by* its {@link Bound} and {@link EDITIONS}. When it is full it takes no more, and says so: nothing that an
 * upstream lists can make room at the expense of another's, and what is known stays known.
 */
export class Ledger {
  /** By name, the one learnt longest ago first. */
  readonly #editions = new Map<string, Edition>();
  readonly #bound: Bound;
  readonly #templates: Templates | undefined;
  #count = 0;
  #bytes = 0;
  readonly #share = {
    take: (id: string) => this.#take(id),
    release: (id: string): void => this.#release(id),
  };

  /** @param templates given where the ids are texts of templates. */
  constructor(bound: Bound, templates?: Templates) {
    this.#bound = bound;
    this.#templates = templates;
  }

  /** Takes in what another holds, of the same upstream; what there is no room for, as if it had never been learnt. */
  adopt(other: Ledger): void {
    for (const [name, edition] of other.#editions) {
      const bytes = other.#weight(edition);
      if (this.#count + edition.size > this.#bound.count || this.#bytes + bytes > this.#bound.bytes) continue;
      // What there was room for together finds it again.
      for (const id of edition.ids()) this.#indexed(id);
      this.#editions.set(name, Edition.from(edition));
      this.#count += edition.size;
      this.#bytes += bytes;
    }
  }

  /** Ids held: one named in two editions counts twice. */
  get count(): number {
    return this.#count;
  }

  /** What it holds in memory, counted rather too high. */
  get bytes(): number {
    return this.#bytes;
  }

  has(id: string): boolean {
    for (const edition of this.#editions.values()) if (edition.has(id)) return true;
    return false;
  }

  /** Takes in a page; returns how many of its ids were not taken. See {@link Edition.learn}. */
  learn(ids: Iterable<string>, page: object, place: Place, drawn: number): number {
    return this.#editionAt(place.edition).learn(ids, page, place, drawn, this.#share);
  }

  /** Notes how far an edition was walked. */
  mark(edition: string, extent: 'whole' | 'part', untilMs: number, drawn: number): void {
    this.#editionAt(edition).mark(extent, untilMs, drawn);
  }

  extent(edition: string, nowMs: number, forgotten: number): Extent {
    return this.#editions.get(edition)?.extent(nowMs, forgotten) ?? 'unknown';
  }

  /** Forgets an edition with its marks. */
  drop(name: string): void {
    const edition = this.#editions.get(name);
    if (edition === undefined) return;
    this.#editions.delete(name);
    this.#bytes -= EDITION_BYTES;
    for (const id of edition.ids()) this.#release(id);
  }

  #editionAt(name: string): Edition {
    const known = this.#editions.get(name);
    const edition = known ?? new Edition();
    if (known === undefined) this.#bytes += EDITION_BYTES;
    this.#editions.delete(name);
    this.#editions.set(name, edition);
    if (this.#editions.size > EDITIONS) {
      const [oldest] = this.#editions.keys();
      if (oldest !== undefined) this.drop(oldest);
    }
    return edition;
  }

  #take(id: string): 'taken' | 'full' | 'too-long' {
    const bytes = this.#cost(id);
    if (id.length > ID_LENGTH_MAX) return 'too-long';
    if (this.#count >= this.#bound.count || this.#bytes + bytes > this.#bound.bytes) return 'full';
    if (!this.#indexed(id)) return 'full';
    this.#count++;
    this.#bytes += bytes;
    return 'taken';
  }

  #release(id: string): void {
    this.#count--;
    this.#bytes -= this.#cost(id);
    if (this.#templates !== undefined && !this.has(id))
      this.#templates.index.remove(id, this.#templates.rank);
  }

  #weight(edition: Edition): number {
    let bytes = EDITION_BYTES;
    for (const id of edition.ids()) bytes += this.#cost(id);
    return bytes;
  }

  #cost(id: string): number {
    const characterBytes = this.#templates === undefined ? CHARACTER_BYTES : TEMPLATE_CHARACTER_BYTES;
    return ID_BYTES + characterBytes * id.length;
  }

  /** False when the index has no room for it. What owns nothing by its text needs none. */
  #indexed(text: string): boolean {
    if (this.#templates === undefined) return true;
    const compiled = compileTemplate(text);
    if (compiled.kind === 'invalid' || !ownsByPrefix(compiled.template)) return true;
    return this.#templates.index.add(compiled.template, this.#templates.rank);
  }
}
