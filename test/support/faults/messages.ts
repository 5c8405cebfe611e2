/** Messages: what of an answer is no answer, or none to be kept; hints. */

import { type Switch, say, words } from '../simulator.ts';
import { BAD_GATEWAY, FINE, INCOMPLETE, type Row, row, TIMED, UNREAD } from './row.ts';

const changed =
  (change: (text: string) => string | Uint8Array): Switch =>
  (ask) =>
    say(ask, change(ask.text()));
export const WRONG_ID = '"id":"somebody-else"';
const ID = /"id":[^,]+/;
const deep = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
/** Puts a member at the head of the result. */
const inResult = (member: string): Switch =>
  changed((text) => text.replace('"result":{', `"result":{${member},`));

export const messages: readonly Row[] = [
  row(
    'R37',
    'the wrong id',
    changed((text) => text.replace(ID, WRONG_ID)),
    UNREAD,
  ),
  row(
    'R37',
    'no id',
    changed((text) => text.replace(/"id":[^,]+,/, '')),
    UNREAD,
  ),
  row(
    'R25',
    'two answers',
    changed((text) => text + text),
    UNREAD,
  ),
  row(
    'R25',
    'a batch',
    changed((text) => `[${text}]`),
    UNREAD,
  ),
  row(
    'R25',
    'a result and an error',
    changed((text) => text.replace('"result"', '"error":{"code":-32602,"message":"x"},"result"')),
    UNREAD,
  ),
  row(
    'R25',
    'neither result nor error',
    changed((text) => text.replace('"result"', '"resul"')),
    UNREAD,
  ),
  row(
    'R25',
    'two results',
    changed((text) => text.replace('"result"', '"result":{},"result"')),
    { ...UNREAD, call: '200 json: faulty' },
  ),
  row(
    'R25',
    'a result that is no object',
    changed((text) => text.replace(/"result":.*/, '"result":[]}')),
    UNREAD,
  ),
  row(
    'R25',
    'JSON that is cut',
    changed((text) => text.slice(0, -10)),
    UNREAD,
  ),
  row(
    'R25',
    'stops in mid-character, said to be whole',
    changed((text) => {
      const bytes = Buffer.from(text);
      return bytes.subarray(0, bytes.indexOf('ü') + 1);
    }),
    UNREAD,
  ),
  row(
    'R25',
    'a byte order mark before the JSON',
    changed((text) => `\ufeff${text}`),
    UNREAD,
  ),
  row(
    'R25',
    'invalid UTF-8 in a string',
    changed((text) =>
      Buffer.from(text.replace('ü', '\u0001'), 'utf8').map((byte) => (byte === 1 ? 0xff : byte)),
    ),
    UNREAD,
  ),
  row(
    'R25',
    'UTF-16',
    changed((text) => Buffer.from(text, 'utf16le')),
    UNREAD,
  ),
  row(
    'R25',
    'a raw control character in a string',
    changed((text) => text.replace('grüße', 'gr\u0007e')),
    UNREAD,
  ),
  row('R18 R25', 'nesting 100,000 deep', inResult(`"deep":${deep(100_000)}`), {
    ...UNREAD,
    call: '200 json: faulty',
  }),
  row('R20', 'nesting 400 deep', inResult(`"deep":${deep(400)}`), { ...FINE, call: '200 json: faulty' }),
  row('R20', 'a key __proto__', inResult('"__proto__":{"ttlMs":1,"isError":true}'), FINE),
  row(
    'R25',
    'a key of the result that comes twice',
    changed((text) => text.replace('"result":{', '"result":{"contents":[],"resources":[],"content":[],')),
    {
      ...UNREAD,
      call: '200 json: faulty',
    },
  ),
  row('R20 R25', 'two result types', inResult('"resultType":"input_required"'), {
    ...UNREAD,
    call: '200 json: faulty',
  }),
  row('R20 R25', 'an unknown result type', (ask) => say(ask, ask.text({ resultType: 'novel' })), {
    ...UNREAD,
    call: '200 json: faulty',
  }),
  row('R25', 'a result type that is no string', (ask) => say(ask, ask.text({ resultType: 7 })), {
    ...UNREAD,
    call: '200 json: faulty',
  }),
  row(
    'R25',
    'a question back (input_required)',
    (ask) => say(ask, ask.text({ resultType: 'input_required' })),
    {
      list: INCOMPLETE,
      read: { saw: '200: input_required, faulty; ttl ≤ 1 min; public', next: 'asked again' },
      call: '200 json: faulty',
    },
  ),
  row('R25 R31', 'empty contents', (ask) => say(ask, ask.text({ contents: [] })), {
    read: { saw: '200: nothing; ttl ≤ 1 min; public', next: 'asked again' },
  }),
  row('R25', 'contents that are no array', (ask) => say(ask, ask.text({ contents: {} })), {
    read: BAD_GATEWAY,
  }),
  row(
    'R24',
    "contents with another upstream's URI",
    (ask) => say(ask, ask.text({ contents: [{ uri: 'good://doc', text: words('faulty') }] })),
    {
      read: `200: ${TIMED}`,
    },
  ),
];

const hinted = (fault: string, hint: unknown, ttl: string): Row =>
  row(
    'R21 R26',
    fault,
    (ask) => {
      const text = ask.text({ ttlMs: 'HINT' }).replace('"HINT"', String(hint));
      say(ask, hint === undefined ? ask.text({ ttlMs: undefined }) : text);
    },
    { list: `200: good, faulty; ${ttl}; public`, read: `200: faulty; ${ttl}; public` },
  );
const scoped = (fault: string, scope: unknown): Row =>
  row('R21 R24', fault, (ask) => say(ask, ask.text({ cacheScope: scope })), {
    list: '200: good, faulty; ttl ≤ 1 min; private',
    read: '200: faulty; ttl ≤ 1 min; private',
  });

export const hints: readonly Row[] = [
  hinted('no ttl', undefined, 'ttl 0'),
  hinted('a ttl of 0', 0, 'ttl 0'),
  hinted('a ttl of -1', -1, 'ttl 0'),
  hinted('a ttl of 0.5', 0.5, 'ttl 0'),
  hinted('a ttl of "60000"', '"60000"', 'ttl 0'),
  hinted('a ttl of true', true, 'ttl 0'),
  hinted('a ttl of null', null, 'ttl 0'),
  hinted('a ttl of [60000]', '[60000]', 'ttl 0'),
  hinted('a ttl of 1e400', '1e400', 'ttl 0'),
  row('R21 R26', 'two ttls', inResult('"ttlMs":1'), {
    list: '200: good, faulty; ttl 0; public',
    read: '200: faulty; ttl 0; public',
  }),
  ...(['2147483648', '9007199254740993', '1e300'] as const).map((ttl) =>
    row(
      'R24 R26',
      `public for ${ttl} ms`,
      (ask) => say(ask, ask.text({ ttlMs: 'HINT' }).replace('"HINT"', ttl)),
      {
        list: { saw: '200: good, faulty; ttl ≤ 1 min; public', next: 'hit' },
        read: { saw: '200: faulty; ttl ≤ 24 h; public', next: 'hit' },
      },
    ),
  ),
  scoped('no scope', undefined),
  scoped('a scope of "PUBLIC"', 'PUBLIC'),
  scoped('a scope of true', true),
];
