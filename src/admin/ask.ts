/**
 * What the page asks of upstreams: a request of this revision, on the path of clients, of a caller who sends nothing.
 *
 * *Never* with a credential, whoever the operator is: what a caller's own are needed for is refused here as it is to
 * anybody else. What comes back is read as hostile, within {@link MAX_ANSWER_BYTES}.
 */
import { joinBytes } from '../protocol/answer.ts';
import type { Exchange, Facts, Handle, Inbound, Reply } from '../protocol/exchange.ts';
import {
  encodeHeaderValue,
  METHOD_HEADER,
  NAME_HEADER,
  PROTOCOL_VERSION_HEADER,
  readHead,
} from '../protocol/headers.ts';
import { CURRENT_VERSION, GATEWAY_META } from '../protocol/meta.ts';
import { Abort, type Signal } from '../protocol/signal.ts';
import { explain } from './how.ts';
import type { How, Trouble } from './page/contract.ts';
import { cut } from './printable.ts';

/** What is looked into of an answer: a page of a list has 1 MiB, and of contents no more is shown. */
export const MAX_ANSWER_BYTES = 16 << 20;
/** Longer than any upstream may take for a read by default; nobody looks at a page for longer. */
const GIVE_UP_MS = 60_000;
/** Of a URI or another id that is shown; longer ones are learnt by nobody. */
export const MAX_URI_CHARS = 8_192;
/** Text of an error. */
const MAX_MESSAGE_CHARS = 500;
const MAX_DATA_CHARS = 2_000;

/** What the request path is asked. */
export interface Question {
  readonly route: string;
  readonly method: string;
  /** Mirrored as `Mcp-Name`. */
  readonly name?: string;
  readonly params: Readonly<Record<string, unknown>>;
}

export interface Asker {
  readonly handle: Handle;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

/** What came of it. `result`: the JSON of it, read. */
export type Heard = { readonly how: How; readonly facts: Facts; readonly bytes: number } & (
  | { readonly kind: 'result'; readonly result: Readonly<Record<string, unknown>> }
  | { readonly kind: 'large' }
  | { readonly kind: 'trouble'; readonly trouble: Trouble }
);

/** The head of such a request; it says who asks: nobody. */
export function anonymousHead(method: string, name?: string): Inbound['head'] {
  return readHead([
    ...[PROTOCOL_VERSION_HEADER, CURRENT_VERSION, METHOD_HEADER, method],
    ...(name === undefined ? [] : [NAME_HEADER, encodeHeaderValue(name)]),
  ]);
}

/** Asks, and reads what is answered. @param signal fires when nobody waits any more. */
export async function askAnonymously(
  { handle, now }: Asker,
  { route, method, name, params }: Question,
  signal: Signal,
): Promise<Heard> {
  const body = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: JSON.parse(GATEWAY_META) } };
  const head = anonymousHead(method, name);
  const bytes = new TextEncoder().encode(JSON.stringify(body));
  const abort = new Abort();
  const leave = (): void => abort.abort(new Error('nobody waits any more'));
  const timer = setTimeout(leave, GIVE_UP_MS);
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();
  const exchange: Exchange = { signal: abort, facts: {}, notify: () => undefined };
  const startedAt = now();
  try {
    const reply = await handle({ route, head, body: { kind: 'whole', bytes } }, exchange);
    const how = {
      ...explain(headersOf(reply)),
      tookMs: now() - startedAt,
      upstreamMs: exchange.facts.upstreamMs ?? 0,
    };
    if (reply.kind === 'relay') await stop(reply.body);
    return { ...readReply(reply), how, facts: exchange.facts };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', leave);
  }
}

/** Whoever takes a flowing answer ends it: leaving the loop stops the upstream. */
async function stop(body: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const _chunk of body) break;
  } catch {
    // It broke off by itself.
  }
}

function headersOf(reply: Reply): Readonly<Record<string, string>> {
  if (reply.kind === 'refused') return reply.refusal.headers ?? {};
  return reply.kind === 'answer' || reply.kind === 'relay' ? reply.headers : {};
}

type Said =
  | { readonly kind: 'result'; readonly result: Readonly<Record<string, unknown>>; readonly bytes: number }
  | { readonly kind: 'large'; readonly bytes: number }
  | { readonly kind: 'trouble'; readonly trouble: Trouble; readonly bytes: number };

function readReply(reply: Reply): Said {
  switch (reply.kind) {
    case 'answer': {
      const whole = joinBytes([new TextEncoder().encode(reply.head), ...reply.tail]);
      if (whole.length > MAX_ANSWER_BYTES) return { kind: 'large', bytes: whole.length };
      return { ...readMessage(whole, reply.status), bytes: whole.length };
    }
    case 'refused': {
      const { status, code, message, data } = reply.refusal;
      return { kind: 'trouble', trouble: troubleOf(status, { code, message, data }), bytes: 0 };
    }
    case 'relay':
      return { kind: 'large', bytes: reply.lengthBytes ?? 0 };
    case 'accepted':
    case 'listen':
      throw new Error(`a question was answered by ${reply.kind}`);
  }
}

type Message =
  | { readonly kind: 'result'; readonly result: Readonly<Record<string, unknown>> }
  | { readonly kind: 'trouble'; readonly trouble: Trouble };

function readMessage(bytes: Uint8Array, status: number): Message {
  const { result, error } = recordOf(JSON.parse(new TextDecoder().decode(bytes)));
  return error === undefined
    ? { kind: 'result', result: recordOf(result) }
    : { kind: 'trouble', trouble: troubleOf(status, recordOf(error)) };
}

function troubleOf(status: number, error: Readonly<Record<string, unknown>>): Trouble {
  const { code, message, data } = error;
  return {
    status,
    code: Number(code),
    message: cut(String(message), MAX_MESSAGE_CHARS),
    ...(data !== undefined && { data: cut(JSON.stringify(data), MAX_DATA_CHARS) }),
  };
}

/** The members of an object; of anything else none. */
export function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

/** A string of at most so many characters. */
export function textIn(value: unknown, maxChars: number): string | undefined {
  return typeof value === 'string' ? cut(value, maxChars) : undefined;
}
