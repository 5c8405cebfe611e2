/** The page: what stands where, which view is shown, and what is told when the gateway does not answer. */
import { createBrowser } from './browser.ts';
import { createCachePanel } from './cache-panel.ts';
import { createConfigView } from './config-view.ts';
import type { State } from './contract.ts';
import { h, mark, onChange, setText } from './dom.ts';
import { clock } from './format.ts';
import { createHappeningsPanel, createInvalidationsPanel } from './happenings-panel.ts';
import { watch } from './live.ts';
import { createRedisPanel, createStreamsPanel } from './more-panel.ts';
import { say, sayingLine } from './saying.ts';
import { createUpstreamsPanel } from './upstreams-panel.ts';
import { createVitals, type Part } from './vitals.ts';

const overview: readonly Part[] = [
  createVitals(),
  createCachePanel(),
  createUpstreamsPanel(),
  createHappeningsPanel(),
  createInvalidationsPanel(),
  createRedisPanel(),
  createStreamsPanel(),
];
const [vitals, ...panels] = overview.map(({ element }) => element);
const browser = createBrowser();
const config = createConfigView();
const all: readonly (readonly [id: string, title: string, element: HTMLElement])[] = [
  ['overview', 'Overview', h('div', {}, vitals, h('div', { class: 'panels' }, ...panels))],
  ['resources', 'Resources', browser.element],
  ['configuration', 'Configuration', config.element],
];

const version = h('small');
const live = h('p', { class: 'live' }, 'Asking\u2026');
const lost = h('p', { class: 'lost', role: 'alert' });
const links = all.map(([id, title]) => h('a', { href: `#${id}` }, title));
const main = h('main', { id: 'main', tabindex: '-1' }, lost, ...all.map(([, , element]) => element));

function showView(): void {
  const wanted = location.hash.slice(1);
  const at = Math.max(
    0,
    all.findIndex(([id]) => id === wanted),
  );
  for (const [index, [, title, element]] of all.entries()) {
    element.hidden = index !== at;
    if (index !== at) links[index]?.removeAttribute('aria-current');
    else {
      links[index]?.setAttribute('aria-current', 'page');
      document.title = `${title} \u00b7 Headgate`;
    }
  }
}

let missingSince: number | undefined;

function seen(state: State): void {
  setText(version, state.version);
  if (missingSince !== undefined) say('The gateway answers again.');
  missingSince = undefined;
  setText(lost, '');
  document.body.classList.remove('away');
  setLive(true);
  for (const part of [...overview, browser, config]) part.update(state);
}

function gone(): void {
  missingSince ??= Date.now();
  setText(
    lost,
    `The gateway does not answer since ${clock(missingSince)}. What stands here is from before; it is asked on.`,
  );
  document.body.classList.add('away');
  for (const { lose } of overview) lose?.();
  setLive(false);
}

const setLive = onChange((isLive: boolean) =>
  live.replaceChildren(isLive ? mark('good', 'Live') : mark('bad', 'Not answering')),
);

document
  .getElementById('app')
  ?.replaceChildren(
    h('a', { class: 'skip', href: '#main' }, 'To the content'),
    h('header', {}, h('h1', {}, 'Headgate', version), h('nav', { 'aria-label': 'Views' }, ...links), live),
    main,
    h('footer', {}, sayingLine()),
  );
document.querySelector('.skip')?.addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener('hashchange', showView);
showView();
watch({ seen, lost: gone, locked: () => setText(live, 'Locked') });
