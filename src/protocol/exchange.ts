/** The contract between the request path and the edge: what comes in, and every form an answer can take. */

import type { Body } from './classify.ts';
import type { Refusal } from './errors.ts';
import type { Head } from './headers.ts';
import type { Signal } from './signal.ts';

/** A request whose transport was found in order. */
export interface Inbound {
  /** The configured path of the route, its label everywhere. */
  readonly route: string;
  /** Absent for a `POST`. The others come with a session of an older revision, and without a body. */
  readonly verb?: 'GET' | 'DELETE' | undefined;
  /** There is too much to do: what is new is refused, once it is known to be new. For requests without `Mcp-Method`. */
  readonly strained?: boolean;
  readonly head: Head;
  readonly body: Body;
}

/** What the access log and the metrics say of a request; the request path fills it in as it learns. */
export interface Facts {
  /** As sent; a closed label set is made of it where it becomes a label. */
  mcpMethod?: string;
  /** Names of tools and prompts only: URIs can be private. */
  mcpName?: string;
  upstream?: string;
  cache?: 'hit' | 'stale' | 'miss' | 'bypass' | 'none';
  cacheReason?: string;
  collapsed?: true;
  /** Time spent waiting on upstreams. */
  upstreamMs?: number;
  /** JSON-RPC error code of the answer. */
  rpcError?: number | undefined;
  /** For metrics: `''`, a code, `timeout`, `connect`, `cancelled`. */
  errorType?: string | undefined;
}

/** The live side of a request. */
export interface Exchange {
  /** Fires when the client has left, or when the gateway gives up at the end of its grace. */
  readonly signal: Signal;
  readonly facts: Facts;
  /**
   * Sends a notification of a read before its answer: the answer then becomes an SSE stream and the reply its
   * last event. `message` is the JSON of one JSON-RPC notification; of one that does not take them some are left out,
   * but for those that `must` be told.
   */
  notify(message: Uint8Array, how?: 'must'): void;
  /** Begins such a stream at once, so that its client sees signs of life. */
  stream?(): void;
  /** Waits until the client has taken what was told. */
  taken?(): Promise<void>;
}

export type Reply =
  /** 202, empty: a notification. */
  | { readonly kind: 'accepted' }
  /** An error of the gateway. Without an id the edge looks for one in what is left of a begun body. */
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly id: string | undefined }
  /** One JSON body: `head` and then the chunks of `tail`, as they are. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly head: string;
      readonly tail: readonly Uint8Array[];
      readonly headers: Readonly<Record<string, string>>;
      /** The code, when the body is a JSON-RPC error. */
      readonly rpcError?: number;
    }
  /** A streamed answer. A JSON body that breaks destroys the socket: it must never look whole. */
  | {
      readonly kind: 'relay';
      readonly status: number;
      readonly media: 'json' | 'sse';
      /** Written before the body. */
      readonly head?: string;
      /** Ends a body that breaks, where it has become an event: the JSON text of an error. */
      readonly broken?: string;
      readonly body: AsyncIterable<Uint8Array>;
      /** How long a JSON body is, if that is known and nothing stands before it. */
      readonly lengthBytes?: number;
      readonly headers: Readonly<Record<string, string>>;
    }
  /**
   * `subscriptions/listen`: `opening` at once, what `feed` tells, comments while idle, `closing` when the gateway ends
   * it. JSON texts; the stream of an older client has neither.
   */
  | {
      readonly kind: 'listen';
      readonly opening?: string;
      readonly closing?: string;
      readonly feed: Feed;
    };

/** What a listen tells. */
export interface Feed {
  /** Begins, behind the opening. Called at most once, and never behind {@link stop}. */
  start(outlet: Outlet): void;
  /** The client has caught up. */
  drained(): void;
  /** The listen is over, or was never begun. Idempotent. */
  stop(): void;
}

/** Where a listen is written. */
export interface Outlet {
  /** Writes one message, a JSON text. @returns false when no more should come until {@link Feed.drained}. */
  write(message: string): boolean;
  /** Ends it, as the gateway does. */
  end(): void;
}

/** What may be there at once: the promises on its way would cost a cache hit more than its look-up does. */
export type Soon<T> = T | Promise<T>;

/** The request path. *Never* throws or rejects but for bugs. */
export type Handle = (inbound: Inbound, exchange: Exchange) => Soon<Reply>;
