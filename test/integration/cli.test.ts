/** The commands as an operator meets them: exit codes, and what stands on which stream. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { TEN_LINE_EXAMPLE } from '../../src/config/example.ts';
import { jsonSchemaText } from '../../src/config/schema-json.ts';
import { CANARY } from '../support/config.ts';

/** A gateway on free ports, in front of nothing. */
const FREE = [
  '--listen',
  '127.0.0.1:0',
  '--status',
  '127.0.0.1:0',
  '--admin',
  'false',
  'http://127.0.0.1:9/mcp',
];

const MAIN = join(process.cwd(), 'dist/main.js');
const FOLDER = mkdtempSync(join(tmpdir(), 'headgate-cli-'));
after(() => rmSync(FOLDER, { recursive: true }));

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the program in an empty folder; `onOutput` sees all output so far and may send signals. */
async function headgate(
  args: readonly string[],
  {
    input = '',
    env = {},
    stdout,
    onOutput,
  }: {
    input?: string;
    /** An open file that takes standard output; nothing of it is returned then. */
    stdout?: number;
    env?: Record<string, string>;
    onOutput?: (text: string, kill: (signal: NodeJS.Signals) => void) => void;
  } = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: FOLDER,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['pipe', stdout ?? 'pipe', 'pipe'],
    timeout: 20_000,
    killSignal: 'SIGKILL',
  });
  const said = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream]?.setEncoding('utf8').on('data', (text: string) => {
      said[stream] += text;
      onOutput?.(said.stdout + said.stderr, (signal) => child.kill(signal));
    });
  }
  child.stdin?.on('error', () => {}); // it may end without reading
  child.stdin?.end(input);
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { code, ...said };
}

function file(name: string, text: string): string {
  writeFileSync(join(FOLDER, name), text);
  return name;
}

async function listening(server: Server, use: (port: number) => Promise<void>): Promise<void> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await use((server.address() as AddressInfo).port);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const ofPort =
  (status: number): RequestListener =>
  (_, response) =>
    void response.writeHead(status).end();

describe('about the program', () => {
  test('--version and -V print the version on standard output', async () => {
    for (const option of ['--version', '-V']) {
      const { code, stdout, stderr } = await headgate([option]);
      assert.deepEqual([code, stderr], [0, '']);
      assert.match(stdout, /^headgate \d+\.\d+\.\d+/);
    }
  });

  test('--help prints help on standard output', async () => {
    const { code, stdout, stderr } = await headgate(['serve', '--help']);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /--listen ADDRESS/);
  });

  test('a bad command line is explained on standard error and ends with 2', async () => {
    const { code, stdout, stderr } = await headgate(['serve', '--lisen', ':0']);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /did you mean "--listen"/);
    assert.ok(!stderr.includes('\u001b'), 'no colour where there is no terminal');
  });

  test('schema prints the JSON Schema', async () => {
    assert.deepEqual(await headgate(['schema']), { code: 0, stdout: jsonSchemaText(), stderr: '' });
  });
});

describe('validate', () => {
  test('a good file ends with 0 and a word on standard output', async () => {
    const { code, stdout, stderr } = await headgate(['validate', '-c', file('good.yaml', TEN_LINE_EXAMPLE)]);
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(stdout, 'good.yaml: fine (2 upstreams, 1 route, 0 warnings)\n');
  });

  test('a bad file ends with 1, every problem with file, line, column and path on standard error', async () => {
    const bad = file('bad.yaml', 'version: 1\nupstream:\n  docs: {}\nroutes: []\n');
    const { code, stdout, stderr } = await headgate(['validate', '-c', bad]);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^bad\.yaml:2:1: upstream: unknown key "upstream"; did you mean "upstreams"\?$/m);
    assert.match(stderr, /^bad\.yaml:4:9: routes: write at least one route/m);
    assert.match(stderr, /3 problems in bad\.yaml/);
  });

  test('a file that is not there ends with 1', async () => {
    const { code, stderr } = await headgate(['validate', '-c', 'gone.yaml']);
    assert.equal(code, 1);
    assert.match(stderr, /^gone\.yaml: \(file\): make the file readable: no such file$/m);
  });

  test('- is standard input', async () => {
    const good = await headgate(['validate', '-c', '-'], { input: TEN_LINE_EXAMPLE });
    assert.equal(good.code, 0);
    const bad = await headgate(['validate', '-c', '-'], { input: 'version: 2\n' });
    assert.equal(bad.code, 1);
    assert.match(bad.stderr, /^<stdin>:1:10: version: write version: 1$/m);
  });

  test('./headgate.yaml is the default file', async () => {
    file('headgate.yaml', TEN_LINE_EXAMPLE);
    const { code, stdout } = await headgate(['validate']);
    rmSync(join(FOLDER, 'headgate.yaml'));
    assert.equal(code, 0);
    assert.match(stdout, /^\.\/headgate\.yaml: fine/);
  });

  test('warnings are printed and fail nothing', async () => {
    const { code, stdout, stderr } = await headgate(['validate', '-c', '-'], {
      input: TEN_LINE_EXAMPLE.replace('listen: 127.0.0.1', 'listen: 0.0.0.0'),
    });
    assert.equal(code, 0);
    assert.match(stdout, /1 warning\)/);
    assert.match(stderr, /^<stdin>:3:9: listen: warning: 0\.0\.0\.0:8080 is reachable/);
  });

  test('a file of other bytes than UTF-8, a folder and an endless file are refused', async () => {
    writeFileSync(join(FOLDER, 'latin1.yaml'), Buffer.from('version: \xe4', 'latin1'));
    for (const path of ['latin1.yaml', '.', '/dev/zero']) {
      const { code, stderr } = await headgate(['validate', '-c', path]);
      assert.equal(code, 1, path);
      assert.match(stderr, /make the file readable/);
    }
  });
});

describe('print-config', () => {
  test('prints the effective configuration with defaults, and no secret of file or environment', async () => {
    writeFileSync(join(FOLDER, 'token'), `${CANARY}\n`);
    const text = `version: 1
secrets: ["\${SECRET}"]
upstreams:
  docs: { url: "http://docs/\${SECRET}/mcp?key=\${SECRET}", auth: { type: bearer, token: "\${file:token}" } }
routes: [{ path: /mcp, upstreams: [docs] }]
`;
    const { code, stdout, stderr } = await headgate(['print-config', '-c', file('secret.yaml', text)], {
      env: { SECRET: CANARY },
    });
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /^ {6}requestTimeout|^ {4}requestTimeout: 30s$/m);
    assert.ok(!stdout.includes(CANARY));
  });
});

describe('healthcheck', () => {
  const check = (port: number) => headgate(['healthcheck', '--url', `http://127.0.0.1:${port}/readyz`]);

  test('a gateway that is ready ends with 0', async () => {
    await listening(createServer(ofPort(200)), async (port) => {
      assert.deepEqual(await check(port), { code: 0, stdout: 'ready\n', stderr: '' });
    });
  });

  test('a gateway that is not ready ends with 1', async () => {
    await listening(createServer(ofPort(503)), async (port) => {
      const { code, stderr } = await check(port);
      assert.equal(code, 1);
      assert.match(stderr, /answered 503/);
    });
  });

  test('no gateway, and one that never answers, end with 1', async () => {
    let free = 0;
    await listening(
      createServer(() => {}),
      async (port) => {
        free = port;
        const { code, stderr } = await check(port);
        assert.equal(code, 1);
        assert.match(stderr, /did not answer within 2000 ms/);
      },
    );
    const { code, stderr } = await check(free);
    assert.equal(code, 1);
    assert.match(stderr, /ECONNREFUSED/);
  });

  test('a URL that is none ends with 2', async () => {
    assert.equal((await headgate(['healthcheck', '--url', 'readyz'])).code, 2);
  });
});

describe('serve', () => {
  test('without any configuration it prints an example of ten lines and ends with 2', async () => {
    const { code, stdout, stderr } = await headgate(['serve']);
    assert.deepEqual([code, stdout], [2, '']);
    assert.ok(stderr.endsWith(TEN_LINE_EXAMPLE));
  });

  test('with a bad configuration it opens no port and ends with 1', async () => {
    const { code, stdout, stderr } = await headgate(['serve', '-c', '-'], { input: 'version: 1\n' });
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /upstreams: missing/);
  });

  test('over URLs it says where it listens, and SIGTERM ends it with 0', async () => {
    let asked = false;
    const { code, stdout } = await headgate(['serve', ...FREE], {
      onOutput: (text, kill) => {
        if (asked || !/http:\/\/127\.0\.0\.1:[1-9]\d*/.test(text)) return;
        asked = true;
        kill('SIGTERM');
      },
    });
    assert.equal(code, 0);
    assert.match(stdout, /127\.0\.0\.1:[1-9]\d*/);
  });

  test('a port that is taken ends with 1 and names the port', async () => {
    const server = createTcpServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    try {
      const { code, stderr } = await headgate(['serve', ...FREE.with(1, `127.0.0.1:${port}`)]);
      assert.equal(code, 1);
      assert.match(stderr, new RegExp(`127\\.0\\.0\\.1:${port} is taken: .* \\(--listen\\)`));
    } finally {
      server.close();
    }
  });
});

describe('standard output that cannot be written', {
  skip: !existsSync('/dev/full') && 'no /dev/full',
}, () => {
  const full = openSync('/dev/full', 'w');
  after(() => closeSync(full));

  for (const args of [['--version'], ['--help'], ['schema'], ['inspect', '--help']]) {
    test(`ends \`headgate ${args.join(' ')}\` with 1 and says so in one line`, async () => {
      const { code, stderr } = await headgate(args, { stdout: full });
      assert.equal(code, 1);
      assert.match(stderr, /^headgate: standard output cannot be written: ENOSPC[^\n]*\n$/);
    });
  }

  test('does not keep a gateway from serving', async () => {
    let stopped = false;
    const { code, stderr } = await headgate(['serve', ...FREE], {
      stdout: full,
      onOutput: (text, kill) => {
        if (stopped || !text.includes('cannot be written')) return;
        stopped = true;
        // Long after the addresses were told: what that could end would have ended.
        setTimeout(kill, 300, 'SIGTERM');
      },
    });
    assert.equal(code, 0);
    assert.match(stderr, /standard output cannot be written: ENOSPC/);
  });
});
