import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createAdmission } from '../../src/auth/admission.ts';

const LOOPBACK = { address: { host: '127.0.0.1', port: 8080 }, hosts: [], origins: [] };
const OPEN = { ...LOOPBACK, address: { host: '0.0.0.0', port: 8080 } };

describe('R5: Host', () => {
  const cases: readonly [
    name: string,
    listen: Parameters<typeof createAdmission>[0],
    passes: readonly string[],
    refused: readonly string[],
  ][] = [
    [
      'bound to loopback, loopback names pass with any port',
      LOOPBACK,
      ['localhost', 'LOCALHOST:1', '127.0.0.1:8080', '127.0.0.1:', '[::1]', '[::1]:9'],
      [
        'evil.example',
        'localhost.evil.example',
        '127.0.0.2',
        'localhost, evil.example',
        'user@localhost',
        '[::1',
        '',
        ':8080',
        'localhost:80:80',
      ],
    ],
    [
      'bound to ::1 likewise',
      { ...LOOPBACK, address: { host: '::1', port: 1 } },
      ['localhost:1', '[::1]:2'],
      ['evil.example'],
    ],
    [
      'bound to another loopback address, that passes too',
      { ...LOOPBACK, address: { host: '127.0.0.5', port: 1 } },
      ['127.0.0.5:1', 'localhost'],
      ['127.0.0.6'],
    ],
    ['bound elsewhere, any host passes', OPEN, ['evil.example', 'mcp.example:8443'], []],
    [
      'a configured list is the whole list',
      { ...LOOPBACK, hosts: ['mcp.example', 'mcp.example2:8443'] },
      ['mcp.example', 'MCP.example:1', 'mcp.example2:8443'],
      ['localhost', 'mcp.example2', 'mcp.example2:1', 'mcp.example.evil.example'],
    ],
    [
      'a configured list also counts where any would pass',
      { ...OPEN, hosts: ['mcp.example'] },
      ['mcp.example'],
      ['10.0.0.1'],
    ],
  ];
  for (const [name, listen, passes, refused] of cases) {
    test(name, () => {
      const { host } = createAdmission(listen);
      for (const value of passes) assert.equal(host(value), true, value);
      for (const value of refused) assert.equal(host(value), false, value);
    });
  }

  test('a request without Host passes only where any does', () => {
    assert.equal(createAdmission(LOOPBACK).host(undefined), false);
    assert.equal(createAdmission(OPEN).host(undefined), true);
  });
});

describe('R5: Origin', () => {
  test('a request without Origin always passes', () => {
    assert.equal(createAdmission(LOOPBACK).origin(undefined), true);
    assert.equal(createAdmission({ ...OPEN, origins: ['https://a.example'] }).origin(undefined), true);
  });

  test('bound to loopback, loopback origins pass', () => {
    const { origin } = createAdmission(LOOPBACK);
    for (const value of [
      'http://localhost',
      'https://localhost:1',
      'http://127.0.0.1:5173',
      'http://[::1]:3',
    ]) {
      assert.equal(origin(value), true, value);
    }
    for (const value of [
      'null',
      '',
      'http://evil.example',
      'http://localhost.evil.example',
      'http://localhost:80/',
      'file://',
      'HTTP://localhost',
    ]) {
      assert.equal(origin(value), false, value);
    }
  });

  test('bound elsewhere, none passes', () => {
    assert.equal(createAdmission(OPEN).origin('http://localhost:3000'), false);
    assert.equal(createAdmission(OPEN).origin('https://mcp.example'), false);
  });

  test('a configured list is exact, and the whole list', () => {
    const { origin } = createAdmission({ ...LOOPBACK, origins: ['https://app.example'] });
    assert.equal(origin('https://app.example'), true);
    for (const value of [
      'http://app.example',
      'https://app.example:8443',
      'https://APP.example',
      'http://localhost',
    ]) {
      assert.equal(origin(value), false, value);
    }
  });
});
