/**
 * Demo server: private notes. Everybody's notes live under the SAME URIs, and each caller sees only their own.
 *
 * That is the hardest case for a cache: whatever is keyed by the URI alone hands one user's note to the other.
 */
import { type McpRequestContext, McpServer, ResourceNotFoundError } from '@modelcontextprotocol/server';
import { type DemoServer, runAsScript, type StartOptions, serve } from './serve.ts';

/** How long a note may be kept, by its owner alone. */
export const NOTES_TTL_MS = 30_000;

/** Demo tokens, not secrets: they open nothing but the notes below. */
export const TOKENS = { alice: 'demo-token-alice', bob: 'demo-token-bob' } as const;
/** Who has notes here. */
export type User = keyof typeof TOKENS;

/** The URI that both users have. */
export const TODAY_URI = 'notes://me/today';

const NOTES: Readonly<Record<User, Readonly<Record<string, string>>>> = {
  alice: {
    [TODAY_URI]: 'Call the plumber. Return the astronomy books. Dentist at four.',
    'notes://me/ideas': 'A map of every bench in town.',
    'notes://me/travel': 'Night train to Bergen, window seat.',
  },
  bob: {
    [TODAY_URI]: 'Rehearsal at seven. Buy strings. Do not forget the key.',
    'notes://me/shopping': 'Flour, lemons, lamp oil.',
  },
};

const hint = { ttlMs: NOTES_TTL_MS, cacheScope: 'private' } as const;
const users = new Map<string, User>(Object.entries(TOKENS).map(([user, token]) => [token, user as User]));

function build({ authInfo }: McpRequestContext): McpServer {
  const user = authInfo?.clientId as User | undefined;
  const notes = user === undefined ? {} : NOTES[user];
  const mcp = new McpServer(
    { name: 'notes', title: 'Private notes', version: '1.0.0' },
    {
      capabilities: { resources: {} },
      instructions: 'Your own notes are under notes://me/. Nobody else can read them.',
      cacheHints: { 'server/discover': { ttlMs: NOTES_TTL_MS, cacheScope: 'public' } },
    },
  );
  const { server } = mcp;
  server.setRequestHandler('resources/list', () => ({
    resources: Object.keys(notes).map((uri) => ({ uri, name: nameOf(uri), mimeType: 'text/plain' })),
    ...hint,
  }));
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [{ uriTemplate: 'notes://me/{name}', name: 'note', mimeType: 'text/plain' }],
    ...hint,
  }));
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    const text = Object.hasOwn(notes, uri) ? notes[uri] : undefined;
    if (text === undefined) throw new ResourceNotFoundError(uri); // the same answer for "not yours" and "not there"
    return { contents: [{ uri, mimeType: 'text/plain', text: `${text}\n` }], ...hint };
  });
  return mcp;
}

const nameOf = (uri: string): string => uri.slice(uri.lastIndexOf('/') + 1);

/** Starts the notes server on loopback. */
export const start = (where: StartOptions = {}): Promise<DemoServer> =>
  serve({ build, userOf: (token) => users.get(token), ...where });

await runAsScript(import.meta.url, start);
