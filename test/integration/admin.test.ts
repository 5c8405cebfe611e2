/** The admin port, and `headgate purge` against it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, beforeEach, describe, test } from 'node:test';
import { pageFiles } from '../../src/admin/page-files.ts';
import type { PurgeOutcome, PurgeRequest } from '../../src/admin/purge.ts';
import { type Admin, createAdmin } from '../../src/admin/server.ts';
import type { Views } from '../../src/admin/views.ts';
import { Secret } from '../../src/config/secret.ts';
import type { LogFields } from '../../src/observability/log.ts';
import type { Signal } from '../../src/protocol/signal.ts';
import { CANARY } from '../support/config.ts';
import { until } from '../support/mcp.ts';

const MAIN = join(process.cwd(), 'dist/main.js');
const UPSTREAMS = ['docs', 'city'];

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

interface Asking {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string;
}

/** One request on a connection of its own; header values of `''` are left out. */
function ask(base: string, { path = '/api/purge', method = 'POST', headers, body }: Asking): Promise<Answer> {
  const all = { 'Content-Type': 'application/json', ...headers };
  return new Promise((resolve, reject) => {
    const asked = request(
      base + path,
      {
        method,
        agent: false,
        headers: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== '')),
      },
      async (response) =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: await text(response).catch(() => ''),
        }),
    );
    asked.on('error', reject);
    asked.end(body);
  });
}

/** Of a gateway without routes. What is looked at has a test of its own: `admin.api`. */
const NOTHING_TO_SEE: Views = {
  state: () => assert.fail(),
  config: () => ({ configuration: '1', yaml: 'version: 1\n' }),
  routes: () => [],
  list: () => assert.fail(),
  read: () => assert.fail(),
  close: () => {},
};

/** An admin port whose purges are written down. */
function port(host: string, token?: string, requestTimeoutMs?: number, views: Views = NOTHING_TO_SEE) {
  const purges: PurgeRequest[] = [];
  const lines: LogFields[] = [];
  const answers: { next: () => Promise<PurgeOutcome> } = { next: async () => ({ purged: 'all-replicas' }) };
  const admin: Admin = createAdmin({
    address: { host, port: 0 },
    token: () => (token === undefined ? undefined : new Secret(token)),
    upstreams: () => UPSTREAMS,
    page: pageFiles(),
    views,
    purge: (wanted) => {
      purges.push(wanted);
      return answers.next();
    },
    log: {
      info: (fields) => lines.push(fields),
      error: (fields) => lines.push(fields),
    },
    ...(requestTimeoutMs === undefined ? {} : { requestTimeoutMs }),
  });
  return { admin, purges, lines, answers };
}

const ALL = JSON.stringify({ all: true });

describe('the admin port on loopback', () => {
  const { admin, purges, lines, answers } = port('127.0.0.1');
  let base = '';
  before(async () => {
    base = await admin.listen();
  });
  beforeEach(() => {
    purges.length = 0;
    lines.length = 0;
  });
  after(() => admin.close());

  test('purges what a POST of JSON names', async () => {
    const answer = await ask(base, { body: '{"upstream":"docs","uri":"docs://private"}' });
    assert.deepEqual([answer.status, answer.text], [200, '{"purged":"all-replicas"}']);
    assert.equal(answer.headers['cache-control'], 'no-store');
    assert.deepEqual(purges, [{ kind: 'resource', upstream: 'docs', uri: 'docs://private' }]);
    assert.ok(
      lines.length === 1 && !JSON.stringify(lines).includes('docs://private'),
      'a URI may be private',
    );
  });

  test('says what to write instead of anything else', async () => {
    const answer = await ask(base, { body: '{"upstream":"nodocs"}' });
    assert.deepEqual([answer.status, answer.text], [400, '{"error":"no such upstream; known: docs, city"}']);
    assert.equal((await ask(base, {})).status, 400);
    assert.deepEqual(purges, []);
  });

  test('tells a purge that failed, and keeps the reason for its log', async () => {
    answers.next = () => Promise.reject(new Error(CANARY));
    const answer = await ask(base, { body: ALL });
    answers.next = async () => ({ purged: 'this-replica' });
    assert.equal(answer.status, 500);
    assert.ok(!answer.text.includes(CANARY));
    assert.equal(lines.length, 1);
    assert.equal((await ask(base, { body: ALL })).text, '{"purged":"this-replica"}');
  });

  test('takes loopback names as Host and Origin, and no others', async () => {
    for (const [headers, status] of [
      [{ Host: 'localhost:9901' }, 200],
      [{ Host: 'evil.example' }, 403],
      [{ Origin: 'http://localhost:3000' }, 200],
      [{ Origin: 'http://evil.example' }, 403],
      [{ Origin: 'null' }, 403],
      [{ Origin: ['http://localhost', 'http://evil.example'] }, 400],
    ] as const) {
      const answer = await ask(base, { headers, body: ALL });
      assert.equal(answer.status, status, JSON.stringify(headers));
      assert.equal(answer.headers['access-control-allow-origin'], undefined);
    }
    assert.equal(purges.length, 2);
  });

  test('allows no page to ask: a preflight is no POST', async () => {
    const headers = { Origin: 'http://localhost:3000', 'Access-Control-Request-Method': 'POST' };
    const answer = await ask(base, { method: 'OPTIONS', headers });
    assert.equal(answer.status, 405);
    assert.deepEqual(
      Object.keys(answer.headers).filter((name) => name.startsWith('access-control')),
      [],
    );
  });

  test('takes POST and JSON alone', async () => {
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE']) {
      const answer = await ask(base, { method });
      assert.deepEqual([answer.status, answer.headers.allow], [405, 'POST'], method);
    }
    for (const type of [
      '',
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/jsonx',
      'application/json; charset=utf-16',
    ]) {
      assert.equal((await ask(base, { headers: { 'Content-Type': type }, body: ALL })).status, 415, type);
    }
    assert.equal((await ask(base, { headers: { 'Content-Encoding': 'gzip' }, body: ALL })).status, 415);
    assert.deepEqual(purges, []);
    const type = 'Application/JSON; charset="UTF-8"';
    assert.equal((await ask(base, { headers: { 'Content-Type': type }, body: ALL })).status, 200);
  });

  test('has nothing else', async () => {
    for (const path of [
      '/index.html',
      '/page/',
      '/page/main.ts',
      '/?x',
      '/api',
      '/api/purge/',
      '/api/purge?all=true',
      '/API/PURGE',
      '/api/%70urge',
      '/%zz',
    ]) {
      const { status } = await ask(base, { path, body: ALL });
      assert.ok(status === 404 || (status === 400 && path === '/%zz'), `${path}: ${status}`);
    }
    assert.deepEqual(purges, []);
  });

  test('takes GET and HEAD alone where there is only something to see', async () => {
    for (const path of ['/', '/page/main.js', '/api/state', '/api/config']) {
      for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
        const answer = await ask(base, { path, method });
        assert.deepEqual([answer.status, answer.headers.allow], [405, 'GET, HEAD'], `${method} ${path}`);
      }
    }
    assert.equal((await ask(base, { path: '/', method: 'HEAD' })).status, 200);
    for (const path of ['/api/list', '/api/read']) {
      const answer = await ask(base, { path, method: 'GET' });
      assert.deepEqual([answer.status, answer.headers.allow], [405, 'POST'], path);
    }
  });

  test('takes a page of a list with a cursor of up to 128 KiB, and a read of up to 16 KiB', async () => {
    const padded = (bytes: number) => '{}'.padEnd(bytes);
    assert.equal((await ask(base, { path: '/api/list', body: padded(131_072) })).status, 400);
    assert.equal((await ask(base, { path: '/api/list', body: padded(131_073) })).status, 413);
    assert.equal((await ask(base, { path: '/api/read', body: padded(16_385) })).status, 413);
  });

  test('asks upstreams for sixteen at a time, and gives up for whoever leaves', async () => {
    const waiting: { readonly signal: Signal; readonly answer: () => void }[] = [];
    const busy = port('127.0.0.1', undefined, undefined, {
      ...NOTHING_TO_SEE,
      routes: () => ['/mcp'],
      read: (_request, signal) =>
        new Promise<never>((_resolve, reject) => {
          waiting.push({ signal, answer: () => reject(new Error('enough')) });
        }),
    });
    const url = await busy.admin.listen();
    const read = { path: '/api/read', body: '{"route":"/mcp","uri":"a:b"}' };
    const asked = Array.from({ length: 15 }, () => ask(url, read));
    const { hostname, port: number } = new URL(url);
    const leaver = connect(Number(number), hostname);
    leaver.write(
      `POST ${read.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${read.body.length}\r\n\r\n${read.body}`,
    );
    await until(() => waiting.length === 16, 'sixteen questions');
    const refused = await ask(url, read);
    assert.deepEqual([refused.status, waiting.length], [503, 16]);
    leaver.destroy();
    await until(() => waiting.some(({ signal }) => signal.aborted), 'the one who left');
    for (const { answer } of waiting) answer();
    assert.deepEqual(
      (await Promise.all(asked)).map(({ status }) => status),
      asked.map(() => 500),
    );
    await busy.admin.close();
  });

  test('sends the page with a policy that lets it run its own scripts and nothing else', async () => {
    const answer = await ask(base, { path: '/', method: 'GET' });
    assert.equal(answer.headers['content-type'], 'text/html; charset=utf-8');
    const policy = String(answer.headers['content-security-policy']);
    for (const part of [
      "default-src 'none'",
      "script-src 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ])
      assert.ok(policy.split('; ').includes(part), policy);
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
    assert.deepEqual(
      [
        answer.headers['referrer-policy'],
        answer.headers['x-content-type-options'],
        answer.headers['cross-origin-opener-policy'],
        answer.headers['cross-origin-resource-policy'],
      ],
      ['no-referrer', 'nosniff', 'same-origin', 'same-origin'],
    );
    const html = answer.text.replaceAll('http://www.w3.org/2000/svg', '');
    assert.doesNotMatch(html, /<script(?![^>]* src=)|<style|\son[a-z]+=|\sstyle=|https?:\/\//i);
    for (const [, path = ''] of answer.text.matchAll(/(?:src|href)="(\/[^"]*)"/g)) {
      const { status, headers } = await ask(base, { path, method: 'GET' });
      assert.deepEqual([status, headers['x-content-type-options']], [200, 'nosniff'], path);
    }
  });

  test('takes a body of 16 KiB and no larger one', async () => {
    const body = (bytes: number) => ALL.padEnd(bytes);
    assert.equal((await ask(base, { body: body(16_384) })).status, 200);
    const answer = await ask(base, { body: body(16_385) });
    assert.deepEqual([answer.status, answer.text], [413, '{"error":"The body is larger than 16 KiB"}']);
    assert.equal(purges.length, 1);
  });

  test('waits no longer than its bound for a head or a body', async () => {
    const impatient = port('127.0.0.1', undefined, 200);
    const { hostname, port: number } = new URL(await impatient.admin.listen());
    for (const sent of [
      'POST /api/purge HTTP/1.1\r\n',
      'POST /api/purge HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
    ]) {
      const socket = connect(Number(number), hostname);
      socket.write(sent);
      assert.match(await text(socket), /^HTTP\/1\.1 408 /, sent);
    }
    await impatient.admin.close();
  });

  test('closes, with what is still open on it', async () => {
    const other = port('127.0.0.1');
    const { hostname, port: number } = new URL(await other.admin.listen());
    const socket = connect(Number(number), hostname);
    await new Promise((resolve) => socket.once('connect', resolve));
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => {});
    socket.write('POST /api/purge HTTP/1.1\r\n');
    await other.admin.close();
    await closed;
    await other.admin.close();
  });

  test('says which address it could not have', async () => {
    const taken = Number(new URL(base).port);
    const second = createAdmin({
      address: { host: '127.0.0.1', port: taken },
      token: () => undefined,
      upstreams: () => UPSTREAMS,
      page: pageFiles(),
      views: NOTHING_TO_SEE,
      purge: async () => ({ purged: 'this-replica' }),
      log: { info: () => {}, error: () => {} },
    });
    await assert.rejects(second.listen(), {
      code: 'EADDRINUSE',
      address: `127.0.0.1:${taken}`,
      port: taken,
    });
  });
});

describe('the admin port with a token', () => {
  const { admin, purges } = port('0.0.0.0', CANARY);
  let base = '';
  before(async () => {
    base = (await admin.listen()).replace('0.0.0.0', '127.0.0.1');
  });
  after(() => admin.close());

  test('does nothing and says nothing without it', async () => {
    for (const authorization of [
      '',
      'Bearer',
      'Bearer wrong',
      `Bearer ${CANARY}x`,
      `Bearer ${CANARY.slice(0, -1)}`,
      `Bearer x ${CANARY}`,
      `Basic ${CANARY}`,
      CANARY,
    ]) {
      for (const path of ['/api/purge', '/api/state', '/api/config', '/api/read', '/nothing']) {
        const answer = await ask(base, { path, headers: { Authorization: authorization }, body: ALL });
        assert.deepEqual([answer.status, answer.headers['www-authenticate']], [401, 'Bearer'], authorization);
        assert.ok(!answer.text.includes(CANARY));
      }
    }
    assert.deepEqual(purges, []);
  });

  test('shows the page, in which there is no data, without it', async () => {
    for (const path of ['/', '/page/main.js', '/page/style.css'])
      assert.equal((await ask(base, { path, method: 'GET' })).status, 200, path);
    const headers = { Authorization: `Bearer ${CANARY}` };
    assert.equal((await ask(base, { path: '/api/config', method: 'GET', headers })).status, 200);
  });

  test('purges with it, under any Host, for its own page and no other', async () => {
    const headers = { Authorization: `bearer ${CANARY}`, Host: 'gateway.example:9901' };
    assert.equal((await ask(base, { headers, body: ALL })).status, 200);
    for (const [origin, status] of [
      ['http://gateway.example:9901', 200],
      ['https://gateway.example:9901', 200],
      ['http://gateway.example', 403],
      ['http://gateway.example:9901.evil.example', 403],
      ['http://evil.example', 403],
      ['http://localhost:9901', 403],
      ['null', 403],
    ] as const) {
      const answer = await ask(base, { headers: { ...headers, Origin: origin }, body: ALL });
      assert.equal(answer.status, status, origin);
    }
    purges.length = 1;
    assert.equal(
      (
        await ask(base, {
          headers: { ...headers, Authorization: [`Bearer ${CANARY}`, 'Bearer x'] },
          body: ALL,
        })
      ).status,
      400,
    );
    assert.equal(purges.length, 1);
  });
});

describe('headgate purge', () => {
  const open = port('127.0.0.1', CANARY);
  let number = '';
  before(async () => {
    number = new URL(await open.admin.listen()).port;
  });
  beforeEach(() => {
    open.purges.length = 0;
    open.answers.next = async () => ({ purged: 'all-replicas' });
  });
  after(() => open.admin.close());

  const adminAt = (address: string) => `{ address: "${address}", token: "\${TOKEN}" }`;

  async function purge(options: string, admin = adminAt(`127.0.0.1:${number}`), token = CANARY) {
    const config = `version: 1
admin: ${admin}
upstreams: { docs: { url: "http://127.0.0.1:9/mcp" }, city: { url: "http://127.0.0.1:9/mcp" } }
routes: [{ path: /mcp, upstreams: [docs, city] }]
`;
    const child = spawn(process.execPath, [MAIN, 'purge', '-c', '-', ...options.split(' ').filter(Boolean)], {
      env: { PATH: process.env.PATH, TOKEN: token },
      timeout: 20_000,
      killSignal: 'SIGKILL',
    });
    child.stdin.on('error', () => {}); // a bad command line is told before anything is read
    child.stdin.end(config);
    const [stdout, stderr, code] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      new Promise<number | null>((resolve) => child.on('close', resolve)),
    ]);
    assert.ok(!(stdout + stderr).includes(CANARY), 'the token is shown');
    return { code, stdout, stderr };
  }

  const DONE: readonly (readonly [string, string, readonly PurgeRequest[]])[] = [
    ['', 'everything', [{ kind: 'all' }]],
    ['--all', 'everything', [{ kind: 'all' }]],
    ['--upstream docs', 'docs', [{ kind: 'upstream', upstream: 'docs' }]],
    [
      '--upstream docs --uri docs://x',
      '"docs://x" of docs',
      [{ kind: 'resource', upstream: 'docs', uri: 'docs://x' }],
    ],
    [
      '--method tools/list --upstream city',
      'tools/list of city',
      [{ kind: 'method', upstream: 'city', method: 'tools/list' }],
    ],
    [
      '--uri docs://x',
      '"docs://x" of every upstream',
      [
        { kind: 'resource', upstream: 'docs', uri: 'docs://x' },
        { kind: 'resource', upstream: 'city', uri: 'docs://x' },
      ],
    ],
  ];
  for (const [options, what, requests] of DONE) {
    test(`purge ${options} drops ${what}, says so in a line and ends with 0`, async () => {
      assert.deepEqual(await purge(options), {
        code: 0,
        stdout: `purged ${what}, on all replicas\n`,
        stderr: '',
      });
      assert.deepEqual(open.purges, requests);
    });
  }

  test('says when other replicas were not reached', async () => {
    open.answers.next = async () => ({ purged: 'this-replica' });
    assert.equal((await purge('--all')).stdout, 'purged everything, on this replica alone\n');
  });

  const BAD: readonly (readonly [string, RegExp])[] = [
    ['--all --upstream docs', /--all stands alone/],
    ['--upstream docs --uri docs://x --method tools/list', /--uri or --method, not both/],
    ['--method tools/call', /--method: name one whose answers are cached: server\/discover, /],
    ['--upstream dosc', /--upstream: unknown upstream "dosc"; did you mean "docs"\?/],
  ];
  for (const [options, message] of BAD) {
    test(`purge ${options} asks nobody and ends with 2`, async () => {
      const { code, stdout, stderr } = await purge(options);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, message);
      assert.deepEqual(open.purges, []);
    });
  }

  test('ends with 1 and the reason when the gateway does not do it', async () => {
    open.answers.next = () => Promise.reject(new Error('no'));
    const FAILS = [
      [await purge('--all'), /not purged: 127\.0\.0\.1:\d+ answered 500: "The gateway failed/],
      [await purge('--all', undefined, 'another-token-123'), /answered 401: "The admin token is required"/],
      [await purge('--all', '"127.0.0.1:9"'), /127\.0\.0\.1:9 cannot be reached \(ECONNREFUSED\)/],
      [await purge('--all', 'false'), /not purged: <stdin> says admin: false/],
      [await purge('--all', '"127.0.0.1:0"'), /not purged: <stdin> gives the admin port as 0/],
      [await purge('--all', '"0.0.0.0:9901"'), /beyond loopback it needs a token/],
    ] as const;
    for (const [{ code, stdout, stderr }, reason] of FAILS) {
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, reason);
    }
  });
});
