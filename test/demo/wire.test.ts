import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { curlLine, type Exchange } from './wire.ts';

const exchange = (body: string, headers: Record<string, string>): Exchange => ({
  url: 'http://127.0.0.1:1/mcp',
  method: 'resources/read',
  requestHeaders: new Headers(headers),
  body,
  status: 200,
  responseHeaders: new Headers(),
});

test('a curl line survives the shell, quotes and all, and leaves out the optional clientInfo', () => {
  const uri = 'docs://it\'s/$HOME/`x`/"y"';
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
  const body = { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri, _meta: meta } };
  const sent = structuredClone(body);
  Object.assign(sent.params._meta, { 'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' } });

  const line = curlLine(exchange(JSON.stringify(sent), { 'mcp-method': 'resources/read', 'mcp-name': uri }));
  const printed = execFileSync('sh', ['-c', line.replace(/^curl/, "printf '%s\\n'")], { encoding: 'utf8' });

  assert.deepEqual(printed.trimEnd().split('\n'), [
    '-si',
    'http://127.0.0.1:1/mcp',
    '-H',
    'Mcp-Method: resources/read',
    '-H',
    `Mcp-Name: ${uri}`,
    '-d',
    JSON.stringify(body),
  ]);
});
