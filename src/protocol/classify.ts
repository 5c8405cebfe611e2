/**
 * What is this request? One pure function from headers and body to a value; it *never* throws and never sees a
 * socket. The checks stand in the order of R5: JSON → single request → headers present → `_meta` complete →
 * headers = body → version known → method known → params.
 * *Spec:* basic/transports/streamable-http; basic/versioning.
 */
import {
  HEADER_MISMATCH,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  PARSE_ERROR,
  type Refusal,
  refusal,
  UNSUPPORTED_VERSION,
} from './errors.ts';
import {
  decodeHeaderValue,
  type Head,
  METHOD_HEADER,
  NAME_HEADER,
  PARAM_HEADER_PREFIX,
  PROTOCOL_VERSION_HEADER,
} from './headers.ts';
import {
  kindAt,
  type Member,
  memberOf,
  objectMembers,
  skipSpace,
  stringValue,
  textOf,
  wholeObject,
  wholeValue,
} from './json.ts';
import { LEGACY_VERSIONS } from './legacy.ts';
import { META_CAPABILITIES, META_VERSION, META_WITHOUT_EFFECT, SUPPORTED_VERSIONS } from './meta.ts';
import { isRemoved, type MethodRow, methodRow } from './methods.ts';
import { hasParam, type Params, stringParam } from './params.ts';

/** Longest id accepted, as JSON text: an id is echoed, so its size is the sender's to spend and ours to bound. */
export const MAX_ID_LENGTH = 1024;

/**
 * Most members of a request, of its `params` and of its `_meta`, each. The protocol knows a dozen; each more costs
 * a look-up for what comes twice, and 400,000 of them, which a body has room for, a second of everybody's time.
 */
export const MAX_MEMBERS = 1_000;

/** How much of a streamed body is collected and scanned before its bytes flow (design, section 3.5). */
export const SCAN_BYTES = 64 * 1024;

/** A request body as the edge got it. */
export type Body =
  | { readonly kind: 'whole'; readonly bytes: Uint8Array }
  /** Larger than {@link SCAN_BYTES}, of a streamed method: the beginning, and the rest as it comes. */
  | { readonly kind: 'begun'; readonly bytes: Uint8Array; readonly rest: AsyncIterable<Uint8Array> };

export interface McpRequest {
  readonly row: MethodRow;
  readonly method: string;
  /** Decoded from `Mcp-Name`, for methods that have one. */
  readonly name: string | undefined;
  readonly version: string;
  /** The id's JSON text, exactly as received; undefined while a begun body has not shown it. */
  readonly id: string | undefined;
  /** Checked params; undefined for a begun body. */
  readonly params: Params | undefined;
  readonly head: Head;
  readonly body: Body;
  /** Of a request that came before: the cache keys made for it, by the upstream's identity. See `repeats.ts`. */
  readonly keys: Map<string, string> | undefined;
}

export type Message =
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly id: string | undefined }
  | { readonly kind: 'notification'; readonly method: string }
  | { readonly kind: 'request'; readonly request: McpRequest };

/** The mirrored headers, decoded. */
interface Mirrored {
  readonly method: string | undefined;
  readonly version: string | undefined;
  readonly name:
    | { readonly kind: 'absent' }
    | { readonly kind: 'malformed' }
    | { readonly kind: 'name'; readonly text: string };
}

/** The top level of a JSON-RPC request that was read. */
interface Envelope {
  readonly bytes: Uint8Array;
  readonly id: string;
  readonly method: string;
  readonly params: Member | undefined;
}

/** Keys that must be written exactly so, by what they fold to; of the others usual ones need no folding. */
interface Watched {
  readonly byFolded: ReadonlyMap<string, string>;
  readonly fine: ReadonlySet<string>;
}

function watching(names: readonly string[], usual: readonly string[] = []): Watched {
  return { byFolded: new Map(names.map((name) => [fold(name), name])), fine: new Set([...names, ...usual]) };
}

/** Of the capital I with a dot (U+0130) some readers make an i, others an i and a dot. */
function fold(key: string): string {
  return key.toUpperCase().toLowerCase().replaceAll('i\u0307', 'i');
}

const WATCHED_TOP = watching(['jsonrpc', 'id', 'method', 'params']);
const WATCHED_PARAMS = watching(
  ['name', 'uri', 'cursor', 'taskId', 'ref', '_meta', 'inputResponses', 'requestState', 'notifications'],
  ['arguments'],
);
const WATCHED_REF = watching(['type', 'uri', 'name']);
const WATCHED_META = watching([META_VERSION, META_CAPABILITIES], [...META_WITHOUT_EFFECT]);

const NOTIFICATION = 'notifications/';

/** How the edge should take the body: by the headers alone, before a byte of it was seen. */
export function bodyPlan(head: Head): 'read' | 'streamed' {
  const method = head.headers.get(METHOD_HEADER);
  if (method === undefined || head.duplicated !== undefined || isRemoved(method)) return 'read';
  // What an older client mirrors is not believed: its body is read.
  const version = head.headers.get(PROTOCOL_VERSION_HEADER);
  if (version !== undefined && LEGACY_VERSIONS.includes(version)) return 'read';
  // A notification is answered here: begun, it could only flow to an upstream (R11).
  if (method.startsWith(NOTIFICATION)) return 'read';
  return methodRow(method).body;
}

/** Classifies a request whose transport was found in order. */
export function classify(head: Head, body: Body): Message {
  const mirrored = readMirrored(head);
  if (body.kind === 'begun') return classifyBegun(head, mirrored, body);
  const members = wholeObject(body.bytes, 'params', '_meta');
  if (members === undefined && wholeValue(body.bytes) === undefined) {
    return refused(
      refusal(PARSE_ERROR, 'The body is not valid JSON in UTF-8', { reason: 'parse' }),
      undefined,
    );
  }
  const envelope = readEnvelope(body.bytes, members);
  if (envelope.kind === 'refused') return envelope;
  if (envelope.kind === 'notification') return classifyNotification(mirrored, envelope.method, head);
  return classifyRequest(head, mirrored, body, envelope.envelope);
}

/** The id of a body that is refused before it is classified; undefined when none can be read. */
export function readableId(bytes: Uint8Array): string | undefined {
  const start = skipSpace(bytes, 0);
  const members = objectMembers(bytes, start);
  const ids = members?.filter((member) => member.key === 'id');
  return ids?.length === 1 ? idText(bytes, ids[0] as Member) : undefined;
}

function refused(problem: Refusal, id: string | undefined): Message & { kind: 'refused' } {
  return { kind: 'refused', refusal: problem, id };
}

function mismatch(message: string, id: string | undefined): Message {
  return refused(refusal(HEADER_MISMATCH, message, { reason: 'header_mismatch' }), id);
}

function readMirrored(head: Head): Mirrored {
  const name = head.headers.get(NAME_HEADER);
  const text = name === undefined ? undefined : decodeHeaderValue(name);
  return {
    method: head.headers.get(METHOD_HEADER),
    version: head.headers.get(PROTOCOL_VERSION_HEADER),
    name:
      name === undefined
        ? { kind: 'absent' }
        : text === undefined
          ? { kind: 'malformed' }
          : { kind: 'name', text },
  };
}

/** A key that comes twice, or only differs from a watched one by case: two parsers could read two values (R6). */
function ambiguous(members: readonly Member[], watched: Watched): string | undefined {
  const twice = repeated(members);
  for (const member of members) {
    const { key } = member;
    if (member === twice) return `"${key}" comes twice`;
    if (watched.fine.has(key)) continue;
    const name = watched.byFolded.get(fold(key));
    if (name !== undefined) return `"${key}" must be written "${name}"`;
  }
  return undefined;
}

/** Up to here comparing each with each is cheaper than a set. */
const FEW_MEMBERS = 8;

/** The first member whose key came before. */
export function repeated(members: readonly Member[]): Member | undefined {
  if (members.length > FEW_MEMBERS) {
    const seen = new Set<string>();
    return members.find(({ key }) => seen.size === seen.add(key).size);
  }
  for (let i = 1; i < members.length; i++) {
    const member = members[i] as Member;
    for (let j = 0; j < i; j++) if ((members[j] as Member).key === member.key) return member;
  }
  return undefined;
}

/** JSON text of an id; undefined for what is none, or too long. */
export function idText(bytes: Uint8Array, member: Member): string | undefined {
  if (member.end - member.start > MAX_ID_LENGTH) return undefined;
  const text = textOf(bytes, member);
  return text.startsWith('"') || /^-?\d+$/.test(text) ? text : undefined;
}

type EnvelopeOutcome =
  | (Message & { kind: 'refused' })
  | { readonly kind: 'notification'; readonly method: string }
  | { readonly kind: 'envelope'; readonly envelope: Envelope };

function readEnvelope(bytes: Uint8Array, members: readonly Member[] | undefined): EnvelopeOutcome {
  const invalid = (message: string, id?: string): EnvelopeOutcome =>
    refused(refusal(INVALID_REQUEST, message, { reason: 'parse' }), id);
  if (members === undefined)
    return invalid('The body must be one JSON-RPC request object; batches are not accepted');
  const [idMember, secondId] = members.filter(({ key }) => key === 'id');
  // Of two ids neither is the request's: a client could read the other.
  const id = idMember && secondId === undefined ? idText(bytes, idMember) : undefined;
  if (members.length > MAX_MEMBERS) return invalid(`A request has at most ${MAX_MEMBERS} members`, id);
  const unclear = ambiguous(members, WATCHED_TOP);
  if (unclear !== undefined) return invalid(`Ambiguous request: ${unclear}`, id);
  const version = memberOf(members, 'jsonrpc');
  if (version === undefined || stringValue(bytes, version) !== '2.0')
    return invalid('"jsonrpc" must be "2.0"', id);
  if (idMember !== undefined && id === undefined) return invalid('"id" must be a string or an integer');
  const methodMember = memberOf(members, 'method');
  const method = methodMember && stringValue(bytes, methodMember);
  if (method === undefined) {
    return invalid(
      methodMember ? '"method" must be a string' : 'A request needs a "method"; responses are not accepted',
      id,
    );
  }
  if (id === undefined) {
    return method.startsWith(NOTIFICATION)
      ? { kind: 'notification', method }
      : invalid(`"${clip(method)}" needs an "id"`);
  }
  return { kind: 'envelope', envelope: { bytes, id, method, params: memberOf(members, 'params') } };
}

function classifyNotification(mirrored: Mirrored, method: string, head: Head): Message {
  if (head.duplicated !== undefined)
    return mismatch(`The header ${head.duplicated} was sent twice`, undefined);
  if (mirrored.method !== undefined && mirrored.method !== method) {
    return mismatch('The header Mcp-Method differs from the method in the body', undefined);
  }
  return { kind: 'notification', method };
}

function classifyRequest(head: Head, mirrored: Mirrored, body: Body, envelope: Envelope): Message {
  const { id, method } = envelope;
  const read = readParams(envelope);
  if (method === 'initialize' && !(read.kind === 'params' && memberOf(read.params.meta, META_VERSION))) {
    return unsupported(requestedByInitialize(envelope), id);
  }
  const row = methodRow(method);
  const missing = missingHeader(head, mirrored, row);
  if (missing !== undefined) return mismatch(missing, id);
  if (read.kind === 'unclear') return invalidMeta(read.reason, id);
  const { params } = read;
  const incomplete = incompleteMeta(params);
  if (incomplete !== undefined) return invalidMeta(incomplete, id);
  const different = differs(mirrored, row, envelope, params);
  if (different !== undefined) return mismatch(different, id);
  const version = mirrored.version as string;
  if (!SUPPORTED_VERSIONS.includes(version)) return unsupported(version, id);
  if (isRemoved(method)) return refused(unknownMethod(method), id);
  const problem = badParams(row, params);
  if (problem !== undefined) return refused(problem, id);
  const name = nameOf(mirrored, row);
  return {
    kind: 'request',
    request: { row, method, name, version, id, params, head, body, keys: undefined },
  };
}

/** A body that flows: the headers decide alone, and the upstream compares. */
function classifyBegun(head: Head, mirrored: Mirrored, body: Body & { kind: 'begun' }): Message {
  const method = mirrored.method ?? '';
  const row = methodRow(method);
  const missing = missingHeader(head, mirrored, row);
  if (missing !== undefined) return mismatch(missing, undefined);
  const version = mirrored.version as string;
  if (!SUPPORTED_VERSIONS.includes(version)) return unsupported(version, undefined);
  const name = nameOf(mirrored, row);
  return {
    kind: 'request',
    request: { row, method, name, version, id: undefined, params: undefined, head, body, keys: undefined },
  };
}

/** The name that the request goes by; undefined for methods that have none, whatever `Mcp-Name` says. */
function nameOf({ name }: Mirrored, row: MethodRow): string | undefined {
  return row.named !== undefined && name.kind === 'name' ? name.text : undefined;
}

/** What is wrong with the mirrored headers by themselves, in words for the client. */
function missingHeader(head: Head, mirrored: Mirrored, row: MethodRow): string | undefined {
  if (head.duplicated !== undefined) return `The header ${head.duplicated} was sent twice`;
  if (mirrored.method === undefined || mirrored.method === '') return 'The header Mcp-Method is missing';
  if (mirrored.version === undefined || mirrored.version === '')
    return 'The header MCP-Protocol-Version is missing';
  if (row.named === undefined) return undefined;
  if (mirrored.name.kind === 'absent')
    return `The header Mcp-Name is missing; it must equal params.${row.named}`;
  if (mirrored.name.kind === 'malformed') {
    return 'The header Mcp-Name is neither visible ASCII nor =?base64?…?= of UTF-8 bytes';
  }
  return undefined;
}

type ParamsOutcome =
  | { readonly kind: 'params'; readonly params: Params }
  | { readonly kind: 'unclear'; readonly reason: string };

function readParams({ bytes, params }: Envelope): ParamsOutcome {
  if (params === undefined) return { kind: 'params', params: { bytes, members: [], meta: [] } };
  const { members } = params;
  if (members === undefined) return { kind: 'unclear', reason: '"params" must be an object' };
  if (members.length > MAX_MEMBERS) return { kind: 'unclear', reason: crowded('params') };
  const unclear = ambiguous(members, WATCHED_PARAMS);
  if (unclear !== undefined) return { kind: 'unclear', reason: `Ambiguous params: ${unclear}` };
  const metaMember = memberOf(members, '_meta');
  const rest = members.filter((member) => member.key !== '_meta');
  if (metaMember === undefined) return { kind: 'params', params: { bytes, members: rest, meta: [] } };
  const meta = metaMember.members;
  if (meta === undefined) return { kind: 'unclear', reason: '"_meta" must be an object' };
  if (meta.length > MAX_MEMBERS) return { kind: 'unclear', reason: crowded('_meta') };
  const unclearMeta = ambiguous(meta, WATCHED_META);
  if (unclearMeta !== undefined) return { kind: 'unclear', reason: `Ambiguous _meta: ${unclearMeta}` };
  return { kind: 'params', params: { bytes, members: rest, meta } };
}

function crowded(name: 'params' | '_meta' | 'ref'): string {
  return `"${name}" has at most ${MAX_MEMBERS} members`;
}

function incompleteMeta(params: Params): string | undefined {
  const version = memberOf(params.meta, META_VERSION);
  if (version === undefined) return `_meta lacks "${META_VERSION}"`;
  if (stringValue(params.bytes, version) === undefined) return `_meta["${META_VERSION}"] must be a string`;
  const capabilities = memberOf(params.meta, META_CAPABILITIES);
  if (capabilities === undefined) return `_meta lacks "${META_CAPABILITIES}"`;
  if (kindAt(params.bytes, capabilities.start) !== 'object')
    return `_meta["${META_CAPABILITIES}"] must be an object`;
  return undefined;
}

/** The first mirrored header that says something else than the body. */
function differs(mirrored: Mirrored, row: MethodRow, envelope: Envelope, params: Params): string | undefined {
  if (mirrored.method !== envelope.method) return 'The header Mcp-Method differs from the method in the body';
  const version = memberOf(params.meta, META_VERSION);
  if (version === undefined || stringValue(params.bytes, version) !== mirrored.version) {
    return 'The header MCP-Protocol-Version differs from the version in _meta';
  }
  const name = nameOf(mirrored, row);
  if (row.named === undefined || name === undefined) return undefined;
  return stringParam(params, row.named) === name
    ? undefined
    : `The header Mcp-Name differs from params.${row.named}`;
}

function requestedByInitialize({ bytes, params }: Envelope): string | undefined {
  const members = params && objectMembers(bytes, params.start);
  const requested = members && memberOf(members, 'protocolVersion');
  return requested && stringValue(bytes, requested);
}

function unsupported(requested: string | undefined, id: string | undefined): Message {
  const data = {
    supported: SUPPORTED_VERSIONS,
    ...(requested !== undefined && { requested: clip(requested) }),
  };
  return refused(
    refusal(UNSUPPORTED_VERSION, 'Unsupported protocol version', { data, reason: 'version' }),
    id,
  );
}

function invalidMeta(message: string, id: string): Message {
  return refused(refusal(INVALID_PARAMS, message, { status: 400, reason: 'parse' }), id);
}

/** -32601 for a method that nobody here serves. */
export function unknownMethod(method: string): Refusal {
  return refusal(METHOD_NOT_FOUND, `Unknown method: ${clip(method)}`, { reason: 'no_route' });
}

function badParams(row: MethodRow, params: Params): Refusal | undefined {
  if (row.list !== undefined && hasParam(params, 'cursor') && stringParam(params, 'cursor') === undefined) {
    return refusal(INVALID_PARAMS, '"cursor" must be a string');
  }
  if (row.route === 'uri') {
    const uri = stringParam(params, 'uri') ?? '';
    return isUri(uri)
      ? undefined
      : refusal(INVALID_PARAMS, 'Not a URI: it needs a scheme and no control characters', { data: { uri } });
  }
  const unclear = row.route === 'reference' ? unclearRef(params) : undefined;
  return unclear === undefined ? undefined : refusal(INVALID_PARAMS, unclear);
}

/** Why a completion's `ref`, which decides where it goes, could be read in two ways (R6). */
function unclearRef({ bytes, members }: Params): string | undefined {
  const ref = memberOf(members, 'ref');
  const parts = ref && objectMembers(bytes, ref.start);
  if (parts === undefined) return undefined;
  if (parts.length > MAX_MEMBERS) return crowded('ref');
  const unclear = ambiguous(parts, WATCHED_REF);
  return unclear && `Ambiguous ref: ${unclear}`;
}

/** A scheme, and nothing that could end a line: everything else about a URI is its owner's business (R10). */
export function isUri(text: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9+.-]*:/.test(text)) return false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || code === 0x7f) return false;
  }
  return true;
}

/** Decoded `Mcp-Param-*` headers that a rule may look at; undefined value: malformed. */
export function paramHeader(
  head: Head,
  name: string,
): { readonly kind: 'absent' | 'malformed' } | { readonly kind: 'value'; readonly text: string } {
  const raw = name.startsWith(PARAM_HEADER_PREFIX) ? head.headers.get(name) : undefined;
  if (raw === undefined) return { kind: 'absent' };
  const text = decodeHeaderValue(raw);
  return text === undefined ? { kind: 'malformed' } : { kind: 'value', text };
}

/** Client text in an error message is cut: messages are for people. */
function clip(text: string): string {
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}
