/** What was seen and what it means, for people and for machines. Pure. */
import type { Facts, HelloFacts, HintFacts, ListFacts, ReadFacts } from './facts.ts';
import type { Finding, Severity } from './findings.ts';
import { durationWords, sizeWords } from './words.ts';

/** How much a text is set off. */
export type Paint = (text: string, colour: 'red' | 'yellow' | 'green' | 'grey') => string;

/** The shape of the JSON report. It grows; what is there keeps its meaning while this number stands. */
const REPORT_VERSION = 1;
/** A line of the report. */
const WIDTH = 100;
/** Places of a finding that are named for people. */
const PLACES = 4;

/** The report for machines. */
export function jsonReport(facts: Facts, findings: readonly Finding[]): string {
  const report = { version: REPORT_VERSION, ...facts, findings, counts: countsOf(findings) };
  return `${JSON.stringify(report, null, 2)}\n`;
}

/** The report for people. */
export function textReport(facts: Facts, findings: readonly Finding[], paint: Paint): string {
  const { target, hello } = facts;
  const parts: string[][] = [[`${target.address}`, ...helloLines(hello)]];
  if (hello.kind === 'met') {
    parts.push(
      table(facts.lists.map(listRow), ['list', 'items', 'pages', 'size', 'per page', 'kept by the gateway']),
    );
    parts.push(table(facts.reads.map(readRow), ['read', 'size', 'time', 'kept by the gateway']));
    parts.push([...checkLines(facts, paint), ...listenLines(facts)]);
  }
  parts.push(...findings.map((one) => findingLines(one, paint)));
  parts.push([conclusion(findings)]);
  return `${parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

function helloLines(hello: HelloFacts): string[] {
  if (hello.kind === 'unmet') return [];
  const { serverInfo, revision, era, media, firstMs, medianMs, capabilities } = hello;
  const name = serverInfo === undefined ? 'a server' : `${serverInfo.name} ${serverInfo.version}`;
  const offers = Object.entries(capabilities).map(([key, promises]) =>
    promises.length === 0 ? key : `${key} (${promises.join(', ')})`,
  );
  const speaks = era === 'older' ? `${revision}, translated` : revision;
  const answers = media === undefined ? [] : [`answers as ${media === 'json' ? 'JSON' : 'events'}`];
  // Of an older server the rest is remembered, not asked.
  const then = era === 'older' ? '' : `, then ${durationWords(medianMs)}`;
  const paces = [`first answer ${durationWords(firstMs)}${then}`];
  const instructions =
    hello.instructionsChars > 0 ? [`instructions: ${hello.instructionsChars} characters`] : [];
  return [
    `${name}  MCP ${speaks}`,
    [...answers, ...paces, ...instructions].join(' · '),
    ...(offers.length === 0 ? ['offers nothing'] : wrapped(`offers ${offers.join(' · ')}`, '')),
  ];
}

function listRow(list: ListFacts): string[] {
  const name = list.method.replace(/\/list$/, '');
  if (list.kind === 'absent') return [name, 'none', '', '', '', ''];
  if (list.kind === 'failed') return [name, 'failed', '', '', '', ''];
  const { items, pages, bytes, medianMs, hints, end } = list;
  const more = end === 'end' ? '' : '+';
  return [
    name,
    `${items}${more}`,
    `${pages}${more}`,
    sizeWords(bytes),
    durationWords(medianMs),
    keptWords(hints),
  ];
}

function readRow(read: ReadFacts): string[] {
  switch (read.kind) {
    case 'read':
      return [read.uri, sizeWords(read.bytes), durationWords(read.ms), keptWords(read.hints)];
    case 'large':
      return [read.uri, `> ${sizeWords(read.aboveBytes)}`, '', 'no: too large'];
    case 'asks':
      return [read.uri, '', '', 'no: it asks first'];
    case 'failed':
      return [read.uri, '', '', `failed: ${read.trouble.words}`];
  }
}

/** Whether, for how long and for whom the gateway keeps an answer with these hints. */
export function keptWords({ ttl, scope, kept }: HintFacts): string {
  if (kept.ttlMs === 0) {
    if (ttl.kind === 'given') return ttl.ms === 0 ? 'no: ttlMs is 0' : 'no: ttl.max is 0';
    return ttl.kind === 'absent' ? 'no: without ttlMs' : 'no: ttlMs is wrong';
  }
  const whom = kept.scope === 'public' ? 'for everybody' : 'for each caller apart';
  const own = ttl.kind === 'absent' || scope === 'absent' ? ', by your configuration' : '';
  return `${durationWords(kept.ttlMs)}, ${whom}${own}`;
}

const CHECKS: Readonly<Record<Facts['checks'][number]['name'], string>> = {
  'method-header': 'Mcp-Method against the body',
  'name-header': 'Mcp-Name against the body',
  'unknown-version': 'unknown revision',
  'unknown-method': 'unknown method',
  'unknown-resource': 'unknown resource',
};

function checkLines({ checks }: Facts, paint: Paint): string[] {
  if (checks.length === 0) return [];
  const good = checks.filter(({ outcome }) => outcome === 'refused').map(({ name }) => CHECKS[name]);
  const bad = checks.filter(({ outcome }) => outcome !== 'refused').map(({ name }) => CHECKS[name]);
  return [
    ...(good.length === 0
      ? []
      : wrapped(`refuses as it must: ${good.join(', ')}`, '  ').map((line) => paint(line, 'green'))),
    ...(bad.length === 0
      ? []
      : wrapped(`does not: ${bad.join(', ')}`, '  ').map((line) => paint(line, 'red'))),
  ];
}

function listenLines({ listen, target }: Facts): string[] {
  if (listen === undefined) return target.subscribe ? [] : ['listen: not tried, subscribe is false'];
  switch (listen.kind) {
    case 'not-announced':
      return ['listen: nothing is announced'];
    case 'acknowledged':
      return wrapped(
        `listen: acknowledged in ${durationWords(listen.ms)} (${listen.honoured.join(', ')})`,
        '  ',
      );
    case 'refused':
    case 'failed':
      return [`listen: ${listen.kind} (${listen.words})`];
  }
}

const COLOURS = { violation: 'red', warning: 'yellow', note: 'grey' } as const;

function findingLines({ id, severity, where, says, gateway, remedy }: Finding, paint: Paint): string[] {
  const more = where.length > PLACES ? `, and ${where.length - PLACES} more` : '';
  const places = where.length === 0 ? '' : ` (${where.slice(0, PLACES).join(', ')}${more})`;
  const [first = '', ...rest] = wrapped(`${severity} ${id}: ${says}${places}`, '  ');
  return [
    paint(first, COLOURS[severity]),
    ...rest,
    ...wrapped(`  gateway: ${gateway}`, '    '),
    ...(remedy.startsWith('nothing') ? [] : wrapped(`  to do: ${remedy}`, '    ')),
  ];
}

/** How many of each. */
export function countsOf(findings: readonly Finding[]): Readonly<Record<`${Severity}s`, number>> {
  const count = (severity: Severity): number => findings.filter((one) => one.severity === severity).length;
  return { violations: count('violation'), warnings: count('warning'), notes: count('note') };
}

function conclusion(findings: readonly Finding[]): string {
  const counts = Object.entries(countsOf(findings)).map(
    ([name, count]) => `${count} ${count === 1 ? name.slice(0, -1) : name}`,
  );
  return `${counts.join(', ')}. No tool was called, no prompt was got, nothing was changed.`;
}

/** Rows in columns as wide as they must be; the last one may go on. */
function table(rows: readonly (readonly string[])[], heads: readonly string[]): string[] {
  if (rows.length === 0) return [];
  const all = [heads, ...rows].map((row) => row.map((cell, column) => (column === 0 ? cut(cell) : cell)));
  const widths = heads.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all.map((row) =>
    row
      .map((cell, column) => {
        if (column === heads.length - 1) return cell;
        return column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0);
      })
      .join('  ')
      .trimEnd(),
  );
}

const FIRST_CELL = 44;

function cut(text: string): string {
  return text.length > FIRST_CELL ? `${text.slice(0, FIRST_CELL - 1)}…` : text;
}

/** Lines no longer than a terminal is wide, broken between words. */
function wrapped(text: string, indent: string): string[] {
  const lines: string[] = [];
  let line = '';
  const [lead = ''] = /^ */.exec(text) ?? [];
  for (const word of text.trim().split(' ')) {
    const next = line === '' ? `${lines.length === 0 ? lead : indent}${word}` : `${line} ${word}`;
    if (line !== '' && next.length > WIDTH) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line = next;
  }
  return [...lines, line];
}
