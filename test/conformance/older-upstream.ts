/**
 * The server that the official suite expects of revision 2025-11-25, on version 1 of the official SDK: the same names
 * and texts as of this revision, and the questions in mid-call that were asked then.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { localhostHostValidation, localhostOriginValidation } from '@modelcontextprotocol/node';
import { InMemoryEventStore } from '@modelcontextprotocol/sdk/examples/shared/inMemoryEventStore.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import {
  CallToolRequestSchema,
  type CallToolResult,
  CompleteRequestSchema,
  CreateMessageResultSchema,
  ElicitResultSchema,
  ErrorCode,
  GetPromptRequestSchema,
  type GetPromptResult,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListRootsResultSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  type ServerNotification,
  type ServerRequest,
  SetLevelRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { completed, contentOf, PROMPTS, RESOURCES, TEMPLATES } from './catalogue.ts';
import { ELICITATIONS, PLAIN_TOOLS, type PlainTool, SAMPLING, schemaFor, TEXTS } from './tools-data.ts';

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;
type Json = Readonly<Record<string, unknown>>;

const says = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] });

const elicit = async (extra: Extra, params: Json): Promise<Json> =>
  (await extra.sendRequest({ method: 'elicitation/create', params } as never, ElicitResultSchema)) as Json;
const sample = (extra: Extra, prompt: string): Promise<unknown> =>
  extra.sendRequest(
    { method: 'sampling/createMessage', params: SAMPLING(prompt) } as never,
    CreateMessageResultSchema,
  );
const roots = (extra: Extra): Promise<unknown> =>
  extra.sendRequest({ method: 'roots/list' }, ListRootsResultSchema);
const contentIn = (result: Json): Json => (result.content ?? {}) as Json;

/** What the tools do that ask, log or report. */
const ASKING: Readonly<
  Record<string, (extra: Extra, args: Json, server: Server) => Promise<CallToolResult>>
> = {
  test_tool_with_progress: async (extra) => {
    const progressToken = extra._meta?.progressToken;
    for (const progress of [0, 50, 100])
      if (progressToken !== undefined)
        await extra.sendNotification({
          method: 'notifications/progress',
          params: { progressToken, progress, total: 100 },
        });
    return says('Done.');
  },
  test_tool_with_logging: async (extra, _, server) => {
    await logThrice(extra, server);
    return says('Logged.');
  },
  test_logging_tool: async (extra, _, server) => {
    await logThrice(extra, server);
    return says('Logged.');
  },
  test_reconnection: async (extra) => {
    extra.closeSSEStream?.();
    await new Promise((resolve) => setTimeout(resolve, 100));
    return says('Resumed.');
  },
  test_sampling: async (extra, { prompt }) => {
    await sample(extra, String(prompt));
    return says('Sampled.');
  },
  test_elicitation: async (extra, { message }) => {
    const { action } = await elicit(extra, { ...ELICITATIONS.user, message: String(message) });
    return says(`User response: ${String(action)}`);
  },
  test_elicitation_sep1034_defaults: async (extra) =>
    says(JSON.stringify(await elicit(extra, ELICITATIONS.defaults))),
  test_elicitation_sep1330_enums: async (extra) =>
    says(JSON.stringify(await elicit(extra, ELICITATIONS.enums))),
  test_missing_capability: async (extra) => {
    await sample(extra, 'Say hello');
    return says('Sampled.');
  },
  test_streaming_elicitation: async (extra) => {
    await elicit(extra, ELICITATIONS.name);
    return says('Answered.');
  },
  test_input_required_result_elicitation: async (extra) => {
    const { name } = contentIn(await elicit(extra, ELICITATIONS.name));
    return says(`Hello, ${String(name)}!`);
  },
  test_input_required_result_sampling: async (extra) => {
    await sample(extra, 'What is the capital of France?');
    return says('Sampled.');
  },
  test_input_required_result_list_roots: async (extra) => {
    await roots(extra);
    return says('Listed.');
  },
  test_input_required_result_request_state: async (extra) => {
    await elicit(extra, ELICITATIONS.confirm);
    return says('state-ok');
  },
  test_input_required_result_tampered_state: async (extra) => {
    await elicit(extra, ELICITATIONS.confirm);
    return says('state-ok');
  },
  test_input_required_result_multi_round: async (extra) => {
    await elicit(extra, { ...ELICITATIONS.name, message: 'Step 1: What is your name?' });
    await elicit(extra, {
      message: 'Step 2: What is your favorite color?',
      requestedSchema: schemaFor('color'),
    });
    return says('Both steps answered.');
  },
  test_input_required_result_multiple_inputs: async (extra) => {
    await Promise.all([elicit(extra, ELICITATIONS.name), sample(extra, 'Generate a greeting'), roots(extra)]);
    return says('All three answered.');
  },
  test_input_required_result_capabilities: async (extra, _, server) => {
    const { sampling, elicitation } = server.getClientCapabilities() ?? {};
    await Promise.all([
      ...(sampling === undefined ? [] : [sample(extra, 'Say hello')]),
      ...(elicitation === undefined ? [] : [elicit(extra, ELICITATIONS.name)]),
    ]);
    return says('Asked.');
  },
};

async function logThrice(extra: Extra, server: Server): Promise<void> {
  if (levels.get(server) === undefined) return;
  for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed'])
    await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data } });
}

const levels = new WeakMap<Server, string>();

async function getPrompt(name: string, args: Json, extra: Extra): Promise<GetPromptResult> {
  if (name === 'test_input_required_result_prompt') {
    const asked = { message: 'What context should the prompt use?', requestedSchema: schemaFor('context') };
    const { context } = contentIn(await elicit(extra, asked));
    return { messages: [{ role: 'user', content: { type: 'text', text: `Context: ${String(context)}` } }] };
  }
  const prompt = PROMPTS.find((one) => one.name === name);
  if (prompt === undefined) throw new McpError(ErrorCode.InvalidParams, `Unknown prompt: ${name}`);
  const missing = prompt.arguments?.find((one) => args[one.name] === undefined);
  if (missing !== undefined) throw new McpError(ErrorCode.InvalidParams, `Missing argument: ${missing.name}`);
  return prompt.get(args as Readonly<Record<string, string>>) as GetPromptResult;
}

function build(): Server {
  const server = new Server(
    { name: 'conformance-older', title: 'Conformance upstream, older', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        completions: {},
        logging: {},
      },
    },
  );
  const plain = new Map<string, PlainTool>(PLAIN_TOOLS.map((tool) => [tool.name, tool]));
  const tools = [
    ...PLAIN_TOOLS,
    ...Object.keys(ASKING).map((name) => ({
      name,
      description: TEXTS[name] ?? name,
      inputSchema: undefined,
    })),
    { name: 'test_trigger_tool_change', description: 'Tells that the tools changed', inputSchema: undefined },
    {
      name: 'test_trigger_prompt_change',
      description: 'Tells that the prompts changed',
      inputSchema: undefined,
    },
  ].map(({ name, description, inputSchema = { type: 'object', properties: {} } }) => ({
    name,
    description,
    inputSchema: inputSchema as { type: 'object' },
  }));
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
  server.setRequestHandler(
    CallToolRequestSchema,
    async ({ params: { name, arguments: args = {} } }, extra) => {
      const tool = plain.get(name);
      if (tool !== undefined) return tool.call() as CallToolResult;
      if (name === 'test_trigger_tool_change') await server.sendToolListChanged();
      if (name === 'test_trigger_prompt_change') await server.sendPromptListChanged();
      if (name.startsWith('test_trigger_')) return says('Told.');
      const ask = ASKING[name];
      if (ask === undefined) throw new McpError(ErrorCode.InvalidParams, `Unknown tool: ${name}`);
      return ask(extra, args, server);
    },
  );
  server.setRequestHandler(ListPromptsRequestSchema, () => ({
    prompts: [
      ...PROMPTS.map(({ name, description, arguments: args = [] }) => ({
        name,
        description,
        arguments: [...args],
      })),
      { name: 'test_input_required_result_prompt', description: 'A prompt that asks first' },
    ],
  }));
  server.setRequestHandler(GetPromptRequestSchema, ({ params }, extra) =>
    getPrompt(params.name, params.arguments ?? {}, extra),
  );
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: [...RESOURCES] }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [...TEMPLATES] }));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => {
    const content = contentOf(uri);
    if (content === undefined) throw new McpError(-32002 as ErrorCode, 'Resource not found', { uri });
    return { contents: [content] };
  });
  server.setRequestHandler(CompleteRequestSchema, ({ params }) => completed(params.argument.value));
  server.setRequestHandler(SetLevelRequestSchema, ({ params: { level } }) => {
    levels.set(server, level);
    return {};
  });
  server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));
  return server;
}

/** What a client is told to wait before it resumes. */
const RETRY_MS = 1_000;

/** Starts it on loopback. */
export async function startOlderUpstream(): Promise<{ url: string; close(): Promise<void> }> {
  const transports = new Map<string, StreamableHTTPServerTransport>();
  const [hostFits, originFits] = [localhostHostValidation(), localhostOriginValidation()];
  const http = createServer(async (request, response) => {
    if (!hostFits(request, response) || !originFits(request, response)) return;
    const id = request.headers['mcp-session-id'];
    let transport = typeof id === 'string' ? transports.get(id) : undefined;
    if (id !== undefined && transport === undefined) {
      response.writeHead(404).end();
      return;
    }
    if (transport === undefined) {
      const made: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        eventStore: new InMemoryEventStore(),
        retryInterval: RETRY_MS,
        onsessioninitialized: (session) => void transports.set(session, made),
        onsessionclosed: (session) => void transports.delete(session),
      });
      await build().connect(made as Parameters<Server['connect']>[0]);
      transport = made;
    }
    await transport.handleRequest(request, response);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    close: async () => {
      for (const transport of transports.values()) await transport.close();
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}
