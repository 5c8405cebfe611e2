/**
 * The server that the official conformance suite expects to talk to, on the official SDK.
 *
 * The names and texts below are the suite's (`@modelcontextprotocol/conformance`): a gateway that changes a name or drops
 * a field fails a check that this server passes when asked directly.
 */
import {
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
import { completed, contentOf, PROMPTS, RESOURCES, says, TEMPLATES, text } from './catalogue.ts';
import { accepted, askFor, codec, TOOLS } from './upstream-tools.ts';

const hint = { ttlMs: 60_000, cacheScope: 'public' } as const;

/** Compiled once: the SDK builds a server for each request. */
const tools = TOOLS.map(({ inputSchema = { type: 'object', properties: {} }, ...tool }) => ({
  ...tool,
  inputSchema: fromJsonSchema(inputSchema as JsonSchemaType),
}));

/** Asks first. */
const ASKING_PROMPT = 'test_input_required_result_prompt';

function askedPrompt(ctx: ServerContext): GetPromptResult | InputRequiredResult {
  const context = accepted(ctx, 'user_context')?.context;
  if (typeof context === 'string') return says(text(`Context: ${context}`)) as GetPromptResult;
  return inputRequired({
    inputRequests: { user_context: askFor('What context should the prompt use?', 'context') },
  });
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
    prompts: [
      ...PROMPTS.map(({ name, description, arguments: values = [] }) => ({
        name,
        description,
        arguments: [...values],
      })),
      { name: ASKING_PROMPT, description: 'A prompt that asks first' },
    ],
    ...hint,
  }));
  server.setRequestHandler('prompts/get', ({ params }, ctx) => {
    if (params.name === ASKING_PROMPT) return askedPrompt(ctx);
    const prompt = PROMPTS.find(({ name }) => name === params.name);
    if (prompt === undefined) throw invalidParams(`Unknown prompt: ${params.name}`);
    const values = params.arguments ?? {};
    const missing = prompt.arguments?.find(({ name }) => values[name] === undefined);
    if (missing !== undefined) throw invalidParams(`Missing argument: ${missing.name}`);
    return prompt.get(values) as GetPromptResult;
  });
  server.setRequestHandler('resources/list', () => ({ resources: RESOURCES, ...hint }));
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: TEMPLATES,
    ...hint,
  }));
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    const content = contentOf(uri);
    if (content === undefined) throw new ResourceNotFoundError(uri);
    return { contents: [content], ...hint };
  });
  server.setRequestHandler('completion/complete', ({ params }) => completed(params.argument.value));
  return mcp;
}

/** Starts the upstream on loopback. */
export async function start({ port = 0 }: StartOptions = {}): Promise<DemoServer> {
  const server: DemoServer = await serve({ build: () => build(server.notify), port });
  return server;
}

await runAsScript(import.meta.url, start);
