/** What the soak's clients send, and what of an answer is judged. */
import { call, type Got, meta } from '../support/mcp.ts';
import { ANSWER_MS } from './bounds.ts';
import type { Running } from './fleet.ts';
import type { Answer, Asked, Item, Route } from './oracle.ts';

export const CALLERS: readonly string[] = ['ada', 'bob', 'cyd', 'dot'];

export interface Exchanged {
  readonly asked: Asked;
  readonly answer: Answer;
  readonly got: Got | undefined;
}

/** Who calls: told to alpha by the client's info, to beta by a header, to gamma by the token. */
export function headersOf(caller: string): Record<string, string> {
  return { authorization: `Bearer token-of-${caller}`, 'x-user': caller };
}

export function metaOf(caller: string): Record<string, unknown> {
  return meta({ 'io.modelcontextprotocol/clientInfo': { name: caller, version: '1' } });
}

/** Asks a gateway. *Never* rejects: what does not come is an answer of status 0. */
export async function ask(
  { gateway, name }: Running,
  route: Route,
  caller: string,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
): Promise<Exchanged> {
  const startedAt = performance.now();
  let got: Got | undefined;
  let answer: Answer;
  try {
    got = await call(
      `${gateway.mcp}${route}`,
      method,
      { _meta: metaOf(caller), ...params },
      { headers: headersOf(caller), signal: AbortSignal.timeout(ANSWER_MS) },
    );
    answer = answerOf(got);
  } catch (fault) {
    answer = { status: 0, cacheStatus: '', message: String(fault), code: 0, texts: [] };
  }
  const asked = { caller, gateway: name, route, startedAt, endedAt: performance.now() };
  return { asked, answer, got };
}

interface Text {
  readonly text?: unknown;
}

function answerOf({ status, headers, json }: Got): Answer {
  const { result, error } = json;
  const texts: readonly Text[] = result?.contents ?? result?.content ?? [];
  return {
    status,
    // Of a failure the other header says what it was.
    cacheStatus: String(headers['cache-status'] ?? headers['proxy-status'] ?? ''),
    ...(error !== undefined && { code: error.code, message: error.message }),
    ...(error === undefined && result === undefined && { code: 0, message: 'neither result nor error' }),
    ...(typeof result?.ttlMs === 'number' && { ttlMs: result.ttlMs }),
    texts: texts.map(({ text }) => String(text)),
  };
}

/** A page of a list. */
export interface Page {
  readonly items: readonly Item[];
  readonly nextCursor?: string;
  readonly incomplete: readonly string[];
}

export function pageOf({ json }: Got): Page {
  const result = json.result ?? {};
  const resources: readonly { readonly uri: string; readonly description: string }[] = result.resources ?? [];
  const left: unknown = result._meta?.['dev.headgate/incomplete'];
  return {
    items: resources.map(({ uri, description }) => ({ uri, madeFor: description })),
    ...(typeof result.nextCursor === 'string' && { nextCursor: result.nextCursor }),
    incomplete: left === undefined ? [] : [...JSON.stringify(left).matchAll(/alpha|beta|gamma/g)].map(String),
  };
}
