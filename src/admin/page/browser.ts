/** The catalogue that clients see: what is listed, whose it is, and a way to what it holds. */
import { post } from './client.ts';
import { LIST_PATH, type ListAnswer, type Listed, type ListedItem, type State } from './contract.ts';
import { allowed } from './dialogs.ts';
import { foreign, h, onChange } from './dom.ts';
import { many } from './format.ts';
import { createItems } from './items.ts';
import { createReader } from './reader.ts';
import type { Part } from './vitals.ts';

const LISTS: readonly (readonly [Listed, string])[] = [
  ['resources', 'Resources'],
  ['templates', 'Templates'],
  ['tools', 'Tools'],
  ['prompts', 'Prompts'],
];

export function createBrowser(): Part {
  const route = h('select', { id: 'route' });
  const reader = createReader(() => route.value);
  const filter = h('input', { id: 'filter', type: 'search', autocomplete: 'off', spellcheck: 'false' });
  const status = h('p', { class: 'note', role: 'status' });
  const more = h('button', { type: 'button', class: 'main' }, 'Load more');
  const again = h('button', { type: 'button' }, 'Load again');
  const items = createItems(reader.open);
  let list: Listed = 'resources';
  let all: ListedItem[] = [];
  let cursor: string | undefined;
  let turn = 0;
  let isStarted = false;

  const tell = (text: string): void => status.replaceChildren(foreign(text));
  const say = (answer: ListAnswer | undefined): void => {
    const shown = items.show(all, list, filter.value);
    const counted =
      filter.value === '' ? many(all.length, 'item') : `${shown} of ${many(all.length, 'item')}`;
    const rest = cursor === undefined ? '' : ', and there are more';
    tell(`${counted}${rest}.${answer === undefined ? '' : ` ${describe(answer)}`}`);
    more.hidden = cursor === undefined;
  };
  const load = async (): Promise<void> => {
    const mine = ++turn;
    tell('Asking\u2026');
    more.disabled = true;
    const body = { route: route.value, list, ...(cursor !== undefined && { cursor }) };
    const got = await allowed(() => post<ListAnswer>(LIST_PATH, body));
    if (mine !== turn) return;
    more.disabled = false;
    if (got.kind !== 'ok') {
      const why = got.kind === 'refused' ? got.message : 'the gateway does not answer';
      return tell(`Not listed: ${why}.`);
    }
    all.push(...got.value.items);
    cursor = got.value.nextCursor;
    say(got.value);
  };
  const start = (): void => {
    all = [];
    cursor = undefined;
    items.show(all, list, '');
    void load();
  };
  const tabs = createTabs((next) => {
    list = next;
    start();
  });
  route.addEventListener('change', start);
  again.addEventListener('click', start);
  more.addEventListener('click', () => void load());
  filter.addEventListener('input', () => say(undefined));
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || element.hidden || isTyping(event.target)) return;
    event.preventDefault();
    filter.focus();
  });
  const element = h(
    'section',
    { class: 'browser', 'aria-labelledby': 't-catalogue' },
    h(
      'div',
      { class: 'panel catalogue' },
      h('h2', { id: 't-catalogue' }, 'Catalogue'),
      h(
        'div',
        { class: 'controls' },
        h('div', { class: 'field' }, h('label', { for: 'route' }, 'Route'), route),
        h('div', { class: 'field grow' }, h('label', { for: 'filter' }, 'Filter (press /)'), filter),
        again,
      ),
      tabs,
      status,
      items.element,
      more,
    ),
    reader.element,
  );
  more.hidden = true;
  const offer = onChange((paths: readonly string[]) => {
    const before = route.value;
    route.replaceChildren(...paths.map((path) => h('option', { value: path }, path)));
    if (paths.includes(before)) route.value = before;
    else if (isStarted) start();
  });
  const begin = (): void => {
    if (isStarted || element.hidden || route.value === '') return;
    isStarted = true;
    start();
  };
  new MutationObserver(begin).observe(element, { attributeFilter: ['hidden'] });
  return {
    element,
    update({ routes }: State) {
      offer(routes.map(({ path }) => path));
      begin();
    },
  };
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
}

function describe({ how, incomplete, trouble, scope }: ListAnswer): string {
  if (trouble !== undefined) return `The list cannot be had: ${trouble.message} (${trouble.code}).`;
  const missing = incomplete.length === 0 ? '' : ` Without ${incomplete.join(', ')}.`;
  return `${how.means}${scope === 'private' ? ' For anonymous callers only.' : ''}${missing}`;
}

/** One of several, by arrow keys: radio buttons that look like tabs. */
function createTabs(choose: (list: Listed) => void): HTMLElement {
  const options = LISTS.map(([value, label]) => {
    const input = h('input', { type: 'radio', name: 'list', value, id: `list-${value}` });
    input.checked = value === 'resources';
    input.addEventListener('change', () => choose(value));
    return h('span', {}, input, h('label', { for: `list-${value}` }, label));
  });
  return h('fieldset', { class: 'tabs' }, h('legend', { class: 'unseen' }, 'What is listed'), ...options);
}
