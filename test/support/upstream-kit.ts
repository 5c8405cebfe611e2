/** What tests of the upstream room share: a configuration with short timeouts, requests, a recording observer. */
import { Readable } from 'node:stream';
import type { UpstreamConfig } from '../../src/config/types.ts';
import type {
  ReadRequest,
  StreamBody,
  StreamOutcome,
  StreamRequest,
  Upstream,
  UpstreamObserver,
} from '../../src/upstream/types.ts';
import { createUpstream } from '../../src/upstream/upstream.ts';

export const now = (): number => performance.now();

type Options = Partial<UpstreamConfig['timeouts']> & { readonly connections?: number };

export function upstreamConfig(url: URL, { connections = 8, ...timeouts }: Options = {}): UpstreamConfig {
  return {
    name: 'docs',
    endpoints: [url],
    process: undefined,
    claims: { resources: [], tools: [], prompts: [] },
    auth: { type: 'none' },
    forwardHeaders: [],
    timeouts: { connectMs: 500, responseMs: 2_000, callMs: 5_000, streamIdleMs: 2_000, ...timeouts },
    connections,
    subscribe: true,
    protocol: 'modern',
    cache: { ttlDefaultMs: 0, ttlMaxMs: 86_400_000, rules: [], scope: 'respect', staleIfErrorMs: 60_000 },
  };
}

export interface Recorder extends UpstreamObserver {
  readonly attempts: string[];
  readonly retries: string[];
  readonly states: string[];
  readonly operations: { method: string; errorType: string; seconds: number }[];
}

export function recorder(): Recorder {
  const attempts: string[] = [];
  const retries: string[] = [];
  const states: string[] = [];
  const operations: Recorder['operations'] = [];
  return {
    attempts,
    retries,
    states,
    operations,
    attempt: (_, outcome) => attempts.push(outcome),
    retry: (_, reason) => retries.push(reason),
    upstreamUp: (_, state) => states.push(state),
    circuitOpen: (_, state) => states.push(`circuit ${state}`),
    upstreamOperation: (_, method, errorType, seconds) => operations.push({ method, errorType, seconds }),
  };
}

export interface Rig {
  readonly upstream: Upstream;
  readonly seen: Recorder;
}

export function rig(url: URL, options: Options & { readonly clock?: () => number } = {}): Rig {
  const { clock = now, ...rest } = options;
  const seen = recorder();
  return { seen, upstream: createUpstream(upstreamConfig(url, rest), { now: clock, observer: seen }) };
}

export const VERSION = '2026-07-28';

export function readRequest(rest: Partial<ReadRequest> = {}): ReadRequest {
  return {
    method: 'resources/read',
    name: 'a:b',
    params: '{"uri":"a:b"}',
    version: VERSION,
    headers: {},
    idempotent: true,
    signal: new AbortController().signal,
    maxBytes: 1 << 20,
    ...rest,
  };
}

export const CALL = '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t"},"id":42}';

export function streamRequest(rest: Partial<StreamRequest> = {}): StreamRequest {
  return {
    method: 'tools/call',
    name: 't',
    version: VERSION,
    headers: {},
    body: Buffer.from(CALL),
    idempotent: false,
    signal: new AbortController().signal,
    ...rest,
  };
}

export async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts).toString();
}

/** The body of a call that must have been answered. */
export async function bodyOf(upstream: Upstream, request: StreamRequest): Promise<StreamBody> {
  return bodyIn(await upstream.stream(request));
}

/** The body of an outcome that must be an answer. */
export function bodyIn(outcome: StreamOutcome): StreamBody {
  if (outcome.kind === 'failure')
    throw new Error(`no response: ${outcome.failure.kind}, ${outcome.failure.detail}`);
  return outcome.kind === 'response' ? outcome.body : Readable.from(outcome.chunks, { objectMode: true });
}
