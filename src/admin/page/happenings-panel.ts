/** What happened lately, and what was said to be over since the start. */
import type { CacheState, Happened, Happening, State } from './contract.ts';
import { h, onChange, panel } from './dom.ts';
import { clock, count } from './format.ts';
import type { Part } from './vitals.ts';

export function createHappeningsPanel(): Part {
  const list = h('ol', { class: 'happenings' });
  const box = h(
    'div',
    { class: 'scroll short', tabindex: '0', role: 'region', 'aria-label': 'Latest events' },
    list,
  );
  const show = onChange((happenings: readonly Happening[]) => {
    list.replaceChildren(...happenings.map(itemOf));
    if (happenings.length === 0) list.append(h('li', { class: 'empty' }, 'Nothing yet.'));
  });
  return {
    element: panel('Latest events', { class: 'panel happenings-panel' }, box),
    update: (state: State) => show(state.happenings),
  };
}

function itemOf({ at, count: times, what }: Happening): HTMLElement {
  return h(
    'li',
    {},
    h('time', { datetime: new Date(at).toISOString() }, clock(at)),
    h('span', { class: `what ${toneOf(what)}` }, ...wordsOf(what)),
    times > 1 ? h('span', { class: 'times' }, `\u00d7 ${count(times)}`) : undefined,
  );
}

function toneOf(what: Happened): string {
  if (what.kind === 'invalidated') return 'plain';
  const how = what.kind === 'configuration' ? what.result : what.state;
  return how === 'down' || how === 'open' || how === 'refused' ? 'bad' : 'good';
}

function wordsOf(what: Happened): readonly (Node | string)[] {
  switch (what.kind) {
    case 'upstream':
      return [h('b', {}, what.upstream), what.state === 'up' ? ' answers' : ' does not answer'];
    case 'circuit':
      return [
        h('b', {}, what.upstream),
        what.state === 'open' ? ' is left alone for a while' : ' is asked again',
      ];
    case 'redis':
      return [h('b', {}, 'Redis'), what.state === 'up' ? ' is connected' : ' is not connected'];
    case 'configuration':
      return [
        h('b', {}, 'Configuration'),
        what.result === 'applied' ? ' reloaded' : ' refused: the last good one stays; the log says why',
      ];
    case 'invalidated':
      return [
        SCOPES[what.scope] ?? what.scope,
        ' of ',
        h('b', {}, what.upstream),
        ` over: ${sourceOf(what.source)}`,
      ];
  }
}

const SCOPES: Readonly<Record<string, string>> = {
  uri: 'A resource',
  method: 'A list',
  key: 'An answer',
  upstream: 'Everything',
};

const SOURCES: Readonly<Record<string, string>> = {
  notification: 'the upstream said so',
  replica: 'another replica said so',
  admin: 'purged',
  resync: 'missed messages of replicas',
  reload: 'the configuration changed',
};

function sourceOf(source: string): string {
  return SOURCES[source] ?? source;
}

export function createInvalidationsPanel(): Part {
  const body = h('tbody');
  const table = h(
    'table',
    {},
    h('caption', { class: 'unseen' }, 'Invalidations since the start, by upstream and source'),
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        ...['Upstream', 'Source', 'What'].map((name) => h('th', { scope: 'col' }, name)),
        h('th', { scope: 'col', class: 'number' }, 'Times'),
      ),
    ),
    body,
  );
  const show = onChange((all: CacheState['invalidations']) => {
    const sorted = [...all].sort((one, other) => other.count - one.count);
    body.replaceChildren(
      ...sorted.map(({ upstream, source, scope, count: times }) =>
        h(
          'tr',
          {},
          ...[h('td', {}, upstream), h('td', {}, sourceOf(source)), h('td', {}, SCOPES[scope] ?? scope)],
          h('td', { class: 'number' }, count(times)),
        ),
      ),
    );
    if (all.length === 0)
      body.append(h('tr', {}, h('td', { class: 'empty', colspan: '4' }, 'None since the start.')));
  });
  return {
    element: panel(
      'Invalidations',
      { class: 'panel invalidations' },
      h(
        'div',
        { class: 'scroll short', tabindex: '0', role: 'region', 'aria-label': 'Table of invalidations' },
        table,
      ),
    ),
    update: ({ cache }: State) => show(cache.invalidations),
  };
}
