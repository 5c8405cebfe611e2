/**
 * Counters, gauges and histograms over closed label sets.
 *
 * prom-client looks a series up by a joined string on every record (0.6 µs each, ten on a hit); here a record is
 * an index into an array (30 ns), and a value outside its set cannot make a series, by construction (R45).
 * prom-client's registry still does the exposition: it asks each family for its values with `get()`.
 *
 * A reload changes which values a label has: every family is then laid out anew, and its numbers move to where
 * their labels lead from then on.
 */
import { type Listed, Roster } from '../protocol/roster.ts';

/** One line of the exposition, as prom-client's registry wants it. */
interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  readonly metricName?: string;
}

/** What prom-client's registry reads of a metric. */
export interface Exposition {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly aggregator: 'sum';
  readonly values: readonly Sample[];
}

/** A label and every value it can have; what is none of them counts as `other`. */
export class LabelSet {
  readonly name: string;
  /** The values that have a name. */
  readonly known: readonly string[];
  /** These, and `other`. */
  readonly values: readonly string[];
  readonly #index = new Map<string | number, number>();

  constructor(name: string, values: readonly (string | number)[]) {
    this.name = name;
    this.known = [...new Set(values.map(String))].filter((value) => value !== 'other');
    this.values = [...this.known, 'other'];
    for (const [at, value] of this.known.entries()) this.#index.set(value, at);
    for (const value of values) this.#index.set(value, this.indexOf(String(value)));
  }

  indexOf(value: string | number): number {
    return this.#index.get(value) ?? this.known.length;
  }
}

/** A label value on its way into a series; at most four labels a family. */
type Value = string | number;

interface Stride {
  readonly values: readonly string[];
  readonly behind: number;
}

/** The arithmetic that families share: label values to a slot of an array and back. */
class Slots {
  readonly labels: readonly LabelSet[];
  readonly count: number;

  constructor(labels: readonly LabelSet[]) {
    this.labels = labels;
    this.count = labels.reduce((product, { values }) => product * values.length, 1);
  }

  at(a: Value, b: Value, c: Value, d: Value): number {
    const [first, second, third, fourth] = this.labels;
    if (first === undefined) return 0;
    let slot = first.indexOf(a);
    if (second === undefined) return slot;
    slot = slot * second.values.length + second.indexOf(b);
    if (third === undefined) return slot;
    slot = slot * third.values.length + third.indexOf(c);
    if (fourth === undefined) return slot;
    return slot * fourth.values.length + fourth.indexOf(d);
  }

  /** How to read the value of a label out of a slot: `values[floor(slot / behind) % values.length]`. */
  stride(name: string): Stride | undefined {
    const at = this.labels.findIndex((label) => label.name === name);
    const { values } = this.labels[at] ?? {};
    const behind = this.labels.slice(at + 1).reduce((product, label) => product * label.values.length, 1);
    return values && { values, behind };
  }

  /** The label values that lead to a slot. */
  valuesOf(slot: number): readonly string[] {
    const chosen: string[] = [];
    let rest = slot;
    for (const { values } of this.labels.toReversed()) {
      chosen.unshift(values[rest % values.length] ?? 'other');
      rest = Math.floor(rest / values.length);
    }
    return chosen;
  }

  /** The labels that lead to a slot. */
  namesOf(slot: number): Record<string, string> {
    return Object.fromEntries(this.valuesOf(slot).map((value, at) => [this.labels[at]?.name ?? '', value]));
  }

  /** The same labels, those that `sets` names with the values they have there. */
  with(sets: readonly LabelSet[]): Slots {
    return new Slots(this.labels.map((label) => sets.find(({ name }) => name === label.name) ?? label));
  }

  /** Where the series of a slot goes in another layout; nowhere when one of its values is gone. */
  movedTo(next: Slots, slot: number): number | undefined {
    const values = this.valuesOf(slot);
    if (!values.every((value, at) => next.labels[at]?.values.includes(value))) return undefined;
    const [a = '', b = '', c = '', d = ''] = values;
    return next.at(a, b, c, d);
  }
}

/** What all series together say that agree in some labels: their values, in the order asked for. */
export interface Sum {
  readonly values: readonly string[];
  readonly sum: number;
}

/** What every family is made from. */
export interface FamilyOptions {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly LabelSet[];
}

/** What of a label is to exist from the start: these values, or all that have a name, now and after a reload. */
type Started = LabelSet | readonly string[];

/** Where the numbers of a family stand, until its labels get other values. */
interface Layout {
  readonly slots: Slots;
  readonly numbers: Float64Array;
  /** Which series exist: those started and those recorded. */
  readonly present: Uint8Array;
}

/** Something open, on its series; undefined: that is gone. */
interface Held extends Listed {
  slot: number | undefined;
}

function layoutOf(slots: Slots): Layout {
  return { slots, numbers: new Float64Array(slots.count), present: new Uint8Array(slots.count) };
}

/** A counter or a gauge: one number a series. Never throws on recording. */
export class NumberFamily {
  readonly name: string;
  readonly #help: string;
  readonly #type: 'counter' | 'gauge';
  readonly #starts: (readonly Started[])[] = [];
  readonly #held = new Roster<Held>();
  #layout: Layout;

  constructor(type: 'counter' | 'gauge', { name, help, labels = [] }: FamilyOptions) {
    this.name = name;
    this.#help = help;
    this.#type = type;
    this.#layout = layoutOf(new Slots(labels));
  }

  add(by: number, a: Value = '', b: Value = '', c: Value = '', d: Value = ''): void {
    const { slots, numbers, present } = this.#layout;
    const slot = slots.at(a, b, c, d);
    numbers[slot] = (numbers[slot] ?? 0) + by;
    present[slot] = 1;
  }

  set(to: number, a: Value = '', b: Value = '', c: Value = '', d: Value = ''): void {
    const { slots, numbers, present } = this.#layout;
    const slot = slots.at(a, b, c, d);
    numbers[slot] = to;
    present[slot] = 1;
  }

  /**
   * Counts something that is open; returns what to call, once or more, when it is closed. That takes it off the series
   * it was added to, wherever that stands by then: *never* off one that began later under the same labels.
   */
  hold(a: Value = '', b: Value = ''): () => void {
    this.add(1, a, b);
    const held: Held = { place: -1, slot: this.#layout.slots.at(a, b, '', '') };
    this.#held.add(held);
    return () => {
      if (!this.#held.delete(held) || held.slot === undefined) return;
      const { numbers } = this.#layout;
      numbers[held.slot] = (numbers[held.slot] ?? 0) - 1;
    };
  }

  /** Makes series exist at 0: one for each combination of what is given, a list for each label. */
  start(...lists: readonly Started[]): this {
    this.#starts.push(lists);
    this.#begin(lists);
    return this;
  }

  /** Whether the first label has this value: a state of what has no name would be nobody's. */
  names(a: string): boolean {
    return this.#layout.slots.labels[0]?.values.includes(a) === true;
  }

  /** Series that nothing sets from now on exist no more. */
  clear(): void {
    this.#layout.present.fill(0);
  }

  /** Gives labels other values. Series of values that stay keep their numbers, those of others are gone. */
  layOut(sets: readonly LabelSet[]): void {
    const before = this.#layout;
    const next = layoutOf(before.slots.with(sets));
    for (const [slot, present] of before.present.entries()) {
      const to = present === 1 ? before.slots.movedTo(next.slots, slot) : undefined;
      if (to === undefined) continue;
      next.numbers[to] = before.numbers[slot] ?? 0;
      next.present[to] = 1;
    }
    for (const held of this.#held)
      held.slot = held.slot === undefined ? undefined : before.slots.movedTo(next.slots, held.slot);
    this.#layout = next;
    for (const lists of this.#starts) this.#begin(lists);
  }

  /** The series that exist, added up by these labels of this family; by none: one sum of everything. */
  sums(...names: readonly string[]): readonly Sum[] {
    const { slots, numbers, present } = this.#layout;
    const strides = names.flatMap((name) => slots.stride(name) ?? []);
    const found = new Map<number, { readonly slot: number; sum: number }>();
    // Looked at every few seconds: nothing is made for a series that is only added up.
    for (let slot = 0; slot < slots.count; slot++) {
      if (present[slot] !== 1) continue;
      let key = 0;
      for (const { values, behind } of strides)
        key = key * values.length + (Math.floor(slot / behind) % values.length);
      const known = found.get(key);
      if (known === undefined) found.set(key, { slot, sum: numbers[slot] ?? 0 });
      else known.sum += numbers[slot] ?? 0;
    }
    return [...found.values()].map(({ slot, sum }) => ({
      values: strides.map(
        ({ values, behind }) => values[Math.floor(slot / behind) % values.length] ?? 'other',
      ),
      sum,
    }));
  }

  get(): Exposition {
    const { slots, numbers, present } = this.#layout;
    const values: Sample[] = [];
    for (const [slot, there] of present.entries()) {
      if (there === 1) values.push({ labels: slots.namesOf(slot), value: numbers[slot] ?? 0 });
    }
    return { name: this.name, help: this.#help, type: this.#type, aggregator: 'sum', values };
  }

  #begin(lists: readonly Started[]): void {
    const combine = (chosen: readonly string[], [head, ...tail]: readonly Started[]): void => {
      if (head === undefined) return this.add(0, ...(chosen as []));
      // A label's values are those of now.
      const values = head instanceof LabelSet ? this.#layout.slots.labels[chosen.length]?.known : head;
      for (const value of values ?? []) combine([...chosen, value], tail);
    };
    combine([], lists);
  }
}

interface Cell {
  /** Observations by the first bound they fit; the last counts what fits none. */
  readonly counts: Float64Array;
  sum: number;
}

/** A histogram; series appear when first observed. Never throws on recording. */
export class HistogramFamily {
  readonly name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];
  #slots: Slots;
  #cells: (Cell | undefined)[];

  constructor(bounds: readonly number[], { name, help, labels = [] }: FamilyOptions) {
    this.name = name;
    this.#help = help;
    this.#bounds = bounds;
    this.#slots = new Slots(labels);
    this.#cells = new Array<Cell | undefined>(this.#slots.count).fill(undefined);
  }

  /** A negative or unreadable duration counts as 0: clocks may be odd, series must not be. */
  observe(value: number, a: Value = '', b: Value = '', c: Value = '', d: Value = ''): void {
    const slot = this.#slots.at(a, b, c, d);
    let cell = this.#cells[slot];
    if (cell === undefined) {
      cell = { counts: new Float64Array(this.#bounds.length + 1), sum: 0 };
      this.#cells[slot] = cell;
    }
    const seen = Number.isFinite(value) ? Math.max(value, 0) : 0;
    let at = 0;
    for (const bound of this.#bounds) {
      if (seen <= bound) break;
      at++;
    }
    cell.counts[at] = (cell.counts[at] ?? 0) + 1;
    cell.sum += seen;
  }

  /** Gives labels other values. Series of values that stay keep their numbers, those of others are gone. */
  layOut(sets: readonly LabelSet[]): void {
    const [before, cells] = [this.#slots, this.#cells];
    this.#slots = before.with(sets);
    this.#cells = new Array<Cell | undefined>(this.#slots.count).fill(undefined);
    for (const [slot, cell] of cells.entries()) {
      const to = cell && before.movedTo(this.#slots, slot);
      if (to !== undefined) this.#cells[to] = cell;
    }
  }

  /** Observations by bucket, not added up, of the cells that count, by one label of this family. */
  buckets(
    name: string,
    counts: (labels: Readonly<Record<string, string>>) => boolean,
  ): Map<string, number[]> {
    const found = new Map<string, number[]>();
    for (const [slot, cell] of this.#cells.entries()) {
      if (cell === undefined) continue;
      const labels = this.#slots.namesOf(slot);
      if (!counts(labels)) continue;
      const value = labels[name] ?? 'other';
      const before = found.get(value);
      found.set(
        value,
        Array.from(cell.counts, (count, at) => count + (before?.[at] ?? 0)),
      );
    }
    return found;
  }

  get(): Exposition {
    const values: Sample[] = [];
    for (const [slot, cell] of this.#cells.entries()) {
      if (cell === undefined) continue;
      const labels = this.#slots.namesOf(slot);
      let below = 0;
      for (const [at, count] of cell.counts.entries()) {
        below += count;
        const le = this.#bounds[at] ?? '+Inf';
        values.push({ labels: { ...labels, le }, value: below, metricName: `${this.name}_bucket` });
      }
      values.push({ labels, value: cell.sum, metricName: `${this.name}_sum` });
      values.push({ labels, value: below, metricName: `${this.name}_count` });
    }
    return { name: this.name, help: this.#help, type: 'histogram', aggregator: 'sum', values };
  }
}
