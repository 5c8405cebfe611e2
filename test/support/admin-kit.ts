/** A gateway as a process of its own, with an admin port, for tests of what is seen and done there. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startGateway } from '../demo/gateway.ts';
import { until } from './mcp.ts';

export interface AdminGateway {
  /** Origin of the admin port, on loopback. */
  readonly admin: string;
  /** Origin of the MCP port. */
  readonly mcp: string;
  readonly output: () => string;
  /** Puts another configuration in place of its file: what is written is what `startAdminGateway` takes. */
  write(yaml: string): void;
  get<T>(path: string, headers?: Record<string, string>): Promise<{ status: number; json: T; text: string }>;
  post<T>(
    path: string,
    body: unknown,
    headers?: Record<string, string>,
  ): Promise<{ status: number; json: T; text: string }>;
  stop(): Promise<unknown>;
}

/** @param yaml upstreams and routes, and what else there is but the ports. @param admin default: loopback, no token. */
export async function startAdminGateway(
  yaml: string,
  { admin = '127.0.0.1:0', env = {} }: { admin?: string; env?: Record<string, string> } = {},
): Promise<AdminGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-admin-'));
  const file = join(folder, 'headgate.yaml');
  const write = (text: string): void => {
    writeFileSync(
      `${file}.next`,
      `version: 1\nlisten: 127.0.0.1:0\nstatus: 127.0.0.1:0\nadmin: ${admin}\n${text}`,
    );
    renameSync(`${file}.next`, file);
  };
  write(yaml);
  const running = await startGateway({ root: process.cwd(), args: ['serve', '-c', file], env });
  const found = (): string | undefined =>
    /^listening {2}admin {3}(http:\/\/\S+)$/m.exec(running.output())?.[1];
  await until(() => found() !== undefined, 'the address of the admin port');
  const address = (found() as string).replace('0.0.0.0', '127.0.0.1');
  const ask = async (path: string, init: RequestInit) => {
    const response = await fetch(address + path, init);
    const text = await response.text();
    return { status: response.status, text, json: JSON.parse(text) };
  };
  return {
    admin: address,
    mcp: running.mcp,
    output: running.output,
    write,
    get: (path, headers = {}) => ask(path, { headers }),
    post: (path, body, headers = {}) =>
      ask(path, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
    stop: async () => {
      await running.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
