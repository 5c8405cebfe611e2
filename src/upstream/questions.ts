/** What servers of an older era ask of their own accord, and what they are told. *Never* I/O. */
import { METHOD_NOT_FOUND } from '../protocol/errors.ts';
import { memberOf, objectMembers, textOf } from '../protocol/json.ts';
import { META_CAPABILITIES } from '../protocol/meta.ts';
import { askable, NO_CAPABILITIES, type Question, readQuestion } from '../protocol/questions.ts';

/** A request of a server's own. */
export interface ServerRequest extends Question {
  /** JSON text. */
  readonly id: string;
}

/** Reads it; undefined where nobody waits for an answer. */
export function readRequest(message: Uint8Array): ServerRequest | undefined {
  const id = memberOf(objectMembers(message, 0) ?? [], 'id');
  const question = readQuestion(message, 0);
  return id === undefined || question === undefined ? undefined : { ...question, id: textOf(message, id) };
}

/** JSON text of what the sender of these params can be asked. @param params JSON text. */
export function askableIn(params: string): string {
  // Most can be asked nothing, and are not read for it.
  if (!params.includes(META_CAPABILITIES) || params.includes(`"${META_CAPABILITIES}":{}`))
    return NO_CAPABILITIES;
  const bytes = Buffer.from(params);
  const meta = memberOf(objectMembers(bytes, 0) ?? [], '_meta');
  const inner = (meta && objectMembers(bytes, meta.start)) ?? [];
  return askable(bytes, memberOf(inner, META_CAPABILITIES));
}

/**
 * A server asks only what the client said it can. Some ask all the same, and wait; some end a client that does not
 * answer their `ping`.
 * @returns the answer and the method that was asked for; undefined where nobody waits for one.
 */
export function declined(
  message: Uint8Array,
): { readonly method: string; readonly answer: string } | undefined {
  const asked = readRequest(message);
  if (asked === undefined) return undefined;
  const { id, method } = asked;
  const said =
    method === 'ping'
      ? '"result":{}'
      : `"error":{"code":${METHOD_NOT_FOUND},"message":"The client does not offer this"}`;
  return { method, answer: `{"jsonrpc":"2.0","id":${id},${said}}` };
}
