/**
 * What Node and undici alone cost: a body is taken, sent on and its answer given back. Nothing is checked, routed,
 * counted, logged or bounded. `node bare.js UPSTREAM_PORT`.
 */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pool } from 'undici';

const SENT_ON = ['content-type', 'accept', 'mcp-method', 'mcp-name', 'mcp-protocol-version'];
const pool = new Pool(`http://127.0.0.1:${process.argv[2]}`, { connections: 64, pipelining: 1 });

function sentOn(headers: IncomingHttpHeaders): string[] {
  return SENT_ON.flatMap((name) => (headers[name] === undefined ? [] : [name, String(headers[name])]));
}

const server = createServer((request, response) => {
  const asked: Buffer[] = [];
  request.on('data', (chunk: Buffer) => asked.push(chunk));
  request.on('end', () => {
    const answered: Buffer[] = [];
    let status = 0;
    pool.dispatch(
      {
        path: request.url as string,
        method: 'POST',
        headers: sentOn(request.headers),
        body: Buffer.concat(asked),
      },
      {
        onConnect() {},
        onHeaders(code) {
          status = code;
          return true;
        },
        onData(chunk) {
          answered.push(chunk);
          return true;
        },
        onComplete() {
          const body = Buffer.concat(answered);
          response.writeHead(status, [
            'Content-Type',
            'application/json',
            'Content-Length',
            `${body.length}`,
          ]);
          response.end(body);
        },
        onError(error) {
          response.destroy(error);
        },
      },
    );
  });
});
server.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ port: (server.address() as AddressInfo).port }));
});
