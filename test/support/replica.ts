/**
 * One replica of an upstream as a process of its own, to be killed: `node replica.js NAME PORT`. Says `listening PORT`.
 *
 * Every resource exists; its text names the replica. Kept for a moment only, so that steady reads keep coming.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';

/** How long an answer is fresh. */
export const REPLICA_TTL_MS = 100;

function serve(name: string, port: number): void {
  const hints = { resultType: 'complete', cacheScope: 'public', ttlMs: REPLICA_TTL_MS };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString()) as {
      id: unknown;
      method: string;
      params: { uri?: string };
    };
    const { uri } = params;
    const result =
      method === 'server/discover'
        ? { supportedVersions: ['2026-07-28'], capabilities: { resources: {}, tools: {} } }
        : method === 'tools/call'
          ? { content: [{ type: 'text', text: name }] }
          : uri === undefined
            ? {
                resources: [],
                resourceTemplates: [],
                tools: [{ name: 'who', inputSchema: { type: 'object' } }],
              }
            : { contents: [{ uri, text: name }] };
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { ...result, ...hints } }));
  });
  server.listen(port, '127.0.0.1', () => {
    process.stdout.write(`listening ${(server.address() as AddressInfo).port}\n`);
  });
}

export interface Replica {
  readonly port: number;
  readonly url: string;
  /** Ends it without a word, and waits until it is gone. */
  kill(): Promise<void>;
  /** Stops it in its tracks, its sockets open; `SIGCONT` goes on. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
}

/** Starts a replica; port 0 is a free one. */
export async function startReplica(name: string, port = 0): Promise<Replica> {
  const child: ChildProcess = spawn(process.execPath, [fileURLToPath(import.meta.url), name, String(port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const killOnExit = (): boolean => child.kill('SIGKILL');
  process.once('exit', killOnExit);
  void exited.then(() => process.off('exit', killOnExit));
  const [line] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  const bound = Number(/^listening (\d+)/.exec(String(line))?.[1]);
  return {
    port: bound,
    url: `http://127.0.0.1:${bound}/mcp`,
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
    signal: (name) => child.kill(name),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  serve(String(process.argv[2]), Number(process.argv[3]));
