/** What one audience has been taught: everybody, or the context of one caller. */
import { BoundedMap } from '../protocol/bounded-map.ts';
import { type Bound, Ledger } from './ledger.ts';
import { type LookupBudget, TemplateIndex } from './template-index.ts';

/** What can be owned: a resource by its URI, a tool or prompt by its name, a template by its text. */
export type Owned = 'resources' | 'templates' | 'tools' | 'prompts';

/** URIs of one audience whose owner was found by asking around; beyond it the one read longest ago is asked for again. */
export const TOLD_LIMIT = 4_096;
/** Longest such URI that is remembered, in UTF-16 code units: with {@link TOLD_LIMIT}, 8 MiB. */
export const TOLD_LENGTH_MAX = 1_024;
/** What one of them costs beside its text. */
const TOLD_BYTES = 160;

/** Where a look-up ends. */
export interface Limits {
  /** Only ranks below this one are looked at. */
  readonly below?: number;
  /** The steps that are left for all look-ups of one page. */
  readonly budget?: LookupBudget;
}

/** *Bounded by* `bound` for each kind of each upstream, and {@link TOLD_LIMIT}. */
export class Lessons {
  readonly #bound: Bound;
  /** By rank. */
  readonly #ledgers: Readonly<Record<Owned, Ledger[]>> = {
    resources: [],
    templates: [],
    tools: [],
    prompts: [],
  };
  readonly #index = new TemplateIndex();
  readonly #told = new BoundedMap<string, number>(TOLD_LIMIT, (_, uri) => this.#weighTold(uri, -1));
  #toldBytes = 0;

  constructor(bound: Bound) {
    this.#bound = bound;
  }

  /** Takes in what another was taught by upstreams that are still there. @param ranks its ranks, to those of here. */
  adopt(other: Lessons, ranks: ReadonlyMap<number, number>): void {
    for (const kind of Object.keys(this.#ledgers) as Owned[])
      for (const [before, after] of ranks) {
        const ledger = other.find(kind, before);
        if (ledger !== undefined) this.ledger(kind, after).adopt(ledger);
      }
    for (const [uri, before] of other.#told.entries()) {
      const after = ranks.get(before);
      if (after !== undefined) this.remember(uri, after);
    }
  }

  get count(): number {
    return this.#told.size + this.#sum((ledger) => ledger.count);
  }

  get bytes(): number {
    return this.#toldBytes + this.#sum((ledger) => ledger.bytes);
  }

  /** The ledger of that upstream, opened if there is none. */
  ledger(kind: Owned, rank: number): Ledger {
    const ledgers = this.#ledgers[kind];
    const known = ledgers[rank];
    if (known !== undefined) return known;
    const templates = kind === 'templates' ? { index: this.#index, rank } : undefined;
    const ledger = new Ledger(this.#bound, templates);
    ledgers[rank] = ledger;
    return ledger;
  }

  /** The ledger of that upstream, if it taught anything. */
  find(kind: Owned, rank: number): Ledger | undefined {
    return this.#ledgers[kind][rank];
  }

  /** The lowest rank whose lists name it, or, for a resource, hold a template that it matches. */
  listedBy(kind: Owned, id: string, { below, budget }: Limits = {}): number | undefined {
    const ledgers = this.#ledgers[kind];
    const end = Math.min(below ?? ledgers.length, ledgers.length);
    let exact: number | undefined;
    for (let rank = 0; rank < end && exact === undefined; rank++) if (ledgers[rank]?.has(id)) exact = rank;
    if (kind !== 'resources') return exact;
    return this.#index.lookup(id, exact ?? below, budget) ?? exact;
  }

  /** Who answered when that URI was asked around for. */
  told(uri: string): number | undefined {
    return this.#told.touch(uri);
  }

  remember(uri: string, rank: number): void {
    if (uri.length > TOLD_LENGTH_MAX) return;
    if (this.#told.get(uri) === undefined) this.#weighTold(uri, 1);
    this.#told.set(uri, rank);
  }

  #weighTold(uri: string, sign: 1 | -1): void {
    this.#toldBytes += sign * (TOLD_BYTES + 2 * uri.length);
  }

  #sum(measure: (ledger: Ledger) => number): number {
    let sum = 0;
    // Ranks that taught nothing are holes: `forEach` steps over them.
    for (const ledgers of Object.values(this.#ledgers)) {
      ledgers.forEach((ledger) => {
        sum += measure(ledger);
      });
    }
    return sum;
  }
}
