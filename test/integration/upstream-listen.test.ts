/** R39 R40: listening to servers on the official SDK. */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { McpServer, type ServerCapabilities } from '@modelcontextprotocol/server';
import { type DemoServer, serve } from '../demo/servers/serve.ts';
import { until } from '../support/fault-server.ts';
import { asking, listenRig, TIMES } from '../support/listen-kit.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const EVERYTHING: ServerCapabilities = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
};

async function started(capabilities: ServerCapabilities = EVERYTHING, port = 0): Promise<DemoServer> {
  const server = await serve({
    build: () => new McpServer({ name: 'changing', version: '1.0.0' }, { capabilities }),
    userOf: (token) => (token === 'alice' ? token : undefined),
    port,
  });
  closers.push(() => server.close());
  return server;
}

function rig(server: DemoServer): ReturnType<typeof listenRig> {
  const docs = listenRig([new URL(server.url)], { times: { ackMs: 10_000, steadyMs: 0 } });
  closers.push(() => docs.upstream.close());
  return docs;
}

const URI = 'docs://ü/日本語.txt';
const ALL = asking({
  toolsListChanged: true,
  promptsListChanged: true,
  resourcesListChanged: true,
  resourceSubscriptions: [URI, 'docs://b'],
});

describe('R39: a server on the official SDK', () => {
  test('acknowledges what it is asked, and what it tells is understood', async () => {
    const server = await started();
    const ear = rig(server).listen(ALL);
    assert.deepEqual((await ear.hears('acknowledged')).honoured, ALL);
    server.notify.toolsChanged();
    server.notify.promptsChanged();
    server.notify.resourcesChanged();
    server.notify.resourceUpdated('docs://nobody-asked');
    server.notify.resourceUpdated(URI);
    const { uri, params } = await ear.hears('updated');
    assert.equal(uri, URI);
    assert.equal((JSON.parse(Buffer.from(params).toString()) as { uri: string }).uri, URI);
    assert.deepEqual(
      ear.of('list-changed').map(({ list }) => list),
      ['tools', 'prompts', 'resources'],
    );
    assert.equal(ear.of('updated').length, 1);
  });

  test('honours what it offers, and nothing else is said to be listened to', async () => {
    const server = await started({ tools: { listChanged: true }, resources: { listChanged: true } });
    const ear = rig(server).listen(ALL);
    const { honoured } = await ear.hears('acknowledged');
    assert.deepEqual(honoured, asking({ toolsListChanged: true, resourcesListChanged: true }));
  });

  test('takes a wider filter without a gap', async () => {
    const server = await started();
    const ear = rig(server).listen({ resourceSubscriptions: ['docs://0'] });
    await ear.hears('acknowledged');
    let sent = 0;
    for (let n = 1; n <= 5; n++) {
      ear.listening.update(
        asking({ resourceSubscriptions: Array.from({ length: n + 1 }, (_, i) => `docs://${i}`) }),
      );
      while (ear.of('acknowledged').length <= n) {
        server.notify.resourceUpdated('docs://0');
        sent++;
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
    await until(() => ear.of('updated').length >= sent, 'every one of them');
    assert.equal(ear.of('lost').length, 0);
    assert.equal(server.stats.of('subscriptions/listen'), 6);
  });

  test('may send thousands of notifications at once', async (t) => {
    const server = await started();
    const ear = rig(server).listen(ALL);
    await ear.hears('acknowledged');
    const from = performance.now();
    for (let n = 0; n < 10_000; n++) server.notify.resourceUpdated('docs://b');
    await until(() => ear.of('updated').length === 10_000, 'all of them', 20_000);
    t.diagnostic(`10,000 notifications in ${Math.round(performance.now() - from)} ms`);
  });
});

describe('R40: a server on the official SDK', () => {
  test('that ends its streams is asked again, until it is back', async () => {
    const server = await started();
    const ear = rig(server).listen(ALL);
    await ear.hears('acknowledged');
    await server.close();
    assert.equal((await ear.hears('lost')).reason.detail, 'ended by it');
    await ear.hears('unopened');
    const again = await started(EVERYTHING, Number(new URL(server.url).port));
    await ear.hears('acknowledged', 2);
    again.notify.resourceUpdated(URI);
    await ear.hears('updated');
  });

  test('that offers nothing of it is left alone', async () => {
    const server = await started({ completions: {} });
    const ear = rig(server).listen(ALL);
    await ear.hears('not-offered');
    await new Promise((resolve) => setTimeout(resolve, TIMES.lastPauseMs * 3));
    assert.equal(server.stats.of('subscriptions/listen'), 1);
    assert.equal(ear.listening.state, 'not-offered');
  });

  test('that does not know the token is left alone; with the right one it tells', async () => {
    const server = await started();
    const docs = rig(server);
    const stranger = docs.listen(ALL, { headers: { authorization: 'Bearer mallory' } });
    assert.equal((await stranger.hears('not-offered')).reason, 'status 401');
    const alice = docs.listen(ALL, { headers: { authorization: 'Bearer alice' } });
    await alice.hears('acknowledged');
    server.notify.toolsChanged();
    await alice.hears('list-changed');
    assert.equal(stranger.of('list-changed').length, 0);
  });
});
