import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Ended } from '../../src/legacy/ended.ts';
import { readInitialize } from '../../src/legacy/hello.ts';
import { MAX_ASKED, MAX_SUBSCRIPTIONS, type OpenedListen, Session } from '../../src/legacy/session.ts';
import { IDLE_MS, type Known, MAX_KEPT, MAX_OF_HOLDER, Sessions } from '../../src/legacy/sessions.ts';
import { type Holder, Tickets } from '../../src/legacy/tickets.ts';
import { objectMembers } from '../../src/protocol/json.ts';

const WHO = { version: '2025-11-25', capabilities: '{"roots":{}}', clientInfo: '{"name":"x","version":"1"}' };
const ALICE: Holder = { route: '/mcp', partition: 'alice' };
const BOB: Holder = { route: '/mcp', partition: 'bob' };
const deps = { listen: () => Promise.resolve(undefined) };

describe('a session id', () => {
  test('R22: says what was settled, to its own caller on its own route and to nobody else', () => {
    const tickets = new Tickets();
    const id = tickets.issue(WHO, ALICE);
    assert.deepEqual(tickets.read(id, ALICE), { ...WHO, serial: 1 });
    assert.equal(tickets.read(id, BOB), undefined);
    assert.equal(tickets.read(id, { ...ALICE, route: '/other' }), undefined);
    assert.notEqual(tickets.issue(WHO, ALICE), id);
  });

  test('is none of another process, however alike', () => {
    assert.equal(new Tickets().read(new Tickets().issue(WHO, ALICE), ALICE), undefined);
  });

  test('has one spelling, of visible ASCII, and cannot be changed', () => {
    const tickets = new Tickets();
    const id = tickets.issue(WHO, ALICE);
    assert.match(id, /^[\x21-\x7e]+$/);
    const [text = '', seal = ''] = id.split('.');
    const other = Buffer.from(JSON.stringify([1, WHO.version, '{"sampling":{}}', WHO.clientInfo])).toString(
      'base64url',
    );
    for (const forged of [
      `${other}.${seal}`,
      `${text}.${seal}=`,
      `${text}.`,
      text,
      '',
      '.',
      `${id}.${seal}`,
      `${id} `,
    ])
      assert.equal(tickets.read(forged, ALICE), undefined, forged);
    for (let at = 0; at < id.length; at++) {
      const changed = id.slice(0, at) + (id[at] === 'A' ? 'B' : 'A') + id.slice(at + 1);
      assert.equal(tickets.read(changed, ALICE), undefined, `${at}`);
    }
  });
});

describe('what a client says of itself', () => {
  const presented = (params: unknown) => {
    const bytes = Buffer.from(JSON.stringify({ params }));
    const [member] = objectMembers(bytes, 0) ?? [];
    const read = readInitialize({ bytes, id: '1', method: 'initialize', params: member });
    assert.ok('version' in read);
    return read;
  };

  test('R30: is kept as far as it can matter, and no longer than it may be', () => {
    const name = 'n'.repeat(128);
    const told = { protocolVersion: '2025-06-18', clientInfo: { name, version: '1', icons: [] } };
    const elicitation = { form: { x: 1 }, url: {}, note: 'x'.repeat(1_000) };
    const capabilities = { elicitation, sampling: { y: {} }, roots: { listChanged: true }, other: {} };
    const read = presented({ ...told, capabilities });
    assert.equal(read.capabilities, '{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}');
    assert.deepEqual(JSON.parse(read.clientInfo), { name, version: '1' });
    const more = presented({
      ...told,
      capabilities: 7,
      clientInfo: { name: `${name}n`, version: `${name}n` },
    });
    assert.equal(more.capabilities, '{}');
    assert.deepEqual(JSON.parse(more.clientInfo), { name, version: name });
  });

  test('R30: makes an id that headers have room for', () => {
    const part = { note: 'é'.repeat(250) };
    const capabilities = JSON.stringify({ elicitation: part, sampling: part, roots: {} });
    const clientInfo = JSON.stringify({ name: '\u0000'.repeat(128), version: '\u0000'.repeat(128) });
    const tickets = new Tickets();
    const id = tickets.issue({ version: '2025-11-25', capabilities, clientInfo }, ALICE);
    assert.ok(id.length <= 4_096, `${id.length}`);
    assert.equal(tickets.read(id, ALICE)?.clientInfo, clientInfo);
    assert.equal(tickets.read(`${'x'.repeat(4_097)}.x`, ALICE), undefined);
  });
});

describe('what a session keeps', () => {
  const listen = async (): Promise<OpenedListen> => ({
    id: '1',
    honoured: '{"x":true}',
    feed: { start: () => {}, drained: () => {}, stop: () => {} },
  });

  test('R30: is so many resources', async () => {
    const session = new Session({ listen, now: () => 0, used: () => {} });
    const results = await Promise.all(
      Array.from({ length: MAX_SUBSCRIPTIONS + 1 }, (_, i) => session.subscribe(`a:${i}`)),
    );
    assert.deepEqual(results.slice(-2), ['yes', 'full']);
    assert.equal(await session.subscribe('a:1'), 'yes');
    await session.unsubscribe('a:1');
    assert.equal(await session.subscribe('b:1'), 'yes');
  });

  test('of what is said about one resource, the last holds', async () => {
    const session = new Session({ listen, now: () => 0, used: () => {} });
    const said = await Promise.all([
      session.subscribe('a:1'),
      session.unsubscribe('a:1'),
      session.subscribe('a:1'),
    ]);
    assert.deepEqual(said, ['yes', undefined, 'yes']);
    const told: string[] = [];
    let write: (message: string) => boolean = () => false;
    const telling = async (): Promise<OpenedListen> => ({
      ...(await listen()),
      feed: {
        start: (outlet) => {
          write = (message) => outlet.write(message);
        },
        drained: () => {},
        stop: () => {
          write = () => false;
        },
      },
    });
    const other = new Session({ listen: telling, now: () => 0, used: () => {} });
    other.open().start({ write: (message) => told.push(message) > 0, end: () => {} });
    await Promise.all([other.subscribe('a:1'), other.unsubscribe('a:1'), other.subscribe('a:1')]);
    write('u');
    assert.deepEqual(told, ['u']);
  });

  test('R30: is so many open questions', () => {
    const session = new Session({ listen, now: () => 0, used: () => {} });
    const forgets = Array.from({ length: MAX_ASKED }, (_, i) => session.expect(`${i}`, () => {}));
    assert.ok(forgets.every((forget) => forget !== undefined));
    assert.equal(
      session.expect('more', () => {}),
      undefined,
    );
    forgets[0]?.();
    assert.ok(session.expect('more', () => {}));
  });
});

describe('sessions', () => {
  const open = (): {
    sessions: Sessions;
    tick: (ms: number) => void;
    begin: (holder?: Holder) => Known & { id: string };
  } => {
    let time = 0;
    const sessions = new Sessions(() => time);
    return {
      sessions,
      tick: (ms) => {
        time += ms;
      },
      begin: (holder = ALICE) => {
        const id = sessions.issue(WHO, holder);
        return { ...(sessions.find(id, holder) as Known), id };
      },
    };
  };

  test('R48: any number that keep nothing costs nothing', () => {
    const { sessions, begin } = open();
    const first = begin();
    for (let i = 0; i < 100_000; i++) sessions.issue(WHO, ALICE);
    assert.equal(sessions.size, 0);
    assert.ok(sessions.find(first.id, ALICE));
    sessions.close();
  });

  test('one that was ended is unknown, whether or not it kept something', () => {
    const { sessions, begin } = open();
    const [kept, bare] = [begin(), begin()];
    sessions.keep(kept, deps);
    for (const one of [kept, bare]) {
      sessions.end(one);
      assert.equal(sessions.find(one.id, ALICE), undefined);
    }
    assert.equal(sessions.size, 0);
    sessions.close();
  });

  test('R30: ended ones cost a bit each; the oldest of very many are over together', () => {
    const ended = new Ended(2);
    for (const serial of [1, 70_000, 70_002]) ended.add(serial);
    assert.deepEqual(
      [1, 2, 70_000, 70_001, 70_002].map((serial) => ended.has(serial)),
      [true, false, true, false, true],
    );
    ended.add(140_000);
    assert.deepEqual(
      [1, 2, 65_535, 70_000, 70_001].map((serial) => ended.has(serial)),
      [true, true, true, true, false],
    );
  });

  test('one that is over keeps nothing any more, whoever still asks in it', () => {
    const { sessions, begin } = open();
    const one = begin();
    sessions.keep(one, deps);
    sessions.end(one);
    assert.equal(sessions.keep(one, deps), undefined);
    assert.equal(sessions.kept(one), undefined);
    sessions.close();
  });

  test('R30: a caller has a quarter of the places, and loses its own', () => {
    const { sessions, begin } = open();
    const bob = begin(BOB);
    sessions.keep(bob, deps);
    const first = begin();
    sessions.keep(first, deps);
    for (let i = 1; i <= MAX_OF_HOLDER; i++) sessions.keep(begin(), deps);
    assert.equal(sessions.size, MAX_OF_HOLDER + 1);
    assert.equal(sessions.find(first.id, ALICE), undefined);
    assert.ok(sessions.find(bob.id, BOB));
    sessions.close();
  });

  test('one that kept something and was not used for long is unknown; one that is read lives on', () => {
    const { sessions, begin, tick } = open();
    const [idle, read, used, bare] = [begin(), begin(), begin(), begin()];
    sessions.keep(idle, deps);
    const feed = sessions.keep(read, deps)?.open();
    feed?.start({ write: () => true, end: () => {} });
    sessions.keep(used, deps);
    tick(IDLE_MS - 1);
    sessions.find(used.id, ALICE);
    tick(2);
    sessions.sweep();
    assert.deepEqual(
      [idle, read, used, bare].map(({ id }) => sessions.find(id, ALICE) !== undefined),
      [false, true, true, true],
    );
    sessions.close();
  });

  test('R30: there is room for so many; the one used least goes, never one that is read', () => {
    const { sessions } = open();
    const begin = (n: number): { known: Known; id: string; holder: Holder } => {
      const holder = { route: '/mcp', partition: `caller ${n % 8}` };
      const id = sessions.issue(WHO, holder);
      return { known: sessions.find(id, holder) as Known, id, holder };
    };
    const [read, oldest] = [begin(0), begin(1)];
    sessions
      .keep(read.known, deps)
      ?.open()
      .start({ write: () => true, end: () => {} });
    sessions.keep(oldest.known, deps);
    for (let i = 2; i < MAX_KEPT; i++) sessions.keep(begin(i).known, deps);
    assert.equal(sessions.size, MAX_KEPT);
    assert.ok(sessions.keep(begin(7).known, deps));
    assert.equal(sessions.size, MAX_KEPT);
    assert.equal(sessions.find(oldest.id, oldest.holder), undefined);
    assert.ok(sessions.find(read.id, read.holder));
    sessions.close();
  });
});
