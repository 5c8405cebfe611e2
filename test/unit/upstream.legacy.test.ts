/** Servers of an older era, asked as one of this era. */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { tailMembers } from '../../src/protocol/answer.ts';
import { textOf } from '../../src/protocol/json.ts';
import { Coverage } from '../../src/protocol/listen-filter.ts';
import { Abort } from '../../src/protocol/signal.ts';
import type { ListenEvent, ReadOutcome, StreamOutcome, Upstream } from '../../src/upstream/types.ts';
import { createUpstream } from '../../src/upstream/upstream.ts';
import { answer, head, startFaultServer, until } from '../support/fault-server.ts';
import { type LegacyOptions, type LegacyServer, startLegacy } from '../support/legacy-server.ts';
import { asking, listenRequest, TIMES } from '../support/listen-kit.ts';
import { now, recorder, upstreamConfig, VERSION } from '../support/upstream-kit.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function old(options: LegacyOptions = {}): Promise<LegacyServer> {
  const server = await startLegacy(options);
  closers.push(() => server.close());
  return server;
}

function opened(url: URL, protocol: 'auto' | 'modern' | 'legacy' = 'auto'): Upstream {
  const upstream = createUpstream(
    { ...upstreamConfig(url), protocol },
    { now, observer: recorder(), random: () => 0.5, listenTimes: TIMES },
  );
  closers.push(() => upstream.close());
  return upstream;
}

const read = (
  upstream: Upstream,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<ReadOutcome> =>
  upstream.read({
    method,
    name: params.uri as string | undefined,
    params: JSON.stringify(params),
    version: VERSION,
    headers,
    idempotent: true,
    signal: new Abort(),
    maxBytes: 1 << 20,
  });

/** The members of a result, as JSON. */
function resultOf(outcome: ReadOutcome): Record<string, unknown> {
  assert.ok(outcome.kind === 'answer' && outcome.answer.kind === 'result', JSON.stringify(outcome));
  const { tail } = outcome.answer.result;
  return Object.fromEntries(
    tailMembers(tail).map((member) => [member.key, JSON.parse(textOf(tail, member))]),
  );
}

async function textOfRead(outcome: Promise<ReadOutcome>): Promise<string> {
  const { contents } = resultOf(await outcome) as { contents: { text: string }[] };
  return contents[0]?.text ?? '';
}

function call(
  upstream: Upstream,
  params: Readonly<Record<string, unknown>>,
  { id = 7, signal = new Abort() }: { id?: unknown; signal?: Abort } = {},
): Promise<StreamOutcome> {
  return upstream.stream({
    method: 'tools/call',
    name: String(params.name),
    version: VERSION,
    headers: {},
    body: Buffer.from(JSON.stringify({ jsonrpc: '2.0', method: 'tools/call', params, id })),
    idempotent: false,
    signal,
  });
}

async function said(outcome: StreamOutcome): Promise<string> {
  if (outcome.kind === 'whole') return Buffer.concat(outcome.chunks).toString();
  assert.ok(outcome.kind === 'response');
  const chunks: Uint8Array[] = [];
  for await (const chunk of outcome.body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe('a server of an older era', () => {
  test('says by its initialize what server/discover would say', async () => {
    const server = await old({ capabilities: { resources: { subscribe: true }, tasks: {}, logging: {} } });
    const upstream = opened(server.url);
    assert.deepEqual(resultOf(await read(upstream, 'server/discover')), {
      supportedVersions: [VERSION],
      capabilities: { resources: { subscribe: true }, logging: {} },
      instructions: 'read me',
      _meta: { 'dev.headgate/translated': '2025-11-25' },
    });
    assert.equal(server.of('initialize').length, 1);
    assert.equal(server.of('notifications/initialized')[0]?.session, 's-1');
    assert.equal(await textOfRead(read(upstream, 'resources/read', { uri: 'old://1' })), 's-1 old://1');
    const asked = server.of('resources/read')[0];
    assert.equal(asked?.headers['mcp-protocol-version'], '2025-11-25');
  });

  test('is not told what only this era says of itself', async () => {
    const server = await old();
    const upstream = opened(server.url);
    await read(upstream, 'server/discover');
    const own = {
      'io.modelcontextprotocol/protocolVersion': VERSION,
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    await read(upstream, 'resources/read', {
      uri: 'old://1',
      _meta: { ...own, progressToken: 3, 'x/y': 1.5 },
    });
    await read(upstream, 'resources/read', { _meta: own, uri: 'old://2' });
    assert.deepEqual(
      server.of('resources/read').map(({ params }) => params),
      [{ uri: 'old://1', _meta: { progressToken: 3, 'x/y': 1.5 } }, { uri: 'old://2' }],
    );
  });

  test('R37: an error of its own has the status of its code', async () => {
    const server = await old({
      on: ({ method }) =>
        method === 'tools/call' ? { code: -32601, message: 'gone' } : (undefined as never),
    });
    const upstream = opened(server.url);
    await read(upstream, 'server/discover');
    const outcome = await call(upstream, { name: 'x' });
    assert.equal(outcome.kind === 'response' && outcome.status, 404);
    assert.match(await said(outcome), /"id":7,"error":\{"code":-32601,"message":"gone"\}/);
  });

  for (const [what, options] of [
    ['404', { unknown: 404 }],
    ['400', { unknown: 400 }],
  ] as const) {
    test(`that restarts (${what}) under 50 reads is initialised once more, and none is lost`, async () => {
      const server = await old(options);
      const upstream = opened(server.url);
      await read(upstream, 'server/discover');
      server.restart();
      const texts = await Promise.all(
        Array.from({ length: 50 }, (_, i) =>
          textOfRead(read(upstream, 'resources/read', { uri: `old://${i}` })),
        ),
      );
      assert.deepEqual(
        texts,
        Array.from({ length: 50 }, (_, i) => `s-2 old://${i}`),
      );
      assert.equal(server.of('initialize').length, 2);
    });
  }

  test('R22: callers whom it can tell apart never share a session', async () => {
    const server = await old();
    const upstream = opened(server.url);
    await read(upstream, 'server/discover');
    const as = (token: string | undefined) =>
      textOfRead(
        read(
          upstream,
          'resources/read',
          { uri: 'old://me' },
          token === undefined ? {} : { authorization: token, traceparent: `00-${Math.random()}` },
        ),
      );
    const got = await Promise.all(['a', 'b', 'a', undefined, 'b', undefined].map(as));
    const [a, b, again, anonymous, bAgain, anonymousAgain] = got;
    assert.equal(new Set([a, b, anonymous]).size, 3);
    assert.deepEqual([again, bAgain, anonymousAgain], [a, b, anonymous]);
    for (const { method, session, headers } of server.seen) {
      if (method === 'initialize') continue;
      const owner = server.seen.filter((one) => one.session === session);
      assert.ok(owner.every((one) => one.headers.authorization === headers.authorization));
    }
  });

  test('without sessions is asked without', async () => {
    const server = await old({ stateless: true });
    const upstream = opened(server.url);
    await read(upstream, 'server/discover');
    assert.equal(await textOfRead(read(upstream, 'resources/read', { uri: 'old://1' })), ' old://1');
    assert.ok(server.seen.every(({ session }) => session === undefined));
  });

  test('R8: answers each call under the id that it came with, two of the same id at once', async () => {
    const server = await old({
      on: async ({ method }) => {
        if (method !== 'tools/call') return undefined as never;
        await new Promise((resolve) => setTimeout(resolve, 20));
        return undefined as never;
      },
    });
    const upstream = opened(server.url);
    await read(upstream, 'server/discover');
    const both = await Promise.all(
      ['x', 'y'].map(async (name) => said(await call(upstream, { name }, { id: 'same' }))),
    );
    for (const [i, name] of ['x', 'y'].entries()) {
      assert.deepEqual(JSON.parse(both[i] as string), {
        jsonrpc: '2.0',
        id: 'same',
        result: { resultType: 'complete', content: [{ type: 'text', text: name }] },
      });
    }
    assert.equal(new Set(server.of('tools/call').map(({ id }) => id)).size, 2);
  });

  test('R34: what it says before its answer comes as it is said, and its own questions are declined at once', async () => {
    let proceed: () => void = () => undefined;
    const answered = new Promise<void>((resolve) => {
      proceed = resolve;
    });
    const server = await old({
      on: async ({ method, say }) => {
        if (method !== 'tools/call') return undefined as never;
        say({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } });
        say({ id: 'q', method: 'elicitation/create', params: {} });
        say({ id: 'p', method: 'ping' });
        await answered;
        return { content: [] };
      },
    });
    const upstream = opened(server.url);
    await read(upstream, 'server/discover');
    const outcome = await call(upstream, { name: 'slow' });
    assert.ok(outcome.kind === 'response' && outcome.media === 'sse');
    await until(
      () => server.seen.filter(({ message }) => !('method' in message)).length === 2,
      'both answers',
    );
    const answers = server.seen.map(({ message }) => message).filter((message) => !('method' in message));
    assert.deepEqual(answers.find(({ id }) => id === 'p')?.result, {});
    assert.match(JSON.stringify(answers.find(({ id }) => id === 'q')), /"code":-32601/);
    proceed();
    const events = (await said(outcome)).split('\n\n').filter(Boolean);
    assert.match(events[0] as string, /notifications\/progress/);
    assert.deepEqual(JSON.parse((events[1] as string).slice('event: message\ndata: '.length)), {
      jsonrpc: '2.0',
      id: 7,
      result: { resultType: 'complete', content: [] },
    });
    assert.equal(events.length, 2);
  });

  test('R35: is told of a call that nobody waits for any more', async () => {
    const server = await old({
      on: ({ method }) => (method === 'tools/call' ? new Promise(() => undefined) : (undefined as never)),
    });
    const upstream = opened(server.url);
    await read(upstream, 'server/discover');
    const signal = new Abort();
    const outcome = call(upstream, { name: 'endless' }, { signal });
    await until(() => server.of('tools/call').length === 1, 'the call');
    signal.abort(new Error('gone'));
    assert.equal((await outcome).kind, 'failure');
    await until(() => server.of('notifications/cancelled').length === 1, 'word of it');
    assert.equal(server.of('notifications/cancelled')[0]?.params.requestId, server.of('tools/call')[0]?.id);
  });

  test('its "not found" is that of this era', async () => {
    const server = await old({
      on: ({ method }) =>
        method === 'tools/call' ? { code: -32002, message: 'gone' } : (undefined as never),
    });
    const upstream = opened(server.url);
    await read(upstream, 'server/discover');
    assert.match(await said(await call(upstream, { name: 'x' })), /"code":-32602,"message":"gone"/);
  });

  test('hears the end of its sessions at shutdown', async () => {
    const server = await old();
    const upstream = opened(server.url);
    await read(upstream, 'server/discover');
    await read(upstream, 'resources/list', {}, { authorization: 'a' });
    await upstream.close();
    assert.deepEqual([...server.ended].sort(), ['s-1', 's-2']);
  });
});

describe('listening to a server of an older era', () => {
  async function listening(options: LegacyOptions = {}) {
    const server = await old(options);
    const upstream = opened(server.url);
    await read(upstream, 'server/discover');
    const events: ListenEvent[] = [];
    const listen = upstream.listen(
      listenRequest(
        asking({
          toolsListChanged: true,
          promptsListChanged: true,
          resourceSubscriptions: ['old://1', 'old://2'],
        }),
      ),
      (event) => events.push(event),
    );
    const heard = (kind: ListenEvent['kind'], count = 1) =>
      until(() => events.filter((event) => event.kind === kind).length >= count, `${kind} ${count}`);
    return { server, events, listen, heard, kinds: () => events.map(({ kind }) => kind) };
  }

  test('subscribes to what is asked for, and tells what changes', async () => {
    const { server, events, listen, heard } = await listening();
    await heard('acknowledged');
    assert.deepEqual(events[0], {
      kind: 'acknowledged',
      honoured: asking({ toolsListChanged: true, resourceSubscriptions: ['old://1', 'old://2'] }),
      gained: asking({ toolsListChanged: true, resourceSubscriptions: ['old://1', 'old://2'] }),
      first: true,
    });
    assert.deepEqual(listen.fate(asking({ promptsListChanged: true })), {
      honoured: asking({}),
      undecided: asking({}),
    });
    server.notify('notifications/resources/updated', { uri: 'old://1' });
    server.notify('notifications/prompts/list_changed');
    server.notify('notifications/resources/updated', { uri: 'old://9' });
    server.notify('notifications/tools/list_changed');
    await heard('list-changed');
    assert.deepEqual(
      events
        .slice(1)
        .map((event) =>
          event.kind === 'updated' ? event.uri : event.kind === 'list-changed' ? event.list : event.kind,
        ),
      ['old://1', 'tools'],
    );
    listen.update(new Coverage(asking({ resourceSubscriptions: ['old://2', 'old://3'] })));
    await heard('acknowledged', 2);
    assert.deepEqual([...(server.subscribed.get('s-1') ?? [])].sort(), ['old://2', 'old://3']);
    listen.close();
    await until(() => server.subscribed.get('s-1')?.size === 0 && server.streams === 0, 'the end');
  });

  test('R40: a session that is lost is opened again, and what it covered may have changed', async () => {
    const { server, events, heard } = await listening();
    await heard('acknowledged');
    server.restart();
    await heard('lost');
    await heard('acknowledged', 2);
    const [, lost, again] = events.filter(({ kind }) => kind !== 'unopened');
    const all = asking({ toolsListChanged: true, resourceSubscriptions: ['old://1', 'old://2'] });
    assert.deepEqual(lost?.kind === 'lost' && lost.covered, all);
    assert.deepEqual(again?.kind === 'acknowledged' && again.gained, all);
    assert.deepEqual([...(server.subscribed.get('s-2') ?? [])].sort(), ['old://1', 'old://2']);
    server.notify('notifications/resources/updated', { uri: 'old://2' });
    await heard('updated');
  });

  test('R40: without an event stream it is not offered, and not asked for again soon', async () => {
    const { server, heard, listen } = await listening({ events: false });
    await heard('not-offered');
    assert.equal(listen.state, 'not-offered');
    assert.equal(server.subscribed.size, 0);
  });
});

describe('which era a server is of', () => {
  const refusing = async (status: number, body = '{}') => {
    const server = await startFaultServer((request) => {
      if (request.headers['mcp-method'] === 'initialize')
        return request
          .id()
          .then((id) =>
            answer(
              request,
              `{"jsonrpc":"2.0","id":${id},"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{}}}`,
            ),
          );
      return request.body().then(() => {
        const headers = { 'Content-Type': 'application/json', 'Content-Length': body.length };
        request.socket.write(head(status, headers) + body);
      });
    });
    closers.push(() => server.close());
    return server;
  };

  for (const status of [400, 404, 405, 406, 415]) {
    test(`is asked of initialize after ${status}`, async () => {
      const server = await refusing(status);
      assert.deepEqual(resultOf(await read(opened(server.url), 'server/discover')).supportedVersions, [
        VERSION,
      ]);
    });
  }

  for (const status of [401, 403, 429, 503]) {
    test(`is not decided by ${status}`, async () => {
      const server = await refusing(status);
      const outcome = await read(opened(server.url), 'server/discover');
      assert.notEqual(outcome.kind, 'answer');
      assert.ok(server.requests.every(({ headers }) => headers['mcp-method'] === 'server/discover'));
    });
  }

  test('is this one where the configuration says so: what it answered is told', async () => {
    const server = await old();
    const outcome = await read(opened(server.url, 'modern'), 'server/discover');
    assert.ok(outcome.kind === 'answer' && outcome.answer.kind === 'error', JSON.stringify(outcome));
    assert.equal(server.of('initialize').length, 0);
  });

  test('is taken anew when an older server has become a newer one', async () => {
    let isOld = true;
    const server = await startFaultServer(async (request) => {
      const id = await request.id();
      const { 'mcp-method': method, 'mcp-protocol-version': version } = request.headers;
      const say = (status: number, members: string) =>
        answer(request, `{"jsonrpc":"2.0","id":${id},${members}}`, { status });
      if (isOld) {
        if (method !== 'initialize') return say(404, '"error":{"code":-32601,"message":"no such method"}');
        return say(200, '"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{}}');
      }
      if (version !== VERSION) return say(400, '"error":{"code":-32022,"message":"another version"}');
      return say(200, '"result":{"resultType":"complete","resources":[]}');
    });
    closers.push(() => server.close());
    const upstream = opened(server.url);
    await read(upstream, 'server/discover');
    isOld = false;
    assert.deepEqual(resultOf(await read(upstream, 'resources/list')), { resources: [] });
    const before = server.requests.length;
    assert.deepEqual(resultOf(await read(upstream, 'resources/list')), { resources: [] });
    assert.equal(server.requests.length, before + 1);
  });
});
