/** The systemd unit and its example files fit the gateway: nothing needs to be started to see that. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { readCommandLine } from '../../src/cli/args.ts';
import { EXIT } from '../../src/cli/terminal.ts';
import { loadConfig } from '../../src/config/load.ts';

const FOLDER = 'deploy/systemd';
const read = (path: string): string => readFileSync(join(process.cwd(), path), 'utf8');

/** Assignments of a unit or an environment file, in order; comments are left out. */
const assignments = (path: string): readonly (readonly [string, string])[] =>
  read(path)
    .split('\n')
    .filter((line) => /^[A-Za-z]\w*=/.test(line))
    .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]);

const unit = assignments(`${FOLDER}/headgate.service`);
const values = (key: string): readonly string[] =>
  unit.filter(([name]) => name === key).map(([, value]) => value);

/** The gateway's own arguments in a line such as `ExecStart=/usr/bin/node …/dist/main.js serve`. */
function argumentsOf(line: string): readonly string[] {
  const { bin } = JSON.parse(read('package.json')) as { readonly bin: { readonly headgate: string } };
  const [node, program, ...rest] = line.split(' ');
  assert.match(`${node} ${program}`, new RegExp(`^/\\S*/node /\\S+/${bin.headgate}$`));
  return rest;
}

const credential = `/run/credentials/headgate.service/${values('LoadCredential')[0]?.split(':')[0]}`;
const config = loadConfig(
  `${FOLDER}/headgate.yaml`,
  Object.fromEntries(assignments(`${FOLDER}/headgate.env`)),
  (path) => (path === credential ? 's'.repeat(44) : read(path)),
);

describe('headgate.service', () => {
  test('checks and runs one and the same configuration, and reloads by the signal', () => {
    const [check = '', start = ''] = [values('ExecStartPre')[0], values('ExecStart')[0]];
    assert.deepEqual(values('ExecReload'), ['/bin/kill -HUP $MAINPID']);
    const lines = [check, start].map((line) => readCommandLine(argumentsOf(line)));
    const [checked, started] = lines;
    assert.ok(checked?.kind === 'run' && started?.kind === 'run');
    assert.deepEqual([checked.command, started.command], ['validate', 'serve']);
    assert.equal(checked.options.config, started.options.config);
  });

  test('tells the exit codes of the gateway apart', () => {
    assert.deepEqual(values('Restart'), ['on-failure']);
    assert.deepEqual(values('RestartPreventExitStatus'), [String(EXIT.badCommandLine)]);
    assert.deepEqual(values('SuccessExitStatus'), [String(EXIT.cutOff)]);
  });

  test('gives it no right that it does not need, but the one to run what V8 writes', () => {
    for (const key of ['DynamicUser', 'NoNewPrivileges', 'PrivateTmp', 'ProtectHome', 'RestrictNamespaces'])
      assert.deepEqual(values(key), ['yes'], key);
    assert.deepEqual(values('ProtectSystem'), ['strict']);
    assert.deepEqual(values('CapabilityBoundingSet'), ['']);
    assert.deepEqual(values('SystemCallFilter'), ['@system-service']);
    assert.deepEqual(values('MemoryDenyWriteExecute'), []);
  });
});

describe('the example files of headgate.service', () => {
  test('are a configuration that loads, with the credential and the variables that the unit gives', () => {
    assert.deepEqual(config.kind === 'ok' ? [] : config.problems, []);
    assert.ok(config.kind === 'ok' && config.config.secrets.length > 0);
  });

  test('can drain before the unit is killed', () => {
    assert.ok(config.kind === 'ok');
    const { delayMs, graceMs } = config.config.shutdown;
    assert.ok(Number(/^(\d+)s$/.exec(values('TimeoutStopSec')[0] ?? '')?.[1]) * 1_000 > delayMs + graceMs);
  });
});
