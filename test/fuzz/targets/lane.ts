/** Request heads on the fast lane: what a shape reads, against Node's own parser. */
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { shapeOf } from '../../../src/edge/lane-shape.ts';
import type { Target } from '../engine.ts';
import { mutateBytes } from '../mutate.ts';
import type { Random } from '../random.ts';

/** What is used of Node's parser; it has no types of its own. */
interface NativeParser {
  initialize(type: number, resource: object): void;
  execute(bytes: Uint8Array): number | Error;
  [event: number]: (...args: never[]) => unknown;
}
const { HTTPParser, methods } = createRequire(import.meta.url)('_http_common') as {
  readonly HTTPParser: (new () => NativeParser) &
    Readonly<
      Record<'REQUEST' | 'kOnHeadersComplete' | 'kOnBody' | 'kOnMessageComplete' | 'kOnHeaders', number>
    >;
  readonly methods: readonly string[];
};

interface Parsed {
  readonly heads: {
    readonly raw: readonly string[];
    readonly method: string | undefined;
    readonly url: string;
    readonly version: string;
    readonly isUpgrade: boolean;
    readonly isKeptAlive: boolean;
  }[];
  body: string;
  completeCount: number;
  /** Bytes that were read; undefined where it found a fault. */
  read: number | undefined;
}

/** Reads bytes as Node's server does. */
function parse(bytes: Uint8Array): Parsed {
  const parsed: Parsed = { heads: [], body: '', completeCount: 0, read: undefined };
  const parser = new HTTPParser();
  parser.initialize(HTTPParser.REQUEST, {});
  let early: string[] = [];
  let earlyUrl = '';
  parser[HTTPParser.kOnHeaders] = (headers: string[], url: string) => {
    early = early.concat(headers);
    earlyUrl += url;
  };
  parser[HTTPParser.kOnHeadersComplete] = (
    major: number,
    minor: number,
    headers: string[] | undefined,
    method: number,
    url: string | undefined,
    _status: undefined,
    _message: undefined,
    isUpgrade: boolean,
    isKeptAlive: boolean,
  ) => {
    parsed.heads.push({
      raw: headers ?? early,
      method: methods[method],
      url: url ?? earlyUrl,
      version: `${major}.${minor}`,
      isUpgrade,
      isKeptAlive,
    });
    return 0;
  };
  parser[HTTPParser.kOnBody] = (piece: Buffer) => {
    parsed.body += piece.toString('latin1');
  };
  parser[HTTPParser.kOnMessageComplete] = () => {
    parsed.completeCount++;
  };
  const read = parser.execute(bytes);
  parsed.read = typeof read === 'number' ? read : undefined;
  return parsed;
}

const NAMES: readonly string[] = [
  'Host',
  'host',
  'Accept',
  'Authorization',
  'Mcp-Method',
  'Mcp-Name',
  'MCP-Protocol-Version',
  'X-Odd_name!',
  'Connection',
  'Keep-Alive',
  'TE',
  'Trailer',
  'Content-Type',
  'Content-Length',
  'Transfer-Encoding',
  'Expect',
  'Upgrade',
  'Proxy-Connection',
];
const VALUES: readonly string[] = [
  'localhost',
  'keep-alive',
  'Keep-Alive',
  'close',
  'upgrade',
  'keep-alive, close',
  'chunked',
  '100-continue',
  'a b  c',
  'x:y; z="1, 2"',
  '0',
  '3',
  '=?base64?w6k=?=',
  'h2c',
];
const TOKENS: readonly string[] = [
  '\r\n',
  '\r',
  '\n',
  '\r\n\r\n',
  ' ',
  '\t',
  ':',
  '\u0000',
  'é',
  'Content-Length: 3\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Connection: close\r\n',
  'Expect: 100-continue\r\n',
  'Upgrade: h2c\r\n',
  'POST /mcp HTTP/1.1\r\n',
  'GET',
  'HTTP/1.0',
  '+',
  '03',
  '0x3',
  ',3',
];

/** A request as most clients write it, now and then with what no client should write. */
function request(random: Random, names: readonly string[], target: string): string {
  const body = random.text(40);
  const bytes = Buffer.byteLength(body);
  const lines = names.map((name) => {
    if (name.toLowerCase() !== 'content-length') return `${name}: ${random.pick(VALUES)}`;
    return `${name}: ${random.once(20) ? random.pick(VALUES) : bytes}`;
  });
  return `POST ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`;
}

/**
 * Two requests of one connection, the second often damaged. Nothing that the shape of the first reads of the second may
 * be anything but what the parser reads of it: otherwise two would see two requests in the same bytes.
 */
export const laneShape: Target<{ readonly first: Uint8Array; readonly second: Uint8Array }> = {
  name: 'lane-shape',
  about: 'what the fast lane reads, Node’s parser reads the same',
  generate(random) {
    const target = random.pick(['/mcp', '/mcp', '/', '/a?b', 'http://x/mcp']);
    const plain = random.many(random.between(0, 6), () =>
      random.pick(NAMES.slice(0, random.once(4) ? 99 : 9)),
    );
    const names = random.once(10)
      ? plain
      : plain.toSpliced(random.below(plain.length + 1), 0, 'Content-Length');
    const first = Buffer.from(request(random, names, target));
    const second = Buffer.from(request(random, names, target));
    return {
      first: new Uint8Array(first),
      second: random.once(3) ? new Uint8Array(second) : mutateBytes(random, second, TOKENS, [first]),
    };
  },
  check({ first, second }) {
    const [head] = parse(first).heads;
    if (head === undefined) return 'the first is none';
    const shape = shapeOf(head.url, head.raw);
    if (shape === undefined) return 'a shape that is always parsed';
    const bytes = Buffer.from(second);
    const read = shape.read(bytes);
    if (read === undefined) return 'left to the parser';
    const { raw, bodyAt, bodyBytes } = read;
    const message = bytes.subarray(0, bodyAt + bodyBytes);
    const parsed = parse(message);
    assert.equal(parsed.read, message.length, 'the parser finds a fault');
    const expected = {
      raw,
      method: 'POST',
      url: head.url,
      version: '1.1',
      isUpgrade: false,
      isKeptAlive: true,
    };
    assert.deepEqual(parsed.heads, [expected]);
    assert.equal(parsed.body, message.subarray(bodyAt).toString('latin1'));
    const isAllThere = bytes.length >= bodyAt + bodyBytes;
    assert.equal(parsed.completeCount, isAllThere ? 1 : 0);
    return isAllThere ? 'read' : 'begun';
  },
};
