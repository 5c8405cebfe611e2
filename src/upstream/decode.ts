/**
 * Takes content codings off an answer, so that nothing behind this room ever sees or relabels one (R33).
 *
 * Streaming, with back-pressure in both directions: what a small body may blow up to is bounded by whoever
 * reads, and never lies in memory here.
 */
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import { failure, UpstreamError } from './failure.ts';

/** More codings on top of each other serve nobody but an attacker. */
const MAX_CODINGS = 2;
/** Decoded bytes handed on at once. */
const CHUNK_BYTES = 64 * 1024;

type Engine = ReturnType<typeof createGunzip>;

const OPTIONS = { chunkSize: CHUNK_BYTES };
const ENGINES: Readonly<Record<string, (first: Uint8Array) => Engine>> = {
  gzip: () => createGunzip(OPTIONS),
  'x-gzip': () => createGunzip(OPTIONS),
  br: () => createBrotliDecompress(OPTIONS),
  // Half of all servers that say `deflate` send it without the zlib header that the word stands for.
  deflate: (first) => (((first[0] ?? 0) & 0x0f) === 8 ? createInflate(OPTIONS) : createInflateRaw(OPTIONS)),
};

/** The body without its codings; undefined when one of them is unknown, or they are too many. */
export function decoded(
  body: AsyncIterable<Uint8Array>,
  codings: readonly string[],
): AsyncIterable<Uint8Array> | undefined {
  if (codings.length > MAX_CODINGS || !codings.every((coding) => Object.hasOwn(ENGINES, coding)))
    return undefined;
  return codings.reduceRight((inner, coding) => decode(inner, coding), body);
}

/** @throws UpstreamError on bytes that are not what the coding says, and whatever `source` throws. */
async function* decode(source: AsyncIterable<Uint8Array>, coding: string): AsyncGenerator<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done) return;
  const engine = (ENGINES[coding] as (typeof ENGINES)[string])(first.value);
  void feed(iterator, first.value, engine);
  try {
    for await (const chunk of engine) yield chunk as Uint8Array;
  } catch (error) {
    if (error instanceof UpstreamError) throw error;
    const detail = `bad ${coding}: ${(error as Error).message}`;
    throw new UpstreamError(failure('broken', 'http_response_content_coding', detail));
  } finally {
    engine.destroy();
    await iterator.return?.();
  }
}

/** Pours the source into the engine. *Never* rejects: a failing source destroys the engine with its error. */
async function feed(iterator: AsyncIterator<Uint8Array>, first: Uint8Array, engine: Engine): Promise<void> {
  try {
    let step: IteratorResult<Uint8Array> = { done: false, value: first };
    while (!step.done && !engine.destroyed) {
      if (!engine.write(step.value)) await drained(engine);
      step = await iterator.next();
    }
    if (!engine.destroyed) engine.end();
  } catch (error) {
    engine.destroy(error as Error);
  }
}

function drained(engine: Engine): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      engine.off('drain', done);
      engine.off('close', done);
      resolve();
    };
    engine.on('drain', done);
    engine.on('close', done);
  });
}
