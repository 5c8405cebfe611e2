/** What is looked at first: does it take work, since when, and how much is under way. */
import type { State } from './contract.ts';
import { h, mark, onChange, setText } from './dom.ts';
import { bytes, count, duration } from './format.ts';

export interface Part {
  readonly element: HTMLElement;
  update(state: State): void;
  /** Nobody knows any more: what must not be taken for true is not said. */
  lose?(): void;
}

export function createVitals(): Part {
  const ready = h('dd', { 'aria-live': 'polite' });
  const figures = ['Uptime', 'Upstreams up', 'In flight', 'Streams open', 'Cached'].map((name) => {
    const value = h('dd');
    return { value, element: h('div', {}, h('dt', {}, name), value) };
  });
  const showReady = onChange(({ kind, failing }: { kind: keyof typeof READY; failing: string }) => {
    ready.replaceChildren(READY[kind]());
    if (failing !== '') ready.append(h('small', {}, failing));
  });
  const list = h(
    'dl',
    { class: 'vitals' },
    h('div', {}, h('dt', {}, 'Readiness'), ready),
    ...figures.map(({ element }) => element),
  );
  return {
    element: list,
    update(state) {
      const failing = state.checks.filter(({ holds }) => !holds).map(({ name }) => name);
      showReady({ kind: state.ready ? 'ready' : 'not-ready', failing: failing.join(', ') });
      const values = [
        duration(Math.max(1_000, state.at - state.startedAt)),
        `${state.upstreams.filter((one) => one.state === 'up').length} of ${state.upstreams.length}`,
        count(state.inFlight),
        count(state.streams.reduce((sum, { open }) => sum + open, 0)),
        bytes(state.cache.bytes),
      ];
      for (const [at, { value }] of figures.entries()) setText(value, values[at] ?? '');
    },
    lose: () => showReady({ kind: 'unknown', failing: '' }),
  };
}

const READY = {
  ready: () => mark('good', 'Ready'),
  'not-ready': () => mark('bad', 'Not ready'),
  unknown: () => mark('none', 'Not known'),
} as const;
