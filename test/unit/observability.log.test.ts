import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  type AccessEntry,
  createLogger,
  type Logger,
  type LoggerOptions,
  onceLogger,
} from '../../src/observability/log.ts';

const NOW = Date.UTC(2026, 10, 30, 12, 0, 0, 5);
const ENTRY: AccessEntry = {
  httpMethod: 'POST',
  status: 200,
  durationMs: 1.23456,
  bytesIn: 400,
  bytesOut: 2048,
};
const ESCAPE = '\u001b';
/** What no line may hold: C0 and C1 controls, line and paragraph separators, direction overrides. */
const UNSAFE = /[^\P{Cc}\n]|[\u2028-\u202e\u2066-\u2069]/u;

interface Recorder {
  readonly log: Logger;
  readonly writes: string[];
  /** Everything written so far. */
  text(): string;
  records(): Record<string, unknown>[];
}

function record(options: Partial<LoggerOptions> = {}): Recorder {
  const writes: string[] = [];
  const sink = { write: (bytes: Uint8Array) => writes.push(Buffer.from(bytes).toString()) };
  const log = createLogger({ level: 'info', format: 'json', access: true, now: () => NOW, sink, ...options });
  const text = (): string => {
    log.flush();
    return writes.join('');
  };
  const records = (): Record<string, unknown>[] =>
    text()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { log, writes, text, records };
}

describe('log', () => {
  test('a line is one JSON object with time, level, message and fields', () => {
    const { log, records } = record();
    log.warn({ upstream: 'docs', count: 3, names: ['a', 'b'] }, 'upstream is slow');
    assert.deepEqual(records(), [
      {
        level: 'warn',
        time: '2026-11-30T12:00:00.005Z',
        upstream: 'docs',
        count: 3,
        names: ['a', 'b'],
        msg: 'upstream is slow',
      },
    ]);
  });

  test('lines below the level are not written', () => {
    const { log, records } = record({ level: 'warn' });
    log.debug({}, 'debug');
    log.info({}, 'info');
    log.warn({}, 'warn');
    log.error({}, 'error');
    assert.deepEqual(
      records().map(({ msg }) => msg),
      ['warn', 'error'],
    );
  });

  test('an access line tells what is known and leaves out what is not', () => {
    const { log, records } = record();
    log.access({
      ...ENTRY,
      requestId: 'req-1',
      route: '/mcp',
      upstream: 'docs',
      mcpMethod: 'resources/read',
      cache: 'miss',
      cacheReason: 'ttl-zero',
      collapsed: true,
      rpcError: -32602,
      upstreamMs: 1,
      overheadMs: 0.235,
      error: 'connect',
    });
    log.access(ENTRY);
    assert.deepEqual(records(), [
      {
        level: 'info',
        time: '2026-11-30T12:00:00.005Z',
        msg: 'request',
        requestId: 'req-1',
        route: '/mcp',
        upstream: 'docs',
        httpMethod: 'POST',
        status: 200,
        mcpMethod: 'resources/read',
        rpcError: -32602,
        cache: 'miss',
        cacheReason: 'ttl-zero',
        collapsed: true,
        durationMs: 1.235,
        upstreamMs: 1,
        overheadMs: 0.235,
        bytesIn: 400,
        bytesOut: 2048,
        error: 'connect',
      },
      {
        level: 'info',
        time: '2026-11-30T12:00:00.005Z',
        msg: 'request',
        httpMethod: 'POST',
        status: 200,
        durationMs: 1.235,
        bytesIn: 400,
        bytesOut: 2048,
      },
    ]);
  });

  test('durations are written to the microsecond', () => {
    const { log, records } = record();
    const durations = [0, 0.0004, 0.001, 0.0123, 5, 12.05, 1234.5, 86_400_000.001, Number.NaN, -3];
    for (const durationMs of durations) log.access({ ...ENTRY, durationMs });
    const written = records().map(({ durationMs }) => durationMs);
    assert.deepEqual(written, [0, 0, 0.001, 0.012, 5, 12.05, 1234.5, 86_400_000.001, 0, 0]);
  });

  test('access lines do not depend on the level, and can be switched off', () => {
    for (const [options, count] of [
      [{ level: 'error' }, 1],
      [{ level: 'silent' }, 0],
      [{ access: false }, 0],
    ] as const) {
      const { log, records } = record(options);
      log.access(ENTRY);
      assert.equal(records().length, count);
    }
  });

  test('level, access lines and format can be changed while it runs', () => {
    const { log, text } = record();
    log.debug({}, 'unheard');
    log.configure({ level: 'debug', format: 'json', access: false });
    log.debug({}, 'heard');
    log.access(ENTRY);
    log.configure({ level: 'error', format: 'pretty', access: true });
    log.info({}, 'unheard');
    log.error({}, 'failed');
    log.access(ENTRY);
    log.configure({ level: 'silent', format: 'json', access: true });
    log.error({}, 'unheard');
    log.access(ENTRY);
    log.configure({ level: 'info', format: 'auto', access: true });
    log.info({}, 'at last');
    assert.equal(
      text(),
      '{"level":"debug","time":"2026-11-30T12:00:00.005Z","msg":"heard"}\n' +
        '12:00:00.005 ERROR failed\n' +
        '12:00:00.005 INFO  request httpMethod=POST status=200 durationMs=1.235 bytesIn=400 bytesOut=2048\n' +
        '{"level":"info","time":"2026-11-30T12:00:00.005Z","msg":"at last"}\n',
    );
  });

  test('names are written for tools and prompts only, and cut; unknown methods are "other"', () => {
    const { log, records } = record();
    const named = (mcpMethod: string, mcpName: string): void => log.access({ ...ENTRY, mcpMethod, mcpName });
    named('tools/call', 'weather');
    named('prompts/get', 'x'.repeat(500));
    named('resources/read', 'file:///home/alice/private');
    named('tasks/get', 'task-1');
    named('secret/canary', 'canary');
    assert.deepEqual(
      records().map(({ mcpMethod, mcpName }) => [mcpMethod, mcpName]),
      [
        ['tools/call', 'weather'],
        ['prompts/get', `${'x'.repeat(128)}…`],
        ['resources/read', undefined],
        ['tasks/get', undefined],
        ['other', undefined],
      ],
    );
  });

  test('R46: no string can forge a line or command a terminal, in either format', () => {
    const strings = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(`a\n{"level":"error"}`, `${ESCAPE}[2J`, '\u009b31m', '\r\u2028\u202e', '"\\', '\ud800'),
    );
    fc.assert(
      fc.property(strings, fc.constantFrom('json', 'pretty'), (text, format) => {
        const { log, text: written } = record({ format });
        log.info({ text, [`key${text}`]: 1, list: [text] }, text);
        log.access({ ...ENTRY, mcpMethod: 'tools/call', mcpName: text, requestId: text, error: text });
        assert.equal(written().split('\n').length, 3);
        assert.doesNotMatch(written(), UNSAFE);
      }),
      { numRuns: 300 },
    );
  });

  test('what was escaped is read back as it was', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (name) => {
        const { log, records } = record();
        log.access({ ...ENTRY, mcpMethod: 'tools/call', mcpName: name });
        assert.equal(records()[0]?.mcpName, name);
      }),
    );
  });

  test('R46: an error is told without its members, and unreadable text without the text', () => {
    const { log, text, records } = record({ level: 'debug' });
    let cause: unknown;
    try {
      JSON.parse('{"token":CANARY}');
    } catch (error) {
      cause = error;
    }
    const err = Object.assign(new Error('upstream answered badly', { cause }), {
      code: 'E_BAD',
      data: 'CANARY',
    });
    log.error({ err }, 'failed');
    assert.doesNotMatch(text(), /CANARY/);
    const told = records()[0]?.err as Record<string, unknown>;
    assert.equal(told.message, 'upstream answered badly');
    assert.equal(told.code, 'E_BAD');
    assert.equal((told.cause as Record<string, unknown>).message, 'unreadable text');
    assert.match(String(told.stack), /^\s+at /);
  });

  test('a thrown value that is no error, and endless causes, are survived', () => {
    const { log, records } = record();
    const err = new Error('round');
    err.cause = err;
    log.error({ err }, 'round');
    log.error({ err: 'CANARY' }, 'text');
    const told = records()[1]?.err;
    assert.deepEqual(told, { name: 'NotAnError', message: 'string' });
  });

  test('the pretty form reads like a sentence', () => {
    const { log, text } = record({ format: 'pretty' });
    log.info({ upstream: 'docs', note: 'two words' }, 'upstream is back');
    log.access({ ...ENTRY, route: '/mcp' });
    assert.equal(
      text(),
      '12:00:00.005 INFO  upstream is back upstream=docs note="two words"\n' +
        '12:00:00.005 INFO  request route=/mcp httpMethod=POST status=200 durationMs=1.235 bytesIn=400 bytesOut=2048\n',
    );
  });

  test('colours come only where they are wanted', () => {
    for (const [colors, wanted] of [
      ['always', true],
      ['never', false],
      ['auto', false],
    ] as const) {
      const { log, text } = record({ format: 'pretty', colors });
      log.error({ err: new Error('no') }, 'failed');
      assert.equal(text().includes(ESCAPE), wanted, colors);
    }
  });

  test('without a terminal, auto means JSON', () => {
    const { log, records } = record({ format: 'auto' });
    log.info({}, 'hello');
    assert.equal(records()[0]?.msg, 'hello');
  });

  test('lines are handed over in batches: by time, by size, with an error, on flush', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { log, writes } = record();
    log.access(ENTRY);
    log.info({}, 'second');
    assert.equal(writes.length, 0);
    t.mock.timers.tick(100);
    assert.equal(writes.length, 1);
    assert.equal(writes[0]?.split('\n').length, 3);
    for (let i = 0; i < 1_000; i++) log.access(ENTRY);
    assert.ok(writes.length > 1 && writes.length < 10, `${writes.length} writes`);
    const before = writes.length;
    log.error({}, 'failed');
    assert.equal(writes.length, before + 1);
    log.access(ENTRY);
    log.flush();
    assert.equal(writes.length, before + 2);
    t.mock.timers.tick(1_000);
    assert.equal(writes.length, before + 2);
  });

  test('what is handed over is nobody else\u2019s: neither the lines that follow, nor much more room than it takes', () => {
    const kept: Uint8Array[] = [];
    const sink = { write: (bytes: Uint8Array) => kept.push(bytes) };
    const { log } = record({ sink });
    const said = (): string[] => kept.map((bytes) => Buffer.from(bytes).toString());
    for (let i = 0; i < 400; i++) {
      log.access({ ...ENTRY, mcpMethod: 'tools/call', mcpName: `näme-${i}-語` });
      if (i % 3 === 0) log.flush();
    }
    for (let i = 0; i < 2_000; i++) log.access({ ...ENTRY, bytesIn: i });
    log.flush();
    const lines = said()
      .join('')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as { mcpName?: string; bytesIn: number });
    assert.deepEqual(
      lines.slice(0, 400).map(({ mcpName }) => mcpName),
      Array.from({ length: 400 }, (_, i) => `näme-${i}-語`),
    );
    assert.deepEqual(
      lines.slice(400).map(({ bytesIn }) => bytesIn),
      Array.from({ length: 2_000 }, (_, i) => i),
    );
    const held = [...new Set(kept.map(({ buffer }) => buffer))].reduce((sum, one) => sum + one.byteLength, 0);
    const used = kept.reduce((sum, { byteLength }) => sum + byteLength, 0);
    assert.ok(held <= (8 / 7) * used + 16 * 1024, `${held} bytes held for ${used}`);
  });

  test('a line that has no room among others is written as it is, in its place', () => {
    const { log, text } = record();
    const long = 'x'.repeat(100_000);
    log.info({}, 'before');
    log.info({ long }, 'long');
    log.info({}, 'behind');
    assert.deepEqual(
      text()
        .split('\n')
        .slice(0, -1)
        .map((line) => (JSON.parse(line) as { msg: string }).msg),
      ['before', 'long', 'behind'],
    );
    assert.ok(text().includes(long));
  });

  test('lines alike are told apart by whatever they say', () => {
    const others: Partial<AccessEntry>[] = [
      { client: '::1' },
      { route: '/a' },
      { upstream: 'u' },
      { httpMethod: 'GET' },
      { status: 404 },
      { mcpMethod: 'tools/call' },
      { mcpMethod: 'tools/call', mcpName: 'n' },
      { rpcError: -32602 },
      { cache: 'hit' },
      { cacheReason: 'why' },
      { collapsed: true },
      { error: 'gone' },
      { upstreamMs: 2 },
    ];
    const { log, records } = record();
    for (const other of others) {
      log.access(ENTRY);
      log.access({ ...ENTRY, ...other });
    }
    const plain = { ...ENTRY, durationMs: 1.235, level: 'info', msg: 'request' };
    assert.deepEqual(
      records().map(({ time, ...rest }) => rest),
      others.flatMap((other) => [plain, { ...plain, ...other }]),
    );
  });

  test('a sink that throws costs nobody anything', () => {
    const sink = {
      write: (): never => {
        throw new Error('disk full');
      },
    };
    const { log } = record({ sink });
    log.error({}, 'failed');
    log.access(ENTRY);
    log.flush();
  });

  test('a process that exits at once loses no line', () => {
    const module = new URL('../../src/observability/log.js', import.meta.url);
    const script = `
      import { createLogger } from ${JSON.stringify(module)};
      const log = createLogger({ level: 'info', format: 'json', access: true });
      for (let i = 0; i < 2000; i++) log.access(${JSON.stringify(ENTRY)});
      log.info({}, 'last');
      process.exit(0);`;
    const { stderr, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
    });
    const lines = stderr.trimEnd().split('\n');
    assert.equal(lines.length, 2001);
    assert.match(lines.at(-1) ?? '', /"msg":"last"/);
    assert.equal(stdout, '');
  });

  test('a process whose log cannot be written ends all the same', {
    skip: existsSync('/dev/full') ? false : 'this system has no /dev/full',
  }, () => {
    const script = `
      const { createLogger } = await import(${JSON.stringify(new URL('../../src/observability/log.js', import.meta.url).href)});
      const log = createLogger({ level: 'info', format: 'json', access: true });
      for (let i = 0; i < 3; i++) {
        log.info({}, 'a line');
        log.flush();
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      log.info({}, 'last');
      log.flush();
      console.log('done');
      process.exit(0);`;
    const full = openSync('/dev/full', 'w');
    try {
      const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
        ...{ encoding: 'utf8', timeout: 10_000 },
        stdio: ['ignore', 'pipe', full],
      });
      assert.deepEqual([stdout.trim(), status], ['done', 0]);
    } finally {
      closeSync(full);
    }
  });
});

describe('onceLogger', () => {
  test('says a thing once per key', () => {
    const { log, records } = record();
    const once = onceLogger(log);
    for (const key of ['a', 'b', 'a', 'a']) once(key, 'info', { key }, 'no cache hints');
    assert.deepEqual(
      records().map(({ key }) => key),
      ['a', 'b'],
    );
  });

  test('remembers a bounded number of keys, the newest', () => {
    const { log, records } = record();
    const once = onceLogger(log, 2);
    for (const key of ['a', 'b', 'c', 'c', 'b', 'a']) once(key, 'warn', { key }, 'm');
    assert.deepEqual(
      records().map(({ key }) => key),
      ['a', 'b', 'c', 'a'],
    );
  });
});
