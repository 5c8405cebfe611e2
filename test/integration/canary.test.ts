/**
 * Canaries: a string of its own in every place that may hold a secret, through a real gateway at its most talkative,
 * past every kind of success, refusal and failure. Afterwards none is where it does not belong (R22, R46).
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { encodeHeaderValue } from '../../src/protocol/headers.ts';
import { ALICES, alices, CALL_BODIES, canaries, canary, found } from '../fuzz/canaries.ts';
import { type Got, type Running, run, send, sendRaw, startGateway } from '../fuzz/canary-process.ts';
import { FAULTS, speak } from '../fuzz/canary-upstream.ts';
import { type FaultServer, startFaultServer } from '../support/fault-server.ts';
import { meta, mirrored, rpc, VERSION } from '../support/mcp.ts';

const JSON_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** Alice: a canary in every header that may say who she is. */
const aliceHeaders = (): Record<string, string> => ({
  authorization: `Bearer ${alices('authorization')}`,
  cookie: `session=${alices('cookie')}; other=1`,
  'x-api-key': alices('x-api-key'),
  'proxy-authorization': `Basic ${Buffer.from(`alice:${alices('proxy-authorization')}`).toString('base64')}`,
  'x-tenant': alices('partition-header'),
  'x-user': alices('forwarded-header'),
  'mcp-param-region': alices('param-header'),
  'user-agent': alices('user-agent'),
  referer: `http://x/${alices('referer')}`,
});
const BOB = { authorization: 'Bearer bob', 'x-user': 'bob' };

/** A sign that biome and people take for a slip where no template is. */
const VAR = '$';

function configText(url: string, format: string): string {
  const query = `key=${VAR}{QUERY}&plain=${canary('url-query-literal')}`;
  return `
version: 1
secrets: ["${VAR}{file:./secret}"]
listen: { address: 127.0.0.1:0, limits: { body: 8KiB, headers: 8KiB, headerCount: 60, bodyIdle: 300ms } }
status: 127.0.0.1:0
admin: false
upstreams:
  docs:
    url: "${url}?${query}"
    auth: { type: bearer, token: "${VAR}{TOKEN}" }
    timeouts: { response: 300ms, call: 300ms }
    forwardHeaders: [X-User]
  keyed:
    url: "${url}/${VAR}{PATH_KEY}"
    auth: { type: header, name: X-Up-Key, value: "${VAR}{file:./header-key}" }
    timeouts: { response: 300ms, call: 300ms }
  faulty:
    url: "${url}?${query}"
    auth: { type: bearer, token: "literal-${canary('literal-token')}" }
    timeouts: { response: 400ms, call: 400ms, streamIdle: 400ms }
  mine:
    url: "${url}"
    auth: { type: forward }
    forwardHeaders: [X-User]
    timeouts: { response: 300ms, call: 300ms }
  dead: { url: "http://127.0.0.1:1/mcp?key=${VAR}{QUERY}", auth: { type: bearer, token: "${VAR}{TOKEN}" } }
routes:
  - { path: /mcp, upstreams: [docs, keyed] }
  - { path: /mine, upstreams: [mine] }
  - { path: /faulty, upstreams: [faulty] }
  - { path: /dead, upstreams: [dead] }
cache: { partition: { headers: [X-Tenant] } }
log: { level: debug, format: ${format} }
`;
}

const ENVIRONMENT: Readonly<Record<string, string>> = {
  TOKEN: canary('bearer-token'),
  QUERY: canary('url-query'),
  PATH_KEY: canary('url-path'),
  NO_COLOR: '1',
};

/** What the configuration takes from files. */
function writeFiles(folder: string): void {
  writeFileSync(join(folder, 'secret'), `${canary('secrets')}${'0'.repeat(32)}\n`);
  writeFileSync(join(folder, 'header-key'), `${canary('header-value')}\n`);
}

for (const format of ['json', 'pretty']) {
  describe(`R22 R46: with the log at debug, as ${format}, no canary is where it does not belong`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-canary-'));
    const file = join(folder, 'headgate.yaml');
    /** Answers, each with the caller who got it. */
    const got: { readonly who: 'alice' | 'bob'; readonly what: string; readonly text: string }[] = [];
    let upstream: FaultServer;
    let gateway: Running;
    let status = '';

    before(async () => {
      upstream = await startFaultServer(speak);
      writeFiles(folder);
      writeFileSync(file, configText(`http://127.0.0.1:${upstream.port}/mcp`, format));
      gateway = await startGateway(file, ENVIRONMENT);
      for (const route of ['/mcp', '/mine', '/faulty', '/dead']) {
        await asAlice(route);
        await asBob(route);
        await asBob(route);
      }
      await refusals();
      await forgeries();
      for (const path of [
        '/metrics',
        '/livez',
        '/readyz',
        `/${canary('status-path')}?x=${canary('status-query')}`,
      ])
        status += (await send(gateway.status + path, '', {}, 'GET')).text;
      await gateway.end();
    });

    after(async () => {
      gateway?.child.kill('SIGKILL');
      await upstream?.close();
      rmSync(folder, { recursive: true, force: true });
    });

    async function ask(
      who: 'alice' | 'bob',
      route: string,
      method: string,
      params: Record<string, unknown> = {},
      more: { readonly id?: string; readonly headers?: Record<string, string> } = {},
    ): Promise<Got> {
      const named =
        method === 'resources/read'
          ? params.uri
          : /^(tools\/call|prompts\/get)$/.test(method)
            ? params.name
            : undefined;
      const headers = {
        ...JSON_HEADERS,
        ...mirrored(method, named as string | undefined),
        ...(who === 'alice' ? aliceHeaders() : BOB),
        ...more.headers,
      };
      const answered = await send(gateway.mcp + route, JSON.stringify(rpc(method, params, more.id)), headers);
      got.push({ who, what: `${method} ${route}`, text: answered.text });
      return answered;
    }

    /** Successes, hits and failures of one who has something to hide. */
    async function asAlice(route: string): Promise<void> {
      const _meta = meta({
        'io.modelcontextprotocol/clientInfo': { name: alices('client-name'), version: '1' },
        progressToken: alices('progress-token'),
        'acme/own': alices('unknown-meta'),
      });
      const id = alices('id');
      for (const method of [
        'server/discover',
        'resources/list',
        'resources/templates/list',
        'tools/list',
        'prompts/list',
      ])
        await ask('alice', route, method, { _meta }, { id });
      // Under the very key that Bob's will have: what is hers of it may not come back to him.
      const plain = meta({
        'io.modelcontextprotocol/clientInfo': { name: alices('client-name'), version: '1' },
        progressToken: alices('progress-token'),
      });
      for (const uri of ['docs://known', 'docs://nobody/knows'])
        await ask('alice', route, 'resources/read', { uri, _meta: plain });
      const uris = [
        'docs://known',
        `docs://${alices('listed-uri')}`,
        `docs://unknown/${alices('unknown-uri')}`,
      ];
      for (const uri of [...uris, ...uris])
        await ask('alice', route, 'resources/read', { uri, _meta }, { id });
      const gated = `docs://${alices('gated-uri')}/gated`;
      await ask('alice', route, 'resources/read', { uri: gated, _meta });
      await ask('alice', route, 'resources/read', {
        uri: gated,
        requestState: alices('request-state'),
        inputResponses: { pin: { action: 'accept', content: { pin: alices('input-response') } } },
        _meta,
      });
      const secret = { text: alices('argument'), nested: [{ deep: alices('nested-argument') }] };
      await ask('alice', route, 'tools/call', { name: 'echo', arguments: secret, _meta }, { id });
      await ask('alice', route, 'prompts/get', {
        name: 'summarise',
        arguments: { topic: alices('prompt-argument') },
        _meta,
      });
      await ask('alice', route, 'completion/complete', {
        ref: { type: 'ref/prompt', name: 'summarise' },
        argument: { name: 'topic', value: alices('completion-argument') },
        _meta,
      });
      await ask('alice', route, 'resources/list', { cursor: alices('cursor'), _meta });
      for (const name of Object.keys(FAULTS)) {
        await ask('alice', route, 'tools/call', { name, arguments: secret, _meta });
        await ask('alice', route, 'resources/read', {
          uri: `docs://${alices('failing-uri')}/${name}`,
          _meta,
        });
      }
    }

    /** Everything again, of one who knows nothing. */
    async function asBob(route: string): Promise<void> {
      for (const method of [
        'server/discover',
        'resources/list',
        'resources/templates/list',
        'tools/list',
        'prompts/list',
      ])
        await ask('bob', route, method);
      for (const uri of ['docs://known', 'docs://nobody/knows', 'docs://x/html', 'docs://x/broken'])
        await ask('bob', route, 'resources/read', { uri });
      await ask('bob', route, 'tools/call', { name: 'echo', arguments: {} });
      await ask('bob', route, 'tools/call', { name: 'html', arguments: {} });
      await ask('bob', route, 'prompts/get', { name: 'summarise' });
    }

    /** Every kind of refusal, each with something in it that is nobody else's. */
    async function refusals(): Promise<void> {
      const url = `${gateway.mcp}/mcp`;
      const headers = { ...JSON_HEADERS, ...mirrored('tools/list'), ...aliceHeaders() };
      const body = JSON.stringify(rpc('tools/list', { _meta: meta({ x: alices('refused-meta') }) }));
      const statuses = new Set<number>();
      const refused = async (answered: Promise<Got>): Promise<void> => {
        const { status: code, text } = await answered;
        statuses.add(code);
        got.push({ who: 'alice', what: `refusal ${code}`, text });
      };
      await refused(send(url, `{"x":"${alices('bad-json')}",}`, headers));
      await refused(send(url, body, { ...headers, 'mcp-method': alices('header-method') }));
      await refused(send(url, body, { ...headers, 'mcp-protocol-version': alices('header-version') }));
      await refused(
        send(url, body.replaceAll(VERSION, alices('version')), {
          ...headers,
          'mcp-protocol-version': alices('version'),
        }),
      );
      await refused(
        send(url, body.replace('tools/list', alices('method')), {
          ...headers,
          'mcp-method': alices('method'),
        }),
      );
      await refused(send(url, body, { ...headers, 'content-type': `text/${alices('content-type')}` }));
      await refused(send(url, body, { ...headers, 'content-encoding': alices('content-encoding') }));
      await refused(send(url, `"${alices('large-body')}${'x'.repeat(20_000)}"`, headers));
      await refused(send(url, body, { ...headers, 'x-large': alices('large-header') + 'x'.repeat(7_000) }));
      await refused(send(url, body, { ...headers, host: `${alices('host')}.example` }));
      await refused(send(url, body, { ...headers, origin: `https://${alices('origin')}.example` }));
      await refused(send(`${url}?token=${alices('query')}`, body, headers));
      await refused(send(`${gateway.mcp}/${alices('path')}`, body, headers));
      await refused(send(url, '', headers, 'GET'));
      await refused(
        send(url, '', { ...headers, 'access-control-request-method': alices('preflight') }, 'OPTIONS'),
      );
      await refused(
        send(url, JSON.stringify(rpc('resources/read', { uri: `no URI ${alices('bad-uri')}` })), {
          ...headers,
          ...mirrored('resources/read', `no URI ${alices('bad-uri')}`),
        }),
      );
      await refused(
        send(url, JSON.stringify(rpc('tools/call', { name: alices('tool-of-body') })), {
          ...headers,
          ...mirrored('tools/call', 'x'),
        }),
      );
      const raw = [
        `POST /mcp HTTP/1.1\r\nHost: ${gateway.mcp.slice(7)}\r\nAuthorization: ${alices('first-of-two')}\r\nAuthorization: ${alices('second-of-two')}\r\nContent-Length: 0\r\n\r\n`,
        `${alices('request-line')} nonsense\r\n\r\n`,
        `POST /mcp HTTP/1.1\r\nHost: x\r\n${alices('header-name')} : x\r\n\r\n`,
        `POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: ${alices('transfer-encoding')}\r\n\r\n`,
        `POST /mcp HTTP/1.1\r\nHost: ${gateway.mcp.slice(7)}\r\nX-A: ${alices('aborted-header')}\r\nContent-Length: 500\r\n\r\n{"x":"${alices('aborted-body')}"`,
      ];
      for (const bytes of raw)
        got.push({ who: 'alice', what: 'raw', text: await sendRaw(gateway.mcp, bytes) });
      for (const code of [400, 403, 404, 405, 413, 415])
        assert.ok(statuses.has(code), `no refusal was ${code}: ${[...statuses]}`);
    }

    /** Names that would be a line of their own. */
    async function forgeries(): Promise<void> {
      const name = 'echo\n{"level":"error","msg":"forged"}\r\u001b[2J\u2028\u0085\u202eforged';
      for (const route of ['/mcp', '/mine']) {
        await ask('alice', route, 'tools/call', { name, arguments: {} });
        await ask('alice', route, 'prompts/get', { name });
        await ask(
          'alice',
          route,
          'resources/read',
          { uri: 'docs://a' },
          { headers: { 'mcp-name': encodeHeaderValue(`docs://${name}`) } },
        );
      }
    }

    test('what was to be seen has been: by the upstreams, and by Alice herself', () => {
      const heads = upstream.requests.map((request) => request.head).join('\n');
      for (const place of [
        'bearer-token',
        'header-value',
        'url-query',
        'url-path',
        'literal-token',
        'authorization',
        'forwarded-header',
        'param-header',
      ])
        assert.ok(heads.includes(canary(place)), `no upstream was told ${place}`);
      const alice = got
        .filter(({ who }) => who === 'alice')
        .map(({ text }) => text)
        .join('\n');
      for (const place of [
        'authorization',
        'argument',
        'request-state',
        'rpc-error-message',
        'listed-uri',
        'unknown-uri',
      ])
        assert.ok(alice.includes(canary(place)), `Alice was not told ${place}`);
      assert.match(alice, /headgate; hit/);
      assert.match(gateway.stderr(), /"?status"?[=:]502/);
    });

    test('no upstream is told what is not meant for it', () => {
      const heads = upstream.requests.map((request) => request.head);
      const kept = [
        'cookie',
        'x-api-key',
        'proxy-authorization',
        'partition-header',
        'user-agent',
        'referer',
      ];
      assert.deepEqual(found(heads.join('\n'), kept), []);
      const owns = ['bearer-token', 'literal-token', 'header-value'];
      for (const one of heads) assert.ok(found(one, ['authorization', ...owns]).length <= 1, one);
      for (const one of heads.filter((text) => found(text, ['literal-token', 'header-value']).length > 0))
        assert.deepEqual(found(one, ['forwarded-header']), []);
    });

    test('the log and the start-up summary', () => {
      assert.deepEqual(found(gateway.stderr()), []);
      assert.deepEqual(found(gateway.stdout()), []);
      assert.doesNotMatch(gateway.stderr(), /docs:\/\//, 'a URI is in the log');
    });

    test('a name cannot forge a line of the log', () => {
      const lines = gateway
        .stderr()
        .split('\n')
        .filter((line) => line !== '');
      assert.ok(
        lines.some((line) => line.includes('forged')),
        'names of tools are written',
      );
      assert.doesNotMatch(gateway.stderr(), /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202e]/);
      for (const line of lines) {
        if (format === 'json') assert.notEqual((JSON.parse(line) as { msg?: unknown }).msg, 'forged');
        else assert.match(line, /^(\d\d:\d\d:\d\d\.\d{3} | {4})/);
      }
    });

    test('metrics and probes', () => {
      assert.match(status, /headgate_/);
      assert.deepEqual(found(status), []);
      assert.doesNotMatch(status, /docs:\/\/|forged/);
    });

    test('answers to another caller', () => {
      for (const { who, what, text } of got) if (who === 'bob') assert.deepEqual(found(text), [], what);
    });

    test('answers to the same caller: nothing of the gateway, of its upstreams or of their transport', () => {
      const nobodys = [...canaries.keys()].filter((place) => !ALICES.has(place));
      for (const { what, text } of got) {
        // The body of a call's answer is hers as it comes; of what is read, nothing but a result is.
        const isCall = what.startsWith('tools/call');
        const hidden = nobodys.filter(
          (place) =>
            !(isCall && CALL_BODIES.has(place)) &&
            // Where her own token was refused, she is told how to get a better one (R37).
            !(what.endsWith('/mine') && place === 'own-challenge'),
        );
        assert.deepEqual(found(text, hidden), [], what);
        assert.ok(!text.includes(`:${upstream.port}`), `${what} tells where an upstream is`);
      }
    });
  });
}

test('R46: no canary is in what print-config and validate say of a good file and of bad ones', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-canary-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'headgate.yaml');
  writeFiles(folder);
  const good = configText('http://127.0.0.1:1/mcp', 'json');
  const bad = [
    good.replace('400ms', `${VAR}{TOKEN}`),
    good.replace('type: bearer', `type: ${VAR}{TOKEN}`),
    good.replace('version: 1', `version: ${VAR}{TOKEN}`),
    good.replace('path: /mine', `path: "no path ${VAR}{TOKEN}"`),
    good.replace('upstreams: [mine]', `upstreams: ["${VAR}{TOKEN}"]`),
    good.replace('address: 127.0.0.1:0', `address: "${VAR}{TOKEN}"`),
    good.replace('url: "http', `url: "${VAR}{TOKEN}http`),
    `${good}\n  ] broken: ${canary('literal-token')}\n`,
  ];
  for (const text of [good, ...bad]) {
    writeFileSync(file, text);
    for (const command of ['print-config', 'validate']) {
      const printed = await run([command, '-c', file], ENVIRONMENT);
      assert.match(printed, text === good && command === 'print-config' ? /\[redacted\]/ : /\S/);
      assert.deepEqual(found(printed), [], `${command}: ${printed}`);
    }
  }
});
