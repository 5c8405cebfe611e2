/** Keeping one process: started when needed, started again with a pause, and why there is none. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ProcessConfig } from '../../src/config/types.ts';
import type { Child } from '../../src/upstream/child.ts';
import {
  restartPauseMs,
  SUPERVISOR_TIMES,
  Supervisor,
  type SupervisorTimes,
} from '../../src/upstream/supervisor.ts';
import type { Failure } from '../../src/upstream/types.ts';
import { until } from '../support/fault-server.ts';
import { Ear, ECHO, gone, isGone, logTaker, program, SHORT, STAY } from '../support/process-kit.ts';

const QUICK: SupervisorTimes = { firstPauseMs: 20, lastPauseMs: 80, steadyMs: 60_000 };

function supervised(config: ProcessConfig, times = QUICK) {
  const taker = logTaker();
  const children: { child: Child; ear: Ear }[] = [];
  const supervisor = new Supervisor({
    config,
    deps: { name: 'docs', log: taker.log, times: SHORT },
    attach: (child) => {
      const ear = new Ear();
      children.push({ child, ear });
      return ear;
    },
    times,
    random: () => 1,
  });
  return { ...taker, supervisor, children };
}

function up(outcome: Child | Failure): Child {
  if ('kind' in outcome) throw new Error(`no process: ${outcome.detail}`);
  return outcome;
}

function down(outcome: Child | Failure): Failure {
  if ('kind' in outcome) return outcome;
  throw new Error('there is a process');
}

describe('a supervisor', () => {
  test('starts nothing before it is asked, and one process for all who ask', async () => {
    const { supervisor, children, said } = supervised(program(ECHO));
    assert.equal(supervisor.isUp, undefined);
    assert.equal(children.length, 0);
    const all = await Promise.all([supervisor.get(1_000), supervisor.get(0), supervisor.get(1_000)]);
    assert.equal(new Set(all).size, 1);
    assert.equal(children.length, 1);
    assert.equal(supervisor.isUp, true);
    const child = up(all[0]);
    child.send('{"a":1}');
    assert.deepEqual(await children[0]?.ear.heard(1), [{ a: 1 }]);
    assert.deepEqual(
      said('process started').map(({ fields }) => fields),
      [{ upstream: 'docs', pid: child.pid }],
    );
    await supervisor.close();
    assert.ok(isGone(child.pid ?? assert.fail()));
    assert.equal(down(await supervisor.get(1_000)).kind, 'cancelled');
    assert.equal(children.length, 1);
  });

  test('says why a command cannot be started, to those who wait and to those who come later', async () => {
    const { supervisor, said } = supervised(program('', {}, { command: 'headgate-no-such-command' }), {
      ...QUICK,
      firstPauseMs: 60_000,
      lastPauseMs: 60_000,
    });
    const expected = { kind: 'connect', proxyError: 'destination_unavailable', detail: 'spawn ENOENT' };
    const both = await Promise.all([supervisor.get(1_000), supervisor.get(1_000)]);
    assert.deepEqual(both.map(down), [expected, expected]);
    const before = performance.now();
    assert.deepEqual(await supervisor.get(1_000), expected);
    assert.ok(performance.now() - before < 500, 'not waited for what does not come in time');
    assert.equal(supervisor.isUp, false);
    assert.deepEqual(
      said('process ended').map(({ level, fields }) => [level, fields.detail]),
      [['warn', 'spawn ENOENT']],
    );
    await supervisor.close();
  });

  test('starts one again that has ended, by itself, and with a pause that doubles', async () => {
    const { supervisor, children, said } = supervised(
      program(`console.error('no licence'); process.exitCode = 1`),
    );
    up(await supervisor.get(1_000));
    await until(() => said('process ended').length >= 5, 'five ends', 20_000);
    await supervisor.close();
    const pauses = said('process ended').map(({ fields }) => fields.againMs);
    assert.deepEqual(pauses.slice(0, 5), [20, 40, 80, 80, 80]);
    assert.ok(children.every(({ ear }) => ear.reasons.length <= 1));
    assert.equal(children[0]?.ear.reasons[0]?.detail, 'exited with code 1: no licence');
  });

  test('waits for the next start if it comes in time', async () => {
    const { supervisor, children } = supervised(program(ECHO), { ...QUICK, firstPauseMs: 300 });
    const first = up(await supervisor.get(1_000));
    process.kill(first.pid ?? assert.fail(), 'SIGKILL');
    await children[0]?.ear.end();
    const reason = down(await supervisor.get(10));
    assert.deepEqual([reason.kind, reason.detail], ['connect', 'ended by SIGKILL']);
    const second = up(await supervisor.get(5_000));
    assert.notEqual(second.pid, first.pid);
    second.send('{"again":1}');
    assert.deepEqual(await children[1]?.ear.heard(1), [{ again: 1 }]);
    await supervisor.close();
    await gone(second.pid ?? assert.fail());
  });

  test('forgives one that has lived for long', async () => {
    const { supervisor, said } = supervised(program('setTimeout(() => process.exit(1), 100)'), {
      ...QUICK,
      steadyMs: 50,
    });
    await supervisor.get(1_000);
    await until(() => said('process ended').length >= 3, 'three ends', 20_000);
    await supervisor.close();
    assert.deepEqual(
      said('process ended')
        .slice(0, 3)
        .map(({ fields }) => fields.againMs),
      [20, 20, 20],
    );
  });

  test('starts the next only when all of the one before is gone', async () => {
    const grandchild = `const g = require('child_process').spawn(process.execPath, ['-e', "process.on('SIGTERM', () => {}); console.log('{}'); setInterval(() => {}, 1000)"], { stdio: ['ignore', 'inherit', 'inherit'] }); console.log(JSON.stringify({ pid: g.pid })); process.stdin.on('data', () => process.exit(1))`;
    const { supervisor, children } = supervised(program(grandchild));
    const first = up(await supervisor.get(1_000));
    const said = (await children[0]?.ear.heard(2)) as { pid?: number }[];
    const pid = said.find((message) => message.pid !== undefined)?.pid ?? assert.fail();
    first.send('{}');
    await until(() => children.length === 2, 'the next', 10_000);
    assert.ok(isGone(pid));
    await supervisor.close();
  });

  test('closed while it pauses or while others wait starts none, and tells them', async () => {
    const { supervisor, children } = supervised(program('process.exit(1)'), { ...QUICK, firstPauseMs: 500 });
    await supervisor.get(1_000);
    await children[0]?.ear.end();
    const waiting = supervisor.get(60_000);
    await supervisor.close();
    assert.equal(down(await waiting).kind, 'cancelled');
    await new Promise((resolve) => setTimeout(resolve, 600));
    assert.equal(children.length, 1);
  });

  test('gives nobody one whose end is coming', async () => {
    const { supervisor, children } = supervised(
      program(`process.on('SIGTERM', () => {}); console.log('{}'); ${STAY}`),
    );
    const child = up(await supervisor.get(1_000));
    await children[0]?.ear.heard(1);
    const ended = child.close();
    assert.equal(child.isOpen, false);
    assert.equal(supervisor.isUp, false);
    assert.equal(down(await supervisor.get(10_000)).kind, 'connect');
    assert.deepEqual(
      children[0]?.ear.reasons.map(({ kind }) => kind),
      ['cancelled'],
    );
    await ended;
    assert.notEqual(up(await supervisor.get(10_000)), child);
    await supervisor.close();
  });

  test('ends one that does not want to', async () => {
    const { supervisor, children } = supervised(
      program(`process.on('SIGTERM', () => {}); console.log('{}'); ${STAY}`),
    );
    const child = up(await supervisor.get(1_000));
    await children[0]?.ear.heard(1);
    await supervisor.close();
    assert.ok(isGone(child.pid ?? assert.fail()));
  });
});

test('the pause is 200 ms doubled up to 30 s, half of it at random', () => {
  const pause = (failures: number, random: number): number =>
    restartPauseMs(failures, random, SUPERVISOR_TIMES);
  assert.deepEqual(
    [0, 1, 7, 8, 1_000].map((failures) => pause(failures, 1)),
    [200, 400, 25_600, 30_000, 30_000],
  );
  assert.deepEqual([pause(0, 0), pause(1_000, 0)], [100, 15_000]);
  assert.equal(SUPERVISOR_TIMES.steadyMs, 30_000);
});
