/**
 * Is this a message of an older client, and which? Pure; *never* throws.
 *
 * What two readers could read in two ways is refused here as it is for everybody (R6). *Spec:* 2025-11-25,
 * basic/transports, "Sending Messages to the Server"; basic/versioning of this revision.
 */
import { idText, MAX_MEMBERS, repeated } from '../protocol/classify.ts';
import { INVALID_REQUEST, refusal } from '../protocol/errors.ts';
import type { Inbound, Reply } from '../protocol/exchange.ts';
import { type Head, METHOD_HEADER, PROTOCOL_VERSION_HEADER } from '../protocol/headers.ts';
import {
  kindAt,
  type Member,
  memberOf,
  objectMembers,
  stringValue,
  textOf,
  wholeObject,
} from '../protocol/json.ts';
import { LEGACY_VERSIONS } from '../protocol/legacy.ts';
import { META_VERSION } from '../protocol/meta.ts';
import { CANCELLED } from '../protocol/notice.ts';
import type { LegacyRequest } from './request.ts';

export type LegacyMessage =
  | { readonly kind: 'request'; readonly request: LegacyRequest }
  /** `cancels`: JSON text of the id of the request that it ends. */
  | { readonly kind: 'notification'; readonly cancels: string | undefined }
  /** An answer to what the client was asked. `id`: JSON text. */
  | { readonly kind: 'response'; readonly id: string; readonly bytes: Uint8Array }
  | Extract<Reply, { kind: 'refused' }>;

/** Reads it; undefined for a message that is none of theirs. */
export function readLegacy({ head, body }: Inbound): LegacyMessage | undefined {
  if (body.kind !== 'whole') return undefined;
  const { bytes } = body;
  const members = wholeObject(bytes, 'params', '_meta');
  if (members === undefined) return undefined;
  const methodMember = memberOf(members, 'method');
  const method = methodMember && stringValue(bytes, methodMember);
  const params = memberOf(members, 'params');
  const isCrowded = [members, params?.members].some((all) => (all?.length ?? 0) > MAX_MEMBERS);
  const meta = isCrowded ? undefined : memberOf(params?.members ?? [], '_meta');
  if (meta?.members?.some(({ key }) => key === META_VERSION) === true) return undefined;
  if (method !== 'initialize' && !isOlder(head)) return undefined;
  const idMember = memberOf(members, 'id');
  const id = idMember && idText(bytes, idMember);
  if (isCrowded || (meta?.members?.length ?? 0) > MAX_MEMBERS)
    return invalid(`A request has at most ${MAX_MEMBERS} members`, id);
  const problem =
    head.duplicated === undefined
      ? problemOf(bytes, members)
      : `The header ${head.duplicated} was sent twice`;
  if (problem !== undefined) return invalid(problem, id);
  if (idMember !== undefined && id === undefined)
    return invalid('"id" must be a string or an integer', undefined);
  if (methodMember !== undefined && method === undefined) return invalid('"method" must be a string', id);
  if (method === undefined)
    return id === undefined
      ? invalid('A response needs an "id"', undefined)
      : { kind: 'response', id, bytes };
  if (id === undefined) return { kind: 'notification', cancels: cancelledBy(bytes, method, params) };
  return { kind: 'request', request: { bytes, id, method, params } };
}

/** By the version that the head names; without one, by the header that every request of this revision has. */
function isOlder({ headers }: Head): boolean {
  const version = headers.get(PROTOCOL_VERSION_HEADER);
  return version === undefined ? !headers.has(METHOD_HEADER) : LEGACY_VERSIONS.includes(version);
}

function problemOf(bytes: Uint8Array, members: readonly Member[]): string | undefined {
  const version = memberOf(members, 'jsonrpc');
  if (version === undefined || stringValue(bytes, version) !== '2.0') return '"jsonrpc" must be "2.0"';
  const params = memberOf(members, 'params');
  const meta = memberOf(params?.members ?? [], '_meta');
  const twice = [members, params?.members, meta?.members]
    .map((all) => repeated(all ?? []))
    .find((member) => member !== undefined);
  if (twice !== undefined) return `Ambiguous request: "${twice.key}" comes twice`;
  if (params !== undefined && kindAt(bytes, params.start) !== 'object') return '"params" must be an object';
  if (meta !== undefined && kindAt(bytes, meta.start) !== 'object') return '"_meta" must be an object';
  return undefined;
}

function cancelledBy(bytes: Uint8Array, method: string, params: Member | undefined): string | undefined {
  if (method !== CANCELLED || params === undefined) return undefined;
  const id = memberOf(objectMembers(bytes, params.start) ?? [], 'requestId');
  return id && textOf(bytes, id);
}

function invalid(message: string, id: string | undefined): LegacyMessage {
  return { kind: 'refused', id, refusal: refusal(INVALID_REQUEST, message, { reason: 'parse' }) };
}
