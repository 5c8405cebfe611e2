/** R30: 200 MB through the edge in either direction cost no memory that stays. */
import assert from 'node:assert/strict';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { after, before, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Reply } from '../../src/protocol/exchange.ts';
import { answer, openEdge, type TestEdge } from '../support/edge-kit.ts';
import { mirrored } from '../support/mcp.ts';

const MIB = 1 << 20;
const TOTAL = 200 * MIB;
const EVERY = 25 * MIB;
const MOST_GROWTH = 64 * MIB;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Heap and external after a collection; looks again and again while bytes flow. */
class Scale {
  readonly #start = weigh();
  #next = EVERY;
  growth = 0;
  looks = 0;

  passed(bytes: number): void {
    if (bytes < this.#next) return;
    this.#next += EVERY;
    this.looks++;
    this.growth = Math.max(this.growth, weigh() - this.#start);
  }
}

function weigh(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

let edge: TestEdge;
let reply: (rest: AsyncIterable<Uint8Array> | undefined) => Promise<Reply>;

before(async () => {
  edge = await openEdge(({ body }) => reply(body.kind === 'begun' ? body.rest : undefined));
});
after(() => edge.close());

function call(): {
  readonly sent: ReturnType<typeof httpRequest>;
  readonly answered: Promise<IncomingMessage>;
} {
  const headers = { 'content-type': 'application/json', ...mirrored('tools/call', 'echo') };
  const sent = httpRequest(edge.url, { method: 'POST', agent: false, headers });
  const answered = new Promise<IncomingMessage>((resolve, reject) =>
    sent.once('response', resolve).once('error', reject),
  );
  return { sent, answered };
}

function report(t: { diagnostic(text: string): void }, scale: Scale, startedAt: number): void {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const rss = Math.round(process.memoryUsage().rss / MIB);
  t.diagnostic(
    `${TOTAL / MIB} MB in ${seconds} s, heap + external grew by ${(scale.growth / MIB).toFixed(1)} MB at most, RSS ${rss} MB`,
  );
  assert.equal(scale.looks, TOTAL / EVERY);
  assert.ok(scale.growth < MOST_GROWTH, `grew by ${scale.growth} bytes`);
}

test('R30: 200 MB up', async (t) => {
  const startedAt = performance.now();
  const scale = new Scale();
  let received = 0;
  reply = async (rest) => {
    for await (const chunk of rest ?? []) {
      received += chunk.length;
      scale.passed(received);
    }
    return answer();
  };
  const { sent, answered } = call();
  const block = Buffer.alloc(MIB, ' ');
  for (let left = TOTAL + MIB; left > 0; left -= MIB) {
    if (!sent.write(block)) await new Promise((resolve) => sent.once('drain', resolve));
  }
  sent.end();
  const response = await answered;
  response.resume();
  assert.equal(response.statusCode, 200);
  report(t, scale, startedAt);
});

test('R30: 200 MB down', async (t) => {
  const startedAt = performance.now();
  const scale = new Scale();
  reply = async () => ({
    kind: 'relay',
    status: 200,
    media: 'json',
    headers: {},
    body: (async function* () {
      for (let left = TOTAL; left > 0; left -= 64 << 10) yield Buffer.alloc(64 << 10, ' ');
    })(),
  });
  const { sent, answered } = call();
  sent.end('{}');
  let received = 0;
  for await (const chunk of await answered) {
    received += (chunk as Buffer).length;
    scale.passed(received);
  }
  assert.equal(received, TOTAL);
  report(t, scale, startedAt);
});
