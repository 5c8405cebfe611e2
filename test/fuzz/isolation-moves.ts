/** What can happen in the isolation model: who asks for what, what upstreams say, and when. */
import fc from 'fast-check';

/** Everything that tells callers apart here: built in, a partition header, a forwarded header. */
export const TELLING = [
  'authorization',
  'cookie',
  'proxy-authorization',
  'x-api-key',
  'x-tenant',
  'x-user',
] as const;

export type Headers = Readonly<Record<string, string>>;

/** Callers who are easily taken for one another: each kind alone, mixtures, and differences in case only. */
export const FAMILIES: readonly (readonly Headers[])[] = [
  ...TELLING.map((name) => [{}, { [name]: 'Bearer a' }, { [name]: 'Bearer b' }]),
  [
    {},
    { 'accept-language': 'de' },
    { authorization: 'Bearer a' },
    { authorization: 'Bearer a', 'accept-language': 'de' },
  ],
  [{ authorization: 'Bearer a' }, { authorization: 'bearer a' }],
  [{ authorization: 'a' }, { cookie: 'a' }, { 'x-api-key': 'a' }, { 'x-user': 'a' }, { 'x-tenant': 'a' }],
  [
    { authorization: 'Bearer a' },
    { authorization: 'Bearer a', cookie: 's=1' },
    { authorization: 'Bearer a', cookie: 's=2' },
    { authorization: 'Bearer b', cookie: 's=1' },
  ],
  [
    { authorization: 'Bearer a', 'x-user': '1' },
    { authorization: 'Bearer b', 'x-user': '1' },
    { authorization: 'Bearer a', 'x-user': '2' },
    { 'x-user': '1' },
  ],
  [{ 'x-user': '1', 'x-tenant': '1' }, { 'x-user': '1' }, { 'x-tenant': '1' }, { 'x-user': '' }, {}],
  [
    { cookie: 's=1', 'x-api-key': '1' },
    { cookie: 's=1' },
    { 'proxy-authorization': 'Basic a', cookie: 's=1' },
  ],
];

export type Auth = 'none' | 'bearer' | 'forward';
export interface Kind {
  readonly name: string;
  readonly auth: Auth;
  readonly forwardHeaders: readonly string[];
}
export const OPEN: Kind = { name: 'open', auth: 'none', forwardHeaders: [] };
export const ROUTES: Readonly<Record<string, readonly Kind[]>> = {
  own: [
    OPEN,
    { name: 'keyed', auth: 'bearer', forwardHeaders: [] },
    { name: 'told', auth: 'none', forwardHeaders: ['x-user'] },
  ],
  forwarding: [
    { name: 'mine', auth: 'forward', forwardHeaders: [] },
    OPEN,
    { name: 'both', auth: 'forward', forwardHeaders: ['x-user', 'cookie'] },
  ],
  alone: [{ name: 'mine', auth: 'forward', forwardHeaders: [] }],
};

/** Built in, configured, or forwarded by an upstream of the route. */
export function tellingOn(kinds: readonly Kind[]): readonly string[] {
  return TELLING.filter(
    (name) => name !== 'x-user' || kinds.some(({ forwardHeaders }) => forwardHeaders.includes(name)),
  );
}

export const seesCallers = ({ auth, forwardHeaders }: Kind): boolean =>
  auth === 'forward' || forwardHeaders.length > 0;

export type Policy = 'respect' | 'private' | 'public';

/** What an upstream says to a question. */
export type Saying =
  | { readonly kind: 'result'; readonly scope: string | undefined; readonly ttlMs: number | undefined }
  | { readonly kind: 'error'; readonly code: number }
  | { readonly kind: 'input_required' }
  | { readonly kind: 'refused'; readonly status: number }
  | { readonly kind: 'failure'; readonly how: 'http_5xx' | 'connect' | 'broken' };

export type Move =
  | {
      readonly kind: 'ask';
      readonly callers: readonly number[];
      readonly method: Method;
      readonly pick: number;
    }
  | { readonly kind: 'continue'; readonly caller: number; readonly pick: number }
  | { readonly kind: 'land'; readonly pick: number; readonly most: number; readonly saying: Saying }
  | { readonly kind: 'tick'; readonly ms: number }
  /** An earlier request again, when what it brought may be past its time, of upstreams that fail now. */
  | { readonly kind: 'lapse'; readonly pick: number; readonly ms: number }
  | { readonly kind: 'leave'; readonly pick: number };

const CACHEABLE = [
  'server/discover',
  'resources/list',
  'resources/templates/list',
  'prompts/list',
  'tools/list',
  'resources/read',
] as const;
const METHODS = [...CACHEABLE, 'tools/call'] as const;
export type Method = (typeof METHODS)[number];

const one = <const T>(value: T) => fc.constant(value);
const pick = fc.nat(40);
const RESULT = fc.record({
  kind: one('result'),
  scope: fc.constantFrom('public', 'public', 'private', 'private', 'Public', 'PRIVATE', 'shared', undefined),
  ttlMs: fc.constantFrom(60_000, 60_000, 5_000, 5_000, 300_000, 0, -1, undefined),
});
const SAYING: fc.Arbitrary<Saying> = fc.oneof(
  { weight: 8, arbitrary: RESULT },
  { weight: 1, arbitrary: fc.record({ kind: one('error'), code: fc.constantFrom(-32602, -32603, -32000) }) },
  { weight: 1, arbitrary: one({ kind: 'input_required' }) },
  { weight: 1, arbitrary: fc.record({ kind: one('refused'), status: fc.constantFrom(401, 403, 429) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: one('failure'), how: fc.constantFrom('http_5xx', 'connect', 'broken') }),
  },
);
const ASKED = fc.constantFrom(...METHODS, 'resources/read', 'resources/read', 'resources/read');
const CROWD = fc.array(fc.nat(6), { minLength: 1, maxLength: 4 });
const MOVE: fc.Arbitrary<Move> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: one('ask'), callers: CROWD, method: ASKED, pick }) },
  { weight: 1, arbitrary: fc.record({ kind: one('continue'), caller: pick, pick }) },
  {
    weight: 9,
    arbitrary: fc.record({ kind: one('land'), pick, most: fc.constantFrom(1, 2, 100, 100), saying: SAYING }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: one('tick'), ms: fc.constantFrom(1, 4_999, 5_000, 30_000, 61_000) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: one('lapse'), pick, ms: fc.constantFrom(5_000, 5_000, 61_000, 400_000) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: one('leave'), pick }) },
);
export const RUN = fc.record({
  route: fc.constantFrom(...Object.keys(ROUTES)),
  policies: fc.array(fc.constantFrom<Policy>('respect', 'respect', 'respect', 'private', 'public'), {
    minLength: 3,
    maxLength: 3,
  }),
  callers: fc.nat(FAMILIES.length - 1),
  pageSize: fc.constantFrom(1, 2, 1000),
  moves: fc.array(MOVE, { minLength: 20, maxLength: 80, size: 'max' }),
});

export interface Start {
  readonly route: string;
  readonly policies: readonly Policy[];
  /** Which of the {@link FAMILIES}. */
  readonly callers: number;
  readonly pageSize: number;
}
