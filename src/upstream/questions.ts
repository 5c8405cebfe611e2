/** What is answered to a server that asks of its own accord. *Never* I/O. */
import { METHOD_NOT_FOUND } from '../protocol/errors.ts';
import { memberOf, objectMembers, stringValue, textOf } from '../protocol/json.ts';

/**
 * A server asks only what the client said it can: nothing here. Some ask all the same, and wait; some end a client
 * that does not answer their `ping`.
 * @returns the answer and the method that was asked for; undefined where nobody waits for one.
 */
export function declined(
  message: Uint8Array,
): { readonly method: string; readonly answer: string } | undefined {
  const members = objectMembers(message, 0) ?? [];
  const id = memberOf(members, 'id');
  const name = memberOf(members, 'method');
  const method = name && stringValue(message, name);
  if (id === undefined || method === undefined) return undefined;
  const said =
    method === 'ping'
      ? '"result":{}'
      : `"error":{"code":${METHOD_NOT_FOUND},"message":"The client does not offer this"}`;
  return { method, answer: `{"jsonrpc":"2.0","id":${textOf(message, id)},${said}}` };
}
