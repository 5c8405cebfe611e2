/** YAML text → plain data that remembers where each value stands. Knows nothing of what the values mean. */
import {
  type Alias,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
  type Scalar,
  type YAMLError,
} from 'yaml';
import type { Expansion } from './expand.ts';
import { formatPath, type Path, type Position, type Problem, quote } from './problems.ts';
import { nestsTooDeep, SYNTAX_MENDS, syntaxMend } from './syntax.ts';

/** Bound on values after aliases are followed: a few lines of aliases can stand for billions of values. */
const MAX_NODES = 200_000;
/** Bound on nesting after aliases are followed; an alias to its own parent has no other end. */
const MAX_DEPTH = 64;

const CORE_TAGS: ReadonlySet<string> = new Set(
  ['str', 'int', 'float', 'bool', 'null', 'map', 'seq'].map((name) => `tag:yaml.org,2002:${name}`),
);

/** Plain data with positions. */
export interface Document {
  readonly data: unknown;
  /** Where the value at `path` starts; for one that is absent, where the nearest holder's key stands. */
  at(path: Path): Position;
  /** Where the key at `path` stands. */
  atKey(path: Path): Position;
  /** True when something was written at `path`. */
  has(path: Path): boolean;
  /** The text at `path` as it was written, before anything was expanded. */
  authored(path: Path): string | undefined;
  /** True when the text at `path` holds something from the environment or a file. */
  isExpanded(path: Path): boolean;
}

export type Reading =
  | { readonly kind: 'unreadable'; readonly problems: readonly Problem[] }
  /** `failed`: paths whose value could not be expanded; each already has its problem. */
  | {
      readonly kind: 'read';
      readonly document: Document;
      readonly problems: readonly Problem[];
      readonly failed: readonly Path[];
    };

interface Spot {
  readonly key: number;
  value: number;
  authored?: string;
  expanded?: boolean;
}

/** Reads exactly one YAML 1.2 document. `expandText` sees every string value; keys are taken as written. */
export function readDocument(text: string, expandText: (text: string) => Expansion): Reading {
  const lines = new LineCounter();
  const position = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const unreadable = (offset: number, message: string): Reading => ({
    kind: 'unreadable',
    problems: [{ ...position(offset), path: '(file)', message, severity: 'error' }],
  });

  if (nestsTooDeep(text)) return unreadable(0, 'nest less deeply: no configuration needs that many levels');
  const documents = parseAllDocuments(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: false,
    version: '1.2',
  });
  const [document, second] = documents;
  if (document === undefined)
    return unreadable(0, 'write at least version, upstreams and routes: the file is empty');
  const faults = documents.flatMap((entry) => [...entry.errors, ...entry.warnings]);
  if (faults.length > 0) {
    const problems = firstOfEachKind(faults).map((fault) => {
      const spot = position(fault.pos[0]);
      const message = syntaxMend(fault.code, text.split('\n')[spot.line - 1] ?? '');
      return { ...spot, path: '(file)', message, severity: 'error' as const };
    });
    return { kind: 'unreadable', problems };
  }
  if (second !== undefined) {
    return unreadable(second.range[0], 'write one document only: remove everything from this --- on');
  }
  if (document.directives.yaml.version !== '1.2')
    return unreadable(0, 'remove the %YAML directive: the file is read as YAML 1.2');

  const walk = new Walk(position, expandText);
  const data = walk.value(document.contents, [], 0);
  if (walk.exhaustedAt !== undefined)
    return unreadable(
      walk.exhaustedAt,
      `use fewer aliases: they stand for more than ${MAX_NODES} values or ${MAX_DEPTH} levels`,
    );
  return { kind: 'read', document: walk.document(data), problems: walk.problems, failed: walk.failed };
}

/** Data that stands in no file, such as the command line. */
export function documentWithoutFile(data: unknown): Document {
  const nowhere = { line: 0, column: 0 };
  return {
    data,
    at: () => nowhere,
    atKey: () => nowhere,
    has: () => false,
    authored: () => undefined,
    isExpanded: () => false,
  };
}

/** One slip makes a parser stumble many times in the same way; the first is the one to mend. */
function firstOfEachKind(faults: readonly YAMLError[]): readonly YAMLError[] {
  return faults.filter((fault, index) => faults.findIndex(({ code }) => code === fault.code) === index);
}

class Walk {
  readonly problems: Problem[] = [];
  readonly failed: Path[] = [];
  /** Where the bounds were passed. */
  exhaustedAt: number | undefined;
  #nodes = 0;
  readonly #spots = new Map<string, Spot>();
  readonly #anchors = new Map<string, Node>();
  readonly #position: (offset: number) => Position;
  readonly #expandText: (text: string) => Expansion;

  constructor(position: (offset: number) => Position, expandText: (text: string) => Expansion) {
    this.#position = position;
    this.#expandText = expandText;
  }

  value(node: Node | null, path: Path, keyOffset: number): unknown {
    if (++this.#nodes > MAX_NODES || path.length > MAX_DEPTH) this.exhaustedAt ??= keyOffset;
    if (this.exhaustedAt !== undefined) return null;
    const spot: Spot = { key: keyOffset, value: node?.range?.[0] ?? keyOffset };
    this.#spots.set(JSON.stringify(path), spot);
    if (isAlias(node)) return this.#alias(node, path, keyOffset);
    if (node !== null && 'anchor' in node && typeof node.anchor === 'string')
      this.#anchors.set(node.anchor, node);
    if (node?.tag !== undefined && !CORE_TAGS.has(node.tag)) {
      this.#report(path, spot.value, SYNTAX_MENDS.TAG_RESOLVE_FAILED);
    }
    if (isMap<Node, Node | null>(node)) return this.#mapping(node.items, path);
    if (isSeq<Node>(node))
      return node.items.map((item, index) =>
        this.value(item, [...path, index], item.range?.[0] ?? keyOffset),
      );
    return isScalar(node) ? this.#scalar(node, path, spot) : null;
  }

  document(data: unknown): Document {
    const find = (path: Path) => this.#spots.get(JSON.stringify(path));
    const nearest = (path: Path): Position => {
      for (let length = path.length; length >= 0; length--) {
        const spot = find(path.slice(0, length));
        if (spot !== undefined) return this.#position(length === path.length ? spot.value : spot.key);
      }
      return this.#position(0);
    };
    return {
      data,
      at: nearest,
      atKey: (path) => this.#position(find(path)?.key ?? 0),
      has: (path) => find(path) !== undefined,
      authored: (path) => find(path)?.authored,
      isExpanded: (path) => find(path)?.expanded ?? false,
    };
  }

  #alias(alias: Alias, path: Path, keyOffset: number): unknown {
    const target = this.#anchors.get(alias.source);
    if (target !== undefined) return this.value(target, path, keyOffset);
    this.#report(path, alias.range?.[0] ?? keyOffset, SYNTAX_MENDS.BAD_ALIAS);
    return null;
  }

  #mapping(items: readonly { key: Node; value: Node | null }[], path: Path): unknown {
    const entries = new Map<string, unknown>();
    for (const { key, value } of items) {
      const offset = key.range?.[0] ?? 0;
      if (!isScalar(key) || key.value === null) {
        this.#report(path, offset, SYNTAX_MENDS.NON_STRING_KEY);
        continue;
      }
      const name = typeof key.value === 'string' ? key.value : (key.source ?? String(key.value));
      const refusal = refusedKey(name, entries);
      if (refusal === undefined) entries.set(name, this.value(value, [...path, name], offset));
      else this.#report([...path, name], offset, refusal);
    }
    return Object.fromEntries(entries);
  }

  #scalar(node: Scalar, path: Path, spot: Spot): unknown {
    if (typeof node.value !== 'string') return node.value;
    spot.authored = node.value;
    const expansion = this.#expandText(node.value);
    if (expansion.kind === 'text') {
      spot.expanded = expansion.expanded;
      return expansion.text;
    }
    this.failed.push(path);
    this.#report(path, spot.value, expansion.message);
    return node.value;
  }

  #report(path: Path, offset: number, message: string): void {
    this.problems.push({ ...this.#position(offset), path: formatPath(path), message, severity: 'error' });
  }
}

function refusedKey(name: string, known: ReadonlyMap<string, unknown>): string | undefined {
  if (known.has(name)) return `keep one: the key ${quote(name)} is written twice`;
  if (name === '__proto__') return 'remove it: unknown key "__proto__"';
  if (name === '<<') return 'write the keys out: merge keys (<<) are not part of YAML 1.2';
  return undefined;
}
