/**
 * `Mcp-Param-*` headers for a tool whose server wants some of its arguments mirrored: older clients know nothing of it.
 *
 * Asked for only where a server has refused a call for want of them. *Bounded by* {@link MAX_PAGES}.
 * *Spec:* basic/transports/streamable-http, "Custom Headers from Tool Parameters".
 */
import { encodeHeaderValue, PARAM_HEADER_PREFIX } from '../protocol/headers.ts';
import { textOf } from '../protocol/json.ts';
import type { ConversationDeps } from './conversation.ts';
import { onBehalf } from './request.ts';

/** Pages of the list in which the tool is looked for. */
const MAX_PAGES = 64;

interface Tool {
  readonly name: string;
  readonly inputSchema?: Schema;
}
interface Schema {
  readonly properties?: Readonly<Record<string, Schema | undefined>>;
  readonly 'x-mcp-header'?: unknown;
}
interface Page {
  readonly result?: { readonly tools?: readonly Tool[]; readonly nextCursor?: string };
}

type Asking = Pick<ConversationDeps, 'handle' | 'inbound' | 'request' | 'self' | 'exchange' | 'respondent'>;

/** The headers that belong to a call; undefined where the tool is not listed, or wants none. */
export async function paramHeadersOf(asking: Asking): Promise<Readonly<Record<string, string>> | undefined> {
  const { request } = asking;
  const params = JSON.parse(request.params === undefined ? '{}' : textOf(request.bytes, request.params)) as {
    readonly name?: string;
    readonly arguments?: unknown;
  };
  const tool = await toolNamed(asking, params.name);
  const headers = tool && Object.fromEntries(mirrored(tool.inputSchema, params.arguments));
  return headers === undefined || Object.keys(headers).length === 0 ? undefined : headers;
}

async function toolNamed(
  { handle, inbound, self, exchange, respondent }: Asking,
  name: string | undefined,
): Promise<Tool | undefined> {
  const { signal } = exchange;
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = cursor === undefined ? '' : `"cursor":${JSON.stringify(cursor)}`;
    const listing = onBehalf(inbound, 'tools/list', self, respondent.nextId(), params);
    const reply = await handle(listing, { signal, facts: {}, notify: () => {} });
    if (reply.kind !== 'answer') return undefined;
    const { result } = JSON.parse(reply.head + Buffer.concat(reply.tail).toString()) as Page;
    const tool = result?.tools?.find((one) => one.name === name);
    if (tool !== undefined || result?.nextCursor === undefined) return tool;
    cursor = result.nextCursor;
  }
  return undefined;
}

function* mirrored(schema: Schema | undefined, value: unknown): Generator<[string, string]> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(schema?.properties ?? {})) {
    if (!Object.hasOwn(value, key)) continue;
    const argument = (value as Record<string, unknown>)[key];
    const header = inner?.['x-mcp-header'];
    if (typeof header === 'string' && isPrimitive(argument))
      yield [PARAM_HEADER_PREFIX + header.toLowerCase(), encodeHeaderValue(String(argument))];
    else yield* mirrored(inner, argument);
  }
}

function isPrimitive(value: unknown): value is string | number | boolean {
  return ['string', 'number', 'boolean'].includes(typeof value);
}
