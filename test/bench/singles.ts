/** The works that are not load: a whole walk, the latency of events, idle streams, large reads side by side. */
import { type Child, memoryKb } from './children.ts';
import { type Open, openPost, postJson } from './post.ts';
import { quantile } from './stats.ts';

interface Page {
  readonly result: { readonly resources: readonly { readonly uri: string }[]; readonly nextCursor?: string };
}

/** Walks the merged list to its end; throws unless every item came exactly once. @returns ms. */
export async function walk(port: number, expectedItems: number): Promise<number> {
  const startedAt = performance.now();
  const seen = new Set<string>();
  let count = 0;
  let cursor: string | undefined;
  do {
    const params = cursor === undefined ? {} : { cursor };
    const { result } = (await postJson(port, {
      path: '/many',
      method: 'resources/list',
      params,
    })) as unknown as Page;
    for (const { uri } of result.resources) seen.add(uri);
    count += result.resources.length;
    cursor = result.nextCursor;
  } while (cursor !== undefined);
  if (count !== expectedItems || seen.size !== expectedItems)
    throw new Error(
      `the walk gave ${count} items, ${seen.size} of them different, instead of ${expectedItems}`,
    );
  return performance.now() - startedAt;
}

export interface Latency {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The time from an upstream's writing of an event to its arrival here; throws unless all come in order. */
export async function eventLatency(port: number, path: string, count: number): Promise<Latency> {
  const delays: number[] = [];
  let text = '';
  await openPost(
    port,
    {
      path,
      method: 'tools/call',
      name: 'ticks',
      params: { name: 'ticks', arguments: { count } },
    },
    (chunk) => {
      const at = process.hrtime.bigint();
      const piece = chunk.toString('latin1');
      text += piece;
      for (const [, sentAt] of piece.matchAll(/"sentAt":"(\d+)"/g))
        delays.push(Number(at - BigInt(sentAt as string)) / 1e6);
    },
  ).done;
  const steps = [...text.matchAll(/"progress":(\d+),"sentAt"/g)].map(([, step]) => Number(step));
  if (steps.length !== count || steps.some((step, i) => step !== i + 1) || !text.includes('"resultType"'))
    throw new Error(`${steps.length} of ${count} events came, or not in order: ${text.slice(0, 300)}`);
  const sorted = delays.sort((a, b) => a - b);
  return { p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99) };
}

const settled = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Opens idle streams through a server that has none yet. @returns what each costs, in KB of resident memory. */
export async function idleStreams(server: Child, path: string, count: number): Promise<number> {
  // What the first streams build once (code, pools) is no cost of a stream.
  await closeAll(await openIdle(server.port, path, Math.min(50, count)));
  await settled(500);
  const before = memoryKb(server.pid)?.rss ?? Number.NaN;
  const streams = await openIdle(server.port, path, count);
  await settled(1_500);
  const after = memoryKb(server.pid)?.rss ?? Number.NaN;
  await closeAll(streams);
  return (after - before) / count;
}

async function closeAll(streams: readonly Open[]): Promise<void> {
  for (const stream of streams) stream.close();
  await Promise.all(streams.map((stream) => stream.done));
}

/** Resolves when every stream has shown its first event. */
async function openIdle(port: number, path: string, count: number): Promise<readonly Open[]> {
  const streams: Open[] = [];
  for (let left = count; left > 0; left -= 50) {
    const begun: Promise<void>[] = [];
    for (let i = 0; i < Math.min(50, left); i++) {
      begun.push(
        new Promise((resolve, reject) => {
          let text = '';
          const stream = openPost(
            port,
            { path, method: 'tools/call', name: 'idle', params: { name: 'idle', arguments: {} } },
            (chunk) => {
              text += chunk.toString('latin1');
              if (text.includes('"progress":0')) resolve();
            },
          );
          streams.push(stream);
          stream.done.then(() => reject(new Error(`an idle stream ended: ${text.slice(0, 300)}`)), reject);
        }),
      );
    }
    await Promise.all(begun);
  }
  return streams;
}

export interface LargeReads {
  readonly seconds: number;
  /** The most memory the gateway ever held. */
  readonly peakMb: number;
  /** What it held before. */
  readonly beforeMb: number;
}

/** Reads `count` different resources of `megabytes` each at once; throws unless each arrived to its last byte. */
export async function largeReads(server: Child, count: number, megabytes: number): Promise<LargeReads> {
  const beforeMb = (memoryKb(server.pid)?.rss ?? Number.NaN) / 1024;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: count }, (_, i) => largeRead(server.port, `bench://${megabytes}mb/${i}`, megabytes)),
  );
  const seconds = (performance.now() - startedAt) / 1000;
  return { seconds, beforeMb, peakMb: (memoryKb(server.pid)?.peak ?? Number.NaN) / 1024 };
}

async function largeRead(port: number, uri: string, megabytes: number): Promise<void> {
  let bytes = 0;
  let texts = 0;
  let head = '';
  let end = '';
  await openPost(port, { path: '/roomy', method: 'resources/read', name: uri, params: { uri } }, (chunk) => {
    if (head.length < 2_000) head += chunk.toString('latin1', 0, 2_000);
    end = (end + chunk.toString('latin1', Math.max(0, chunk.length - 64))).slice(-64);
    bytes += chunk.length;
    for (let at = chunk.indexOf(TEXT); at >= 0; at = chunk.indexOf(TEXT, at + TEXT.length)) texts++;
  }).done;
  const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? -1);
  const body = bytes - head.indexOf('\r\n\r\n') - 4;
  const chunked = /transfer-encoding: chunked/i.test(head);
  if (!head.startsWith('HTTP/1.1 200') || !head.includes(uri))
    throw new Error(`${uri}: ${head.slice(0, 300)}`);
  if (body < megabytes * 1024 * 1024 || (!chunked && body !== length))
    throw new Error(`${uri}: ${body} bytes of ${length}`);
  if (!end.replace(CHUNK_EDGE, '').includes('"}]}}')) throw new Error(`${uri} ends ${end}`);
  if (texts < megabytes * 100) throw new Error(`${uri} holds other bytes`);
}

/** What chunked coding puts between two pieces. */
const CHUNK_EDGE = /\r\n[0-9a-f]+\r\n/g;

/** A run of the filling that a damaged body would not show often enough. */
const TEXT = Buffer.alloc(4_096, 'x');
