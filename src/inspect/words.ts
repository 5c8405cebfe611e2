/** How things are said: troubles in an operator's words, and what a server says made harmless. Pure. */
import type { Failure, ReadOutcome } from '../upstream/types.ts';
import type { Trouble } from './facts.ts';

/** Of a text that a server chose. */
const SHOWN_CHARS = 200;

/** What a terminal obeys, or turns the text around it. */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]/gu;

/** A text of somebody else's: on one line, without what a terminal obeys, cut. */
export function printable(text: string): string {
  const shown = text.slice(0, SHOWN_CHARS).replaceAll(UNSAFE, '?');
  return text.length > SHOWN_CHARS ? `${shown}…` : shown;
}

/** Every text of a value made printable, and free of these secrets: a server may say what it was given. Times are rounded. */
export function cleaned<T>(value: T, secrets: readonly string[]): T {
  const clean = (text: string): string =>
    printable(secrets.reduce((rest, secret) => rest.replaceAll(secret, '[redacted]'), text));
  const walk = (part: unknown): unknown => {
    if (typeof part === 'string') return clean(part);
    // Nobody measures a network more finely.
    if (typeof part === 'number') return Math.round(part * 10) / 10;
    if (Array.isArray(part)) return part.map(walk);
    if (typeof part !== 'object' || part === null) return part;
    return Object.fromEntries(Object.entries(part).map(([key, inner]) => [clean(key), walk(inner)]));
  };
  return walk(value) as T;
}

type Unanswered = Exclude<ReadOutcome, { kind: 'large' }>;

/** What came instead of a result. */
export function troubleOf(outcome: Unanswered): Trouble {
  switch (outcome.kind) {
    case 'answer': {
      const { answer, status } = outcome;
      if (answer.kind === 'result')
        return { kind: 'odd', words: `a result of type ${JSON.stringify(answer.resultType)}`, status };
      const { code, message } = answer;
      return { kind: 'error', words: `error ${code} with HTTP ${status}: ${message}`, code, status };
    }
    case 'refused':
      return { kind: 'refused', words: refusedWords(outcome), status: outcome.status };
    case 'failure':
      return failureTrouble(outcome.failure);
  }
}

function refusedWords({ status, challenge }: Extract<ReadOutcome, { kind: 'refused' }>): string {
  const asks = challenge === undefined ? '' : `, WWW-Authenticate: ${challenge}`;
  if (status === 401 || status === 403) return `HTTP ${status}${asks}`;
  if (status === 404) return 'HTTP 404: there is nothing at this path';
  return `HTTP ${status}, without a JSON-RPC error${asks}`;
}

/** A failure in words. */
export function failureTrouble(failure: Failure): Trouble {
  const { proxyError, status } = failure;
  const kind = proxyError.startsWith('tls_') ? 'tls' : failure.kind;
  return { kind, words: failureWords(failure), ...(status !== undefined && { status }) };
}

function failureWords({ kind, proxyError, detail }: Failure): string {
  switch (kind) {
    case 'connect':
      return connectWords(proxyError, detail);
    case 'timeout':
      return proxyError === 'connection_timeout' ? 'no connection in time' : 'no whole answer in time';
    case 'reset':
      return `broken off before the answer was whole (${detail})`;
    case 'http_5xx':
      return `a server error: ${detail}`;
    case 'broken':
      return detail;
    case 'too_large':
      return `an answer that is too large (${detail})`;
    case 'circuit_open':
      return 'not asked any more after so many failures, as the gateway would do';
    case 'full':
      return 'too much at a time';
    case 'cancelled':
      return 'given up';
  }
}

function connectWords(proxyError: string, detail: string): string {
  switch (proxyError) {
    case 'connection_refused':
      return 'nobody listens there (connection refused)';
    case 'dns_error':
      return `the host name is not known (${detail})`;
    case 'tls_certificate_error':
      return `its certificate is not trusted (${detail})`;
    case 'tls_protocol_error':
      return `no TLS that works (${detail})`;
    default:
      return `it cannot be reached (${detail})`;
  }
}

const HOUR_MS = 3_600_000;

/** `60 s`, `5 m`, `1.5 s`, `250 ms`. */
export function durationWords(ms: number): string {
  if (ms < 1_000) return `${ms < 10 && !Number.isInteger(ms) ? ms.toFixed(1) : Math.round(ms)} ms`;
  const [size, unit] =
    ms >= HOUR_MS
      ? ([HOUR_MS, 'h'] as const)
      : ms >= 120_000
        ? ([60_000, 'm'] as const)
        : ([1_000, 's'] as const);
  return `${Math.round((ms / size) * 10) / 10} ${unit}`;
}

/** `812 B`, `1.2 KiB`, `40 MiB`. */
export function sizeWords(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`;
  const [size, unit] = bytes < 1 << 20 ? ([1 << 10, 'KiB'] as const) : ([1 << 20, 'MiB'] as const);
  const amount = bytes / size;
  return `${amount < 10 ? amount.toFixed(1) : Math.round(amount)} ${unit}`;
}
