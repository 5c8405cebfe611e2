/** What clients send: the classifier and the header codec. */
import assert from 'node:assert/strict';
import { bodyPlan, classify, type Message, readableId } from '../../../src/protocol/classify.ts';
import { errorBody } from '../../../src/protocol/errors.ts';
import {
  decodeHeaderValue,
  encodeHeaderValue,
  type Head,
  mediaType,
  readHead,
} from '../../../src/protocol/headers.ts';
import { MAX_JSON_DEPTH } from '../../../src/protocol/json.ts';
import { keyTexts, paramsText } from '../../../src/protocol/params.ts';
import { Repeats } from '../../../src/protocol/repeats.ts';
import { BODIES, REQUESTS } from '../corpus.ts';
import type { Target } from '../engine.ts';
import { keyOf, plain, readTree, stringOf, type Tree, valuesOf } from '../json-tree.ts';
import { mutateBytes, mutatedJson, mutateText } from '../mutate.ts';
import type { Random } from '../random.ts';

const TOKENS: readonly string[] = [
  '"id":',
  '"ID":1,',
  '"method":"resources/read",',
  '"name":"x",',
  '"uri":"a:b",',
  '"_meta":{},',
  '"jsonrpc":"2.0",',
  '"__proto__":{"method":"x"},',
  'null',
  '\\u0000',
  '\\u006dethod',
  '\ufeff',
  '[{',
  '}]',
];
const BYTES = REQUESTS.map(({ body }) => new TextEncoder().encode(body));
const VALUES = [
  'resources/read',
  'tools/call',
  'server/discover',
  'initialize',
  'ping',
  'x',
  '',
  '2026-07-28',
  '=?base64?YQ==?=',
  '=?base64?YQ?=',
  '=?BASE64?YQ==?=',
  '=?base64??=',
  'é',
  'tasks/get',
];

type RequestCase = { readonly headers: readonly string[]; readonly body: Uint8Array; readonly form: string };

function mutateHeaders(random: Random, headers: readonly string[]): string[] {
  const out = [...headers];
  for (let round = random.below(3); round > 0; round--) {
    const at = random.below(out.length / 2) * 2;
    switch (random.below(5)) {
      case 0:
        out.splice(at, 2);
        break;
      case 1:
        out.push(out[at] ?? '', random.once(2) ? (out[at + 1] ?? '') : random.pick(VALUES));
        break;
      case 2:
        out[at + 1] = random.pick(VALUES);
        break;
      case 3:
        out[at + 1] = mutateText(random, out[at + 1] ?? '', VALUES, VALUES);
        break;
      default:
        out[at] = (out[at] ?? '').toUpperCase();
    }
  }
  return out;
}

const READS = REQUESTS.filter(({ body }) => body.includes('"resources/read"'));
const IDS = [
  '0',
  '-7',
  '12345678901234567890',
  '"a"',
  '""',
  '"\\u0041"',
  '"\\""',
  '1.0',
  '1e3',
  '01',
  '-',
  'null',
  '{}',
  '"é"',
];

type RepeatsCase = {
  readonly headers: readonly (readonly string[])[];
  readonly bodies: readonly Uint8Array[];
};

/** What is taken for a repeat is understood as if it had come first (the fast lane). */
export const repeats: Target<RepeatsCase> = {
  name: 'repeats',
  about: 'a request that came before is understood as if it had not',
  generate(random) {
    const seed = random.pick(READS);
    const asked = Array.from({ length: 2 + random.below(5) }, () => {
      const text = random.once(4)
        ? seed.body
        : seed.body.replace(/"id":[^,}]*/, () => `"id":${random.pick(IDS)}`);
      const bytes = new TextEncoder().encode(text);
      const body = random.once(4) ? mutateBytes(random, bytes, TOKENS, BYTES) : bytes;
      return { headers: random.once(4) ? mutateHeaders(random, seed.headers) : seed.headers, body };
    });
    const all = [{ headers: seed.headers, body: new TextEncoder().encode(seed.body) }, ...asked];
    return { headers: all.map(({ headers }) => headers), bodies: all.map(({ body }) => body) };
  },
  check({ headers, bodies }) {
    const lane = new Repeats();
    let repeated = 0;
    for (const [at, body] of bodies.entries()) {
      const head = readHead(headers[at] ?? []);
      const message = lane.classify(head, { kind: 'whole', bytes: body });
      assert.deepEqual(understood(message), understood(classify(head, { kind: 'whole', bytes: body })));
      if (message.kind === 'request' && message.request.keys !== undefined) repeated++;
    }
    return `${repeated} repeats`;
  },
};

function understood(message: Message): unknown {
  if (message.kind !== 'request') return message;
  const { row, method, name, version, id, params, head, body } = message.request;
  assert.ok(params !== undefined && body.kind === 'whole');
  return {
    ...{ row, method, name, version, id, head, bytes: Buffer.from(body.bytes).toString('latin1') },
    ...{ params: paramsText(params), texts: keyTexts(params) },
  };
}

/** Classifies; what comes out must be what every parser behind the gateway would read (R5, R6, R8). */
export const classifier: Target<RequestCase> = {
  name: 'classifier',
  about: 'never throws; what it takes for a request, every parser reads alike; ids keep their spelling',
  generate(random) {
    const seed = random.pick(REQUESTS);
    const headers = mutateHeaders(random, seed.headers);
    const tree = readTree(seed.body) ?? random.pick(BODIES);
    const body = random.once(3)
      ? mutateBytes(random, new TextEncoder().encode(seed.body), TOKENS, BYTES)
      : new TextEncoder().encode(mutatedJson(random, tree));
    return { headers, body, form: random.once(6) ? 'begun' : 'whole' };
  },
  check({ headers, body, form }) {
    const head = readHead(headers);
    bodyPlan(head);
    if (form === 'begun') return checkBegun(head, body);
    const text = utf8(body);
    const message = classify(head, { kind: 'whole', bytes: body });
    if (message.kind === 'refused') return checkRefusal(message, text, body);
    assert.ok(text !== undefined, 'took what is not UTF-8');
    const tree = readTree(text, MAX_JSON_DEPTH);
    assert.ok(tree !== undefined, 'took what is not JSON');
    if (message.kind === 'notification') {
      assert.deepEqual(valuesOf(tree, 'id'), [], 'a notification with an id');
      assert.ok(
        alike(tree, 'method', (value) => stringOf(value) === message.method),
        'two methods',
      );
      return 'notification';
    }
    const { request } = message;
    const params = valuesOf(tree, 'params')[0];
    const meta = valuesOf(params, '_meta')[0];
    assert.ok(
      alike(tree, 'jsonrpc', (value) => stringOf(value) === '2.0'),
      'two versions of JSON-RPC',
    );
    assert.ok(
      alike(tree, 'method', (value) => stringOf(value) === request.method),
      'two methods',
    );
    assert.ok(
      alike(tree, 'params', (value) => value === params),
      'two params',
    );
    assert.ok(
      alike(params, '_meta', (value) => value === meta),
      'two _meta',
    );
    assert.ok(
      alike(tree, 'id', (value) => value.kind === 'scalar' && value.text === request.id),
      'two ids',
    );
    assert.match(request.id ?? '', /^(".*"|-?\d+)$/s);
    assert.equal(head.headers.get('mcp-method'), request.method);
    const { named } = request.row;
    if (named !== undefined) {
      assert.ok(
        alike(params, named, (value) => stringOf(value) === request.name),
        `two readings of ${named}`,
      );
      assert.equal(decodeHeaderValue(head.headers.get('mcp-name') ?? ''), request.name);
    }
    const version = 'io.modelcontextprotocol/protocolVersion';
    assert.ok(
      alike(meta, version, (value) => stringOf(value) === request.version),
      'two versions',
    );
    checkParams(request, params);
    return `request ${request.row.route}`;
  },
};

/** What is rebuilt for the upstream says what was received, and the texts of the key leave nothing out. */
function checkParams(
  request: Extract<Message, { kind: 'request' }>['request'],
  params: Tree | undefined,
): void {
  assert.ok(request.params !== undefined);
  const sent = readTree(paramsText(request.params), MAX_JSON_DEPTH + 2);
  assert.ok(sent !== undefined, 'params are rebuilt as no JSON');
  assert.deepEqual(byKey(sent), byKey(params), 'params are rebuilt as others');
  const { params: rest, capabilities, meta } = keyTexts(request.params);
  for (const text of [rest, capabilities, meta])
    assert.ok(
      text === '' || readTree(text, MAX_JSON_DEPTH + 2) !== undefined,
      'a text of the key is no JSON',
    );
}

/** Members by key, `_meta` among them; no key twice. */
function byKey(tree: Tree | undefined): ReadonlyMap<string, unknown> {
  return new Map(tree?.kind === 'object' ? tree.members.map((pair) => [keyOf(pair), plain(pair.value)]) : []);
}

function checkBegun(head: Head, bytes: Uint8Array): string {
  const rest: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => assert.fail('a classifier reads nothing'),
  };
  const message = classify(head, { kind: 'begun', bytes, rest });
  if (message.kind === 'request') {
    assert.equal(message.request.method, head.headers.get('mcp-method'));
    assert.equal(head.duplicated, undefined);
  }
  return `begun ${message.kind}`;
}

/** A refusal is well-formed, has the id where one can be read, and says "parse" of exactly what is no JSON. */
function checkRefusal(
  message: Extract<Message, { kind: 'refused' }>,
  text: string | undefined,
  body: Uint8Array,
): string {
  const { refusal, id } = message;
  const answer = JSON.parse(errorBody(refusal, id)) as { id?: unknown; error: { code: number } };
  assert.equal(answer.error.code, refusal.code);
  assert.ok([200, 400, 404].includes(refusal.status), `status ${refusal.status}`);
  assert.ok(refusal.message.length < 400, 'a message without end');
  const isJson = text !== undefined && readTree(text, MAX_JSON_DEPTH) !== undefined;
  assert.equal(refusal.code === -32700, !isJson, 'is it JSON?');
  const readable = readableId(body);
  if (id !== undefined) {
    assert.match(id, /^(".*"|-?\d+)$/s);
    const ids = valuesOf(readTree(text ?? ''), 'id').map(plain);
    assert.deepEqual(ids, [id], 'the id of a refusal is another');
    assert.equal(readable, id);
  }
  return `${refusal.code} ${refusal.message.replaceAll(/".*"/g, '"…"').slice(0, 60)}`;
}

/**
 * Whether every way to read a key gives a value that fits: the first of its spellings, the last, and the ones of a
 * parser that folds case.
 */
function alike(tree: Tree | undefined, key: string, fits: (value: Tree) => boolean): boolean {
  if (tree?.kind !== 'object') return false;
  const fold = (text: string): string =>
    text.replaceAll('\u017f', 's').replaceAll('\u212a', 'k').toLowerCase();
  const found = tree.members.filter((pair) => fold(keyOf(pair)) === fold(key));
  return found.length > 0 && found.every(({ value }) => fits(value));
}

function utf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** `decode(encode(s)) = s`, one name has one wrapped spelling, and nothing that is encoded breaks a header (R1, R2). */
export const headerCodec: Target<{
  readonly name: string;
  readonly value: string;
  readonly raw: readonly string[];
}> = {
  name: 'header-codec',
  about: 'names survive, one wrapped spelling each, nothing throws, encoded values are legal header values',
  generate(random) {
    const name = random.once(3) ? mutateText(random, random.pick(VALUES), VALUES, VALUES) : random.text(30);
    const encoded = encodeHeaderValue(name);
    const value = random.once(3)
      ? mutateText(random, encoded, VALUES, VALUES)
      : random.once(2)
        ? encoded
        : random.text(20);
    const raw = random.many(random.below(6), () =>
      random.pick(['Mcp-Name', 'mcp-name', 'Cookie', 'HOST', value, name]),
    );
    return { name, value, raw };
  },
  check({ name, value, raw }) {
    const encoded = encodeHeaderValue(name);
    assert.match(encoded, /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/, 'an encoded name is no header value');
    // UTF-8 has no lone surrogates, so no header can spell them.
    if (!/\p{Surrogate}/u.test(name)) assert.equal(decodeHeaderValue(encoded), name);
    const decoded = decodeHeaderValue(value);
    if (decoded !== undefined && decoded !== value) {
      const bytes = Buffer.from(decoded, 'utf8').toString('base64');
      assert.equal(value, `=?base64?${bytes}?=`, 'a second spelling of one name');
    }
    const head = readHead(raw);
    for (const [key, one] of head.headers) {
      assert.equal(key, key.toLowerCase());
      assert.ok(!/^[ \t]|[ \t]$/.test(one) || one.includes(', '), 'white space around a value');
    }
    mediaType(value);
    return decoded === undefined ? 'malformed' : decoded === value ? 'plain' : 'wrapped';
  },
};
