import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { createAdmission } from '../../src/auth/admission.ts';
import { createCors } from '../../src/edge/cors.ts';
import { configOf } from '../support/config.ts';

const ORIGIN = 'https://app.example';
const config = configOf(`
version: 1
listen: { address: 127.0.0.1:8080, origins: [${ORIGIN}] }
upstreams:
  docs: { url: http://127.0.0.1:3001/mcp, forwardHeaders: [X-Tenant] }
routes: [{ path: /mcp, upstreams: [docs] }]
cache: { partition: { headers: [X-Team] } }
`);
const cors = createCors(config, createAdmission(config.listen));

function record(flat: readonly string[]): Record<string, string> {
  const pairs: [string, string][] = [];
  for (let i = 0; i < flat.length; i += 2) pairs.push([flat[i] as string, flat[i + 1] as string]);
  return Object.fromEntries(pairs);
}

function allowed(requested: string | undefined): readonly string[] {
  return record(cors.preflight(ORIGIN, requested))['Access-Control-Allow-Headers']?.split(', ') ?? [];
}

describe('R12: cross-origin answers', () => {
  test('a preflight allows every header of the protocol, in any case', () => {
    const names =
      'authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, traceparent, tracestate, baggage, last-event-id, mcp-session-id, x-api-key';
    assert.deepEqual(allowed(names.toUpperCase()), names.split(', '));
  });

  test('a preflight allows Mcp-Param-* by reflection, and no name that is none', () => {
    assert.deepEqual(allowed('Mcp-Param-Region,mcp-param-a_b'), ['mcp-param-region', 'mcp-param-a_b']);
    assert.deepEqual(allowed('mcp-param-, mcp-param-a b, mcp-params-x'), []);
  });

  test('a preflight allows what the configuration forwards or tells callers apart by', () => {
    assert.deepEqual(allowed('x-tenant, x-team, x-other'), ['x-tenant', 'x-team']);
  });

  test('a preflight names the method, how long it holds, and what it depends on', () => {
    assert.deepEqual(record(cors.preflight(ORIGIN, undefined)), {
      'Access-Control-Allow-Origin': ORIGIN,
      Vary: 'Origin, Access-Control-Request-Headers',
      'Access-Control-Allow-Methods': 'POST, GET, DELETE',
      'Access-Control-Max-Age': '7200',
    });
  });

  test('an answer exposes what the gateway says, to that origin alone', () => {
    assert.deepEqual(record(cors.answer(ORIGIN)), {
      'Access-Control-Allow-Origin': ORIGIN,
      Vary: 'Origin',
      'Access-Control-Expose-Headers':
        'Cache-Status, Age, WWW-Authenticate, Retry-After, Proxy-Status, Mcp-Session-Id',
    });
    assert.deepEqual(cors.answer(undefined), []);
    assert.deepEqual(cors.answer('https://evil.example'), []);
  });

  test('whatever is asked for, no wildcard and nothing that breaks a header comes back', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary-ascii' }), (requested) => {
        const values = cors.preflight(ORIGIN, requested);
        return values.every((value) => value !== '*' && !/[\r\n]/.test(value));
      }),
    );
  });
});
