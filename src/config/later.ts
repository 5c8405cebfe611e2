/** Keys that somebody may look for and that are none. Setting one is refused with the reason, *never* ignored. */
import type { Path } from './problems.ts';

interface LaterKey {
  /** `*` stands for a name or an index. */
  readonly path: readonly string[];
  readonly message: string;
}

const LATER: readonly LaterKey[] = [
  {
    path: ['reload'],
    message: 'there is nothing to set: the file is followed, and read again at SIGHUP; remove this key',
  },
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

/** What to say about such a key; undefined when the key is simply unknown. */
export function notYet(path: Path): string | undefined {
  return LATER.find(
    (key) =>
      key.path.length === path.length &&
      key.path.every((segment, index) => segment === '*' || segment === path[index]),
  )?.message;
}
