/** Clients of either revision, asked the same: version 2 of the official SDK in its three modes, and version 1. */
import {
  type Client,
  Client as ClientV2,
  StreamableHTTPClientTransport as TransportV2,
} from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { TEMPLATE } from './world.ts';

/** One client, connected. */
export interface EraClient {
  /** The revision that was agreed on. */
  readonly revision: string;
  /** Names of all resources, tools and prompts. */
  names(): Promise<readonly string[]>;
  read(uri: string): Promise<unknown>;
  templates(): Promise<readonly string[]>;
  complete(value: string): Promise<readonly string[]>;
  /** Whether the server says that it tells of changes of resources. */
  readonly mayFollow: boolean;
  /** Calls `heard` with the URI of each update, until what it returns is called. */
  follow(uri: string, heard: (uri: string) => void): Promise<() => Promise<void>>;
  /** @returns the text, and the steps that were told. */
  call(name: string): Promise<{ readonly text: unknown; readonly steps: readonly number[] }>;
  close(): Promise<void>;
}

/** As they are named in the README. */
export const CLIENTS = ['SDK 2, this revision', 'SDK 2, automatic', 'SDK 2, older', 'SDK 1'] as const;
export type ClientName = (typeof CLIENTS)[number];

const ANSWER = { action: 'accept', content: { colour: 'red' } } as const;
const INFO = { name: 'era-client', version: '1' };
const TIMES = { timeout: 15_000 };

/** @param fetched told of the headers of every answer. */
export function connect(
  name: ClientName,
  url: string,
  fetched: (headers: Headers) => void,
): Promise<EraClient> {
  const fetching = async (...args: Parameters<typeof fetch>): Promise<Response> => {
    const response = await fetch(...args);
    fetched(response.headers);
    return response;
  };
  return name === 'SDK 1' ? connectV1(new URL(url), fetching) : connectV2(name, new URL(url), fetching);
}

async function connectV2(
  name: Exclude<ClientName, 'SDK 1'>,
  url: URL,
  fetching: typeof fetch,
): Promise<EraClient> {
  const modes = {
    'SDK 2, this revision': { pin: '2026-07-28' },
    'SDK 2, automatic': 'auto',
    'SDK 2, older': undefined,
  } as const;
  const mode = modes[name];
  const client: Client = new ClientV2(INFO, {
    capabilities: { elicitation: {} },
    ...(mode !== undefined && { versionNegotiation: { mode } }),
  });
  client.setRequestHandler('elicitation/create', () => ANSWER);
  let heard: (uri: string) => void = () => {};
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => heard(params.uri));
  await client.connect(new TransportV2(url, { fetch: fetching }));
  const isModern = client.getProtocolEra() === 'modern';
  return {
    revision: isModern ? '2026-07-28' : '2025-11-25',
    names: async () => [
      ...(await client.listResources()).resources.map((one) => one.name),
      ...(await client.listTools()).tools.map((one) => one.name),
      ...(await client.listPrompts()).prompts.map((one) => one.name),
    ],
    read: async (uri) => firstText((await client.readResource({ uri }, { cacheMode: 'bypass' })).contents),
    templates: async () =>
      (await client.listResourceTemplates()).resourceTemplates.map((one) => one.uriTemplate),
    complete: async (value) => (await client.complete(completing(value))).completion.values,
    mayFollow: client.getServerCapabilities()?.resources?.subscribe === true,
    follow: async (uri, told) => {
      heard = told;
      if (!isModern) {
        await client.subscribeResource({ uri });
        return async () => void (await client.unsubscribeResource({ uri }));
      }
      const listening = await client.listen({ resourceSubscriptions: [uri] });
      return () => listening.close();
    },
    call: async (tool) => {
      const steps: number[] = [];
      const result = await client.callTool(
        { name: tool, arguments: {} },
        { ...TIMES, onprogress: ({ progress }) => steps.push(progress) },
      );
      return { text: firstText(result.content), steps };
    },
    close: () => client.close(),
  };
}

async function connectV1(url: URL, fetching: typeof fetch): Promise<EraClient> {
  const client = new ClientV1(INFO, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, () => ANSWER);
  let heard: (uri: string) => void = () => {};
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => heard(params.uri));
  const transport = new TransportV1(url, { fetch: fetching });
  await client.connect(transport as Parameters<ClientV1['connect']>[0]);
  return {
    revision: transport.protocolVersion ?? '',
    names: async () => [
      ...(await client.listResources()).resources.map((one) => one.name),
      ...(await client.listTools()).tools.map((one) => one.name),
      ...(await client.listPrompts()).prompts.map((one) => one.name),
    ],
    read: async (uri) => firstText((await client.readResource({ uri })).contents),
    templates: async () =>
      (await client.listResourceTemplates()).resourceTemplates.map((one) => one.uriTemplate),
    complete: async (value) => (await client.complete(completing(value))).completion.values,
    mayFollow: client.getServerCapabilities()?.resources?.subscribe === true,
    follow: async (uri, told) => {
      heard = told;
      await client.subscribeResource({ uri });
      return async () => void (await client.unsubscribeResource({ uri }));
    },
    call: async (tool) => {
      const steps: number[] = [];
      const result = await client.callTool({ name: tool, arguments: {} }, undefined, {
        ...TIMES,
        onprogress: ({ progress }) => steps.push(progress),
      });
      return { text: firstText(result.content), steps };
    },
    close: async () => {
      await transport.terminateSession();
      await client.close();
    },
  };
}

function completing(value: string) {
  return { ref: { type: 'ref/resource' as const, uri: TEMPLATE }, argument: { name: 'name', value } };
}

function firstText(parts: unknown): unknown {
  return (parts as readonly { readonly text?: unknown }[])[0]?.text;
}
