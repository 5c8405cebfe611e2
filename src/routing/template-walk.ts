/** One pass over a URI through a tree of templates: a set of places, moved by one atom at a time. */
import { type Atoms, atomsOf, CONTINUES, eitherOf } from './template-atoms.ts';
import type { Arc, State } from './template-machine.ts';
import type { Edge, Node, Span, Tree } from './template-tree.ts';

export interface Found {
  /** The lowest rank of the templates that match, undefined when none does. */
  readonly rank: number | undefined;
  /** The work that was done; a test asserts this where it cannot assert a clock. */
  readonly stepCount: number;
}

/**
 * Finds the lowest rank, of those below `below`, among the templates of a tree that match the URI.
 * *Bounded by:* `stepCountMax` at a time: whenever so many steps are used up, the higher half of the ranks that are
 * still in the race is given up, so that what an early upstream lists is not lost through a later one. When ranks
 * were given up and none of the others matches, nothing is found: *never* a later owner in the place of an earlier.
 */
export function walk(
  tree: Tree,
  uri: string,
  stepCountMax: number,
  below: number = Number.POSITIVE_INFINITY,
): Found {
  const atoms = atomsOf(uri);
  if (atoms === undefined) return { rank: undefined, stepCount: 0 };
  return new Walk(stepCountMax, below - 1).run(tree.root, atoms);
}

/** Positions of all walks are told apart by one count, so that no mark in a tree has to be wiped. */
let clock = 0;

const NOWHERE: State = { arcs: [], also: [], ends: false };

/** The places reached by what was read so far. Its rows are written over, not emptied: most URIs need a handful. */
class Frontier {
  readonly nodes: Node[] = [];
  readonly edges: Edge[] = [];
  readonly offsets: number[] = [];
  readonly spans: Span[] = [];
  readonly states: number[] = [];
  readonly used: number[] = [];
  readonly passed: number[] = [];
  nodeCount = 0;
  edgeCount = 0;
  threadCount = 0;

  clear(): void {
    this.nodeCount = 0;
    this.edgeCount = 0;
    this.threadCount = 0;
  }

  get isEmpty(): boolean {
    return this.nodeCount + this.edgeCount + this.threadCount === 0;
  }

  /** The least and the greatest of the lowest ranks at or behind these places. */
  ranks(): { least: number; most: number } {
    let least = Number.POSITIVE_INFINITY;
    let most = -1;
    const see = (lowest: number | undefined): void => {
      if (lowest === undefined) return;
      if (lowest < least) least = lowest;
      if (lowest > most) most = lowest;
    };
    for (let at = 0; at < this.nodeCount; at++) see(this.nodes[at]?.lowest);
    for (let at = 0; at < this.edgeCount; at++) see(this.edges[at]?.to.lowest);
    for (let at = 0; at < this.threadCount; at++) see(this.spans[at]?.to.lowest);
    return { least, most };
  }
}

class Walk {
  readonly #stepCountMax: number;
  #stepCount = 0;
  /** Higher ranks are not in the race. */
  #ceiling: number;
  #last = new Frontier();
  #next = new Frontier();

  constructor(stepCountMax: number, ceiling: number) {
    this.#stepCountMax = stepCountMax;
    this.#ceiling = ceiling;
  }

  run(root: Node, { codes, kinds }: Atoms): Found {
    clock++;
    this.#arrive(root);
    let allowance = this.#stepCountMax;
    for (let at = 0; at < codes.length && !this.#next.isEmpty; at++) {
      this.#advance(codes[at] ?? 0, kinds[at] ?? 0);
      if (this.#stepCount <= allowance) continue;
      allowance = this.#stepCount + this.#stepCountMax;
      this.#lowerCeiling();
    }
    return { rank: this.#lowestEnd(), stepCount: this.#stepCount };
  }

  #lowestEnd(): number | undefined {
    let lowest = Number.POSITIVE_INFINITY;
    for (let at = 0; at < this.#next.nodeCount; at++) {
      lowest = Math.min(lowest, this.#next.nodes[at]?.ends[0] ?? lowest);
    }
    return Number.isFinite(lowest) && lowest <= this.#ceiling ? lowest : undefined;
  }

  #lowerCeiling(): void {
    const { least, most } = this.#next.ranks();
    this.#ceiling = least < most ? Math.floor((least + most) / 2) : -1;
  }

  #advance(atom: number, kind: number): void {
    const from = this.#next;
    this.#next = this.#last;
    this.#last = from;
    this.#next.clear();
    clock++;
    this.#leaveNodes(from, atom);
    this.#continueEdges(from, atom);
    this.#continueSpans(from, atom, kind);
  }

  #leaveNodes({ nodes, nodeCount }: Frontier, atom: number): void {
    const either = eitherOf(atom);
    for (let at = 0; at < nodeCount; at++) {
      const edges = nodes[at]?.edges;
      if (edges === undefined) continue;
      this.#follow(edges.get(atom), 1);
      if (either !== 0) this.#follow(edges.get(either), 1);
    }
  }

  #continueEdges({ edges, offsets, edgeCount }: Frontier, atom: number): void {
    const either = eitherOf(atom);
    for (let at = 0; at < edgeCount; at++) {
      const edge = edges[at];
      const offset = offsets[at] ?? 0;
      const wanted = edge?.label.charCodeAt(offset);
      if (wanted === atom || wanted === either) this.#follow(edge, offset + 1);
    }
  }

  #continueSpans({ spans, states, used, passed, threadCount }: Frontier, atom: number, kind: number): void {
    for (let at = 0; at < threadCount; at++) {
      const span = spans[at];
      if (span === undefined || span.to.lowest > this.#ceiling) continue;
      const { arcs } = span.machine[states[at] ?? 0] ?? NOWHERE;
      this.#stepCount += arcs.length;
      for (const arc of arcs) {
        if (arc.atom !== atom && (arc.kinds & kind) === 0) continue;
        this.#pass(span, arc, kind, used[at] ?? 0, passed[at] ?? 0);
      }
    }
  }

  #follow(edge: Edge | undefined, offset: number): void {
    this.#stepCount++;
    if (edge === undefined || edge.to.lowest > this.#ceiling) return;
    if (offset === edge.label.length) {
      this.#arrive(edge.to);
      return;
    }
    const next = this.#next;
    next.edges[next.edgeCount] = edge;
    next.offsets[next.edgeCount++] = offset;
  }

  #arrive(node: Node): void {
    if (node.seenAt === clock || node.lowest > this.#ceiling) return;
    this.#stepCount++;
    node.seenAt = clock;
    this.#next.nodes[this.#next.nodeCount++] = node;
    if (node.spans === undefined) return;
    for (const span of node.spans.values()) this.#place(span, 0, 0, 0);
  }

  #pass(span: Span, arc: Arc, kind: number, used: number, passed: number): void {
    if ((used & arc.takes) !== 0) return;
    if (arc.limit === 0) {
      this.#place(span, arc.to, used | arc.takes, 0);
      return;
    }
    // The first byte of a value counts even in the middle of a character: no value begins there for free.
    const nowPassed = passed > 0 && (kind & CONTINUES) !== 0 ? passed : passed + 1;
    if (nowPassed <= arc.limit) this.#place(span, arc.to, used, nowPassed);
  }

  #place(span: Span, state: number, used: number, passed: number): void {
    this.#stepCount++;
    const next = this.#next;
    const isSeen = span.seenAt[state] === clock;
    if (isSeen && !this.#improves(span, state, used, passed)) return;
    const thread = isSeen ? (span.threads[state] ?? 0) : next.threadCount++;
    span.seenAt[state] = clock;
    span.threads[state] = thread;
    next.spans[thread] = span;
    next.states[thread] = state;
    next.used[thread] = used;
    next.passed[thread] = passed;
    const { also, ends } = span.machine[state] ?? NOWHERE;
    for (const other of also) this.#place(span, other, used, passed);
    if (ends) this.#arrive(span.to);
  }

  /**
   * Of two ways into one state at one position, the one that has used up less can go on like the other, and
   * further. Such ways are never at odds: names are used by the URI alone since the expression began, and the
   * later it began, the fewer there are.
   */
  #improves(span: Span, state: number, used: number, passed: number): boolean {
    const thread = span.threads[state] ?? 0;
    const usedBefore = this.#next.used[thread] ?? 0;
    if (used === usedBefore) return passed < (this.#next.passed[thread] ?? 0);
    return (used & usedBefore) === used;
  }
}
