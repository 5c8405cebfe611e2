/** What is said to a process beside the requests, and what of a message is said in other words. *Never* I/O. */
import { memberOf, objectMembers, type Span, textOf } from '../protocol/json.ts';
import { CANCELLED } from '../protocol/notice.ts';

/** *Spec:* basic/patterns/cancellation. @param id JSON text. */
export function cancelled(id: string): string {
  return `{"jsonrpc":"2.0","method":"${CANCELLED}","params":{"requestId":${id}}}`;
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

/** JSON text of the progress token in params; undefined where there is none. @param params JSON text. */
export function progressTokenOf(params: string): string | undefined {
  if (!params.includes('progressToken')) return undefined;
  const bytes = Buffer.from(params);
  const meta = memberOf(objectMembers(bytes, 0) ?? [], '_meta');
  const token = meta && memberOf(objectMembers(bytes, meta.start) ?? [], 'progressToken');
  return token && textOf(bytes, token);
}

/** A notification by another progress token; undefined where it is progress and there is none to tell it by. */
export function withProgressToken(message: Uint8Array, token: string | undefined): Uint8Array | undefined {
  const params = memberOf(objectMembers(message, 0) ?? [], 'params');
  const member = params && memberOf(objectMembers(message, params.start) ?? [], 'progressToken');
  if (member === undefined) return message;
  return token === undefined ? undefined : replaced(message, member, token);
}

/** A message with other text in one place. */
export function replaced(bytes: Uint8Array, { start, end }: Span, text: string): Buffer {
  return Buffer.concat([bytes.subarray(0, start), Buffer.from(text), bytes.subarray(end)]);
}
