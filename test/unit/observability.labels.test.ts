/** The closed sets of label values hold what the gateway can say: a status that is missing would count as `other`. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ERROR_TYPES, HTTP_STATUSES } from '../../src/observability/labels.ts';
import { statusOf } from '../../src/protocol/errors.ts';

const SRC = join(process.cwd(), 'src');
/** Rooms that decide what a client is answered with; `upstream` names the statuses that others say. */
const ANSWERING = ['protocol', 'auth', 'cache', 'aggregate', 'subscriptions', 'pipeline', 'edge'];
/** How a status is written where it is said, or compared with where one is passed on. */
const SAID: readonly RegExp[] = [
  /\bstatus: (\d{3})\b/g,
  /\bstatus === (\d{3})\b/g,
  /\.code\((?:ready \? )?(\d{3})\b/g,
  /\.code\(ready \? \d{3} : (\d{3})\b/g,
  /\bbegin(?:Stream)?\((\d{3})\b/g,
  /: \[(\d{3}), '/g,
  /_REQUEST = (\d{3});/g,
];

/** The sources of these rooms, as path → text. */
function sources(): ReadonlyMap<string, string> {
  const paths = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.endsWith('.ts') && ANSWERING.includes(path.split(/[/\\.]/)[0] ?? ''),
  );
  return new Map(paths.map((path) => [path, readFileSync(join(SRC, path), 'utf8')]));
}

test('R45: every status that a client can be answered with has a label of its own', () => {
  const said = new Map<number, string>();
  for (const [path, text] of sources()) {
    for (const pattern of SAID) {
      for (const [, status] of text.matchAll(pattern)) said.set(Number(status), path);
    }
  }
  for (const type of ERROR_TYPES)
    if (typeof type === 'number') said.set(statusOf(type), 'protocol/errors.ts');
  // One of each way of writing it: a pattern that finds nothing any more would prove nothing.
  for (const status of [505, 401, 204, 503, 202, 502, 499, 200]) assert.ok(said.has(status), `${status}`);
  const missing = [...said].filter(([status]) => !HTTP_STATUSES.includes(status));
  assert.deepEqual(missing, []);
});
