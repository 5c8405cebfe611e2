/** What of a request reaches an upstream. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { forwardedHeaders, paramHeaders, upstreamIdentity, varyingHeaders } from '../../src/auth/forward.ts';
import { Secret } from '../../src/config/secret.ts';
import type { ProcessConfig } from '../../src/config/types.ts';
import { type Head, readHead } from '../../src/protocol/headers.ts';
import { catalogue, fleet, upstreamConfig } from '../support/scripted.ts';

const head = (...raw: string[]): Head => readHead(raw);
const tenants = upstreamConfig('a', { forwardHeaders: ['x-tenant', 'cookie'] });

describe('R9: a header that is named in Connection does not cross', () => {
  test('whether it is forwarded by name, a parameter or trace context, and however it is spelled', () => {
    const of = head(
      'Connection',
      'close, X-Tenant',
      'connection',
      ' ,mcp-param-Region,\tTRACEPARENT ',
      'x-tenant',
      'T',
      'Mcp-Param-Region',
      'eu',
      'Mcp-Param-Zone',
      'z',
      'traceparent',
      'P',
      'baggage',
      'B',
    );
    assert.deepEqual(forwardedHeaders(tenants, of), { baggage: 'B' });
    assert.deepEqual(paramHeaders(of), { 'mcp-param-zone': 'z' });
  });

  test('nor does it tell answers apart', () => {
    const varying = varyingHeaders(tenants, head('connection', 'x-tenant', 'x-tenant', 'T', 'cookie', 'c=1'));
    assert.deepEqual(varying, [
      ['x-tenant', undefined],
      ['cookie', 'c=1'],
    ]);
  });

  test('nor is it a credential', () => {
    const config = upstreamConfig('a', { auth: { type: 'forward', shared: false } });
    const of = head('connection', 'Authorization', 'authorization', 'Bearer a');
    assert.deepEqual(forwardedHeaders(config, of), {});
  });

  test('on the whole way to an upstream', async () => {
    let got: Readonly<Record<string, string>> | undefined;
    const f = fleet({
      upstreams: [
        {
          name: 'a',
          config: { forwardHeaders: ['x-tenant'] },
          script: (method, params, request) => {
            if (method === 'tools/list') got = request.headers;
            return catalogue({ tools: ['t'] })(method, params, request);
          },
        },
      ],
    });
    await f.ask('tools/list', {}, undefined, {
      connection: 'close, X-Tenant, traceparent',
      'x-tenant': 'T',
      traceparent: 'P',
    });
    assert.deepEqual(got, {});
  });
});

test('R9: without Connection everything configured crosses', () => {
  const of = head('x-tenant', 'T', 'traceparent', 'P');
  assert.deepEqual(forwardedHeaders(tenants, of), { 'x-tenant': 'T', traceparent: 'P' });
});

test('R22: several lines of cookies are one list of cookies, and of other headers one list of values', () => {
  const of = head('cookie', 'a=1', 'Cookie', 'b=2', 'x-tenant', 'T', 'X-Tenant', 'U');
  assert.deepEqual(forwardedHeaders(tenants, of), { cookie: 'a=1; b=2', 'x-tenant': 'T, U' });
});

test('what makes the answers of a process is all that it is started with, and nothing else', () => {
  const identity = (rest: Partial<ProcessConfig>): string =>
    upstreamIdentity(
      upstreamConfig('a', {
        endpoints: [],
        process: { command: 'npx', args: ['a', 'b'], env: {}, cwd: undefined, shared: false, ...rest },
      }),
    );
  const secret = (text: string) => new Secret(text);
  const different = [
    {},
    { command: 'npm' },
    { args: ['a'] },
    { args: ['a', 'b', ''] },
    { args: ['ab'] },
    { cwd: '/' },
    { args: ['a'], env: { b: secret('') } },
    { env: { A: secret('1') } },
    { env: { A: secret('2') } },
    { env: { A: secret('1'), B: secret('2') } },
  ].map(identity);
  assert.equal(new Set(different).size, different.length);
  assert.equal(identity({ shared: true }), identity({}));
  assert.equal(identity({ env: { B: secret('2'), A: secret('1') } }), different.at(-1));
});
