/** The works that load measures, as data: who does the same work, with which requests, and what must come back. */
import type { ServerName } from './rig.ts';
import {
  bearer,
  type Expectation,
  filler,
  RESULT_PREFIX,
  readSuffix,
  requestText,
  SERIAL,
  SIZES,
  type SizeName,
} from './wire.ts';

/** Somebody who does a work. */
export interface Contender {
  /** As the table calls it. */
  readonly name: string;
  readonly server: ServerName;
  readonly requests: readonly string[];
  readonly expected: Expectation;
}

export interface LoadWork {
  /** Chosen by `--only`. */
  readonly key: string;
  readonly title: string;
  readonly connections: number;
  /** Headgate first; the others are what it is held against. */
  readonly contenders: readonly Contender[];
}

const HIT = ['cache-status', 'headgate; hit;'] as const;

/** A `resources/read` of the constant resources. */
function read(
  name: string,
  server: ServerName,
  size: SizeName,
  path: string,
  rest: { readonly header?: Expectation['header']; readonly tokens?: readonly string[] } = {},
): Contender {
  const uri = `bench://${size}`;
  const ask = { path, method: 'resources/read', name: uri, params: { uri } };
  return {
    name,
    server,
    requests: rest.tokens?.map((token) => requestText({ ...ask, token })) ?? [requestText(ask)],
    expected: {
      prefix: `${RESULT_PREFIX}"resultType":"complete","ttlMs":`,
      suffix: readSuffix(SIZES[size]),
      slack: 100,
      ...(rest.header !== undefined && { header: rest.header }),
    },
  };
}

function call(name: string, server: ServerName, tool: 'text1k' | 'text100k', path = '/bench'): Contender {
  const chars = tool === 'text1k' ? 1024 : 100 * 1024;
  return {
    name,
    server,
    requests: [
      requestText({
        path,
        method: 'tools/call',
        name: tool,
        params: { name: tool, arguments: { city: 'Oslo' } },
      }),
    ],
    expected: {
      prefix: RESULT_PREFIX,
      suffix: `"content":[{"type":"text","text":"${filler(chars)}"}]}}`,
      slack: 40,
    },
  };
}

function miss(name: string, server: ServerName, path: string, header?: Expectation['header']): Contender {
  const uri = `bench://2k/${SERIAL}`;
  return {
    name,
    server,
    requests: [requestText({ path, method: 'resources/read', name: uri, params: { uri } })],
    expected: {
      prefix: `${RESULT_PREFIX}"resultType":"complete","ttlMs":`,
      suffix: readSuffix(SIZES['2k']),
      slack: 100,
      ...(header !== undefined && { header }),
    },
  };
}

/** The SDK writes its members in an order of its own, and the hints of a server that gives none. */
function sdkRead(): Contender {
  const contender = read('SDK server', 'sdk', '2k', '/mcp');
  const prefix = `{"result":{"contents":[{"uri":"bench://2k","mimeType":"text/plain","text":"${filler(SIZES['2k'])}"}]`;
  return { ...contender, expected: { prefix, suffix: '"jsonrpc":"2.0","id":7}', slack: 200 } };
}

const TOKENS = Array.from({ length: 16 }, (_, i) => bearer(`user-${i}`));

export const LOAD_WORKS: readonly LoadWork[] = [
  {
    key: 'hit-2k',
    title: 'public 2 KB hit',
    connections: 32,
    contenders: [
      read('headgate', 'headgate', '2k', '/mcp', { header: HIT }),
      read('fastify constant', 'fastify', '2k', '/2k'),
      read('nginx proxy_cache', 'nginx', '2k', '/cached/', { header: ['X-Cache', 'HIT'] }),
      sdkRead(),
    ],
  },
  {
    key: 'hit-private',
    title: 'private 2 KB hit',
    connections: 32,
    contenders: [
      read('headgate', 'headgate', '2k', '/private', { header: HIT, tokens: TOKENS }),
      // The same requests: a header of 1 KB costs whoever reads it.
      read('fastify constant', 'fastify', '2k', '/2k', { tokens: TOKENS }),
    ],
  },
  {
    key: 'hit-64k',
    title: '64 KB hit',
    connections: 16,
    contenders: [
      read('headgate', 'headgate', '64k', '/mcp', { header: HIT }),
      read('constant Buffer', 'fastify', '64k', '/64k'),
    ],
  },
  {
    key: 'hit-1m',
    title: '1 MB hit',
    connections: 8,
    contenders: [
      read('headgate', 'headgate', '1m', '/mcp', { header: HIT }),
      read('constant Buffer', 'fastify', '1m', '/1m'),
    ],
  },
  {
    key: 'call-1k',
    title: 'streamed 1 KB call',
    connections: 32,
    contenders: [
      call('headgate', 'headgate', 'text1k', '/mcp'),
      call('nginx proxy_pass', 'nginx', 'text1k'),
      call('reply-from', 'reply-from', 'text1k'),
      call('node:http and undici', 'bare', 'text1k'),
      call('HAProxy', 'haproxy', 'text1k'),
    ],
  },
  {
    key: 'call-100k',
    title: 'streamed 100 KB call',
    connections: 16,
    contenders: [
      call('headgate', 'headgate', 'text100k', '/mcp'),
      call('nginx proxy_pass', 'nginx', 'text100k'),
      call('node:http and undici', 'bare', 'text100k'),
      call('HAProxy', 'haproxy', 'text100k'),
    ],
  },
  {
    key: 'miss',
    title: '2 KB miss',
    connections: 32,
    contenders: [
      miss('headgate', 'headgate', '/mcp', ['cache-status', 'headgate; fwd=uri-miss; stored']),
      miss('nginx proxy_pass', 'nginx', '/bench'),
      miss('reply-from', 'reply-from', '/bench'),
    ],
  },
];

/** The first page of the merged list: 1,000 of all items, warm. */
export const FIRST_PAGE: LoadWork = {
  key: 'list',
  title: 'merged list, first page (1,000 items)',
  connections: 8,
  contenders: [
    {
      name: 'headgate',
      server: 'headgate',
      requests: [requestText({ path: '/many', method: 'resources/list' })],
      expected: {
        prefix: `${RESULT_PREFIX}"resultType":"complete","ttlMs":`,
        suffix: '}}',
        slack: 2_000_000,
      },
    },
  ],
};
