// A server on `mcp-handler` as its users write one: `node dice.mjs PORT`, in a folder where the packages are.
import { createServer } from 'node:http';
import { createMcpHandler } from 'mcp-handler';
import { z } from 'zod';

const handler = createMcpHandler(
  (server) => {
    server.registerTool(
      'roll_dice',
      { description: 'Rolls a dice', inputSchema: z.object({ sides: z.number().int().min(2) }) },
      ({ sides }) => ({
        content: [{ type: 'text', text: `rolled ${1 + Math.floor(Math.random() * sides)}` }],
      }),
    );
    server.registerResource('rules', 'dice://rules', { description: 'How it is played' }, (uri) => ({
      contents: [{ uri: uri.href, text: 'The higher number wins.' }],
    }));
  },
  { serverInfo: { name: 'dice', version: '1.0.0' } },
);

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = chunks.length > 0 ? Buffer.concat(chunks) : undefined;
  const { method, headers, url } = request;
  const answer = await handler(new Request(`http://${headers.host}${url}`, { method, headers, body }));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  for await (const chunk of answer.body ?? []) response.write(chunk);
  response.end();
}).listen(Number(process.argv[2]), '127.0.0.1');
