/** An upstream that tells of its changes when the test says so, and counts its streams. */
import { answer, type FaultServer, openEvents, startFaultServer } from './fault-server.ts';
import { type Heard, heardOn } from './listen-kit.ts';

export interface Teller {
  readonly url: URL;
  readonly server: FaultServer;
  readonly streams: readonly Heard[];
  /** Streams that are open now. */
  readonly open: readonly Heard[];
  /** Requests of a method so far. */
  asked(method: string): number;
  /** The next version of everything, and what is told of it on every open stream that covers it. */
  change(uri: string): void;
  /** Has one more tool, and says so. */
  addTool(tool: string): void;
  /** Breaks every stream. */
  cut(): void;
  close(): Promise<void>;
}

/**
 * Starts one; its resources are `NAME://1` to `NAME://3`, its text the number of changes before.
 * @param takes `callers`: whoever brings no token is refused.
 */
export async function startTeller(
  name: string,
  capabilities: Readonly<Record<string, unknown>> = {
    resources: { subscribe: true, listChanged: true },
    tools: { listChanged: true },
  },
  ttlMs = 600_000,
  takes: 'everybody' | 'callers' = 'everybody',
): Promise<Teller> {
  const streams: Heard[] = [];
  const counts = new Map<string, number>();
  const tools = [`${name}-tool`];
  let version = 0;
  const server = await startFaultServer(async (request) => {
    const method = request.headers['mcp-method'] ?? '';
    counts.set(method, (counts.get(method) ?? 0) + 1);
    if (takes === 'callers' && request.headers.authorization === undefined) {
      await request.body();
      answer(request, '', { status: 401 });
      return;
    }
    if (method === 'subscriptions/listen') {
      const stream = await heardOn(request);
      openEvents(request);
      streams.push(stream);
      stream.acknowledge();
      return;
    }
    const id = await request.id();
    const uri = request.headers['mcp-name'];
    const results: Readonly<Record<string, unknown>> = {
      'server/discover': { supportedVersions: ['2026-07-28'], capabilities },
      'resources/read': { contents: [{ uri, text: String(version) }] },
      'resources/list': {
        resources: [1, 2, 3].map((i) => ({ uri: `${name}://${i}`, name: `${name} ${i}` })),
      },
      'resources/templates/list': { resourceTemplates: [] },
      'tools/list': { tools: tools.map((tool) => ({ name: tool, inputSchema: { type: 'object' } })) },
      'tools/call': { content: [{ type: 'text', text: name }] },
    };
    const result = {
      ...(results[method] as object),
      resultType: 'complete',
      ttlMs,
      cacheScope: 'public',
    };
    answer(request, `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}`);
  });
  const open = (): Heard[] => streams.filter(({ socket }) => !socket.destroyed);
  return {
    url: server.url,
    server,
    streams,
    get open() {
      return open();
    },
    asked: (method) => counts.get(method) ?? 0,
    change: (uri) => {
      version++;
      for (const stream of open()) stream.updated(uri);
    },
    addTool: (tool) => {
      tools.push(tool);
      for (const stream of open()) stream.notify('notifications/tools/list_changed');
    },
    cut: () => {
      for (const { socket } of open()) socket.resetAndDestroy();
    },
    close: () => server.close(),
  };
}
