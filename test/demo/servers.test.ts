import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import * as city from './servers/city.ts';
import * as library from './servers/library.ts';
import * as notes from './servers/notes.ts';
import type { DemoServer } from './servers/serve.ts';

const clients: Client[] = [];

async function connect(server: DemoServer, token?: string): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1.0.0' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  clients.push(client);
  const authProvider = token === undefined ? undefined : { token: async () => token };
  const options = authProvider === undefined ? {} : { authProvider };
  await client.connect(new StreamableHTTPClientTransport(new URL(server.url), options));
  return client;
}

const invalidParams = { code: -32602 };

describe('the demo servers, asked directly by the official client', () => {
  let libraryServer: DemoServer;
  let cityServer: DemoServer;
  let notesServer: DemoServer;

  before(async () => {
    libraryServer = await library.start();
    cityServer = await city.start({ now: () => Date.UTC(2026, 6, 28) });
    notesServer = await notes.start();
  });
  after(async () => {
    for (const client of clients) await client.close();
    for (const server of [libraryServer, cityServer, notesServer]) await server.close();
  });

  test('the library lists every document once, on several pages', async () => {
    const client = await connect(libraryServer);
    libraryServer.stats.reset();
    const { resources } = await client.listResources();
    assert.deepEqual(
      resources.map(({ uri }) => uri),
      library.libraryUris,
    );
    const pages = Math.ceil(library.DOCUMENT_COUNT / library.LIBRARY_PAGE_SIZE);
    assert.equal(libraryServer.stats.of('resources/list'), pages);
  });

  test('the library refuses a cursor that it did not hand out', async () => {
    const client = await connect(libraryServer);
    for (const cursor of ['', 'x', 'ZnJvbToxMjA', 'ZnJvbTotMQ']) {
      await assert.rejects(client.listResources({ cursor }), invalidParams);
    }
  });

  test('a document is public for a minute, an unknown one is -32602 with its URI', async () => {
    const client = await connect(libraryServer);
    const document = await client.readResource({ uri: library.libraryUris[0] as string });
    assert.deepEqual([document.ttlMs, document.cacheScope], [library.LIBRARY_TTL_MS, 'public']);
    const uri = 'docs://library/nowhere/1';
    await assert.rejects(client.readResource({ uri }), { ...invalidParams, data: { uri } });
  });

  test('the city server completes names and reports three steps before a forecast', async () => {
    const client = await connect(cityServer);
    const ref = { type: 'ref/resource', uri: city.WEATHER_TEMPLATE } as const;
    const { completion } = await client.complete({ ref, argument: { name: 'name', value: 'O' } });
    assert.deepEqual(completion.values, ['odense', 'osaka', 'oslo']);
    const steps: number[] = [];
    const call = { name: 'forecast', arguments: { city: 'oslo', days: 1 } };
    const { content } = await client.callTool(call, { onprogress: ({ progress }) => steps.push(progress) });
    assert.deepEqual(steps, [1, 2, 3]);
    assert.match(content[0]?.type === 'text' ? content[0].text : '', /^oslo\nday 1: /);
  });

  test('the weather is public for seconds and follows the clock', async () => {
    const client = await connect(cityServer);
    const { contents, ttlMs, cacheScope } = await client.readResource({ uri: 'city://oslo/weather' });
    assert.deepEqual([ttlMs, cacheScope], [city.WEATHER_TTL_MS, 'public']);
    assert.match(JSON.stringify(contents), /2026-07-28T00:00:00\.000Z/);
  });

  test('the same URI holds another note for each user, and nothing for a stranger', async () => {
    const read = async (token?: string) => {
      const client = await connect(notesServer, token);
      const { ttlMs, cacheScope, contents } = await client.readResource({ uri: notes.TODAY_URI });
      assert.deepEqual([ttlMs, cacheScope], [notes.NOTES_TTL_MS, 'private']);
      return JSON.stringify(contents);
    };
    assert.notEqual(await read(notes.TOKENS.alice), await read(notes.TOKENS.bob));
    await assert.rejects(read(), { ...invalidParams, data: { uri: notes.TODAY_URI } });
    const stranger = await connect(notesServer);
    const { resources, cacheScope } = await stranger.listResources();
    assert.deepEqual([resources, cacheScope], [[], 'private']);
  });

  test('a token that nobody holds is refused', async () => {
    await assert.rejects(connect(notesServer, 'somebody-else'), /Unauthorized/);
  });
});
