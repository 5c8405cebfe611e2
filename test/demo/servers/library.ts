/**
 * Demo server: a library of 120 documents that everybody may read, listed 25 at a time.
 *
 * The texts are generated, but always the same: byte for byte between two runs.
 */
import { McpServer, ResourceNotFoundError } from '@modelcontextprotocol/server';
import { type DemoServer, invalidParams, pageOf, runAsScript, type StartOptions, serve } from './serve.ts';

/** Enough for several pages. */
export const DOCUMENT_COUNT = 120;
/** Small on purpose: a walk through this server alone takes five pages. */
export const LIBRARY_PAGE_SIZE = 25;
/** How long documents and lists may be kept, by everybody. */
export const LIBRARY_TTL_MS = 60_000;

interface Document {
  readonly uri: string;
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly mimeType: string;
  readonly text: string;
}

const SHELVES = ['astronomy', 'botany', 'cartography', 'engineering', 'history', 'music'] as const;

const SUBJECTS: Readonly<Record<(typeof SHELVES)[number], readonly string[]>> = {
  astronomy: ['double stars', 'meteor showers', 'lunar craters', 'variable suns', 'the zodiacal light'],
  botany: ['alpine mosses', 'tidal grasses', 'orchard grafts', 'climbing vines', 'desert seeds'],
  cartography: ['river deltas', 'contour lines', 'harbour charts', 'old road maps', 'city plans'],
  engineering: ['tidal mills', 'canal locks', 'rope bridges', 'signal towers', 'steam valves'],
  history: ['market towns', 'postal routes', 'salt trade', 'guild records', 'winter fairs'],
  music: ['church organs', 'street ballads', 'string quartets', 'brass bands', 'work songs'],
};
const APPROACHES = ['A survey of', 'Notes on', 'Field studies in', 'A short history of'] as const;

const OPENINGS = [
  'In most years',
  'As a rule',
  'By every account',
  'After the first frost',
  'On closer view',
] as const;
const ACTORS = ['the keepers', 'two observers', 'the records', 'later visitors', 'the older maps'] as const;
const VERBS = ['describe', 'measure', 'compare', 'leave out', 'return to'] as const;
const OBJECTS = [
  'the same three cases',
  'a slow change',
  'what was lost',
  'the northern examples',
  'a small café',
] as const;
const ENDINGS = [
  'with care.',
  'more than once.',
  'and say so.',
  'for want of time.',
  'without a reason given.',
] as const;

/** A linear congruential step (Numerical Recipes): enough to vary sentences, and the same on every machine. */
const stepSeed = (seed: number): number => (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;

function writeText(title: string, number: number): string {
  let seed = stepSeed(number + 1);
  const pick = <T>(words: readonly T[]): T => {
    seed = stepSeed(seed);
    return words[(seed >>> 16) % words.length] as T;
  };
  const sentence = () => `${pick(OPENINGS)} ${pick(ACTORS)} ${pick(VERBS)} ${pick(OBJECTS)} ${pick(ENDINGS)}`;
  const paragraphs = Array.from({ length: 3 + (number % 4) }, () =>
    Array.from({ length: 4 + (number % 3) }, sentence).join(' '),
  );
  return `# ${title}\n\n${paragraphs.join('\n\n')}\n`;
}

const documents: readonly Document[] = Array.from({ length: DOCUMENT_COUNT }, (_, index) => {
  const shelf = SHELVES[index % SHELVES.length] as (typeof SHELVES)[number];
  const place = Math.floor(index / SHELVES.length);
  const subjects = SUBJECTS[shelf];
  const subject = subjects[place % subjects.length] as string;
  const title = `${APPROACHES[Math.floor(place / subjects.length)] as string} ${subject}`;
  const number = String(index + 1).padStart(3, '0');
  return {
    uri: `docs://library/${shelf}/${number}`,
    name: `document-${number}`,
    title,
    description: `Shelf ${shelf}, number ${number}`,
    mimeType: 'text/markdown',
    text: writeText(title, index),
  };
});
const byUri = new Map(documents.map((document) => [document.uri, document]));
const listed = documents.map(({ text, ...resource }) => ({ ...resource, size: Buffer.byteLength(text) }));

/** The URIs of all documents, in the order of the list. */
export const libraryUris: readonly string[] = documents.map((document) => document.uri);

interface LibraryPrompt {
  readonly name: string;
  readonly description: string;
  readonly argument: string;
  readonly explanation: string;
  readonly ask: (value: string) => string;
}

const PROMPTS: readonly LibraryPrompt[] = [
  {
    name: 'summarize_document',
    description: 'Sum up one document of the library',
    argument: 'uri',
    explanation: 'The document, as docs://library/{shelf}/{number}',
    ask: (uri) => `Read ${uri} and sum it up in three sentences.`,
  },
  {
    name: 'reading_list',
    description: 'Put together a reading list from one shelf',
    argument: 'shelf',
    explanation: `One of ${SHELVES.join(', ')}`,
    ask: (shelf) => `Choose five documents from the shelf "${shelf}" and say why each is worth reading.`,
  },
];

const hint = { ttlMs: LIBRARY_TTL_MS, cacheScope: 'public' } as const;

function build(): McpServer {
  const mcp = new McpServer(
    { name: 'library', title: 'Document library', version: '1.0.0' },
    {
      capabilities: { resources: {}, prompts: {} },
      instructions: 'Documents live under docs://library/{shelf}/{number}. All of them are public.',
      cacheHints: { 'server/discover': hint },
    },
  );
  const { server } = mcp; // the SDK's own registry answers resources/list in one page: these handlers page it
  server.setRequestHandler('resources/list', (request) => {
    const { items, ...rest } = pageOf(listed, request.params?.cursor, LIBRARY_PAGE_SIZE);
    return { resources: items, ...rest, ...hint };
  });
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [], ...hint }));
  server.setRequestHandler('resources/read', (request) => {
    const document = byUri.get(request.params.uri);
    if (document === undefined) throw new ResourceNotFoundError(request.params.uri);
    const { uri, mimeType, text } = document;
    return { contents: [{ uri, mimeType, text }], ...hint };
  });
  server.setRequestHandler('prompts/list', () => ({
    prompts: PROMPTS.map(({ name, description, argument, explanation }) => ({
      name,
      description,
      arguments: [{ name: argument, description: explanation, required: true }],
    })),
    ...hint,
  }));
  server.setRequestHandler('prompts/get', (request) => {
    const prompt = PROMPTS.find(({ name }) => name === request.params.name);
    const value = prompt && request.params.arguments?.[prompt.argument];
    if (prompt === undefined) throw invalidParams(`Unknown prompt: ${request.params.name}`);
    if (value === undefined) throw invalidParams(`Missing argument: ${prompt.argument}`);
    return { messages: [{ role: 'user', content: { type: 'text', text: prompt.ask(value) } }] };
  });
  return mcp;
}

/** Starts the library on loopback. */
export const start = (where: StartOptions = {}): Promise<DemoServer> => serve({ build, ...where });

await runAsScript(import.meta.url, start);
