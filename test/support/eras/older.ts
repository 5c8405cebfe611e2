/**
 * Servers of 2025-11-25, on version 1 of the official SDK: with sessions, without, and as a process.
 *
 *     node older.js      serves it over standard input and output
 */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type { EraServer } from './modern.ts';
import * as world from './world.ts';

/** Counts for all servers of a process. */
let ticks = 0;
const subscribed = new Map<Server, Set<string>>();

function tick(): NodeJS.Timeout {
  return setInterval(() => {
    ticks++;
    for (const [server, uris] of subscribed)
      if (uris.has(world.TICKER)) void server.sendResourceUpdated({ uri: world.TICKER }).catch(() => {});
  }, world.TICK_MS);
}

function build(keeping: 'sessions' | 'nothing'): Server {
  const resources = keeping === 'sessions' ? { subscribe: true, listChanged: true } : {};
  const server = new Server(
    { name: 'era', version: '1' },
    { capabilities: { resources, tools: {}, prompts: {}, completions: {} } },
  );
  const uris = new Set<string>();
  subscribed.set(server, uris);
  server.onclose = () => subscribed.delete(server);
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: world.RESOURCES }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: world.TEMPLATES,
  }));
  server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts: world.PROMPTS }));
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: world.TOOLS }));
  server.setRequestHandler(CompleteRequestSchema, ({ params }) => world.completed(params.argument.value));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => {
    const text = world.textOf(uri, ticks);
    if (text === undefined)
      throw Object.assign(new Error('Resource not found'), { code: -32002, data: { uri } });
    return { contents: [{ uri, text }] };
  });
  if (keeping === 'sessions') {
    server.setRequestHandler(SubscribeRequestSchema, ({ params: { uri } }) => {
      uris.add(uri);
      return {};
    });
    server.setRequestHandler(UnsubscribeRequestSchema, ({ params: { uri } }) => {
      uris.delete(uri);
      return {};
    });
  }
  server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, _meta: meta } }, extra) => {
    if (name === 'count') {
      for (let step = 1; meta?.progressToken !== undefined && step <= world.STEPS; step++)
        await extra.sendNotification({
          method: 'notifications/progress',
          params: { progressToken: meta.progressToken, progress: step, total: world.STEPS },
        });
      return world.COUNTED;
    }
    const answer = await server.elicitInput(world.QUESTION, { relatedRequestId: extra.requestId });
    return world.painted(answer.content?.colour);
  });
  return server;
}

/** @param keeping `nothing`: a new server for each request, and no session. */
export async function startOlder(keeping: 'sessions' | 'nothing'): Promise<EraServer> {
  const transports = new Map<string, StreamableHTTPServerTransport>();
  const open = async (): Promise<StreamableHTTPServerTransport> => {
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      ...(keeping === 'sessions' && {
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id: string) => void transports.set(id, transport),
      }),
    });
    // The cast: the SDK's types predate exactOptionalPropertyTypes.
    await build(keeping).connect(transport as Parameters<Server['connect']>[0]);
    return transport;
  };
  const http = createServer(async (request, response) => {
    const id = request.headers['mcp-session-id'];
    const known = typeof id === 'string' ? transports.get(id) : undefined;
    if (keeping === 'sessions' && id !== undefined && known === undefined) {
      response.writeHead(404).end();
      return;
    }
    if (keeping === 'nothing' && request.method !== 'POST') {
      response.writeHead(405).end();
      return;
    }
    const transport = known ?? (await open());
    if (keeping === 'nothing') response.on('close', () => void transport.close());
    await transport.handleRequest(request as IncomingMessage, response);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const timer = tick();
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    close: async () => {
      clearInterval(timer);
      for (const transport of transports.values()) await transport.close();
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

/** How it is started as a process. */
export const OLDER_PROCESS = fileURLToPath(import.meta.url);

if (process.argv[1] === OLDER_PROCESS) {
  const timer = tick();
  process.stdin.on('end', () => clearInterval(timer));
  await build('sessions').connect(new StdioServerTransport());
}
