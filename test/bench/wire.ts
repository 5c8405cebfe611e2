/**
 * The requests of the bench as bytes, and what their answers must be. Every answer of every round is held against
 * its expectation: a fast wrong answer is no result.
 */

export const VERSION = '2026-07-28';
const PREFIX = 'io.modelcontextprotocol/';

/** Where a request that must differ each time carries its number: nine digits, so that no length changes. */
export const SERIAL = '@@@@@@@@@';

/** All requests have the same id: the answer shows it. */
const ID = 7;

/** A request before it is bytes. */
export interface Ask {
  readonly path: string;
  readonly method: string;
  /** Mirrored as `Mcp-Name`. */
  readonly name?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  /** Sent as `Authorization: Bearer …`. */
  readonly token?: string;
}

/** What an answer must be: status 200, these ends, this header. */
export interface Expectation {
  /** How the body begins. */
  readonly prefix: string;
  /** How it ends: all that does not vary from answer to answer. */
  readonly suffix: string;
  /** Most bytes between the two, where lifetimes and URIs stand. */
  readonly slack: number;
  /** A header, its name spelled as the server does, and a part of its value. */
  readonly header?: readonly [name: string, part: string];
}

/** The head and the body of a request, latin1. */
export function requestText({ path, method, name, params = {}, token }: Ask): string {
  const meta = {
    [`${PREFIX}protocolVersion`]: VERSION,
    [`${PREFIX}clientInfo`]: { name: 'headgate-bench', version: '1.0.0' },
    [`${PREFIX}clientCapabilities`]: {},
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: ID, method, params: { ...params, _meta: meta } });
  const lines = [
    `POST ${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    `MCP-Protocol-Version: ${VERSION}`,
    `Mcp-Method: ${method}`,
    ...(name === undefined ? [] : [`Mcp-Name: ${name}`]),
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

/** How every result begins. */
export const RESULT_PREFIX = `{"jsonrpc":"2.0","id":${ID},"result":{`;

/** Text of a given length that does not compress to nothing and holds no escape. */
export function filler(chars: number): string {
  const word = 'The keepers measure the tide twice a day and write it down with care. ';
  return word.repeat(Math.ceil(chars / word.length)).slice(0, chars);
}

/** The sizes that resources and constants come in: characters of text. */
export const SIZES = { '2k': 2_000, '64k': 64 * 1024, '1m': 1024 * 1024 } as const;
export type SizeName = keyof typeof SIZES;

/** What follows the URI in a read's result: the same through whatever it came. */
export function readSuffix(chars: number): string {
  return `","mimeType":"text/plain","text":"${filler(chars)}"}]}}`;
}

/** A whole `resources/read` answer of an upstream. */
export function readAnswer(id: string, uri: string, chars: number, scope: 'public' | 'private'): string {
  return `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","ttlMs":86400000,"cacheScope":"${scope}","contents":[{"uri":"${uri}${readSuffix(chars)}`;
}

/** A whole `tools/call` answer of an upstream. */
export function callAnswer(id: string, chars: number): string {
  return `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","content":[{"type":"text","text":"${filler(chars)}"}]}}`;
}

/** A bearer token of about 1 KB as an identity provider would make it, its `exp` far ahead. *Never* a real one. */
export function bearer(user: string): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = { iss: 'https://login.example', sub: user, exp: 4_102_444_800, scope: filler(300) };
  return `${part({ alg: 'RS256', typ: 'JWT' })}.${part(claims)}.${Buffer.from(filler(342)).toString('base64url')}`;
}

/** What is wrong with an answer; undefined when nothing is. `body` must be whole. */
export function problemOf(head: string, body: Buffer, expected: Expectation): string | undefined {
  if (!head.startsWith('HTTP/1.1 200')) return `status line ${head.slice(0, head.indexOf('\r'))}`;
  const { prefix, suffix, slack, header } = expected;
  if (header !== undefined && !headerOf(head, header[0])?.includes(header[1]))
    return `the header ${header[0]} does not say ${header[1]}: ${headerOf(head, header[0])}`;
  const spare = body.length - prefix.length - suffix.length;
  if (spare < 0 || spare > slack) return `${body.length} bytes: ${body.toString('latin1', 0, 300)}`;
  if (body.toString('latin1', 0, prefix.length) !== prefix)
    return `begins ${body.toString('latin1', 0, 100)}`;
  if (!body.subarray(body.length - suffix.length).equals(bytesOf(suffix))) return 'ends otherwise';
  return undefined;
}

function headerOf(head: string, name: string): string | undefined {
  const at = head.indexOf(`\r\n${name}: `);
  if (at < 0) return undefined;
  const from = at + name.length + 4;
  const end = head.indexOf('\r\n', from);
  return head.slice(from, end < 0 ? undefined : end);
}

const bytes = new Map<string, Buffer>();

function bytesOf(text: string): Buffer {
  const known = bytes.get(text);
  if (known !== undefined) return known;
  const made = Buffer.from(text, 'latin1');
  bytes.set(text, made);
  return made;
}
