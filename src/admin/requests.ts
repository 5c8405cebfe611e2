/** What the page asks, out of its JSON. Pure; *never* throws. */

import { MAX_URI_CHARS, recordOf } from './ask.ts';
import { LISTED } from './catalogue.ts';
import type { ListRequest, ReadRequest } from './page/contract.ts';
import { parseBody } from './purge.ts';

export type Reading<Request> =
  | { readonly kind: 'read'; readonly request: Request }
  /** `message`: what to write instead. */
  | { readonly kind: 'bad'; readonly message: string };

/** @param routes the configured paths. */
export function readListRequest(body: Uint8Array, routes: Iterable<string>): Reading<ListRequest> {
  const { route, list, cursor } = recordOf(parseBody(body));
  const wrongRoute = routeProblem(route, routes);
  if (wrongRoute !== undefined) return bad(wrongRoute);
  const listed = LISTED.find((one) => one === list);
  if (listed === undefined) return bad(`write a list: ${LISTED.join(', ')}`);
  if (cursor !== undefined && typeof cursor !== 'string') return bad('write the cursor as it was told');
  const request = { route: String(route), list: listed, ...(cursor !== undefined && { cursor }) };
  return { kind: 'read', request };
}

/** @param routes the configured paths. */
export function readReadRequest(body: Uint8Array, routes: Iterable<string>): Reading<ReadRequest> {
  const { route, uri } = recordOf(parseBody(body));
  const wrongRoute = routeProblem(route, routes);
  if (wrongRoute !== undefined) return bad(wrongRoute);
  if (typeof uri !== 'string' || uri === '' || uri.length > MAX_URI_CHARS)
    return bad(`write the uri of a resource, of at most ${MAX_URI_CHARS} characters`);
  return { kind: 'read', request: { route: String(route), uri } };
}

function routeProblem(route: unknown, routes: Iterable<string>): string | undefined {
  const known = [...routes];
  return typeof route === 'string' && known.includes(route)
    ? undefined
    : `no such route; known: ${known.join(', ')}`;
}

function bad(message: string): Reading<never> {
  return { kind: 'bad', message };
}
