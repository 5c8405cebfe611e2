/**
 * A server on standard input and output, as a process: `node stdio-server.js ERA`. Of an older era there are three: a
 * plain one, a `strict` one that ends when it is asked anything before `initialize`, and a `mute` one that does not
 * answer then. What its tools do: `echo` answers;
 * `slow` tells progress, asks the client something and answers; `never` does not answer; `die` ends the process.
 */
import { createInterface } from 'node:readline';

const kind = process.argv[2] ?? 'legacy';
const era = kind === 'modern' ? 'modern' : 'legacy';
let initialized = false;
const subscribed = new Set<string>();
/** By the id of each listen. */
const listens = new Map<unknown, readonly string[]>();
let version = 1;

function say(message: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}

interface Asked {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly error?: { readonly code: number };
}

const waiting = new Map<unknown, (answer: Asked) => void>();

async function answer({ id, method = '', params = {} }: Asked): Promise<void> {
  const { name, uri, _meta } = params as { name?: string; uri?: string; _meta?: { progressToken?: unknown } };
  const complete = era === 'modern' ? { resultType: 'complete', ttlMs: 60_000, cacheScope: 'public' } : {};
  const result = (members: Readonly<Record<string, unknown>>): void =>
    say({ id, result: { ...complete, ...members } });
  const capabilities = { resources: { subscribe: true, listChanged: true }, tools: {} };
  initialized ||= method === 'initialize';
  if (!initialized && kind === 'strict') process.exit(4);
  if (!initialized && kind === 'mute') return;
  switch (method) {
    case 'server/discover':
      if (era === 'modern') return result({ supportedVersions: ['2026-07-28'], capabilities });
      break;
    case 'initialize':
      if (era === 'legacy')
        return result({
          protocolVersion: '2025-06-18',
          capabilities,
          serverInfo: { name: 'old', version: '1' },
        });
      break;
    case 'resources/read':
      if (uri === 'old://large') return result({ contents: [{ uri, text: 'x'.repeat(2 << 20) }] });
      return result({ contents: [{ uri, text: `${process.pid} ${version}` }] });
    case 'subscriptions/listen': {
      if (era !== 'modern') break;
      const { notifications } = params as { notifications: { resourceSubscriptions?: string[] } };
      listens.set(id, notifications.resourceSubscriptions ?? []);
      const own = { 'io.modelcontextprotocol/subscriptionId': id };
      return say({
        method: 'notifications/subscriptions/acknowledged',
        params: { notifications, _meta: own },
      });
    }
    case 'resources/subscribe':
      subscribed.add(String(uri));
      return result({});
    case 'tools/call':
      if (name === 'never') return;
      if (name === 'die') process.exit(3);
      if (name === 'change') {
        version++;
        const updated = (uri: string, rest = {}): void =>
          say({ method: 'notifications/resources/updated', params: { uri, ...rest } });
        for (const one of subscribed) updated(one);
        for (const [listen, uris] of listens) {
          const own = { 'io.modelcontextprotocol/subscriptionId': listen };
          for (const one of uris) updated(one, { _meta: own });
        }
      }
      if (name === 'slow') {
        say({
          method: 'notifications/progress',
          params: { progressToken: _meta?.progressToken, progress: 1 },
        });
        const said = await new Promise<Asked>((resolve) => {
          waiting.set('q', resolve);
          say({ id: 'q', method: 'elicitation/create', params: {} });
        });
        return result({ content: [{ type: 'text', text: String(said.error?.code) }] });
      }
      return result({ content: [{ type: 'text', text: String(name) }] });
    default:
  }
  say({ id, error: { code: -32601, message: 'Method not found' } });
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line) as Asked;
  if (message.method === undefined) waiting.get(message.id)?.(message);
  else if (message.id !== undefined) void answer(message);
  else if (listens.delete(message.params?.requestId)) return;
  else process.stderr.write(`heard ${message.method} ${JSON.stringify(message.params ?? {})}\n`);
});
