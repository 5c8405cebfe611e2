/** Clients that listen, over real streams of upstreams that say exactly what they are told. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { UpstreamConfig } from '../../src/config/types.ts';
import { readHead } from '../../src/protocol/headers.ts';
import type { ListenFilter } from '../../src/protocol/listen-filter.ts';
import { Abort } from '../../src/protocol/signal.ts';
import { Subscriptions } from '../../src/subscriptions/subscriptions.ts';
import { until } from '../support/fault-server.ts';
import { asking, type Heard, listenRig, type Station, startStation } from '../support/listen-kit.ts';
import { rawHeaders } from '../support/mcp.ts';
import { upstreamConfig } from '../support/scripted.ts';

const NAMES = ['docs', 'wiki'] as const;
type Name = (typeof NAMES)[number];
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';

interface Message {
  readonly method?: string;
  readonly params?: Record<string, unknown> & { readonly _meta: Record<string, unknown> };
}

let stations: Record<Name, Station>;
let rigs: Record<Name, ReturnType<typeof listenRig>>;
let configs: Record<Name, UpstreamConfig>;
let subscriptions: Subscriptions;
/** What was done to the cache, in order; each waits for this. */
let did: string[];
let told: Promise<unknown>;

beforeEach(async () => {
  stations = { docs: await startStation(), wiki: await startStation() };
  rigs = { docs: listenRig([stations.docs.server.url]), wiki: listenRig([stations.wiki.server.url]) };
  configs = {
    docs: upstreamConfig('docs', { auth: { type: 'none' } }),
    wiki: upstreamConfig('wiki', { auth: { type: 'forward', shared: true } }),
  };
  did = [];
  told = Promise.resolve();
  const note =
    (what: string) =>
    (...about: unknown[]): Promise<boolean> => {
      did.push([what, ...about.flat()].join(' '));
      return told.then(() => true);
    };
  subscriptions = new Subscriptions({
    cache: {
      invalidateMethod: note('method'),
      invalidateUri: note('uri'),
      doubt: note('doubt'),
      watch: note('watch'),
    },
    upstreams: new Map(NAMES.map((name) => [name, rigs[name].upstream])),
    heldUris: () => [],
    notified: () => undefined,
    log: { info: () => undefined, warn: () => undefined, error: () => undefined },
    now: () => performance.now(),
  });
});
afterEach(async () => {
  subscriptions.close();
  for (const name of NAMES) {
    await rigs[name].upstream.close();
    await stations[name].server.close();
  }
});

const stream = (name: Name, nth = 1): Heard => stations[name].streams[nth - 1] as Heard;
const uris = (...resourceSubscriptions: string[]): Partial<ListenFilter> => ({ resourceSubscriptions });

/** A client that listens; `reads` false: it takes nothing until it is told to. */
async function client(
  asked: Partial<Record<Name, Partial<ListenFilter>>>,
  options: {
    id?: string;
    token?: string;
    reads?: boolean;
    withinMs?: number;
    admits?: (uri: string) => boolean;
    audience?: string;
    signal?: Abort;
    /** Of whom it is asked when the route has changed. */
    plan?: () => Partial<Record<Name, Partial<ListenFilter>>>;
    extent?: () => 'whole' | 'part';
  } = {},
) {
  const { id = '7', token, withinMs = 450, admits = () => true, audience = id } = options;
  let reads = options.reads ?? true;
  const { signal = new Abort(), plan = () => asked, extent = () => 'whole' } = options;
  const partsOf = (all: typeof asked) =>
    NAMES.flatMap((name) => {
      const filter = all[name];
      return filter === undefined
        ? []
        : [{ config: configs[name], filter: asking(filter), meta: META, admits, audience }];
    });
  const reply = await subscriptions.listen({
    route: '/mcp',
    id,
    head: readHead(rawHeaders(token === undefined ? {} : { authorization: `Bearer ${token}` })),
    first: { parts: partsOf(asked), extent: 'whole', isCurrent: () => true },
    plan: async () => ({ parts: partsOf(plan()), extent: extent(), isCurrent: () => true }),
    withinMs,
    signal,
  });
  assert.ok(reply.kind === 'listen');
  const messages: Message[] = [];
  const { feed } = reply;
  const opening = JSON.parse(reply.opening ?? '') as Message;
  return {
    reply,
    honoured: opening.params?.notifications,
    opening,
    messages,
    feed,
    signal,
    start: () =>
      feed.start({
        write: (text) => {
          messages.push(JSON.parse(text) as Message);
          return reads;
        },
        end: () => {},
      }),
    read: () => {
      reads = true;
      feed.drained();
    },
    /** What was told: `tools`, `uri …`. */
    get heard() {
      return messages.map(({ method = '', params }) => {
        const list = /^notifications\/(\w+)\/list_changed$/.exec(method)?.[1];
        return list ?? (params?.uri === undefined ? `${method} ${params?.taskId}` : `${params.uri}`);
      });
    },
  };
}

const META =
  '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}';

describe('a client that listens', () => {
  test('R39: is acknowledged once, with what is honoured by each, under its own id', async () => {
    stations.wiki.behave = (heard) => heard.acknowledge(asking(uris('wiki:1')));
    const c = await client(
      {
        docs: { toolsListChanged: true, ...uris('docs:1') },
        wiki: { promptsListChanged: true, ...uris('wiki:1') },
      },
      { id: '"7"' },
    );
    assert.deepEqual(c.honoured, { toolsListChanged: true, resourceSubscriptions: ['docs:1', 'wiki:1'] });
    assert.equal(c.opening.params?._meta[SUBSCRIPTION], '7');
    assert.equal(c.opening.method, 'notifications/subscriptions/acknowledged');
    const closing = JSON.parse(c.reply.kind === 'listen' ? (c.reply.closing ?? '') : '') as Record<
      string,
      unknown
    >;
    assert.deepEqual(closing, {
      jsonrpc: '2.0',
      id: '7',
      result: { resultType: 'complete', _meta: { [SUBSCRIPTION]: '7' } },
    });
  });

  test('R39: hears what it asked for, stamped with its id, the rest of the message as it came', async () => {
    const [one, two] = [
      await client({ docs: uris('docs:1') }),
      await client({ docs: uris('docs:2') }, { id: '8' }),
    ];
    one.start();
    two.start();
    await until(() => stations.docs.streams.length === 2, 'the wider stream');
    const say = `"uri":"docs:2","big":12345678901234567890,"_meta":{"x/y":[1],"${SUBSCRIPTION}":${stream('docs', 2).id}}`;
    stream('docs', 2).updated('docs:1');
    stream('docs', 2).say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{${say}}}`);
    await until(() => one.messages.length === 1 && two.messages.length === 1, 'both');
    assert.deepEqual([one.heard, two.heard], [['docs:1'], ['docs:2']]);
    assert.deepEqual(two.messages[0]?.params?._meta, { [SUBSCRIPTION]: 8, 'x/y': [1] });
    assert.equal(one.messages[0]?.params?._meta[SUBSCRIPTION], 7);
  });

  test('R39: hears nothing that came before its acknowledgment was written', async () => {
    const c = await client({ docs: { toolsListChanged: true } });
    stream('docs').notify('notifications/tools/list_changed');
    await until(() => did.some((what) => what.startsWith('method')), 'the change');
    assert.deepEqual(c.messages, []);
    c.start();
    await until(() => c.messages.length === 1, 'the change');
    assert.deepEqual(c.heard, ['tools']);
  });

  test('R28: is told when the other replicas know, not before', async () => {
    const c = await client({ docs: uris('docs:1') });
    c.start();
    let known = (): void => undefined;
    told = new Promise<void>((resolve) => {
      known = resolve;
    });
    stream('docs').updated('docs:1');
    await until(() => did.includes('uri docs docs:1'), 'the cache');
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(c.messages, []);
    known();
    await until(() => c.messages.length === 1, 'the change');
  });

  test('R39: is told of what lies below, but not of what that upstream cannot have', async () => {
    const c = await client({ docs: uris('docs:a') }, { admits: (uri) => !uri.endsWith('/wiki') });
    c.start();
    stream('docs').updated('docs:a/wiki');
    stream('docs').updated('docs:a/b');
    await until(() => c.messages.length === 1, 'one');
    assert.deepEqual(c.heard, ['docs:a/b']);
  });

  test('an owner that is late counts as honoured, and its arrival is told as a change', async () => {
    stations.docs.behave = () => undefined;
    const c = await client({ docs: { toolsListChanged: true, ...uris('docs:1') } }, { withinMs: 60 });
    assert.deepEqual(c.honoured, { toolsListChanged: true, resourceSubscriptions: ['docs:1'] });
    c.start();
    stream('docs').acknowledge();
    await until(() => c.messages.length === 2, 'its arrival');
    assert.deepEqual(c.heard, ['tools', 'docs:1']);
    assert.deepEqual(did, ['doubt docs tools/list', 'watch docs docs:1 docs:1']);
  });

  test('what is refused is left out, and not asked for any longer', async () => {
    stations.docs.refuse = (request) => {
      request.socket.end('HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n');
    };
    const c = await client({ docs: uris('docs:1'), wiki: uris('wiki:1') });
    assert.deepEqual(c.honoured, { resourceSubscriptions: ['wiki:1'] });
    c.feed.stop();
    await until(() => stations.wiki.open.length === 0, 'the end');
  });

  test('R40: a stream that breaks comes back, and what may have changed meanwhile is told', async () => {
    const c = await client({ docs: { resourcesListChanged: true, ...uris('docs:1') } });
    c.start();
    stream('docs').socket.resetAndDestroy();
    await until(() => c.messages.length === 2, 'the gap');
    assert.deepEqual(c.heard, ['resources', 'docs:1']);
    assert.ok(did.indexOf('doubt docs resources/list resources/templates/list') >= 0);
    stream('docs', 2).updated('docs:1');
    await until(() => c.messages.length === 3, 'what comes then');
  });

  test("R28: what a caller's own stream has missed is over on every replica before it is told", async () => {
    const c = await client({ wiki: { toolsListChanged: true, ...uris('wiki:1') } }, { token: 'a' });
    c.start();
    did.length = 0;
    let known = (): void => undefined;
    told = new Promise<void>((resolve) => {
      known = resolve;
    });
    stream('wiki').socket.resetAndDestroy();
    await until(
      () => did.includes('uri docs wiki:1') && did.includes('method docs tools/list'),
      'the end of it',
    );
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(c.messages, []);
    known();
    await until(() => c.messages.length === 2, 'the gap');
    // One that is opened for the first time has missed nothing: nobody else's answers end for it.
    did.length = 0;
    (await client({ wiki: uris('wiki:1') }, { token: 'b' })).start();
    assert.deepEqual(did, ['watch docs wiki:1 wiki:1']);
  });

  test('R42: callers whom an upstream can tell apart share no stream, others do', async () => {
    const docs = await Promise.all(['a', 'b'].map((token) => client({ docs: uris('docs:1') }, { token })));
    assert.equal(stations.docs.open.length, 1);
    const wiki = await Promise.all(
      ['a', 'b', 'b'].map((token) => client({ wiki: uris('wiki:1') }, { token })),
    );
    for (const c of [...docs, ...wiki]) c.start();
    assert.deepEqual(stations.wiki.streams.map(({ request }) => request.headers.authorization).sort(), [
      'Bearer a',
      'Bearer b',
    ]);
    const [forA] = stations.wiki.streams.filter(
      ({ request }) => request.headers.authorization === 'Bearer a',
    );
    forA?.updated('wiki:1');
    await until(() => (wiki[0]?.messages.length ?? 0) === 1, 'the one');
    assert.deepEqual(
      wiki.map(({ heard }) => heard),
      [['wiki:1'], [], []],
    );
    for (const c of [...docs, ...wiki]) c.feed.stop();
    for (const name of NAMES) await until(() => stations[name].open.length === 0, `the last of ${name}`);
  });

  test('R41: a storm is told at once, and once more at its end', async () => {
    const c = await client({ docs: uris('docs:1') });
    c.start();
    for (let i = 0; i < 1_000; i++) stream('docs').updated('docs:1');
    await until(() => did.filter((what) => what === 'uri docs docs:1').length === 1_000, 'all of it');
    await until(() => c.messages.length >= 2, 'the last');
    await new Promise((resolve) => setTimeout(resolve, 250));
    assert.ok(c.messages.length <= 6, `${c.messages.length} messages`);
    const before = c.messages.length;
    stream('docs').updated('docs:1');
    await until(() => c.messages.length === before + 1, 'what comes then, at once');
  });

  test('R41: one that does not read is kept one message a thing, and hears of each when it does', async () => {
    const c = await client(
      { docs: { toolsListChanged: true, ...uris('docs:a', 'docs:b') } },
      { reads: false },
    );
    c.start();
    stream('docs').updated('docs:a');
    await until(() => c.messages.length === 1, 'the first');
    for (let i = 0; i < 2_500; i++) stream('docs').updated(`docs:b/${i}`);
    stream('docs').notify('notifications/tools/list_changed');
    stream('docs').updated('docs:a');
    await until(() => did.length >= 2_503, 'all of it');
    await new Promise((resolve) => setTimeout(resolve, 250));
    assert.equal(c.messages.length, 1);
    c.read();
    const { heard } = c;
    assert.equal(new Set(heard.slice(1)).size, heard.length - 1);
    assert.equal(heard.length, 1 + 1_000 + 1 + 1 + 1);
    for (const what of ['docs:b', 'tools', 'docs:a']) assert.ok(heard.slice(1).includes(what), what);
  });

  test('R41: a thousand that come at once, each with resources of its own, hold up nobody', async () => {
    let [last, longestMs] = [performance.now(), 0];
    const clock = setInterval(() => {
      longestMs = Math.max(longestMs, performance.now() - last);
      last = performance.now();
    }, 5);
    const own = (nth: number): string[] => Array.from({ length: 10 }, (_, i) => `docs://${nth}/${i}`);
    const all = await Promise.all(
      Array.from({ length: 1_000 }, async (_, nth) => {
        await new Promise((resolve) => setImmediate(resolve));
        const c = await client({ docs: uris(...own(nth)) }, { withinMs: 5_000 });
        c.start();
        return c;
      }),
    );
    for (const [nth, { honoured }] of all.entries())
      assert.deepEqual(honoured, { resourceSubscriptions: own(nth) });
    for (let nth = 0; nth < 1_000; nth++)
      for (const heard of stations.docs.open)
        if (heard.filter.resourceSubscriptions.includes(`docs://${nth}/9`)) heard.updated(`docs://${nth}/9`);
    await until(() => all.every(({ heard }) => heard.length > 0), 'all of it');
    clearInterval(clock);
    assert.ok(
      all.every(({ heard }, nth) => heard.every((uri) => uri === `docs://${nth}/9`)),
      'each hears its own',
    );
    for (const { feed } of all) feed.stop();
    await until(() => stations.docs.open.length === 0, 'the end');
    assert.ok(longestMs < 2_000, `nothing else was done for ${Math.round(longestMs)} ms`);
  });

  test('R41: what lies below is looked up once for all who may hear the same', async () => {
    let lookups = 0;
    const admits = (): boolean => ++lookups > 0;
    const all = await Promise.all(
      Array.from({ length: 20 }, () => client({ docs: uris('docs:a') }, { admits, audience: 'anybody' })),
    );
    const other = await client({ docs: uris('docs:a') }, { admits: () => false, audience: 'other' });
    for (const { start } of [...all, other]) start();
    stream('docs').updated('docs:a/1');
    await until(() => all.every(({ heard }) => heard.length === 1), 'all');
    assert.equal(lookups, 1);
    assert.deepEqual(other.heard, []);
  });

  test('R39: resources beyond 10,000 are not honoured, and those before them still are', async () => {
    const named = (nth: number): string[] => Array.from({ length: 1_000 }, (_, i) => `docs://${nth}/${i}`);
    for (let nth = 0; nth < 10; nth++) await client({ docs: uris(...named(nth)) }, { withinMs: 5_000 });
    const c = await client({ docs: uris('docs://1/1', 'docs://more') });
    assert.deepEqual(c.honoured, { resourceSubscriptions: ['docs://1/1'] });
  });

  test('tasks are told each time, as they came', async () => {
    const c = await client({ docs: { taskIds: ['t1'] } });
    assert.deepEqual(c.honoured, { taskIds: ['t1'] });
    c.start();
    for (const status of ['working', 'completed'])
      stream('docs').notify('notifications/tasks', { taskId: 't1', status });
    stream('docs').notify('notifications/tasks', { taskId: 't2', status: 'working' });
    await until(() => c.messages.length === 2, 'both');
    assert.deepEqual(
      c.messages.map(({ params }) => params?.status),
      ['working', 'completed'],
    );
  });

  test('R35: one that leaves while it waits is forgotten', async () => {
    stations.docs.behave = () => undefined;
    const signal = new Abort();
    const waiting = client({ docs: uris('docs:1') }, { withinMs: 5_000, signal });
    await until(() => stations.docs.streams.length === 1, 'the stream');
    signal.abort(new Error('gone'));
    assert.deepEqual((await waiting).honoured, {});
    await until(() => stations.docs.open.length === 0, 'the end');
  });

  test('is told of an upstream that is there for the first time, where it is told of others', async () => {
    const c = await client({ docs: { toolsListChanged: true } });
    c.start();
    subscriptions.arrived('/mcp', ['tools', 'prompts']);
    subscriptions.arrived('/other', ['tools']);
    assert.deepEqual(c.heard, ['tools']);
  });
});

describe('a client that listens, when the route has changed', () => {
  test('R44: hears of a resource from whom has it now, and is told that it may have changed', async () => {
    const c = await client(
      { docs: { toolsListChanged: true, ...uris('docs:1', 'docs:2') } },
      { plan: () => ({ docs: { toolsListChanged: true, ...uris('docs:1') }, wiki: uris('docs:2') }) },
    );
    c.start();
    await subscriptions.replan('/mcp');
    await until(() => stations.wiki.open.length === 1, 'the new stream');
    assert.deepEqual([...new Set(c.heard)].sort(), ['docs:2', 'tools']);
    const before = c.messages.length;
    // Said again and again: a narrower stream takes the place of the one that it is said on.
    await until(() => {
      for (const heard of stations.docs.open) heard.updated('docs:1');
      return c.heard.slice(before).includes('docs:1');
    }, 'whom it was heard from before');
    stream('wiki').updated('docs:2');
    await until(() => c.heard.slice(before).includes('docs:2'), 'whom it is heard from now');
    assert.deepEqual([...new Set(c.heard.slice(before))].sort(), ['docs:1', 'docs:2']);
  });

  test('R44: keeps the streams of what stays, and is told of no resource that stays where it was', async () => {
    const asked = { docs: { promptsListChanged: true, ...uris('docs:1') } };
    const c = await client(asked, { plan: () => asked });
    c.start();
    await subscriptions.replan('/mcp');
    assert.deepEqual(c.heard, ['prompts']);
    assert.deepEqual([stations.docs.streams.length, stations.docs.open.length], [1, 1]);
  });

  test('R39: is never told of more than was acknowledged, whatever the next plan says', async () => {
    stations.docs.behave = (heard) => heard.acknowledge(asking(uris('docs:1')));
    const c = await client(
      { docs: { toolsListChanged: true, ...uris('docs:1') } },
      {
        plan: () => ({
          wiki: { toolsListChanged: true, promptsListChanged: true, ...uris('docs:1', 'docs:2') },
        }),
      },
    );
    assert.deepEqual(c.honoured, uris('docs:1'));
    c.start();
    await subscriptions.replan('/mcp');
    await until(() => stations.wiki.open.length === 1, 'the new stream');
    assert.deepEqual(stream('wiki').filter, asking(uris('docs:1')));
    assert.deepEqual([...new Set(c.heard)], ['docs:1']);
  });

  test('R44: what nobody has for a while is heard from whoever comes with it', async () => {
    let plan: Partial<Record<Name, Partial<ListenFilter>>> = {};
    const c = await client({ docs: uris('docs:1') }, { plan: () => plan });
    c.start();
    await subscriptions.replan('/mcp');
    await until(() => stations.docs.open.length === 0, 'nobody is listened to');
    assert.deepEqual(c.heard, ['docs:1']);
    plan = { wiki: uris('docs:1') };
    subscriptions.arrived('/mcp', []);
    await until(() => stations.wiki.open.length === 1, 'the one that came');
    stream('wiki').updated('docs:1');
    await until(() => c.messages.length >= 3, 'what it tells');
  });

  test('R40: what is not found out is heard from whom it was, and looked for again until it is', async () => {
    let plan: Partial<Record<Name, Partial<ListenFilter>>> = {};
    let extent: 'whole' | 'part' = 'part';
    let planned = 0;
    const c = await client(
      { docs: { toolsListChanged: true, ...uris('docs:1') } },
      {
        plan: () => {
          planned++;
          return plan;
        },
        extent: () => extent,
      },
    );
    c.start();
    await subscriptions.replan('/mcp');
    assert.deepEqual(c.heard, ['tools']);
    await until(() => {
      for (const heard of stations.docs.open) heard.updated('docs:1');
      return c.heard.includes('docs:1');
    }, 'whom it is heard from');
    [plan, extent] = [{ docs: { toolsListChanged: true }, wiki: uris('docs:1') }, 'whole'];
    const listsTold = c.heard.filter((what) => what === 'tools').length;
    await until(() => stations.wiki.open.length === 1, 'the next look');
    assert.equal(planned, 2);
    await until(() => {
      stream('wiki').updated('docs:1');
      return c.heard.filter((what) => what === 'docs:1').length > 2;
    }, 'whom it is heard from now');
    // A look is no news of lists.
    assert.equal(c.heard.filter((what) => what === 'tools').length, listsTold);
  });

  test('R44: what is asked before the acknowledgment goes to whom has it then', async () => {
    stations.docs.behave = () => undefined;
    const waiting = client(
      { docs: uris('docs:1') },
      { withinMs: 5_000, plan: () => ({ wiki: uris('docs:1') }) },
    );
    await until(() => stations.docs.streams.length === 1, 'the stream');
    await subscriptions.replan('/mcp');
    assert.deepEqual((await waiting).honoured, uris('docs:1'));
    assert.equal(stations.wiki.open.length, 1);
  });

  test('R40: what is asked of an upstream that is replaced before it has acknowledged is counted on', async () => {
    stations.docs.behave = () => undefined;
    const waiting = client(
      { docs: uris('docs:1') },
      { withinMs: 300, plan: () => ({ wiki: uris('docs:1') }) },
    );
    await until(() => stations.docs.streams.length === 1, 'the stream');
    subscriptions.forget('docs');
    const c = await waiting;
    assert.deepEqual(c.honoured, uris('docs:1'));
    c.start();
    await subscriptions.replan('/mcp');
    await until(() => c.heard.includes('docs:1'), 'that it may have changed');
    await until(() => stations.wiki.open.length === 1, 'whom it is heard from');
  });

  test('R44: of an upstream that is forgotten no stream is left, its own watch included', async () => {
    subscriptions.watch(configs.docs, META);
    subscriptions.watched('docs')?.announced({ lists: new Set(['tools']), resources: false });
    await client({ docs: uris('docs:1') }, { token: 'x' });
    await until(() => stations.docs.open.length > 0, 'the stream');
    subscriptions.forget('docs');
    await until(() => stations.docs.open.length === 0, 'no stream');
    assert.equal(subscriptions.isHeard('docs'), undefined);
  });
});
