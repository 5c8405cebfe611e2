/**
 * Many templates as one radix tree of literals and expressions. What begins alike is kept, and later walked, once:
 * ten thousand templates with one literal prefix cost what those few cost that still fit.
 */
import { type Machine, machineOf, signatureOf } from './template-machine.ts';
import type { Expression, Part } from './template-parse.ts';

export interface Tree {
  readonly root: Node;
  /** By signature: one machine for all expressions that are alike. */
  readonly machines: Map<string, Machine>;
}

/** A place between two parts. */
export interface Node {
  /** No rank that ended here or below it was ever lower; withdrawn ranks still count. */
  lowest: number;
  /** The ranks of the texts that end here, ascending, each as often as it has texts. */
  readonly ends: number[];
  /** By the first atom of the label. */
  edges: Map<number, Edge> | undefined;
  /** By signature. */
  spans: Map<string, Span> | undefined;
  /** The position, on the clock of the walks, that last reached this node. */
  seenAt: number;
}

/** A literal between two nodes, in atoms. */
export interface Edge {
  label: string;
  to: Node;
}

/** An expression between two nodes. */
export interface Span {
  readonly machine: Machine;
  readonly to: Node;
  /** Of each state of the machine: the position that last reached it, and the thread that has stood in it since. */
  readonly seenAt: number[];
  readonly threads: number[];
}

export function emptyTree(): Tree {
  return { root: emptyNode(), machines: new Map() };
}

/** Adds a template to a tree and returns the node where it ends. */
export function plant(tree: Tree, parts: readonly Part[], rank: number): Node {
  let node = tree.root;
  node.lowest = Math.min(node.lowest, rank);
  for (const part of parts) {
    node = part.kind === 'literal' ? growEdges(node, part.label, rank) : growSpan(tree, node, part, rank);
  }
  const place = node.ends.findIndex((other) => other > rank);
  node.ends.splice(place < 0 ? node.ends.length : place, 0, rank);
  return node;
}

/** Takes one text of this rank from the node where it ends; the way there stays. */
export function uproot(end: Node, rank: number): void {
  const place = end.ends.indexOf(rank);
  if (place >= 0) end.ends.splice(place, 1);
}

function emptyNode(): Node {
  return { lowest: Number.POSITIVE_INFINITY, ends: [], edges: undefined, spans: undefined, seenAt: -1 };
}

function growSpan(tree: Tree, node: Node, expression: Expression, rank: number): Node {
  const signature = signatureOf(expression);
  node.spans ??= new Map();
  let span = node.spans.get(signature);
  if (span === undefined) {
    const machine = tree.machines.get(signature) ?? machineOf(expression);
    tree.machines.set(signature, machine);
    span = { machine, to: emptyNode(), seenAt: machine.map(() => -1), threads: machine.map(() => 0) };
    node.spans.set(signature, span);
  }
  span.to.lowest = Math.min(span.to.lowest, rank);
  return span.to;
}

function growEdges(from: Node, label: string, rank: number): Node {
  let node = from;
  for (let rest = label; rest !== ''; ) {
    const first = rest.charCodeAt(0);
    node.edges ??= new Map();
    let edge = node.edges.get(first);
    if (edge === undefined) {
      edge = { label: rest, to: emptyNode() };
      node.edges.set(first, edge);
    }
    const shared = sharedLength(edge.label, rest);
    if (shared < edge.label.length) split(edge, shared);
    node = edge.to;
    node.lowest = Math.min(node.lowest, rank);
    rest = rest.slice(shared);
  }
  return node;
}

function split(edge: Edge, at: number): void {
  const middle = emptyNode();
  const rest = edge.label.slice(at);
  middle.lowest = edge.to.lowest;
  middle.edges = new Map([[rest.charCodeAt(0), { label: rest, to: edge.to }]]);
  edge.label = edge.label.slice(0, at);
  edge.to = middle;
}

function sharedLength(left: string, right: string): number {
  const end = Math.min(left.length, right.length);
  let length = 0;
  while (length < end && left.charCodeAt(length) === right.charCodeAt(length)) length++;
  return length;
}
