/** What the cache does: the last minutes as a chart, and everything since the start. */
import { createChart } from './chart.ts';
import type { CacheState, State } from './contract.ts';
import { fact, h, onChange, panel, svg } from './dom.ts';
import { bytes, count, hitRatio, percent, total } from './format.ts';
import type { Part } from './vitals.ts';

/** Ten minutes. */
const SLOTS = 121;

export function createCachePanel(): Part {
  const chart = createChart();
  const ratio = h('p', { class: 'ratio' });
  const facts = h('dl', { class: 'facts' });
  const element = panel(
    'Cache',
    { class: 'panel cache' },
    h('div', { class: 'recent' }, ratio, chart.element),
    h(
      'p',
      { class: 'legend' },
      ...KEYS.map(([kind, word]) =>
        h('span', {}, h('i', { class: `key ${kind}`, 'aria-hidden': 'true' }), word),
      ),
      h('span', { class: 'axis' }, 'requests to the cache, in steps of 5 s'),
    ),
    facts,
  );
  const showRatio = onChange((text: string) => {
    ratio.replaceChildren(h('b', {}, text), ' answered from the cache, last 10 minutes');
  });
  const showFacts = onChange((cache: Omit<CacheState, 'recent'>) => facts.replaceChildren(...factsOf(cache)));
  return {
    element,
    update({ cache }: State) {
      const { recent, ...rest } = cache;
      chart.update(recent.samples, SLOTS);
      showRatio(percent(hitRatio(total(recent.samples))));
      showFacts(rest);
    },
  };
}

const KEYS = [
  ['hit', 'hit'],
  ['stale', 'stale'],
  ['miss', 'miss'],
  ['bypass', 'bypassed'],
] as const;

function factsOf({
  entries,
  bytes: held,
  maxBytes,
  answered,
  stores,
  evictions,
}: Omit<CacheState, 'recent'>) {
  const share = maxBytes === 0 ? 0 : held / maxBytes;
  const { size = 0, expired = 0, invalidated = 0 } = evictions;
  const { ok = 0, too_large: tooLarge = 0, superseded = 0 } = stores;
  return [
    fact('Entries', count(entries)),
    fact('Memory', h('span', {}, `${bytes(held)} of ${bytes(maxBytes)} `, gauge(share))),
    fact('Hits', count(answered.hit)),
    fact('Misses', count(answered.miss)),
    fact('Stale', count(answered.stale)),
    fact('Bypassed', count(answered.bypass)),
    fact('Stored', withRest(ok, [tooLarge, 'too large'], [superseded, 'superseded'])),
    fact(
      'Evicted',
      withRest(
        size + expired + invalidated,
        [size, 'for room'],
        [expired, 'expired'],
        [invalidated, 'invalidated'],
      ),
    ),
  ];
}

function withRest(value: number, ...rest: readonly (readonly [number, string])[]): HTMLElement {
  const words = rest.filter(([one]) => one > 0).map(([one, word]) => `${count(one)} ${word}`);
  return h('span', {}, count(value), words.length === 0 ? undefined : h('small', {}, words.join(', ')));
}

/** How full: the number stands beside it. */
function gauge(share: number): Element {
  const width = Math.min(100, share * 100).toFixed(1);
  return svg(
    'svg',
    { class: 'gauge', viewBox: '0 0 100 6', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('rect', { class: 'all', width: '100', height: '6' }),
    svg('rect', { class: 'full', width, height: '6' }),
  );
}
