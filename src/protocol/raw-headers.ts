/**
 * Headers by name, straight from Node's raw list: of most requests no table is made.
 *
 * Clients send the same names in the same order each time. Which name stands where is worked out once for each such
 * order, and a request is a look into its own list.
 */

/** Lower-case names and their values, as a `Map` has them. */
export type HeaderValues = Pick<ReadonlyMap<string, string>, 'get' | 'has' | 'keys' | typeof Symbol.iterator>;

/** Orders that are remembered; beyond it the oldest is worked out anew. */
const REMEMBERED_ORDERS = 16;

/** Names in one order, none of them twice. */
interface Order {
  /** As they were sent. */
  readonly sent: readonly string[];
  /** Lower-case name → where in the raw list its value stands. */
  readonly at: ReadonlyMap<string, number>;
}

const orders: Order[] = [];
let oldest = 0;

/** The headers of `[name, value, …]`; undefined where a name comes twice. White space around values is no part of them. */
export function rawHeaders(raw: readonly string[]): HeaderValues | undefined {
  for (const order of orders) if (isIn(order, raw)) return new RawHeaders(order, raw);
  const order = remember(raw);
  return order && new RawHeaders(order, raw);
}

function isIn({ sent }: Order, raw: readonly string[]): boolean {
  if (2 * sent.length !== raw.length) return false;
  for (let i = 0; i < sent.length; i++) if (sent[i] !== raw[2 * i]) return false;
  return true;
}

function remember(raw: readonly string[]): Order | undefined {
  const sent = raw.filter((_, i) => i % 2 === 0);
  const at = new Map(sent.map((name, i) => [name.toLowerCase(), 2 * i + 1]));
  if (at.size < sent.length) return undefined;
  const order = { sent, at };
  orders[oldest] = order;
  oldest = (oldest + 1) % REMEMBERED_ORDERS;
  return order;
}

class RawHeaders implements HeaderValues {
  readonly #order: Order;
  readonly #raw: readonly string[];

  constructor(order: Order, raw: readonly string[]) {
    this.#order = order;
    this.#raw = raw;
  }

  get(name: string): string | undefined {
    const at = this.#order.at.get(name);
    return at === undefined ? undefined : trimOws(this.#raw[at] ?? '');
  }

  has(name: string): boolean {
    return this.#order.at.has(name);
  }

  keys(): MapIterator<string> {
    return this.#order.at.keys();
  }

  *[Symbol.iterator](): MapIterator<[string, string]> {
    for (const [name, at] of this.#order.at) yield [name, trimOws(this.#raw[at] ?? '')];
  }
}

/** A value without the white space around it. *Spec:* RFC 9110, section 5.5. */
export function trimOws(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isOws(value.charCodeAt(start))) start++;
  while (end > start && isOws(value.charCodeAt(end - 1))) end--;
  return start === 0 && end === value.length ? value : value.slice(start, end);
}

function isOws(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
