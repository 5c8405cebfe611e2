/**
 * The fast lane: past Node's parser, and past the objects that Node makes for each request.
 *
 * It stands between a connection and Node's parser, and serves a POST whose head has the shape of one that the parser
 * has read before on this connection, and which is all there, in one piece and with nothing behind it. Everything else
 * goes to the parser, byte by byte as it came. So the lane never decides how a request is to be read: where the parser
 * could read anything else, it is the parser that reads. A connection whose client writes otherwise leaves the lane for
 * good. *Never* answers otherwise than without it: `test/integration/lane.test.ts` holds both against each other.
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
}

/** Bytes of further requests that wait for an answer under way; beyond it the client has to. */
const MAX_WAITING_BYTES = 64 * 1024;

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
 */
type State = 'between' | 'parsing' | 'answering' | 'off';

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

  over(response: LaneResponse): void {
    const { socket } = this;
    this.#response = undefined;
    this.#state = 'between';
    if ((socket as Carrier)._httpMessage === response) (socket as Carrier)._httpMessage = null;
    if (socket.destroyed) return;
    if (response._last) socket.destroySoon();
    else if (this.#waiting.length > 0) this.#goOn();
  }

  #take(bytes: Buffer): void {
    if (this.#state === 'answering') return this.#wait(bytes);
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
    const mostBytes = this.#parsedBytes ?? this.#options.headBytes + this.#options.bodyBytes();
    if (this.#givenBytes > mostBytes) this.#leave();
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
    if (this.#waiting.length > MAX_WAITING_BYTES) this.socket.pause();
  }

  /** Goes on with what came while the lane was answering. */
  #goOn(): void {
    const bytes = this.#waiting.take();
    if (this.socket.isPaused()) this.socket.resume();
    this.#take(bytes);
    if (this.#endWaits) this.#ended();
  }

  #ended(): void {
    this.#endWaits = this.#waiting.length > 0;
    if (!this.#endWaits && (this.socket as Carrier).parser != null) this.#parser.end.call(this.socket);
  }
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, i) => text === b[i]);
}
