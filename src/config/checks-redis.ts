/** What no single value under `cache.redis` shows. */
import type { Draft } from './draft.ts';
import type { Path } from './problems.ts';
import type { Report } from './report.ts';
import { REDIS_URL_HINT } from './schema-redis.ts';
import { formatDuration } from './units.ts';

const REDIS: Path = ['cache', 'redis'];
const WAYS = ['url', 'sentinel', 'cluster'] as const;

/** Looks at the shared cache and at what goes with it. */
export function checkRedis(draft: Draft, report: Report): void {
  if (!report.has(REDIS)) return;
  checkWay(report);
  checkUsers(report);
  const { redis } = draft;
  if (redis === undefined) return;
  checkTimeouts(redis.timeouts, report);
  checkEntry(draft, redis.maxEntry, report);
  if (draft.secrets?.length === 0) {
    report.warn(
      REDIS,
      `without secrets private answers are not written to Redis: each replica keeps its own in memory; write secrets: ["\${file:/run/secrets/headgate}"], the same on all replicas, to share them`,
    );
  }
}

function checkWay(report: Report): void {
  const [first, ...others] = WAYS.filter((way) => report.has([...REDIS, way]));
  if (first === undefined) report.error([...REDIS, 'url'], `missing: ${REDIS_URL_HINT}`);
  for (const way of others)
    report.errorAtKey([...REDIS, way], `write one of ${WAYS.join(', ')}: ${first} is there too`);
}

/** Redis has no user that a name alone lets in, and a client that was given one would log in as nobody. */
function checkUsers(report: Report): void {
  for (const way of ['sentinel', 'cluster']) {
    const path = [...REDIS, way, 'username'];
    if (report.has(path) && !report.has([...REDIS, way, 'password']))
      report.error(path, 'write the password too: a user name alone lets nobody in');
  }
}

function checkTimeouts(
  { command, connect }: { readonly command: number; readonly connect: number },
  report: Report,
): void {
  if (command <= connect) return;
  const path = [...REDIS, 'timeouts', 'command'];
  if (report.has(path)) report.error(path, 'write no more than timeouts.connect');
  else
    report.error(
      [...REDIS, 'timeouts', 'connect'],
      `write no less than timeouts.command (${formatDuration(command)})`,
    );
}

function checkEntry({ memory }: Draft, maxEntry: number, report: Report): void {
  const path = [...REDIS, 'maxEntry'];
  if (memory === undefined || !report.has(path)) return;
  if (maxEntry > Math.min(memory.maxEntry, memory.size))
    report.error(path, 'write no more than cache.memory.maxEntry: what is larger is not held at all');
}
