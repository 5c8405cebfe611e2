/** Two gateways with Redis in front of real servers, after a bit of everything: for tests that look at what is counted. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Gateway, projectRoot, startGateway } from '../demo/gateway.ts';
import { libraryUris, start as startLibrary } from '../demo/servers/library.ts';
import { type Exposition, parseExposition } from './exposition.ts';
import { openListener } from './listener-client.ts';
import { call, post, until } from './mcp.ts';
import { PAGE, SECRETS, startWiki } from './pair.ts';
import { freePort, startRedis } from './redis.ts';

export interface Metered {
  /** What the first gateway says of itself, as it comes. */
  scrape(): Promise<string>;
  close(): Promise<void>;
}

const configuration = (admin: string, urls: { library: string; wiki: string; redis: string }): string =>
  `version: 1
listen: 127.0.0.1:0
status: 127.0.0.1:0
admin: ${admin}
${SECRETS}upstreams:
  library: { url: ${urls.library} }
  wiki: { url: ${urls.wiki} }
  dead: { url: "http://127.0.0.1:9/mcp" }
routes:
  - { path: /mcp, upstreams: [library, wiki] }
  - { path: /dead, upstreams: [dead] }
cache:
  redis: { url: "${urls.redis}", timeouts: { command: 250ms } }
`;

/** Starts it all, and lets clients do everything once. Everything is closed with it, also when the start fails. */
export async function startMetered(): Promise<Metered> {
  const closers: (() => unknown)[] = [];
  const close = async (): Promise<void> => {
    for (const one of closers.splice(0).reverse()) await one();
  };
  try {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-metered-'));
    closers.push(() => rmSync(folder, { recursive: true, force: true }));
    const redis = await startRedis();
    closers.push(() => redis.close());
    const library = await startLibrary();
    closers.push(() => library.close());
    const wiki = await startWiki();
    closers.push(() => wiki.close());
    const urls = { library: String(library.url), wiki: String(wiki.url), redis: redis.url };
    const root = projectRoot(import.meta.dirname);
    const started = async (name: string, admin: string): Promise<Gateway & { readonly file: string }> => {
      const file = join(folder, `${name}.yaml`);
      writeFileSync(file, configuration(admin, urls));
      const gateway = await startGateway({ root, args: ['serve', '-c', file] });
      closers.push(() => gateway.stop());
      return { ...gateway, file };
    };
    const one = await started('one', `127.0.0.1:${await freePort()}`);
    const other = await started('other', 'false');
    const scrape = async (): Promise<string> => (await fetch(`${one.status}/metrics`)).text();
    const seen = async (): Promise<Exposition> => parseExposition(await scrape());
    await until(async () => total(await seen(), 'headgate_redis_up') === 1, 'Redis is used', 10_000);
    await load(one, other, closers, wiki.change);
    await purge(root, one.file);
    const heard = 'headgate_bus_messages_total{direction="in"}';
    await until(
      async () => (await scrape()).includes(`${heard} `) && !(await scrape()).includes(`${heard} 0\n`),
      heard,
    );
    return { scrape, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function load(
  one: Gateway,
  other: Gateway,
  closers: (() => unknown)[],
  change: () => void,
): Promise<void> {
  const url = `${one.mcp}/mcp`;
  const [document = ''] = libraryUris;
  // Misses, and hits here and through Redis.
  for (const gateway of [one, one, other])
    await call(`${gateway.mcp}/mcp`, 'resources/read', { uri: document });
  await call(`${other.mcp}/mcp`, 'resources/read', { uri: libraryUris[1] });
  await call(url, 'resources/read', { uri: libraryUris[1] });
  await call(url, 'resources/read', { uri: PAGE });
  for (const method of [
    'server/discover',
    'resources/list',
    'tools/list',
    'prompts/list',
    'resources/templates/list',
  ])
    await call(url, method);
  await call(url, 'prompts/get', { name: 'reading_list', arguments: {} });
  await call(url, 'tools/call', { name: 'nobody-has-it' });
  // Errors: no such resource, no upstream, an answer of an upstream's own.
  await call(url, 'resources/read', { uri: 'docs://library/none/0' });
  await call(`${one.mcp}/dead`, 'resources/read', { uri: 'dead://1' });
  await call(`${one.mcp}/dead`, 'tools/call', { name: 'any' });
  // Refused before anybody is asked.
  await post(url, '{', { 'mcp-method': 'tools/list', 'mcp-protocol-version': '2026-07-28' });
  await call(url, 'tools/list', {}, { headers: { origin: 'http://evil.example' } });
  await call(`${one.mcp}/nowhere`, 'tools/list');
  await fetch(url, { method: 'PUT' });
  const listener = await openListener(url, { resourceSubscriptions: [PAGE], resourcesListChanged: true });
  closers.push(() => listener.close());
  change();
  await until(() => listener.updated.includes(PAGE), 'the change');
}

async function purge(root: string, file: string): Promise<void> {
  const child = spawn(
    process.execPath,
    [join(root, 'dist/main.js'), 'purge', '-c', file, '--upstream', 'library'],
    {
      stdio: 'ignore',
    },
  );
  const [code] = (await once(child, 'exit')) as [number];
  if (code !== 0) throw new Error(`purge ended with ${code}`);
}

/** The sum of all series of a family. */
export function total(
  { series }: Exposition,
  family: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  return series
    .filter(
      (one) =>
        one.name === family && Object.entries(labels).every(([name, value]) => one.labels[name] === value),
    )
    .reduce((sum, { value }) => sum + value, 0);
}
