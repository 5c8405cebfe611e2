/** The soak's oracle can fail: what it is there to find is a finding, and what is right is none. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FORWARDED_MS, HEAL_MS, REOPEN_MS } from '../soak/bounds.ts';
import { Findings } from '../soak/findings.ts';
import {
  ACKNOWLEDGED,
  LIST_CHANGED,
  type Listen,
  ListenOracle,
  type Message,
  SUBSCRIPTION_ID,
  UPDATED,
} from '../soak/listen-oracle.ts';
import { type Answer, type Asked, Oracle, type Walk } from '../soak/oracle.ts';
import { Troubles } from '../soak/troubles.ts';
import { Truth } from '../soak/truth.ts';

const DOC = 'alpha://doc/1';
const OWN = 'gamma://of/ada/1';
/** When the truth below begins, and when its document changes. */
const BORN = 1_000;
const CHANGED = 100_000;

function rig() {
  const truth = new Truth();
  const troubles = new Troubles();
  truth.add({ uri: DOC, upstream: 'alpha', ttlMs: 600_000, scope: 'private' }, BORN);
  truth.add({ uri: 'alpha://doc/2', upstream: 'alpha', ttlMs: 600_000, scope: 'turning' }, BORN);
  truth.add({ uri: 'beta://doc/1', upstream: 'beta', ttlMs: 600_000, scope: 'private' }, BORN);
  truth.add({ uri: OWN, upstream: 'gamma', ttlMs: 600_000, scope: 'private', owner: 'ada' }, BORN);
  truth.change(DOC, CHANGED);
  truth.change('alpha://doc/2', CHANGED);
  truth.change(OWN, CHANGED);
  return { truth, troubles, oracle: new Oracle(truth, troubles) };
}

const asked = (startedAt: number, caller = 'ada'): Asked => ({
  ...{ caller, gateway: 'a', route: '/mcp', startedAt, endedAt: startedAt + 10 },
});
const shows = (uri: string, version: number, madeFor = 'ada', more: Partial<Answer> = {}): Answer => ({
  ...{ status: 200, cacheStatus: 'headgate; hit', ttlMs: 1 },
  texts: [JSON.stringify({ upstream: 'alpha', uri, version, madeFor, scope: 'private' })],
  ...more,
});
const NOT_FOUND: Answer = { status: 200, cacheStatus: '', code: -32602, texts: [] };
const FAILED: Answer = { status: 502, cacheStatus: '', code: -32603, texts: [] };
const LATE = CHANGED + HEAL_MS + 1;
const kinds = (findings: readonly { readonly kind: string }[]): readonly string[] =>
  findings.map(({ kind }) => kind);

describe("the soak's oracle: reads", () => {
  test('the newest version for its own caller is right', () => {
    assert.deepEqual(rig().oracle.read(asked(LATE), DOC, shows(DOC, 2)), []);
  });

  test('bytes made for another caller are a finding, unless that version was public', () => {
    const { oracle } = rig();
    assert.deepEqual(kinds(oracle.read(asked(LATE), DOC, shows(DOC, 2, 'bob'))), ['wrong caller']);
    const turning = 'alpha://doc/2';
    assert.deepEqual(oracle.read(asked(CHANGED + 1), turning, shows(turning, 1, 'bob')), []);
    assert.deepEqual(kinds(oracle.read(asked(LATE), turning, shows(turning, 2, 'bob'))), ['wrong caller']);
  });

  test('a resource of another caller, and bytes of another resource, are findings', () => {
    const { oracle } = rig();
    assert.deepEqual(kinds(oracle.read(asked(LATE, 'bob'), OWN, shows(OWN, 2, 'bob'))), ['wrong caller']);
    assert.deepEqual(kinds(oracle.read(asked(LATE), DOC, shows('beta://doc/1', 1))), ['wrong caller']);
    assert.deepEqual(kinds(oracle.read(asked(LATE), DOC, shows(DOC, 3))), ['wrong caller']);
  });

  test('a replaced version is a finding when there was time to heal', () => {
    const { oracle } = rig();
    assert.deepEqual(oracle.read(asked(LATE - 2), DOC, shows(DOC, 1)), []);
    assert.deepEqual(kinds(oracle.read(asked(LATE), DOC, shows(DOC, 1))), ['stale']);
    assert.equal(oracle.mustBeNewest(asked(LATE - 2), DOC), false);
    assert.equal(oracle.mustBeNewest(asked(LATE), DOC), true);
  });

  test('the time to heal begins when the trouble has ended, and the trouble must have been of its own', () => {
    for (const part of ['redis', 'down:alpha', 'unwatched:alpha', 'gateway:a'] as const) {
      const { oracle, troubles } = rig();
      troubles.begin(part, CHANGED + 1_000);
      troubles.end(part, CHANGED + 2_000);
      assert.deepEqual(oracle.read(asked(LATE), DOC, shows(DOC, 1)), [], part);
      assert.deepEqual(kinds(oracle.read(asked(LATE + 2_000), DOC, shows(DOC, 1))), ['stale'], part);
    }
    for (const part of ['down:beta', 'gateway:b'] as const) {
      const { oracle, troubles } = rig();
      troubles.begin(part, CHANGED + 1_000);
      assert.deepEqual(kinds(oracle.read(asked(LATE), DOC, shows(DOC, 1))), ['stale'], part);
    }
  });

  test('trouble that comes later does not bring an old version back', () => {
    const { oracle, troubles } = rig();
    troubles.begin('redis', LATE + 1_000);
    assert.deepEqual(kinds(oracle.read(asked(LATE + 1_500), DOC, shows(DOC, 1))), ['stale']);
  });

  test('what cannot be watched is a finding when its time is over', () => {
    const { oracle } = rig();
    const own = { ...asked(CHANGED + FORWARDED_MS), route: '/own' } as const;
    assert.deepEqual(oracle.read(own, OWN, shows(OWN, 1)), []);
    const late = {
      ...own,
      startedAt: CHANGED + FORWARDED_MS + 2_000,
      endedAt: CHANGED + FORWARDED_MS + 2_010,
    };
    assert.deepEqual(kinds(oracle.read(late, OWN, shows(OWN, 1))), ['past its time']);
  });

  test('an old version stands in only where it says so and the upstream is down', () => {
    const { oracle, troubles } = rig();
    const standIn = shows(DOC, 1, 'ada', {
      ttlMs: 0,
      cacheStatus: 'headgate; fwd=stale; detail=stale-if-error',
    });
    assert.deepEqual(kinds(oracle.read(asked(LATE), DOC, standIn)), ['stale']);
    troubles.begin('down:alpha', LATE);
    assert.deepEqual(oracle.read(asked(LATE + 1), DOC, standIn), []);
    assert.deepEqual(kinds(oracle.read(asked(LATE + 1), DOC, { ...standIn, ttlMs: 1 })), ['stale']);
  });

  test('what is read because of a change shows that change, wherever it is read', () => {
    const { oracle, troubles } = rig();
    const told = { at: CHANGED + 5, by: 'b' };
    const soon = asked(CHANGED + 6);
    assert.deepEqual(oracle.readAfterTold(soon, DOC, shows(DOC, 2), told), []);
    assert.deepEqual(kinds(oracle.readAfterTold(soon, DOC, shows(DOC, 1), told) ?? []), ['stale']);
    troubles.begin('redis', CHANGED + 4);
    assert.equal(oracle.readAfterTold(soon, DOC, shows(DOC, 1), told), undefined);
  });

  test('an error is a finding while the upstreams are up, and so is a resource that is not found', () => {
    const { oracle, troubles } = rig();
    assert.deepEqual(kinds(oracle.read(asked(LATE), DOC, FAILED)), ['unexpected error']);
    assert.deepEqual(kinds(oracle.read(asked(LATE), DOC, NOT_FOUND)), ['unexpected error']);
    troubles.begin('redis', CHANGED);
    assert.deepEqual(kinds(oracle.read(asked(LATE), DOC, FAILED)), ['unexpected error']);
    troubles.begin('down:alpha', CHANGED);
    assert.deepEqual(oracle.read(asked(LATE), DOC, FAILED), []);
  });

  test('a resource that was removed is not found, and shown no longer', () => {
    const { oracle, truth } = rig();
    truth.remove(DOC, 200_000);
    assert.deepEqual(oracle.read(asked(200_001), DOC, NOT_FOUND), []);
    assert.deepEqual(kinds(oracle.read(asked(201_000 + HEAL_MS), DOC, shows(DOC, 2))), ['stale']);
    assert.deepEqual(oracle.read(asked(201_000 + HEAL_MS), DOC, NOT_FOUND), []);
  });
});

describe("the soak's oracle: lists and calls", () => {
  const item = (uri: string, madeFor = 'ada') => ({ uri, madeFor });
  const all = [item(DOC, 'bob'), item('alpha://doc/2', 'bob'), item('beta://doc/1')];
  const walk = (items: Walk['items'], more: Partial<Walk> = {}): Walk => ({
    ...{ ...asked(LATE), items, incomplete: [] },
    ...more,
  });

  test('every item once is right', () => {
    const { oracle } = rig();
    assert.deepEqual(oracle.walk(walk(all)), []);
    assert.equal(oracle.mustBeExact(walk(all), 'alpha'), true);
  });

  test('a lost item, one that comes twice, and one that was removed are findings', () => {
    const { oracle, truth } = rig();
    assert.deepEqual(kinds(oracle.walk(walk(all.slice(1)))), ['lost item']);
    assert.deepEqual(kinds(oracle.walk(walk([...all, item(DOC)]))), ['lost item']);
    truth.remove(DOC, LATE);
    const later = { ...asked(LATE + HEAL_MS + 1) };
    assert.deepEqual(kinds(oracle.walk(walk(all, later))), ['lost item']);
  });

  test('nothing is said of a list that has just changed, or changes meanwhile', () => {
    const { oracle, truth } = rig();
    truth.remove(DOC, LATE + 5);
    assert.deepEqual(oracle.walk(walk(all.slice(1))), []);
    assert.deepEqual(oracle.walk(walk(all, asked(LATE + HEAL_MS))), []);
  });

  test("another caller's item is a finding, whatever else happens", () => {
    const { oracle, troubles } = rig();
    troubles.begin('down:beta', CHANGED);
    const foreign = [...all.slice(0, 2), item('beta://doc/1', 'bob')];
    assert.deepEqual(kinds(oracle.walk(walk(foreign))), ['wrong caller']);
    const own = { route: '/own', caller: 'bob' } as const;
    assert.deepEqual(kinds(oracle.walk(walk([item(OWN, 'bob')], own))), ['wrong caller']);
  });

  test('an upstream that is up is not left out, and a walk does not break off', () => {
    const { oracle, troubles } = rig();
    const without = walk(all.slice(0, 2), { incomplete: ['beta'] });
    const broken = walk([], { failure: NOT_FOUND });
    assert.deepEqual(kinds(oracle.walk(without)), ['lost item']);
    assert.deepEqual(kinds(oracle.walk(broken)), ['unexpected error']);
    troubles.begin('down:beta', LATE);
    assert.deepEqual(oracle.walk(without), []);
    assert.deepEqual(oracle.walk(broken), []);
  });

  test("a call's answer is its own", () => {
    const { oracle } = rig();
    const says = (text: string): Answer => ({ status: 200, cacheStatus: '', texts: [text] });
    assert.deepEqual(oracle.call(asked(LATE), 'mine', says('mine')), []);
    assert.deepEqual(kinds(oracle.call(asked(LATE), 'mine', says('yours'))), ['wrong caller']);
    assert.deepEqual(kinds(oracle.call(asked(LATE), 'mine', FAILED)), ['unexpected error']);
  });
});

describe("the soak's oracle: listens", () => {
  const LISTEN: Listen = {
    ...{ id: 7, caller: 'ada', gateway: 'a', upstreams: ['alpha', 'beta'], uris: [DOC], lists: 'asked' },
    ...{ openedAt: LATE, announced: 'announced' },
  };
  const says = (method: string, params: Message['params'] = {}, id: string | number = 7): Message => ({
    method,
    params: { ...params, _meta: { [SUBSCRIPTION_ID]: id } },
  });
  const HONOURED = { resourcesListChanged: true, resourceSubscriptions: [DOC] };
  const acknowledgment = says(ACKNOWLEDGED, { notifications: HONOURED });
  const updated = says(UPDATED, { uri: DOC });
  const ended = (id: string | number): Message => ({ id, result: { _meta: { [SUBSCRIPTION_ID]: id } } });

  function listening(listen: Partial<Listen> = {}) {
    const parts = rig();
    const ear = new ListenOracle({ ...LISTEN, ...listen }, parts.truth, parts.troubles);
    return { ...parts, ear };
  }
  function acknowledged(listen: Partial<Listen> = {}) {
    const parts = listening(listen);
    assert.deepEqual(parts.ear.heard(acknowledgment, LATE + 1), []);
    return parts;
  }

  test('acknowledged, told, and ended with its gateway is right', () => {
    const { ear, truth, troubles } = acknowledged();
    truth.change(DOC, 200_000);
    assert.deepEqual(ear.heard(updated, 200_001), []);
    assert.deepEqual(ear.heard(says(LIST_CHANGED), 200_002), []);
    assert.deepEqual(ear.due(300_000), []);
    troubles.begin('gateway:a', 300_000);
    assert.deepEqual(ear.heard(ended(7), 300_001), []);
    assert.deepEqual(ear.closed('gateway stops'), []);
  });

  test('a foreign message is a finding: another id, also of another type, another resource, another kind', () => {
    const { ear } = acknowledged();
    for (const foreign of [
      says(UPDATED, { uri: DOC }, 8),
      says(UPDATED, { uri: DOC }, '7'),
      says(UPDATED, { uri: 'beta://doc/1' }),
      says('notifications/tools/list_changed'),
    ])
      assert.deepEqual(kinds(ear.heard(foreign, LATE + 2)), ['listen'], JSON.stringify(foreign));
    const { ear: narrow } = listening({ lists: 'not asked' });
    assert.deepEqual(
      narrow.heard(says(ACKNOWLEDGED, { notifications: { resourceSubscriptions: [DOC] } }), LATE + 1),
      [],
    );
    assert.deepEqual(kinds(narrow.heard(says(LIST_CHANGED), LATE + 2)), ['listen']);
  });

  test('an acknowledgment that is late, not the first, twice, too wide or too narrow is a finding', () => {
    assert.deepEqual(kinds(listening().ear.due(LATE + HEAL_MS)), ['listen']);
    assert.deepEqual(kinds(listening().ear.heard(updated, LATE + 1)), ['listen']);
    assert.deepEqual(kinds(acknowledged().ear.heard(acknowledgment, LATE + 2)), ['listen']);
    const empty = says(ACKNOWLEDGED, { notifications: {} });
    assert.deepEqual(kinds(listening({ uris: [] }).ear.heard(acknowledgment, LATE + 1)), ['listen']);
    assert.deepEqual(kinds(listening().ear.heard(empty, LATE + 1)), ['listen']);
    assert.deepEqual(listening({ announced: 'not announced' }).ear.heard(empty, LATE + 1), []);
  });

  test('a change that is not told is a finding, once, when its time is over', () => {
    const { ear, truth, troubles } = acknowledged();
    truth.change(DOC, 200_000);
    assert.deepEqual(ear.due(200_000 + HEAL_MS - 1), []);
    troubles.begin('redis', 200_001);
    assert.deepEqual(kinds(ear.due(200_000 + HEAL_MS + 1)), ['listen']);
    assert.deepEqual(ear.due(200_000 + HEAL_MS + 2), []);
    truth.remove('beta://doc/1', 300_000);
    assert.deepEqual(kinds(ear.due(300_000 + HEAL_MS + 1)), ['listen']);
  });

  test('a change while the upstream was down is told when its stream is open again', () => {
    const { ear, truth, troubles } = acknowledged();
    troubles.begin('down:alpha', 199_000);
    truth.change(DOC, 200_000);
    troubles.end('down:alpha', 201_000);
    assert.deepEqual(ear.due(201_000 + REOPEN_MS + HEAL_MS - 1), []);
    assert.deepEqual(kinds(ear.due(201_000 + REOPEN_MS + HEAL_MS + 1)), ['listen']);
  });

  test('an end that is not its own, too early, without a result, or an error is a finding', () => {
    assert.deepEqual(kinds(acknowledged().ear.heard(ended(7), 200_000)), ['listen']);
    assert.deepEqual(kinds(acknowledged().ear.closed('by itself')), ['listen']);
    assert.deepEqual(kinds(acknowledged().ear.closed('gateway stops')), ['listen']);
    assert.deepEqual(acknowledged().ear.closed('client left'), []);
    const { ear, troubles } = acknowledged();
    troubles.begin('gateway:a', 200_000);
    assert.deepEqual(kinds(ear.heard(ended('7'), 200_001)), ['listen']);
    const failed = { id: 7, error: { code: -32603, message: '' } };
    assert.deepEqual(kinds(acknowledged().ear.heard(failed, 200_000)), ['listen']);
  });
});

test('findings of a kind are told a few times and all counted', () => {
  const findings = new Findings();
  for (let count = 0; count < 30; count++) findings.add({ kind: 'stale', what: 'old' });
  findings.add({ kind: 'leak', what: 'open' });
  assert.equal(findings.count, 31);
  assert.equal(findings.lines().length, 12);
});
