/** The real gateway as a process that is heard out, and clients that keep every byte they get. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { projectRoot } from '../demo/gateway.ts';
import { until } from '../support/mcp.ts';

const root = projectRoot(import.meta.dirname);

/** Everything a client got of an answer. */
export interface Got {
  readonly status: number;
  readonly text: string;
}

export function send(
  url: string,
  body: string,
  headers: Readonly<Record<string, string | string[]>>,
  method = 'POST',
): Promise<Got> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method, agent: false, headers }, (response) => {
      const chunks: Buffer[] = [];
      const end = (): void => {
        const told = `${response.rawHeaders.join('\n')}\n${Buffer.concat(chunks).toString('latin1')}`;
        resolve({ status: response.statusCode ?? 0, text: told });
      };
      response.on('data', (part: Buffer) => chunks.push(part));
      response.on('end', end);
      // A broken JSON answer destroys the socket: what came is what counts.
      response.on('error', end);
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** Bytes on a socket; everything that comes back until it closes. */
export async function sendRaw(origin: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.on('data', (part) => {
    text += part.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.end(bytes);
  await once(socket, 'close');
  return text;
}

export interface Running {
  readonly child: ChildProcess;
  readonly mcp: string;
  readonly status: string;
  stdout(): string;
  stderr(): string;
  end(): Promise<void>;
}

/** The real process; everything that it prints is kept. */
export async function startGateway(file: string, env: Readonly<Record<string, string>>): Promise<Running> {
  const child = spawn(process.execPath, [join(root, 'dist', 'main.js'), 'serve', '-c', file], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  const printed = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (part: string) => {
      printed[name] += part;
    });
  const address = (kind: string): string =>
    new RegExp(`^listening {2}${kind} +(http://\\S+)$`, 'm').exec(printed.stdout)?.[1] ?? '';
  try {
    await until(
      () => printed.stdout.includes('\ntry\n') || child.exitCode !== null,
      'the start-up summary',
      20_000,
    );
    assert.notEqual(address('mcp'), '', `${printed.stdout}${printed.stderr}`);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  return {
    child,
    mcp: address('mcp'),
    status: address('status'),
    stdout: () => printed.stdout,
    stderr: () => printed.stderr,
    end: async () => {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await exited;
      clearTimeout(timer);
    },
  };
}

/** Runs a command to its end. @returns both streams. */
export async function run(args: readonly string[], env: Readonly<Record<string, string>>): Promise<string> {
  const child = spawn(process.execPath, [join(root, 'dist', 'main.js'), ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
  await once(child, 'close');
  return text;
}
