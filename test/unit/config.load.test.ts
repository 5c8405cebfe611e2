// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the configuration's own expansion is what is tested.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { displayArgs, displayUrl, secretsOf } from '../../src/config/display.ts';
import { fromUrls, type LoadResult, loadConfig } from '../../src/config/load.ts';
import { printConfig } from '../../src/config/print.ts';
import { CANARY, configOf, loadText } from '../support/config.ts';

const FILE = `version: 1
listen: 127.0.0.1:8080
upstreams: { docs: { url: "http://127.0.0.1:3001/mcp" } }
routes: [{ path: /mcp, upstreams: [docs] }]
`;

function messages(result: LoadResult): readonly string[] {
  return result.kind === 'invalid' ? result.problems.map(({ path, message }) => `${path}: ${message}`) : [];
}

describe('loading', () => {
  test('a file that cannot be read is a problem, not an exception', () => {
    const result = loadConfig('gone.yaml', {}, () => {
      throw Object.assign(new Error('ENOENT: secret path'), { code: 'ENOENT' });
    });
    assert.deepEqual(messages(result), ['(file): make the file readable: no such file']);
  });

  test('a number or a boolean may come out of the environment', () => {
    const config = configOf(`${FILE}log: { access: "\${A}" }\n`, { A: 'false' });
    assert.equal(config.log.access, false);
  });

  test('a number in quotes is still text', () => {
    const result = loadText(FILE.replace('"http://127.0.0.1:3001/mcp"', 'http://a/, connections: "8"'));
    assert.deepEqual(messages(result), ['upstreams.docs.connections: write a whole number from 1 to 10000']);
  });

  test('an entry is never larger than a cache that was only made small', () => {
    const config = configOf(`${FILE}cache: { memory: { size: 1MiB } }\n`);
    assert.equal(config.cache.memory.maxEntryBytes, 1_048_576);
  });

  test('addresses of the command line win over the file, and keep the rest of it', () => {
    const text = FILE.replace('127.0.0.1:8080', '{ address: "127.0.0.1:8080", hosts: [mcp.example] }');
    const result = loadConfig('f', {}, () => text, {
      listen: { host: '127.0.0.1', port: 0 },
      status: { host: '127.0.0.1', port: 0 },
      admin: false,
    });
    assert.ok(result.kind === 'ok');
    assert.deepEqual(result.config.listen.address, { host: '127.0.0.1', port: 0 });
    assert.deepEqual(result.config.listen.hosts, ['mcp.example']);
    assert.equal(result.config.status.port, 0);
    assert.equal(result.config.admin, false);
  });

  test('an admin address of the command line keeps the token of the file', () => {
    const text = `${FILE}admin: { address: ":9901", token: "${CANARY}" }\n`;
    const result = loadConfig('f', {}, () => text, { admin: { host: '::', port: 1 } });
    assert.ok(result.kind === 'ok' && result.config.admin !== false);
    assert.deepEqual(result.config.admin.address, { host: '::', port: 1 });
    assert.equal(result.config.admin.token?.reveal(), CANARY);
    const off = loadConfig('f', {}, () => text, { admin: false });
    assert.ok(off.kind === 'ok' && off.config.admin === false);
  });

  test('addresses of the command line are checked like those of the file', () => {
    const result = loadConfig('f', {}, () => FILE, {
      listen: { host: '127.0.0.1', port: 9902 },
      admin: { host: '::', port: 1 },
    });
    assert.equal(messages(result).length, 2);
  });

  test('problems come in the order of the file, warnings among them', () => {
    const result = loadText(
      'version: 2\nupstreams: { a: { url: "http://a/" }, b: { url: x } }\nroutes: [{ path: /, upstreams: [a] }]\nzzz: 1\n',
    );
    assert.ok(result.kind === 'invalid');
    assert.deepEqual(
      result.problems.map(({ line, path }) => [line, path]),
      [
        [1, 'version'],
        [2, 'upstreams.b'],
        [2, 'upstreams.b.url'],
        [4, 'zzz'],
      ],
    );
  });

  for (const name of ['Mcp-Name', 'Content-Type', 'host', 'Transfer-Encoding']) {
    test(`R9: a static header named ${name} is refused when the configuration is loaded`, () => {
      const auth = `auth: { type: header, name: ${name}, value: x }`;
      const [message] = messages(loadText(FILE.replace('"http://127.0.0.1:3001/mcp"', `http://a/, ${auth}`)));
      assert.match(message ?? '', /^upstreams\.docs\.auth\.name: remove it: /);
    });
  }

  test('text that YAML reads as a number is asked for in quotes', () => {
    const auth = 'auth: { type: bearer, token: 0123 }';
    const result = loadText(FILE.replace('"http://127.0.0.1:3001/mcp"', `http://a/, ${auth}`));
    assert.match(messages(result)[0] ?? '', /^upstreams\.docs\.auth\.token: put it in quotes/);
  });

  test('a secret in any text is shown in no problem', () => {
    const places = [
      'secrets: "${TOKEN}"',
      'secrets: ["${TOKEN}x", "${SHORT}"]',
      'listen: "${TOKEN}"',
      'listen: { hosts: ["${TOKEN} x"], origins: ["${TOKEN}"], trustedProxies: ["${TOKEN}"] }',
      'admin: "${TOKEN}"',
      'admin: { address: "${TOKEN}", token: "${TOKEN} x" }',
      'admin: { address: ":1", token: "${SHORT}" }',
      'log: { level: "${TOKEN}", access: "${TOKEN}" }',
      'shutdown: { delay: "${TOKEN}" }',
      'cache: { partition: { headers: ["${TOKEN} x"] }, memory: "${TOKEN}" }',
      'cache: { redis: { url: "http://:${TOKEN}@h" } }',
      'cache: { redis: { url: "redis://${TOKEN}@h", keyPrefix: "${TOKEN} x" } }',
      'cache: { redis: { url: "redis://:${TOKEN}@h/x", sentinel: { name: "${TOKEN} x", nodes: ["${TOKEN}"] } } }',
      'cache: { redis: { cluster: { nodes: ["${TOKEN}"], username: "${TOKEN} x", password: ["${TOKEN}"] } } }',
      'upstreams: { docs: { url: "http://u:${TOKEN}@h/", auth: { type: "${TOKEN}" }, tools: "${TOKEN}" } }',
      'upstreams: { docs: { url: "${TOKEN}", auth: { type: header, name: "${TOKEN} x", value: "${TOKEN}\\n" } } }',
      'routes: [{ path: "${TOKEN}", upstreams: ["${TOKEN}"], rules: [{ match: { method: "${TOKEN} x" }, upstream: "${TOKEN}" }] }]',
      `secrets: "${CANARY}`,
      `secrets: { ${CANARY}`,
      `secrets: ["x" ${CANARY}]`,
      `secrets: @${CANARY}`,
      `listen: ${CANARY}: ${CANARY}: x`,
      `listen: "${CANARY}"\nadmin: ["${CANARY}"]`,
    ];
    for (const place of places) {
      const key = place.slice(0, place.indexOf(':'));
      const text = FILE.split('\n')
        .filter((line) => !line.startsWith(`${key}:`))
        .join('\n');
      const result = loadText(`${text}${place}\n`);
      assert.equal(result.kind, 'invalid', place);
      assert.ok(!JSON.stringify(result).includes(CANARY), place);
      assert.ok(!JSON.stringify(result).includes('5d41402'), place);
    }
  });
});

describe('the admin port', () => {
  const admin = (value: string) => loadText(`${FILE}admin: ${value}\n`);
  const MEND =
    'admin: write { address: "0.0.0.0:9901", token: "${file:/run/secrets/headgate-admin}" }, or an address such as 127.0.0.1:9901: beyond loopback it needs a token';

  for (const value of [
    '0.0.0.0:9901',
    ':9901',
    '"[::]:9901"',
    'admin.example:9901',
    '{ address: ":9901" }',
  ]) {
    test(`${value} beyond loopback is refused without a token`, () => {
      assert.deepEqual(messages(admin(value)), [MEND]);
    });
  }

  test('with a token may be anywhere', () => {
    const config = configOf(`${FILE}admin: { address: ":9901", token: "\${TOKEN}" }\n`);
    assert.ok(config.admin !== false);
    assert.equal(config.admin.token?.reveal(), CANARY);
    assert.ok(!JSON.stringify(config.admin).includes(CANARY));
  });

  test('on loopback may have a token, and needs none', () => {
    for (const [value, has] of [
      ['127.0.0.1:9901', false],
      ['localhost:9901', false],
      ['{}', false],
      ['{ token: "${TOKEN}" }', true],
    ] as const) {
      const config = configOf(`${FILE}admin: ${value}\n`);
      assert.ok(config.admin !== false, value);
      assert.equal(config.admin.token !== undefined, has, value);
      assert.equal(config.admin.address.port, 9901);
    }
  });

  test('with a token that is no good has one problem, not two', () => {
    const BAD = [
      ['too short', '${SHORT}', /at least 16 bytes/],
      ['in two parts', 'Bearer 0123456789abcdef', /without spaces/],
      ['with a line break', '0123456789abcdef\\n0', /visible ASCII/],
      ['empty', '${EMPTY}', /empty: write the token/],
      ['printed', '[redacted]', /write the real value/],
    ] as const;
    for (const [what, token, mend] of BAD) {
      const found = messages(admin(`{ address: ":9901", token: "${token}" }`));
      assert.equal(found.length, 1, what);
      assert.match(found[0] ?? '', /^admin\.token: /);
      assert.match(found[0] ?? '', mend);
    }
  });

  test('takes no other port’s place', () => {
    assert.deepEqual(messages(admin('{ address: "127.0.0.1:9902" }')), [
      'admin: choose another port: status has 9902 already',
    ]);
  });
});

describe('the URL of Redis', () => {
  const problemOf = (url: string): string | undefined =>
    messages(
      loadText(`${FILE}secrets: ["\${TOKEN}"]\ncache: { redis: { url: ${JSON.stringify(url)} } }\n`),
    )[0];

  for (const url of [
    'redis://127.0.0.1',
    'redis://redis:6379',
    'redis://redis_0:6379/',
    'REDISS://redis.example/15',
    'redis://[::1]:6379/0',
    'redis://:pass@redis',
    'redis://:p@ss:word@redis',
    'redis://user:p%40ss%2F%25@redis:6379/65535',
  ]) {
    test(`${url} is fine`, () => assert.equal(problemOf(url), undefined));
  }

  const BAD: readonly (readonly [string, RegExp])[] = [
    ['http://redis:6379', /write a URL such as redis:/],
    ['redis:6379', /write a URL such as redis:/],
    ['redis', /write a URL such as redis:/],
    ['127.0.0.1:6379', /write a URL such as redis:/],
    ['redis+sentinel://redis/0', /write a URL such as redis:/],
    ['/run/redis.sock', /write a URL such as redis:/],
    ['redis://', /name the host/],
    ['redis:///0', /name the host/],
    ['redis://:6379', /name the host/],
    ['redis://:pass@/0', /name the host/],
    ['redis://redis:0', /port of the server/],
    ['redis://redis:65536', /redis:\/\/user:password@host:port\/db/],
    ['redis://300.1.1.1', /redis:\/\/user:password@host:port\/db/],
    ['redis://redis,redis-1', /redis:\/\/user:password@host:port\/db/],
    ['redis://redis:6379/cache', /number of the database/],
    ['redis://redis:6379/-1', /number of the database/],
    ['redis://redis:6379/65536', /number of the database/],
    ['redis://redis:6379/0/', /number of the database/],
    ['redis://redis:6379?db=1', /remove the query/],
    ['redis://redis:6379/0?family=6', /remove the query/],
    ['redis://:pa#ss@redis', /%23/],
    ['redis://:pa/ss@redis', /%2F/],
    ['redis://:pa?ss@redis', /%3F/],
    ['redis://:pa ss@redis', /%20/],
    ['redis://:pa%ss@redis', /%25/],
    ['redis://password@redis', /behind a colon/],
  ];
  for (const [url, mend] of BAD) {
    test(`${url} is refused with what to write`, () => {
      const problem = problemOf(url) ?? assert.fail();
      assert.match(problem, /^cache\.redis\.url: /);
      assert.match(problem, mend);
    });
  }
});

describe('the cache in Redis', () => {
  const redis = (rest: string, top = 'secrets: ["${TOKEN}"]') =>
    loadText(`${FILE}${top}\ncache: { redis: { url: "redis://redis", ${rest} } }\n`);

  test('lets no command take longer than connecting, whichever of the two was written', () => {
    assert.deepEqual(messages(redis('timeouts: { command: 3s }')), [
      'cache.redis.timeouts.command: write no more than timeouts.connect',
    ]);
    assert.deepEqual(messages(redis('timeouts: { connect: 20ms }')), [
      'cache.redis.timeouts.connect: write no less than timeouts.command (25ms)',
    ]);
    assert.equal(redis('timeouts: { connect: 25ms }').kind, 'ok');
  });

  for (const prefix of ['{a}', 'a b', 'a\\n', 'caché:']) {
    test(`takes no prefix "${prefix}"`, () => {
      assert.match(messages(redis(`keyPrefix: "${prefix}"`))[0] ?? '', /^cache\.redis\.keyPrefix: write /);
    });
  }

  test('never holds what the memory in front of it does not', () => {
    const small = configOf(`${FILE}cache: { memory: { size: 64KiB }, redis: { url: "redis://redis" } }\n`);
    assert.equal(small.cache.redis?.maxEntryBytes, 65_536);
  });

  test('without secrets is a warning: private answers do not go there', () => {
    for (const top of ['', 'secrets: []']) {
      const result = redis('', top);
      assert.ok(result.kind === 'ok');
      assert.deepEqual(
        result.warnings.map(({ path }) => path),
        ['cache.redis'],
      );
      assert.match(result.warnings[0]?.message ?? '', /private answers are not written to Redis/);
    }
    const bad = redis('', 'secrets: ["short"]');
    assert.ok(bad.kind === 'invalid' && bad.problems.length === 1, 'one problem is enough');
  });
});

describe('a configuration from URLs', () => {
  test('is one /mcp route over all of them, named by host and port, as given', () => {
    const result = fromUrls([
      'http://127.0.0.1:3001/mcp',
      'https://Docs.example',
      'http://[::1]:3003/a?b=c',
      'http://127.0.0.1:3001/other',
    ]);
    assert.ok(result.kind === 'ok');
    assert.deepEqual(
      [...result.config.upstreams].map(([name, { endpoints }]) => [name, String(endpoints)]),
      [
        ['127-0-0-1-3001', 'http://127.0.0.1:3001/mcp'],
        ['docs-example', 'https://docs.example/'],
        ['1-3003', 'http://[::1]:3003/a?b=c'],
        ['127-0-0-1-3001-2', 'http://127.0.0.1:3001/other'],
      ],
    );
    assert.deepEqual(
      result.config.routes.map(({ path, upstreams }) => [path, upstreams.length]),
      [['/mcp', 4]],
    );
    assert.deepEqual(result.warnings, []);
  });

  test('names the URL that is none, without showing it', () => {
    const result = fromUrls(['http://a/', `http://user:${CANARY}@b/`, CANARY]);
    assert.ok(result.kind === 'invalid');
    assert.deepEqual(
      result.problems.map(({ path, line }) => [path, line]),
      [
        ['URL 2', 0],
        ['URL 3', 0],
      ],
    );
    assert.ok(!JSON.stringify(result).includes(CANARY));
  });
});

describe('an upstream that is a process', () => {
  const shell = (rest: string) =>
    configOf(FILE.replace('url: "http://127.0.0.1:3001/mcp"', rest)).upstreams.get('docs') ?? assert.fail();

  test('has no endpoint, and what it is started with', () => {
    const { endpoints, process, protocol } = shell('command: npx, args: [-y, a, a], env: { A: "${TOKEN}" }');
    assert.deepEqual([endpoints, protocol], [[], 'auto']);
    assert.deepEqual(
      { ...process, env: {} },
      { command: 'npx', args: ['-y', 'a', 'a'], env: {}, cwd: undefined, shared: false },
    );
    assert.equal(process?.env.A?.reveal(), CANARY);
    assert.ok(!JSON.stringify(process).includes(CANARY));
    assert.equal(shell('url: "http://a/"').process, undefined);
  });

  test('is shown without the values of its variables, and without arguments that may be secrets', () => {
    const { process = assert.fail() } = shell(
      'command: npx, args: [-y, "--key=${TOKEN}", plain, "${file:./api-key}"], env: { A: "${TOKEN}", B: plain }',
    );
    assert.deepEqual(displayArgs(process), ['-y', '[redacted]', 'plain', '[redacted]']);
    const printed = printConfig(
      configOf(
        FILE.replace(
          'url: "http://127.0.0.1:3001/mcp"',
          'command: npx, args: ["${TOKEN}", plain], env: { A: "${TOKEN}", B: text }',
        ),
      ),
    );
    assert.ok(!printed.includes(CANARY) && !printed.includes('text'));
    assert.match(
      printed,
      /args:\n\s+- "\[redacted\]"\n\s+- plain\n\s+env:\n\s+A: "\[redacted\]"\n\s+B: "\[redacted\]"\n/,
    );
    assert.deepEqual(secretsOf(process), [CANARY, 'plain', `--key=${CANARY}`, CANARY]);
  });

  test('without secrets is printed as something that loads again to the same', () => {
    const printed = printConfig(
      configOf(
        FILE.replace(
          'url: "http://127.0.0.1:3001/mcp"',
          'command: npx, args: ["", -v, -v], cwd: /srv, protocol: legacy, shared: true',
        ),
      ),
    );
    assert.equal(printConfig(configOf(printed)), printed);
  });
});

describe('showing the URL of an upstream', () => {
  const shown = (url: string) => {
    const [upstream] = configOf(FILE.replace('http://127.0.0.1:3001/mcp', url)).upstreams.values();
    return displayUrl(upstream?.endpoints[0] ?? assert.fail());
  };
  test('shows what is no secret', () => {
    assert.equal(shown('http://${HOST}/mcp'), 'http://127.0.0.1:3001/mcp');
  });
  test('hides the values of a query', () => {
    assert.equal(shown('http://a/mcp?key=${TOKEN}&key=x&b c=d'), 'http://a/[redacted]');
    assert.equal(shown('http://a/mcp?key=x&b%20c=d'), 'http://a/mcp?key=[redacted]&b%20c=[redacted]');
  });
  test('hides a path that came out of the environment or a file', () => {
    assert.equal(shown('https://a/s/${TOKEN}/mcp'), 'https://a/[redacted]');
  });
});

describe('ten thousand rules and claims', () => {
  test('are looked through within bounds', () => {
    const many = (line: (index: number) => string) =>
      Array.from({ length: 9_999 }, (_, index) => line(index)).join('\n');
    const text = [
      'version: 1',
      'upstreams:',
      `  docs:\n    url: http://docs:3000/mcp\n    resources:\n${many((index) => `      - docs://**/${index}`)}`,
      `  city:\n    url: http://city:3000/mcp\n    resources:\n${many((index) => `      - docs://${index}/*/x`)}`,
      `routes:\n  - path: /mcp\n    upstreams: [docs, city]\n    rules:`,
      many((index) => `      - { match: { method: tools/call, name: "*_${index}" }, upstream: docs }`),
    ].join('\n');
    const startedAt = performance.now();
    const result = loadConfig('many', {}, () => text);
    assert.deepEqual(result.kind === 'ok' && result.warnings, []);
    const tookMs = performance.now() - startedAt;
    assert.ok(tookMs < 20_000, `${tookMs} ms`);
  });
});
