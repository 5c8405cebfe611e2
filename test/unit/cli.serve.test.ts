import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { describe, test } from 'node:test';
import { serve } from '../../src/cli/serve.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import type { HeadgateConfig } from '../../src/config/types.ts';
import type { Running, startGateway } from '../../src/gateway.ts';

class FakeTerminal extends EventEmitter {
  readonly env = {};
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();

  said(): string {
    return String(this.stderr.read() ?? '');
  }
}

/** A gateway that writes down what is asked of it. */
function fakeGateway() {
  const calls: string[] = [];
  let finish: (code: number) => void = () => {};
  const done = new Promise<number>((resolve) => {
    finish = resolve;
  });
  const running: Running = {
    addresses: { mcp: 'http://127.0.0.1:1', status: 'http://127.0.0.1:2' },
    done,
    reload: async (_read, file, why) => {
      calls.push(`reload ${file} ${why}`);
      return 'applied';
    },
    shutdown: (reason) => calls.push(`shutdown ${reason}`),
    force: () => {
      calls.push('force');
      finish(3);
    },
  };
  return { calls, running, finish };
}

const URLS = ['http://127.0.0.1:3001/mcp'];

function start(
  options: Readonly<Record<string, string>>,
  startWith: typeof startGateway,
  positionals: readonly string[] = URLS,
): { readonly terminal: FakeTerminal; readonly code: Promise<number> } {
  const terminal = new FakeTerminal();
  return { terminal, code: serve({ options, positionals }, terminal as unknown as Terminal, startWith) };
}

describe('signals', () => {
  test('the first drains, the second forces, and the exit code is the gateway’s', async () => {
    const { calls, running } = fakeGateway();
    const { terminal, code } = start({}, async () => running);
    await new Promise(setImmediate);
    terminal.emit('SIGTERM', 'SIGTERM');
    terminal.emit('SIGINT', 'SIGINT');
    assert.equal(await code, 3);
    assert.deepEqual(calls, ['shutdown SIGTERM', 'force']);
    assert.equal(
      terminal.listenerCount('SIGTERM') + terminal.listenerCount('SIGINT') + terminal.listenerCount('SIGHUP'),
      0,
    );
  });

  test('SIGHUP says that URLs cannot be read again', async () => {
    const { calls, running, finish } = fakeGateway();
    const { terminal, code } = start({}, async () => running);
    await new Promise(setImmediate);
    terminal.emit('SIGHUP', 'SIGHUP');
    assert.match(terminal.said(), /no file that could be read again/);
    finish(0);
    assert.equal(await code, 0);
    assert.deepEqual(calls, []);
  });

  test('one that comes during start-up is not lost', async () => {
    const { calls, running, finish } = fakeGateway();
    let started: (running: Running) => void = () => {};
    const { terminal, code } = start({}, () => new Promise((resolve) => (started = resolve)));
    terminal.emit('SIGINT', 'SIGINT');
    started(running);
    await new Promise(setImmediate);
    assert.deepEqual(calls, ['shutdown SIGINT']);
    finish(0);
    assert.equal(await code, 0);
  });
});

describe('what the gateway is started with', () => {
  const seen = async (options: Readonly<Record<string, string>>): Promise<HeadgateConfig> => {
    let config: HeadgateConfig | undefined;
    const { running, finish } = fakeGateway();
    finish(0);
    const { code } = start(options, async (given) => {
      config = given;
      return running;
    });
    assert.equal(await code, 0);
    return config ?? assert.fail();
  };

  test('the addresses of the command line', async () => {
    const config = await seen({ listen: ':0', status: '[::1]:0', admin: 'false' });
    assert.deepEqual(
      [config.listen.address, config.status, config.admin],
      [{ host: '0.0.0.0', port: 0 }, { host: '::1', port: 0 }, false],
    );
  });

  test('the URLs of the command line', async () => {
    const config = await seen({});
    assert.deepEqual([...config.upstreams.keys()], ['127-0-0-1-3001']);
  });
});

describe('a bad command line starts nothing and ends with 2', () => {
  const never: typeof startGateway = () => assert.fail('started');
  const CASES: readonly (readonly [string, Readonly<Record<string, string>>, readonly string[], RegExp])[] = [
    ['a file together with URLs', { config: 'a.yaml' }, URLS, /name a file or URLs, not both/],
    ['an address that is none', { listen: '8080' }, URLS, /--listen: write an address/],
    ['an admin address that is none', { admin: 'off' }, URLS, /--admin: write an address/],
    ['a URL that is none', {}, ['localhost:3000'], /command line: URL 1: write an absolute URL/],
    ['two listeners on one port', { listen: ':9902' }, URLS, /command line: status: choose another port/],
  ];
  for (const [what, options, urls, message] of CASES) {
    test(what, async () => {
      const { terminal, code } = start(options, never, urls);
      assert.equal(await code, 2);
      assert.match(terminal.said(), message);
    });
  }
});

describe('a start that fails ends with 1 and says what to do', () => {
  const failing =
    (error: object): typeof startGateway =>
    async () => {
      throw Object.assign(new Error('listen failed'), error);
    };
  const CASES: readonly (readonly [object, RegExp])[] = [
    [{ code: 'EADDRINUSE', port: 8080 }, /127\.0\.0\.1:8080 is taken: .* \(--listen\)/],
    [{ code: 'EACCES', port: 9902 }, /127\.0\.0\.1:9902 is not allowed .* \(--status\)/],
    [{ code: 'EADDRINUSE', port: 9901 }, /127\.0\.0\.1:9901 is taken: .* \(--admin\)/],
    [{ code: 'EADDRINUSE', port: 5 }, /cannot start: listen failed/],
    [{}, /cannot start: Error: listen failed\n +at /], // a bug, not a taken port
  ];
  for (const [error, message] of CASES) {
    test(JSON.stringify(error), async () => {
      const { terminal, code } = start({}, failing(error));
      assert.equal(await code, 1);
      assert.match(terminal.said(), message);
    });
  }
});
