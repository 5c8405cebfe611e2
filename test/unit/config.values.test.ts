// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the configuration's own expansion is what is tested.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { collide, formatAddress, isLoopback, parseAddress } from '../../src/config/address.ts';
import { expand } from '../../src/config/expand.ts';
import { refusedHeader } from '../../src/config/headers.ts';
import { nearest } from '../../src/config/nearest.ts';
import { formatPath } from '../../src/config/problems.ts';
import { formatDuration, formatSize, parseDuration, parseSize } from '../../src/config/units.ts';

describe('durations and sizes', () => {
  test('durations are read in their four units', () => {
    assert.deepEqual(
      ['250ms', '30s', '5m', '24h', '0s'].map(parseDuration),
      [250, 30_000, 300_000, 86_400_000, 0],
    );
  });

  test('sizes are read in their four units', () => {
    assert.deepEqual(['1B', '64KiB', '4MiB', '1GiB'].map(parseSize), [1, 65_536, 4_194_304, 1_073_741_824]);
  });

  test('anything else is neither', () => {
    for (const text of [
      '',
      '5',
      's',
      '1.5s',
      '-1s',
      '1 s',
      '1S',
      '1d',
      '1KB',
      '1kib',
      '٣s',
      '1s\n',
      '9999999999999s',
    ]) {
      assert.equal(parseDuration(text), undefined, text);
      assert.equal(parseSize(text), undefined, text);
    }
  });

  test('what is printed reads as the same amount', () => {
    fc.assert(
      fc.property(fc.nat(10 ** 9), (amount) => {
        assert.equal(parseDuration(formatDuration(amount)), amount);
        assert.equal(parseSize(formatSize(amount)), amount);
      }),
    );
  });

  test('what is printed is in the largest whole unit', () => {
    assert.deepEqual([0, 1, 60_000, 90_000, 7_200_000].map(formatDuration), ['0s', '1ms', '1m', '90s', '2h']);
    assert.deepEqual([0, 1025, 65_536].map(formatSize), ['0B', '1025B', '64KiB']);
  });
});

describe('addresses', () => {
  const GOOD: readonly (readonly [string, string, number])[] = [
    ['127.0.0.1:8080', '127.0.0.1', 8080],
    [':8080', '0.0.0.0', 8080],
    ['[::1]:8080', '::1', 8080],
    ['[0:0:0:0:0:0:0:1]:0', '::1', 0],
    ['localhost:0', 'localhost', 0],
    ['Gateway.internal:65535', 'gateway.internal', 65_535],
  ];
  for (const [text, host, port] of GOOD) {
    test(`${text} is an address`, () => {
      assert.deepEqual(parseAddress(text), { host, port });
      assert.deepEqual(parseAddress(formatAddress({ host, port })), { host, port });
    });
  }

  for (const text of [
    '',
    '8080',
    '127.0.0.1',
    ':',
    'a:b',
    '::1:80',
    '[::1]',
    '[x]:1',
    '1.2.3:80',
    'a..b:1',
    ':65536',
    ' :80',
    'http://a:80',
  ]) {
    test(`${JSON.stringify(text)} is no address`, () => {
      assert.equal(parseAddress(text), undefined);
    });
  }

  test('loopback is what only this machine reaches', () => {
    for (const host of ['127.0.0.1', '127.9.9.9', '::1', 'localhost', 'a.localhost', '::ffff:127.0.0.1']) {
      assert.ok(isLoopback(host), host);
    }
    for (const host of ['0.0.0.0', '::', '10.0.0.1', 'localhost.example', '128.0.0.1', '']) {
      assert.ok(!isLoopback(host), host);
    }
  });

  test('two listeners collide when both would need the same port', () => {
    const collides = (a: string, b: string) =>
      collide(parseAddress(a) ?? assert.fail(), parseAddress(b) ?? assert.fail());
    assert.ok(collides('127.0.0.1:80', '127.0.0.1:80'));
    assert.ok(collides(':80', '127.0.0.1:80'));
    assert.ok(collides('10.0.0.1:80', '[::]:80'));
    assert.ok(collides('localhost:80', '[::1]:80'));
    assert.ok(!collides('127.0.0.1:0', '127.0.0.1:0'));
    assert.ok(!collides('127.0.0.1:80', '127.0.0.1:81'));
    assert.ok(!collides('10.0.0.1:80', '10.0.0.2:80'));
  });
});

describe('expansion', () => {
  const files: Readonly<Record<string, string>> = {
    '/etc/headgate/key': 'k\n\n',
    '/run/secrets/a': 's\r\n',
    '/run/secrets/b': '${X}',
  };
  const context = {
    env: { X: 'x', EMPTY: '', DEEP: '${X}' },
    file: '/etc/headgate/headgate.yaml',
    readFile: (path: string) => files[path] ?? assert.fail('no such file'),
  };
  const text = (source: string) => {
    const result = expand(source, context);
    return result.kind === 'text' ? result.text : result;
  };

  const CASES: readonly (readonly [string, string])[] = [
    ['plain $X {X} $ {X}', 'plain $X {X} $ {X}'],
    ['${X}', 'x'],
    ['a${X}b${X}', 'axbx'],
    ['${EMPTY}', ''],
    ['${EMPTY:-d}', 'd'],
    ['${NOPE:-d e:-f}', 'd e:-f'],
    ['${NOPE:-}', ''],
    ['${DEEP}', '${X}'],
    ['${file:/run/secrets/a}', 's'],
    ['${file:/run/secrets/b}', '${X}'],
    ['${file:key}', 'k\n'],
    ['$${X}', '${X}'],
    ['$$${X}', '$${X}'],
    ['$${${X}', '${x'],
  ];
  for (const [source, expected] of CASES) {
    test(`${source} becomes ${JSON.stringify(expected)}`, () => {
      assert.equal(text(source), expected);
    });
  }

  for (const source of [
    '${NOPE}',
    '${}',
    '${X',
    '${1X}',
    '${X:+y}',
    '${file:}',
    '${file:/nope}',
    '${toString}',
    '${X Y}',
  ]) {
    test(`${source} is a problem`, () => {
      assert.equal(expand(source, context).kind, 'problem');
    });
  }
});

describe('header names of the operator', () => {
  const COMPUTED = [
    'Mcp-Name',
    'mcp-method',
    'MCP-Protocol-Version',
    'Mcp-Param-Region',
    'Content-Type',
    'content-encoding',
    'Host',
    'Accept',
  ];
  const HOP_BY_HOP = [
    'Connection',
    'Keep-Alive',
    'TE',
    'Trailer',
    'Transfer-Encoding',
    'Upgrade',
    'Proxy-Authorization',
  ];
  for (const name of [...COMPUTED, ...HOP_BY_HOP]) {
    test(`R9: ${name} cannot be set or forwarded by the configuration`, () => {
      assert.notEqual(refusedHeader(name), undefined);
    });
  }

  test('headers of an application can', () => {
    for (const name of ['X-Api-Key', 'Authorization', 'Cookie', 'traceparent', 'X-Mcp', 'Contented']) {
      assert.equal(refusedHeader(name), undefined, name);
    }
  });
});

describe('what was probably meant', () => {
  const KEYS = ['upstreams', 'routes', 'maxEntry', 'headerCount', 'url'];
  test('a slip of the pen finds its word', () => {
    assert.deepEqual(
      ['upstream', 'routse', 'max_entry', 'header-count', 'ulr', 'MAXENTRY'].map((word) =>
        nearest(word, KEYS),
      ),
      ['upstreams', 'routes', 'maxEntry', 'headerCount', 'url', 'maxEntry'],
    );
  });

  test('another word finds nothing', () => {
    assert.deepEqual(
      ['zzz', 'timeouts', 'x', ''].map((word) => nearest(word, KEYS)),
      [undefined, undefined, undefined, undefined],
    );
  });
});

test('a path is written as people write it, and cannot forge a line', () => {
  assert.equal(
    formatPath(['routes', 0, 'rules', 12, 'match', 'header', 'mcp-param-x']),
    'routes[0].rules[12].match.header.mcp-param-x',
  );
  assert.equal(formatPath(['a b', 'c\n1:1: d']), '["a b"]["c\\n1:1: d"]');
  assert.equal(formatPath([]), '(file)');
});
