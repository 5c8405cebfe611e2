/** A request and its response, as far as an MCP endpoint uses them: Node's own, or those of the fast lane (`lane.ts`). */
import type { Socket } from 'node:net';

/** Takes the pieces of a body. */
export interface Taker {
  data(piece: Buffer): void;
  /** All of it has come; *never* called from within the parser, which may find a fault behind it first. */
  ended(): void;
}

/** A request; what is not said here is as in Node's `IncomingMessage`. */
export interface Incoming {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly httpVersion: string;
  readonly rawHeaders: readonly string[];
  readonly socket: Socket;
  readonly complete: boolean;
  readonly destroyed: boolean;
  readonly readableEnded: boolean;
  /** Hands the body to `taker`, until {@link keep}. To be called before anything of it has come. */
  handTo(taker: Taker): void;
  /** What comes from here on is read from the stream. */
  keep(): void;
  read(): unknown;
  resume(): unknown;
  on(event: string, listener: (...args: never[]) => void): unknown;
  removeListener(event: string, listener: (...args: never[]) => void): unknown;
}

/** A response, as in Node's `ServerResponse`. Emits `close` once, which may be within `end()`; and `drain`. */
export interface Outgoing {
  /** Null while the response of an earlier request has the connection, and when it is over. */
  readonly socket: { uncork(): void } | null;
  readonly statusCode: number;
  readonly headersSent: boolean;
  readonly writableEnded: boolean;
  readonly writableFinished: boolean;
  readonly writableLength: number;
  readonly writableNeedDrain: boolean;
  writeContinue(): void;
  writeHead(status: number, flat: string[]): unknown;
  flushHeaders(): void;
  cork(): void;
  uncork(): void;
  write(chunk: string | Uint8Array): boolean;
  write(chunk: string, encoding: 'utf8' | 'latin1'): boolean;
  end(chunk?: string | Uint8Array): unknown;
  destroy(): unknown;
  on(event: string, listener: (this: never) => void): unknown;
  once(event: string, listener: () => void): unknown;
  listenerCount(event: string): number;
}
