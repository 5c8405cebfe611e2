/**
 * The fast lane: past Node's parser, and past the objects that Node makes for each request.
 *
 * It stands between a connection and Node's parser, and serves a POST whose head has the shape of one that the parser
 * has read before on this connection, and which is all there, in one piece and with nothing behind it. Everything else
 * goes to the parser, byte by byte as it came. So the lane never decides how a request is to be read: where the parser
 * could read anything else, it is the parser that reads. A connection whose client writes otherwise leaves the lane for
 * good. *Never* answers otherwise than without it: `test/integration/lane.test.ts` holds both against each other. Only
 * what is sent behind a request before its answer is there waits for that: Node begins with it at once.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Gather } from './gather.ts';
import type { LeanRequest } from './incoming.ts';
import { type LaneEnd, LaneRequest, LaneResponse } from './lane-exchange.ts';
import { type Shape, shapeOf } from './lane-shape.ts';
import type { Incoming, Outgoing } from './messages.ts';

/** What the lanes of a listener share. */
export interface LaneOptions {
  /** Takes a POST. */
  readonly endpoint: (request: Incoming, response: Outgoing) => void;
  /** Larger heads are left to the parser. */
  readonly headBytes: number;
  /** And larger bodies. */
  readonly bodyBytes: () => number;
  /** Header lines of a response that another may follow. */
  readonly keepAliveLines: string;
  /** Called when a client has sent more than is read before its answer: it is no longer seen when that client leaves. */
  readonly onStalled: (socket: Socket) => void;
}

/** Bytes of further requests that wait for an answer under way; beyond it the client has to. */
const MAX_WAITING_BYTES = 64 * 1024;
/** How long a client may go on sending behind its last answer: closed at once, it might lose that. */
const LINGER_MS = 2_000;

const LANE = Symbol('lane');
/**
 * Two of these are Node's: the response under way, by which it knows that a connection is not idle; and the parser,
 * until it is given to another connection.
 */
type Carrier = { [LANE]?: Lane; _httpMessage?: unknown; parser?: unknown };

/** What Node's server does with a connection. */
interface Parser {
  take(this: Socket, bytes: Buffer): void;
  end(this: Socket): void;
}

/** The lane of a connection, if it has one. */
export function laneOn(socket: object): Lane | undefined {
  return (socket as Carrier)[LANE];
}

/** Gives a connection its lane. To be called when Node's server has it, and nothing of it was read yet. */
export function openLane(socket: Socket, options: LaneOptions): void {
  const take = socket.listeners('data').find((listener) => listener.name === 'bound socketOnData');
  const end = socket.listeners('end').find((listener) => listener.name === 'bound socketOnEnd');
  // A server that Node has changed is not taken apart: it goes on without a lane.
  if (take === undefined || end === undefined || socket.listenerCount('data') > 1) return;
  const parser = { take, end } as Parser;
  socket.removeListener('data', parser.take);
  socket.removeListener('end', parser.end);
  (socket as Carrier)[LANE] = new Lane(socket, options, parser);
}

/**
 * - `between`: all that came was answered.
 * - `parsing`: the parser has a request, or the beginning of one.
 * - `answering`: the lane has a request.
 * - `off`: the parser has all that comes.
 * - `closing`: a response has said that nothing follows it.
 */
type State = 'between' | 'parsing' | 'answering' | 'off' | 'closing';

export class Lane implements LaneEnd {
  readonly socket: Socket;
  readonly keepAliveLines: string;
  readonly #options: LaneOptions;
  readonly #parser: Parser;
  #state: State = 'between';
  #shape: Shape | undefined;
  /** What the parser was given of its request, until that has a head. */
  readonly #given = new Gather();
  #givenBytes = 0;
  /** Length of the request that the parser has. */
  #parsedBytes: number | undefined;
  #response: LaneResponse | undefined;
  /** What came behind the request that the lane has. *Spec:* RFC 9112, section 9.3.2: it is not safe to begin with it. */
  readonly #waiting = new Gather();
  /** The client has sent its last byte, and some before it are waiting. */
  #endWaits = false;
  /** Bytes behind the last answer were read, and let go by. */
  #isDropping = false;

  constructor(socket: Socket, options: LaneOptions, parser: Parser) {
    this.socket = socket;
    this.keepAliveLines = options.keepAliveLines;
    this.#options = options;
    this.#parser = parser;
    socket.on('data', (bytes: Buffer) => this.#take(bytes));
    socket.on('end', () => this.#ended());
    socket.on('drain', () => this.#response?.drained());
    socket.on('close', () => this.#response?.over());
  }

  /** To be told of every request that Node has made of what came over this connection. */
  parsed(request: LeanRequest, response: ServerResponse): void {
    if (this.#state === 'off') return;
    const { method, url, httpVersion, rawHeaders } = request;
    const isOnly = this.#parsedBytes === undefined;
    const shape = method === 'POST' && httpVersion === '1.1' ? shapeOf(url ?? '', rawHeaders) : undefined;
    // Read from its bytes once more: only so is it known that they are all that the parser has read.
    const head = shape?.read(this.#given.take());
    if (!isOnly || head === undefined || !isSame(head.raw, rawHeaders)) return this.#leave();
    this.#shape = shape;
    this.#parsedBytes = head.bodyAt + head.bodyBytes;
    response.once('close', () => this.#answered(request, response));
  }

  closing(): void {
    this.#state = 'closing';
    // Unread, it would reset the connection, and with it what of the answer is still on its way.
    this.#isDropping = this.#waiting.take().length > 0;
    if (this.socket.isPaused()) this.socket.resume();
  }

  finished(response: LaneResponse): void {
    if (!this.#isDropping) return response.over();
    // Closed now, with more on its way from the client, the connection would be reset.
    this.socket.end();
    setTimeout(() => response.over(), LINGER_MS).unref();
  }

  over(response: LaneResponse): void {
    const { socket } = this;
    this.#response = undefined;
    if ((socket as Carrier)._httpMessage === response) (socket as Carrier)._httpMessage = null;
    if (response._last) socket.destroySoon();
    // Not from within the request that is over: what goes wrong with the next is not its fault.
    else if (this.#waiting.length > 0) process.nextTick(goOn, this);
    else this.#state = 'between';
  }

  /** Goes on with what came while the lane was answering. */
  goOn(): void {
    this.#state = 'between';
    if (this.socket.destroyed) return;
    if (this.socket.isPaused()) this.socket.resume();
    this.#take(this.#waiting.take());
    if (this.#endWaits) this.#ended();
  }

  #take(bytes: Buffer): void {
    if (this.#state === 'answering') return this.#wait(bytes);
    if (this.#state === 'closing') {
      this.#isDropping = true;
      return;
    }
    if (this.#state !== 'between' || !this.#serve(bytes)) this.#parse(bytes);
  }

  /** Serves what is one request of the known shape, and nothing else. @returns whether it is. */
  #serve(bytes: Buffer): boolean {
    const { socket } = this;
    const { headBytes, bodyBytes, endpoint } = this.#options;
    const shape = this.#shape;
    const head = shape?.read(bytes);
    if (shape === undefined || head === undefined || bytes.length !== head.bodyAt + head.bodyBytes)
      return false;
    if (head.bodyAt > headBytes || head.bodyBytes > bodyBytes() || !socket.writable) return false;
    this.#state = 'answering';
    const request = new LaneRequest(socket, shape.target, head.raw);
    const response = new LaneResponse(this);
    this.#response = response;
    endpoint(request, response);
    request.deliver(bytes.subarray(head.bodyAt));
    // A cache hit is over by now.
    if (this.#response === response) (socket as Carrier)._httpMessage = response;
    return true;
  }

  #parse(bytes: Buffer): void {
    if (this.#state !== 'off') this.#note(bytes);
    // Where Node has taken its parser away, what comes is nobody's.
    if ((this.socket as Carrier).parser == null) return;
    this.#parser.take.call(this.socket, bytes);
    if (this.#state !== 'off' && this.#givenBytes > this.#mostBytes()) this.#leave();
  }

  /** More than this in the parser is more than one request, or none that the lane could read. */
  #mostBytes(): number {
    return this.#parsedBytes ?? this.#options.headBytes + this.#options.bodyBytes();
  }

  /** Notes what the parser is given. */
  #note(bytes: Buffer): void {
    if (this.#state === 'between') this.#givenBytes = 0;
    this.#state = 'parsing';
    this.#givenBytes += bytes.length;
    if (this.#parsedBytes === undefined) this.#given.append(bytes, this.#options.headBytes);
  }

  /** The parser's request is answered, and it has nothing else: the lane may have the next one. */
  #answered(request: LeanRequest, response: ServerResponse): void {
    if (this.#state === 'off') return;
    if (!request.complete || !response.writableFinished) return this.#leave();
    this.#state = 'between';
    this.#parsedBytes = undefined;
  }

  #leave(): void {
    this.#state = 'off';
    this.#shape = undefined;
    this.#parsedBytes = undefined;
    this.#given.take();
  }

  #wait(bytes: Buffer): void {
    this.#waiting.append(bytes, MAX_WAITING_BYTES);
    if (this.#waiting.length <= MAX_WAITING_BYTES || this.socket.isPaused()) return;
    this.socket.pause();
    this.#options.onStalled(this.socket);
  }

  #ended(): void {
    // It was finished, and only waited for what its client would still send.
    if (this.#response?.writableFinished === true) this.#response.over();
    this.#endWaits = this.#waiting.length > 0;
    if (!this.#endWaits && (this.socket as Carrier).parser != null) this.#parser.end.call(this.socket);
  }
}

function goOn(lane: Lane): void {
  lane.goOn();
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, i) => text === b[i]);
}
