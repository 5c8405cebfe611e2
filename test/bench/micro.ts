/** What metrics and the access log cost a hit: the very calls of the request path, timed in a process of their own. */
import { openSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { account } from '../../src/edge/account.ts';
import { createLogger, fileSink } from '../../src/observability/log.ts';
import { createMetrics } from '../../src/observability/metrics.ts';

const COUNT = 200_000;

const metrics = createMetrics({ upstreams: ['bench', 'other'], routes: ['/mcp', '/other'], version: '0' });
const sink = fileSink(openSync('/dev/null', 'w'), 'without blocking');
const log = createLogger({ level: 'info', format: 'json', access: true, sink });
const now = (): number => performance.now();
const context = { metrics, log, now, clientOf: () => '127.0.0.1' };
const request = { method: 'POST' } as IncomingMessage;

function hit(): void {
  const closed = metrics.httpOpened();
  metrics.cacheRequest('bench', 'resources/read', 'hit', 'memory');
  closed();
  const startedAt = now();
  account(context, {
    facts: { cache: 'hit', upstream: 'bench', mcpMethod: 'resources/read' },
    route: '/mcp',
    request,
    status: 200,
    ended: undefined,
    startedAt,
    repliedAt: now(),
    receivedBytes: 330,
    sentBytes: 2_160,
  });
}

/** Hits a turn of the event loop: the log's timer must get its turn. */
const BATCH = 1_000;

async function run(count: number): Promise<number> {
  const cpu = process.cpuUsage();
  for (let i = 0; i < count; i += BATCH) {
    for (let j = 0; j < BATCH; j++) hit();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { user, system } = process.cpuUsage(cpu);
  return (user + system) / count;
}

await run(COUNT / 4);
console.log(JSON.stringify({ us: await run(COUNT) }));
process.exit(0);
