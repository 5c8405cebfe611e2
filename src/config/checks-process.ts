/** Where an upstream is: exactly one of `url`, `endpoints` and `command`, and the keys that go with each. */
import type { Path } from './problems.ts';
import type { Report } from './report.ts';
import { COMMAND_HINT } from './schema-process.ts';
import { type AuthoredUpstream, URL_HINT } from './schema-upstream.ts';

const WAYS = ['url', 'endpoints', 'command'] as const;

/** Keys that say something of a process only. */
const OF_A_PROCESS = ['args', 'env', 'cwd', 'shared'] as const;

/** Keys that say something of HTTP only, and what to do instead. */
const OF_HTTP: Readonly<Record<string, string>> = {
  auth: 'remove it: a command gets its credentials by env',
  forwardHeaders:
    'remove it: a command sees no headers; callers with credentials use it with shared: true only',
  connections: 'remove it: a command has one standard input, not connections',
};

/** Looks at how an upstream is reached. */
export function checkWay(name: string, { url, endpoints = [] }: AuthoredUpstream, report: Report): void {
  const at = (key: string): Path => ['upstreams', name, key];
  const has = (key: string): boolean => report.has(at(key));
  const [first, ...others] = WAYS.filter(has);
  for (const way of others) report.errorAtKey(at(way), `write ${first} or ${way}, not both`);
  if (first === undefined) {
    if (OF_A_PROCESS.some(has)) report.error(at('command'), `missing: ${COMMAND_HINT}`);
    // The URLs of the command line stand in no file.
    else if (url === undefined)
      report.error(at('url'), `missing: ${URL_HINT}, or the command that starts it`);
  }
  // With both, it is not known which of them is meant.
  if (others.length > 0) return;
  if (first === 'command') {
    for (const [key, mend] of Object.entries(OF_HTTP)) if (has(key)) report.errorAtKey(at(key), mend);
  } else if (first !== undefined) {
    for (const key of OF_A_PROCESS)
      if (has(key)) report.errorAtKey(at(key), `remove it: it belongs to a command, and here is ${first}`);
  }
  checkEndpoints(name, endpoints, report);
}

function checkEndpoints(name: string, endpoints: readonly URL[], report: Report): void {
  const known = new Set<string>();
  for (const [index, { href }] of endpoints.entries()) {
    if (known.has(href))
      report.error(['upstreams', name, 'endpoints', index], 'remove it: the same endpoint stands above');
    known.add(href);
  }
}
