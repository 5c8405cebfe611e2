/**
 * The server that the official conformance suite expects to talk to, on the official SDK.
 *
 * The names and texts below are the suite's (`@modelcontextprotocol/conformance`): a gateway that changes a name or drops
 * a field fails a check that this server passes when asked directly.
 */
import {
  type ContentBlock,
  fromJsonSchema,
  type GetPromptResult,
  type InputRequiredResult,
  inputRequired,
  type JsonSchemaType,
  McpServer,
  ResourceNotFoundError,
  type ServerContext,
  type ServerNotifier,
} from '@modelcontextprotocol/server';
import {
  type DemoServer,
  invalidParams,
  runAsScript,
  type StartOptions,
  serve,
} from '../demo/servers/serve.ts';
import { accepted, askFor, codec, embedded, image, PNG, TOOLS, text } from './upstream-tools.ts';

const hint = { ttlMs: 60_000, cacheScope: 'public' } as const;

/** Compiled once: the SDK builds a server for each request. */
const tools = TOOLS.map(({ inputSchema = { type: 'object', properties: {} }, ...tool }) => ({
  ...tool,
  inputSchema: fromJsonSchema(inputSchema as JsonSchemaType),
}));

interface Prompt {
  readonly name: string;
  readonly description: string;
  readonly arguments?: ReadonlyArray<{ name: string; description: string; required: true }>;
  readonly get: (
    values: Readonly<Record<string, string>>,
    ctx: ServerContext,
  ) => GetPromptResult | InputRequiredResult;
}

const says = (...contents: ContentBlock[]): GetPromptResult => ({
  messages: contents.map((content) => ({ role: 'user', content })),
});

const PROMPTS: readonly Prompt[] = [
  {
    name: 'test_simple_prompt',
    description: 'A prompt without arguments',
    get: () => says(text('This is a simple prompt for testing.')),
  },
  {
    name: 'test_prompt_with_arguments',
    description: 'A prompt with two arguments',
    arguments: [
      { name: 'arg1', description: 'First test argument', required: true },
      { name: 'arg2', description: 'Second test argument', required: true },
    ],
    get: ({ arg1, arg2 }) => says(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  },
  {
    name: 'test_prompt_with_embedded_resource',
    description: 'A prompt that holds a resource',
    arguments: [{ name: 'resourceUri', description: 'URI of the resource to embed', required: true }],
    get: ({ resourceUri = '' }) =>
      says(
        embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.'),
        text('Please process the embedded resource above.'),
      ),
  },
  {
    name: 'test_prompt_with_image',
    description: 'A prompt that holds an image',
    get: () => says(image, text('Please analyze the image above.')),
  },
  {
    name: 'test_input_required_result_prompt',
    description: 'A prompt that asks first',
    get: (_, ctx) => {
      const context = accepted(ctx, 'user_context')?.context;
      if (typeof context === 'string') return says(text(`Context: ${context}`));
      return inputRequired({
        inputRequests: { user_context: askFor('What context should the prompt use?', 'context') },
      });
    },
  },
];

const RESOURCES = [
  { uri: 'test://static-text', name: 'static-text', description: 'A text', mimeType: 'text/plain' },
  { uri: 'test://static-binary', name: 'static-binary', description: 'An image', mimeType: 'image/png' },
] as const;

function contentOf(uri: string) {
  if (uri === 'test://static-text') {
    return { uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' };
  }
  if (uri === 'test://static-binary') return { uri, mimeType: 'image/png', blob: PNG };
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id === undefined) throw new ResourceNotFoundError(uri);
  const value = { id, templateTest: true, data: `Data for ID: ${id}` };
  return { uri, mimeType: 'application/json', text: JSON.stringify(value) };
}

function build(notify: ServerNotifier): McpServer {
  const mcp = new McpServer(
    { name: 'conformance', title: 'Conformance upstream', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        completions: {},
        logging: {},
      },
      cacheHints: { 'server/discover': hint, 'tools/list': hint },
      requestState: { verify: codec.verify },
    },
  );
  for (const { name, description, inputSchema, call } of tools) {
    mcp.registerTool(name, { description, inputSchema }, (_, ctx) => call(ctx, notify));
  }
  const { server } = mcp;
  server.setRequestHandler('prompts/list', () => ({
    prompts: PROMPTS.map(({ name, description, arguments: values = [] }) => ({
      name,
      description,
      arguments: [...values],
    })),
    ...hint,
  }));
  server.setRequestHandler('prompts/get', ({ params }, ctx) => {
    const prompt = PROMPTS.find(({ name }) => name === params.name);
    if (prompt === undefined) throw invalidParams(`Unknown prompt: ${params.name}`);
    const values = params.arguments ?? {};
    const missing = prompt.arguments?.find(({ name }) => values[name] === undefined);
    if (missing !== undefined) throw invalidParams(`Missing argument: ${missing.name}`);
    return prompt.get(values, ctx);
  });
  server.setRequestHandler('resources/list', () => ({ resources: [...RESOURCES], ...hint }));
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [
      { uriTemplate: 'test://template/{id}/data', name: 'template', mimeType: 'application/json' },
    ],
    ...hint,
  }));
  server.setRequestHandler('resources/read', ({ params }) => ({
    contents: [contentOf(params.uri)],
    ...hint,
  }));
  server.setRequestHandler('completion/complete', ({ params: { argument } }) => {
    const values = ['paris', 'park', 'party'].filter((word) => word.startsWith(argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
  return mcp;
}

/** Starts the upstream on loopback. */
export async function start({ port = 0 }: StartOptions = {}): Promise<DemoServer> {
  const server: DemoServer = await serve({ build: () => build(server.notify), port });
  return server;
}

await runAsScript(import.meta.url, start);
