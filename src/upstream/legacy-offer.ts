/** What of a filter a server of an older era can be asked for. *Never* I/O. */
import { filterOf, LIST_FLAGS, type ListenFilter } from '../protocol/listen-filter.ts';
import type { Hello } from './legacy-hello.ts';

/** Resources subscribed to at once. */
const MAX_URIS = 10_000;

/** As much of it as is listened for. */
export function bounded(filter: ListenFilter): ListenFilter {
  return filterOf((list) => filter[LIST_FLAGS[list]], filter.resourceSubscriptions.slice(0, MAX_URIS), []);
}

/** What of a filter the server says it tells. */
export function offeredBy({ capabilities }: Hello, wanted: ListenFilter): ListenFilter {
  const says = (kind: string, what: string): boolean => {
    const capability: unknown = JSON.parse(capabilities.get(kind) ?? 'null');
    return (
      typeof capability === 'object' &&
      capability !== null &&
      (capability as Record<string, unknown>)[what] === true
    );
  };
  return filterOf(
    (list) => wanted[LIST_FLAGS[list]] && says(list, 'listChanged'),
    says('resources', 'subscribe') ? wanted.resourceSubscriptions : [],
    [],
  );
}

/** Does the work for each, some at a time. */
export async function inTurn<T>(
  all: readonly T[],
  atOnce: number,
  work: (one: T) => Promise<void>,
): Promise<void> {
  const rest = [...all];
  const worker = async (): Promise<void> => {
    for (let one = rest.shift(); one !== undefined; one = rest.shift()) await work(one);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, all.length) }, worker));
}
