/**
 * The log: what happened to the gateway, and one access line a request.
 *
 * Goes to standard error, so that standard output carries data only. The only file that knows pino. Access lines
 * are built by hand and handed over in batches (under 1 µs each; a pino call costs 4, and 13 in service). *Never*
 * holds a body, a credential, a URI, or a character that could forge a line (R46).
 */
import { type DestinationStream, destination, pino } from 'pino';
import type { HeadgateConfig } from '../config/types.ts';
import { LEGACY_METHODS } from '../protocol/legacy.ts';
import { methodRow } from '../protocol/methods.ts';
import type { CacheStatus } from './labels.ts';
import { describeError, escapeLine, type LogRecord, pretty, quote } from './lines.ts';

/** What a line says beside its message. `err` may hold a caught error: see {@link describeError}. */
export type LogFields = Readonly<Record<string, unknown>>;
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** One request as the access log tells it. Durations in milliseconds; what is not known is left out. */
export interface AccessEntry {
  /** The gateway's own id of the request, never the client's. */
  readonly requestId?: string;
  /** The configured path; absent when no route was met. */
  readonly route?: string;
  /** The configured name; absent for merged and refused requests. */
  readonly upstream?: string;
  /** The client's address, as far as the trusted proxies say it. */
  readonly client?: string;
  readonly httpMethod: string;
  readonly status: number;
  /** Written as `other` unless it is a method of the protocol. */
  readonly mcpMethod?: string;
  /** Written for tools and prompts only: a URI may be private. */
  readonly mcpName?: string;
  /** The JSON-RPC code of an error answer. */
  readonly rpcError?: number;
  readonly cache?: CacheStatus;
  /** Why it was no hit: the `detail` of `Cache-Status`. */
  readonly cacheReason?: string;
  readonly collapsed?: true;
  readonly durationMs: number;
  /** The part of it that was spent waiting on upstreams. */
  readonly upstreamMs?: number;
  /** The gateway's own part: until the answer began, less the waiting. */
  readonly overheadMs?: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** The gateway's code of what failed, never a message. */
  readonly error?: string;
}

export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** Writes the access line of a request, unless `log.access` is off. Of the levels only `silent` matters to it. */
  access(entry: AccessEntry): void;
  /** From the next line on, this is what is written and how. */
  configure(log: HeadgateConfig['log']): void;
  /** Hands over what is gathered, at once. To be called last before the process ends. */
  flush(): void;
}

/** Where lines go: one or many at a time, each with its line end. */
export interface LogSink {
  write(bytes: Uint8Array): unknown;
  /** Waits until everything written is out. */
  flushSync?(): void;
}

export interface LoggerOptions extends Readonly<HeadgateConfig['log']> {
  /** `never` when `NO_COLOR` is set; `auto` (default): colours on a terminal. */
  readonly colors?: 'auto' | 'always' | 'never';
  /** Default: standard error. `auto` as the format means JSON for any other. */
  readonly sink?: LogSink;
  /** The wall clock, in milliseconds. */
  readonly now?: () => number;
}

/** Lines wait this long for company. */
const BATCH_MS = 100;
/** Gathered lines are handed over when they come to this. */
const BATCH_BYTES = 64 << 10;
/** When the reader of the log is this far behind, lines are dropped and counted: memory must not pay for it. */
const MAX_WAITING_BYTES = 16 << 20;
/** Longest name that is written. */
const MAX_NAME_CHARS = 128;

const NOTHING = Buffer.alloc(0);

/** Makes a logger. Writing *never* throws. */
export function createLogger(options: LoggerOptions): Logger {
  const { colors = 'auto', now = Date.now } = options;
  const terminal = options.sink === undefined && process.stderr.isTTY === true;
  const sink = options.sink ?? fileSink(2, terminal ? 'at once' : 'without blocking');
  let prettily = false;
  let accessed = false;
  const painted = colors === 'always' || (colors === 'auto' && terminal);
  const clock = isoClock(now);
  const accessLine = accessLines();
  const batch = batchOf(sink, terminal ? 0 : BATCH_BYTES);
  const write = batch.add;
  const print = (record: LogRecord): void => write(pretty(record, painted ? 'colors' : 'plain'));
  const stream: DestinationStream = {
    write: (line) => (prettily ? print(JSON.parse(line) as LogRecord) : write(escapeLine(line))),
  };
  const lines = pino(
    {
      base: null,
      timestamp: () => `,"time":"${clock()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
    },
    stream,
  );
  const configure = ({ level, format, access }: HeadgateConfig['log']): void => {
    lines.level = level;
    prettily = format === 'pretty' || (format === 'auto' && terminal);
    accessed = access && level !== 'silent';
  };
  configure(options);

  const flush = (): void => {
    batch.handOver();
    sink.flushSync?.();
  };
  if (options.sink === undefined) process.once('exit', flush);

  return {
    debug: (fields, message) => lines.debug(fields, message),
    info: (fields, message) => lines.info(fields, message),
    warn: (fields, message) => lines.warn(fields, message),
    error: (fields, message) => {
      lines.error(fields, message);
      // What went wrong last before a crash is what everybody will look for.
      batch.handOver();
    },
    access: (entry) => {
      if (!accessed) return;
      const line = accessLine(entry, clock());
      if (prettily) print(JSON.parse(line) as LogRecord);
      else write(line);
    },
    configure,
    flush,
  };
}

/**
 * Gathers lines for a sink that is better asked seldom. As bytes: a line is copied while what it is made of is still at
 * hand, and a thousand lines that stay text until they are handed over are put together from pieces long out of reach.
 */
function batchOf(sink: LogSink, limitBytes: number): { add(line: string): void; handOver(): void } {
  const roomBytes = Math.max(limitBytes, 1);
  let gathered = NOTHING;
  let length = 0;
  let timer: NodeJS.Timeout | undefined;
  const handOver = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (length === 0) return;
    const bytes = gathered.subarray(0, length);
    length = 0;
    if (8 * bytes.length < 7 * roomBytes) {
      // What waits for its reader is bounded by its bytes: it must not hold much more room than that.
      write(Buffer.from(bytes));
    } else {
      gathered = NOTHING;
      write(bytes);
    }
  };
  const write = (bytes: Uint8Array): void => {
    try {
      sink.write(bytes);
    } catch {
      // There is nowhere left to say it.
    }
  };
  return {
    add: (line) => {
      // What it may take at most, in UTF-8; what it takes is known when it is written.
      const mostBytes = 3 * line.length;
      if (length + mostBytes > gathered.length) {
        handOver();
        if (mostBytes > roomBytes) {
          write(Buffer.from(line));
          return;
        }
        gathered = Buffer.allocUnsafeSlow(roomBytes);
      }
      length += gathered.write(line, length);
      // Not unref'd: a process that ends by itself waits this moment, so that nothing is lost.
      timer ??= setTimeout(handOver, BATCH_MS);
    },
    handOver,
  };
}

/** Says a thing once, however often it happens; `key` tells things apart. */
export type LogOnce = (key: string, level: LogLevel, fields: LogFields, message: string) => void;

/** *Bounded by* `limit` keys: beyond it the oldest is forgotten, and would be said again. */
export function onceLogger(logger: Logger, limit = 1_000): LogOnce {
  const said = new Set<string>();
  return (key, level, fields, message) => {
    if (said.has(key)) return;
    const [oldest] = said;
    if (said.size >= limit && oldest !== undefined) said.delete(oldest);
    said.add(key);
    logger[level](fields, message);
  };
}

/** An open file as a sink: written at once, or without blocking. */
export function fileSink(fd: number, how: 'at once' | 'without blocking'): LogSink {
  // Batches are made here, not there: its own (`minLength`) cost the square of their size.
  const stream = destination({
    ...{ fd, contentMode: 'buffer' },
    ...(how === 'at once' ? { sync: true } : { sync: false, maxLength: MAX_WAITING_BYTES }),
  });
  // Its types know of text alone.
  const write = (bytes: Uint8Array): unknown => stream.write(bytes as unknown as string);
  let droppedCount = 0;
  stream.on('drop', () => {
    droppedCount++;
  });
  stream.on('drain', () => {
    if (droppedCount === 0) return;
    const line = `{"level":"warn","msg":"log dropped: standard error is read too slowly","batches":${droppedCount}}\n`;
    droppedCount = 0;
    write(Buffer.from(line));
  });
  // A full disk must not end the gateway, nor keep it from ending: what cannot be written would be tried for ever. pino
  // has already taken care of a reader that is gone.
  let isFailing = false;
  stream.on('write', () => {
    isFailing = false;
  });
  stream.on('error', () => {
    isFailing = true;
  });
  const flush = stream.flushSync.bind(stream);
  stream.flushSync = () => {
    if (!isFailing) flush();
  };
  return { write, flushSync: () => stream.flushSync() };
}

/** ISO time, made anew only when the millisecond has changed. */
function isoClock(now: () => number): () => string {
  let lastMs = Number.NaN;
  let text = '';
  return () => {
    const ms = now();
    if (ms !== lastMs) {
      lastMs = ms;
      text = new Date(ms).toISOString();
    }
    return text;
  };
}

/** What is alike in the lines of many requests. */
type Alike = Pick<
  AccessEntry,
  | 'client'
  | 'route'
  | 'upstream'
  | 'httpMethod'
  | 'status'
  | 'mcpMethod'
  | 'mcpName'
  | 'rpcError'
  | 'cache'
  | 'cacheReason'
  | 'collapsed'
>;

/** Makes access lines. What the last one said of its request is put together once for all that say the same. */
function accessLines(): (entry: AccessEntry, time: string) => string {
  let last: Alike | undefined;
  let text = '';
  return (entry, time) => {
    if (last === undefined || !isAlike(entry, last)) {
      last = entry;
      // In one piece: what is put together stays in pieces otherwise, and each line would be put together from them.
      text = Buffer.from(alikeMembers(entry)).toString();
    }
    let line = `{"level":"info","time":"${time}","msg":"request"`;
    if (entry.requestId !== undefined) line += `,"requestId":${quote(entry.requestId)}`;
    line += `${text},"durationMs":${rounded(entry.durationMs)}`;
    if (entry.upstreamMs !== undefined) line += `,"upstreamMs":${rounded(entry.upstreamMs)}`;
    if (entry.overheadMs !== undefined) line += `,"overheadMs":${rounded(entry.overheadMs)}`;
    line += `,"bytesIn":${entry.bytesIn},"bytesOut":${entry.bytesOut}`;
    if (entry.error !== undefined) line += `,"error":${quote(entry.error)}`;
    return `${line}}\n`;
  };
}

function isAlike(a: Alike, b: Alike): boolean {
  return (
    a.client === b.client &&
    a.route === b.route &&
    a.upstream === b.upstream &&
    a.httpMethod === b.httpMethod &&
    a.status === b.status &&
    a.mcpMethod === b.mcpMethod &&
    a.mcpName === b.mcpName &&
    a.rpcError === b.rpcError &&
    a.cache === b.cache &&
    a.cacheReason === b.cacheReason &&
    a.collapsed === b.collapsed
  );
}

function alikeMembers(entry: Alike): string {
  let text = '';
  if (entry.client !== undefined) text += `,"client":${quote(entry.client)}`;
  if (entry.route !== undefined) text += `,"route":${quote(entry.route)}`;
  if (entry.upstream !== undefined) text += `,"upstream":${quote(entry.upstream)}`;
  text += `,"httpMethod":${quote(entry.httpMethod)},"status":${entry.status}`;
  if (entry.mcpMethod !== undefined) text += mcpMembers(entry.mcpMethod, entry.mcpName);
  if (entry.rpcError !== undefined) text += `,"rpcError":${entry.rpcError}`;
  if (entry.cache !== undefined) text += `,"cache":"${entry.cache}"`;
  if (entry.cacheReason !== undefined) text += `,"cacheReason":${quote(entry.cacheReason)}`;
  if (entry.collapsed === true) text += ',"collapsed":true';
  return text;
}

const LEGACY: ReadonlySet<string> = new Set(LEGACY_METHODS);

function mcpMembers(method: string, name: string | undefined): string {
  const { route } = methodRow(method);
  if (route === 'unknown' && !LEGACY.has(method)) return ',"mcpMethod":"other"';
  if (name === undefined || (route !== 'tool' && route !== 'prompt')) return `,"mcpMethod":"${method}"`;
  const shown = name.length > MAX_NAME_CHARS ? `${name.slice(0, MAX_NAME_CHARS)}…` : name;
  return `,"mcpMethod":"${method}","mcpName":${quote(shown)}`;
}

/**
 * To the microsecond, from whole numbers: printing a fraction costs four times as much. An unreadable duration is
 * 0, as `NaN` would break the line.
 */
function rounded(ms: number): string {
  const us = Math.round(ms * 1_000);
  if (!(us > 0 && us < Number.MAX_SAFE_INTEGER)) return '0';
  const rest = us % 1_000;
  const whole = (us - rest) / 1_000;
  if (rest === 0) return `${whole}`;
  return `${whole}.${rest < 10 ? '00' : rest < 100 ? '0' : ''}${rest}`;
}
