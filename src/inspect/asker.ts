/** Asks one server as the gateway does, and takes the time. *Never* calls a tool, nor gets a prompt. */
import { hinted } from '../aggregate/rules.ts';
import { sanitise, scopeUnder, ttlUnder } from '../cache/hints.ts';
import type { UpstreamConfig } from '../config/types.ts';
import { type Answer, type RawHints, readAnswer } from '../protocol/answer.ts';
import { CURRENT_VERSION, GATEWAY_META, META_VERSION } from '../protocol/meta.ts';
import type { Signal } from '../protocol/signal.ts';
import type { ReadOutcome, Upstream } from '../upstream/types.ts';
import type { HintFacts } from './facts.ts';

/** What is looked at of an answer that should be a refusal, and of what is no answer at all. */
const LOOKED_AT_BYTES = 64 * 1024;

/** What an inspection asks with. */
export interface Asker {
  readonly upstream: Upstream;
  readonly config: UpstreamConfig;
  /** Lower-case: the credential. */
  readonly headers: Readonly<Record<string, string>>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly signal: Signal;
}

export interface Question {
  readonly method: string;
  /** Members of `params` beside `_meta`. */
  readonly params?: Readonly<Record<string, unknown>>;
  readonly name?: string;
  readonly version?: string;
  readonly maxBytes: number;
  /** See `ReadRequest`. */
  readonly flow?: { readonly array: string };
}

export interface Asked {
  readonly outcome: ReadOutcome;
  readonly ms: number;
}

/** Asks once. *Never* rejects. */
export async function ask(asker: Asker, question: Question): Promise<Asked> {
  const { upstream, headers, now, signal } = asker;
  const { method, name, version = CURRENT_VERSION, maxBytes, flow } = question;
  const startedAt = now();
  const outcome = await upstream.read({
    ...{ method, name, version, headers, signal, maxBytes, idempotent: true },
    params: paramsText(question),
    ...(flow !== undefined && { flow }),
  });
  return { outcome, ms: now() - startedAt };
}

function paramsText({
  params = {},
  version = CURRENT_VERSION,
}: Pick<Question, 'params' | 'version'>): string {
  const meta = { ...(JSON.parse(GATEWAY_META) as Record<string, unknown>), [META_VERSION]: version };
  return JSON.stringify({ ...params, _meta: meta });
}

/** An HTTP answer, looked at as it came. */
export interface Seen {
  readonly status: number;
  readonly media: 'json' | 'sse' | 'other';
  /** What it says, if it is JSON. */
  readonly answer: Answer | undefined;
  readonly beginning: string;
}

/** Sends a body under headers that need not fit it. Undefined: nothing came. */
export async function send(
  { upstream, headers, signal }: Asker,
  header: string,
  method: string,
): Promise<Seen | undefined> {
  const id = '"headgate-inspect"';
  const body = `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${paramsText({})}}`;
  const outcome = await upstream.stream({
    ...{ method: header, name: undefined, version: CURRENT_VERSION, headers, signal, idempotent: true },
    body: new TextEncoder().encode(body),
  });
  if (outcome.kind === 'failure') return undefined;
  const whole = outcome.kind === 'whole';
  const bytes = await beginningOf(whole ? outcome.chunks : outcome.body);
  const media = whole ? 'json' : outcome.media;
  return {
    status: whole ? 200 : outcome.status,
    media,
    answer: media === 'json' ? readAnswer(bytes, id) : undefined,
    beginning: bytes.subarray(0, LOOKED_AT_BYTES).toString('utf8'),
  };
}

async function beginningOf(body: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const part of body) {
      parts.push(part);
      bytes += part.length;
      if (bytes > LOOKED_AT_BYTES) break;
    }
  } catch {
    // What has come does: the rest was broken off.
  }
  return Buffer.concat(parts);
}

/** What hints come to under the configuration. */
export function hintsOf(
  config: UpstreamConfig,
  method: string,
  uri: string | undefined,
  outcome: ReadOutcome,
): HintFacts {
  const raw = rawOf(outcome);
  const hints = sanitise(rawOf(hinted(config, method, uri, outcome)));
  const scope = scopeUnder(config.cache, hints.scope);
  const { ttlMs, cacheScope } = raw;
  return {
    ttl:
      ttlMs === undefined
        ? { kind: 'absent' }
        : Number.isInteger(ttlMs) && ttlMs >= 0
          ? { kind: 'given', ms: ttlMs }
          : { kind: 'wrong' },
    scope:
      cacheScope === undefined
        ? 'absent'
        : cacheScope === 'public' || cacheScope === 'private'
          ? cacheScope
          : 'wrong',
    kept: { ttlMs: ttlUnder(config.cache, { ttlMs: hints.ttlMs, receivedAt: 0 }, scope), scope },
  };
}

function rawOf(outcome: ReadOutcome): RawHints {
  return outcome.kind === 'answer' && outcome.answer.kind === 'result'
    ? outcome.answer.hints
    : { ttlMs: undefined, cacheScope: undefined };
}

/** The middle one; of none: 0. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
