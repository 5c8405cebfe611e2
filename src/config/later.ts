/** Keys that the design names and that are due later. Setting one is refused with "not yet", never ignored. */
import type { Path } from './problems.ts';

interface LaterKey {
  /** `*` stands for a name or an index. */
  readonly path: readonly string[];
  readonly message: string;
}

const due = (path: string, what: string, part: 4 | 5): LaterKey => ({
  path: path.split('.'),
  message: `not yet: ${what} due with part ${part}; remove this key`,
});

const LATER: readonly LaterKey[] = [
  due('reload', 'reloading is', 5),
  {
    path: ['tracing'],
    message: 'not yet: there is no tracing; trace context passes through as it is; remove this key',
  },
  { path: ['listen', 'tls'], message: 'not yet: let a proxy in front end TLS; remove this key' },
  {
    path: ['upstreams', '*', 'tls'],
    message: 'not yet: TLS of upstreams is always verified against the system; remove this key',
  },
];

/** What to say about a key of a later part; undefined when the key is simply unknown. */
export function notYet(path: Path): string | undefined {
  return LATER.find(
    (key) =>
      key.path.length === path.length &&
      key.path.every((segment, index) => segment === '*' || segment === path[index]),
  )?.message;
}
