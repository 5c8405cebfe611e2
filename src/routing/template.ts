/** URI templates as upstreams list them, for one question: can this URI be an expansion of that template? */
import { absorbs } from './template-machine.ts';
import { type Part, parseTemplate } from './template-parse.ts';
import { emptyTree, plant, type Tree } from './template-tree.ts';
import { walk } from './template-walk.ts';

/** In UTF-16 code units. Templates that people write have a tenth of it; work and memory grow with it. */
export const TEMPLATE_LENGTH_MAX = 2_048;

/** Expressions of one template. Each can be open at every position of a URI, so this bounds the work for a character. */
export const TEMPLATE_EXPRESSION_COUNT_MAX = 64;

/** A compiled template. */
export interface Template {
  readonly text: string;
  /** The literal text before the first expression, as written; the whole text where there is no expression. */
  readonly literalPrefix: string;
  /** What the text consists of, for `TemplateIndex`. */
  readonly parts: readonly Part[];
  /**
   * True when the template can expand to exactly this URI, whatever its variables are bound to.
   * *Bounded by:* length of the template × length of the URI. *Never* throws, folds case, decodes or normalises.
   */
  matches(uri: string): boolean;
}

export type Compiled =
  | { readonly kind: 'template'; readonly template: Template }
  | { readonly kind: 'invalid'; readonly reason: string };

/**
 * Compiles the text of a URI template, levels 1 to 4.
 * Values may hold characters outside ASCII raw, as clients send them; what a literal holds besides URI characters
 * matches raw and percent-encoded. *Never* throws; a reason names no part of the text.
 * *Spec:* RFC 6570.
 */
export function compileTemplate(text: string): Compiled {
  if (text.length > TEMPLATE_LENGTH_MAX) return invalid(`longer than ${TEMPLATE_LENGTH_MAX} characters`);
  const parsed = parseTemplate(text);
  if (parsed.kind === 'invalid') return parsed;
  const { literalPrefix, parts } = parsed;
  const expressionCount = parts.filter(({ kind }) => kind === 'expression').length;
  if (expressionCount > TEMPLATE_EXPRESSION_COUNT_MAX) {
    return invalid(`more than ${TEMPLATE_EXPRESSION_COUNT_MAX} expressions`);
  }
  return { kind: 'template', template: new CompiledTemplate(text, literalPrefix, withoutAbsorbed(parts)) };
}

class CompiledTemplate implements Template {
  readonly text: string;
  readonly literalPrefix: string;
  readonly parts: readonly Part[];
  #tree: Tree | undefined;

  constructor(text: string, literalPrefix: string, parts: readonly Part[]) {
    this.text = text;
    this.literalPrefix = literalPrefix;
    this.parts = parts;
  }

  matches(uri: string): boolean {
    // Grown at first use: most templates are only ever asked together, through an index.
    this.#tree ??= treeOf(this);
    return walk(this.#tree, uri, Number.POSITIVE_INFINITY).rank !== undefined;
  }
}

/** False for a template that begins with an expression: it would claim the URIs of everybody, so it owns none. */
export function ownsByPrefix(template: Template): boolean {
  return template.literalPrefix !== '';
}

/** The steps that `template.matches(uri)` takes. */
export function matchSteps(template: Template, uri: string): number {
  return walk(treeOf(template), uri, Number.POSITIVE_INFINITY).stepCount;
}

function treeOf({ parts }: Template): Tree {
  const tree = emptyTree();
  plant(tree, parts, 0);
  return tree;
}

function withoutAbsorbed(parts: readonly Part[]): readonly Part[] {
  const kept: Part[] = [];
  for (const part of parts) {
    const before = kept.at(-1);
    const isAbsorbed = before?.kind === 'expression' && part.kind === 'expression' && absorbs(before, part);
    if (!isAbsorbed) kept.push(part);
  }
  return kept;
}

function invalid(reason: string): Compiled {
  return { kind: 'invalid', reason };
}
