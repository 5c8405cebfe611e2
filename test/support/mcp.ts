/** Requests of MCP 2026-07-28 as plain values, for tests that look at headers and bytes. */
import { type Agent, request as httpRequest } from 'node:http';
import { encodeHeaderValue } from '../../src/protocol/headers.ts';

export const VERSION = '2026-07-28';
const PREFIX = 'io.modelcontextprotocol/';

export function meta(extra: Record<string, unknown> = {}): Record<string, unknown> {
  return { [`${PREFIX}protocolVersion`]: VERSION, [`${PREFIX}clientCapabilities`]: {}, ...extra };
}

export function rpc(
  method: string,
  params: Record<string, unknown> = {},
  id: string | number = 7,
): Record<string, unknown> {
  return { jsonrpc: '2.0', id, method, params: { _meta: meta(), ...params } };
}

/** The mirrored headers of a request. */
export function mirrored(method: string, name?: string): Record<string, string> {
  return {
    'mcp-protocol-version': VERSION,
    'mcp-method': method,
    ...(name !== undefined && { 'mcp-name': encodeHeaderValue(name) }),
  };
}

/** Node's raw header list of some headers. */
export function rawHeaders(headers: Record<string, string>): string[] {
  return Object.entries(headers).flat();
}

export interface Got {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly text: string;
  readonly json: {
    id?: unknown;
    // biome-ignore lint/suspicious/noExplicitAny: tests look into arbitrary results
    result?: any;
    error?: { code: number; message: string; data?: Record<string, unknown> };
  };
}

/** One POST, on its own connection without an agent; the answer of an SSE stream is its last message. */
export function post(
  url: string,
  body: string | Uint8Array | Record<string, unknown>,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
  agent: Agent | false = false,
): Promise<Got> {
  const payload = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const req = httpRequest(
      url,
      {
        method: 'POST',
        agent,
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...headers,
        },
        ...(signal && { signal }),
      },
      (res) => {
        const chunks: Buffer[] = [];
        res.on('data', (chunk: Buffer) => chunks.push(chunk));
        res.on('error', reject);
        res.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          resolve({
            status: res.statusCode ?? 0,
            headers: res.headers,
            text,
            json: parse(text, String(res.headers['content-type'])),
          });
        });
      },
    );
    req.on('error', reject);
    req.end(payload);
  });
}

function parse(text: string, type: string): Got['json'] {
  const messages = type.includes('event-stream')
    ? [...text.matchAll(/^data: ?(.*)$/gm)].map((match) => match[1] ?? '')
    : [text];
  try {
    return JSON.parse(messages.at(-1) ?? '') as Got['json'];
  } catch {
    return {};
  }
}

/** Calls a method through `url` as a client would. */
export function call(
  url: string,
  method: string,
  params: Record<string, unknown> = {},
  options: {
    name?: string;
    headers?: Record<string, string>;
    id?: string | number;
    signal?: AbortSignal;
    agent?: Agent;
  } = {},
): Promise<Got> {
  const name =
    options.name ??
    (params.uri as string | undefined) ??
    (method === 'tools/call' || method === 'prompts/get' ? (params.name as string) : undefined);
  return post(
    url,
    rpc(method, params, options.id),
    { ...mirrored(method, name), ...options.headers },
    options.signal,
    options.agent,
  );
}

/** Waits until `condition` holds; fails with `why` after `ms`. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  why: string,
  ms = 5_000,
): Promise<void> {
  const deadline = Date.now() + ms;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`timed out: ${why}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
