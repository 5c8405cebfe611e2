/** The head of a request, on real sockets: what is let in, what is refused, and how a refusal looks. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { classify, SCAN_BYTES } from '../../src/protocol/classify.ts';
import type { Inbound } from '../../src/protocol/exchange.ts';
import { projectRoot } from '../demo/gateway.ts';
import { answer, head, openEdge, request, type TestEdge, Wire } from '../support/edge-kit.ts';
import { mirrored, rpc, until } from '../support/mcp.ts';

let edge: TestEdge;
let seen: Inbound[] = [];

before(async () => {
  edge = await openEdge(
    async (inbound) => {
      seen.push(inbound);
      return answer();
    },
    { listen: 'limits: { body: 100KiB, headers: 8KiB, headerCount: 60 }' },
  );
});
beforeEach(() => {
  seen = [];
});
after(() => edge.close());

/** Sends bytes on a connection of their own. @returns status, headers and body of the first answer. */
async function ask(
  sent: string,
): Promise<{ status: number; headers: string; json: Record<string, never>; text: string }> {
  const wire = await Wire.open(edge.port, sent);
  const text = await wire.sees('\r\n\r\n');
  const [headers = ''] = text.split('\r\n\r\n', 1);
  const length = Number(/content-length: (\d+)/i.exec(headers)?.[1] ?? 0);
  await until(() => wire.text.length >= headers.length + 4 + length, 'the body');
  const body = wire.text.slice(headers.length + 4, headers.length + 4 + length);
  wire.close();
  return {
    status: Number(headers.split(' ')[1]),
    headers,
    json: body === '' ? {} : JSON.parse(body),
    text: body,
  };
}

/** Asks, and checks the whole shape of a refusal. */
async function refused(sent: string, status: number, id: unknown = 7, code = -32600): Promise<string> {
  const got = await ask(sent);
  const error = got.json.error as { code: number; message: string } | undefined;
  assert.equal(`${got.status} ${error?.code}`, `${status} ${code}`, got.text);
  assert.equal(got.json.jsonrpc, '2.0');
  assert.deepEqual(got.json.id ?? 'none', id);
  assert.match(got.headers, /content-type: application\/json/i);
  assert.match(got.headers, /cache-control: no-store/i);
  assert.equal(seen.length, 0, 'it reached the request path');
  return got.headers;
}

function post(
  headers: Readonly<Record<string, string | number>>,
  body = JSON.stringify(rpc('server/discover')),
  line?: string,
): string {
  return (
    head({ ...mirrored('server/discover'), 'Content-Length': Buffer.byteLength(body), ...headers }, line) +
    body
  );
}

test('a request reaches the request path with its headers, its bytes and its route', async () => {
  const { status, text } = await ask(request('server/discover', {}, { 'X-Test': 'Value' }));
  assert.equal(status, 200);
  assert.equal(text, '{"jsonrpc":"2.0","id":7,"result":{"ok":true}}');
  const [inbound] = seen;
  assert.equal(inbound?.route, '/mcp');
  assert.equal(inbound?.head.headers.get('x-test'), 'Value');
  assert.equal(inbound?.body.kind, 'whole');
  assert.deepEqual(JSON.parse(Buffer.from(inbound.body.bytes).toString()), rpc('server/discover'));
});

/** What the official client 2.4.0 sends, as recorded. */
const CAPTURES = join(projectRoot(import.meta.dirname), 'test/golden/official-client');

test('every request that the official client was seen to send is let in', async () => {
  const files = readdirSync(CAPTURES);
  assert.ok(files.length > 25);
  for (const file of files) {
    for (const text of readFileSync(join(CAPTURES, file), 'utf8').split(/(?=^POST )/m)) {
      if (!text.startsWith('POST')) continue;
      const [headers = '', body = ''] = text.split(/\r?\n\r?\n/);
      const lines = headers
        .replaceAll(/\r?\n/g, '\r\n')
        .replace(/content-length: .*/, `content-length: ${Buffer.byteLength(body)}`);
      assert.equal((await ask(`${lines}\r\n\r\n${body}`)).status, 200, file);
    }
  }
});

test('a body may be chunked, and come after 100 Continue', async () => {
  const body = JSON.stringify(rpc('server/discover'));
  const pieces = [body.slice(0, 9), body.slice(9)].map(
    (piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`,
  );
  const chunked = head({ 'Transfer-Encoding': 'chunked' });
  assert.equal((await ask(`${chunked}${pieces.join('')}0\r\n\r\n`)).status, 200);

  const wire = await Wire.open(edge.port, head({ 'Content-Length': body.length, Expect: '100-continue' }));
  await wire.sees('HTTP/1.1 100 Continue\r\n\r\n');
  wire.send(body);
  await wire.sees('HTTP/1.1 200 OK');
  wire.close();
});

test('a connection carries many requests, also sent at once', async () => {
  const warnings: unknown[] = [];
  process.on('warning', (warning) => warnings.push(warning));
  const wire = await Wire.open(edge.port, request().repeat(30));
  await until(() => wire.text.split('"ok":true').length === 31, 'all answers');
  assert.match(wire.text, /Keep-Alive: timeout=72/);
  assert.deepEqual(warnings, []);
  wire.close();
});

describe('R5, R8: a refusal for the head carries the id of the body', () => {
  const cases: readonly [name: string, sent: string, status: number][] = [
    ['foreign Host', post({ Host: 'evil.example' }), 403],
    ['foreign Origin', post({ Origin: 'http://evil.example' }), 403],
    ['query string', post({}, undefined, 'POST /mcp?token=x HTTP/1.1'), 400],
    ['unknown path', post({}, undefined, 'POST /nowhere HTTP/1.1'), 404],
    ['R4: a header sent twice', post({ Authorization: 'a', authorization: 'b' }), 400],
    ['R7: another media type', post({ 'Content-Type': 'text/plain' }), 415],
    ['R7: a compressed body', post({ 'Content-Encoding': 'gzip' }), 415],
    [
      'R7: too many headers',
      post(Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`X-${i}`, 1]))),
      431,
    ],
    ['HTTP/1.1 without Host', post({}).replace('Host: localhost\r\n', ''), 400],
  ];
  for (const [name, sent, status] of cases) test(name, () => refused(sent, status).then(() => {}));

  test('ids come back as they were written', async () => {
    for (const id of ['"ünï-1"', '9007199254740993', '-0', '"a\\u0041"']) {
      const { text } = await ask(post({ Host: 'evil.example' }, `{"method":"x","id":${id}}`));
      assert.ok(text.startsWith(`{"jsonrpc":"2.0","id":${Buffer.from(id).toString('latin1')},`), text);
    }
  });

  test('an id that is none, or not readable, is left out', async () => {
    for (const body of ['{"id":null}', '{"id":1.5}', '{"id":1,"id":2}', '[{"id":1}]', '{"id":1', '']) {
      await refused(post({ Host: 'evil.example' }, body), 403, 'none');
    }
  });

  test('behind much else in a large body', async () => {
    const body = `{"params":{"x":"${'y'.repeat(SCAN_BYTES)}"},"id":7}`;
    const headers = await refused(post({ Host: 'evil.example' }, body), 403);
    assert.doesNotMatch(headers, /connection: close/i);
  });

  test('but not in a body larger than is read, and the connection closes', async () => {
    const body = `{"params":{"x":"${'y'.repeat(200 * 1024)}"},"id":7}`;
    const headers = await refused(post({ Host: 'evil.example' }, body), 403, 'none');
    assert.match(headers, /connection: close/i);
  });

  test('a client that asks before it sends is told at once', () =>
    refused(head({ Host: 'evil.example', 'Content-Length': 9, Expect: '100-continue' }), 403, 'none').then(
      () => {},
    ));
});

describe('R2: header bytes that no name can be spelled with', () => {
  for (const [name, value] of [
    ['raw UTF-8', 'caf\u00c3\u00a9'],
    ['raw Latin-1', 'caf\u00e9'],
    ['bad base64', '=?base64?@@?='],
    ['nothing', ''],
  ]) {
    test(`${name} reaches the classifier as it came, and is -32020`, async () => {
      const own = await openEdge(async ({ head: received, body }) => {
        const message = classify(received, body);
        return message.kind === 'refused' ? message : answer();
      });
      const sent = request('tools/call', { name: 'x' }, { 'Mcp-Name': value as string });
      const wire = await Wire.open(own.port, Buffer.from(sent, 'latin1'));
      assert.match(await wire.sees('"error"'), /^HTTP\/1.1 400 [\s\S]*"id":7,"error":\{"code":-32020/);
      await own.close();
    });
  }
});

describe('R7: limits have their own statuses', () => {
  test('a declared length over the limit is 413 before a byte of it is read', async () => {
    const headers = await refused(head({ 'Content-Length': 100 * 1024 + 1 }), 413, 'none');
    assert.match(headers, /connection: close/i);
  });

  test('a body that grows over the limit is 413, with the id that went by', async () => {
    const chunk = `${(60_000).toString(16)}\r\n${' '.repeat(60_000)}\r\n`;
    await refused(`${head({ 'Transfer-Encoding': 'chunked' })}7\r\n{"id":7\r\n${chunk}${chunk}`, 413);
  });

  test('headers over the size are 431', () =>
    refused(post({ 'X-Large': 'x'.repeat(9_000) }), 431, 'none').then(() => {}));

  test('a body of exactly the limit is read', async () => {
    const body = JSON.stringify(rpc('server/discover', { pad: '' }));
    const full = body.replace('"pad":""', `"pad":"${'x'.repeat(100 * 1024 - body.length)}"`);
    assert.equal((await ask(post({}, full))).status, 200);
  });
});

describe('R4: what Node refuses itself looks like ours', () => {
  const cases: readonly [name: string, sent: string, status: number][] = [
    [
      'Content-Length with Transfer-Encoding',
      `${head({ 'Content-Length': 5, 'Transfer-Encoding': 'chunked' })}0\r\n\r\n`,
      400,
    ],
    [
      'Transfer-Encoding with Content-Length',
      `${head({ 'Transfer-Encoding': 'chunked', 'Content-Length': 5 })}0\r\n\r\n`,
      400,
    ],
    ['Content-Length twice', `${head({ 'Content-Length': 2, 'content-length': 2 })}{}`, 400],
    ['no HTTP at all', 'hello\r\n\r\n', 400],
    ['a bad character in a header', head({ 'X-A': 'a\u0001b' }), 400],
    ['a space before the colon', head({ 'X-A ': 'b' }), 400],
    ['a method of a later HTTP', 'QUERY /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n', 405],
    ['CONNECT', 'CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n', 405],
  ];
  for (const [name, sent, status] of cases) {
    test(name, async () => {
      const headers = await refused(sent, status, 'none');
      assert.match(headers, /connection: close/i);
    });
  }

  test('a chunk that is none, in the middle of a body', async () => {
    await refused(`${head({ 'Transfer-Encoding': 'chunked' })}2\r\n{}\r\nzz\r\n`, 400, 'none');
  });

  test('rubbish behind a request does not cost it its answer', async () => {
    const wire = await Wire.open(edge.port, `${request()}rubbish\r\n\r\n`);
    const text = await wire.sees('"ok":true');
    assert.match(text, /^HTTP\/1.1 200 OK/);
    wire.close();
  });
});

describe('what is not a POST', () => {
  for (const method of ['GET', 'DELETE', 'PUT', 'PATCH', 'TRACE', 'PROPFIND']) {
    test(`${method} is 405 with Allow, whatever its body`, async () => {
      const headers = await refused(
        `${method} /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: x;;\r\nContent-Length: 2\r\n\r\n{}`,
        405,
        'none',
      );
      assert.match(headers, /allow: POST/i);
    });
  }

  test('HEAD is 405 without a body', async () => {
    const wire = await Wire.open(
      edge.port,
      'HEAD /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
    );
    const text = await wire.end();
    assert.match(text, /^HTTP\/1.1 405 [\s\S]*allow: POST/i);
    assert.ok(text.endsWith('\r\n\r\n'));
  });

  test('an unknown or unreadable path is refused in our shape', async () => {
    await refused('GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n', 404, 'none');
    await refused('GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n', 400, 'none');
    await refused('OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n', 404, 'none');
  });

  test('Host and Origin are looked at first', async () => {
    await refused('GET /mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n', 403, 'none');
    await refused(
      'OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n',
      403,
      'none',
    );
  });
});

describe('R12: cross-origin', () => {
  test('a preflight of an allowed origin is answered', async () => {
    const { status, headers } = await ask(
      'OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:3000\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: mcp-method,mcp-param-city,x-evil\r\n\r\n',
    );
    assert.equal(status, 204);
    assert.match(headers, /access-control-allow-origin: http:\/\/localhost:3000/i);
    assert.match(headers, /access-control-allow-headers: mcp-method, mcp-param-city\r\n/i);
  });

  test('answers and refusals to an allowed origin can be read there, no others', async () => {
    const origin = { Origin: 'http://localhost:3000' };
    for (const sent of [
      request('server/discover', {}, origin),
      post({ ...origin, 'Content-Type': 'x' }),
      `GET /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: ${origin.Origin}\r\n\r\n`,
    ]) {
      const { headers } = await ask(sent);
      assert.match(headers, /access-control-allow-origin: http:\/\/localhost:3000/i);
      assert.match(
        headers,
        /access-control-expose-headers: Cache-Status, Age, WWW-Authenticate, Retry-After, Proxy-Status/i,
      );
    }
    assert.doesNotMatch((await ask(request())).headers, /access-control/i);
    assert.doesNotMatch((await ask(post({ Origin: 'http://evil.example' }))).headers, /access-control/i);
  });
});

test('R45: a request leaves one line and its counts, a refusal its reason', async () => {
  const shared = edge;
  edge = await openEdge(async () => answer());
  try {
    await ask(request());
    await ask(post({ Host: 'evil.example' }));
    await ask('BREW /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await ask('GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until(() => edge.access.length >= 4, 'four lines');
    assert.deepEqual(
      edge.access.map(({ httpMethod, status, route, rpcError }) => [httpMethod, status, route, rpcError]),
      [
        ['POST', 200, '/mcp', undefined],
        ['POST', 403, '/mcp', -32600],
        ['other', 405, undefined, undefined],
        ['GET', 405, '/mcp', undefined],
      ],
    );
    assert.equal(await edge.metric('headgate_http_requests_total{method="POST",code="200"}'), 1);
    assert.equal(await edge.metric('headgate_requests_rejected_total{reason="host"}'), 1);
    assert.equal(await edge.metric('headgate_requests_rejected_total{reason="method_not_allowed"}'), 2);
    assert.equal(await edge.metric('headgate_http_requests_in_flight'), 0);
  } finally {
    await edge.close();
    edge = shared;
  }
});
