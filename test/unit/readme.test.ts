/** What the README says is what the program does: its example, its commands, its metrics, its `Cache-Status` values. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { MAX_CURSOR_LENGTH, MAX_UPSTREAM_CURSOR_LENGTH } from '../../src/aggregate/cursor.ts';
import { DISCOVER_WAIT_MS } from '../../src/aggregate/discover.ts';
import { MAX_ITEM_BYTES } from '../../src/aggregate/item.ts';
import { FILL_MS, FIRST_PAGES_AT_ONCE, FIRST_PAGES_MS, type Merged } from '../../src/aggregate/list.ts';
import { MAX_PAGE_ITEMS } from '../../src/aggregate/page.ts';
import { MAX_PAGE_BYTES, MAX_WALK_PAGES } from '../../src/aggregate/parts.ts';
import { MAX_HELD_READ_BYTES } from '../../src/aggregate/read.ts';
import { cacheHeaders, METHOD_HEADERS, mergedReply } from '../../src/aggregate/reply.ts';
import { MERGED_PAGE_BYTES } from '../../src/aggregate/walk.ts';
import { PATIENCE_MS } from '../../src/cache/inflight.ts';
import type { Stored } from '../../src/cache/keep.ts';
import { REMAINDER_LIVES_MS, REMAINDERS_BYTES } from '../../src/cache/remainders.ts';
import type { CacheOutcome } from '../../src/cache/types.ts';
import { COMMANDS, readCommandLine } from '../../src/cli/args.ts';
import { TEN_LINE_EXAMPLE } from '../../src/config/example.ts';
import { REFERENCE_END, REFERENCE_START } from '../../src/config/reference.ts';
import { formatDuration, formatSize } from '../../src/config/units.ts';
import { KEEP_ALIVE_MS } from '../../src/edge/heart.ts';
import { MAX_UNDER_WAY, WINDOW_MS } from '../../src/edge/shedding.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import { MAX_ID_LENGTH } from '../../src/protocol/classify.ts';
import { MAX_JSON_DEPTH } from '../../src/protocol/json.ts';
import { SUPPORTED_VERSIONS } from '../../src/protocol/meta.ts';
import { LIST_METHODS, type ListShape } from '../../src/protocol/methods.ts';
import { CONTEXT_LIMIT, CONTEXTS, CONTEXTS_LIMIT, SHARED_LIMIT } from '../../src/routing/ownership.ts';
import { TEMPLATE_EXPRESSION_COUNT_MAX, TEMPLATE_LENGTH_MAX } from '../../src/routing/template.ts';
import { INDEX_TEMPLATE_COUNT_MAX } from '../../src/routing/template-index.ts';
import { HELD_READS_BYTES } from '../../src/upstream/held.ts';
import { configOf, loadText } from '../support/config.ts';
import { PROXIES } from '../support/proxies/start.ts';

const ROOT = process.cwd();
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
/** Without the generated reference: its currency is a test of `config.generated`. */
const WRITTEN =
  README.slice(0, README.indexOf(REFERENCE_START)) + README.slice(README.indexOf(REFERENCE_END));

/** The fenced blocks of one language; `''` for those that name none. */
function blocks(language: string): readonly string[] {
  return [...WRITTEN.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].flatMap(([, named, text]) =>
    named === language ? [text as string] : [],
  );
}

const SHELL_LINES = blocks('sh').flatMap((text) => text.split('\n'));
const SPANS = [...WRITTEN.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/`([^`\n]+)`/g)].map(
  ([, text]) => text as string,
);

/** The first group of every match. */
function found(pattern: RegExp, texts: readonly string[]): readonly string[] {
  const everywhere = new RegExp(pattern, `${pattern.flags.replace('g', '')}g`);
  return texts.flatMap((text) => [...text.matchAll(everywhere)].map(([, group]) => group as string));
}

const sorted = (values: Iterable<string>): readonly string[] => [...new Set(values)].sort();

describe('the text of the README', () => {
  test('names every revision that works in its third line', () => {
    const [, , third = ''] = WRITTEN.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    for (const version of SUPPORTED_VERSIONS) assert.ok(third.includes(version), third);
  });

  test('links to headings and files that exist', () => {
    const headings = found(/^#+ (.+)$/gm, [WRITTEN]).map((title) =>
      title
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    );
    for (const target of found(/\]\(([^)\s]+)\)/g, [WRITTEN])) {
      if (target.startsWith('#')) assert.ok(headings.includes(target.slice(1)), target);
      else if (!target.startsWith('https://')) assert.ok(existsSync(join(ROOT, target)), target);
    }
  });
});

describe('the configurations in the README', () => {
  const [example, ...others] = blocks('yaml');

  test('begin with the ten lines that serve prints, and those load without a problem', () => {
    assert.equal(example, TEN_LINE_EXAMPLE);
    const result = loadText(example ?? '', {});
    assert.deepEqual(result.kind === 'ok' ? result.warnings : result.problems, []);
  });

  test('show upstreams that load without a problem', () => {
    for (const upstreams of others) {
      const result = loadText(`version: 1\n${upstreams}routes:\n  - { path: /mcp, upstreams: [docs] }\n`, {});
      assert.deepEqual(result.kind === 'ok' ? result.warnings : result.problems, [], upstreams);
    }
  });
});

test('the lines for proxies in the README are those that the proxies of the tests run with', () => {
  for (const { name, configuration } of PROXIES) {
    const run = new Set(linesOf(configuration(80, '127.0.0.1:8080', '/tmp')));
    const lines = linesOf(blocks(name).join('\n'));
    assert.ok(lines.length > 3, name);
    for (const line of lines) assert.ok(run.has(line), `${name}: ${line}`);
  }
});

function linesOf(text: string): readonly string[] {
  return text.split('\n').flatMap((line) => line.trim() || []);
}

describe('the commands in the README', () => {
  test('are those of the command table, each of them', () => {
    const named = found(/\bheadgate ([a-z][a-z-]*)/g, SPANS);
    assert.deepEqual(sorted(named), sorted(COMMANDS.map(({ name }) => name)));
  });

  test('are read as they are written', () => {
    const lines = found(/^node dist\/main\.js (.+)$/g, SHELL_LINES);
    assert.ok(lines.length > 0);
    for (const line of lines) assert.equal(readCommandLine(line.split(' ')).kind, 'run', line);
  });

  test('have the options that the command table has', () => {
    for (const { name, options } of COMMANDS) {
      const usage = SPANS.find((span) => span.startsWith(`headgate ${name} [`)) ?? '';
      const known = options.map((option) => `--${option.name}`);
      for (const option of found(/(--[a-z-]+)/g, [usage])) assert.ok(known.includes(option), usage);
    }
  });

  test('run npm scripts and files that exist', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      scripts: Readonly<Record<string, string>>;
    };
    for (const script of found(/\bnpm run ([a-z]+)/g, [WRITTEN]))
      assert.ok(Object.hasOwn(scripts, script), script);
    for (const path of found(/\bbuild\/(test\/\S+)\.js\b/g, SHELL_LINES))
      assert.ok(existsSync(join(ROOT, `${path}.ts`)), path);
  });
});

test('the metrics in the README are those of the exposition, each of them', async () => {
  const { body } = await createMetrics({ upstreams: ['docs'], routes: ['/mcp'], version: '1' }).render();
  const exposed = found(/^# TYPE ((?:headgate|mcp)_\w+) /gm, [body]);
  const named = found(/\b((?:headgate|mcp_server|mcp_client)_[a-z_]+)\b/g, [WRITTEN]);
  assert.deepEqual(sorted(named), sorted(exposed));
});

test('the bounds in the README are those of the code', () => {
  const { listen, upstreams, routes, cache } = configOf(TEN_LINE_EXAMPLE);
  const { limits } = listen;
  const { timeouts, connections } = upstreams.get('docs') ?? assert.fail();
  const count = (value: number): string => value.toLocaleString('en');
  const BOUNDS: readonly (readonly [row: string, ...values: string[]])[] = [
    ['request body that is read', formatSize(limits.bodyBytes)],
    ['request headers', formatSize(limits.headersBytes), `${limits.headerCount}lines`],
    ['headers and read body must have come', formatDuration(limits.requestTimeoutMs)],
    ['pause in a body', formatDuration(limits.bodyIdleMs)],
    ['JSON-RPC id', formatSize(MAX_ID_LENGTH)],
    ['nesting of JSON', `${MAX_JSON_DEPTH}levels`],
    ['requests under way, listens aside', count(MAX_UNDER_WAY)],
    ['event loop that is late', formatDuration(WINDOW_MS)],
    ['connecting to an upstream', formatDuration(timeouts.connectMs)],
    ['answer to a read or a list', formatDuration(timeouts.responseMs)],
    ['a streamed call, all of it', formatDuration(timeouts.callMs)],
    ['silence in a streamed answer', formatDuration(timeouts.streamIdleMs)],
    ['connections to an upstream', `${connections}forreads,${connections}forcalls`],
    [
      'answer to a read that is held',
      formatSize(cache.memory.maxEntryBytes),
      formatSize(MAX_HELD_READ_BYTES),
    ],
    ['answers to reads that are still coming, held together', formatSize(HELD_READS_BYTES)],
    ["page of an upstream's list", formatSize(MAX_PAGE_BYTES), `${count(MAX_PAGE_ITEMS)}items`],
    ['item of a list', formatSize(MAX_ITEM_BYTES)],
    ['merged page', `${routes[0]?.pageSize}items`, formatSize(MERGED_PAGE_BYTES), formatDuration(FILL_MS)],
    ['first pages of a list', `${FIRST_PAGES_AT_ONCE}atatime`, formatDuration(FIRST_PAGES_MS)],
    ['pages of an upstream in one walk', count(MAX_WALK_PAGES)],
    [
      'cursor of an upstream, of the gateway',
      formatSize(MAX_UPSTREAM_CURSOR_LENGTH),
      formatSize(MAX_CURSOR_LENGTH),
    ],
    ['rests of cut pages', formatSize(REMAINDERS_BYTES), `${REMAINDER_LIVES_MS / 1000}s`],
    ['waiting in `server/discover`', formatDuration(DISCOVER_WAIT_MS)],
    ['owners learnt, for each route', ...[SHARED_LIMIT, CONTEXT_LIMIT, CONTEXTS_LIMIT, CONTEXTS].map(count)],
    ['templates learnt, for each route', count(INDEX_TEMPLATE_COUNT_MAX)],
    ['a template', `${count(TEMPLATE_LENGTH_MAX)}characters`, `${TEMPLATE_EXPRESSION_COUNT_MAX}expressions`],
    ['cache', formatSize(cache.memory.sizeBytes)],
    ['entry', formatSize(cache.memory.maxEntryBytes)],
    ["waiting for another context's request", formatDuration(PATIENCE_MS)],
    ['silence on a listen', formatDuration(KEEP_ALIVE_MS)],
  ];
  const table = WRITTEN.slice(WRITTEN.indexOf('### Bounds'));
  for (const [name, ...values] of BOUNDS) {
    const [row = ''] = found(new RegExp(`^\\| ${name} \\| ([^|]+) \\|`, 'm'), [table]);
    for (const value of values)
      assert.ok(row.replaceAll(' ', '').includes(value), `${name}: ${value}, ${row}`);
  }
});

describe('the Cache-Status values in the README', () => {
  const STORED: Readonly<Record<Stored, true>> = {
    stored: true,
    'ttl-zero': true,
    'too-large': true,
    superseded: true,
    'not-storable': true,
  };
  const MISSES = (Object.keys(STORED) as Stored[]).flatMap((stored) =>
    (['uri-miss', 'stale'] as const).flatMap((why) =>
      [false, true].map((collapsed): CacheOutcome => ({ kind: 'miss', why, stored, collapsed })),
    ),
  );
  const OUTCOMES: readonly CacheOutcome[] = [
    { kind: 'hit', tier: 'memory', ageMs: 0, ttlMs: 0 },
    { kind: 'stale', ageMs: 0 },
    { kind: 'bypass', why: 'mrtr' },
    { kind: 'bypass', why: 'disabled' },
    ...MISSES,
  ];
  const FAILED = { kind: 'failure', failure: { kind: 'connect', proxyError: '', detail: '' } } as const;
  const PAGES: readonly Pick<Extract<Merged, { kind: 'page' }>, 'source' | 'incomplete'>[] = [
    { source: 'hit', incomplete: [] },
    { source: 'miss', incomplete: [] },
    { source: 'miss', incomplete: ['docs'] },
    { source: 'stale', incomplete: [] },
    { source: 'bypass', incomplete: [] },
  ];

  function ofPage(page: (typeof PAGES)[number]): string | undefined {
    const merged = {
      ...page,
      kind: 'page',
      runs: [],
      nextCursor: undefined,
      ttlMs: 0,
      scope: 'public',
      ageMs: 0,
    } as const;
    const reply = mergedReply('1', merged, LIST_METHODS[0]?.list as ListShape, {});
    return reply.kind === 'answer' ? reply.headers['cache-status'] : undefined;
  }

  const anyTime = (status: string | undefined): string => (status ?? '').replace(/ttl=\d+/, 'ttl=N');
  const made = new Set(
    [
      ...OUTCOMES.map((outcome) => cacheHeaders(outcome, FAILED)['cache-status']),
      METHOD_HEADERS['cache-status'],
      ...PAGES.map(ofPage),
    ].map(anyTime),
  );
  const told = [
    ...SPANS.filter((span) => span.startsWith('headgate; ')),
    ...found(/^cache-status: (.+)$/gim, blocks('')),
  ].map(anyTime);

  test('are all made by the code', () => {
    assert.ok(told.length > 0);
    for (const status of told) assert.ok(made.has(status), status);
  });

  test('leave out no word that the code can say', () => {
    const words = (statuses: Iterable<string>) =>
      sorted([...statuses].flatMap((status) => status.split('; ')));
    assert.deepEqual(words(told), words(made));
  });

  test('fill the table row by row with a meaning', () => {
    const rows = found(/^\| (`headgate; .+)$/gm, [WRITTEN]);
    assert.ok(rows.length >= 12);
    for (const row of rows) assert.match(row, /^`headgate; [^`]+` \| \S.+ \| .*\|$/);
  });
});
