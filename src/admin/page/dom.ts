/** Elements, made without a word of markup: every text, whoever wrote it, becomes a text node. */
import { pieces } from './text.ts';

type Child = Node | string | undefined;
type Attributes = Readonly<Record<string, string | undefined>>;

const SVG = 'http://www.w3.org/2000/svg';

/** An element. `class` and the like as attributes; undefined ones are left out. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  return furnish(element, attributes, children);
}

export function svg<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[Tag] {
  return furnish(document.createElementNS(SVG, tag) as SVGElementTagNameMap[Tag], attributes, children);
}

function furnish<E extends Element>(element: E, attributes: Attributes, children: readonly Child[]): E {
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

/** Text that somebody else wrote: on its own as far as its direction goes, and nothing in it unseen. */
export function foreign(text: string, lines: 'one-line' | 'lines' = 'one-line'): HTMLElement {
  const nodes = pieces(text, lines).map((piece) =>
    piece.kind === 'plain'
      ? piece.text
      : h('span', { class: 'odd', title: 'not shown as it is' }, piece.text),
  );
  return h('bdi', {}, ...nodes);
}

/** Changes a text only where it differs: a selection in it then survives. */
export function setText(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

/** Does something each time the value is another than before. */
export function onChange<T>(act: (value: T) => void): (value: T) => void {
  let before: string | undefined;
  return (value) => {
    const now = JSON.stringify(value);
    if (now === before) return;
    before = now;
    act(value);
  };
}

/** A figure and what it is of, for a `dl`. */
export function fact(name: string, value: Node | string): HTMLDivElement {
  return h('div', {}, h('dt', {}, name), h('dd', {}, value));
}

/** The same on a line of its own. */
export function wide(name: string, value: Node | string): HTMLDivElement {
  const element = fact(name, value);
  element.className = 'wide';
  return element;
}

/** A part of a page with a heading. */
export function panel(title: string, attributes: Attributes, ...children: readonly Child[]): HTMLElement {
  const id = `t-${title.toLowerCase().replaceAll(/[^a-z]+/g, '-')}`;
  return h('section', { 'aria-labelledby': id, ...attributes }, h('h2', { id }, title), ...children);
}

/** A state, by shape and word; colour comes on top. */
export function mark(kind: 'good' | 'bad' | 'warn' | 'none', word: string): HTMLElement {
  return h('span', { class: `mark ${kind}` }, h('i', { 'aria-hidden': 'true' }, SHAPES[kind]), word);
}

const SHAPES = { good: '\u25cf', bad: '\u2715', warn: '\u25b2', none: '\u25cb' } as const;
