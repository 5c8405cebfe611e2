/** A request on the fast lane, and its response: what an endpoint uses of Node's own, straight on the socket. */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Incoming, Outgoing, Taker } from './messages.ts';

/** A request that is all there. */
export class LaneRequest implements Incoming {
  readonly method = 'POST';
  readonly httpVersion = '1.1';
  readonly complete = true;
  readonly destroyed = false;
  readonly readableEnded = true;
  readonly socket: Socket;
  readonly url: string;
  readonly rawHeaders: readonly string[];
  #taker: Taker | undefined;

  constructor(socket: Socket, url: string, rawHeaders: readonly string[]) {
    this.socket = socket;
    this.url = url;
    this.rawHeaders = rawHeaders;
  }

  handTo(taker: Taker): void {
    this.#taker = taker;
  }

  /** Hands the body over, to who asked for it. */
  deliver(body: Buffer): void {
    if (body.length > 0) this.#taker?.data(body);
    this.#taker?.ended();
  }

  // Nothing is left that could be read, or waited for.
  keep(): void {}
  read(): null {
    return null;
  }
  resume(): void {}
  on(): void {}
  removeListener(): void {}
}

/** What a response stands on. */
export interface LaneEnd {
  readonly socket: Socket;
  /** Header lines of a response that another may follow. */
  readonly keepAliveLines: string;
  /** Called when a response says that nothing follows it. */
  closing(): void;
  /** Called when all of it is written; makes it be over. */
  finished(response: LaneResponse): void;
  /** Called once: it is finished, or the connection is gone. */
  over(response: LaneResponse): void;
}

type Encoding = 'utf8' | 'latin1';

/** No header value has these: they would begin another header. */
const INVALID_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

/** The response. Writes what `ServerResponse` would, byte for byte. *Spec:* RFC 9112, sections 4 to 7. */
export class LaneResponse implements Outgoing {
  statusCode = 200;
  headersSent = false;
  writableEnded = false;
  writableFinished = false;
  /** Nothing follows it on its connection. Node sets it, too, when the client has sent its last byte. */
  _last = false;

  readonly #end: LaneEnd;
  readonly #socket: Socket;
  /** Not written yet: it goes out together with what comes first behind it. */
  #head: string | undefined;
  #isChunked = true;
  #isOver = false;
  #onClose: (() => void) | undefined;
  readonly #onDrain: (() => void)[] = [];

  constructor(end: LaneEnd) {
    this.#end = end;
    this.#socket = end.socket;
  }

  get socket(): Socket | null {
    return this.#isOver ? null : this.#socket;
  }

  /** Asked by Node, of connections that it would close for being idle. */
  get finished(): boolean {
    return this.#isOver;
  }

  get writableLength(): number {
    return this.#socket.writableLength;
  }

  get writableNeedDrain(): boolean {
    return this.#socket.writableNeedDrain;
  }

  /** Nobody on the fast lane waits for it. */
  writeContinue(): void {}

  writeHead(status: number, flat: readonly string[]): void {
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`;
    let isChunked = true;
    let closes = false;
    for (let i = 0; i + 1 < flat.length; i += 2) {
      const name = flat[i] as string;
      const value = flat[i + 1] as string;
      if (INVALID_IN_VALUE.test(value))
        throw new TypeError(`A value of ${name} is none that a header can have`);
      if (name === 'Content-Length') isChunked = false;
      else if (name === 'Connection' && value === 'close') closes = true;
      head += `${name}: ${value}\r\n`;
    }
    head += dateLine();
    if (!closes) head += this.#end.keepAliveLines;
    if (isChunked) head += 'Transfer-Encoding: chunked\r\n';
    // Only now: of a head that could not be made, nothing stays.
    this.#head = `${head}\r\n`;
    this.#isChunked = isChunked;
    if (closes) {
      this._last = true;
      this.#end.closing();
    }
    this.statusCode = status;
    this.headersSent = true;
  }

  flushHeaders(): void {
    if (this.#head !== undefined) this.#send('', 'latin1');
  }

  cork(): void {
    this.#socket.cork();
  }

  uncork(): void {
    this.#socket.uncork();
  }

  write(chunk: string | Uint8Array, encoding: Encoding = 'utf8'): boolean {
    if (!this.#isChunked) return this.#send(chunk, encoding);
    const length = typeof chunk === 'string' ? Buffer.byteLength(chunk, encoding) : chunk.length;
    // A chunk without bytes would be the last one.
    if (length === 0) return this.#send('', 'latin1');
    // What is written in one turn, events mostly, goes out at once.
    this.#corkForThisTurn();
    this.#send(`${length.toString(16)}\r\n`, 'latin1');
    this.#send(chunk, encoding);
    return this.#send('\r\n', 'latin1');
  }

  end(chunk?: string | Uint8Array): void {
    if (this.writableEnded) return;
    const socket = this.#socket;
    socket.cork();
    if (chunk !== undefined) this.write(chunk);
    if (this.#isChunked) this.#send('0\r\n\r\n', 'latin1');
    else if (this.#head !== undefined) this.#send('', 'latin1');
    this.writableEnded = true;
    while (socket.writableCorked > 0) socket.uncork();
    // Of a write that failed, the end of the connection tells.
    if (socket.errored !== null) return;
    // Nearly always the kernel has taken all of it.
    if (socket.writableLength === 0) this.#finish();
    else socket.write('', (error) => error == null && this.#finish());
  }

  destroy(): void {
    this.#socket.destroy();
  }

  on(event: string, listener: (this: never) => void): void {
    if (event === 'close') this.#onClose = listener as () => void;
    else if (event === 'drain') this.#onDrain.push(listener as () => void);
  }

  /** A pipelined request's response waits so for its turn; here it has its turn from the beginning. */
  once(): void {}

  listenerCount(): number {
    return this.#onDrain.length;
  }

  /** Called by Node. @returns true to its `timeout`: the connection was quiet for long, but not idle. */
  emit(event: string): boolean {
    return event === 'timeout';
  }

  /** The client has taken what was written. */
  drained(): void {
    if (this.writableEnded) return;
    for (const listener of this.#onDrain) listener.call(this);
  }

  /** Its connection is gone, or it is finished. */
  over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onClose?.();
    this.#end.over(this);
  }

  #finish(): void {
    this.writableFinished = true;
    this.#end.finished(this);
  }

  #send(data: string | Uint8Array, encoding: Encoding): boolean {
    const socket = this.#socket;
    const head = this.#head;
    // Behind its end the connection may be another's.
    if (socket.destroyed || this.writableEnded) return false;
    if (typeof data !== 'string') {
      if (head === undefined) return socket.write(data);
      this.#corkForThisTurn();
      this.#head = undefined;
      socket.write(head, 'latin1');
      return socket.write(data);
    }
    this.#head = undefined;
    return socket.write(head === undefined ? data : head + data, encoding);
  }

  #corkForThisTurn(): void {
    if (this.#socket.writableCorked > 0) return;
    this.#socket.cork();
    process.nextTick(uncork, this.#socket);
  }
}

function uncork(socket: Socket): void {
  socket.uncork();
}

let dateOfSecond = 0;
let line = '';

/** As Node writes it, once a second. */
function dateLine(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== dateOfSecond) {
    dateOfSecond = second;
    line = `Date: ${new Date(second * 1000).toUTCString()}\r\n`;
  }
  return line;
}
