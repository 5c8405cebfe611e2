/**
 * `npm run demo -- --real`: servers as they are published, fetched with npx. Each claim is checked.
 */
import { spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Client,
  Client as McpClient,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { type Gateway, startGateway } from './gateway.ts';
import type { Report } from './report.ts';
import * as library from './servers/library.ts';
import { record } from './wire.ts';

const REVISION = '2026-07-28';
const EVERYTHING = '@modelcontextprotocol/server-everything';
/** As its users install it. */
const HANDLER = ['mcp-handler@2.4.0', '@modelcontextprotocol/server@2.4.0', 'zod@4'];
const DOCUMENT = 'demo://resource/static/document/architecture.md';
/** Longer than npm takes to fetch the servers on a slow line. */
const FETCH_MS = 180_000;
/** The server tells of its resources every five seconds. */
const UPDATE_MS = 15_000;

/** Starts everything and walks through it. @returns the gateway, which still runs. */
export async function runReal(
  report: Report,
  root: string,
  cleanup: (() => Promise<unknown>)[],
  signal: AbortSignal,
): Promise<Gateway> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-demo-'));
  cleanup.push(async () => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'hello.txt'), 'hello from a file\n');
  const modern = await library.start();
  cleanup.push(() => modern.close());
  const [everything, dice] = await Promise.all([
    startEverything(cleanup, signal),
    startDice(root, folder, cleanup, signal),
  ]);
  const gateway = await startGateway({
    root,
    args: ['serve', '-c', 'config/demo-real.yaml'],
    env: { LIBRARY_URL: modern.url, EVERYTHING_URL: everything, DICE_URL: dice, FOLDER: folder },
    signal,
  });
  cleanup.push(() => gateway.stop());
  report.heading('Headgate: published servers of two eras, one endpoint');
  report.row('library', `${modern.url}  MCP ${REVISION}`);
  report.row('dice', `${dice}  MCP ${REVISION}, on mcp-handler`);
  report.row('everything', `${everything}  MCP 2025-11-25, over HTTP`);
  report.row('the others', 'files, memory and everything again: MCP 2025-11-25, commands over stdio');
  report.row('gateway', `${gateway.mcp}/mcp  from config/demo-real.yaml`);

  const recorder = record();
  const client = new McpClient(
    { name: 'headgate-demo', version: '1.0.0' },
    { versionNegotiation: { mode: { pin: REVISION } } },
  );
  await client.connect(
    new StreamableHTTPClientTransport(new URL('/mcp', gateway.mcp), { fetch: recorder.fetch }),
  );
  cleanup.push(() => client.close());
  const cacheStatus = (): string => recorder.take().at(-1)?.responseHeaders.get('cache-status') ?? 'none';

  report.step('One list of the tools of all of them');
  const names = await toolsOf(client, ['read_text_file', 'create_entities', 'echo', 'roll_dice'], signal);
  report.row('tools', `${names.length}: ${names.slice(0, 6).join(', ')}, …`);
  for (const [name, of] of [
    ['read_text_file', 'files'],
    ['create_entities', 'memory'],
    ['echo', 'everything'],
    ['roll_dice', 'dice'],
  ] as const)
    report.claim(`${name} of ${of} is among them`, names.includes(name));
  report.claim('each once, though two servers have the same', new Set(names).size === names.length);

  report.step('A resource of an older server, kept by a rule');
  recorder.take();
  const read = () => client.readResource({ uri: DOCUMENT }, { cacheMode: 'bypass' });
  const first = await read();
  const miss = cacheStatus();
  report.row('miss', miss);
  const second = await read();
  const hit = cacheStatus();
  report.row('hit', hit);
  report.claim(
    'it was fetched, then a hit',
    miss.includes('stored') && hit.includes('hit'),
    `${miss}, then ${hit}`,
  );
  report.claim(
    'the contents are the same',
    JSON.stringify(first.contents) === JSON.stringify(second.contents),
  );

  report.step('It changes: the client hears of it, and what was kept is gone');
  const updated: string[] = [];
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
    updated.push(params.uri);
  });
  const listening = await client.listen({ resourceSubscriptions: [DOCUMENT] });
  await client.callTool({ name: 'toggle-subscriber-updates', arguments: {} });
  const heard = await within(UPDATE_MS, signal, async () => updated.includes(DOCUMENT));
  report.claim('the client was told', heard, updated.join(', '));
  recorder.take();
  await read();
  const after = cacheStatus();
  report.claim('the next read asks the server', !after.includes('hit'), after);
  await client.callTool({ name: 'toggle-subscriber-updates', arguments: {} });
  await listening.close();

  report.step('Calls of commands');
  const path = join(folder, 'hello.txt');
  const file = await client.callTool({ name: 'read_text_file', arguments: { path } });
  report.claim(
    'files reads a file',
    JSON.stringify(file.content).includes('hello from a file'),
    JSON.stringify(file),
  );
  const entity = { name: 'Headgate', entityType: 'gateway', observations: ['caches'] };
  await client.callTool({ name: 'create_entities', arguments: { entities: [entity] } });
  const graph = await client.callTool({ name: 'read_graph', arguments: {} });
  report.claim('memory remembers', JSON.stringify(graph.content).includes('Headgate'), JSON.stringify(graph));

  report.step('A client of an older revision sees the same');
  const older = new McpClient({ name: 'headgate-demo-older', version: '1.0.0' });
  await older.connect(new StreamableHTTPClientTransport(new URL('/mcp', gateway.mcp)));
  cleanup.push(() => older.close());
  report.row('revision', older.getNegotiatedProtocolVersion() ?? 'none');
  const seen = await toolsOf(older, names, signal);
  report.claim(
    'the tools of all of them',
    names.every((name) => seen.includes(name)),
    seen.join(', '),
  );
  const rolled = await older.callTool({ name: 'roll_dice', arguments: { sides: 6 } });
  report.claim('a call reaches a server of this revision', JSON.stringify(rolled.content).includes('rolled'));
  return gateway;
}

/** A server on mcp-handler, with the package as it is published. @returns its endpoint. */
async function startDice(
  root: string,
  folder: string,
  cleanup: (() => Promise<unknown>)[],
  signal: AbortSignal,
): Promise<string> {
  const home = join(folder, 'dice');
  mkdirSync(home);
  copyFileSync(join(root, 'test/demo/servers/dice.mjs'), join(home, 'dice.mjs'));
  const words = ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const install = spawn('npm', [...words, '--prefix', home, ...HANDLER], {
    stdio: ['ignore', 'ignore', 'inherit'],
    signal,
  });
  const code = await new Promise((done) => {
    install.once('exit', done);
    install.once('error', done);
  });
  signal.throwIfAborted();
  if (code !== 0) throw new Error('mcp-handler cannot be fetched: is the npm registry reachable?');
  const port = await freePort();
  return startServer(process.execPath, [join(home, 'dice.mjs'), String(port)], port, cleanup, signal);
}

/** server-everything over HTTP, on a free port. @returns its endpoint. */
async function startEverything(cleanup: (() => Promise<unknown>)[], signal: AbortSignal): Promise<string> {
  return startServer('npx', ['-y', EVERYTHING, 'streamableHttp'], await freePort(), cleanup, signal);
}

/** Starts a server, and waits until it listens. @returns its endpoint. */
async function startServer(
  command: string,
  args: readonly string[],
  port: number,
  cleanup: (() => Promise<unknown>)[],
  signal: AbortSignal,
): Promise<string> {
  const child = spawn(command, args, {
    env: { ...process.env, PORT: String(port) },
    stdio: 'ignore',
    detached: true,
  });
  const ended = new Promise<void>((done) => {
    child.once('exit', () => done());
    child.once('error', () => done());
  });
  cleanup.push(async () => {
    // npx starts a shell, which starts the server: all of them are one group.
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGTERM');
    await ended;
  });
  const url = `http://127.0.0.1:${port}/mcp`;
  const up = await within(FETCH_MS, signal, () =>
    fetch(url).then(
      () => true,
      () => false,
    ),
  );
  if (!up) throw new Error(`${args.join(' ')} did not start: is the npm registry reachable?`);
  return url;
}

/** The names of all tools, as soon as these are among them. */
async function toolsOf(client: Client, wanted: readonly string[], signal: AbortSignal): Promise<string[]> {
  let names: string[] = [];
  await within(FETCH_MS, signal, async () => {
    const { tools } = await client.listTools({}, { cacheMode: 'bypass' });
    names = tools.map(({ name }) => name);
    return wanted.every((name) => names.includes(name));
  });
  return names;
}

async function within(ms: number, signal: AbortSignal, holds: () => Promise<boolean>): Promise<boolean> {
  const end = performance.now() + ms;
  while (!(await holds())) {
    signal.throwIfAborted();
    if (performance.now() > end) return false;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  return true;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
