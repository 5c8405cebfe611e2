/** R38: a tripping upstream is left alone for a while, and tried again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Circuit, type Verdict } from '../../src/upstream/circuit.ts';

function circuitAt(start = 1_000): {
  circuit: Circuit;
  tick: (ms: number) => void;
  changes: string[];
  call: (verdict: Verdict) => string;
} {
  let clock = start;
  const changes: string[] = [];
  const circuit = new Circuit(
    () => clock,
    (state) => changes.push(state),
  );
  const tick = (ms: number): void => {
    clock += ms;
  };
  const call = (verdict: Verdict): string => {
    const pass = circuit.enter();
    if (pass !== 'open') circuit.settle(pass, verdict, clock);
    return pass;
  };
  return { circuit, changes, call, tick };
}

test('R38: five failures in a row open it, four do not', () => {
  const { circuit, call, changes } = circuitAt();
  for (let n = 0; n < 4; n++) assert.equal(call('failed'), 'go');
  assert.ok(circuit.available);
  call('failed');
  assert.ok(!circuit.available);
  assert.equal(call('answered'), 'open');
  assert.deepEqual(changes, ['open']);
});

test('R38: an answer between failures starts the count anew', () => {
  const { circuit, call } = circuitAt();
  for (let n = 0; n < 20; n++) {
    for (let m = 0; m < 4; m++) call('failed');
    call('answered');
  }
  assert.ok(circuit.available);
});

test('R38: two timeouts in a row open it', () => {
  const { circuit, call } = circuitAt();
  call('timed_out');
  call('answered');
  call('timed_out');
  assert.ok(circuit.available);
  call('timed_out');
  assert.ok(!circuit.available);
});

test('R38: one timeout under a short deadline opens it, unless others were answered meanwhile', () => {
  const hung = circuitAt();
  hung.call('answered');
  hung.tick(1);
  const pass = hung.circuit.enter();
  const startedAt = 1_001;
  hung.tick(5_000);
  assert.equal(pass, 'go');
  hung.circuit.settle(pass, 'hung', startedAt);
  assert.ok(!hung.circuit.available);

  const slow = circuitAt();
  slow.circuit.enter();
  slow.tick(10);
  slow.call('answered');
  slow.tick(5_000);
  slow.circuit.settle('go', 'hung', 1_000);
  assert.ok(slow.circuit.available);
});

test('R38: after a while one call is let through, and its answer closes it', () => {
  const { circuit, call, tick, changes } = circuitAt();
  for (let n = 0; n < 5; n++) call('failed');
  tick(4_999);
  assert.equal(circuit.enter(), 'open');
  assert.equal(circuit.retryAfterSeconds, 1);
  tick(1);
  assert.ok(circuit.available);
  assert.equal(circuit.enter(), 'probe');
  assert.equal(circuit.enter(), 'open');
  assert.ok(!circuit.available);
  circuit.settle('probe', 'answered', 0);
  assert.equal(circuit.enter(), 'go');
  assert.deepEqual(changes, ['open', 'closed']);
});

test('R38: a failed probe doubles the time, up to a minute', () => {
  const { circuit, call, tick, changes } = circuitAt();
  for (let n = 0; n < 5; n++) call('failed');
  for (const ms of [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]) {
    tick(ms - 1);
    assert.equal(call('failed'), 'open', `before ${ms}`);
    tick(1);
    assert.equal(call('failed'), 'probe', `at ${ms}`);
  }
  assert.deepEqual(changes, ['open']);
  tick(60_000);
  call('answered');
  for (let n = 0; n < 5; n++) call('failed');
  tick(5_000);
  assert.ok(circuit.available, 'the time begins anew');
});

test('R38: cancelled calls never count, and a cancelled probe leaves its place to the next', () => {
  const { circuit, call, tick } = circuitAt();
  for (let n = 0; n < 100; n++) call('ignored');
  assert.ok(circuit.available);
  for (let n = 0; n < 5; n++) call('failed');
  tick(5_000);
  assert.equal(call('ignored'), 'probe');
  assert.equal(call('ignored'), 'probe');
  assert.equal(call('answered'), 'probe');
});

test('R38: stragglers from before do not lengthen it, their answers close it', () => {
  const { circuit, call, tick } = circuitAt();
  for (let n = 0; n < 5; n++) call('failed');
  tick(4_000);
  circuit.settle('go', 'failed', 0);
  tick(1_000);
  assert.ok(circuit.available);
  assert.equal(circuit.enter(), 'probe');
  circuit.settle('go', 'failed', 0);
  circuit.settle('go', 'answered', 0);
  assert.equal(circuit.enter(), 'go');
});
