/** What a client sees of an answer, in the words of the fault table. */
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { createParser } from 'eventsource-parser';
import type { Surface } from './simulator.ts';

/** Of a larger blank body only the size is kept. */
const MAX_KEPT_BLANK_BYTES = 1 << 20;

/** As much white space as a chunk may hold. */
const BLANK = Buffer.alloc(1 << 20, 0x20);

/** One answer, as it came. */
export interface Heard {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly bodyBytes: number;
  readonly blank: boolean;
  readonly end: 'whole' | 'cut' | 'given up';
  readonly ms: number;
}

export interface Sending {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Sent once the answer has begun. */
  readonly afterwards?: string;
}

/** Longer than every deadline of the table. */
const PATIENCE_MS = 30_000;

/** One POST on a connection of its own. *Never* rejects: a broken connection is something to see. */
export function hear({ url, headers, body, afterwards }: Sending): Promise<Heard> {
  const startedAt = performance.now();
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bodyBytes = 0;
    let blank = true;
    let status: number | undefined;
    let got: IncomingHttpHeaders = {};
    let givenUp = false;
    const timer = setTimeout(() => {
      givenUp = true;
      req.destroy();
    }, PATIENCE_MS);
    const done = (end: 'whole' | 'cut'): void => {
      clearTimeout(timer);
      const body = Buffer.concat(chunks);
      const ms = performance.now() - startedAt;
      resolve({ status, headers: got, body, bodyBytes, blank, end: givenUp ? 'given up' : end, ms });
    };
    const req = httpRequest(url, { method: 'POST', agent: false, headers }, (res) => {
      status = res.statusCode;
      got = res.headers;
      if (afterwards !== undefined) req.end(afterwards);
      res.on('data', (chunk: Buffer) => {
        if (!blank || bodyBytes < MAX_KEPT_BLANK_BYTES) chunks.push(chunk);
        bodyBytes += chunk.length;
        blank &&= chunk.equals(BLANK.subarray(0, chunk.length));
      });
      res.on('error', () => {});
      res.on('close', () => done(res.complete ? 'whole' : 'cut'));
    });
    req.on('error', () => {
      // With a head there, the end of the answer tells how it ended.
      if (status === undefined) done('cut');
    });
    if (afterwards === undefined) req.end(body);
    else req.write(body);
  });
}

/** A JSON-RPC message, as loosely as a test wants it. */
export interface Message {
  readonly id?: unknown;
  readonly method?: string;
  readonly error?: { readonly code: number };
  // biome-ignore lint/suspicious/noExplicitAny: tests look into arbitrary results
  readonly result?: any;
}

/** The messages of an answer: of an event stream those that a client takes, as it parses them. */
export function messagesOf(heard: Heard): readonly Message[] | undefined {
  const text = heard.body.toString('utf8');
  if (!String(heard.headers['content-type']).startsWith('text/event-stream')) {
    const message = parsed(text);
    return message === undefined ? undefined : [message];
  }
  const messages: Message[] = [];
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (event !== undefined && event !== 'message') return;
      const message = parsed(data);
      if (message !== undefined) messages.push(message);
    },
  });
  parser.feed(text);
  return messages;
}

function parsed(text: string): Message | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export interface Context {
  readonly surface: Surface;
  /** The row's key: the scheme of its URIs. */
  readonly key: string;
  readonly id: number;
  /** The upstream's own body, if it sent a whole one. */
  readonly sent: Buffer | undefined;
}

/** One answer in words. */
export function inWords(heard: Heard, context: Context): string {
  const { status, headers, end } = heard;
  if (end === 'given up') return 'no end in sight';
  if (status === undefined) return 'cut off';
  const streamed = String(headers['content-type']).startsWith('text/event-stream');
  if (end === 'cut') return streamed ? `${status} stream cut off` : `${status} cut off`;
  if (heard.bodyBytes > MAX_KEPT_BLANK_BYTES && heard.blank)
    return `${status} json: ${heard.bodyBytes / 2 ** 20} MiB of white space`;
  const messages = messagesOf(heard);
  if (streamed) return `${status} stream: ${streamWords(messages ?? [], context)}`;
  const [message] = messages ?? [];
  const usual =
    message?.id === context.id && (message.result === undefined) !== (message.error === undefined);
  if (context.surface === 'call' && status === 200) {
    // An upstream's own answer: shown as it came.
    if (!usual) return `200 json: ${context.sent?.equals(heard.body) ? 'as sent' : 'something else'}`;
    const words = callWords(message, context);
    return `200 json: ${words.includes('something else') && context.sent?.equals(heard.body) ? 'as sent' : words}`;
  }
  if (!usual || message === undefined) return `${status} not an answer`;
  if (message.error !== undefined) return errorWords(heard, message.error.code);
  return `${status}: ${resultWords(message.result, context)}`;
}

function errorWords({ status, headers }: Heard, code: number): string {
  const pause = headers['retry-after'] === undefined ? '' : `; retry after ${headers['retry-after']}`;
  const challenge = headers['www-authenticate'] === undefined ? '' : `; ${headers['www-authenticate']}`;
  return `${status} ${code}${pause}${challenge}`;
}

function streamWords(messages: readonly Message[], context: Context): string {
  const words: string[] = [];
  for (const message of messages) {
    const word = messageWords(message, context);
    if (words.at(-1) !== word) words.push(word);
  }
  return words.length === 0 ? 'nothing' : words.join(', ');
}

function messageWords(message: Message, context: Context): string {
  if (message.method !== undefined) return message.id === undefined ? 'notifications' : 'server request';
  if (message.id !== context.id) return 'foreign answer';
  if (message.error !== undefined) return `error ${message.error.code}`;
  return context.surface === 'call' ? callWords(message, context) : resultWords(message.result, context);
}

const BLOB = /^(?:QUJD)+$/;
const blobWords = (blob: unknown): string =>
  typeof blob === 'string' && BLOB.test(blob) ? `, ${Math.round(blob.length / 2 ** 20)} MB` : '';
const moodOf = (text: unknown): string => /^(\w+) grüße 🌍$/u.exec(String(text))?.[1] ?? 'something else';

function callWords({ result, error }: Message, _: Context): string {
  if (error !== undefined) return Number.isSafeInteger(error.code) ? `error ${error.code}` : 'something else';
  const content = result?.content;
  if (!Array.isArray(content)) return 'something else';
  return `${moodOf(content[0]?.text)}${blobWords(content[1]?.data)}`;
}

function resultWords(result: Record<string, unknown>, context: Context): string {
  const what = context.surface === 'list' ? listWords([result], context.key) : contentWords(result);
  const asks = result.resultType === 'complete' ? '' : `${result.resultType}, `;
  return `${asks}${what}${hintWords(result)}`;
}

function contentWords({ contents }: Record<string, unknown>): string {
  if (!Array.isArray(contents)) return 'no contents';
  return contents.length === 0 ? 'nothing' : `${moodOf(contents[0].text)}${blobWords(contents[0].blob)}`;
}

function hintWords({ ttlMs, cacheScope }: Record<string, unknown>): string {
  if (ttlMs === undefined && cacheScope === undefined) return '; no ttl';
  const ttl =
    ttlMs === 0
      ? 'ttl 0'
      : !Number.isInteger(ttlMs)
        ? `ttl ${ttlMs}`
        : Number(ttlMs) <= 60_000
          ? 'ttl ≤ 1 min'
          : Number(ttlMs) <= 86_400_000
            ? 'ttl ≤ 24 h'
            : 'ttl > 24 h';
  return `; ${ttl}; ${cacheScope}`;
}

/** A list, walked over these pages. */
export function walkWords(
  pages: readonly Record<string, unknown>[],
  key: string,
  more: 'more' | 'end',
): string {
  const [first = {}] = pages;
  const incomplete = pages.some((page) =>
    Object.hasOwn((page._meta ?? {}) as object, 'dev.headgate/incomplete'),
  );
  return `200: ${listWords(pages, key)}${incomplete ? '; incomplete' : ''}${more === 'more' ? '; more' : ''}${hintWords(first)}`;
}

const ORDER = ['stolen', 'good', 'faulty', 'healthy', 'something else'];

function listWords(pages: readonly Record<string, unknown>[], key: string): string {
  const found = new Map<string, Set<string>>();
  for (const page of pages) {
    for (const { uri, name } of page.resources as { uri: string; name: string }[]) {
      const who =
        name === 'stolen'
          ? 'stolen'
          : uri.startsWith('good://')
            ? moodOf(name) === 'healthy'
              ? 'good'
              : 'something else'
            : uri.startsWith(`${key}://`)
              ? moodOf(name)
              : 'something else';
      found.set(who, (found.get(who) ?? new Set()).add(uri));
    }
  }
  const words = ORDER.flatMap((who) => {
    const count = found.get(who)?.size ?? 0;
    return count === 0 ? [] : [count === 1 ? who : `${who} ×${count}`];
  });
  return words.length === 0 ? 'nothing' : words.join(', ');
}
