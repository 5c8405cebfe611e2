/** The upstreams, a row each: rows stay, and what changes in them is changed. */
import type { State, UpstreamState } from './contract.ts';
import { foreign, h, mark, onChange, panel } from './dom.ts';
import { ago, count, hitRatio, latency, percent } from './format.ts';
import { purgeUpstream } from './purging.ts';
import { say } from './saying.ts';
import type { Part } from './vitals.ts';

const COLUMNS = [
  'Upstream',
  'State',
  'Revision',
  'Circuit',
  'p50',
  'p95',
  'Hits',
  'Changes',
  'Connections',
  'Last error',
];
const NUMBERS: ReadonlySet<string> = new Set(['p50', 'p95', 'Hits']);

interface Row {
  readonly element: HTMLTableRowElement;
  update(one: UpstreamState, at: number): void;
}

export function createUpstreamsPanel(): Part {
  const rows = new Map<string, Row>();
  const states = new Map<string, UpstreamState['state']>();
  const body = h('tbody');
  const heads = COLUMNS.map((name) =>
    h('th', { scope: 'col', ...(NUMBERS.has(name) && { class: 'number' }) }, name),
  );
  const table = h(
    'table',
    {},
    h('caption', { class: 'unseen' }, 'Upstreams: state, revision, latency and errors of each'),
    h('thead', {}, h('tr', {}, ...heads, h('td', {}, h('span', { class: 'unseen' }, 'Actions')))),
    body,
  );
  return {
    element: panel(
      'Upstreams',
      { class: 'panel upstreams' },
      h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Table of upstreams' }, table),
    ),
    update({ upstreams, at }: State) {
      for (const one of upstreams) {
        const row = rows.get(one.name) ?? createRow(one.name);
        rows.set(one.name, row);
        row.update(one, at);
        tell(states.get(one.name), one);
        states.set(one.name, one.state);
      }
      const wanted = upstreams.map(({ name }) => rows.get(name)?.element);
      if (wanted.some((row, index) => body.children[index] !== row) || body.children.length !== wanted.length)
        body.replaceChildren(...wanted.filter((row) => row !== undefined));
    },
  };
}

/** Said aloud: nobody stares at a table. */
function tell(before: UpstreamState['state'] | undefined, { name, state }: UpstreamState): void {
  if (before === undefined || before === state) return;
  say(`Upstream ${name} is ${STATES[state][1].toLowerCase()}.`);
}

function createRow(name: string): Row {
  const purge = h(
    'button',
    { type: 'button', class: 'quiet' },
    'Purge',
    h('span', { class: 'unseen' }, ` ${name}`),
  );
  purge.addEventListener('click', () => void purgeUpstream(name));
  const about = h('small', { class: 'about' });
  const cells = COLUMNS.slice(1).map((column) =>
    h('td', { 'data-label': column, ...(NUMBERS.has(column) && { class: 'number' }) }),
  );
  const element = h(
    'tr',
    { 'data-upstream': name },
    h('th', { scope: 'row' }, name, about),
    ...cells,
    h('td', { class: 'action' }, purge),
  );
  const fill = onChange((texts: readonly Cell[]) => {
    for (const [index, text] of texts.entries()) cells[index]?.replaceChildren(nodeOf(text));
  });
  const fillAbout = onChange((text: string) => about.replaceChildren(foreign(text)));
  return {
    element,
    update(one, at) {
      fillAbout(one.about);
      fill(cellsOf(one, at));
    },
  };
}

type Cell =
  | string
  | { readonly mark: Parameters<typeof mark>[0]; readonly word: string; readonly small?: string };

function nodeOf(cell: Cell): Node | string {
  if (typeof cell === 'string') return foreign(cell);
  const shown = mark(cell.mark, cell.word);
  return cell.small === undefined ? shown : h('span', {}, shown, h('small', {}, cell.small));
}

const STATES = {
  up: ['good', 'Up'],
  down: ['bad', 'Down'],
  unseen: ['none', 'Not seen'],
  refused: ['warn', 'Refused'],
} as const;

const LISTENS = {
  off: ['none', 'Off'],
  idle: ['none', 'Nothing to hear'],
  opening: ['warn', 'Opening'],
  open: ['good', 'Heard'],
  waiting: ['bad', 'Broken'],
  'not-offered': ['none', 'Not offered'],
  closed: ['none', 'Closed'],
} as const;

function cellsOf(one: UpstreamState, at: number): readonly Cell[] {
  const [stateMark, stateWord] = STATES[one.state];
  const [listenMark, listenWord] = LISTENS[one.listen];
  const { running, queued, connected } = one.connections;
  const { lastError } = one;
  return [
    { mark: stateMark, word: stateWord },
    one.era === '' ? '\u2013' : one.over === 'process' ? `${one.era}, a process` : one.era,
    one.circuit === 'open' ? { mark: 'bad', word: 'Open' } : 'Closed',
    one.latency === undefined ? '\u2013' : latency(one.latency.p50Ms),
    one.latency === undefined ? '\u2013' : latency(one.latency.p95Ms),
    percent(hitRatio(one.answered)),
    { mark: listenMark, word: listenWord },
    `${count(connected)} open, ${count(running)} busy${queued > 0 ? `, ${count(queued)} waiting` : ''}`,
    lastError === undefined
      ? '\u2013'
      : `${ERRORS[lastError.kind] ?? lastError.kind}, ${ago(at - lastError.at)}`,
  ];
}

const ERRORS: Readonly<Record<string, string>> = {
  connect: 'Not reachable',
  timeout: 'Timeout',
  reset: 'Broken off',
  http_4xx: 'HTTP 4xx',
  http_5xx: 'HTTP 5xx',
};
