/**
 * Node's request, without what Node does for every request and an MCP endpoint has no use for.
 *
 * - The object of headers that Node makes to look for `Expect`: a POST is read from the raw list, once, and making that
 *   object costs more than the look-up of a cache hit. Until a request is handed over Node is shown it only where there
 *   is something to see. Instrumentation that looks at requests before their listener does sees no headers.
 * - The stream between the parser and whoever collects a body: pieces are handed on as they come.
 *
 * What is neither is what it always was: Node's own headers, and Node's own stream.
 */
import { type IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Incoming, Taker } from './messages.ts';

/** What a request does where nothing here concerns it. */
const ofNode = {
  headers: Object.getOwnPropertyDescriptor(IncomingMessage.prototype, 'headers'),
  readableEnded: Object.getOwnPropertyDescriptor(Readable.prototype, 'readableEnded'),
  dump: (IncomingMessage.prototype as { _dump?: () => void })._dump,
};
const NO_HEADERS: IncomingHttpHeaders = Object.freeze({});
const EXPECT = 'expect';
const UPGRADE = 'upgrade';

/** What a server is given as its `IncomingMessage`; whoever takes its requests calls {@link LeanRequest.arrived} first. */
export class LeanRequest extends IncomingMessage implements Incoming {
  #arrived = false;
  #taker: Taker | undefined;
  #tookAll = false;

  /** To be called first by who is handed the request. */
  arrived(): void {
    this.#arrived = true;
  }

  handTo(taker: Taker): void {
    this.#taker = taker;
  }

  keep(): void {
    this.#taker = undefined;
  }

  /** Called by Node's parser: `null` behind the last piece. */
  override push(piece: Buffer | null, encoding?: BufferEncoding): boolean {
    const taker = this.#taker;
    if (taker === undefined) return super.push(piece, encoding);
    if (piece !== null) {
      taker.data(piece);
      return true;
    }
    this.#tookAll = true;
    process.nextTick(end, taker);
    return false;
  }

  /** Called by Node behind an answer, so that what nobody read does not hold up the next request. */
  _dump(): void {
    if (!this.#tookAll) ofNode.dump?.call(this);
  }

  static {
    // Node's own are accessors, too; its types call them properties, which a class must not override with accessors.
    const { prototype } = LeanRequest;
    Object.defineProperty(prototype, 'headers', {
      ...ofNode.headers,
      get(this: LeanRequest): IncomingHttpHeaders {
        const isShown = this.#arrived || this.httpVersion !== '1.1' || mayMatter(this.rawHeaders);
        return isShown ? ofNode.headers?.get?.call(this) : NO_HEADERS;
      },
    });
    Object.defineProperty(prototype, 'readableEnded', {
      ...ofNode.readableEnded,
      get(this: LeanRequest): boolean {
        return this.#tookAll || ofNode.readableEnded?.get?.call(this);
      },
    });
  }
}

function end(taker: Taker): void {
  taker.ended();
}

/** True where Node acts on a header of HTTP/1.1 before anybody is handed the request. */
function mayMatter(raw: readonly string[]): boolean {
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    const isOfThatLength = name.length === EXPECT.length || name.length === UPGRADE.length;
    if (isOfThatLength && [EXPECT, UPGRADE].includes(name.toLowerCase())) return true;
  }
  return false;
}
