/**
 * The walk through the gateway: each step does one thing with the official client, shows it, and checks what it claims.
 */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Report } from './report.ts';
import { cityUris, WEATHER_TEMPLATE } from './servers/city.ts';
import { DOCUMENT_COUNT, libraryUris } from './servers/library.ts';
import { TODAY_URI, TOKENS, type User } from './servers/notes.ts';
import type { DemoServer } from './servers/serve.ts';
import { curlLine, type Exchange, type Recorder, record } from './wire.ts';

const REVISION = '2026-07-28';
/** Any document will do that no earlier step has read. */
const DOCUMENT_URI = libraryUris[41] as string;

/** A list that does not end is a fault: the claims after it say so. */
const MOST_PAGES = 20;

/** The servers behind the gateway, for asking whether they were asked. */
export interface Servers {
  readonly library: DemoServer;
  readonly city: DemoServer;
  readonly notes: DemoServer;
}

interface Stage {
  readonly report: Report;
  readonly servers: Servers;
  /** The gateway's MCP endpoint. */
  readonly endpoint: URL;
  /** Origin of its status listener. */
  readonly status: string;
}

/** A connected client and what it sent. */
interface Visitor {
  readonly client: Client;
  readonly recorder: Recorder;
}

/** Walks through every step; throws only when a step could not be done at all. */
export async function walk(stage: Stage): Promise<void> {
  const visitors: Visitor[] = [];
  const visit = async (user?: User): Promise<Visitor> => {
    const visitor = await connect(stage.endpoint, user);
    visitors.push(visitor);
    return visitor;
  };
  try {
    const anybody = await discover(stage, visit);
    await turnPages(stage, anybody);
    await readTwice(stage, anybody);
    await readPrivately(stage, visit, anybody);
    await complete(stage, anybody);
    await callTool(stage, anybody);
  } finally {
    for (const { client } of visitors) await client.close();
  }
}

async function connect(endpoint: URL, user?: User): Promise<Visitor> {
  const recorder = record();
  const client = new Client(
    { name: 'headgate-demo', version: '1.0.0' },
    { versionNegotiation: { mode: { pin: REVISION } } }, // the default client would say a legacy `initialize` first
  );
  const authProvider = user && { token: async () => TOKENS[user] };
  const transport = new StreamableHTTPClientTransport(endpoint, {
    fetch: recorder.fetch,
    ...(authProvider && { authProvider }),
  });
  await client.connect(transport);
  return { client, recorder };
}

async function discover({ report, status }: Stage, visit: () => Promise<Visitor>): Promise<Visitor> {
  report.step('Discover: one server, everything that stands behind it');
  const ready = await fetch(new URL('/readyz', status));
  report.claim('the status port says ready', ready.status === 200, `${ready.status}`);

  const visitor = await visit();
  const found = visitor.client.getDiscoverResult();
  const capabilities = Object.keys(found?.capabilities ?? {}).sort();
  const name = visitor.client.getServerVersion()?.name;
  report.row('server', `${name} ${visitor.client.getServerVersion()?.version}`);
  report.row('revisions', found?.supportedVersions.join(', ') ?? 'none');
  report.row('capabilities', capabilities.join(', '));
  const exchange = showCacheStatus(report, visitor.recorder);
  report.claim(`it speaks ${REVISION}`, found?.supportedVersions.includes(REVISION) === true);
  report.claim('it is the gateway, not one of the servers', name === 'headgate', name);
  report.claim(
    'it offers what all of them together offer',
    ['completions', 'prompts', 'resources', 'tools'].every((each) => capabilities.includes(each)),
    capabilities.join(', '),
  );
  showCurl(report, exchange);
  return visitor;
}

async function turnPages({ report }: Stage, { client, recorder }: Visitor): Promise<void> {
  report.step('The merged list, page by page');
  const uris: string[] = [];
  const scopes = new Set<unknown>();
  let pages = 0;
  let first: Exchange | undefined;
  let cursor: string | undefined;
  do {
    const page = await client.request({
      method: 'resources/list',
      params: cursor === undefined ? {} : { cursor },
    });
    pages += 1;
    uris.push(...page.resources.map((resource) => resource.uri));
    scopes.add(page.cacheScope);
    const [exchange] = recorder.take();
    first ??= exchange;
    report.row(
      `page ${pages}`,
      `${page.resources.length} resources, ${page.cacheScope}, ttlMs ${page.ttlMs}`,
    );
    report.row('', cacheStatusLine(exchange));
    cursor = page.nextCursor;
  } while (cursor !== undefined && pages < MOST_PAGES);
  const expected = DOCUMENT_COUNT + cityUris.length;
  report.claim(
    `${expected} resources, each once`,
    uris.length === expected && new Set(uris).size === expected,
    `${uris.length}`,
  );
  report.claim(
    'in the order of the configuration: library, then city',
    uris.join() === [...libraryUris, ...cityUris].join(),
  );
  report.claim('on more than one page', pages > 1, `${pages}`);
  report.claim(
    'with one scope on every page, private because notes takes part',
    scopes.size === 1 && scopes.has('private'),
    [...scopes].join(', '),
  );
  showCurl(report, first);
}

async function readTwice({ report, servers }: Stage, { client, recorder }: Visitor): Promise<void> {
  const read = () => client.readResource({ uri: DOCUMENT_URI }, { cacheMode: 'bypass' }); // not the client's own cache
  const asked = () => servers.library.stats.of('resources/read');

  report.step(`Read ${DOCUMENT_URI}: a miss`);
  const before = asked();
  const first = await read();
  report.row('document', summary(first));
  const miss = showCacheStatus(report, recorder);
  report.claim('it was fetched', has(miss, 'fwd=uri-miss'), cacheStatus(miss));
  report.claim('the library was asked once', asked() === before + 1, `${asked() - before} times`);
  showCurl(report, miss);

  report.step('The same read again: a hit');
  const second = await read();
  report.row('document', summary(second));
  const hit = showCacheStatus(report, recorder);
  const age = hit?.responseHeaders.get('age') ?? 'none';
  report.row('', `Age: ${age}`);
  report.claim('it came from the cache', has(hit, 'hit'), cacheStatus(hit));
  report.claim('the library was not asked', asked() === before + 1, `${asked() - before - 1} times`);
  report.claim('the contents are the same', sameContents(first, second));
  report.claim(
    'the time left has not grown',
    Number(second.ttlMs) <= Number(first.ttlMs),
    `${first.ttlMs}, then ${second.ttlMs}`,
  );
  report.claim('its age is told', /^\d+$/.test(age), age);
  showCurl(report, hit);
}

async function readPrivately(
  { report, servers }: Stage,
  visit: (user: User) => Promise<Visitor>,
  stranger: Visitor,
): Promise<void> {
  report.step(`A private read, ${TODAY_URI}, as two users`);
  const visitors = { alice: await visit('alice'), bob: await visit('bob') };
  const asked = () => servers.notes.stats.of('resources/read');
  const before = asked();
  const read = async (user: User) => {
    const { client, recorder } = visitors[user];
    recorder.take();
    const result = await client.readResource({ uri: TODAY_URI }, { cacheMode: 'bypass' });
    report.row(user, summary(result));
    return { result, exchange: showCacheStatus(report, recorder) };
  };
  const alice = await read('alice');
  const bob = await read('bob');
  const aliceAgain = await read('alice');
  const bobAgain = await read('bob');

  report.claim('alice: fetched, then a hit', isMiss(alice.exchange) && has(aliceAgain.exchange, 'hit'));
  report.claim('bob: fetched for himself, then a hit', isMiss(bob.exchange) && has(bobAgain.exchange, 'hit'));
  report.claim(
    'the notes server was asked once for each of them',
    asked() === before + 2,
    `${asked() - before} times`,
  );
  const denied = await stranger.client.readResource({ uri: TODAY_URI }, { cacheMode: 'bypass' }).then(
    () => false,
    () => true,
  );
  stranger.recorder.take();
  report.claim('somebody without a token gets neither', denied);
  report.verdict(
    'isolation: alice ≠ bob',
    !sameContents(alice.result, bob.result) &&
      sameContents(alice.result, aliceAgain.result) &&
      sameContents(bob.result, bobAgain.result),
  );
  showCurl(report, alice.exchange);
  showCurl(report, bob.exchange);
}

async function complete({ report }: Stage, { client, recorder }: Visitor): Promise<void> {
  report.step(`Completion: cities that begin with "o"`);
  const { completion } = await client.complete({
    ref: { type: 'ref/resource', uri: WEATHER_TEMPLATE },
    argument: { name: 'name', value: 'o' },
  });
  report.row('values', completion.values.join(', '));
  const exchange = recorder.take().at(-1);
  report.claim(
    'the city server answered, though nothing in the request names it',
    completion.values.length > 1 && completion.values.every((value) => cityUris.includes(`city://${value}`)),
    completion.values.join(', '),
  );
  showCurl(report, exchange);
}

async function callTool({ report }: Stage, { client, recorder }: Visitor): Promise<void> {
  report.step('A tool call with progress');
  const startedAt = performance.now();
  const since = () => `${Math.round(performance.now() - startedAt)} ms`.padStart(6);
  const progress: number[] = [];
  let answered = false;
  const result = await client.callTool(
    { name: 'forecast', arguments: { city: 'oslo' } },
    {
      onprogress: (step) => {
        if (!answered) progress.push(step.progress);
        report.row(`progress ${step.progress}/${step.total}`, `${since()}  ${step.message}`);
      },
    },
  );
  answered = true;
  const [content] = result.content;
  report.row(
    'result',
    `${since()}  ${content?.type === 'text' ? content.text.replaceAll('\n', ' · ') : 'no text'}`,
  );
  const exchange = recorder.take().at(-1);
  report.claim('three steps were told before the result', progress.join() === '1,2,3', progress.join());
  report.claim(
    'the answer was streamed',
    exchange?.responseHeaders.get('content-type')?.includes('text/event-stream') === true,
  );
  showCurl(report, exchange);
}

type ReadResult = Awaited<ReturnType<Client['readResource']>>;

const sameContents = (a: ReadResult, b: ReadResult): boolean =>
  JSON.stringify(a.contents) === JSON.stringify(b.contents);

/** Enough of a text to recognise it by. */
function summary({ contents, cacheScope, ttlMs }: ReadResult): string {
  const [content] = contents;
  const text = content !== undefined && 'text' in content ? content.text : '';
  const line = text.split('\n', 1)[0] ?? '';
  return `"${line.length > 60 ? `${line.slice(0, 59)}…` : line}" (${text.length} characters, ${cacheScope}, ttlMs ${ttlMs})`;
}

const cacheStatus = (exchange: Exchange | undefined): string =>
  exchange?.responseHeaders.get('cache-status') ?? 'none';
const cacheStatusLine = (exchange: Exchange | undefined): string => `Cache-Status: ${cacheStatus(exchange)}`;

/** Whether the parameter stands alone in the list, so that `hit` is not found in some other word. */
const has = (exchange: Exchange | undefined, parameter: string): boolean =>
  cacheStatus(exchange)
    .split(/\s*[;,]\s*/)
    .includes(parameter);

const isMiss = (exchange: Exchange | undefined): boolean =>
  /;\s*fwd=(uri-|vary-)?miss\b/.test(cacheStatus(exchange));

/** Shows the Cache-Status of the newest exchange where it has one, and hands the exchange on. */
function showCacheStatus(report: Report, recorder: Recorder): Exchange | undefined {
  const exchange = recorder.take().at(-1);
  if (exchange?.responseHeaders.has('cache-status') === true) report.row('', cacheStatusLine(exchange));
  return exchange;
}

function showCurl(report: Report, exchange: Exchange | undefined): void {
  if (exchange !== undefined) report.command(curlLine(exchange));
}
