/**
 * Answers of this revision as older clients know them: without the members that came with it, with the error codes of
 * their time, and with status 200, by which alone they read an error. Values stay the bytes they were.
 *
 * *Spec:* 2025-11-25, schema; server/resources, "Error Handling".
 */
import { readAnswer } from '../protocol/answer.ts';
import { INTERNAL_ERROR, INVALID_PARAMS, LEGACY_NOT_FOUND, refusal } from '../protocol/errors.ts';
import type { Reply } from '../protocol/exchange.ts';
import { memberOf, textOf, wholeObject } from '../protocol/json.ts';
import { sameId } from '../protocol/json-watch.ts';
import type { LegacyRequest } from './request.ts';

/** Statuses that say something to HTTP clients, whatever they know of MCP. */
const OF_HTTP: ReadonlySet<number> = new Set([401, 403]);

export type Answered = Extract<Reply, { kind: 'answer' }>;
type Refused = Extract<Reply, { kind: 'refused' }>;

/** What a whole response says to whoever asked. */
export type Response =
  /** `tail`: what stands behind the head, in pieces. */
  | { readonly kind: 'result'; readonly resultType: string; readonly tail: readonly Uint8Array[] }
  | { readonly kind: 'other'; readonly reply: Reply };

/** A refusal of the gateway. */
export function refusedReply({ refusal: problem }: Refused, { id, method }: LegacyRequest): Reply {
  const { status, code } = problem;
  const told = code === INVALID_PARAMS && isNotFound(method, problem.data) ? LEGACY_NOT_FOUND : code;
  return {
    kind: 'refused',
    id,
    refusal: { ...problem, code: told, status: OF_HTTP.has(status) ? status : 200 },
  };
}

/** Older revisions have a code of its own for a resource that is not there. */
function isNotFound(method: string, data: unknown): boolean {
  return method === 'resources/read' && typeof data === 'object' && data !== null && 'uri' in data;
}

/** Reads a whole response. @param sentId JSON text of the id that it was asked under. */
export function readResponse(bytes: Uint8Array, sentId: string, request: LegacyRequest): Response {
  const answer = readAnswer(bytes, spelledId(bytes, sentId));
  switch (answer.kind) {
    case 'result':
      return { kind: 'result', resultType: answer.resultType, tail: [answer.result.plain()] };
    case 'error': {
      const { code, message, data } = answer;
      return { kind: 'other', reply: errorReply(request, code, message, data) };
    }
    case 'broken':
      return {
        kind: 'other',
        reply: {
          kind: 'refused',
          id: request.id,
          refusal: refusal(INTERNAL_ERROR, 'The upstream server gave no valid answer', { status: 200 }),
        },
      };
  }
}

/** The id as the server spells it: it may write the same one in other letters. */
function spelledId(bytes: Uint8Array, sentId: string): string {
  const member = memberOf(wholeObject(bytes) ?? [], 'id');
  const id = member && textOf(bytes, member);
  return id !== undefined && sameId(id, sentId) ? id : sentId;
}

/** @param data JSON text. */
export function errorReply(
  { id, method }: LegacyRequest,
  code: number,
  message: string,
  data: string | undefined,
): Answered {
  const isMissing =
    code === INVALID_PARAMS && isNotFound(method, data === undefined ? undefined : JSON.parse(data));
  const told = isMissing ? LEGACY_NOT_FOUND : code;
  const more = data === undefined ? '' : `,"data":${data}`;
  return {
    kind: 'answer',
    status: 200,
    head: `{"jsonrpc":"2.0","id":${id},"error":{"code":${told},"message":${JSON.stringify(message)}${more}}}`,
    tail: [],
    headers: {},
    rpcError: told,
  };
}

/** A result. @param tail as it stands behind a head: `,"contents":[…]}}`, in pieces. */
export function resultReply(
  { id }: LegacyRequest,
  tail: readonly Uint8Array[],
  headers: Readonly<Record<string, string>>,
): Answered {
  return { kind: 'answer', status: 200, head: headOf(id), tail: begun(tail), headers };
}

export function headOf(id: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":{`;
}

const COMMA = 0x2c;

/** The pieces without the comma that parts them from a head which writes members of its own. */
export function begun(tail: readonly Uint8Array[]): readonly Uint8Array[] {
  const at = tail.findIndex((piece) => piece.length > 0);
  const first = tail[at];
  return first?.[0] === COMMA ? [first.subarray(1), ...tail.slice(at + 1)] : tail;
}

/** The head of a result that the gateway wrote: its type, and what it says beside its hints. */
const WRITTEN =
  /^\{"jsonrpc":"2\.0","id":(?:"(?:[^"\\]|\\.)*"|-?\d+),"result":\{"resultType":("(?:[^"\\]|\\.)*")(?:,"ttlMs":\d+,"cacheScope":"(?:public|private)")?(.*)$/s;

/** Takes apart a head of the gateway's own. @returns undefined for the head of an error, or none. */
export function readHead(head: string): { readonly resultType: string; readonly rest: string } | undefined {
  const [, type, rest] = WRITTEN.exec(head) ?? [];
  return type === undefined || rest === undefined
    ? undefined
    : { resultType: JSON.parse(type) as string, rest };
}
