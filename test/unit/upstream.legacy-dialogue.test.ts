/** Servers of an older era that ask in mid-call, and clients of this one that are asked by `input_required`. */
import assert from 'node:assert/strict';
import { afterEach, describe, mock, test } from 'node:test';
import { askable, offers } from '../../src/protocol/questions.ts';
import { Abort } from '../../src/protocol/signal.ts';
import { Dialogue } from '../../src/upstream/legacy-dialogue.ts';
import { ParkedDialogues } from '../../src/upstream/legacy-parked.ts';
import type { ReadOutcome, ReadRequest, StreamOutcome, Upstream } from '../../src/upstream/types.ts';
import { createUpstream } from '../../src/upstream/upstream.ts';
import { until } from '../support/fault-server.ts';
import { type LegacyOptions, type LegacyServer, startLegacy } from '../support/legacy-server.ts';
import { TIMES } from '../support/listen-kit.ts';
import { now, recorder, upstreamConfig, VERSION } from '../support/upstream-kit.ts';

type Json = Readonly<Record<string, unknown>>;

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  mock.timers.reset();
});

const QUESTION = { method: 'elicitation/create', params: { message: 'colour?' } };

/** A server whose tools ask before they answer: as many questions as `count` says, at once or one after the other. */
async function asking(
  count = 1,
  {
    question = QUESTION,
    together = false,
    ...rest
  }: LegacyOptions & { question?: Json; together?: boolean } = {},
) {
  const waiting = new Map<unknown, (message: Json) => void>();
  const answers: Json[] = [];
  const server: LegacyServer = await startLegacy({
    onTold: async () => {
      for (const { message } of server.seen)
        if (message.method === undefined) {
          waiting.get(message.id)?.(message);
          waiting.delete(message.id);
        }
    },
    on: async ({ method, id, say }) => {
      if (method !== 'tools/call' && method !== 'resources/read') return undefined;
      const asked = Array.from({ length: count }, (_, i) => async () => {
        const answered = new Promise<Json>((resolve) => waiting.set(`${String(id)} ${i}`, resolve));
        say({ id: `${String(id)} ${i}`, ...question });
        answers.push(await answered);
      });
      if (together) await Promise.all(asked.map((ask) => ask()));
      else for (const ask of asked) await ask();
      const said = JSON.stringify(answers.map(({ result, error }) => result ?? error));
      return method === 'tools/call'
        ? { content: [{ type: 'text', text: said }] }
        : { contents: [{ uri: 'old://1', text: said }] };
    },
    ...rest,
  });
  closers.push(() => server.close());
  const upstream = createUpstream(
    { ...upstreamConfig(server.url), protocol: 'legacy' },
    { now, observer: recorder(), random: () => 0.5, listenTimes: TIMES },
  );
  closers.push(() => upstream.close());
  return { server, upstream, answers };
}

interface Caller {
  readonly caller?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly capabilities?: Json;
  readonly name?: string;
  readonly signal?: Abort;
}

function paramsOf({ capabilities = { elicitation: {} } }: Caller, rest: Json): Json {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': VERSION,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  };
  return { ...rest, _meta };
}

async function call(
  upstream: Upstream,
  rest: Json = {},
  who: Caller = {},
): Promise<Json & { result: Json; error: Json }> {
  const { caller = 'alice', name = 'paint', signal = new Abort(), headers = {} } = who;
  const params = paramsOf(who, { name, ...rest });
  const outcome: StreamOutcome = await upstream.stream({
    ...{ method: 'tools/call', name, version: VERSION, headers, idempotent: false, caller, signal },
    body: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params })),
  });
  if (outcome.kind === 'failure') return { error: outcome.failure as unknown as Json, result: {} };
  const chunks: Uint8Array[] = [];
  if (outcome.kind === 'whole') chunks.push(...outcome.chunks);
  else for await (const chunk of outcome.body) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  return JSON.parse(text.startsWith('{') ? text : (/.*^data: (.*)$/ms.exec(text)?.[1] ?? '')) as Json & {
    result: Json;
    error: Json;
  };
}

const answering = ({ result }: { result: Json }, value: unknown = { action: 'accept' }): Json => ({
  requestState: result.requestState,
  inputResponses: Object.fromEntries(Object.keys(result.inputRequests as Json).map((key) => [key, value])),
});

describe('a server of an older era that asks in mid-call', () => {
  test('asks by input_required, and goes on with the answer', async () => {
    const { upstream, server, answers } = await asking();
    const asked = await call(upstream);
    assert.equal(asked.result.resultType, 'input_required');
    assert.deepEqual(asked.result.inputRequests, { q1: QUESTION });
    const done = await call(upstream, answering(asked, { action: 'accept', content: { colour: 'red' } }));
    assert.equal(done.id, 7);
    assert.equal(done.result.resultType, 'complete');
    assert.match(JSON.stringify(done.result.content), /red/);
    assert.equal(answers.length, 1);
    assert.equal(server.of('tools/call').length, 1);
  });

  test('asks again, and several things at once', async () => {
    const one = await asking(3);
    let turn = await call(one.upstream);
    for (let i = 0; i < 3; i++) {
      assert.equal(turn.result.resultType, 'input_required');
      turn = await call(one.upstream, answering(turn, { action: 'accept', content: { i } }));
    }
    assert.match(JSON.stringify(turn.result.content), /0.*1.*2/);
    const two = await asking(2, { together: true });
    const asked = await call(two.upstream);
    assert.deepEqual(asked.result.inputRequests, { q1: QUESTION, q2: QUESTION });
    assert.equal((await call(two.upstream, answering(asked))).result.resultType, 'complete');
    assert.equal(two.answers.length, 2);
  });

  test('asks again for what was left out', async () => {
    const { upstream } = await asking();
    const asked = await call(upstream);
    const again = await call(upstream, { requestState: asked.result.requestState, inputResponses: {} });
    assert.deepEqual(again.result.inputRequests, asked.result.inputRequests);
    assert.notEqual(again.result.requestState, asked.result.requestState);
    assert.equal((await call(upstream, answering(again))).result.resultType, 'complete');
  });

  test('begins anew for answers without a state, and is not told of them', async () => {
    const { upstream, server } = await asking();
    const asked = await call(upstream, { inputResponses: { other: { action: 'accept' } } });
    assert.deepEqual(asked.result.inputRequests, { q1: QUESTION });
    assert.deepEqual(server.of('tools/call')[0]?.params, { name: 'paint' });
  });

  test('asks while a resource is read, too', async () => {
    const { upstream } = await asking();
    const read = (rest: Json): Promise<ReadOutcome> =>
      upstream.read({
        ...{ method: 'resources/read', name: 'old://1', version: VERSION, headers: {}, idempotent: true },
        ...{ signal: new Abort(), maxBytes: 1 << 20, caller: 'alice' },
        params: JSON.stringify(paramsOf({}, { uri: 'old://1', ...rest })),
      });
    const asked = await read({});
    assert.ok(asked.kind === 'answer' && asked.answer.kind === 'result');
    assert.equal(asked.answer.resultType, 'input_required');
    const result = JSON.parse(`{${Buffer.from(asked.answer.result.plain()).toString().slice(1, -1)}`) as Json;
    const done = await read(answering({ result }));
    assert.ok(done.kind === 'answer' && done.answer.kind === 'result');
    assert.equal(done.answer.resultType, 'complete');
  });

  test('R22: is answered by its caller for its call alone, and once', async () => {
    const { upstream } = await asking();
    const asked = await call(upstream);
    const answer = answering(asked);
    const refused = async (rest: Json, who: Caller = {}): Promise<void> => {
      const { error } = await call(upstream, rest, who);
      assert.equal(error?.code, -32602);
      assert.match(String(error?.message), /another replica/);
    };
    await refused(answer, { caller: 'bob' });
    await refused(answer, { name: 'other' });
    await refused({ ...answer, requestState: `${String(answer.requestState)}x` });
    await refused({ ...answer, requestState: 7 });
    assert.equal((await call(upstream, answer)).result.resultType, 'complete');
    await refused(answer);
  });

  test('is told no at once where its client cannot be asked', async () => {
    for (const capabilities of [{}, { sampling: {} }]) {
      const { upstream, answers } = await asking();
      const { result } = await call(upstream, {}, { capabilities });
      assert.equal(result.resultType, 'complete');
      assert.equal((answers[0] as { error?: Json } | undefined)?.error?.code, -32601);
    }
    const url = {
      method: 'elicitation/create',
      params: { mode: 'url', url: 'https://x.example', message: 'x' },
    };
    const bare = await asking(1, { question: url });
    assert.equal((await call(bare.upstream)).result.resultType, 'complete');
    const able = await asking(1, { question: url });
    const capabilities = { elicitation: { url: {} } };
    assert.equal((await call(able.upstream, {}, { capabilities })).result.resultType, 'input_required');
  });

  test('knows what its client can, in a session with those who can the same', async () => {
    const { upstream, server } = await asking(0);
    for (const capabilities of [
      {},
      { elicitation: {} },
      { elicitation: {} },
      { roots: { listChanged: true } },
    ])
      await call(upstream, {}, { capabilities });
    assert.deepEqual(
      server.of('initialize').map(({ params }) => params.capabilities),
      [{}, { elicitation: {} }, { roots: {} }],
    );
  });

  test('without a session is not waited for: it could not be answered', async () => {
    const { upstream } = await asking(1, { stateless: true });
    const startedAt = Date.now();
    const { error } = await call(upstream);
    assert.equal(error.kind, 'broken');
    assert.ok(Date.now() - startedAt < 2_000);
  });

  test('R35: is told when its client leaves before it has asked', async () => {
    const { upstream, server } = await asking(0, {
      on: async () => {
        await new Promise((resolve) => setTimeout(resolve, 200));
        return { content: [] };
      },
    });
    const signal = new Abort();
    const called = call(upstream, {}, { signal });
    await until(() => server.of('tools/call').length === 1, 'the call');
    signal.abort(new Error('left'));
    assert.equal((await called).error.kind, 'cancelled');
    await until(() => server.of('notifications/cancelled').length === 1, 'the cancellation');
  });

  test('hears no when the gateway ends', async () => {
    const { upstream, answers } = await asking();
    await call(upstream);
    await upstream.close();
    await until(() => answers.length === 1, 'the answer');
    assert.equal((answers[0] as { error?: Json } | undefined)?.error?.message, 'Nobody answers');
  });
});

describe('what a server asks must not harm others', () => {
  test('a question whose params are no object is one like any other', async () => {
    const odd = { method: 'elicitation/create', params: null } as unknown as Json;
    const { upstream } = await asking(1, { question: odd });
    assert.equal((await call(upstream)).result.resultType, 'input_required');
  });

  test('R35: what nobody answers in time is declined', async () => {
    const { server, answers } = await asking();
    const upstream = createUpstream(
      { ...upstreamConfig(server.url, { callMs: 400 }), protocol: 'legacy' },
      { now, observer: recorder(), random: () => 0.5, listenTimes: TIMES },
    );
    closers.push(() => upstream.close());
    const asked = await call(upstream);
    await until(() => answers.length === 1, 'the answer');
    assert.equal((answers[0] as { error?: Json } | undefined)?.error?.message, 'Nobody answers');
    assert.equal((await call(upstream, answering(asked))).error.kind, 'timeout');
  });

  test('R30: those who are asked hold no more than half of the connections', async () => {
    const { server, answers } = await asking();
    const upstream = createUpstream(
      { ...upstreamConfig(server.url), connections: 2, protocol: 'legacy' },
      { now, observer: recorder(), random: () => 0.5, listenTimes: TIMES },
    );
    closers.push(() => upstream.close());
    const first = await call(upstream);
    const second = await call(upstream);
    assert.equal(second.result.resultType, 'input_required');
    await until(() => answers.length === 1, 'the first is declined');
    assert.equal((await call(upstream, answering(first))).error.code, -32602);
    assert.equal((await call(upstream, answering(second))).result.resultType, 'complete');
  });

  test('R36: a call that asks is no failure of the server, however long it takes', async () => {
    const seen = recorder();
    const { server } = await asking();
    const upstream = createUpstream(
      { ...upstreamConfig(server.url, { callMs: 150 }), protocol: 'legacy' },
      { now, observer: seen, random: () => 0.5, listenTimes: TIMES },
    );
    closers.push(() => upstream.close());
    for (let i = 0; i < 3; i++) {
      assert.equal((await call(upstream)).result.resultType, 'input_required');
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    assert.equal(upstream.available(), true);
  });

  test('R47: who is traced comes back under another trace', async () => {
    const { upstream } = await asking();
    const asked = await call(upstream, {}, { headers: { traceparent: '00-1' } });
    const done = await call(upstream, answering(asked), { headers: { traceparent: '00-2' } });
    assert.equal(done.result.resultType, 'complete');
  });

  test('an answer that the server does not take ends the call at once', async () => {
    const { upstream, server } = await asking();
    const asked = await call(upstream);
    server.restart('kept');
    const startedAt = Date.now();
    const { error } = await call(upstream, answering(asked));
    assert.equal(error.kind, 'reset');
    assert.ok(Date.now() - startedAt < 2_000);
  });

  test('an answer that is no object is asked for again', async () => {
    const { upstream, answers } = await asking();
    const again = await call(upstream, answering(await call(upstream), null));
    assert.equal(again.result.resultType, 'input_required');
    assert.equal(answers.length, 0);
  });

  test('a ping lengthens no deadline', async () => {
    const { upstream } = await asking(0, {
      on: async ({ say }) => {
        say({ id: 'p', method: 'ping' });
        await new Promise((resolve) => setTimeout(resolve, 2_000));
        return { tools: [] };
      },
    });
    const startedAt = Date.now();
    const outcome = await upstream.read({
      ...{ method: 'tools/list', name: undefined, version: VERSION, headers: {}, idempotent: true },
      ...{ signal: new Abort(), maxBytes: 1 << 20, params: '{}', deadlineMs: 300 },
    });
    assert.ok(outcome.kind === 'failure' && outcome.failure.kind === 'timeout');
    assert.ok(Date.now() - startedAt < 1_500);
  });

  test('a ping of a server without sessions is no question', async () => {
    const { upstream } = await asking(1, {
      stateless: true,
      question: { method: 'ping' },
      onTold: async () => {},
      on: async ({ say }) => {
        say({ id: 'p', method: 'ping' });
        return { content: [] };
      },
    });
    assert.equal((await call(upstream)).result.resultType, 'complete');
  });

  for (const [title, capabilities, form, url] of [
    ['nothing more', {}, true, false],
    ['forms', { form: {} }, true, false],
    ['pages', { url: {} }, false, true],
    ['both', { form: {}, url: {} }, true, true],
  ] as const)
    test(`who can be shown ${title} is asked that alone`, () => {
      const told = askable(Buffer.from(JSON.stringify({ elicitation: { ...capabilities, x: 1 } })), {
        key: '',
        start: 0,
        end: 0,
      });
      const asks = (mode: string): boolean =>
        offers(told, { method: 'elicitation/create', params: `{"mode":"${mode}"}` });
      assert.deepEqual([asks('form'), asks('url')], [form, url]);
    });

  test('R30: clients cannot make sessions by what they say they can', async () => {
    const { upstream, server } = await asking(0);
    for (let i = 0; i < 20; i++)
      await call(
        upstream,
        {},
        { capabilities: { elicitation: { [`x${i}`]: i }, sampling: { y: [i] }, z: {} } },
      );
    assert.equal(server.of('initialize').length, 1);
  });
});

describe('a question on the stream of the session', () => {
  /** A server that asks there, and answers the call with what it is told. */
  async function aside() {
    let answered: ((message: Json) => void) | undefined;
    const server = await startLegacy({
      onTold: async () => {
        const last = server.seen.at(-1)?.message;
        if (last?.method === undefined && last !== undefined) answered?.(last);
      },
      on: async ({ method, params }) => {
        if (method !== 'tools/call') return undefined;
        const name = String(params.name);
        if (name === 'slow') await new Promise((resolve) => setTimeout(resolve, 300));
        if (name !== 'paint') return { content: [] };
        const said = await new Promise<Json>((resolve) => {
          answered = resolve;
          server.say({ id: 'aside', ...QUESTION });
        });
        return { content: [{ type: 'text', text: JSON.stringify(said.result ?? said.error) }] };
      },
    });
    closers.push(() => server.close());
    const upstream = createUpstream(
      { ...upstreamConfig(server.url), protocol: 'legacy' },
      { now, observer: recorder(), random: () => 0.5, listenTimes: TIMES },
    );
    closers.push(() => upstream.close());
    return { server, upstream };
  }

  test('is asked of whoever is under way alone', async () => {
    const { upstream } = await aside();
    const asked = await call(upstream);
    assert.deepEqual(asked.result.inputRequests, { q1: QUESTION });
    const done = await call(upstream, answering(asked, { action: 'accept', content: { colour: 'red' } }));
    assert.match(JSON.stringify(done.result.content), /red/);
  });

  test("is heard where somebody can be asked alone: the stream is the listening one's otherwise", async () => {
    const { upstream, server } = await aside();
    await call(upstream, {}, { capabilities: {}, name: 'other' });
    assert.equal(server.gets, 0);
    await call(upstream, {}, { name: 'other' });
    assert.equal(server.gets, 1);
    await call(upstream, {}, { name: 'other' });
    assert.equal(server.gets, 1);
  });

  test('of a server that has no such stream is asked for once', async () => {
    const server = await startLegacy({ events: false });
    closers.push(() => server.close());
    const upstream = createUpstream(
      { ...upstreamConfig(server.url), protocol: 'legacy' },
      { now, observer: recorder(), random: () => 0.5, listenTimes: TIMES },
    );
    closers.push(() => upstream.close());
    for (let i = 0; i < 3; i++) await call(upstream);
    assert.equal(server.gets, 1);
  });

  test('R22: is declined while two are under way, or one who was given up', async () => {
    const { upstream } = await aside();
    const both = await Promise.all([call(upstream, {}, { name: 'slow' }), call(upstream)]);
    assert.match(JSON.stringify(both[1].result.content), /does not offer/);
    const signal = new Abort();
    const left = call(upstream, {}, { name: 'slow', signal });
    await new Promise((resolve) => setTimeout(resolve, 100));
    signal.abort(new Error('left'));
    await left;
    assert.match(JSON.stringify((await call(upstream)).result.content), /does not offer/);
  });
});

/** A dialogue whose server asks when it is told to. */
function staged() {
  const told: string[] = [];
  let ask: (id: number) => boolean = () => false;
  let finish: (outcome: ReadOutcome) => void = () => {};
  const session = {
    read: (request: ReadRequest) => {
      ask = (id) =>
        request.onQuestion?.(
          Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, ...QUESTION })),
          async (text) => {
            told.push(text);
            return true;
          },
        ) ?? false;
      return new Promise<ReadOutcome>((resolve) => {
        finish = resolve;
      });
    },
    tell: async () => {},
  };
  const request = {
    ...{ method: 'tools/call', name: 'x', params: '{}', version: VERSION, headers: {} },
    ...{ idempotent: false, signal: new Abort(), maxBytes: 1 },
  };
  const dialogue = new Dialogue(session, request, '{"elicitation":{}}');
  return { dialogue, told, ask: (id: number) => ask(id), finish: (outcome: ReadOutcome) => finish(outcome) };
}

describe('what waits for a client', () => {
  test('R30: is declined when its time is over', () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const parked = new ParkedDialogues(64);
    const { dialogue, told, ask } = staged();
    ask(1);
    const state = parked.park(dialogue, 'alice');
    mock.timers.tick(5 * 60_000 - 1);
    assert.deepEqual(told, []);
    mock.timers.tick(1);
    assert.match(told[0] ?? '', /Nobody answers/);
    assert.equal(parked.take(state, 'alice'), undefined);
  });

  test('R30: is so many, and of more the oldest is declined', () => {
    const parked = new ParkedDialogues(64);
    const all = Array.from({ length: 33 }, () => staged());
    const states = all.map((one) => {
      one.ask(1);
      return parked.park(one.dialogue, 'alice');
    });
    assert.deepEqual(
      all.map(({ told }) => told.length).filter((count, i) => count > 0 || i < 2),
      [1, 0],
    );
    assert.equal(parked.take(states[0] ?? '', 'alice'), undefined);
    assert.ok(parked.take(states[1] ?? '', 'alice'));
    parked.close();
    assert.ok(all.slice(2).every(({ told }) => told.length === 1));
  });

  test('what is asked side by side is told together', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const { dialogue, ask } = staged();
    const turn = dialogue.next({ signal: new Abort(), onNotification: undefined, progressToken: undefined });
    ask(1);
    mock.timers.tick(10);
    ask(2);
    mock.timers.tick(10);
    assert.deepEqual(Object.keys(JSON.parse(((await turn) as { requests: string }).requests)), ['q1', 'q2']);
  });

  test('with the end of its exchange, what is open is declined', async () => {
    const { told, ask, finish } = staged();
    ask(1);
    finish({ kind: 'failure', failure: { kind: 'reset', proxyError: 'x', detail: '' } });
    await until(() => told.length === 1, 'the answer');
    assert.match(told[0] ?? '', /Nobody answers/);
  });

  test('R30: asks so many things; more is declined', () => {
    const { ask } = staged();
    const taken = Array.from({ length: 17 }, (_, i) => ask(i));
    assert.deepEqual(taken, [...Array.from({ length: 16 }, () => true), false]);
  });
});

describe('log levels', () => {
  const logging = { resources: {}, tools: {}, logging: {} };
  const levels = ['debug', 'info', 'warning', 'error'];

  async function logged(server: LegacyServer, level?: string): Promise<unknown[]> {
    const upstream = createUpstream(
      { ...upstreamConfig(server.url), protocol: 'legacy' },
      { now, observer: recorder(), random: () => 0.5, listenTimes: TIMES },
    );
    closers.push(() => upstream.close());
    const heard: unknown[] = [];
    const _meta = level === undefined ? {} : { 'io.modelcontextprotocol/logLevel': level };
    await upstream.read({
      ...{ method: 'resources/read', name: 'old://1', version: VERSION, headers: {}, idempotent: true },
      ...{ signal: new Abort(), maxBytes: 1 << 20, params: JSON.stringify({ uri: 'old://1', _meta }) },
      onNotification: (message) => {
        const { params } = JSON.parse(Buffer.from(message).toString()) as { params: { level?: string } };
        heard.push(params.level ?? 'progress');
      },
    });
    return heard;
  }

  test('are told to the server, and each hears what it asked for', async () => {
    const server = await startLegacy({
      capabilities: logging,
      on: ({ method, params, say }) => {
        if (method === 'logging/setLevel') return {};
        for (const level of levels) say({ method: 'notifications/message', params: { level, data: 'x' } });
        say({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } });
        return { contents: [{ uri: params.uri, text: '' }] };
      },
    });
    closers.push(() => server.close());
    assert.deepEqual(await logged(server, 'warning'), ['warning', 'error', 'progress']);
    assert.deepEqual(await logged(server, 'debug'), [...levels, 'progress']);
    assert.deepEqual(await logged(server), ['progress']);
    assert.deepEqual(
      server.of('logging/setLevel').map(({ params }) => params.level),
      ['warning', 'debug'],
    );
  });

  test('that a server refuses are told again by the next who asks', async () => {
    let refusals = 1;
    const server = await startLegacy({
      capabilities: logging,
      on: ({ method, params, say }) => {
        if (method === 'logging/setLevel') return refusals-- > 0 ? { code: -32603, message: 'not now' } : {};
        say({ method: 'notifications/message', params: { level: 'error', data: 'x' } });
        return { contents: [{ uri: params.uri, text: '' }] };
      },
    });
    closers.push(() => server.close());
    const upstream = createUpstream(
      { ...upstreamConfig(server.url), protocol: 'legacy' },
      { now, observer: recorder(), random: () => 0.5, listenTimes: TIMES },
    );
    closers.push(() => upstream.close());
    const _meta = { 'io.modelcontextprotocol/logLevel': 'error' };
    for (let i = 0; i < 3; i++)
      await upstream.read({
        ...{ method: 'resources/read', name: 'old://1', version: VERSION, headers: {}, idempotent: true },
        ...{ signal: new Abort(), maxBytes: 1 << 20, params: JSON.stringify({ uri: 'old://1', _meta }) },
      });
    assert.equal(server.of('logging/setLevel').length, 2);
  });

  test('are not told to one that has none', async () => {
    const server = await startLegacy();
    closers.push(() => server.close());
    await logged(server, 'debug');
    assert.equal(server.of('logging/setLevel').length, 0);
  });
});
