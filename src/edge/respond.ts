/** Writes a reply. Every form an answer can take goes over the wire here. */
import { errorBody, type Refusal } from '../protocol/errors.ts';
import type { Reply } from '../protocol/exchange.ts';
import { dataLines, EVENT_ABANDON, EVENT_CLOSE, EVENT_OPEN, eventOf } from './events.ts';
import type { Live } from './live.ts';
import { abandon, listen, pump } from './stream.ts';

type Answer = Extract<Reply, { kind: 'answer' }>;
type Relay = Extract<Reply, { kind: 'relay' }>;

/** Up to this an answer is one string: one write, and no copy that is worth its counting. */
const ONE_STRING_BYTES = 16 * 1024;

/** Writes a reply, whatever state the exchange is in. */
export function respond(live: Live, reply: Reply): void {
  live.replied();
  const { problem } = live.body;
  if (live.over) return letGo(reply);
  if (problem !== undefined && !live.response.headersSent) {
    // What the request path saw of it was a body that broke off.
    letGo(reply);
    return refuse(live, problem, live.body.id);
  }
  switch (reply.kind) {
    case 'answer':
      return live.streaming ? watch(live, answerAsEvent(live, reply)) : answer(live, reply);
    case 'refused':
      return refuse(live, reply.refusal, reply.id);
    case 'relay':
      return watch(live, relay(live, reply));
    case 'listen':
      return listen(live, reply);
    case 'accepted':
      if (live.streaming) return live.end();
      live.begin(202, {}, 0);
      return live.end();
  }
}

/** Writes an error of the gateway. Of a body that still flows the id is looked for first (R8). */
export function refuse(live: Live, refusal: Refusal, id: string | undefined): void {
  if (id !== undefined || !live.body.hasRest) return writeRefusal(live, refusal, id);
  watch(
    live,
    live.body.seekId().then((found) => writeRefusal(live, refusal, found)),
  );
}

function writeRefusal(live: Live, refusal: Refusal, id: string | undefined): void {
  if (live.over) return;
  const { facts } = live;
  facts.rpcError ??= refusal.code;
  if (refusal.reason !== undefined) live.context.metrics.rejected(refusal.reason);
  const body = errorBody(refusal, id);
  if (live.streaming) return live.end(eventOf(body));
  const headers =
    refusal.proxyError === undefined
      ? (refusal.headers ?? {})
      : { ...refusal.headers, 'Proxy-Status': `headgate; error=${refusal.proxyError}` };
  live.begin(refusal.status, headers, Buffer.byteLength(body));
  live.endShort(body, 'utf8');
}

function answer(live: Live, { status, head, tail, headers }: Answer): void {
  const headBytes = Buffer.byteLength(head);
  let bytes = headBytes;
  for (const chunk of tail) bytes += chunk.length;
  live.begin(status, headers, bytes);
  if (bytes > ONE_STRING_BYTES) return answerInChunks(live, head, tail);
  let text = headBytes === head.length ? head : Buffer.from(head).toString('latin1');
  for (const chunk of tail) text += bufferOf(chunk).toString('latin1');
  live.endShort(text, 'latin1');
}

/** All at once: it is in memory, and waiting for the client between its pieces would keep it there as long. */
function answerInChunks(live: Live, head: string, tail: readonly Uint8Array[]): void {
  // Without the cork each piece would be a packet of its own; end() takes it off again.
  live.response.cork();
  live.write(head);
  const last = tail.length - 1;
  for (let i = 0; i < last; i++) live.write(tail[i] as Uint8Array);
  live.end(tail[last]);
}

async function answerAsEvent(live: Live, { head, tail }: Answer): Promise<void> {
  live.write(EVENT_OPEN);
  live.write(dataLines(Buffer.from(head)));
  for (const chunk of tail) {
    if (!live.write(dataLines(chunk)) && !(await live.drain())) return;
  }
  live.end(EVENT_CLOSE);
}

async function relay(live: Live, reply: Relay): Promise<void> {
  const { status, media, head, body, lengthBytes, broken, headers } = reply;
  if (!live.streaming) {
    if (media === 'sse') live.beginStream(status, headers, 'response');
    else live.begin(status, headers, lengthBytes);
    if (head !== undefined) live.write(head);
    return pump(live, body, media);
  }
  if (media === 'sse') return pump(live, body, 'sse');
  live.write(EVENT_OPEN);
  if (head !== undefined) live.write(dataLines(Buffer.from(head)));
  await pump(live, asDataLines(body), 'json', {
    whole: EVENT_CLOSE,
    ...(broken !== undefined && { broken: EVENT_ABANDON + eventOf(broken) }),
  });
}

async function* asDataLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) yield dataLines(chunk);
}

/** Nobody awaits what is written: a bug there must end this answer, not the process. */
function watch(live: Live, writing: Promise<void>): void {
  writing.catch((error: unknown) => {
    live.context.log.error({ err: error, route: live.route }, 'an answer could not be written');
    live.destroy();
  });
}

/** A reply that nobody will read. */
function letGo(reply: Reply): void {
  if (reply.kind === 'relay') abandon(reply.body[Symbol.asyncIterator]());
  if (reply.kind === 'listen') reply.feed.stop();
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
