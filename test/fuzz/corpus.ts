/** What fuzzing starts from: requests that the official client sent, answers like those of real servers. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../demo/gateway.ts';
import { readTree, type Tree } from './json-tree.ts';

const golden = join(projectRoot(import.meta.dirname), 'test', 'golden');

export interface SeedRequest {
  /** Node's raw list. */
  readonly headers: readonly string[];
  readonly body: string;
}

/** Every request of the captures. */
export const REQUESTS: readonly SeedRequest[] = captures().flatMap(requestsOf);

/** Bodies that are JSON, as trees. */
export const BODIES: readonly Tree[] = REQUESTS.flatMap(({ body }) => readTree(body) ?? []);

function captures(): readonly string[] {
  const folder = join(golden, 'official-client');
  return readdirSync(folder)
    .filter((name) => name.endsWith('.http'))
    .sort()
    .map((name) => readFileSync(join(folder, name), 'utf8'));
}

function requestsOf(capture: string): SeedRequest[] {
  return capture.split(/^(?=POST \S+ HTTP\/1\.1\r?$)/m).flatMap((text) => {
    const [head = '', ...rest] = text.split(/\r?\n\r?\n/);
    if (!head.startsWith('POST ')) return [];
    const headers = head
      .split(/\r?\n/)
      .slice(1)
      .flatMap((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]);
    return [{ headers, body: rest.join('\n\n').trim() }];
  });
}

/** Configuration files, good and bad. */
export const CONFIGS: readonly string[] = readdirSync(join(golden, 'config'))
  .filter((name) => name.endsWith('.yaml'))
  .sort()
  .map((name) => readFileSync(join(golden, 'config', name), 'utf8'));

const hints = { resultType: 'complete', ttlMs: 60_000, cacheScope: 'public' };
const result = (members: Record<string, unknown>): unknown => ({
  jsonrpc: '2.0',
  id: 1,
  result: { ...hints, ...members },
});

/** Items of each of the four lists, with every member the schema knows. */
export const ITEMS = {
  resources: {
    uri: 'file:///manual/a%20b.md',
    name: 'manual',
    title: 'The manual',
    description: 'How it works',
    mimeType: 'text/markdown',
    size: 12345,
    annotations: { audience: ['user', 'assistant'], priority: 0.5, lastModified: '2026-01-12T15:00:58Z' },
    icons: [{ src: 'https://x.example/i.png', mimeType: 'image/png', sizes: ['48x48'], theme: 'light' }],
    _meta: { 'acme/kept': 1 },
    'acme/unknown': true,
  },
  resourceTemplates: {
    uriTemplate: 'file:///{dir}/{+path}{?q,lang}',
    name: 'files',
    title: 'Files',
    description: 'All of them',
    mimeType: 'text/plain',
    annotations: { audience: ['user'], priority: 1 },
    icons: [{ src: 'data:image/png;base64,AA==' }],
    _meta: {},
  },
  prompts: {
    name: 'summarise',
    title: 'Summarise',
    description: 'In short',
    arguments: [{ name: 'topic', title: 'Topic', description: 'About what', required: true }],
    icons: [{ src: 'https://x.example/i.png', sizes: ['any'], theme: 'dark' }],
    _meta: { a: 1 },
  },
  tools: {
    name: 'echo',
    title: 'Echo',
    description: 'Says it again',
    inputSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, n: { type: 'integer' } },
      required: ['region'],
    },
    outputSchema: { type: 'object', properties: { said: { type: 'string' } } },
    annotations: {
      title: 'Echo',
      readOnlyHint: true,
      destructiveHint: false,
      idempotentHint: true,
      openWorldHint: false,
    },
    icons: [],
    _meta: {},
  },
} as const;

/** Answers of upstreams. */
export const ANSWERS: readonly Tree[] = [
  result({ contents: [{ uri: 'file:///a', mimeType: 'text/plain', text: 'grüße \ud83c\udf0d' }] }),
  result({ contents: [], _meta: { traceparent: '00-0-0-00', progressToken: 5, 'acme/kept': 1.5 } }),
  result({ resources: [ITEMS.resources], nextCursor: 'cDoxMA' }),
  result({ resourceTemplates: [ITEMS.resourceTemplates] }),
  result({ prompts: [ITEMS.prompts], nextCursor: '' }),
  result({ tools: [ITEMS.tools], nextCursor: null }),
  result({
    supportedVersions: ['2026-07-28'],
    capabilities: { resources: { subscribe: true }, tools: {} },
    instructions: 'Be kind',
    _meta: { 'io.modelcontextprotocol/subscriptionId': 7 },
  }),
  {
    jsonrpc: '2.0',
    id: 1,
    error: { code: -32602, message: 'Resource not found', data: { uri: 'file:///a' } },
  },
  { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'Parse error' } },
  {
    jsonrpc: '2.0',
    id: 1,
    result: { resultType: 'input_required', inputRequests: {}, requestState: 'v1.x' },
  },
  { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 0, progress: 1 } },
].map((value) => readTree(JSON.stringify(value)) as Tree);
