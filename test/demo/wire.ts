/**
 * What really crossed the wire between the official client and the gateway, and the `curl` line that repeats it.
 */
import type { FetchLike } from '@modelcontextprotocol/client';

/** One request and the head of its answer. */
export interface Exchange {
  readonly url: string;
  readonly method: string;
  readonly requestHeaders: Headers;
  readonly body: string;
  readonly status: number;
  readonly responseHeaders: Headers;
}

/** A `fetch` that remembers. */
export interface Recorder {
  readonly fetch: FetchLike;
  /** The exchanges since the last call, oldest first. */
  take(): Exchange[];
}

/** Wraps `fetch` for a `StreamableHTTPClientTransport`. */
export function record(): Recorder {
  let exchanges: Exchange[] = [];
  return {
    async fetch(url, init) {
      const response = await fetch(url, init);
      const requestHeaders = new Headers(init?.headers);
      exchanges.push({
        url: String(url),
        method: requestHeaders.get('mcp-method') ?? '',
        requestHeaders,
        body: typeof init?.body === 'string' ? init.body : '',
        status: response.status,
        responseHeaders: response.headers,
      });
      return response;
    },
    take() {
      const taken = exchanges;
      exchanges = [];
      return taken;
    },
  };
}

/** Names as the specification writes them; a request sends them in any case. */
const CURL_HEADERS = [
  'Content-Type',
  'Accept',
  'MCP-Protocol-Version',
  'Mcp-Method',
  'Mcp-Name',
  'Authorization',
] as const;

/** One line for a POSIX shell that sends the same request again and shows the headers of the answer. */
export function curlLine({ url, requestHeaders, body, responseHeaders }: Exchange): string {
  const headers = CURL_HEADERS.flatMap((name) => {
    const value = requestHeaders.get(name);
    return value === null ? [] : [`-H ${quote(`${name}: ${value}`)}`];
  });
  const streamed = responseHeaders.get('content-type')?.includes('text/event-stream') === true;
  return ['curl', streamed ? '-siN' : '-si', url, ...headers, '-d', quote(withoutClientInfo(body))].join(' ');
}

/** `clientInfo` is optional and no part of a cache key: leaving it out keeps the line short and the answer the same. */
function withoutClientInfo(body: string): string {
  return JSON.stringify(JSON.parse(body), (key, value: unknown) =>
    key === 'io.modelcontextprotocol/clientInfo' ? undefined : value,
  );
}

const quote = (value: string): string => `'${value.replaceAll("'", String.raw`'\''`)}'`;
