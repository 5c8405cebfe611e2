/** The balancer of docker-compose.yml, as nginx runs it, in front of two servers that say who they are. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { mirrored, post } from '../support/mcp.ts';
import { missing, PROXIES, type ProxyKind, type RunningProxy, startProxy } from '../support/proxies/start.ts';

const REQUESTS = 64;
const NGINX = PROXIES.find(({ name }) => name === 'nginx') ?? assert.fail();

/** The committed configuration, with the ports and the folder of this test in place of its own. */
const DEPLOYED: ProxyKind = {
  name: 'nginx',
  configuration: (port, to, folder) => {
    const [first = '', second = ''] = to.split(' ');
    const changed = readFileSync('deploy/nginx/nginx.conf', 'utf8')
      .replace('listen 8080;', `listen 127.0.0.1:${port};`)
      .replace('gateway-1:8080', first)
      .replace('gateway-2:8080', second)
      .replaceAll('/tmp/', `${folder}/`);
    const user = process.getuid?.() === 0 ? 'user root;' : '';
    return `${user}daemon off;\n${changed}`;
  },
  arguments: NGINX.arguments,
};

function startNamed(name: string): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.end(JSON.stringify({ id: name })));
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

describe('the balancer of docker-compose.yml', { skip: missing(NGINX) }, () => {
  let servers: Server[] = [];
  let balancer: RunningProxy;

  before(async () => {
    servers = await Promise.all(['first', 'second'].map(startNamed));
    balancer = await startProxy(DEPLOYED, servers.map((server) => `127.0.0.1:${portOf(server)}`).join(' '));
  });

  after(async () => {
    await balancer?.stop();
    for (const server of servers) server.close().closeAllConnections();
  });

  /** Who answered each of many requests with these headers. */
  async function whoAnswered(headers: Record<string, string>): Promise<Set<unknown>> {
    const names = new Set<unknown>();
    for (let sent = 0; sent < REQUESTS; sent++) {
      const { json } = await post(`${balancer.url}/mcp`, {}, headers);
      names.add(json.id);
    }
    return names;
  }

  test('spreads requests of this revision over all gateways', async () => {
    assert.deepEqual(await whoAnswered(mirrored('tools/list')), new Set(['first', 'second']));
  });

  test('sends all that an older client says to one gateway: its session lives there', async () => {
    const older = await whoAnswered({ 'mcp-protocol-version': '2025-11-25', 'mcp-session-id': 'a' });
    assert.equal(older.size, 1);
    // What begins a session names none.
    assert.deepEqual(await whoAnswered({}), older);
  });
});
