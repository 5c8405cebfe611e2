/** The grammar of RFC 6570: the text of a template → its literals and expressions, or why it is none. */
import { labelOf } from './template-atoms.ts';

/** `''` is simple expansion. *Spec:* RFC 6570, section 2.2. */
export type Operator = '' | '+' | '#' | '.' | '/' | ';' | '?' | '&';

/** One variable of an expression with its modifier; `limit` is in characters. *Spec:* RFC 6570, section 2.4. */
export type Variable =
  | { readonly kind: 'whole'; readonly name: string }
  | { readonly kind: 'prefix'; readonly name: string; readonly limit: number }
  | { readonly kind: 'exploded'; readonly name: string };

export interface Expression {
  readonly kind: 'expression';
  readonly operator: Operator;
  readonly variables: readonly Variable[];
}

/** `label` is the literal in atoms, see `labelOf`. */
export type Part = { readonly kind: 'literal'; readonly label: string } | Expression;

export type Parsed =
  | { readonly kind: 'parts'; readonly literalPrefix: string; readonly parts: readonly Part[] }
  | { readonly kind: 'invalid'; readonly reason: string };

const OPERATORS: ReadonlySet<string> = new Set(['+', '#', '.', '/', ';', '?', '&']);
const RESERVED_OPERATORS: ReadonlySet<string> = new Set(['=', ',', '!', '@', '|']);
const NAME = /^(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*$/;
const LIMIT = /^[1-9][0-9]{0,3}$/;

/**
 * Reads a template. A literal may hold any character but `{`, `}`, controls and a `%` that begins no triplet:
 * more than the grammar, which knows no blank and no quotes there, but not more than section 3.1 can expand.
 * *Never* throws.
 */
export function parseTemplate(text: string): Parsed {
  const parts: Part[] = [];
  let literalPrefix: string | undefined;
  for (let at = 0; at < text.length; ) {
    const open = text.indexOf('{', at);
    const literal = text.slice(at, open < 0 ? text.length : open);
    literalPrefix ??= literal;
    if (literal !== '') {
      const part = parseLiteral(literal);
      if (part.kind === 'invalid') return part;
      parts.push(part);
    }
    if (open < 0) break;
    const close = text.indexOf('}', open);
    if (close < 0) return invalid('an expression is not closed');
    const part = parseExpression(text.slice(open + 1, close));
    if (part.kind === 'invalid') return part;
    parts.push(part);
    at = close + 1;
  }
  return { kind: 'parts', literalPrefix: literalPrefix ?? '', parts };
}

type Invalid = { readonly kind: 'invalid'; readonly reason: string };

function invalid(reason: string): Invalid {
  return { kind: 'invalid', reason };
}

function parseLiteral(literal: string): Part | Invalid {
  if (literal.includes('}')) return invalid('a "}" closes no expression');
  const label = labelOf(literal);
  if (label === undefined)
    return invalid('a literal holds a control character or a "%" that begins no triplet');
  return { kind: 'literal', label };
}

function parseExpression(inside: string): Expression | Invalid {
  const first = inside.charAt(0);
  if (RESERVED_OPERATORS.has(first)) return invalid(`the operator "${first}" is reserved`);
  const operator = isOperator(first) ? first : '';
  const variables: Variable[] = [];
  for (const specification of inside.slice(operator.length).split(',')) {
    const variable = parseVariable(specification);
    if (variable.kind === 'invalid') return variable;
    variables.push(variable);
  }
  return { kind: 'expression', operator, variables };
}

function isOperator(character: string): character is Operator {
  return OPERATORS.has(character);
}

function parseVariable(specification: string): Variable | Invalid {
  const exploded = specification.endsWith('*');
  const colon = specification.indexOf(':');
  const nameEnd = colon >= 0 ? colon : specification.length - (exploded ? 1 : 0);
  const name = specification.slice(0, nameEnd);
  if (name === '') return invalid('an expression has a variable without a name');
  if (!NAME.test(name)) return invalid('a variable name holds a character that names cannot have');
  if (colon < 0) return { kind: exploded ? 'exploded' : 'whole', name };
  const digits = specification.slice(colon + 1);
  if (!LIMIT.test(digits)) return invalid('a prefix length is not a number from 1 to 9999');
  return { kind: 'prefix', name, limit: Number(digits) };
}
