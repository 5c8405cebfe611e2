/** What a PromQL expression asks for: enough of its grammar to find names. Whether it is an expression, promtool says. */

/** One selector. */
export interface Selector {
  readonly metric: string;
  readonly matchers: readonly { readonly label: string; readonly values: readonly string[] }[];
}

export interface Asked {
  readonly selectors: readonly Selector[];
  /** Labels that are grouped by, matched on, or taken over. */
  readonly labels: readonly string[];
}

const TOKENS = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\[[^\]]*\]|[A-Za-z_:][\w:]*|\d[\w.]*|=~|!~|!=|\S/g;
const GROUPING = new Set(['by', 'without', 'on', 'ignoring', 'group_left', 'group_right']);
const WORDS = new Set(['and', 'or', 'unless', 'bool', 'offset', 'inf', 'nan']);

/** Reads an expression. Grafana's variables stand where PromQL has values. */
export function askedBy(expression: string): Asked {
  const tokens: readonly string[] = expression.match(TOKENS) ?? [];
  const selectors: Selector[] = [];
  const labels: string[] = [];
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at] as string;
    const next = tokens[at + 1];
    if (!/^[A-Za-z_:]/.test(token) || WORDS.has(token.toLowerCase())) continue;
    if (GROUPING.has(token)) {
      if (next !== '(') continue;
      const end = tokens.indexOf(')', at);
      labels.push(...tokens.slice(at + 2, end).filter((one) => one !== ','));
      at = end;
    } else if (next === '{') {
      const end = tokens.indexOf('}', at);
      selectors.push({ metric: token, matchers: matchersIn(tokens.slice(at + 2, end)) });
      at = end;
    } else if (next !== '(' && !GROUPING.has(next ?? '')) {
      selectors.push({ metric: token, matchers: [] });
    }
  }
  return { selectors, labels };
}

function matchersIn(tokens: readonly string[]): Selector['matchers'] {
  const matchers: { label: string; values: readonly string[] }[] = [];
  for (let at = 0; at < tokens.length; at += 4) {
    const [label = '', operator = '', quoted = '""'] = tokens.slice(at, at + 3);
    const value = quoted.slice(1, -1);
    matchers.push({ label, values: operator.includes('~') ? value.split('|') : [value] });
  }
  return matchers;
}
