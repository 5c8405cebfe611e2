import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Changes, compareConfigs } from '../../src/config/changes.ts';
import { configOf } from '../support/config.ts';

const SECRET = 'a'.repeat(32);
const BASE = `version: 1
secrets: ["${SECRET}"]
upstreams:
  docs: { url: http://127.0.0.1:3001/mcp, auth: { type: bearer, token: "\${T}" } }
  city: { url: http://127.0.0.1:3002/mcp }
  local: { command: server, env: { KEY: "\${T}" } }
routes:
  - { path: /mcp, upstreams: [docs, city] }
  - { path: /local, upstreams: [local] }
`;

const NOTHING: Changes = {
  upstreams: { added: [], removed: [], reopened: [], retuned: [] },
  routes: { added: [], removed: [], changed: [] },
  settings: [],
};

function compare(after: string, token = 'first') {
  return compareConfigs(configOf(BASE, { T: 'first' }), configOf(after, { T: token }));
}

/** What differs, told as lists that are not empty. */
function told(after: string, token?: string): Record<string, readonly string[]> {
  const compared = compare(after, token);
  if (compared.kind !== 'changed')
    return { [compared.kind]: compared.kind === 'restart' ? compared.paths : [] };
  const { upstreams, routes, settings } = compared.changes;
  const all = {
    ...upstreams,
    ...Object.fromEntries(Object.entries(routes).map(([k, v]) => [`routes ${k}`, v])),
    settings,
  };
  return Object.fromEntries(Object.entries(all).filter(([, names]) => names.length > 0));
}

describe('two configurations', () => {
  test('R44: the same text is the same, secrets, URLs and all', () => {
    assert.deepEqual(compare(BASE), { kind: 'same' });
  });

  const cases: readonly (readonly [
    what: string,
    from: string,
    to: string,
    told: Record<string, readonly string[]>,
  ])[] = [
    ['another address', ':3002/mcp', ':3003/mcp', { reopened: ['city'], 'routes changed': ['/mcp'] }],
    [
      'another patience',
      ':3002/mcp }',
      ':3002/mcp, timeouts: { call: 1m } }',
      { reopened: ['city'], 'routes changed': ['/mcp'] },
    ],
    [
      'another variable of a process',
      'KEY: ',
      'OTHER: ',
      { reopened: ['local'], 'routes changed': ['/local'] },
    ],
    [
      'another trust in what it says',
      ':3002/mcp }',
      ':3002/mcp, cache: { scope: private } }',
      { retuned: ['city'], 'routes changed': ['/mcp'] },
    ],
    [
      'a claim',
      ':3002/mcp }',
      ':3002/mcp, resources: ["city://**"] }',
      { retuned: ['city'], 'routes changed': ['/mcp'] },
    ],
    [
      'whether it is listened to',
      ':3002/mcp }',
      ':3002/mcp, subscribe: false }',
      { retuned: ['city'], 'routes changed': ['/mcp'] },
    ],
    ['another order of precedence', '[docs, city]', '[city, docs]', { 'routes changed': ['/mcp'] }],
    ['another path', '/local', '/here', { 'routes added': ['/here'], 'routes removed': ['/local'] }],
    [
      'a name for the same server',
      'city',
      'town',
      { added: ['town'], removed: ['city'], 'routes changed': ['/mcp'] },
    ],
    ['a level', 'version: 1', 'version: 1\nlog: { level: debug }', { settings: ['log'] }],
    [
      'hosts and origins',
      'version: 1',
      'version: 1\nlisten: { hosts: [a.example], origins: ["https://a.example"] }',
      { settings: ['listen.hosts', 'listen.origins'] },
    ],
    [
      'who a caller is',
      'version: 1',
      'version: 1\ncache: { partition: { headers: [X-Tenant] } }',
      {
        reopened: ['local'],
        'routes changed': ['/mcp', '/local'],
        settings: ['cache.partition.headers'],
      },
    ],
    [
      'an admin token',
      'version: 1',
      'version: 1\nadmin: { address: "127.0.0.1:9901", token: "0123456789abcdef0123456789abcdef" }',
      { settings: ['admin.token'] },
    ],
  ];
  for (const [what, from, to, expected] of cases)
    test(what, () => {
      assert.ok(BASE.includes(from));
      assert.deepEqual(told(BASE.replaceAll(from, to)), expected);
    });

  test('a credential that came from elsewhere and is another one', () => {
    assert.deepEqual(told(BASE, 'second'), {
      reopened: ['docs', 'local'],
      'routes changed': ['/mcp', '/local'],
    });
  });

  test('another order in the file changes nothing but what people see', () => {
    const lines = BASE.split('\n');
    const at = lines.findIndex((line) => line.startsWith('  docs'));
    const [docs = ''] = lines.splice(at, 1);
    lines.splice(at + 1, 0, docs);
    assert.deepEqual(compare(lines.join('\n')), { kind: 'changed', changes: NOTHING });
  });

  test('R44: what holds for the life of a process is named, whatever else has changed', () => {
    const after = BASE.replace(SECRET, 'b'.repeat(32)).replace(
      'version: 1',
      `version: 1
listen: { address: "127.0.0.1:8081", limits: { headers: 16KiB, requestTimeout: 5s, bodyIdle: 5s } }
status: 127.0.0.1:9912
admin: false
cache: { memory: { size: 32MiB }, redis: { url: "redis://127.0.0.1:6379/0" } }`,
    );
    assert.deepEqual(told(after), {
      restart: [
        'secrets',
        'listen.address',
        'listen.limits.headers',
        'listen.limits.requestTimeout',
        'listen.limits.bodyIdle',
        'status',
        'admin',
        'cache.memory',
        'cache.redis',
      ],
    });
  });
});
