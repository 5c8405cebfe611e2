/**
 * The shape of a request's head: its target, and the names of its headers as they were sent, in their order. Pure.
 *
 * Clients write the same head each time, but for the values in it. A shape is taken from a request that Node's parser
 * has read. What it reads is plain, and the parser would read the same of it: single spaces, visible ASCII, one
 * `Content-Length`, nothing that changes how the message is framed. Anything else it leaves to the parser.
 * *Spec:* RFC 9112, sections 2 to 6.
 */

/** A head that was read. */
export interface ReadHead {
  /** `[name, value, …]`, as Node has it. */
  readonly raw: readonly string[];
  /** Length of the head: where the body begins. */
  readonly bodyAt: number;
  /** Length of the body. */
  readonly bodyBytes: number;
}

const LENGTH = 'content-length';
const CONNECTION = 'connection';
/** One of these gives a message another end, or more than one answer. */
const REFRAMING: ReadonlySet<string> = new Set([
  'transfer-encoding',
  'upgrade',
  'expect',
  'proxy-connection',
]);
/** More digits than any body has that is read here. */
const LENGTH_VALUE = /^(?:0|[1-9]\d{0,6})$/;
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;
const TARGET = /^[!-~]+$/;
const HEAD_END = Buffer.from('\r\n\r\n');
const SPACE = 0x20;
const LAST_VISIBLE = 0x7e;

/** Shapes that are remembered; a connection whose shape is older keeps its own. */
const REMEMBERED_SHAPES = 16;
const shapes: Shape[] = [];
let oldest = 0;

/** The shape of a POST that was parsed; undefined where every request of that shape has to be. */
export function shapeOf(target: string, raw: readonly string[]): Shape | undefined {
  for (const shape of shapes) if (shape.isOf(target, raw)) return shape;
  const names = raw.filter((_, i) => i % 2 === 0);
  const lower = names.map((name) => name.toLowerCase());
  if (!TARGET.test(target) || !names.every((name) => TOKEN.test(name))) return undefined;
  if (lower.filter((name) => name === LENGTH).length !== 1) return undefined;
  if (lower.some((name) => REFRAMING.has(name))) return undefined;
  const shape = new Shape(target, names, lower);
  shapes[oldest] = shape;
  oldest = (oldest + 1) % REMEMBERED_SHAPES;
  return shape;
}

export class Shape {
  readonly target: string;
  readonly #names: readonly string[];
  /** A whole head without its values. Compared byte by byte: a pattern made for each shape costs milliseconds to compile. */
  readonly #form: Buffer;
  /** How much of it stands in front of each value. */
  readonly #formBytes: readonly number[];
  /** Which of the values these are. */
  readonly #length: number;
  readonly #connections: readonly number[];

  /** @param lower the names in lower case */
  constructor(target: string, names: readonly string[], lower: readonly string[]) {
    const parts = names.map((name) => `\r\n${name}: `);
    parts[0] = `POST ${target} HTTP/1.1${parts[0]}`;
    this.target = target;
    this.#names = names;
    this.#form = Buffer.from(parts.join(''), 'latin1');
    this.#formBytes = parts.map((part) => part.length);
    this.#length = lower.indexOf(LENGTH);
    this.#connections = lower.flatMap((name, i) => (name === CONNECTION ? [i] : []));
  }

  /** True of a head of this shape, whatever its values are. */
  isOf(target: string, raw: readonly string[]): boolean {
    if (target !== this.target || raw.length !== 2 * this.#names.length) return false;
    for (let i = 0; i < this.#names.length; i++) if (raw[2 * i] !== this.#names[i]) return false;
    return true;
  }

  /** Reads the head that stands at the beginning of `bytes`; undefined where it has another shape, or is not all there. */
  read(bytes: Buffer): ReadHead | undefined {
    const bounds = this.#bounds(bytes);
    const end = bounds?.at(-1);
    if (bounds === undefined || end === undefined || !standsAt(bytes, end, HEAD_END)) return undefined;
    const head = bytes.toString('latin1', 0, end);
    const raw: string[] = [];
    for (let i = 0; i < this.#names.length; i++)
      raw.push(this.#names[i] as string, head.slice(bounds[2 * i], bounds[2 * i + 1]));
    const length = nthValue(raw, this.#length);
    if (!LENGTH_VALUE.test(length)) return undefined;
    for (const i of this.#connections)
      if (nthValue(raw, i) !== 'keep-alive' && nthValue(raw, i) !== 'Keep-Alive') return undefined;
    return { raw, bodyAt: end + HEAD_END.length, bodyBytes: Number(length) };
  }

  /** Where each value begins and ends. */
  #bounds(bytes: Buffer): number[] | undefined {
    const form = this.#form;
    const bounds: number[] = [];
    let at = 0;
    let compared = 0;
    for (const partBytes of this.#formBytes) {
      const start = at + partBytes;
      if (start >= bytes.length) return undefined;
      for (; at < start; at++) if (bytes[at] !== form[compared++]) return undefined;
      at = endOfValue(bytes, start);
      if (at === start || bytes[start] === SPACE || bytes[at - 1] === SPACE) return undefined;
      bounds.push(start, at);
    }
    return bounds;
  }
}

function nthValue(raw: readonly string[], i: number): string {
  return raw[2 * i + 1] as string;
}

function standsAt(bytes: Buffer, at: number, part: Buffer): boolean {
  if (at + part.length > bytes.length) return false;
  for (let i = 0; i < part.length; i++) if (bytes[at + i] !== part[i]) return false;
  return true;
}

function endOfValue(bytes: Buffer, start: number): number {
  let at = start;
  // Four at a time, as tokens are long.
  while (
    isVisible(bytes[at]) &&
    isVisible(bytes[at + 1]) &&
    isVisible(bytes[at + 2]) &&
    isVisible(bytes[at + 3])
  )
    at += 4;
  while (isVisible(bytes[at])) at++;
  return at;
}

/** Of visible ASCII or a space; not of a byte that is not there. */
function isVisible(byte: number | undefined): boolean {
  return byte !== undefined && byte >= SPACE && byte <= LAST_VISIBLE;
}
