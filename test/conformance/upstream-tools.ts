/**
 * The tools that the suite calls, as data: its names, its texts, its rounds of questions.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import {
  acceptedContent,
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ContentBlock,
  createRequestStateCodec,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type ServerContext,
  type ServerNotifier,
} from '@modelcontextprotocol/server';
import { type Block, text } from './catalogue.ts';
import { ELICITATIONS, type JsonObject, PLAIN_TOOLS, TEXTS } from './tools-data.ts';

const STEP_MS = 50;

/** Seals what a client carries from round to round. */
export const codec = createRequestStateCodec<{ round: number }>({ key: randomBytes(32), ttlSeconds: 300 });

type ToolAnswer = CallToolResult | InputRequiredResult;

interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema?: JsonObject;
  readonly call: (ctx: ServerContext, notify: ServerNotifier) => ToolAnswer | Promise<ToolAnswer>;
}

const answer = (...content: Block[]): CallToolResult => ({ content: content as ContentBlock[] });

/** Asks the user for one string. */
export const askFor = (message: string, field: string) =>
  inputRequired.elicit({
    message,
    requestedSchema: { type: 'object', properties: { [field]: { type: 'string' } }, required: [field] },
  });
const askToConfirm = () =>
  inputRequired.elicit({
    message: 'Please confirm',
    requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] },
  });
const askToSample = (prompt: string) =>
  inputRequired.createMessage({
    messages: [{ role: 'user', content: { type: 'text', text: prompt } }],
    maxTokens: 100,
  });

/** What an earlier round answered, if it is there and was accepted. */
export const accepted = (ctx: ServerContext, key: string) => acceptedContent(ctx.mcpReq.inputResponses, key);
const answeredAs = (ctx: ServerContext, key: string) => inputResponse(ctx.mcpReq.inputResponses, key).kind;

/** Asks for a confirmation under a sealed state, and is content with nothing but both of them. */
async function confirm(ctx: ServerContext): Promise<ToolAnswer> {
  const state = ctx.mcpReq.requestState<{ round: number }>();
  if (accepted(ctx, 'confirm') !== undefined && state?.round === 1) return answer(text('state-ok'));
  return inputRequired({
    inputRequests: { confirm: askToConfirm() },
    requestState: await codec.mint({ round: 1 }),
  });
}

async function askTwice(ctx: ServerContext): Promise<ToolAnswer> {
  const round = ctx.mcpReq.requestState<{ round: number }>()?.round;
  if (round === 2 && accepted(ctx, 'step2') !== undefined) return answer(text('Both steps answered.'));
  if (round === 1 && accepted(ctx, 'step1') !== undefined) {
    return inputRequired({
      inputRequests: { step2: askFor('Step 2: What is your favorite color?', 'color') },
      requestState: await codec.mint({ round: 2 }),
    });
  }
  return inputRequired({
    inputRequests: { step1: askFor('Step 1: What is your name?', 'name') },
    requestState: await codec.mint({ round: 1 }),
  });
}

async function askForEverything(ctx: ServerContext): Promise<ToolAnswer> {
  const complete =
    accepted(ctx, 'user_name') !== undefined &&
    answeredAs(ctx, 'greeting') === 'sampling' &&
    answeredAs(ctx, 'client_roots') === 'roots';
  if (complete) return answer(text('All three answered.'));
  return inputRequired({
    inputRequests: {
      user_name: askFor('What is your name?', 'name'),
      greeting: askToSample('Generate a greeting'),
      client_roots: inputRequired.listRoots(),
    },
    requestState: await codec.mint({ round: 1 }),
  });
}

/** Asks only for what the client says it can do. */
function askWithinCapabilities({ mcpReq }: ServerContext): ToolAnswer {
  const envelope: Readonly<Record<string, unknown>> = mcpReq.envelope ?? {};
  const declared = Object(envelope[CLIENT_CAPABILITIES_META_KEY]) as object;
  return inputRequired({
    inputRequests: {
      ...('sampling' in declared && { sample: askToSample('Say hello') }),
      ...('elicitation' in declared && { name: askFor('What is your name?', 'name') }),
    },
  });
}

async function reportProgress({ mcpReq }: ServerContext): Promise<ToolAnswer> {
  const progressToken = mcpReq._meta?.progressToken;
  for (const progress of [0, 50, 100]) {
    if (progress > 0) await wait(STEP_MS, undefined, { signal: mcpReq.signal });
    if (progressToken === undefined) continue;
    await mcpReq.notify({
      method: 'notifications/progress',
      params: { progressToken, progress, total: 100 },
    });
  }
  return answer(text('Done.'));
}

/** The first tool is the one that the header checks call with no arguments: it has to succeed. */
export const TOOLS: readonly Tool[] = [
  ...PLAIN_TOOLS.map((tool): Tool => ({ ...tool, call: () => tool.call() as CallToolResult })),
  { name: 'test_tool_with_progress', description: 'Reports progress three times', call: reportProgress },
  {
    name: 'test_logging_tool',
    description: 'Logs, which nobody may see who set no log level',
    call: async (ctx) => {
      await ctx.mcpReq.log('info', 'Tool executed');
      return answer(text('Logged.'));
    },
  },
  {
    name: 'test_tool_with_logging',
    description: TEXTS.test_tool_with_logging ?? '',
    call: async (ctx) => {
      for (const message of ['Tool execution started', 'Tool processing data', 'Tool execution completed'])
        await ctx.mcpReq.log('info', message);
      return answer(text('Logged.'));
    },
  },
  {
    name: 'test_sampling',
    description: TEXTS.test_sampling ?? '',
    call: (ctx) =>
      answeredAs(ctx, 'sample') === 'sampling'
        ? answer(text('Sampled.'))
        : inputRequired({ inputRequests: { sample: askToSample('Test prompt for sampling') } }),
  },
  ...(
    [
      ['test_elicitation', ELICITATIONS.user],
      ['test_elicitation_sep1034_defaults', ELICITATIONS.defaults],
      ['test_elicitation_sep1330_enums', ELICITATIONS.enums],
    ] as const
  ).map(
    ([name, asked]): Tool => ({
      name,
      description: TEXTS[name] ?? '',
      call: ({ mcpReq }) => {
        const said = inputResponse(mcpReq.inputResponses, 'user');
        return said.kind === 'missing'
          ? inputRequired({ inputRequests: { user: inputRequired.elicit(asked as never) } })
          : answer(text(`User response: ${JSON.stringify(said)}`));
      },
    }),
  ),
  {
    name: 'test_missing_capability',
    description: 'Needs a client that can sample',
    call: () => inputRequired({ inputRequests: { sample: askToSample('Say hello') } }),
  },
  {
    name: 'test_streaming_elicitation',
    description: 'Asks by its result, never by a request of its own on the stream',
    call: () => inputRequired({ inputRequests: { name: askFor('What is your name?', 'name') } }),
  },
  {
    name: 'test_trigger_tool_change',
    description: 'Tells subscribers that the tools changed',
    call: (_, notify) => {
      notify.toolsChanged();
      return answer(text('Told.'));
    },
  },
  {
    name: 'test_trigger_prompt_change',
    description: 'Tells subscribers that the prompts changed',
    call: (_, notify) => {
      notify.promptsChanged();
      return answer(text('Told.'));
    },
  },
  {
    name: 'test_input_required_result_elicitation',
    description: 'Asks for a name',
    call: (ctx) => {
      const name = accepted(ctx, 'user_name')?.name;
      if (typeof name === 'string') return answer(text(`Hello, ${name}!`));
      return inputRequired({ inputRequests: { user_name: askFor('What is your name?', 'name') } });
    },
  },
  {
    name: 'test_input_required_result_sampling',
    description: 'Asks for a sample',
    call: (ctx) =>
      answeredAs(ctx, 'capital_question') === 'sampling'
        ? answer(text('Sampled.'))
        : inputRequired({
            inputRequests: { capital_question: askToSample('What is the capital of France?') },
          }),
  },
  {
    name: 'test_input_required_result_list_roots',
    description: 'Asks for the roots',
    call: (ctx) =>
      answeredAs(ctx, 'client_roots') === 'roots'
        ? answer(text('Listed.'))
        : inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } }),
  },
  {
    name: 'test_input_required_result_request_state',
    description: 'Keeps a state with the client',
    call: confirm,
  },
  {
    name: 'test_input_required_result_tampered_state',
    description: 'Refuses a state that it did not seal',
    call: confirm,
  },
  { name: 'test_input_required_result_multi_round', description: 'Asks in two rounds', call: askTwice },
  {
    name: 'test_input_required_result_multiple_inputs',
    description: 'Asks for three things at once',
    call: askForEverything,
  },
  {
    name: 'test_input_required_result_capabilities',
    description: 'Asks within the declared capabilities',
    call: askWithinCapabilities,
  },
];
