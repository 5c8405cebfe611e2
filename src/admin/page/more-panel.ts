/** The rest of an overview: Redis, and the streams that are open to clients. */
import type { Counts, RedisState, State } from './contract.ts';
import { fact, h, mark, onChange, panel, wide } from './dom.ts';
import { count } from './format.ts';
import type { Part } from './vitals.ts';

export function createRedisPanel(): Part {
  const facts = h('dl', { class: 'facts few' });
  const show = onChange((redis: RedisState | null) => {
    if (redis === null) facts.replaceChildren(fact('State', mark('none', 'Not configured: memory only')));
    else facts.replaceChildren(...factsOf(redis));
  });
  return {
    element: panel('Redis', { class: 'panel redis' }, facts),
    update: ({ redis }: State) => show(redis ?? null),
  };
}

function factsOf({ state, circuit, required, sealed, errors, messages, resyncs }: RedisState) {
  return [
    fact('State', STATES[state]()),
    fact('Circuit', circuit === 'open' ? mark('bad', 'Open: memory only') : mark('good', 'Closed')),
    fact('Required', required ? 'yes' : 'no'),
    fact('Private answers', sealed ? 'shared, sealed' : 'not shared: no secrets'),
    fact('Messages', `${count(messages.in ?? 0)} in, ${count(messages.out ?? 0)} out`),
    fact('Resyncs', sumOf(resyncs)),
    wide('Errors', Object.keys(errors).length === 0 ? 'none' : listOf(errors)),
  ];
}

const STATES = {
  connecting: () => mark('warn', 'Connecting'),
  up: () => mark('good', 'Connected'),
  down: () => mark('bad', 'Not connected'),
} as const;

function sumOf(counts: Counts): string {
  return count(Object.values(counts).reduce((sum, one) => sum + one, 0));
}

function listOf(counts: Counts): string {
  return Object.entries(counts)
    .map(([word, times]) => `${word}: ${count(times)}`)
    .join(', ');
}

export function createStreamsPanel(): Part {
  const facts = h('dl', { class: 'facts few' });
  const show = onChange((streams: State['streams']) => {
    facts.replaceChildren(
      ...streams.map(({ route, kind, open }) =>
        fact(`${route}, ${kind === 'listen' ? 'listening clients' : 'streamed answers'}`, count(open)),
      ),
    );
  });
  return {
    element: panel('Open streams', { class: 'panel streams' }, h('div', { class: 'inner' }, facts)),
    update: ({ streams }: State) => show(streams),
  };
}
