/**
 * The cache against a model. Callers read two keys while loads end in any order, scopes change, time passes,
 * callers leave, things are invalidated and the policy is tightened. Every answer's bytes name the load that made
 * them, and the oracle knows of every load for whom it was made, when, and what it came with.
 */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Cached, CachePolicy, Loaded } from '../../src/cache/types.ts';
import type { Signal } from '../../src/protocol/signal.ts';
import { createRig, POLICY, textOf, turn } from '../support/cache.ts';

const STALE_MS = 2_000;
const METHOD = 'resources/read';

type Move =
  | { readonly kind: 'read'; readonly callers: readonly string[]; readonly key: string }
  | {
      readonly kind: 'land';
      readonly pick: number;
      readonly scope: string | undefined;
      readonly ttlMs: number | undefined;
      readonly storable: boolean;
    }
  | {
      readonly kind: 'fail';
      readonly pick: number;
      readonly how: 'allowed' | 'never' | 'leader' | 'context' | 'crash';
    }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'leave'; readonly pick: number }
  | { readonly kind: 'invalidate'; readonly what: 'key' | 'method' | 'upstream'; readonly key: string }
  | { readonly kind: 'policy'; readonly scope: CachePolicy['scope'] };

const one = <const T>(value: T) => fc.constant(value);
const caller = fc.constantFrom('alice', 'bob', 'anonymous');
const key = fc.constantFrom('k1', 'k2');
const pick = fc.nat(20);
const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: one('read'),
      callers: fc.array(caller, { minLength: 1, maxLength: 4 }),
      key,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: one('land'),
      pick,
      scope: fc.constantFrom('public', 'private', 'Public', undefined),
      ttlMs: fc.constantFrom(0, 1_000, 1_000, 5_000, -1, undefined),
      storable: fc.constantFrom(true, true, true, false),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: one('fail'),
      pick,
      how: fc.constantFrom('allowed', 'never', 'leader', 'context', 'crash'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: one('wait'), ms: fc.constantFrom(1, 500, 999, 3_000, 12_000) }) },
  { weight: 1, arbitrary: fc.record({ kind: one('leave'), pick }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: one('invalidate'),
      what: fc.constantFrom('key', 'method', 'upstream'),
      key,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: one('policy'), scope: fc.constantFrom('respect', 'private') }) },
);

/** A request. Times of the model are places in one order of what happened. */
interface Read {
  readonly caller: string;
  readonly key: string;
  readonly policy: CachePolicy;
  readonly begunAt: number;
  readonly leaver: AbortController;
  /** The newest load this caller had an answer of, under this policy, when the read began. */
  readonly newest: number;
  end?: 'answered' | 'rejected';
}

interface MadeLoad {
  readonly id: number;
  /** The read whose load it is. */
  readonly by: Read;
  readonly begunAt: number;
  readonly signal: Signal;
  readonly settle: {
    readonly land: (loaded: Loaded<string>) => void;
    readonly crash: (error: Error) => void;
  };
  isOver: boolean;
  came?: Came;
}

/** What a complete answer came with, under the policy of the one who asked. */
interface Came {
  readonly at: number;
  readonly isPublic: boolean;
  readonly ttlMs: number;
  readonly receivedAt: number;
  readonly storable: boolean;
}

interface World {
  readonly loads: readonly MadeLoad[];
  readonly invalidations: readonly { readonly at: number; readonly key: string | undefined }[];
}

/** What is wrong with an answer, by the rules. */
function faultsOf(
  world: World,
  read: Read,
  load: MadeLoad | undefined,
  cached: Cached<string>,
  now: number,
): string[] {
  if (load === undefined) return ['bytes of no load'];
  const isOwn = load.by.caller === read.caller;
  const rules: [boolean, string][] = [[load.by.key === read.key, 'the answer to another key']];
  if (cached.kind === 'other') {
    rules.push(
      [isOwn, 'R22: an error or failure of another context'],
      [!cached.value.startsWith('leader') || load.by === read, 'R23: what was for another request alone'],
    );
    return failing(rules);
  }
  const { came } = load;
  if (came === undefined) return ['bytes before they came'];
  const { outcome, ttlMs } = cached;
  const ageMs = now - came.receivedAt;
  const invalidated = world.invalidations.filter(
    (change) => (change.key ?? read.key) === read.key && load.begunAt < change.at,
  );
  const overtaken = world.loads.some(
    ({ by, came: other }) =>
      by.key === read.key && other?.isPublic === false && other.at < read.begunAt && load.begunAt < other.at,
  );
  rules.push(
    [isOwn || came.isPublic, 'R22: private bytes of another caller'],
    [isOwn || read.policy.scope !== 'private', 'R22: bytes of another caller under a private policy'],
    [isOwn || !overtaken, 'R22: public bytes, asked for before a private answer that was before the request'],
    [cached.scope === 'private' || came.isPublic, 'R21: labelled looser than it came'],
    [!textOf(cached.tail).startsWith('own') || load.by === read, 'R27: what belongs to another request'],
    [Number.isInteger(ttlMs) && ttlMs >= 0, 'R26: a ttl that is none'],
    [ttlMs === 0 || ttlMs - 1 < came.ttlMs - ageMs, 'R27: more time than is left'],
    [invalidated.every(({ at }) => at > read.begunAt), 'R28: older than an invalidation before the request'],
    [ttlMs === 0 || invalidated.length === 0, 'R28: labelled fresh and older than an invalidation'],
    [load.id >= read.newest, 'R28: older than what this caller had before'],
  );
  const isKept = came.ttlMs > 0 && came.storable;
  if (outcome.kind === 'hit') rules.push([isKept && ageMs < came.ttlMs, 'R27: a hit that is over']);
  if (outcome.kind === 'stale') {
    rules.push([isKept && ttlMs === 0 && ageMs < came.ttlMs + STALE_MS, 'stale beyond what is allowed']);
  }
  if (outcome.kind === 'miss' && outcome.collapsed)
    rules.push([isKept, 'R23: shared what could not be stored']);
  return failing(rules);
}

const failing = (rules: readonly [boolean, string][]): string[] =>
  rules.filter(([holds]) => !holds).map(([, rule]) => rule);

async function play(moves: readonly Move[]): Promise<void> {
  const { cache, clock, complete, recorder, request } = createRig();
  const loads: MadeLoad[] = [];
  const reads: Read[] = [];
  const invalidations: World['invalidations'][number][] = [];
  const newest = new Map<string, number>();
  const faults: string[] = [];
  let time = 0;
  let policy: CachePolicy = { ...POLICY, staleIfErrorMs: STALE_MS };

  const open = (): MadeLoad[] => loads.filter((load) => !load.isOver);
  const waiting = (): Read[] => reads.filter((read) => read.end === undefined);
  const viewOf = (read: Pick<Read, 'caller' | 'key' | 'policy'>): string =>
    `${read.caller} ${read.key} ${read.policy.scope}`;

  function begin(who: string, what: string): void {
    const seen = newest.get(viewOf({ caller: who, key: what, policy })) ?? -1;
    const leaver = new AbortController();
    const read: Read = { caller: who, key: what, policy, begunAt: ++time, leaver, newest: seen };
    reads.push(read);
    const cached = cache.through<string>(
      request({ partition: who, baseKey: what, method: METHOD, policy, signal: leaver.signal }),
      (signal) =>
        new Promise((land, crash) => {
          loads.push({
            id: loads.length,
            by: read,
            begunAt: ++time,
            signal,
            settle: { land, crash },
            isOver: false,
          });
        }),
    );
    Promise.resolve(cached).then(
      (cached) => answered(read, cached),
      () => {
        read.end = 'rejected';
      },
    );
  }

  function answered(read: Read, cached: Cached<string>): void {
    read.end = 'answered';
    const text = cached.kind === 'complete' ? textOf(cached.tail) : cached.value;
    const load = loads[Number(/#(\d+)/.exec(text)?.[1])];
    for (const fault of faultsOf({ loads, invalidations }, read, load, cached, clock.at)) {
      faults.push(`${fault}: ${viewOf(read)} got ${text} ${JSON.stringify(cached.outcome)}`);
    }
    if (cached.kind === 'other' || load === undefined) return;
    newest.set(viewOf(read), Math.max(newest.get(viewOf(read)) ?? -1, load.id));
  }

  function land(load: MadeLoad, { scope, ttlMs, storable }: Extract<Move, { kind: 'land' }>): void {
    load.came = {
      at: ++time,
      isPublic: scope === 'public' && load.by.policy.scope !== 'private',
      ttlMs: Math.max(0, ttlMs ?? 0),
      receivedAt: clock.at,
      storable,
    };
    load.settle.land(
      complete(`#${load.id}`, { hints: { ttlMs, cacheScope: scope }, storableAtAll: storable }),
    );
  }

  function fail({ id, settle }: MadeLoad, how: Extract<Move, { kind: 'fail' }>['how']): void {
    const value = `${how}#${id}`;
    if (how === 'crash') settle.crash(new Error('bug'));
    else if (how === 'allowed' || how === 'never') settle.land({ kind: 'failed', value, stale: how });
    else settle.land({ kind: 'uncacheable', value, share: how });
  }

  function invalidate(what: Extract<Move, { kind: 'invalidate' }>['what'], which: string): void {
    if (what === 'key') cache.invalidateKey('docs', which);
    if (what === 'method') cache.invalidateMethod('docs', METHOD);
    if (what === 'upstream') cache.invalidateUpstream('docs');
    invalidations.push({ at: ++time, key: what === 'key' ? which : undefined });
  }

  function make(next: Move): void {
    if (next.kind === 'read') for (const who of next.callers) begin(who, next.key);
    if (next.kind === 'wait') clock.advance(next.ms);
    if (next.kind === 'policy') policy = { ...policy, scope: next.scope };
    if (next.kind === 'invalidate') invalidate(next.what, next.key);
    if (next.kind === 'leave') waiting()[next.pick % waiting().length]?.leaver.abort(new Error('gone'));
    if (next.kind !== 'land' && next.kind !== 'fail') return;
    const load = open()[next.pick % open().length];
    if (load === undefined) return;
    load.isOver = true;
    if (next.kind === 'land') land(load, next);
    else fail(load, next.how);
  }

  /** A load that serves one request alone has that request's signal: the two end together. */
  const isAlone = (read: Read): boolean => open().some(({ signal }) => signal === read.leaver.signal);

  for (const next of moves) {
    make(next);
    await turn();
    if (waiting().length > 0 && open().length === 0) faults.push('R23: waiting for nothing');
    if (waiting().some((read) => read.leaver.signal.aborted && !isAlone(read)))
      faults.push('R23: not told at once');
  }
  // Whoever is left leaves: everything ends, and nothing is asked for any more.
  for (const read of reads) read.leaver.abort(new Error('gone'));
  await turn();
  for (const { signal, settle } of open()) {
    if (!signal.aborted) faults.push('R35: a load that nobody waits for goes on');
    settle.crash(new Error('aborted'));
  }
  await turn();
  if (waiting().length > 0) faults.push('R23: a request without an end');
  if (recorder.count('cacheRequest') !== reads.length)
    faults.push('R30: not every request was reported once');
  if (cache.flightCount !== 0) faults.push('R30: a flight is left behind');
  assert.deepEqual(faults, []);
}

describe('cache model', () => {
  it('R22 R23: two callers never receive each other’s private bytes for arbitrary interleavings of reads, fills, scope changes and expiries', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(move, { minLength: 10, maxLength: 60, size: 'max' }), (moves) => play(moves)),
      { numRuns: 250 },
    );
  });
});
