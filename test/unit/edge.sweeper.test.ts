import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { Patience, Sweeper } from '../../src/edge/sweeper.ts';
import { until } from '../support/mcp.ts';

test('patience counts from the first sweep on: never early, two ticks late at most', () => {
  const patience = new Patience();
  assert.deepEqual(
    [10, 10, 10].map((ms) => patience.waited(ms)),
    [0, 10, 20],
  );
  patience.reset();
  assert.deepEqual(
    [10, 10].map((ms) => patience.waited(ms)),
    [0, 10],
  );
});

test('a process that stood still counts two ticks: what came meanwhile waits in the kernel', () => {
  mock.timers.enable({ apis: ['setInterval'] });
  try {
    let now = 0;
    const tick = (ms: number): void => {
      now += ms;
      mock.timers.tick(25);
    };
    const sweeper = new Sweeper(100, () => now);
    const seen: number[] = [];
    const swept = { place: -1, sweep: (ms: number) => seen.push(ms) };
    sweeper.add(swept);
    for (const ms of [25, 25, 10_000]) tick(ms);
    sweeper.delete(swept);
    tick(25);
    assert.deepEqual(seen, [25, 25, 50]);
  } finally {
    mock.timers.reset();
  }
});

test('the timer stops when there is nothing to sweep, and starts again', async () => {
  const sweeper = new Sweeper(80, () => performance.now());
  for (let round = 0; round < 2; round++) {
    let sweeps = 0;
    const swept = { place: -1, sweep: () => sweeps++ };
    sweeper.add(swept);
    await until(() => sweeps > 1, 'swept');
    sweeper.delete(swept);
    await until(() => process.getActiveResourcesInfo().every((name) => name !== 'Timeout'), 'no timer');
  }
});
