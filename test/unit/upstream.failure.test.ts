/** Transport failures are named once; retry, blame and metrics follow from the name. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:net';
import { after, test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { againAfter, failureOf, type Stage, traitsOf, UpstreamError } from '../../src/upstream/failure.ts';
import type { Failure, ReadOutcome } from '../../src/upstream/types.ts';
import { startFaultServer } from '../support/fault-server.ts';
import { selfSigned } from '../support/self-signed.ts';
import { readRequest, rig } from '../support/upstream-kit.ts';

const coded = (code: string, message = 'boom'): Error => Object.assign(new Error(message), { code });
const named = (error: unknown, stage: Stage): string => {
  const { kind, proxyError } = failureOf(error, stage);
  return `${kind} ${proxyError}`;
};

const TABLE: readonly (readonly [code: string, stage: Stage, expected: string])[] = [
  ['ECONNREFUSED', 'unsent', 'connect connection_refused'],
  ['ENOTFOUND', 'unsent', 'connect dns_error'],
  ['EAI_AGAIN', 'unsent', 'connect dns_error'],
  ['EHOSTUNREACH', 'unsent', 'connect destination_ip_unroutable'],
  ['CERT_HAS_EXPIRED', 'unsent', 'connect tls_certificate_error'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'unsent', 'connect tls_certificate_error'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'unsent', 'connect tls_certificate_error'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'unsent', 'connect tls_protocol_error'],
  ['ECONNRESET', 'unsent', 'connect destination_unavailable'],
  ['UND_ERR_CONNECT_TIMEOUT', 'unsent', 'timeout connection_timeout'],
  ['ETIMEDOUT', 'unsent', 'timeout connection_timeout'],
  ['ETIMEDOUT', 'sent', 'timeout http_response_timeout'],
  ['ECONNRESET', 'sent', 'reset connection_terminated'],
  ['UND_ERR_SOCKET', 'sent', 'reset connection_terminated'],
  ['EPIPE', 'sent', 'reset connection_terminated'],
  ['ECONNRESET', 'answering', 'reset http_response_incomplete'],
  ['UND_ERR_SOCKET', 'answering', 'reset http_response_incomplete'],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'answering', 'reset http_response_incomplete'],
  ['HPE_INVALID_CONSTANT', 'answering', 'broken http_protocol_error'],
  ['UND_ERR_HEADERS_OVERFLOW', 'answering', 'broken http_response_header_section_size'],
  ['UND_ERR_DESTROYED', 'unsent', 'cancelled connection_terminated'],
  ['UND_ERR_INVALID_ARG', 'unsent', 'broken proxy_internal_error'],
];
for (const [code, stage, expected] of TABLE) {
  test(`${code} while ${stage} is: ${expected}`, () => assert.equal(named(coded(code), stage), expected));
}

test('of several addresses tried at once, the first one names the failure', () => {
  assert.equal(
    named(new AggregateError([coded('ECONNREFUSED'), coded('EHOSTUNREACH')]), 'unsent'),
    'connect connection_refused',
  );
});

test('a failure on its way keeps its name', () => {
  const failure: Failure = { kind: 'timeout', proxyError: 'x', detail: 'y' };
  assert.equal(failureOf(new UpstreamError(failure), 'answering'), failure);
});

test('what no table knows is named all the same', () => {
  for (const error of [undefined, null, 'text', new Error('?'), new AggregateError([])]) {
    assert.equal(named(error, 'unsent'), 'connect destination_unavailable');
    assert.equal(named(error, 'sent'), 'reset connection_terminated');
    assert.equal(named(error, 'answering'), 'broken proxy_internal_error');
  }
});

test('R36: only a reset is retried, only before an answer, only what is idempotent', () => {
  const kinds: readonly Failure['kind'][] = [
    'connect',
    'timeout',
    'reset',
    'http_5xx',
    'broken',
    'too_large',
    'circuit_open',
    'full',
    'cancelled',
  ];
  for (const kind of kinds) {
    const failure: Failure = { kind, proxyError: '', detail: '' };
    for (const stage of ['unsent', 'sent', 'answering'] as const) {
      const untouched = stage === 'unsent' && (kind === 'connect' || kind === 'timeout');
      const unanswered = kind === 'reset' && stage !== 'answering';
      const elsewhere = untouched ? 'elsewhere' : 'never';
      assert.equal(againAfter(failure, stage, { idempotent: true }), unanswered ? 'anywhere' : elsewhere);
      assert.equal(againAfter(failure, stage, { idempotent: false }), elsewhere);
    }
  }
});

test('R38: giving up and being full say nothing about the upstream', () => {
  for (const kind of ['cancelled', 'full', 'circuit_open'] as const)
    assert.equal(traitsOf(kind).circuit, 'ignored');
  for (const kind of ['connect', 'reset', 'http_5xx'] as const)
    assert.equal(traitsOf(kind).circuit, 'failed');
});

// On real sockets.

const servers: Server[] = [];
after(() => {
  for (const server of servers) server.close();
});

async function listen(server: Server): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as { port: number }).port;
}

async function readFrom(url: string, connectMs = 1_000): Promise<ReadOutcome> {
  const { upstream } = rig(new URL(url), { connectMs });
  const outcome = await upstream.read(readRequest());
  await upstream.close();
  return outcome;
}

const shown = (outcome: ReadOutcome): string =>
  outcome.kind === 'failure' ? `${outcome.failure.kind} ${outcome.failure.proxyError}` : outcome.kind;

test('nobody listens: connection_refused', async () => {
  const gone = await startFaultServer();
  await gone.close();
  assert.equal(shown(await readFrom(String(gone.url))), 'connect connection_refused');
});

test('R38: a connection that is never made: connection_timeout, to the millisecond', async () => {
  const port = await listen(createServer((socket) => socket.on('error', () => {})));
  const startedAt = performance.now();
  assert.equal(shown(await readFrom(`https://127.0.0.1:${port}/mcp`, 120)), 'timeout connection_timeout');
  assert.ok(performance.now() - startedAt < 450, `${performance.now() - startedAt} ms`);
});

test('TLS is verified: a certificate that nobody signed is refused', async () => {
  const port = await listen(createTlsServer(selfSigned(), (socket) => socket.end()));
  assert.equal(shown(await readFrom(`https://localhost:${port}/mcp`)), 'connect tls_certificate_error');
});

test('TLS against a server that speaks something else is a protocol error', async () => {
  const plain = createServer((socket) =>
    socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n'),
  );
  assert.equal(
    shown(await readFrom(`https://127.0.0.1:${await listen(plain)}/mcp`)),
    'connect tls_protocol_error',
  );
});

test('a header that cannot be sent is our own trouble, and nobody hears of its value', async () => {
  const server = await startFaultServer();
  const { upstream } = rig(server.url);
  const outcome = await upstream.read(readRequest({ headers: { 'x-a': 'sec\nret' } }));
  assert.equal(shown(outcome), 'broken proxy_internal_error');
  assert.ok(!JSON.stringify(outcome).includes('ret'));
  assert.equal(server.requests.length, 0);
  await upstream.close();
  await server.close();
});
