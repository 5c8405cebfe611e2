/**
 * What a process says beside its messages: standard error, and what is no message on standard output.
 *
 * It may say what it was given: values of its variables are cut out before anything else is. It may say anything,
 * and as much as it likes: lines are cut and counted. *Never* keeps the process waiting for the log.
 */
import { Lines } from './child-lines.ts';

/** Where it goes; the same as `UpstreamDeps.log`. */
export type ChildLog = (
  level: 'info' | 'warn',
  message: string,
  fields: Readonly<Record<string, unknown>>,
) => void;

/** Of a line on standard error the log has this much. */
const MAX_LINE_CHARS = 500;
/** So many lines of one process are logged in a second: a flood would push everything else out of the log. */
const MAX_LINES_PER_SECOND = 20;
/** Of what is no message this much is shown, once. */
const MAX_JUNK_CHARS = 200;
/** What is looked at of a line: more than is ever shown of it, so that secrets in what is shown are found whole. */
const LOOKED_AT_BYTES = 64 << 10;
/** A shorter value is no secret: every "1" of a log would be cut out for `DEBUG: "1"`. */
const MIN_SECRET_CHARS = 4;
const SECOND_MS = 1_000;

const REDACTED = '[redacted]';

/** Cuts secrets out of a text, and the beginning of one where the text itself was cut off. */
export function redactor(secrets: readonly string[]): (text: string, end: 'whole' | 'cut') => string {
  // A value of several lines is said line by line. The longest first: a shorter one may be a part of it.
  const known = [...new Set(secrets.flatMap((secret) => secret.split(/[\r\n]+/)).map((part) => part.trim()))]
    .filter((part) => part.length >= MIN_SECRET_CHARS)
    .sort((a, b) => b.length - a.length);
  return (text, end) => {
    let clean = text;
    for (const secret of known) clean = clean.replaceAll(secret, REDACTED);
    return end === 'whole' ? clean : withoutBeginning(clean, known);
  };
}

function withoutBeginning(text: string, secrets: readonly string[]): string {
  let most = 0;
  for (const secret of secrets) {
    for (let length = Math.min(secret.length - 1, text.length); length > most; length--) {
      if (text.endsWith(secret.slice(0, length))) most = length;
    }
  }
  return text.slice(0, text.length - most);
}

/** The side talk of one process. */
export class SideTalk {
  readonly #name: string;
  readonly #log: ChildLog | undefined;
  readonly #now: () => number;
  readonly #redact: ReturnType<typeof redactor>;
  readonly #lines = new Lines(LOOKED_AT_BYTES, (line, length) => this.#line(line, length));
  #windowFrom = Number.NEGATIVE_INFINITY;
  #inWindow = 0;
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  #last: readonly [line: Uint8Array, length: 'whole' | 'cut'] | undefined;
  #junkCount = 0;

  /** @param now monotonic milliseconds. */
  constructor(name: string, secrets: readonly string[], log: ChildLog | undefined, now: () => number) {
    this.#name = name;
    this.#log = log;
    this.#now = now;
    this.#redact = redactor(secrets);
  }

  /** A chunk of standard error. */
  stderr(chunk: Uint8Array): void {
    this.#lines.add(chunk);
  }

  /** A line of standard output that is no message: the first is shown, all are counted. */
  junk(line: Uint8Array): void {
    if (this.#junkCount++ > 0) return;
    this.#log?.('warn', 'upstream process prints what is no message to standard output', {
      upstream: this.#name,
      line: this.#shown(line, MAX_JUNK_CHARS),
    });
  }

  /** The process is gone: says what is left to say. */
  end(): void {
    this.#lines.end();
    this.#tellDropped();
    if (this.#junkCount > 1) {
      this.#log?.('info', 'lines of an upstream process that were no messages', {
        upstream: this.#name,
        lines: this.#junkCount,
      });
    }
  }

  /** The last line of standard error that says something, safe to log; undefined when there is none. */
  get lastLine(): string | undefined {
    return this.#last === undefined ? undefined : this.#shown(this.#last[0], MAX_JUNK_CHARS, this.#last[1]);
  }

  #line(line: Uint8Array, length: 'whole' | 'cut'): void {
    if (line.every((byte) => byte <= 0x20)) return;
    this.#last = [line, length];
    const now = this.#now();
    if (now - this.#windowFrom >= SECOND_MS) {
      this.#tellDropped();
      this.#windowFrom = now;
      this.#inWindow = 0;
    }
    if (this.#inWindow >= MAX_LINES_PER_SECOND) {
      this.#dropped++;
      // Not as a reason to stay: whoever ends tells it first.
      this.#timer ??= setTimeout(() => this.#tellDropped(), this.#windowFrom + SECOND_MS - now).unref();
      return;
    }
    this.#inWindow++;
    this.#log?.('info', 'upstream process says', {
      upstream: this.#name,
      line: this.#shown(line, MAX_LINE_CHARS, length),
    });
  }

  #tellDropped(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#dropped === 0) return;
    const lines = this.#dropped;
    this.#dropped = 0;
    this.#log?.('info', 'upstream process says too much: lines dropped', { upstream: this.#name, lines });
  }

  #shown(line: Uint8Array, maxChars: number, length: 'whole' | 'cut' = 'whole'): string {
    const isWhole = length === 'whole' && line.length <= LOOKED_AT_BYTES;
    const text = Buffer.from(line.subarray(0, LOOKED_AT_BYTES)).toString('utf8').trim();
    const clean = this.#redact(text, isWhole ? 'whole' : 'cut');
    return clean.length > maxChars ? `${clean.slice(0, maxChars)}…` : clean;
  }
}
