/** What is said to a process beside the requests, and what of a message is said in other words. *Never* I/O. */
import { METHOD_NOT_FOUND } from '../protocol/errors.ts';
import { memberOf, objectMembers, type Span, stringValue, textOf } from '../protocol/json.ts';
import type { Child } from './child.ts';

/** *Spec:* basic/patterns/cancellation. @param id JSON text. */
export function cancelled(id: string): string {
  return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`;
}

/** The params with another progress token, where they have one. */
export function withToken(
  params: string,
  id: string,
): { readonly text: string; readonly token: string | undefined } {
  const bytes = Buffer.from(params);
  const meta = memberOf(objectMembers(bytes, 0) ?? [], '_meta');
  const token = meta && memberOf(objectMembers(bytes, meta.start) ?? [], 'progressToken');
  if (token === undefined) return { text: params, token: undefined };
  return { text: replaced(bytes, token, id).toString(), token: textOf(bytes, token) };
}

/** A message with other text in one place. */
export function replaced(bytes: Uint8Array, { start, end }: Span, text: string): Buffer {
  return Buffer.concat([bytes.subarray(0, start), Buffer.from(text), bytes.subarray(end)]);
}

/** A server asks only what the client said it can: nothing here. Some ask all the same, and wait. */
export function decline(child: Child, bytes: Uint8Array): void {
  const members = objectMembers(bytes, 0) ?? [];
  const id = memberOf(members, 'id');
  const method = memberOf(members, 'method');
  if (id === undefined) return;
  const isPing = method !== undefined && stringValue(bytes, method) === 'ping';
  const answer = isPing
    ? '"result":{}'
    : `"error":{"code":${METHOD_NOT_FOUND},"message":"The client does not offer this"}`;
  child.send(`{"jsonrpc":"2.0","id":${textOf(bytes, id)},${answer}}`);
}
