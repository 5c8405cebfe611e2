import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { createAdmission } from '../../src/auth/admission.ts';
import { inspect, lengthProblem, readTarget } from '../../src/edge/transport.ts';
import { readHead } from '../../src/protocol/headers.ts';

const rules = {
  admission: createAdmission({ address: { host: '127.0.0.1', port: 1 }, hosts: [], origins: [] }),
  paths: new Set(['/mcp', '/team/mcp']),
  headerCount: 10,
};

interface Given {
  readonly target?: string;
  readonly httpVersion?: string;
  /** Further header lines. */
  readonly headers?: readonly string[];
  readonly type?: string | undefined;
  readonly host?: string | undefined;
  readonly verb?: 'POST' | 'GET' | 'DELETE';
}

function judge(given: Given = {}) {
  const { target = '/mcp', httpVersion = '1.1', verb = 'POST', headers = [] } = given;
  const host = 'host' in given ? given.host : 'localhost';
  const type = 'type' in given ? given.type : 'application/json';
  const raw = [
    ...(host === undefined ? [] : ['Host', host]),
    ...(type === undefined ? [] : ['Content-Type', type]),
    ...headers,
  ];
  const arrival = { head: readHead(raw), verb, headerCount: raw.length / 2, target, httpVersion } as const;
  const verdict = inspect(arrival, rules);
  return verdict.kind === 'passed'
    ? verdict.route
    : `${verdict.refusal.status} ${verdict.refusal.code} ${verdict.refusal.reason}`;
}

describe('R4: what must come once', () => {
  for (const name of ['host', 'origin', 'authorization', 'content-type', 'content-length']) {
    test(`${name} sent twice is refused, whatever its case and value`, () => {
      const headers = [name, 'localhost', name.toUpperCase(), 'localhost'];
      assert.equal(judge({ headers, ...(name === 'host' && { host: undefined }) }), '400 -32600 parse');
    });
  }

  test('a mirrored header sent twice is left to the classifier', () => {
    assert.equal(judge({ headers: ['Mcp-Method', 'a', 'mcp-method', 'b'] }), '/mcp');
  });
});

describe('R7: media type and codings', () => {
  for (const type of [
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8";x=y',
    'application/json; profile=a',
  ]) {
    test(`${type} passes`, () => assert.equal(judge({ type }), '/mcp'));
  }
  for (const type of [
    undefined,
    '',
    'text/plain',
    'application/jsonp',
    'application/json-rpc',
    'application/json; charset=latin1',
    'application/json; charset=utf-16',
    'multipart/form-data',
  ]) {
    test(`${type} is 415`, () => assert.equal(judge({ type }), '415 -32600 media_type'));
  }

  test('a compressed request is 415, identity passes', () => {
    assert.equal(judge({ headers: ['Content-Encoding', 'gzip'] }), '415 -32600 media_type');
    assert.equal(judge({ headers: ['Content-Encoding', 'Identity'] }), '/mcp');
  });

  test('a transfer coding besides chunked is 501, an unknown expectation 417', () => {
    assert.equal(judge({ headers: ['Transfer-Encoding', 'gzip, chunked'] }), '501 -32600 parse');
    assert.equal(judge({ headers: ['Transfer-Encoding', 'Chunked'] }), '/mcp');
    assert.equal(judge({ headers: ['Expect', 'a-miracle'] }), '417 -32600 parse');
    assert.equal(judge({ headers: ['Expect', '100-Continue'] }), '/mcp');
  });

  test('no Accept is needed', () => {
    assert.equal(judge({ headers: ['Accept', 'text/html'] }), '/mcp');
  });

  test('too many header lines are 431, also repeated ones', () => {
    assert.equal(judge({ headers: Array.from({ length: 8 }, () => ['X', '1']).flat() }), '/mcp');
    assert.equal(judge({ headers: Array.from({ length: 9 }, () => ['X', '1']).flat() }), '431 -32600 parse');
  });

  test('a declared length over the limit is 413 at its edge', () => {
    const head = readHead(['Content-Length', '100']);
    assert.equal(lengthProblem(head, 100), undefined);
    assert.equal(lengthProblem(head, 99)?.status, 413);
    assert.equal(lengthProblem(readHead([]), 0), undefined);
  });
});

describe('R5: the order of the transport', () => {
  const steps: readonly [wrong: Given, expected: string][] = [
    [{ headers: Array.from({ length: 20 }, () => ['X', '1']).flat() }, '431 -32600 parse'],
    [{ headers: ['Authorization', 'a', 'Authorization', 'b'] }, '400 -32600 parse'],
    [{ host: 'evil.example' }, '403 -32600 host'],
    [{ headers: ['Origin', 'http://evil.example'] }, '403 -32600 origin'],
    [{ target: '/nowhere?x' }, '404 -32600 no_route'],
    [{ target: '/mcp?x=1' }, '400 -32600 parse'],
    [{ type: 'text/plain' }, '415 -32600 media_type'],
  ];
  for (const [index, [, expected]] of steps.entries()) {
    test(`step ${index + 1} is told before the later ones: ${expected}`, () => {
      const rest = steps.slice(index).map(([wrong]) => wrong);
      const all = Object.assign({}, ...[...rest].reverse()) as Given;
      assert.equal(judge({ ...all, headers: rest.flatMap((wrong) => wrong.headers ?? []) }), expected);
    });
  }

  test('a request without Host is 400 in HTTP/1.1', () => {
    assert.equal(judge({ host: undefined }), '400 -32600 parse');
    assert.equal(judge({ host: undefined, httpVersion: '1.0' }), '403 -32600 host');
  });
});

describe('R10: request targets', () => {
  test('a path is compared letter by letter', () => {
    for (const target of ['/MCP', '/mcp/', '//mcp', '/%6dcp', '/./mcp', '/x/../mcp', '', 'mcp', '*']) {
      assert.equal(judge({ target }), '404 -32600 no_route', target);
    }
    assert.equal(judge({ target: '/team/mcp' }), '/team/mcp');
  });

  test('an absolute target is understood, and its authority is the host', () => {
    assert.equal(judge({ target: 'http://localhost:8080/mcp', host: 'evil.example' }), '/mcp');
    assert.equal(judge({ target: 'http://evil.example/mcp' }), '403 -32600 host');
    assert.equal(judge({ target: 'http://localhost/mcp?' }), '400 -32600 parse');
  });

  test('any target is read without an exception', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary-ascii' }), (target) => {
        const { path } = readTarget(target);
        return typeof path === 'string' && typeof judge({ target }) === 'string';
      }),
    );
  });
});
