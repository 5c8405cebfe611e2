/**
 * Broken servers: every row of the fault table, through the whole gateway as a process of its own.
 *
 * Each row has an upstream and a route of its own beside a good upstream that all share. A fault is switched on, met
 * through a list, a read and a call, and switched off; then the same is asked again, which shows what was kept.
 * What was seen becomes `test/golden/faults.md` (`UPDATE_GOLDENS=1 npm test -- integration/faults` writes it).
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { type Gateway, projectRoot, startGateway } from '../demo/gateway.ts';
import { type Heard, hear, inWords, messagesOf, walkWords } from '../support/client-eye.ts';
import { type FaultServer, startFaultServer } from '../support/fault-server.ts';
import { DEADLINES, type Deadline, type Expected, keptAfter, type Row } from '../support/faults/row.ts';
import { elsewhere } from '../support/faults/statuses.ts';
import { ROWS } from '../support/faults/table.ts';
import { mirrored, rpc, until } from '../support/mcp.ts';
import { CANARY, type Simulator, type Surface, startSimulator } from '../support/simulator.ts';

const GOLDEN = join(process.cwd(), 'test/golden/faults.md');
/** Sent to every upstream of a row; found at no other server and in no answer. */
const CREDENTIAL = 'canary-credential';
/** How much later than its deadline an answer may come on a busy machine. */
const LATE_MS = 3_000;
/** An answer that no deadline holds up is there within this, as long as it is not a large one. */
const AT_ONCE_MS = 8_000;
const LARGE_AT_ONCE_MS = 25_000;
/** Rows at a time. */
const ROWS_AT_ONCE = 4;
/** A gateway that refuses work does so for some seconds. */
const SHED_MS = 30_000;

const METHODS: Readonly<Record<Surface, string>> = {
  list: 'resources/list',
  read: 'resources/read',
  call: 'tools/call',
};
const THROUGH: Readonly<Record<Surface, string>> = {
  list: 'the merged list',
  read: 'the read',
  call: 'the streamed call',
};

/** Everything that a client may be shown of headers. */
const KNOWN_HEADERS = new Set([
  'age',
  'cache-control',
  'cache-status',
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'proxy-status',
  'retry-after',
  'transfer-encoding',
  'www-authenticate',
  'x-accel-buffering',
]);

let simulator: Simulator;
let thief: FaultServer;
/** Two: what is measured must not hide behind the metrics of two hundred upstreams. */
let gateways: Readonly<Record<'usual' | 'large', Gateway>>;
const sizeOf = (row: Row): 'usual' | 'large' => (row.memoryMiB === undefined ? 'usual' : 'large');
const folder = mkdtempSync(join(tmpdir(), 'headgate-faults-'));

function upstreamYaml(row: Row): string {
  const short = Object.values(row.expected).some(
    ({ within }) => within !== undefined && within !== 'firstPages',
  );
  const { response, call, streamIdle } = DEADLINES;
  const timeouts = short
    ? `{ response: ${response}ms, call: ${call}ms, streamIdle: ${streamIdle}ms }`
    : '{ response: 20s, call: 20s, streamIdle: 20s }';
  const auth = row.forwards ? '{ type: forward }' : `{ type: bearer, token: ${CREDENTIAL} }`;
  return `  ${row.key}: { url: "${simulator.url(row.key)}", auth: ${auth}, timeouts: ${timeouts}, connections: 1 }`;
}

function routeYaml({ key, order, forwards }: Row): string {
  const upstreams = forwards ? [key] : order === 'faulty first' ? [key, 'good'] : ['good', key];
  return [
    `  - path: /${key}`,
    `    upstreams: [${upstreams.join(', ')}]`,
    '    rules:',
    `      - { match: { method: resources/read, name: "${key}://**" }, upstream: ${key} }`,
    `      - { match: { method: tools/call, name: "${key}" }, upstream: ${key} }`,
  ].join('\n');
}

before(async () => {
  simulator = await startSimulator(
    new Map(ROWS.map(({ key, run, early }) => [key, early ? { run, early } : { run }])),
  );
  thief = await startFaultServer();
  elsewhere.port = thief.port;
  gateways = { usual: await start('usual'), large: await start('large') };
});

/** A gateway over the rows of a size, each with a route of its own. */
function start(size: 'usual' | 'large'): Promise<Gateway> {
  const rows = ROWS.filter((row) => sizeOf(row) === size);
  const config = [
    'version: 1',
    'listen: 127.0.0.1:0',
    'status: 127.0.0.1:0',
    'admin: false',
    'log: { level: error, access: false }',
    'upstreams:',
    `  good: { url: "${simulator.url('good')}" }`,
    ...rows.map(upstreamYaml),
    'routes:',
    ...rows.map(routeYaml),
    '',
  ].join('\n');
  const file = join(folder, `${size}.yaml`);
  writeFileSync(file, config);
  return startGateway({ root: projectRoot(import.meta.dirname), args: ['serve', '-c', file] });
}

after(async () => {
  for (const gateway of Object.values(gateways ?? {})) await gateway.stop();
  await simulator?.close();
  await thief?.close();
  rmSync(folder, { recursive: true, force: true });
});

let lastId = 0;

/** The id in requests that are answered before the simulator could read it there. */
const EARLY_ID = 7;

/** One request of a client, and what of its answer holds whatever the fault. */
async function send(
  row: Row,
  surface: Surface,
  params: Record<string, unknown>,
  upload: 'at once' | 'held back' = 'at once',
): Promise<{ heard: Heard; id: number }> {
  const id = row.early ? EARLY_ID : ++lastId;
  const method = METHODS[surface];
  const name = surface === 'read' ? String(params.uri) : surface === 'call' ? row.key : undefined;
  const body = JSON.stringify(rpc(method, params, id));
  const headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    accept: 'application/json, text/event-stream',
    ...(row.forwards && { authorization: 'Bearer of-the-caller' }),
    ...mirrored(method, name),
  };
  const url = `${gateways[sizeOf(row)].mcp}/${row.key}`;
  const half = body.length >> 1;
  const sending =
    upload === 'held back'
      ? { url, headers, body: body.slice(0, half), afterwards: body.slice(half) }
      : { url, headers, body };
  let heard = await hear(sending);
  await until(
    async () => {
      if (!isShed(heard)) return true;
      heard = await hear(sending);
      return false;
    },
    'the gateway takes work again',
    SHED_MS,
  );
  checkAlways(heard, id);
  return { heard, id };
}

/** On a machine with much else to do the gateway may refuse work before it has met any fault: a client waits. */
function isShed({ status, headers }: Heard): boolean {
  return status === 503 && String(headers['proxy-status']).includes('error=proxy_internal_response');
}

function checkAlways(heard: Heard, id: number): void {
  const shown = JSON.stringify(heard.headers) + heard.body.subarray(0, 1 << 20).toString('latin1');
  for (const secret of [CANARY, CREDENTIAL, `:${simulator.server.port}`, `:${thief.port}`])
    assert.ok(!shown.includes(secret), `a client was shown ${secret}: ${shown.slice(0, 2_000)}`);
  for (const header of Object.keys(heard.headers))
    assert.ok(KNOWN_HEADERS.has(header), `a client was shown the header ${header}`);
  if (heard.status === undefined || heard.status === 200) return;
  assert.equal(messagesOf(heard)?.[0]?.id, id, 'an error carries the id of its request');
}

/** What a client does, and what it saw of it in words. */
async function ask(
  row: Row,
  surface: Surface,
  upload: 'at once' | 'held back' = 'at once',
): Promise<{ saw: string; ms: number }> {
  if (surface === 'list') return walk(row);
  const params =
    surface === 'read'
      ? { uri: `${row.key}://doc` }
      : { name: row.key, arguments: row.uploads ? { text: 'x'.repeat(200_000) } : {} };
  const { heard, id } = await send(row, surface, params, upload);
  const { key } = row;
  return { saw: inWords(heard, { surface, key, id, sent: simulator.sent(key) }), ms: heard.ms };
}

async function walk(row: Row): Promise<{ saw: string; ms: number }> {
  const pages: Record<string, unknown>[] = [];
  let cursor: unknown;
  let ms = 0;
  do {
    const { heard, id } = await send(row, 'list', cursor === undefined ? {} : { cursor });
    ms = Math.max(ms, heard.ms);
    const result = heard.end === 'whole' ? messagesOf(heard)?.[0]?.result : undefined;
    if (result === undefined)
      return { saw: inWords(heard, { surface: 'list', key: row.key, id, sent: undefined }), ms };
    pages.push(result);
    cursor = result.nextCursor;
  } while (cursor !== undefined && pages.length < row.pages);
  return { saw: walkWords(pages, row.key, cursor === undefined ? 'end' : 'more'), ms };
}

/** Words for a time that is not what the deadline says; empty when it is. */
function timing(ms: number, row: Row, within: Deadline | undefined): string {
  if (within === undefined) {
    return ms > (row.memoryMiB === undefined ? AT_ONCE_MS : LARGE_AT_ONCE_MS) ? ', too late' : '';
  }
  if (ms < DEADLINES[within] * 0.9) return ', too early';
  return ms > DEADLINES[within] + LATE_MS ? ', too late' : '';
}

interface Observed {
  readonly saw: string;
  readonly next: string;
}

const observed = new Map<string, Observed>();

async function meet(row: Row, surface: Surface, expected: Expected): Promise<Observed> {
  if (row.primed)
    await send(
      row,
      surface === 'list' ? 'read' : surface,
      surface === 'call' ? { name: row.key } : { uri: `${row.key}://prime/${surface}` },
    );
  simulator.turn(row.key, 'on');
  const { saw, ms } = await ask(row, surface, row.uploads ? 'held back' : 'at once');
  await until(() => simulator.running(row.key) === 0, 'the gateway lets go of the upstream');
  simulator.turn(row.key, 'off');
  const asked = simulator.seen(row.key).length;
  const again = await ask(row, surface);
  const grew = simulator.seen(row.key).length > asked;
  const next = grew ? (again.saw.includes('healthy') ? 'asked again' : `asked again: ${again.saw}`) : 'hit';
  return { saw: saw + timing(ms, row, expected.within), next };
}

function rowTests(
  row: Row,
  around: (meeting: () => Promise<Observed>, t: TestContext) => Promise<Observed>,
): void {
  describe(`${row.rules}: ${row.fault}`, { concurrency: 1 }, () => {
    for (const [surface, expected] of Object.entries(row.expected) as [Surface, Expected][]) {
      test(surface, row.open === undefined ? {} : { todo: row.open }, async (t) => {
        const found = await around(() => meet(row, surface, expected), t);
        observed.set(`${row.key} ${surface}`, found);
        assert.deepEqual(found, { saw: expected.saw, next: keptAfter(surface, expected) });
      });
    }
  });
}

/** Heap and external memory of the gateway, in MiB. */
async function memoryMiB(): Promise<number> {
  const metrics = await (await fetch(`${gateways.large.status}/metrics`)).text();
  const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1]);
  return (value('nodejs_heap_size_used_bytes') + value('nodejs_external_memory_bytes')) / 2 ** 20;
}

/** The most that is seen while something runs, and once after it. */
async function peakMiB<T>(work: () => Promise<T>): Promise<{ result: T; peak: number }> {
  let peak = 0;
  let over = false;
  const sampling = (async () => {
    while (!over) {
      peak = Math.max(peak, await memoryMiB());
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  })();
  try {
    const result = await work();
    return { result, peak };
  } finally {
    over = true;
    await sampling;
    peak = Math.max(peak, await memoryMiB());
  }
}

describe('broken servers', { concurrency: ROWS_AT_ONCE }, () => {
  for (const row of ROWS.filter(({ memoryMiB: bound }) => bound === undefined))
    rowTests(row, (meeting) => meeting());
});

describe('broken servers that are large', { concurrency: 1 }, () => {
  for (const row of ROWS) {
    const bound = row.memoryMiB;
    if (bound === undefined) continue;
    rowTests(row, async (meeting, t) => {
      const { result, peak } = await peakMiB(meeting);
      t.diagnostic(`${row.fault}: heap and external memory up to ${Math.round(peak)} MiB`);
      assert.ok(peak < bound, `heap and external memory rose to ${Math.round(peak)} MiB, above ${bound}`);
      return result;
    });
  }
});

describe('after all of them', () => {
  test('R36: no redirect was followed, and every upstream had the credential that is meant for it', () => {
    assert.equal(thief.accepted, 0);
    for (const { key } of ROWS.filter(({ forwards }) => !forwards)) {
      for (const { authorization } of simulator.seen(key))
        assert.equal(authorization, `Bearer ${CREDENTIAL}`);
    }
    assert.ok(simulator.seen('good').every(({ authorization }) => authorization === undefined));
  });

  test('R36: a call is sent once, a read that met a reset before its answer twice', () => {
    const row = ROWS.find(({ fault }) => fault === 'resets a kept-alive socket') as Row;
    const count = (method: string): number =>
      simulator.seen(row.key).filter((one) => one.method === method).length;
    // Primed, met the fault (a call once, a list and a read twice), asked again where nothing was kept.
    assert.deepEqual([count('tools/call'), count('resources/list'), count('resources/read')], [3, 2, 4]);
  });

  test('R24: what another upstream says of a URI changes nothing for its owner', async () => {
    for (const row of ROWS.filter(
      ({ rules, expected }) => rules.includes('R24') && expected.read !== undefined,
    )) {
      const { heard } = await send(row, 'read', { uri: 'good://doc' });
      assert.match(heard.body.toString(), /healthy/, row.fault);
    }
  });

  test('the gateway still serves', async () => {
    const { heard } = await send(ROWS[0] as Row, 'read', { uri: 'good://doc' });
    assert.equal(heard.status, 200);
  });

  test('test/golden/faults.md says what was seen', () => {
    const table = tableText();
    if (process.env.UPDATE_GOLDENS === '1') writeFileSync(GOLDEN, table);
    assert.equal(table, existsSync(GOLDEN) ? readFileSync(GOLDEN, 'utf8') : '');
  });
});

function tableText(): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|');
  const lines = ROWS.flatMap((row) =>
    (Object.entries(row.expected) as [Surface, Expected][]).map(([surface, expected]) => {
      const { saw, next } = observed.get(`${row.key} ${surface}`) ?? { saw: 'not seen', next: '' };
      const when = expected.within === undefined ? 'at once' : `after \`${expected.within}\``;
      const cells = [row.fault, row.rules, THROUGH[surface], saw, expected.saw, when, next];
      return `| ${cells.map(cell).join(' | ')} |`;
    }),
  );
  return [
    '# What a client sees of broken servers',
    '',
    'Written by `test/integration/faults.test.ts`: `UPDATE_GOLDENS=1 npm test -- integration/faults`.',
    'Lists are those of a route with the broken upstream and a good one. The last column: whether the gateway asked',
    'the upstream again once it was well, or had kept its answer.',
    '',
    '| fault | rules | through | what the client saw | expected | when | the next time |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...lines,
    '',
  ].join('\n');
}
