/**
 * What one expression can expand to, as a small non-deterministic machine over atoms. *Spec:* RFC 6570, section 3.2
 * and appendix A.
 */
import { labelOf, RESERVED, UNRESERVED } from './template-atoms.ts';
import type { Expression, Operator, Variable } from './template-parse.ts';

/** A step over one atom: exactly `atom`, or, where that is 0, any atom of `kinds`. */
export interface Arc {
  readonly atom: number;
  readonly kinds: number;
  readonly to: number;
  /** A bit that must not be among the used ones yet, and then is; 0 for none. */
  readonly takes: number;
  /** The most characters this arc may have passed since its variable began; 0 for any number. */
  readonly limit: number;
}

export interface State {
  readonly arcs: readonly Arc[];
  /** States that are reached with this one, over no atom. */
  readonly also: readonly number[];
  /** The expression may end here. */
  readonly ends: boolean;
}

/** The first state is where the expression starts. *Bounded by:* the length of the template's text. */
export type Machine = readonly State[];

interface Row {
  readonly first: string;
  readonly separator: string;
  readonly values: number;
  readonly naming: 'none' | 'bare when empty' | 'always with =';
}

const ROWS: Readonly<Record<Operator, Row>> = {
  '': { first: '', separator: ',', values: UNRESERVED, naming: 'none' },
  '+': { first: '', separator: ',', values: UNRESERVED | RESERVED, naming: 'none' },
  '#': { first: '#', separator: ',', values: UNRESERVED | RESERVED, naming: 'none' },
  '.': { first: '.', separator: '.', values: UNRESERVED, naming: 'none' },
  '/': { first: '/', separator: '/', values: UNRESERVED, naming: 'none' },
  ';': { first: ';', separator: ';', values: UNRESERVED, naming: 'bare when empty' },
  '?': { first: '?', separator: '&', values: UNRESERVED, naming: 'always with =' },
  '&': { first: '&', separator: '&', values: UNRESERVED, naming: 'always with =' },
};

/** Names of an expression that are kept from occurring twice; those after them may. */
const TRACKED_NAME_COUNT = 32;

/**
 * Expressions of one signature have equal machines. No two others share one: names hold none of `,`, `:` and `*`.
 */
export function signatureOf(expression: Expression): string {
  const named = ROWS[expression.operator].naming !== 'none';
  const variables = essential(expression).map((variable) => {
    const name = named ? variable.name : '';
    if (variable.kind === 'whole') return name;
    return variable.kind === 'exploded' ? `${name}*` : `${name}:${variable.limit}`;
  });
  return `${expression.operator},${variables.join(',')}`;
}

/**
 * The machine of an expression. Undefined variables leave nothing behind, the operator's own character included;
 * named ones (`;`, `?`, `&`) come in any order, each at most once.
 */
export function machineOf(expression: Expression): Machine {
  const row = ROWS[expression.operator];
  const variables = essential(expression);
  return row.naming === 'none' ? unnamedMachine(row, variables) : namedMachine(row, variables);
}

/**
 * True when `after`, directly behind `before`, adds nothing to what `before` matches: `{+a}{+b}` is `{+a}`. Without
 * it, a row of such expressions would be open, all of them, at every character.
 */
export function absorbs(before: Expression, after: Expression): boolean {
  const [wide, narrow] = [signatureOf(before), signatureOf(after)];
  return wide === '+,' ? narrow === '+,' || narrow === ',' : wide === ',' && narrow === ',';
}

/** Leaves out the variables that add nothing to what another one of the expression already matches. */
function essential({ operator, variables }: Expression): readonly Variable[] {
  const { naming, separator, values } = ROWS[operator];
  const swallowsSeparators = naming === 'none' && separator !== '/';
  if (!swallowsSeparators) return variables;
  const takesPairs = (values & RESERVED) !== 0;
  if (!takesPairs && variables.some(({ kind }) => kind === 'exploded')) return variables;
  const widest = variables.find(({ kind }) => kind !== 'prefix');
  return widest === undefined ? variables : [{ kind: 'whole', name: widest.name }];
}

function exactly(character: string, to: number): Arc {
  return { atom: character.charCodeAt(0), kinds: 0, to, takes: 0, limit: 0 };
}

function any(kinds: number, to: number): Arc {
  return { atom: 0, kinds, to, takes: 0, limit: 0 };
}

function atMost(limit: number, kinds: number, to: number): Arc {
  return { atom: 0, kinds, to, takes: 0, limit };
}

function unnamedMachine(row: Row, variables: readonly Variable[]): Machine {
  const start: State =
    row.first === ''
      ? { arcs: [], also: [1], ends: true }
      : { arcs: [exactly(row.first, 1)], also: [], ends: true };
  const states = [start];
  for (const [index, variable] of variables.entries()) {
    const isLast = index === variables.length - 1;
    const size = variable.kind === 'exploded' ? 3 : 1;
    const next = states.length + 1 + size;
    const choice = states.length;
    const entries = variable.kind === 'exploded' ? [choice + 1, choice + 2] : [choice + 1];
    states.push({ arcs: [], also: isLast ? entries : [...entries, next], ends: false });
    states.push(...unnamedValue(row, variable, choice + 1, isLast ? [] : [exactly(row.separator, next)]));
  }
  return states;
}

/** A value that starts in state `at`: a string or a list, or, exploded, a list or pairs, never both mixed. */
function unnamedValue(row: Row, variable: Variable, at: number, after: readonly Arc[]): readonly State[] {
  const { values, separator } = row;
  const listed = (values & RESERVED) === 0 ? [exactly(',', at)] : [];
  switch (variable.kind) {
    case 'whole':
      return [{ arcs: [any(values, at), ...listed, ...after], also: [], ends: true }];
    case 'prefix':
      return [{ arcs: [atMost(variable.limit, values, at), ...after], also: [], ends: true }];
    case 'exploded': {
      const key = at + 1;
      const value = at + 2;
      return [
        { arcs: [any(values, at), exactly(separator, at), ...after], also: [], ends: true },
        { arcs: [any(values, key), exactly('=', value)], also: [], ends: false },
        { arcs: [any(values, value), exactly(separator, key), ...after], also: [], ends: true },
      ];
    }
  }
}

function namedMachine(row: Row, variables: readonly Variable[]): Machine {
  const parameter = 1;
  const starts: number[] = [];
  const states: State[] = [
    { arcs: [exactly(row.first, parameter)], also: [], ends: true },
    { arcs: [], also: starts, ends: false },
  ];
  for (const [index, variable] of variables.entries()) {
    const at = states.length;
    const again = exactly(row.separator, parameter);
    starts.push(at);
    if (variable.kind === 'exploded') states.push(...explodedPairs(row, at, again));
    else {
      const name = namedStart(variable.name, at, index < TRACKED_NAME_COUNT ? 1 << index : 0);
      states.push(...name, ...namedValue(row, variable, at + name.length, again));
    }
  }
  return states;
}

function namedStart(name: string, at: number, bit: number): readonly State[] {
  return Array.from(labelOf(name) ?? '', (atom, index) => {
    const arc = { ...exactly(atom, at + index + 1), takes: index === 0 ? bit : 0 };
    return { arcs: [arc], also: [], ends: false };
  });
}

/** What follows a name: `;x` is an empty string, `;x=` an empty list member, and no prefix of a string. */
function namedValue(row: Row, variable: Variable, at: number, again: Arc): readonly State[] {
  const isBareWhenEmpty = row.naming === 'bare when empty';
  const assign = exactly('=', at + 1);
  const afterName = { arcs: isBareWhenEmpty ? [assign, again] : [assign], also: [], ends: isBareWhenEmpty };
  if (variable.kind !== 'prefix') {
    const arcs = [any(row.values, at + 1), exactly(',', at + 1), again];
    return [afterName, { arcs, also: [], ends: true }];
  }
  const character = atMost(variable.limit, row.values, at + 2);
  return [
    afterName,
    isBareWhenEmpty
      ? { arcs: [character], also: [], ends: false }
      : { arcs: [character, again], also: [], ends: true },
    { arcs: [character, again], also: [], ends: true },
  ];
}

/** Pairs of an exploded map: keys are written like literals, so they may hold any reserved character. */
function explodedPairs(row: Row, at: number, again: Arc): readonly State[] {
  const key = any(UNRESERVED | RESERVED, at);
  if (row.naming === 'bare when empty') return [{ arcs: [key], also: [], ends: true }];
  return [
    { arcs: [key, exactly('=', at + 1)], also: [], ends: false },
    { arcs: [any(row.values, at + 1), again], also: [], ends: true },
  ];
}
