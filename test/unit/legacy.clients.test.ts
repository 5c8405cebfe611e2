/** Clients of older revisions, in front of the request path: what is asked for them, and what they see of the answer. */
import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import type { Handle, Inbound, Reply } from '../../src/protocol/exchange.ts';
import { Abort, type Signal } from '../../src/protocol/signal.ts';
import { until } from '../support/mcp.ts';
import { OlderClient } from '../support/older-client.ts';
import { catalogue, fleet, resources, type Script } from '../support/scripted.ts';

type Json = Readonly<Record<string, unknown>>;

/** A request path that answers from a function, and notes what it was asked. */
function path(answer: (message: Json & { params: Record<string, unknown> }, inbound: Inbound) => Reply) {
  const asked: (Json & { id: unknown; params: Record<string, unknown> })[] = [];
  const heads: Record<string, string>[] = [];
  const handle: Handle = (inbound) => {
    const text = inbound.body.kind === 'whole' ? Buffer.from(inbound.body.bytes).toString() : '';
    const message = JSON.parse(text) as (typeof asked)[number];
    asked.push(message);
    heads.push(Object.fromEntries(inbound.head.headers));
    return answer(message, inbound);
  };
  return { handle, asked, heads };
}

const whole = (message: Json): Reply => ({
  kind: 'answer',
  status: 200,
  head: '',
  tail: [Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }))],
  headers: {},
});
const result = (id: unknown, value: Json): Reply => whole({ id, result: value });
const DISCOVERED = {
  resultType: 'complete',
  ttlMs: 0,
  cacheScope: 'private',
  supportedVersions: ['2026-07-28'],
  capabilities: { resources: { subscribe: true }, tools: {}, extensions: { x: {} } },
  instructions: 'be kind',
  _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'headgate', version: '0' } },
};

describe('initialize', () => {
  for (const [asked, given] of [
    ['2025-11-25', '2025-11-25'],
    ['2025-06-18', '2025-06-18'],
    ['2025-03-26', '2025-03-26'],
    ['2024-11-05', '2024-11-05'],
    ['2026-07-28', '2025-11-25'],
    ['1999-01-01', '2025-11-25'],
  ] as const) {
    test(`asked for ${asked}, ${given} is agreed on`, async () => {
      const client = new OlderClient(path(({ id }) => result(id, DISCOVERED)).handle);
      const { json } = await client.ask('initialize', { protocolVersion: asked, capabilities: {} });
      assert.equal(json.result.protocolVersion, given);
    });
  }

  test('says what discover says, in the words of that time', async () => {
    const client = new OlderClient(path(({ id }) => result(id, DISCOVERED)).handle);
    const { json, headers, facts } = await client.initialize();
    assert.deepEqual(json.result, {
      protocolVersion: '2025-11-25',
      capabilities: { resources: { subscribe: true }, tools: {} },
      serverInfo: { name: 'headgate', version: '0' },
      instructions: 'be kind',
    });
    assert.ok(headers['mcp-session-id']);
    assert.equal(facts.mcpMethod, 'initialize');
  });

  test('gives a session where something could come of it, and else none', async () => {
    const bare = { ...DISCOVERED, capabilities: { tools: {} } };
    const client = new OlderClient(path(({ id }) => result(id, bare)).handle);
    assert.equal((await client.initialize({})).headers['mcp-session-id'], undefined);
    assert.ok((await client.initialize({ elicitation: {} })).headers['mcp-session-id']);
    const telling = { ...DISCOVERED, capabilities: { tools: { listChanged: true } } };
    const other = new OlderClient(path(({ id }) => result(id, telling)).handle);
    assert.ok((await other.initialize({})).headers['mcp-session-id']);
  });

  test('without a version is told what to write', async () => {
    const client = new OlderClient(path(() => assert.fail()).handle);
    const { json } = await client.ask('initialize', { capabilities: {} });
    assert.equal(json.error.code, -32602);
    assert.match(json.error.message, /protocolVersion/);
  });

  test('passes the challenge of an upstream on', async () => {
    const challenge: Reply = {
      kind: 'refused',
      id: '1',
      refusal: {
        status: 401,
        code: 401,
        message: 'Unauthorized',
        headers: { 'www-authenticate': 'Bearer x' },
      },
    };
    const { status, headers } = await new OlderClient(path(() => challenge).handle).initialize();
    assert.equal(status, 401);
    assert.equal(headers['www-authenticate'], 'Bearer x');
  });
});

describe('requests', () => {
  test('carry what the client said once, and their names in headers', async () => {
    const { handle, asked, heads } = path(({ id, method }) =>
      result(id, method === 'server/discover' ? DISCOVERED : { resultType: 'complete', content: [] }),
    );
    const client = new OlderClient(handle);
    await client.initialize({ elicitation: {}, roots: { listChanged: true }, strange: {} });
    await client.ask('tools/call', { name: 'ü', arguments: { a: 1 }, _meta: { progressToken: 0 } });
    assert.deepEqual(asked[1]?.params, {
      name: 'ü',
      arguments: { a: 1 },
      _meta: {
        progressToken: 0,
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'older', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': { elicitation: {}, roots: {} },
      },
    });
    assert.equal(heads[1]?.['mcp-name'], '=?base64?w7w=?=');
    assert.equal(heads[1]?.['mcp-method'], 'tools/call');
    assert.equal(heads[1]?.['mcp-protocol-version'], '2026-07-28');
    assert.equal(heads[1]?.['mcp-session-id'], undefined);
  });

  test('R3: what an older client mirrors is not believed', async () => {
    const { handle, heads } = path(({ id }) => result(id, { content: [] }));
    const headers = {
      'mcp-protocol-version': '2025-06-18',
      'mcp-method': 'tools/list',
      'mcp-name': 'other',
      'mcp-param-region': 'eu',
    };
    await new OlderClient(handle).ask('tools/call', { name: 'mine' }, { headers });
    assert.equal(heads[0]?.['mcp-method'], 'tools/call');
    assert.equal(heads[0]?.['mcp-name'], 'mine');
    assert.equal(heads[0]?.['mcp-param-region'], undefined);
  });

  test('R5: what names this revision, in `_meta` or by its header, is none of theirs', async () => {
    const seen: unknown[] = [];
    const handle: Handle = (inbound) => {
      seen.push(inbound);
      return { kind: 'accepted' };
    };
    const client = new OlderClient(handle);
    const modern = { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } };
    await client.ask('tools/list', modern);
    await client.ask('initialize', modern);
    await client.ask('tools/list', {}, { headers: { 'mcp-protocol-version': '2026-07-28' } });
    await client.ask('tools/list', {}, { headers: { 'mcp-protocol-version': '1999-01-01' } });
    await client.ask('tools/list', {}, { headers: { 'mcp-method': 'tools/list' } });
    await client.send({ message: '[]' });
    assert.equal(seen.length, 6);
    assert.ok(seen.every((inbound) => !JSON.stringify((inbound as Inbound).head).includes('clientCap')));
  });

  test('R6: what could be read in two ways is refused', async () => {
    const client = new OlderClient(path(() => assert.fail()).handle);
    for (const message of [
      '{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}',
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}',
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"a","cursor":"b"}}',
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"a":1,"a":2}}}',
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}',
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":7}}',
      '{"jsonrpc":"1.0","id":1,"method":"tools/list"}',
      '{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}',
      '{"jsonrpc":"2.0","id":1,"method":7}',
    ]) {
      const { status, json } = await client.send({ message });
      assert.deepEqual([status, json.error.code], [400, -32600], message);
    }
  });

  test('of a route that serves no older clients are refused as before', async () => {
    const f = fleet({ upstreams: [{ name: 'a', script: catalogue({}) }] });
    const { status, json } = await new OlderClient(f.handle, { refused: true }).initialize();
    assert.equal(status, 400);
    assert.equal(json.error.code, -32022);
  });

  for (const method of ['server/discover', 'subscriptions/listen', 'tasks/get', 'tasks/list'])
    test(`${method} is no method of theirs`, async () => {
      const { status, json } = await new OlderClient(path(() => assert.fail()).handle).ask(method);
      assert.deepEqual([status, json.error.code], [200, -32601]);
    });

  test('ping and log levels are answered here', async () => {
    const { handle, asked } = path(({ id, method }) =>
      result(id, method === 'server/discover' ? DISCOVERED : { content: [] }),
    );
    const client = new OlderClient(handle);
    await client.initialize();
    assert.deepEqual((await client.ask('ping')).json.result, {});
    assert.match((await client.ask('logging/setLevel', { level: 'loud' })).json.error.message, /debug, info/);
    assert.deepEqual((await client.ask('logging/setLevel', { level: 'warning' })).json.result, {});
    await client.ask('tools/call', { name: 'x' });
    const said = asked.at(-1)?.params._meta as Json | undefined;
    assert.equal(said?.['io.modelcontextprotocol/logLevel'], 'warning');
  });
});

describe('answers', () => {
  test('R6: keep every byte of a value, and have nothing that came with this revision', async () => {
    const odd = '{"big":12345678901234567890,"exp":1e400,"zero":-0,"esc":"\\u00e9\\/"}';
    const script: Script = (method, params, request) =>
      method === 'resources/read'
        ? {
            text: `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","contents":[{"uri":"res://0","text":"x","_meta":${odd}}],"ttlMs":60000,"cacheScope":"public"}}`,
          }
        : catalogue({ resources: resources('res', 3) })(method, params, request);
    const client = new OlderClient(fleet({ upstreams: [{ name: 'a', script }] }).handle);
    for (const cache of [/uri-miss; stored/, /hit/]) {
      const { text, json, headers } = await client.ask('resources/read', { uri: 'res://0' });
      assert.ok(text.includes(odd));
      assert.deepEqual(Object.keys(json.result), ['contents']);
      assert.match(headers['cache-status'] ?? '', cache);
    }
  });

  test('of merged lists have the items, the cursor, and no hints', async () => {
    const f = fleet({
      upstreams: [
        { name: 'a', script: catalogue({ resources: resources('a', 3) }) },
        { name: 'b', script: catalogue({ resources: resources('b', 3) }) },
      ],
      route: { pageSize: 4 },
    });
    const client = new OlderClient(f.handle);
    const first = await client.ask('resources/list');
    assert.deepEqual(Object.keys(first.json.result).sort(), ['_meta', 'nextCursor', 'resources']);
    const second = await client.ask('resources/list', { cursor: first.json.result.nextCursor });
    const uris = [first, second].flatMap(({ json }) =>
      json.result.resources.map((one: { uri: string }) => one.uri),
    );
    assert.deepEqual(uris, ['a://0', 'a://1', 'a://2', 'b://0', 'b://1', 'b://2']);
    assert.deepEqual((await client.ask('prompts/list')).json.result ?? {}, {});
  });

  for (const id of ['0', '-1', '"a\\"b"', '"\\u00e9{}"', '"result":"']) {
    test(`R8: the id ${id} comes back as it was sent`, async () => {
      const f = fleet({ upstreams: [{ name: 'a', script: catalogue({ resources: resources('a', 1) }) }] });
      const client = new OlderClient(f.handle);
      const text = id === '"result":"' ? '"\\"result\\":{\\"resultType\\":\\"complete\\""' : id;
      for (const method of ['resources/list', 'ping', 'tasks/get'])
        assert.ok(
          (await client.send({ message: `{"jsonrpc":"2.0","id":${text},"method":"${method}"}` })).reply,
        );
      const seen = await client.send({ message: `{"jsonrpc":"2.0","id":${text},"method":"resources/list"}` });
      assert.ok(seen.text.startsWith(`{"jsonrpc":"2.0","id":${text},"result":{"resources":[`), seen.text);
    });
  }

  test('a resource that is not there has the code of that time, at status 200', async () => {
    const f = fleet({ upstreams: [{ name: 'a', script: catalogue({ resources: resources('a', 1) }) }] });
    const { status, json } = await new OlderClient(f.handle).ask('resources/read', { uri: 'a://none' });
    assert.deepEqual([status, json.error.code, json.error.data], [200, -32002, { uri: 'a://none' }]);
  });

  test("errors of the gateway have status 200, by which alone they are read, but for HTTP's own", async () => {
    const f = fleet({ upstreams: [{ name: 'a', script: () => ({ failure: 'connect' }) }] });
    const down = await new OlderClient(f.handle).ask('resources/read', { uri: 'a://0' });
    assert.deepEqual([down.status, down.json.error.code], [200, -32603]);
    for (const [given, seen] of [
      [502, 200],
      [404, 200],
      [401, 401],
      [403, 403],
    ]) {
      const refused = path(() => ({
        kind: 'refused',
        id: '1',
        refusal: { status: given as number, code: -32603, message: 'no' },
      }));
      const { status, json } = await new OlderClient(refused.handle).ask('tools/call', {});
      assert.deepEqual([status, json.error.code], [seen, -32603]);
    }
  });

  test('larger than what is read whole go on as they come', async () => {
    const big = 'x'.repeat(5 << 20);
    const body = async function* (): AsyncGenerator<Uint8Array> {
      const text = JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        result: { resultType: 'complete', content: big },
      });
      for (let at = 0; at < text.length; at += 65_536) yield Buffer.from(text.slice(at, at + 65_536));
    };
    const { handle } = path(() => ({ kind: 'relay', status: 200, media: 'json', body: body(), headers: {} }));
    const { reply, json } = await new OlderClient(handle).ask('tools/call', { name: 'x' });
    assert.equal(reply.kind, 'relay');
    assert.equal(json.result.content, big);
  });

  test('R30: to a call that was asked again are read up to a bound, and beyond it are an error', async () => {
    for (const [bytes, fits] of [
      [63 << 20, true],
      [65 << 20, false],
    ] as const) {
      let stopped = false;
      const body = async function* (id: unknown): AsyncGenerator<Uint8Array> {
        try {
          yield Buffer.from(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":"`);
          for (let at = 0; at < bytes; at += 1 << 20) yield Buffer.alloc(1 << 20, 'x');
          yield Buffer.from('"}}');
        } finally {
          stopped = true;
        }
      };
      const { handle } = path(({ id, params }) =>
        params.requestState === undefined
          ? result(id, { resultType: 'input_required', requestState: 'x' })
          : { kind: 'relay', status: 200, media: 'json', body: body(id), headers: {} },
      );
      const { json } = await new OlderClient(handle).ask('tools/call', { name: 'x' });
      assert.equal(json.id, 1);
      assert.equal(json.result !== undefined, fits);
      assert.equal(stopped, true);
    }
  });

  test('that flow behind a head of the gateway lose its members, too', async () => {
    const body = async function* (): AsyncGenerator<Uint8Array> {
      yield Buffer.from('');
      yield Buffer.from(',"contents"');
      yield Buffer.from(':[]}}');
    };
    const head = '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private"';
    const { handle } = path(() => ({
      kind: 'relay',
      status: 200,
      media: 'json',
      head,
      body: body(),
      headers: {},
    }));
    const { text } = await new OlderClient(handle).ask('resources/read', { uri: 'a://0' });
    assert.equal(text, '{"jsonrpc":"2.0","id":1,"result":{"contents":[]}}');
  });

  const events = (...messages: readonly Json[]): Reply => ({
    kind: 'relay',
    status: 200,
    media: 'sse',
    headers: {},
    body: (async function* () {
      for (const message of messages) {
        const event = `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`;
        for (let at = 0; at < event.length; at += 65_536) yield Buffer.from(event.slice(at, at + 65_536));
      }
    })(),
  });

  test('that come as events: what is said before goes on at once, the answer is its last', async () => {
    const progress = { method: 'notifications/progress', params: { progressToken: 0, progress: 1 } };
    const { handle } = path(({ id }) =>
      events(progress, { id, result: { resultType: 'complete', content: [] } }),
    );
    const { said, json } = await new OlderClient(handle).ask('tools/call', { name: 'x' });
    assert.deepEqual(said, [{ jsonrpc: '2.0', ...progress }]);
    assert.deepEqual(json.result, { content: [] });
  });

  test('that come as one event too large to read go on as they are', async () => {
    const big = 'x'.repeat(5 << 20);
    const { handle } = path(({ id }) => events({ id, result: { content: big } }));
    const { text } = await new OlderClient(handle).ask('tools/call', { name: 'x' });
    const data = /^data: (.*)$/m.exec(text)?.[1] ?? '';
    assert.equal(JSON.parse(data).result.content, big);
  });
});

describe('questions in mid-call', () => {
  const question = { method: 'elicitation/create', params: { message: 'pin?' } };
  const asking = { resultType: 'input_required', inputRequests: { pin: question }, requestState: 's"1' };
  const server = () =>
    path(({ id, method, params }) => {
      if (method === 'server/discover') return result(id, DISCOVERED);
      return params.requestState === undefined
        ? result(id, asking)
        : result(id, { resultType: 'complete', content: [params.inputResponses] });
    });

  test('reach the client as requests on its stream, and its answer reaches the server', async () => {
    const { handle, asked } = server();
    const client = new OlderClient(handle);
    await client.initialize({ elicitation: {} });
    const { json, said } = await client.ask(
      'tools/call',
      { name: 'x', arguments: { a: 1 } },
      {
        onSaid: ({ id }) =>
          void client.send({
            message: { jsonrpc: '2.0', id, result: { action: 'accept', content: { pin: 7 } } },
          }),
      },
    );
    assert.deepEqual(
      said.map(({ id: _, ...rest }) => rest),
      [{ jsonrpc: '2.0', ...question }],
    );
    assert.deepEqual(json.result, { content: [{ pin: { action: 'accept', content: { pin: 7 } } }] });
    assert.equal(json.id, 2);
    const [, first, second] = asked;
    assert.notEqual(first?.id, second?.id);
    assert.equal(second?.params.requestState, 's"1');
    assert.deepEqual(second?.params.arguments, { a: 1 });
  });

  test('R22: are answered by nobody else', async () => {
    const { handle } = server();
    const alice = new OlderClient(handle);
    const bob = new OlderClient(handle, { clients: alice.clients });
    await alice.initialize({ elicitation: {} }, { headers: { authorization: 'alice' } });
    await bob.initialize({ elicitation: {} }, { headers: { authorization: 'bob' } });
    const answer = (id: unknown, name: string) => ({ jsonrpc: '2.0', id, result: { name } });
    const { json } = await alice.ask(
      'tools/call',
      { name: 'x' },
      {
        headers: { authorization: 'alice' },
        onSaid: ({ id }) =>
          void (async () => {
            const own = await bob.send({ message: answer(id, 'bob'), headers: { authorization: 'bob' } });
            assert.equal(own.status, 202);
            const stolen = { authorization: 'bob', 'mcp-session-id': alice.session ?? '' };
            const other = await bob.send({ message: answer(id, 'bob'), headers: stolen });
            assert.equal(other.status, 404);
            await alice.send({ message: answer(id, 'alice'), headers: { authorization: 'alice' } });
          })(),
      },
    );
    assert.deepEqual(json.result.content, [{ pin: { name: 'alice' } }]);
  });

  test('that the client did not offer to answer are not put to it', async () => {
    for (const capabilities of [{}, { sampling: {} }]) {
      const client = new OlderClient(server().handle);
      await client.initialize(capabilities);
      const { json, said } = await client.ask('tools/call', { name: 'x' });
      assert.equal(json.error.code, -32603);
      assert.match(json.error.message, /elicitation\/create, which this client does not offer/);
      assert.deepEqual(said, []);
    }
    const { json } = await new OlderClient(server().handle).ask('tools/call', { name: 'x' });
    assert.match(json.error.message, /does not offer/);
  });

  test('that the client refuses: a form was dismissed, anything else ends the call with its words', async () => {
    const refuse = (client: OlderClient) => ({
      onSaid: ({ id, method }: Json) =>
        method === 'notifications/cancelled' ||
        void client.send({ message: { jsonrpc: '2.0', id, error: { code: -1, message: 'busy' } } }),
    });
    const client = new OlderClient(server().handle);
    await client.initialize({ elicitation: {} });
    const { json } = await client.ask('tools/call', { name: 'x' }, refuse(client));
    assert.deepEqual(json.result.content, [{ pin: { action: 'cancel' } }]);
    const sampling = { ...asking, inputRequests: { s: { method: 'sampling/createMessage', params: {} } } };
    const other = new OlderClient(
      path(({ id, method }) => result(id, method === 'server/discover' ? DISCOVERED : sampling)).handle,
    );
    await other.initialize({ sampling: {} });
    const refused = await other.ask('tools/call', { name: 'x' }, refuse(other));
    assert.match(refused.json.error.message, /did not answer sampling\/createMessage: busy/);
    assert.equal(refused.facts.rpcError, -32603);
  });

  test('are all put, or none; what is of no use any more is withdrawn', async () => {
    const two = (second: string) => ({
      resultType: 'input_required',
      inputRequests: { a: { method: 'sampling/createMessage' }, b: { method: second, params: null } },
    });
    const asks = (second: string): OlderClient =>
      new OlderClient(
        path(({ id, method }) => result(id, method === 'server/discover' ? DISCOVERED : two(second))).handle,
      );
    const none = asks('roots/list');
    await none.initialize({ sampling: {} });
    const seen = await none.ask('tools/call', { name: 'x' });
    assert.deepEqual([seen.said, seen.json.error.code], [[], -32603]);
    const both = asks('elicitation/create');
    await both.initialize({ sampling: {}, elicitation: {} });
    const { said, json } = await both.ask(
      'tools/call',
      { name: 'x' },
      {
        onSaid: ({ id, method }) =>
          method === 'sampling/createMessage' &&
          void both.send({ message: { jsonrpc: '2.0', id, error: { code: -1, message: 'no' } } }),
      },
    );
    assert.match(json.error.message, /no$/);
    assert.deepEqual(
      said.map(({ method }) => method),
      ['sampling/createMessage', 'elicitation/create', 'notifications/cancelled'],
    );
  });

  test('R43: end with the session, and with the gateway', async () => {
    for (const end of [
      (one: OlderClient) => one.bare('DELETE'),
      (one: OlderClient) => one.clients.closing(),
    ]) {
      const client = new OlderClient(server().handle);
      await client.initialize({ elicitation: {} });
      const { json, reply } = await client.ask(
        'tools/call',
        { name: 'x' },
        {
          onSaid: ({ method }) => method === 'elicitation/create' && void end(client),
        },
      );
      assert.ok(reply.kind === 'accepted' || /session ends/.test(json.error.message));
    }
  });

  test('end when the client leaves', async () => {
    const client = new OlderClient(server().handle);
    await client.initialize({ elicitation: {} });
    const gone = new Abort();
    const { json } = await client.ask(
      'tools/call',
      { name: 'x' },
      { gone, onSaid: () => gone.abort(new Error('left')) },
    );
    assert.match(json.error.message, /has left/);
  });

  test('R30: that the client does not answer are given up in time', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const client = new OlderClient(server().handle);
    await client.initialize({ elicitation: {} });
    let over = false;
    const put = new Promise<void>((resolve) => {
      void client.ask('tools/call', { name: 'x' }, { onSaid: () => resolve() }).then(({ json }) => {
        over = true;
        assert.match(json.error.message, /did not answer elicitation\/create in time/);
      });
    });
    await put;
    mock.timers.tick(10 * 60_000 - 1);
    await Promise.resolve();
    assert.equal(over, false);
    mock.timers.tick(1);
    mock.timers.reset();
    await until(() => over, 'the end');
  });

  test('without an end are ended', async () => {
    const { handle, asked } = path(({ id, method }) =>
      result(
        id,
        method === 'server/discover' ? DISCOVERED : { resultType: 'input_required', requestState: 'x' },
      ),
    );
    const { json } = await new OlderClient(handle).ask('tools/call', { name: 'x' });
    assert.match(json.error.message, /too many questions/);
    assert.equal(asked.length, 16);
  });
});

test('arguments that a server wants in headers are mirrored, once it has said so', async () => {
  const schema = {
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      deep: { properties: { count: { type: 'integer', 'x-mcp-header': 'Count' } } },
    },
  };
  const { handle, heads } = path(({ id, method }, inbound) => {
    if (method === 'tools/list') return result(id, { tools: [{ name: 'x', inputSchema: schema }] });
    return inbound.head.headers.get('mcp-param-region') === 'eu'
      ? result(id, { content: [] })
      : { kind: 'refused', id: '1', refusal: { status: 400, code: -32020, message: 'no header' } };
  });
  const args = { region: 'eu', deep: { count: 3 } };
  const { json } = await new OlderClient(handle).ask('tools/call', { name: 'x', arguments: args });
  assert.deepEqual(json.result, { content: [] });
  assert.equal(heads.at(-1)?.['mcp-param-count'], '3');
});

test('R30: a tool is looked for in so many pages', async () => {
  let pages = 0;
  const { handle } = path(({ id, method }) => {
    if (method !== 'tools/list')
      return { kind: 'refused', id: '1', refusal: { status: 400, code: -32020, message: 'no header' } };
    return result(id, { tools: [], nextCursor: `${++pages}` });
  });
  const { json } = await new OlderClient(handle).ask('tools/call', { name: 'x' });
  assert.equal(json.error.code, -32020);
  assert.equal(pages, 64);
});

describe('what is too much', () => {
  test('R30: members are counted before they are looked at', async () => {
    const client = new OlderClient(path(() => assert.fail()).handle);
    const many = Array.from({ length: 100_000 }, (_, i) => `"k${i}":0`).join(',');
    for (const message of [
      `{"jsonrpc":"2.0","id":1,"method":"tools/list",${many}}`,
      `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{${many}}}`,
      `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{${many}}}}`,
    ]) {
      const { json } = await client.send({ message });
      assert.match(json.error.message, /at most 1000 members/);
    }
  });

  test('R30: names that make no header are refused', async () => {
    const client = new OlderClient(path(({ id }) => result(id, { content: [] })).handle);
    assert.equal((await client.ask('tools/call', { name: 'x'.repeat(8 * 1024) })).json.error, undefined);
    assert.equal(
      (await client.ask('tools/call', { name: 'x'.repeat(8 * 1024 + 1) })).json.error.code,
      -32602,
    );
    for (const method of ['x\r\ny: z', ' a', 'é', 'x'.repeat(257), ''])
      assert.equal((await client.ask(method)).json.error.code, -32601);
  });

  test('requests are refused under strain, but for the first; answers and cancellations are not', async () => {
    const client = new OlderClient(path(({ id }) => result(id, DISCOVERED)).handle);
    assert.equal((await client.initialize({}, { strained: true })).status, 200);
    assert.equal((await client.ask('tools/list', {}, { strained: true })).status, 503);
    for (const message of [
      { jsonrpc: '2.0', id: 'x', result: {} },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
    ])
      assert.equal((await client.send({ message, strained: true })).status, 202);
  });

  test('of a route that serves no older clients, GET and DELETE are no methods', async () => {
    const client = new OlderClient(path(() => assert.fail()).handle, { refused: true });
    for (const verb of ['GET', 'DELETE'] as const) {
      const reply = await client.bare(verb, { 'mcp-session-id': 'x' });
      assert.ok(reply.kind === 'refused' && reply.refusal.status === 405);
    }
  });
});

test('what an upstream says that is no object is no capability', async () => {
  const odd = { ...DISCOVERED, capabilities: { tools: null, resources: [], prompts: {}, logging: 7 } };
  const { json } = await new OlderClient(path(({ id }) => result(id, odd)).handle).initialize();
  assert.deepEqual(json.result.capabilities, { prompts: {} });
});

test('an id that the server spells otherwise is the same', async () => {
  const { handle } = path(() => whole({ id: 'café', result: { content: [] } }));
  const message = '{"jsonrpc":"2.0","id":"caf\\u00e9","method":"tools/call","params":{"name":"x"}}';
  const { text } = await new OlderClient(handle).send({ message });
  assert.equal(text, '{"jsonrpc":"2.0","id":"caf\\u00e9","result":{"content":[]}}');
});

test('R37: an answer that breaks off is an error with a name', async () => {
  const body = async function* (): AsyncGenerator<Uint8Array> {
    yield Buffer.from('{"jsonrpc":"2.0",');
    throw new Error('broken off');
  };
  const { handle } = path(() => ({ kind: 'relay', status: 200, media: 'json', body: body(), headers: {} }));
  const { status, json } = await new OlderClient(handle).ask('tools/call', { name: 'x' });
  assert.deepEqual([status, json.error.code], [200, -32603]);
});

describe('a session', () => {
  test('that is unknown is answered with 404, whatever comes in it', async () => {
    const client = new OlderClient(path(({ id }) => result(id, DISCOVERED)).handle);
    await client.initialize();
    client.session = `${client.session}x`;
    assert.equal((await client.ask('tools/list')).status, 404);
    assert.equal(
      (await client.send({ message: { jsonrpc: '2.0', method: 'notifications/initialized' } })).status,
      404,
    );
    for (const verb of ['GET', 'DELETE'] as const) {
      const reply = await client.bare(verb);
      assert.ok(reply.kind === 'refused' && reply.refusal.status === 404);
    }
  });

  test('that its client has ended is unknown', async () => {
    const client = new OlderClient(path(({ id }) => result(id, DISCOVERED)).handle);
    await client.initialize();
    assert.equal((await client.bare('DELETE')).kind, 'accepted');
    assert.equal((await client.ask('ping')).status, 404);
  });

  test('ends a request that its client cancels, and no other', async () => {
    const gone: string[] = [];
    const handle: Handle = (inbound, exchange) => {
      const { id, method } = JSON.parse(
        inbound.body.kind === 'whole' ? Buffer.from(inbound.body.bytes).toString() : '',
      ) as { id: number; method: string };
      if (method === 'server/discover') return result(id, DISCOVERED);
      return new Promise((resolve) => {
        exchange.signal.addEventListener('abort', () => {
          gone.push(`${id}`);
          resolve(whole({ id, error: { code: -32603, message: 'gone' } }));
        });
      });
    };
    const client = new OlderClient(handle);
    const other = new OlderClient(handle, { clients: client.clients });
    await client.initialize();
    await other.initialize();
    const call = client.ask('tools/call', { name: 'x' });
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } };
    await other.send({ message: cancel });
    assert.deepEqual(gone, []);
    await client.send({ message: cancel });
    assert.equal((await call).reply.kind, 'accepted');
    assert.deepEqual(gone, ['2']);
  });
});

test('R35: an answer that flows can be cancelled until it has flown', async () => {
  let signal: Signal | undefined;
  const body = async function* (): AsyncGenerator<Uint8Array> {
    yield Buffer.alloc(5 << 20, ' ');
    await new Promise(() => {});
  };
  const handle: Handle = (inbound, exchange) => {
    const text = inbound.body.kind === 'whole' ? Buffer.from(inbound.body.bytes).toString() : '';
    const { id, method } = JSON.parse(text) as { id: number; method: string };
    if (method === 'server/discover') return result(id, DISCOVERED);
    signal = exchange.signal;
    return { kind: 'relay', status: 200, media: 'json', body: body(), headers: {} };
  };
  const client = new OlderClient(handle);
  await client.initialize();
  void client.ask('tools/call', { name: 'x' });
  await until(() => signal !== undefined, 'the call');
  await new Promise((resolve) => setTimeout(resolve, 20));
  await client.send({
    message: { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } },
  });
  assert.equal(signal?.aborted, true);
});

describe('subscriptions', () => {
  /** A request path that tells on the listens which it is asked for. */
  function telling() {
    const open = new Map<
      string,
      { write: (message: string) => boolean; drained: number; stopped: boolean }
    >();
    const handle: Handle = (inbound) => {
      const { id, method, params } = JSON.parse(
        inbound.body.kind === 'whole' ? Buffer.from(inbound.body.bytes).toString() : '',
      ) as { id: string; method: string; params: { notifications: { resourceSubscriptions?: string[] } } };
      if (method === 'server/discover') return result(id, DISCOVERED);
      const [uri = 'lists'] = params.notifications.resourceSubscriptions ?? [];
      const one = { write: (_: string) => true, drained: 0, stopped: false };
      open.set(uri, one);
      const honoured = uri.startsWith('none:') ? {} : params.notifications;
      return {
        kind: 'listen',
        opening: JSON.stringify({ method: 'x', params: { notifications: honoured } }),
        closing: '{}',
        feed: {
          start: (outlet) => {
            one.write = (message) =>
              outlet.write(
                `{"jsonrpc":"2.0","method":"${message}","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":${JSON.stringify(id)}},"uri":"${uri}"}}`,
              );
          },
          drained: () => {
            one.drained++;
          },
          stop: () => {
            one.stopped = true;
          },
        },
      };
    };
    return { handle, open };
  }

  test('are told on the stream of the session, without the words of this revision', async () => {
    const { handle, open } = telling();
    const client = new OlderClient(handle);
    await client.initialize();
    const stream = await client.listen();
    assert.deepEqual((await client.ask('resources/subscribe', { uri: 'a:1' })).json.result, {});
    open.get('a:1')?.write('notifications/resources/updated');
    open.get('lists')?.write('notifications/tools/list_changed');
    assert.deepEqual(stream.heard, [
      { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'a:1' } },
      { jsonrpc: '2.0', method: 'notifications/tools/list_changed', params: { uri: 'lists' } },
    ]);
    await client.ask('resources/unsubscribe', { uri: 'a:1' });
    assert.equal(open.get('a:1')?.stopped, true);
    assert.equal(open.get('lists')?.stopped, false);
    await client.bare('DELETE');
    assert.equal(open.get('lists')?.stopped, true);
    assert.equal(stream.ended(), true);
  });

  test('that have ended are not told again on the next stream', async () => {
    const { handle, open } = telling();
    const client = new OlderClient(handle);
    await client.initialize();
    const stream = await client.listen();
    for (const uri of ['a:1', 'a:2']) {
      await client.ask('resources/subscribe', { uri });
      open.get(uri)?.write(`of ${uri}`);
    }
    stream.leave();
    await client.ask('resources/unsubscribe', { uri: 'a:1' });
    const next = await client.listen();
    assert.deepEqual(
      next.heard.map(({ method }) => method),
      ['of a:2'],
    );
  });

  test('of what nobody tells of are refused', async () => {
    const client = new OlderClient(telling().handle);
    await client.initialize();
    const { json } = await client.ask('resources/subscribe', { uri: 'none:1' });
    assert.deepEqual([json.error.code, json.error.data], [-32602, { uri: 'none:1' }]);
    assert.match(
      (await client.ask('resources/subscribe', { uri: 'no uri' })).json.error.message,
      /Not a URI/,
    );
  });

  test('R30: are so many of one caller, in however many sessions', async () => {
    const { handle } = telling();
    const first = new OlderClient(handle);
    const subscribe = async (client: OlderClient, count: number): Promise<number> => {
      await client.initialize();
      const all = await Promise.all(
        Array.from({ length: count }, (_, i) => client.ask('resources/subscribe', { uri: `a:${i}` })),
      );
      return all.filter(({ json }) => json.error === undefined).length;
    };
    const counts: number[] = [await subscribe(first, 900)];
    for (let i = 1; i < 6; i++)
      counts.push(await subscribe(new OlderClient(handle, { clients: first.clients }), 900));
    assert.deepEqual(counts, [900, 900, 900, 900, 900, 500]);
    await first.bare('DELETE');
    assert.equal(await subscribe(new OlderClient(handle, { clients: first.clients }), 900), 900);
  });

  test('need a session', async () => {
    const { json } = await new OlderClient(telling().handle).ask('resources/subscribe', { uri: 'a:1' });
    assert.match(json.error.message, /Mcp-Session-Id/);
  });

  test('wait for a stream, and begin with it', async () => {
    const { handle, open } = telling();
    const client = new OlderClient(handle);
    await client.initialize();
    await client.ask('resources/subscribe', { uri: 'a:1' });
    const stream = await client.listen();
    open.get('a:1')?.write('u1');
    stream.leave();
    assert.equal(open.get('a:1')?.write('u2'), false);
    const next = await client.listen();
    // What was told lately may have been lost with its stream.
    assert.deepEqual(
      next.heard.map(({ method }) => method),
      ['u1', 'u2'],
    );
    assert.equal(open.get('a:1')?.drained, 1);
  });

  test('R40: a reader that takes no more is not written to, and hears the rest when it does', async () => {
    const { handle, open } = telling();
    const client = new OlderClient(handle);
    await client.initialize();
    const stream = await client.listen(false);
    await client.ask('resources/subscribe', { uri: 'a:1' });
    await client.ask('resources/subscribe', { uri: 'a:2' });
    assert.equal(open.get('a:1')?.write('u1'), false);
    assert.equal(open.get('a:2')?.write('u2'), false);
    assert.deepEqual(
      stream.heard.map(({ method }) => method),
      ['u1'],
    );
    stream.read();
    assert.deepEqual(
      stream.heard.map(({ method }) => method),
      ['u1', 'u2'],
    );
  });

  test('a stream that is opened anew takes over', async () => {
    const { handle, open } = telling();
    const client = new OlderClient(handle);
    await client.initialize();
    const [first, second] = [await client.listen(), await client.listen()];
    assert.deepEqual([first.ended(), second.ended()], [true, false]);
    await until(() => Promise.resolve(open.get('lists') !== undefined), 'the listen');
    open.get('lists')?.write('u');
    assert.deepEqual([first.heard.length, second.heard.length], [0, 1]);
  });
});
