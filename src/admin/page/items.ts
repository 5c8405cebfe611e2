/** The rows of a list. Up, down, Home and End walk through them; Enter opens one. */
import type { Listed, ListedItem } from './contract.ts';
import { foreign, h } from './dom.ts';
import { bytes, count } from './format.ts';

/** Rows that are drawn; a filter finds the others. */
const MAX_ROWS = 2_000;

export interface Items {
  readonly element: HTMLElement;
  /** @returns how many fit the filter. */
  show(items: readonly ListedItem[], list: Listed, filter: string): number;
}

export function createItems(open: (item: ListedItem, list: Listed) => void): Items {
  const body = h('tbody');
  const idHead = h('th', { scope: 'col' }, 'URI');
  const templateHead = h('th', { scope: 'col' }, 'Template');
  const head = h('tr', {}, idHead, h('th', { scope: 'col' }, 'Owner'), templateHead);
  const table = h(
    'table',
    { class: 'items' },
    h('caption', { class: 'unseen' }, 'What is listed, whose it is, and the template it fits'),
    h('thead', {}, head),
    body,
  );
  const scroll = { class: 'scroll tall', tabindex: '0', role: 'region', 'aria-label': 'What is listed' };
  const element = h('div', scroll, table);
  body.addEventListener('keydown', (event) => {
    const buttons = [...body.querySelectorAll('button')];
    const next = nextOf(event.key, buttons.indexOf(event.target as HTMLButtonElement), buttons.length);
    if (next === undefined) return;
    event.preventDefault();
    buttons[next]?.focus();
  });
  body.addEventListener('focusin', (event) => {
    for (const button of body.querySelectorAll('button[tabindex="0"]')) button.setAttribute('tabindex', '-1');
    (event.target as HTMLElement).setAttribute('tabindex', '0');
  });
  return {
    element,
    show(items, list, filter) {
      idHead.textContent = list === 'resources' ? 'URI' : list === 'templates' ? 'Template' : 'Name';
      templateHead.textContent = list === 'resources' ? 'Template' : 'Description';
      const found = items.filter((item) => fits(item, filter.toLowerCase()));
      body.replaceChildren(...found.slice(0, MAX_ROWS).map((item) => rowOf(item, list, open)));
      body.querySelector('button')?.setAttribute('tabindex', '0');
      if (items.length > 0 && found.length === 0) body.append(note('Nothing fits the filter.'));
      const left = found.length - MAX_ROWS;
      if (left > 0) body.append(note(`${count(left)} more are not shown: filter for them.`));
      return found.length;
    },
  };
}

function note(text: string): HTMLElement {
  return h('tr', {}, h('td', { class: 'empty', colspan: '3' }, text));
}

function nextOf(key: string, at: number, length: number): number | undefined {
  switch (key) {
    case 'ArrowDown':
      return Math.min(length - 1, at + 1);
    case 'ArrowUp':
      return Math.max(0, at - 1);
    case 'Home':
      return 0;
    case 'End':
      return length - 1;
    default:
      return undefined;
  }
}

function fits({ id, name, title, description, owner, mimeType }: ListedItem, filter: string): boolean {
  return [id, name, title, description, owner, mimeType].some((text) => text?.toLowerCase().includes(filter));
}

function rowOf(item: ListedItem, list: Listed, open: (item: ListedItem, list: Listed) => void): HTMLElement {
  const { id, title, name, owner, template, description, mimeType, size } = item;
  const isOpenable = list === 'resources' || list === 'templates';
  const shown = foreign(item.isCut ? `${id}\u2026` : id);
  const button = isOpenable
    ? h('button', { type: 'button', class: 'link', tabindex: '-1' }, shown)
    : undefined;
  button?.addEventListener('click', () => open(item, list));
  const label = title ?? name;
  const details = [mimeType, size === undefined ? undefined : bytes(size)].filter((one) => one !== undefined);
  return h(
    'tr',
    {},
    h(
      'th',
      { scope: 'row' },
      button ?? shown,
      label === undefined ? undefined : h('small', {}, foreign([label, ...details].join(' \u00b7 '))),
    ),
    h('td', { class: 'owner' }, owner ?? '\u2013'),
    h(
      'td',
      {},
      list === 'resources' ? h('code', {}, foreign(template ?? '\u2013')) : foreign(description ?? '\u2013'),
    ),
  );
}
