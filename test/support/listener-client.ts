/** A client that listens, on a socket of its own: what it hears, as it comes, and nothing it would not show. */
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { mirrored, rpc, until } from './mcp.ts';

export interface HeardMessage {
  readonly method?: string;
  readonly id?: unknown;
  readonly params?: Readonly<Record<string, unknown>> & {
    readonly _meta?: Readonly<Record<string, unknown>>;
  };
  readonly result?: Readonly<Record<string, unknown>>;
  /** Monotonic milliseconds. */
  readonly at: number;
}

export interface ListenerClient {
  readonly messages: readonly HeardMessage[];
  /** What the acknowledgment says. */
  readonly honoured: unknown;
  /** How long the acknowledgment took. */
  readonly acknowledgedMs: number;
  /** URIs that were told of. */
  readonly updated: readonly string[];
  /** True when the stream has ended; `whole`: as a response ends. */
  readonly ended: 'no' | 'whole' | 'broken';
  pause(): void;
  resume(): void;
  close(): void;
}

/** Opens a listen; resolves with its acknowledgment. */
export async function openListener(
  url: string,
  notifications: Readonly<Record<string, unknown>>,
  { id = 7, headers = {} }: { id?: string | number; headers?: Readonly<Record<string, string>> } = {},
): Promise<ListenerClient> {
  const startedAt = performance.now();
  const messages: HeardMessage[] = [];
  let rest = '';
  let ended: ListenerClient['ended'] = 'no';
  const take = (chunk: string): void => {
    const events = (rest + chunk).split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events) {
      const data = [...event.matchAll(/^data: ?(.*)$/gm)].map(([, line]) => line).join('\n');
      if (data !== '') messages.push({ ...(JSON.parse(data) as HeardMessage), at: performance.now() });
    }
  };
  const { req, res } = await new Promise<{ req: ClientRequest; res: IncomingMessage }>((resolve, reject) => {
    const asked = request(
      url,
      {
        method: 'POST',
        agent: false,
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...mirrored('subscriptions/listen'),
          ...headers,
        },
      },
      (response) => resolve({ req: asked, res: response }),
    );
    asked.on('error', reject);
    asked.end(JSON.stringify(rpc('subscriptions/listen', { notifications }, id)));
  });
  req.on('error', () => undefined);
  res.setEncoding('utf8').on('data', take);
  res.on('error', () => undefined);
  res.on('close', () => {
    ended = res.complete ? 'whole' : 'broken';
  });
  await until(
    () => messages.length > 0 || ended !== 'no',
    `the acknowledgment: HTTP ${res.statusCode} ${rest}`,
  );
  const [first] = messages;
  if (first === undefined) throw new Error(`HTTP ${res.statusCode}: ${rest}`);
  return {
    messages,
    honoured: first.params?.notifications,
    acknowledgedMs: first.at - startedAt,
    get updated() {
      return messages.flatMap(({ params }) => (typeof params?.uri === 'string' ? [params.uri] : []));
    },
    get ended() {
      return ended;
    },
    pause: () => void res.pause(),
    resume: () => void res.resume(),
    close: () => void res.destroy(),
  };
}
