/** An expander of URI templates, written from RFC 6570, section 3 and appendix A; it shares nothing with the matcher. */

export type Pair = readonly [key: string, value: string];
export type Value = string | readonly string[] | { readonly pairs: readonly Pair[] } | undefined;
export type Bindings = Readonly<Record<string, Value>>;

type Encode = (text: string) => string;
/** What becomes of a character that no URI may hold as it is. */
type SpellOut = (character: string) => string;

/** As the RFC says. */
const percentEncoded: SpellOut = (character) =>
  Array.from(
    new TextEncoder().encode(character),
    (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
  ).join('');

/** As clients do that pass IRIs: characters outside ASCII stay raw. */
export const rawBeyondAscii: SpellOut = (character) =>
  character > '\x7f' ? character : percentEncoded(character);

interface Row {
  readonly first: string;
  readonly separator: string;
  readonly encode: Encode;
  readonly encodeLiteral: Encode;
  readonly isNamed: boolean;
  readonly whenEmpty: string;
}

const EXPRESSION_OR_LITERAL = /\{([+#./;?&]?)([^}]*)\}|[^{]+/g;

export function expand(template: string, bindings: Bindings, spellOut: SpellOut = percentEncoded): string {
  return template.replace(EXPRESSION_OR_LITERAL, (text: string, operator?: string, variables?: string) => {
    const row = rowOf(operator ?? '', spellOut);
    if (variables === undefined) return row.encodeLiteral(text);
    const items = variables.split(',').map((variable) => expandVariable(variable, row, bindings));
    const defined = items.filter((item) => item !== undefined);
    return defined.length === 0 ? '' : row.first + defined.join(row.separator);
  });
}

function rowOf(operator: string, spellOut: SpellOut): Row {
  const encodeLiteral = encoder(/([A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})|./gsu, spellOut);
  const encode = '+#'.includes(operator || ' ')
    ? encodeLiteral
    : encoder(/([A-Za-z0-9\-._~])|./gsu, spellOut);
  const isNamed = ';?&'.includes(operator || ' ');
  const separators: Readonly<Record<string, string>> = { '.': '.', '/': '/', ';': ';', '?': '&', '&': '&' };
  return {
    first: operator === '+' ? '' : operator,
    separator: separators[operator] ?? ',',
    encode,
    encodeLiteral,
    isNamed,
    whenEmpty: operator === ';' ? '' : '=',
  };
}

function encoder(allowedOrAny: RegExp, spellOut: SpellOut): Encode {
  return (text) => text.replace(allowedOrAny, (whole, allowed) => allowed ?? spellOut(whole));
}

function expandVariable(variable: string, row: Row, bindings: Bindings): string | undefined {
  const [, name = '', modifier = ''] = /^(.*?)(\*|:\d+)?$/.exec(variable) ?? [];
  const value = bindings[name];
  if (value === undefined) return undefined;
  if (typeof value === 'string') return item(name, row.encode(prefix(value, modifier)), row);
  if ('pairs' in value) return expandPairs(name, value.pairs, modifier === '*', row);
  if (value.length === 0) return undefined;
  const members = value.map(row.encode);
  if (modifier !== '*') return item(name, members.join(','), row);
  return members.map((member) => item(name, member, row)).join(row.separator);
}

function expandPairs(
  name: string,
  pairs: readonly Pair[],
  isExploded: boolean,
  row: Row,
): string | undefined {
  if (pairs.length === 0) return undefined;
  if (!isExploded) return item(name, pairs.flat().map(row.encode).join(','), row);
  const exploded = pairs.map(([key, value]) => {
    if (row.isNamed) return item(row.encodeLiteral(key), row.encode(value), row);
    return `${row.encode(key)}=${row.encode(value)}`;
  });
  return exploded.join(row.separator);
}

function prefix(text: string, modifier: string): string {
  return modifier.startsWith(':')
    ? Array.from(text)
        .slice(0, Number(modifier.slice(1)))
        .join('')
    : text;
}

function item(name: string, text: string, row: Row): string {
  if (!row.isNamed) return text;
  return text === '' ? name + row.whenEmpty : `${name}=${text}`;
}
