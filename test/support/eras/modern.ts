/** A server of this revision, on the official SDK: `start()` serves it on a free port of the loopback. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type NodeIncomingMessageLike, toNodeHandler } from '@modelcontextprotocol/node';
import {
  acceptedContent,
  createMcpHandler,
  inputRequired,
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server';
import * as world from './world.ts';

export interface EraServer {
  readonly url: string;
  close(): Promise<void>;
}

const HINTS = { ttlMs: 60_000, cacheScope: 'public' } as const;

export async function startModern(): Promise<EraServer> {
  let ticks = 0;
  const handler = createMcpHandler(() => build(() => ticks), { legacy: 'reject' });
  const mcp = toNodeHandler(handler);
  const http = createServer((request, response) => void mcp(request as NodeIncomingMessageLike, response));
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const timer = setInterval(() => {
    ticks++;
    handler.notify.resourceUpdated(world.TICKER);
  }, world.TICK_MS);
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    close: async () => {
      clearInterval(timer);
      await handler.close();
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

function build(ticks: () => number): McpServer {
  const server = new McpServer(
    { name: 'era', version: '1' },
    {
      capabilities: {
        resources: { subscribe: true, listChanged: true },
        tools: {},
        prompts: {},
        completions: {},
      },
      cacheHints: { 'server/discover': HINTS },
    },
  );
  const s = server.server;
  s.setRequestHandler('resources/list', () => ({ resources: world.RESOURCES, ...HINTS }));
  s.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: world.TEMPLATES, ...HINTS }));
  s.setRequestHandler('prompts/list', () => ({ prompts: world.PROMPTS, ...HINTS }));
  s.setRequestHandler('tools/list', () => ({ tools: world.TOOLS, ...HINTS }));
  s.setRequestHandler('completion/complete', ({ params }) => world.completed(params.argument.value));
  s.setRequestHandler('resources/read', ({ params: { uri } }) => {
    const text = world.textOf(uri, ticks());
    if (text === undefined)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Resource not found', { uri });
    return { contents: [{ uri, text }], ...HINTS };
  });
  s.setRequestHandler('tools/call', async ({ params: { name } }, context) => {
    if (name === 'count') {
      const { _meta: meta } = context.mcpReq;
      for (let step = 1; meta?.progressToken !== undefined && step <= world.STEPS; step++)
        await context.mcpReq.notify({
          method: 'notifications/progress',
          params: { progressToken: meta.progressToken, progress: step, total: world.STEPS },
        });
      return world.COUNTED;
    }
    const answer = acceptedContent(context.mcpReq.inputResponses, 'colour');
    return answer === undefined
      ? inputRequired({ inputRequests: { colour: inputRequired.elicit(world.QUESTION) } })
      : world.painted(answer.colour);
  });
  return server;
}
