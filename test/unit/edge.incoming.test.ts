/** Node's request, leaner: what is left out is only what nobody sees. */
import assert from 'node:assert/strict';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, before, beforeEach, describe, test } from 'node:test';
import { LeanRequest } from '../../src/edge/incoming.ts';
import { until } from '../support/mcp.ts';

interface Seen {
  readonly atOnce: IncomingHttpHeaders;
  readonly arrived: IncomingHttpHeaders;
  readonly raw: readonly string[];
}

let server: Server<typeof LeanRequest>;
let client: Socket;
let received = '';
let seen: Seen[] = [];
let bodies: string[] = [];
/** How the next body is taken. */
let how: 'handed' | 'streamed' | 'first piece handed' | 'not' = 'handed';
const requests: LeanRequest[] = [];

before(async () => {
  server = createServer({ IncomingMessage: LeanRequest, requireHostHeader: false }, (request, response) => {
    requests.push(request);
    const atOnce = request.headers;
    request.arrived();
    seen.push({ atOnce, arrived: request.headers, raw: request.rawHeaders });
    const pieces: Buffer[] = [];
    const done = (): void => {
      bodies.push(Buffer.concat(pieces).toString());
      response.end('ok');
    };
    if (how === 'not') return done();
    if (how === 'streamed') {
      request.on('data', (piece: Buffer) => pieces.push(piece)).on('end', done);
      return;
    }
    const once = how === 'first piece handed';
    request.handTo({
      data(piece) {
        pieces.push(piece);
        if (!once) return;
        request.keep();
        request.on('data', (rest: Buffer) => pieces.push(rest)).on('end', done);
      },
      ended: done,
    });
  });
  server.on('checkContinue', (request: LeanRequest, response) => {
    seen.push({ atOnce: request.headers, arrived: request.headers, raw: request.rawHeaders });
    response.end('no');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.setEncoding('latin1').on('data', (text: string) => {
    received += text;
  });
});
after(() => {
  client.destroy();
  server.close();
});
beforeEach(() => {
  [received, seen, bodies] = ['', [], []];
});

const answers = (): number => received.split('HTTP/1.1 200').length - 1;
const post = (body: string, headers = ''): string =>
  `POST / HTTP/1.1\r\nHost: x\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;

describe('a lean request', () => {
  for (const kind of ['handed', 'streamed', 'first piece handed', 'not'] as const)
    test(`the body is whole however it comes, and the connection goes on: ${kind}`, async () => {
      how = kind;
      const sent = ['', 'a', 'two\nlines', 'x'.repeat(200_000)].filter(
        (body) => kind !== 'first piece handed' || body,
      );
      for (const [at, body] of sent.entries()) {
        const text = post(body);
        for (let i = 0; i < text.length; i += 37_013) {
          client.write(text.slice(i, i + 37_013));
          await new Promise((resolve) => setTimeout(resolve, 2));
        }
        await until(() => answers() === at + 1, `answer ${at}`);
      }
      assert.deepEqual(bodies, kind === 'not' ? sent.map(() => '') : sent);
    });

  test('several that come at once, chunked or not, are each whole', async () => {
    how = 'handed';
    const chunked =
      'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n';
    client.write(post('one') + chunked + post('three') + post(''));
    await until(() => answers() === 4, 'four answers');
    assert.deepEqual(bodies, ['one', 'abcde', 'three', '']);
  });

  test('a connection that rests holds on to no request', async () => {
    how = 'handed';
    client.write(post('{"secret":1}'));
    await until(() => answers() === 1, 'an answer');
    const request = requests.at(-1) as LeanRequest & { socket: { parser?: { incoming: unknown } } };
    assert.ok(request.readableEnded);
    const { parser } = request.socket;
    assert.ok(parser !== undefined, 'Node keeps the request of a connection here');
    await until(() => parser.incoming === null, 'it is let go');
  });

  test('whoever is handed it sees the headers that Node makes of them', async () => {
    how = 'handed';
    client.write(post('', 'Accept: a\r\naccept: b\r\nCookie: c\r\nX-A: 1\r\nX-A: 2\r\n'));
    await until(() => answers() === 1, 'an answer');
    assert.deepEqual(
      { ...seen[0]?.arrived },
      { host: 'x', accept: 'a, b', cookie: 'c', 'x-a': '1, 2', 'content-length': '0' },
    );
    assert.deepEqual({ ...seen[0]?.atOnce }, {}, 'nobody has asked for them before');
  });

  test('of HTTP/1.0, where Node looks for more, nothing is kept from it', async () => {
    how = 'handed';
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.resume().end('POST / HTTP/1.0\r\nTE: chunked\r\nContent-Length: 0\r\n\r\n');
    await new Promise((resolve) => socket.once('close', resolve));
    assert.equal(seen[0]?.atOnce.te, 'chunked');
  });

  test('an expectation is met, however it is written', async () => {
    for (const name of ['Expect', 'expect', 'EXPECT']) {
      // Behind an answer without the interim one nothing follows on the connection.
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
      socket.resume().end(`POST / HTTP/1.1\r\nHost: x\r\n${name}: 100-Continue\r\nContent-Length: 0\r\n\r\n`);
      await new Promise((resolve) => socket.once('close', resolve));
    }
    assert.deepEqual(
      seen.map(({ atOnce }) => atOnce.expect),
      ['100-Continue', '100-Continue', '100-Continue'],
    );
  });
});
