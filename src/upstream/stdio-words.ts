/** What is said to a process beside the requests, and what of a message is said in other words. *Never* I/O. */
import { memberOf, objectMembers, type Span, textOf } from '../protocol/json.ts';

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
