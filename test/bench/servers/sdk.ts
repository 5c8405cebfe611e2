/** The official SDK's server, read directly: one resource of 2 KB. */
import { McpServer } from '@modelcontextprotocol/server';
import { serve } from '../../demo/servers/serve.ts';
import { filler, SIZES } from '../wire.ts';

const text = filler(SIZES['2k']);
const { url } = await serve({
  build: () => {
    const server = new McpServer({ name: 'bench', version: '1.0.0' });
    const uri = 'bench://2k';
    server.registerResource('2k', uri, { mimeType: 'text/plain' }, () => ({
      contents: [{ uri, mimeType: 'text/plain', text }],
    }));
    return server;
  },
});
console.log(JSON.stringify({ port: Number(new URL(url).port) }));
