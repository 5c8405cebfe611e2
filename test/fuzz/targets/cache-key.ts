/** Cache keys and authorization contexts: no two tuples share one (R22, R24). */
import assert from 'node:assert/strict';
import { createIdentify } from '../../../src/auth/caller.ts';
import { cacheKey, type KeyParts, keyText, privateKey, publicKey } from '../../../src/cache/key.ts';
import { readHead } from '../../../src/protocol/headers.ts';
import type { HeaderValues } from '../../../src/protocol/raw-headers.ts';
import { upstreamConfig } from '../../support/scripted.ts';
import type { Target } from '../engine.ts';
import { mutateText } from '../mutate.ts';
import type { Random } from '../random.ts';

const PARTS = [
  'upstream',
  'upstreamDigest',
  'revision',
  'method',
  'uri',
  'cursor',
  'params',
  'capabilities',
  'meta',
] as const;
const TOKENS: readonly string[] = [
  '-',
  '0:',
  '1:',
  '2:',
  ':',
  '10:',
  '-1:',
  ',',
  'hg1,',
  ';',
  '\ud800',
  '\udc00',
  '\u0000',
  '{}',
  '""',
];
const SAMPLES = ['', '-', 'docs', 'resources/read', 'file:///a', '0:', '1:a', '3:1:a', '{}', '{"a":1}'];

function part(random: Random): string | null {
  if (random.once(4)) return null;
  return random.once(2) ? random.pick(SAMPLES) : mutateText(random, random.pick(SAMPLES), TOKENS, SAMPLES);
}

function tupleOf(random: Random): (string | null)[] {
  return random.many(PARTS.length + random.below(3) * 2, () => part(random));
}

/** A tuple that is nearly the same: characters wander over a border, absent becomes empty. */
function nearly(random: Random, tuple: readonly (string | null)[]): (string | null)[] {
  const out = [...tuple];
  const at = random.below(out.length);
  const value = out[at] ?? '';
  switch (random.below(6)) {
    case 0:
      out[at] = out[at] === null ? '' : null;
      break;
    case 1: {
      const cut = random.below(value.length + 1);
      out[at] = value.slice(0, cut);
      if (at + 1 < out.length) out[at + 1] = value.slice(cut) + (out[at + 1] ?? '');
      break;
    }
    case 2:
      out[at] = mutateText(random, value, TOKENS, SAMPLES);
      break;
    case 3:
      out.splice(at, 1);
      break;
    case 4:
      out.push(...random.many(2, () => part(random)));
      break;
    default:
      out[at] = out[(at + 1) % out.length] ?? null;
  }
  return out;
}

function partsOf(tuple: readonly (string | null)[]): KeyParts {
  const text = (index: number): string | undefined => tuple[index] ?? undefined;
  const forwarded: [string, string | undefined][] = [];
  for (let at = PARTS.length; at < tuple.length; at += 2) forwarded.push([text(at) ?? '', text(at + 1)]);
  return {
    upstream: text(0) ?? '',
    upstreamDigest: text(1) ?? '',
    revision: text(2) ?? '',
    method: text(3) ?? '',
    uri: text(4),
    cursor: text(5),
    params: text(6),
    capabilities: text(7),
    meta: text(8),
    forwarded,
  };
}

type KeyCase = { readonly one: readonly (string | null)[]; readonly two: readonly (string | null)[] };

export const cacheKeys: Target<KeyCase> = {
  name: 'cache-key',
  about:
    "two tuples have one key only if they are one tuple; a private key is nobody else's, and never the public one",
  generate(random) {
    const one = tupleOf(random);
    return { one, two: random.once(10) ? one : nearly(random, one) };
  },
  check({ one, two }) {
    const [left, right] = [partsOf(one), partsOf(two)];
    const same = JSON.stringify(flat(left)) === JSON.stringify(flat(right));
    assert.equal(
      cacheKey(left) === cacheKey(right),
      same,
      'keys that are equal stand for other tuples, or the reverse',
    );
    assert.equal(keyText(left) === keyText(right), same);
    const [a, b] = [left.upstream, right.upstream];
    assert.equal(
      privateKey(left.method, a) === privateKey(right.method, b),
      left.method === right.method && a === b,
    );
    assert.notEqual(privateKey(left.method, a), publicKey(right.method));
    return same ? 'the same' : 'different';
  },
};

/** Absent and empty are told apart. */
function flat({ forwarded, ...rest }: KeyParts): unknown[] {
  const mark = (value: string | undefined): unknown => (value === undefined ? null : `=${value}`);
  return [...PARTS.map((name) => mark(rest[name])), ...forwarded.map(([name, value]) => [name, mark(value)])];
}

const NAMES = ['authorization', 'cookie', 'proxy-authorization', 'x-api-key', 'x-tenant', 'x-user', 'accept'];
const TELLING = new Set(NAMES.slice(0, -1));
const config = upstreamConfig('a', { forwardHeaders: ['x-user'] });
const identify = createIdentify(
  {
    upstreams: new Map([['a', config]]),
    cache: { memory: { sizeBytes: 0, maxEntryBytes: 0 }, partitionHeaders: ['x-tenant'] },
  },
  {
    path: '/mcp',
    upstreams: ['a'],
    rules: [],
    partial: 'allow',
    pageSize: 1,
    cache: true,
    legacyClients: true,
  },
  Buffer.alloc(32, 1),
);

type CallerCase = { readonly one: readonly string[]; readonly two: readonly string[] };

/** Callers who differ in anything that tells callers apart are different contexts, the others are not. */
export const callerContext: Target<CallerCase> = {
  name: 'caller-context',
  about: 'two requests are one context only if everything that tells callers apart is equal',
  generate(random) {
    const headers = (): string[] =>
      NAMES.filter(() => random.once(2)).flatMap((name) => [
        name,
        random.pick(['a', 'b', 'Bearer a', 'bearer a', 'a;cookie:1:b', 'cookie:1:b;', '']),
      ]);
    const one = headers();
    const two = random.once(2)
      ? headers()
      : one.map((text, at) =>
          at % 2 === 1 && random.once(6) ? mutateText(random, text, [';', ':', '1', 'cookie'], ['a']) : text,
        );
    return { one, two };
  },
  check({ one, two }) {
    const [left, right] = [readHead(one), readHead(two)];
    const telling = (headers: HeaderValues): string =>
      JSON.stringify([...headers].filter(([name]) => TELLING.has(name)).sort());
    const same = telling(left.headers) === telling(right.headers);
    assert.equal(identify(left) === identify(right), same);
    for (const [, value] of left.headers) {
      if (value.length > 8) assert.ok(!identify(left).includes(value), 'a context shows a credential');
    }
    return identify(left) === 'anonymous' ? 'anonymous' : same ? 'the same' : 'different';
  },
};
