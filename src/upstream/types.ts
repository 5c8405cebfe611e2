/** The contract of the upstream room: what goes to an MCP server, and every way it can come back. */

import type { Answer } from '../protocol/answer.ts';
import type { ListenFilter, ListName, Wanted } from '../protocol/listen-filter.ts';
import type { Signal } from '../protocol/signal.ts';

/** A read-method request: checked, rebuilt, under an id of the gateway's own. */
export interface ReadRequest {
  readonly method: string;
  /** Decoded; sent as `Mcp-Name`. */
  readonly name: string | undefined;
  /** JSON text of `params`, `_meta` included. */
  readonly params: string;
  readonly version: string;
  /** Lower-case: credentials and forwarded headers that this upstream may see; nothing computed. */
  readonly headers: Readonly<Record<string, string>>;
  /** Sent again, under a new id, when the connection broke before an answer began. */
  readonly idempotent: boolean;
  readonly signal: Signal;
  /**
   * A hard limit, waiting for a connection included; never longer than the upstream's own `response` timeout.
   * Without it the `response` timeout holds, and each notification starts it anew, up to `call`.
   */
  readonly deadlineMs?: number;
  /** Bound on what is collected of the decoded answer. */
  readonly maxBytes: number;
  /** Larger: a result is handed on as it comes, if this member of it is an array; absent: failure `too_large`. */
  readonly flow?: { readonly array: string };
  /** Each notification of an SSE answer, as the bytes of its JSON. */
  readonly onNotification?: (message: Uint8Array) => void;
  /**
   * Each request of the server's own in an SSE answer: only servers of an older era send such. @returns whether somebody
   * is asked: then the whole time of a call holds, unless there is a deadline.
   */
  readonly onRequest?: (message: Uint8Array) => boolean;
  /**
   * Each request of a server of an older era that its client may be able to answer, and how. @returns false: it is
   * declined. `reply` undefined: the server can be told nothing, and waits for ever; otherwise it says whether the
   * server took the answer.
   */
  readonly onQuestion?: (
    message: Uint8Array,
    reply: ((message: string) => Promise<boolean>) | undefined,
  ) => boolean;
  /** An opaque word for the caller: callers who differ in it never share an exchange with a server. */
  readonly caller?: string | undefined;
  /** Told the JSON text of the id of each sending. */
  readonly onSent?: (id: string) => void;
  /** Something that may take long by itself: the `call` timeout holds in place of `response`. */
  readonly pace?: 'slow';
}

/** Why no answer came. The kind decides retry, blame and status (see `failure.ts`). */
export interface Failure {
  readonly kind:
    | 'connect' // refused, unreachable, DNS, TLS
    | 'timeout' // connect, headers or body took too long
    | 'reset' // broken off before the answer was whole
    | 'http_5xx'
    | 'broken' // not an MCP answer: wrong type, bad JSON, wrong id, redirect
    | 'too_large'
    | 'circuit_open'
    | 'full' // the pool's bound is reached
    | 'cancelled'; // our side gave up
  /** RFC 9209 error type, for `Proxy-Status`. */
  readonly proxyError: string;
  /** For logs only; never reaches a client. */
  readonly detail: string;
  readonly retryAfterSeconds?: number;
  /** The HTTP status the upstream answered with, where it came to that (`fwd-status`). */
  readonly status?: number;
}

export type ReadOutcome =
  /** A JSON-RPC response that belongs to the request, whatever the HTTP status. */
  | {
      readonly kind: 'answer';
      readonly answer: Extract<Answer, { kind: 'result' | 'error' }>;
      readonly status: number;
      /** Monotonic milliseconds at which the response was whole. */
      readonly receivedAt: number;
      /** Of an older era: the session that the server has opened. */
      readonly session?: string;
    }
  /** A result too large to be held, on its way. Whoever takes it reads it or aborts it. */
  | { readonly kind: 'large'; readonly tail: FlowingTail }
  /** An HTTP refusal without a JSON-RPC answer: 4xx, and 501, which says the same of a method. */
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly challenge: string | undefined;
      readonly retryAfter: string | undefined;
    }
  | { readonly kind: 'failure'; readonly failure: Failure };

/** A streamed call: bytes through. */
export interface StreamRequest {
  readonly method: string;
  readonly name: string | undefined;
  readonly version: string;
  /** Lower-case: credentials, forwarded headers and `mcp-param-*`. */
  readonly headers: Readonly<Record<string, string>>;
  /** The client's bytes: collected when small, otherwise a stream with back-pressure. */
  readonly body: Uint8Array | AsyncIterable<Uint8Array>;
  readonly idempotent: boolean;
  readonly signal: Signal;
  /** As for a read. */
  readonly caller?: string;
}

export type StreamOutcome =
  /** All of a small JSON answer that is a success: no byte of it needs to wait for another. */
  | { readonly kind: 'whole'; readonly chunks: readonly Uint8Array[] }
  | {
      readonly kind: 'response';
      readonly status: number;
      readonly media: 'json' | 'sse' | 'other';
      /** Decoded of any content encoding; ends with an exception of class `UpstreamError` when broken. */
      readonly body: StreamBody;
      /** How long the body is, if that is known beforehand. */
      readonly lengthBytes: number | undefined;
      readonly challenge: string | undefined;
      readonly retryAfter: string | undefined;
    }
  | { readonly kind: 'failure'; readonly failure: Failure };

/**
 * The body of a streamed answer: read once, with back-pressure. Leaving the loop (`return`) or the signal
 * stops the upstream at once.
 */
export interface StreamBody extends AsyncIterable<Uint8Array> {
  /** Instead of leaving the loop: all that mattered has come, what little follows may run out on its own. */
  discard?(): void;
}

/**
 * What a `ResultTail` holds, as it comes: whole only when it ends without an exception (`UpstreamError`). Its head
 * may say `complete`, and no time to live: what the upstream said of that may have come behind the contents.
 */
export interface FlowingTail extends StreamBody {
  /** Stops the upstream; whoever reads gets an exception. Harmless when it has ended. */
  abort(): void;
}

/** For `headgate_upstream_attempts_total`. */
export type AttemptOutcome =
  | 'ok'
  | 'rpc_error'
  | 'http_4xx'
  | 'http_5xx'
  | 'timeout'
  | 'connect'
  | 'reset'
  | 'circuit_open'
  | 'cancelled';

/** What the room reports; metrics implement it. */
export interface UpstreamObserver {
  attempt(upstream: string, outcome: AttemptOutcome): void;
  retry(upstream: string, reason: 'connect' | 'reset'): void;
  upstreamUp(upstream: string, state: 'up' | 'down'): void;
  circuitOpen(upstream: string, state: 'open' | 'closed'): void;
  /** A whole call, retries included. `errorType`: empty, a JSON-RPC code of the protocol, or a word. */
  upstreamOperation(upstream: string, method: string, errorType: string, seconds: number): void;
}

/** What is listened for, and on whose behalf. */
export interface ListenRequest {
  readonly filter: ListenFilter;
  readonly version: string;
  /** Lower-case: credentials and forwarded headers that this upstream may see; nothing computed. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON members of `params._meta`. */
  readonly meta: string;
}

export type ListenEvent =
  /**
   * A stream is open, or covers what is asked for again. `honoured`: all that is listened to now, on all streams;
   * `gained`: what was not before, and may have changed until now; `first`: nothing of this listening was
   * acknowledged before.
   */
  | {
      readonly kind: 'acknowledged';
      readonly honoured: ListenFilter;
      readonly gained: ListenFilter;
      readonly first: boolean;
    }
  | { readonly kind: 'list-changed'; readonly list: ListName }
  /** `params`: verbatim, the upstream's own `_meta` with its subscription id included. */
  | { readonly kind: 'updated'; readonly uri: string; readonly params: Uint8Array }
  /** Of a task that was asked for. `params`: as for `updated`. */
  | {
      readonly kind: 'task';
      readonly taskId: string;
      readonly method: string;
      readonly params: Uint8Array;
    }
  /** A stream broke: whatever it covered may change unheard. It is being opened again. */
  | { readonly kind: 'lost'; readonly reason: Failure; readonly covered: ListenFilter }
  /** A stream could not be opened. It is tried again. */
  | { readonly kind: 'unopened'; readonly reason: Failure }
  /** The upstream does not offer it. It is asked again after minutes. `reason` is safe to log. */
  | { readonly kind: 'not-offered'; readonly reason: string; readonly asked: ListenFilter };

/** A listening that somebody holds. */
export interface Listening {
  /**
   * Asks for something else from now on. What is new is listened for within a moment; of what is left out nothing
   * is told any more. @param wanted may change: this is then called again.
   */
  update(wanted: Wanted): void;
  /** Idempotent; nothing is told behind it. */
  close(): void;
  /**
   * What has become of a part of the filter: what of it is listened to now, and what is still to be acknowledged or
   * refused. What is in neither was refused, or is beyond what is listened for.
   */
  fate(part: ListenFilter): { readonly honoured: ListenFilter; readonly undecided: ListenFilter };
  /** The best of its streams. `waiting`: for the next attempt, or for something to listen for. */
  readonly state: 'opening' | 'open' | 'waiting' | 'not-offered' | 'closed';
}

/** One upstream, as the rest of the gateway sees it. */
export interface Upstream {
  readonly name: string;
  read(request: ReadRequest): Promise<ReadOutcome>;
  stream(request: StreamRequest): Promise<StreamOutcome>;
  /** Listens until it is closed, or the upstream is. */
  listen(request: ListenRequest, on: (event: ListenEvent) => void): Listening;
  /** Gauges for `headgate_upstream_connections`. */
  stats(): Readonly<Record<'connected' | 'free' | 'pending' | 'queued' | 'running', number>>;
  /** `false` while the circuit is open. */
  available(): boolean;
  close(): Promise<void>;
}
