/**
 * Requests of older clients as clients of this revision send them: the same values, with the envelope and the mirrored
 * headers that theirs had not.
 *
 * What is mirrored is read from the body that goes on: headers of an older client are not believed. *Never* I/O.
 * *Spec:* basic/index, "`_meta`"; basic/transports/streamable-http, "Standard Request Headers".
 */
import { joinBytes } from '../protocol/answer.ts';
import type { Inbound } from '../protocol/exchange.ts';
import {
  encodeHeaderValue,
  type Head,
  METHOD_HEADER,
  NAME_HEADER,
  PARAM_HEADER_PREFIX,
  PROTOCOL_VERSION_HEADER,
} from '../protocol/headers.ts';
import { type Member, memberOf, objectMembers, stringValue } from '../protocol/json.ts';
import { SESSION_HEADER } from '../protocol/legacy.ts';
import {
  CURRENT_VERSION,
  META_CAPABILITIES,
  META_CLIENT_INFO,
  META_ENVELOPE,
  META_LOG_LEVEL,
  META_VERSION,
} from '../protocol/meta.ts';
import { methodRow } from '../protocol/methods.ts';

/** What an older client has said of itself, once for all. */
export interface Self {
  /** JSON texts. */
  readonly capabilities: string;
  readonly clientInfo: string | undefined;
  readonly logLevel: string | undefined;
}

/** A request of an older client, read. */
export interface LegacyRequest {
  readonly bytes: Uint8Array;
  /** JSON text. */
  readonly id: string;
  readonly method: string;
  readonly params: Member | undefined;
}

/** What a request goes on with beside what the client sent. */
export interface Additions {
  /** JSON text of the id; default: the client's. */
  readonly id?: string;
  /** JSON members of `params`. */
  readonly params?: string;
  /** `Mcp-Param-*` headers, lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

const encoder = new TextEncoder();
const OWN_HEADERS: ReadonlySet<string> = new Set([
  METHOD_HEADER,
  NAME_HEADER,
  PROTOCOL_VERSION_HEADER,
  SESSION_HEADER,
]);

/** Longest header that a name makes. */
const MAX_NAME_HEADER_CHARS = 8 * 1024;

/** Whether a request's name can stand in a header: of clients of this revision it does already. */
export function isNameable(request: LegacyRequest): boolean {
  const name = nameOf(request);
  return name === undefined || encodeHeaderValue(name).length <= MAX_NAME_HEADER_CHARS;
}

/** The request of this revision that asks the same. */
export function modernised(
  inbound: Inbound,
  request: LegacyRequest,
  self: Self,
  additions: Additions = {},
): Inbound {
  const { route, head } = inbound;
  const { method } = request;
  const name = nameOf(request);
  return {
    route,
    head: headFor(head, method, name, additions.headers),
    body: { kind: 'whole', bytes: bodyFor(request, self, additions) },
  };
}

/** A request that an older client never sent, in its name. @param params JSON members. */
export function onBehalf(inbound: Inbound, method: string, self: Self, id: string, params = ''): Inbound {
  const bytes = encoder.encode(`{${params}}`);
  const whole: Member = { key: 'params', start: 0, end: bytes.length };
  return modernised(inbound, { bytes, id, method, params: whole }, self);
}

function headFor(
  { headers, hop, duplicated }: Head,
  method: string,
  name: string | undefined,
  more: Readonly<Record<string, string>> = {},
): Head {
  const kept = [...headers].filter(([key]) => !OWN_HEADERS.has(key) && !key.startsWith(PARAM_HEADER_PREFIX));
  return {
    hop,
    duplicated,
    headers: new Map([
      ...kept,
      [PROTOCOL_VERSION_HEADER, CURRENT_VERSION],
      [METHOD_HEADER, method],
      ...(name === undefined ? [] : ([[NAME_HEADER, encodeHeaderValue(name)]] as const)),
      ...Object.entries(more),
    ]),
  };
}

/** What the method is named by: `''` where the client left it out, for the classifier to say so. */
function nameOf({ bytes, method, params }: LegacyRequest): string | undefined {
  const { named } = methodRow(method);
  if (named === undefined) return undefined;
  const member = memberOf((params && objectMembers(bytes, params.start)) ?? [], named);
  return (member && stringValue(bytes, member)) ?? '';
}

function bodyFor(request: LegacyRequest, self: Self, additions: Additions): Uint8Array {
  const { bytes, method, params } = request;
  const members = (params && objectMembers(bytes, params.start)) ?? [];
  const parts: Uint8Array[] = [
    encoder.encode(
      `{"jsonrpc":"2.0","id":${additions.id ?? request.id},"method":${JSON.stringify(method)},"params":{`,
    ),
  ];
  for (const member of members) if (member.key !== '_meta') parts.push(...spelled(bytes, member), COMMA);
  if (additions.params !== undefined) parts.push(encoder.encode(`${additions.params},`));
  parts.push(encoder.encode('"_meta":{'));
  const meta = memberOf(members, '_meta');
  for (const member of (meta && objectMembers(bytes, meta.start)) ?? [])
    if (!META_ENVELOPE.has(member.key)) parts.push(...spelled(bytes, member), COMMA);
  parts.push(encoder.encode(`${envelopeOf(self)}}}}`));
  return joinBytes(parts);
}

const COMMA = encoder.encode(',');

function spelled(bytes: Uint8Array, { key, start, end }: Member): readonly Uint8Array[] {
  return [encoder.encode(`${JSON.stringify(key)}:`), bytes.subarray(start, end)];
}

function envelopeOf({ capabilities, clientInfo, logLevel }: Self): string {
  return [
    `"${META_VERSION}":"${CURRENT_VERSION}"`,
    ...(clientInfo === undefined ? [] : [`"${META_CLIENT_INFO}":${clientInfo}`]),
    `"${META_CAPABILITIES}":${capabilities}`,
    ...(logLevel === undefined ? [] : [`"${META_LOG_LEVEL}":${JSON.stringify(logLevel)}`]),
  ].join(',');
}
