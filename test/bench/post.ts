/** One request from this process, its answer as it comes: for what is not a matter of load. */
import { connect } from 'node:net';
import { unchunked } from './generator.ts';
import { type Ask, requestText } from './wire.ts';

/** Whoever is silent for this long has failed; an idle stream says every 15 s that it lives, or is not kept so long. */
const SILENCE_MS = 60_000;

/** An open answer. */
export interface Open {
  /** Resolves when the connection has ended or was closed. */
  readonly done: Promise<void>;
  close(): void;
}

/** Sends on a connection of its own and hands over every chunk, head and framing included. */
export function openPost(port: number, ask: Ask, onData: (chunk: Buffer) => void): Open {
  const socket = connect(port, '127.0.0.1');
  socket.setNoDelay(true);
  const text = requestText(ask).replace('\r\nHost:', '\r\nConnection: close\r\nHost:');
  socket.write(text, 'latin1');
  socket.on('data', onData);
  const done = new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.setTimeout(SILENCE_MS, () => socket.destroy(new Error(`nothing came for ${SILENCE_MS} ms`)));
    socket.once('close', () => resolve());
  });
  // Whoever does not wait for the end need not hear of it.
  done.catch(() => {});
  return { done, close: () => socket.destroy() };
}

/** The parsed JSON answer; throws on any status but 200. */
export async function postJson(port: number, ask: Ask): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  await openPost(port, ask, (chunk) => chunks.push(chunk)).done;
  const whole = Buffer.concat(chunks);
  const end = whole.indexOf('\r\n\r\n');
  const head = whole.toString('latin1', 0, end);
  if (!head.startsWith('HTTP/1.1 200')) throw new Error(`not 200: ${whole.toString('latin1', 0, 500)}`);
  const body = whole.subarray(end + 4);
  const text = (/transfer-encoding: chunked/i.test(head) ? unchunked(body) : body).toString();
  return JSON.parse(text) as Record<string, unknown>;
}
