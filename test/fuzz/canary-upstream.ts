/** An upstream for the canaries: it repeats what it was told, and fails in every way, each with a canary. */
import { answer, chunk, event, type Fault, head, openEvents, PROGRESS } from '../support/fault-server.ts';
import { VERSION } from '../support/mcp.ts';
import { alices, canary } from './canaries.ts';

const HINTS = { resultType: 'complete', ttlMs: 60_000, cacheScope: 'private' };
/** Headers of upstream answers that are nobody's business. */
const leaky = (): Record<string, string> => ({
  'X-Leak': canary('response-header'),
  'Set-Cookie': `s=${canary('set-cookie')}`,
  Server: canary('server-header'),
  'Mcp-Session-Id': canary('session-header'),
});

type Spoken = { readonly id: unknown; readonly method: string; readonly params: Record<string, unknown> };

/** What each name of a resource or tool brings about. */
export const FAULTS: Readonly<Record<string, Fault>> = {
  rpcerror: async (request) => {
    const { id } = JSON.parse((await request.body()).toString()) as Spoken;
    const error = {
      code: -32000,
      message: alices('rpc-error-message'),
      data: { why: alices('rpc-error-data') },
    };
    answer(request, JSON.stringify({ jsonrpc: '2.0', id, error }), { headers: leaky() });
  },
  ownerror: async (request) => {
    const { id } = JSON.parse((await request.body()).toString()) as Spoken;
    const error = {
      code: -32022,
      message: canary('own-error-message'),
      data: { why: canary('own-error-data') },
    };
    answer(request, JSON.stringify({ jsonrpc: '2.0', id, error }), { status: 400, headers: leaky() });
  },
  html: async (request) => {
    await request.body();
    const html = `<html><b>${canary('html-body')}</b> at ${canary('html-host')}</html>`;
    answer(request, html, { status: 502, headers: { ...leaky(), 'Content-Type': 'text/html' } });
  },
  forbidden: async (request) => {
    await request.body();
    const challenge = `Bearer realm="${canary('own-challenge')}"`;
    answer(request, canary('forbidden-body'), {
      status: 401,
      headers: { ...leaky(), 'WWW-Authenticate': challenge },
    });
  },
  broken: async (request) => {
    await request.body();
    answer(request, `{"jsonrpc":"2.0","result":{"x":"${canary('broken-json')}",}`, { headers: leaky() });
  },
  wrongid: async (request) => {
    await request.body();
    answer(request, `{"jsonrpc":"2.0","id":"${canary('wrong-id')}","result":{"contents":[]}}`, {
      headers: leaky(),
    });
  },
  wrongtype: async (request) => {
    await request.body();
    answer(request, canary('text-body'), {
      headers: { ...leaky(), 'Content-Type': `text/${canary('media-type')}` },
    });
  },
  redirect: async (request) => {
    await request.body();
    const location = `http://127.0.0.1:1/${canary('location')}`;
    answer(request, '', { status: 307, headers: { ...leaky(), Location: location } });
  },
  badgzip: async (request) => {
    await request.body();
    answer(request, canary('gzip-body'), { headers: { ...leaky(), 'Content-Encoding': 'gzip' } });
  },
  garbage: async (request) => {
    await request.body();
    request.socket.end(`${canary('garbage')} not HTTP\r\n\r\n`);
  },
  cut: async (request) => {
    await request.body();
    request.socket.write(head(200, { 'Content-Type': 'application/json', 'Content-Length': 5_000 }));
    request.socket.end(`{"jsonrpc":"2.0","x":"`);
  },
  ssecut: async (request) => {
    await request.body();
    openEvents(request);
    request.socket.write(chunk(`${event(PROGRESS)}data: {"jsonrpc":`));
    request.socket.end();
  },
  reset: async (request) => {
    await request.body();
    request.socket.resetAndDestroy();
  },
  hang: () => undefined,
};

/** What a caller sent, but for what the gateway put in its place. */
function callersOwn(authorization = ''): string {
  return ['bearer-token', 'literal-token'].some((place) => authorization.includes(canary(place)))
    ? ''
    : authorization;
}

/** An upstream that repeats to each caller what that caller told it, and fails by name. */
export const speak: Fault = async (request) => {
  const spoken = JSON.parse((await request.body()).toString()) as Spoken;
  const { id, method, params } = spoken;
  const subject = String(params.uri ?? params.name ?? '');
  const fault = Object.keys(FAULTS).find((name) => subject.endsWith(`/${name}`) || subject === name);
  if (fault !== undefined) return FAULTS[fault]?.(request);
  const { 'x-user': user = '' } = request.headers;
  const authorization = callersOwn(request.headers.authorization);
  const isAlice = [authorization, user].some((told) => told.includes('cnry'));
  const reply = (result: unknown): void =>
    answer(request, JSON.stringify({ jsonrpc: '2.0', id, result }), { headers: leaky() });
  switch (method) {
    case 'server/discover':
      return reply({
        ...HINTS,
        supportedVersions: [VERSION],
        capabilities: { resources: {}, tools: {}, prompts: {}, completions: {} },
        instructions: `for ${authorization} ${user}`,
      });
    case 'resources/list': {
      const own = isAlice ? [{ uri: `docs://${alices('listed-uri')}`, name: alices('listed-name') }] : [];
      // A bad item goes alone, and is told in the log by its place only.
      const bad = { uri: `no URI ${canary('bad-item')}`, name: canary('bad-item-name') };
      return reply({ ...HINTS, resources: [{ uri: 'docs://known', name: 'known' }, ...own, bad] });
    }
    case 'resources/templates/list':
      return reply({
        ...HINTS,
        resourceTemplates: [{ uriTemplate: `{!${canary('bad-template')}}`, name: 'x' }],
      });
    case 'tools/list':
      return reply({
        ...HINTS,
        tools: ['echo', ...Object.keys(FAULTS)].map((name) => ({ name, inputSchema: { type: 'object' } })),
      });
    case 'prompts/list':
      return reply({ ...HINTS, prompts: [{ name: 'summarise' }] });
    case 'resources/read': {
      if (subject.endsWith('/gated') && params.requestState === undefined)
        return reply({
          resultType: 'input_required',
          inputRequests: {},
          requestState: alices('request-state'),
        });
      const contents = [{ uri: subject, text: `${authorization} ${user} ${JSON.stringify(params)}` }];
      return reply({ ...HINTS, contents });
    }
    case 'completion/complete':
      return reply({ completion: { values: [JSON.stringify(params.argument)] } });
    default:
      return reply({ content: [{ type: 'text', text: JSON.stringify(params) }], messages: [] });
  }
};
