/** Servers that are processes, of both eras. */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { tailMembers } from '../../src/protocol/answer.ts';
import { textOf } from '../../src/protocol/json.ts';
import { Abort } from '../../src/protocol/signal.ts';
import type { ListenEvent, ReadOutcome, StreamOutcome, Upstream } from '../../src/upstream/types.ts';
import { createUpstream } from '../../src/upstream/upstream.ts';
import { until } from '../support/fault-server.ts';
import { asking, listenRequest, TIMES } from '../support/listen-kit.ts';
import { now, recorder, upstreamConfig, VERSION } from '../support/upstream-kit.ts';

const SERVER = fileURLToPath(new URL('../support/stdio-server.js', import.meta.url));
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function started(args: readonly string[], timeouts: { responseMs?: number; callMs?: number } = {}) {
  const logged: string[] = [];
  const seen = recorder();
  const config = upstreamConfig(new URL('http://127.0.0.1:1/'), {
    responseMs: 10_000,
    callMs: 10_000,
    ...timeouts,
  });
  const command = { command: process.execPath, args, env: {}, cwd: undefined, shared: false };
  const upstream = createUpstream(
    { ...config, endpoints: [], process: command, protocol: 'auto' },
    {
      now,
      observer: seen,
      random: () => 0.5,
      listenTimes: TIMES,
      log: (_level, message, fields) => logged.push(`${message} ${JSON.stringify(fields)}`),
    },
  );
  closers.push(() => upstream.close());
  return { upstream, logged, seen };
}

const read = (
  upstream: Upstream,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  flow?: { readonly array: string },
) =>
  upstream.read({
    ...(flow !== undefined && { flow }),
    method,
    name: params.uri as string | undefined,
    params: JSON.stringify(params),
    version: VERSION,
    headers: {},
    idempotent: true,
    signal: new Abort(),
    maxBytes: 1 << 20,
  });

function resultOf(outcome: ReadOutcome): Record<string, unknown> {
  assert.ok(outcome.kind === 'answer' && outcome.answer.kind === 'result', JSON.stringify(outcome));
  const { tail } = outcome.answer.result;
  return Object.fromEntries(
    tailMembers(tail).map((member) => [member.key, JSON.parse(textOf(tail, member))]),
  );
}

const textOfRead = async (upstream: Upstream, uri = 'old://1'): Promise<string> =>
  (resultOf(await read(upstream, 'resources/read', { uri })).contents as { text: string }[])[0]?.text ?? '';

const call = (
  upstream: Upstream,
  name: string,
  { id = 7, signal = new Abort(), meta = {} } = {},
): Promise<StreamOutcome> =>
  upstream.stream({
    method: 'tools/call',
    name,
    version: VERSION,
    headers: {},
    body: Buffer.from(
      JSON.stringify({ jsonrpc: '2.0', method: 'tools/call', params: { name, _meta: meta }, id }),
    ),
    idempotent: false,
    signal,
  });

async function said(outcome: StreamOutcome): Promise<string> {
  if (outcome.kind === 'whole') return Buffer.concat(outcome.chunks).toString();
  assert.ok(outcome.kind === 'response', JSON.stringify(outcome));
  const chunks: Uint8Array[] = [];
  for await (const chunk of outcome.body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe('a process that asks in mid-call', () => {
  const CAN = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } };
  type Asked = {
    result: { requestState: string; resultType: string; content: unknown };
    error?: { message: string };
  };
  const lastOf = async (outcome: Promise<StreamOutcome>): Promise<Asked> => {
    const text = await outcome.then(said);
    return JSON.parse(text.startsWith('{') ? text : (/.*^data: (.*)$/ms.exec(text)?.[1] ?? '')) as Asked;
  };
  const answer = (upstream: Upstream, state: string): Promise<StreamOutcome> =>
    upstream.stream({
      ...{ method: 'tools/call', name: 'slow', version: VERSION, headers: {}, idempotent: false },
      signal: new Abort(),
      body: Buffer.from(
        JSON.stringify({
          ...{ jsonrpc: '2.0', method: 'tools/call', id: 8 },
          params: {
            ...{ name: 'slow', requestState: state, _meta: CAN },
            inputResponses: { q1: { action: 'accept', content: { secret: 'of alice' } } },
          },
        }),
      ),
    });

  test('is answered by whoever called it', async () => {
    const { upstream } = started([SERVER, 'legacy']);
    await read(upstream, 'server/discover');
    const asked = await lastOf(call(upstream, 'slow', { meta: CAN }));
    assert.equal(asked.result.resultType, 'input_required');
    const done = await lastOf(answer(upstream, asked.result.requestState));
    assert.equal(done.result.resultType, 'complete');
  });

  test('R22: an answer to one that has ended reaches no other', async () => {
    const { upstream } = started([SERVER, 'legacy']);
    await read(upstream, 'server/discover');
    const alice = await lastOf(call(upstream, 'slow', { meta: CAN }));
    await call(upstream, 'die');
    const isBack = async (): Promise<boolean> =>
      (await read(upstream, 'resources/read', { uri: 'old://1' })).kind === 'answer';
    while (!(await isBack())) await new Promise((resolve) => setTimeout(resolve, 50));
    const bob = await lastOf(call(upstream, 'slow', { meta: CAN }));
    assert.equal(bob.result.resultType, 'input_required');
    const late = await answer(upstream, alice.result.requestState);
    assert.equal(late.kind, 'failure');
    const done = await lastOf(answer(upstream, bob.result.requestState));
    assert.equal(done.result.resultType, 'complete');
  });

  test('R22: for one who has left asks nobody else', async () => {
    const { upstream } = started([SERVER, 'legacy']);
    await read(upstream, 'server/discover');
    const signal = new Abort();
    const alice = call(upstream, 'never', { meta: CAN, signal });
    await new Promise((resolve) => setTimeout(resolve, 100));
    signal.abort(new Error('left'));
    await alice;
    const bob = await lastOf(call(upstream, 'slow', { meta: CAN }));
    assert.equal(bob.result.resultType, 'complete');
    assert.match(JSON.stringify(bob.result.content), /-32601/);
  });
});

for (const era of ['legacy', 'modern']) {
  describe(`a process that speaks the ${era} revision`, () => {
    test('is discovered, read and called', async () => {
      const { upstream, seen } = started([SERVER, era]);
      const { supportedVersions, capabilities } = resultOf(await read(upstream, 'server/discover'));
      assert.deepEqual(supportedVersions, [VERSION]);
      assert.deepEqual(capabilities, { resources: { subscribe: true, listChanged: true }, tools: {} });
      assert.match(await textOfRead(upstream), /^\d+ 1$/);
      const answer = JSON.parse(await said(await call(upstream, 'echo'))) as Record<string, unknown>;
      assert.equal(answer.id, 7);
      assert.match(JSON.stringify(answer.result), /"resultType":"complete".*"text":"echo"/);
      assert.deepEqual(seen.states, ['up']);
    });

    test('R8, R34: two calls of one id and one progress token at once get each its own', async () => {
      const { upstream } = started([SERVER, era]);
      await read(upstream, 'server/discover');
      const meta = { progressToken: 0 };
      const [slow, quick] = await Promise.all([
        call(upstream, 'slow', { meta }).then(said),
        call(upstream, 'echo', { meta }).then(said),
      ]);
      const events = slow.split('\n\n').filter(Boolean);
      assert.match(events[0] as string, /"progressToken":0,"progress":1/);
      // What it asked in mid-call was declined at once.
      assert.match(events[1] as string, /"id":7,.*"text":"-32601"/);
      assert.match(quick, /"id":7,.*"text":"echo"/);
    });

    test('that ends costs those who wait a failure, and is there again for those who come', async () => {
      const { upstream, logged } = started([SERVER, era]);
      await read(upstream, 'server/discover');
      const before = (await textOfRead(upstream)).split(' ')[0];
      const [never, died] = await Promise.all([call(upstream, 'never'), call(upstream, 'die')]);
      for (const outcome of [never, died])
        assert.equal(outcome.kind === 'failure' && outcome.failure.kind, 'reset');
      const after = (await textOfRead(upstream)).split(' ')[0];
      assert.notEqual(after, before);
      assert.ok(
        logged.some((line) => /exited with code 3/.test(line)),
        logged.join('\n'),
      );
    });

    test('R35: is told of a call that nobody waits for any more', async () => {
      const { upstream, logged } = started([SERVER, era]);
      await read(upstream, 'server/discover');
      const signal = new Abort();
      const outcome = call(upstream, 'never', { signal });
      setTimeout(() => signal.abort(new Error('gone')), 50);
      assert.equal((await outcome).kind, 'failure');
      await until(() => logged.some((line) => line.includes('heard notifications/cancelled')), 'word of it');
      assert.match(await textOfRead(upstream), / 1$/);
    });

    test('R38: that does not answer is given its time', async () => {
      const { upstream } = started([SERVER, era], { callMs: 1_000 });
      await read(upstream, 'server/discover');
      const outcome = await call(upstream, 'never');
      assert.equal(outcome.kind === 'failure' && outcome.failure.kind, 'timeout');
    });
  });
}

test('R45: error types are a closed set, whatever number a process sends', async () => {
  const { upstream, seen } = started([
    '-e',
    `require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
       const { id, method, params } = JSON.parse(line);
       const result = { resultType: 'complete', supportedVersions: ['${VERSION}'], capabilities: {} };
       const error = { code: Number(params.uri), message: 'no' };
       const answer = method === 'server/discover' ? { result } : { error };
       if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
     });`,
  ]);
  for (const uri of ['-32602', '-32099', '7']) await read(upstream, 'resources/read', { uri });
  const types = seen.operations
    .filter(({ method }) => method === 'resources/read')
    .map(({ errorType }) => errorType);
  assert.deepEqual(types, ['-32602', 'other', 'other']);
});

describe('a process of an older era', () => {
  for (const [kind, what] of [
    ['strict', 'ends'],
    ['mute', 'says nothing'],
  ] as const) {
    test(`that ${what} when it is asked what it does not know is initialised, also when it starts again`, async () => {
      const { upstream } = started([SERVER, kind], { responseMs: 1_500 });
      const { supportedVersions } = resultOf(await read(upstream, 'server/discover'));
      assert.deepEqual(supportedVersions, [VERSION]);
      assert.match(await textOfRead(upstream), / 1$/);
      await call(upstream, 'die');
      // While none runs: what comes now is the first that the next one hears.
      assert.match(await textOfRead(upstream), / 1$/);
    });
  }

  test('R30: hands on what is too large to be kept', async () => {
    const { upstream } = started([SERVER, 'legacy']);
    await read(upstream, 'server/discover');
    const params = { uri: 'old://large' };
    const refused = await read(upstream, 'resources/read', params);
    assert.equal(refused.kind === 'failure' && refused.failure.kind, 'too_large');
    const outcome = await read(upstream, 'resources/read', params, { array: 'contents' });
    assert.ok(outcome.kind === 'large');
    const chunks: Uint8Array[] = [];
    for await (const chunk of outcome.tail) chunks.push(chunk);
    const { contents } = JSON.parse(
      `{"resultType":"complete"${Buffer.concat(chunks).toString().slice(0, -1)}`,
    );
    assert.equal(contents[0].text.length, 2 << 20);
  });
});

for (const era of ['legacy', 'modern'])
  test(`R40: listening to a process that speaks the ${era} revision tells what changes, and what may have changed when it was started again`, async () => {
    const { upstream } = started([SERVER, era]);
    await read(upstream, 'server/discover');
    const events: ListenEvent[] = [];
    upstream.listen(
      listenRequest(asking({ resourcesListChanged: true, resourceSubscriptions: ['old://1'] })),
      (event) => events.push(event),
    );
    const heard = (kind: ListenEvent['kind'], count = 1) =>
      until(() => events.filter((event) => event.kind === kind).length >= count, `${kind} ${count}`, 10_000);
    await heard('acknowledged');
    await said(await call(upstream, 'change'));
    await heard('updated');
    assert.match(await textOfRead(upstream), / 2$/);
    await call(upstream, 'die');
    await heard('lost');
    await heard('acknowledged', 2);
    await said(await call(upstream, 'change'));
    await heard('updated', 2);
  });

describe('a process that is none', () => {
  for (const [what, args, why] of [
    ['is missing', ['/no/such/file.js'], /Cannot find module|exited with code 1/],
    ['prints junk', ['-e', 'setInterval(() => console.log("junk"), 20)'], /no answer within/],
  ] as const) {
    test(`that ${what} is down, with its reason`, async () => {
      const { upstream } = started(args, { responseMs: 800 });
      const outcome = await read(upstream, 'server/discover');
      assert.ok(outcome.kind === 'failure', JSON.stringify(outcome));
      assert.match(outcome.failure.detail, why);
    });
  }
});
