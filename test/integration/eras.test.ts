/**
 * Every client in front of every server, through a gateway of its own: each cell of the README's table is a test here,
 * and the table is the one that the tests come to.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Gateway, projectRoot, startGateway } from '../demo/gateway.ts';
import { CLIENTS, type ClientName, connect, type EraClient } from '../support/eras/clients.ts';
import { startModern } from '../support/eras/modern.ts';
import { OLDER_PROCESS, startOlder } from '../support/eras/older.ts';
import { PAGES, PROMPTS, pageUri, RESOURCES, STEPS, TEMPLATE, TICKER, TOOLS } from '../support/eras/world.ts';
import { until } from '../support/mcp.ts';

const ROOT = projectRoot(import.meta.dirname);

/** As they are named in the README: what a gateway is told of each. */
const SERVERS = {
  'this revision, HTTP': async (cleanup) => {
    const server = await startModern();
    cleanup.push(server.close);
    return `url: ${server.url}`;
  },
  '2025-11-25, HTTP with sessions': async (cleanup) => {
    const server = await startOlder('sessions');
    cleanup.push(server.close);
    return `url: ${server.url}`;
  },
  '2025-11-25, HTTP without': async (cleanup) => {
    const server = await startOlder('nothing');
    cleanup.push(server.close);
    return `url: ${server.url}`;
  },
  '2025-11-25, stdio': async () =>
    `command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(OLDER_PROCESS)}]`,
} as const satisfies Readonly<Record<string, (cleanup: (() => Promise<void>)[]) => Promise<string>>>;
type ServerName = keyof typeof SERVERS;

/** What a cell stands for. */
const COLUMNS = [
  'connects',
  'lists',
  'reads: miss, hit',
  'templates, completion',
  'subscribes, is told',
  'calls, progress',
  'is asked',
] as const;
type Column = (typeof COLUMNS)[number];

/** What such a server cannot: it has nowhere to say it, and nowhere to be told. */
const CANNOT: Readonly<Partial<Record<ServerName, readonly Column[]>>> = {
  '2025-11-25, HTTP without': ['subscribes, is told', 'is asked'],
};

const found = new Map<string, string>();
const cellOf = (server: ServerName, client: ClientName, column: Column): string =>
  `${server} ${client} ${column}`;

for (const server of Object.keys(SERVERS) as ServerName[]) {
  describe(`a server of ${server}`, () => {
    const cleanup: (() => Promise<void>)[] = [];
    const folder = mkdtempSync(join(tmpdir(), 'headgate-eras-'));
    let gateway: Gateway;

    before(async () => {
      const told = await SERVERS[server](cleanup);
      const file = join(folder, 'headgate.yaml');
      writeFileSync(
        file,
        `version: 1
listen: 127.0.0.1:0
status: 127.0.0.1:0
admin: false
upstreams:
  era: { ${told}, cache: { rules: [{ resources: "era://pages/**", ttl: 60s, scope: public }] } }
routes:
  - { path: /mcp, upstreams: [era] }
`,
      );
      gateway = await startGateway({ root: ROOT, args: ['serve', '-c', file] });
    });
    after(async () => {
      assert.equal(await gateway.stop(), 0, gateway.output());
      for (const end of cleanup) await end();
      rmSync(folder, { recursive: true, force: true });
    });

    for (const [rank, name] of CLIENTS.entries()) {
      describe(`and ${name}`, () => {
        let client: EraClient;
        let cacheStatus: string | null = null;
        const cell = (column: Column, run: () => Promise<void>): void => {
          test(column, async () => {
            await run();
            const can = CANNOT[server]?.includes(column) !== true;
            found.set(cellOf(server, name, column), can ? '✓' : '–');
          });
        };

        before(async () => {
          client = await connect(name, `${gateway.mcp}/mcp`, (headers) => {
            cacheStatus = headers.get('cache-status') ?? cacheStatus;
          });
        });
        after(() => client.close());

        cell('connects', async () => {
          const isOlder = name === 'SDK 2, older' || name === 'SDK 1';
          assert.equal(client.revision, isOlder ? '2025-11-25' : '2026-07-28');
        });
        cell('lists', async () => {
          const all = [...RESOURCES, ...TOOLS, ...PROMPTS].map((one) => one.name);
          assert.deepEqual(await client.names(), all);
        });
        cell('reads: miss, hit', async () => {
          // Each client has a page of its own: what another read would be a hit at once.
          const page = PAGES[rank % PAGES.length] as string;
          assert.equal(await client.read(pageUri(page)), `page ${page}`);
          if (rank < PAGES.length) assert.match(cacheStatus ?? '', /fwd=uri-miss; stored/);
          assert.equal(await client.read(pageUri(page)), `page ${page}`);
          assert.match(cacheStatus ?? '', /^headgate; hit/);
          await assert.rejects(client.read(pageUri('none')), (error: { code?: number }) =>
            [-32602, -32002].includes(error.code ?? 0),
          );
        });
        cell('templates, completion', async () => {
          assert.deepEqual(await client.templates(), [TEMPLATE]);
          assert.deepEqual(await client.complete('t'), ['two', 'three']);
        });
        cell('subscribes, is told', async () => {
          if (CANNOT[server]?.includes('subscribes, is told') === true) {
            assert.equal(client.mayFollow, false);
            return;
          }
          assert.equal(client.mayFollow, true);
          const heard: string[] = [];
          const end = await client.follow(TICKER, (uri) => heard.push(uri));
          await until(() => heard.length >= 2, `updates; heard ${heard.length}`, 15_000);
          assert.deepEqual([...new Set(heard)], [TICKER]);
          await end();
          const { length } = heard;
          await new Promise((resolve) => setTimeout(resolve, 700));
          assert.ok(heard.length <= length + 1, 'told behind the end');
        });
        cell('calls, progress', async () => {
          const { text, steps } = await client.call('count');
          assert.equal(text, `counted to ${STEPS}`);
          assert.deepEqual(steps, [1, 2, 3]);
        });
        cell('is asked', async () => {
          if (CANNOT[server]?.includes('is asked') === true) {
            const startedAt = Date.now();
            await assert.rejects(client.call('paint'), (error: { code?: number }) => error.code === -32603);
            assert.ok(Date.now() - startedAt < 5_000, 'the client is not left waiting');
            return;
          }
          assert.equal((await client.call('paint')).text, 'painted red');
        });
      });
    }
  });
}

describe('the table in the README', () => {
  test('is what the tests found', () => {
    const lines = (Object.keys(SERVERS) as ServerName[]).flatMap((server) =>
      CLIENTS.map(
        (client) =>
          `| ${server} | ${client} | ${COLUMNS.map((column) => found.get(cellOf(server, client, column)) ?? '✗').join(' | ')} |`,
      ),
    );
    const table = [
      `| server | client | ${COLUMNS.join(' | ')} |`,
      `| --- | --- | ${COLUMNS.map(() => '---').join(' | ')} |`,
      ...lines,
    ].join('\n');
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
    assert.ok(readme.includes(table), `write into README.md:\n${table}`);
  });
});
