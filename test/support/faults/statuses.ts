/** Refusals: redirects, HTTP errors and JSON-RPC errors. */

import { event, head } from '../fault-server.ts';
import { CANARY, html, type Switch, say, stream } from '../simulator.ts';
import { ABSENT, type Answers, BAD_GATEWAY, INCOMPLETE, REFUSED, type Row, row, UNREAD } from './row.ts';

const error = (id: string, code: unknown, rest = ''): string =>
  `{"jsonrpc":"2.0","id":${id},"error":{"code":${JSON.stringify(code)},"message":"said the upstream"${rest}}}`;
export const refusing =
  (code: unknown, status = 200, rest = ''): Switch =>
  (ask) =>
    say(ask, error(ask.id, code, rest), { status });
const passes = (read: string, call = read): Answers => ({
  list: INCOMPLETE,
  read,
  call: call.replace(/^200 /, '200 json: error '),
});

/** Where redirects lead: a server that must never be heard of. */
export const elsewhere = { port: 0 };
const redirect = (status: number): Row =>
  row(
    'R36',
    `${status} to another server`,
    (ask) => html(status, { Location: `http://127.0.0.1:${elsewhere.port}/stolen` })(ask),
    REFUSED,
  );

export const statuses: readonly Row[] = [
  ...[301, 302, 303, 307, 308].map(redirect),
  row('R36', '307 to itself', (ask) => html(307, { Location: `/${ask.row}` })(ask), REFUSED),
  row('R36', '304', ({ request }) => void request.socket.write(head(304, {})), REFUSED),
  row('R37', '400 with a page', html(400), REFUSED),
  row('R37', '401 with a challenge', html(401, { 'WWW-Authenticate': `Bearer realm="${CANARY}"` }), REFUSED),
  row('R37', '403 with a challenge', html(403, { 'WWW-Authenticate': `Bearer realm="${CANARY}"` }), REFUSED),
  row(
    'R37',
    "401 to the caller's own credentials",
    html(401, { 'WWW-Authenticate': 'Bearer realm="theirs"' }),
    {
      list: '401 401; Bearer realm="theirs"',
      read: '401 401; Bearer realm="theirs"',
      call: '401 401; Bearer realm="theirs"',
    },
    { forwards: true },
  ),
  row(
    'R37',
    "403 to the caller's own credentials",
    html(403, { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' }),
    {
      list: '403 403; Bearer error="insufficient_scope"',
      read: '403 403; Bearer error="insufficient_scope"',
      call: '403 403; Bearer error="insufficient_scope"',
    },
    { forwards: true },
  ),
  row('R17 R37', '404 with a page', html(404), { ...REFUSED, list: ABSENT }),
  row('R17 R37', '405 with a page', html(405, { Allow: CANARY }), { ...REFUSED, list: ABSENT }),
  row('R17 R37', '501 with a page', html(501), { ...REFUSED, list: ABSENT }),
  row('R37', '407', html(407, { 'Proxy-Authenticate': CANARY }), REFUSED),
  row('R37', '421 with a page', html(421), REFUSED),
  row('R37', '429 with a pause', html(429, { 'Retry-After': '7' }), {
    list: INCOMPLETE,
    read: '503 -32603; retry after 7',
    call: '503 -32603; retry after 7',
  }),
  row('R37', '429 with words for a pause', html(429, { 'Retry-After': `ask ${CANARY}` }), {
    list: INCOMPLETE,
    read: '503 -32603; retry after 1',
    call: '503 -32603; retry after 1',
  }),
  row('R37', '429 with a date for a pause', html(429, { 'Retry-After': 'Fri, 31 Dec 2100 23:59:59 GMT' }), {
    list: INCOMPLETE,
    read: '503 -32603; retry after Fri, 31 Dec 2100 23:59:59 GMT',
    call: '503 -32603; retry after Fri, 31 Dec 2100 23:59:59 GMT',
  }),
  ...[500, 502, 503, 504, 599].map((status) => row('R37', `${status} with a page`, html(status), REFUSED)),
  row('R37', '500 with a JSON-RPC error', refusing(-32603, 500), REFUSED),
  row('R37', '503 with a pause', html(503, { 'Retry-After': '7' }), REFUSED),
  row('R17 R37', '404 with -32601', refusing(-32601, 404), {
    list: ABSENT,
    read: '404 -32601',
    call: '404 -32601',
  }),
  row('R17 R37', '200 with -32601', refusing(-32601), {
    list: ABSENT,
    read: '404 -32601',
    call: '200 json: error -32601',
  }),
  row('R25 R37', '200 with -32602', refusing(-32602, 200, ',"data":{"uri":"x:y"}'), passes('200 -32602')),
  row('R25 R37', '200 with -32603', refusing(-32603), passes('200 -32603')),
  row('R25 R37', '200 with -32000', refusing(-32000), passes('200 -32000')),
  row('R37', '200 with -32002', refusing(-32002), {
    ...passes('200 -32602'),
    call: '200 json: error -32002',
  }),
  row('R37', '400 with -32021', refusing(-32021, 400, ',"data":{"requiredCapabilities":{}}'), {
    list: INCOMPLETE,
    read: '400 -32021',
    call: '400 -32021',
  }),
  row('R37', '400 with -32020', refusing(-32020, 400), {
    list: INCOMPLETE,
    read: BAD_GATEWAY,
    call: '400 -32020',
  }),
  row('R37', '400 with -32022', refusing(-32022, 400), REFUSED),
  row('R37', '400 with -32600', refusing(-32600, 400), REFUSED),
  row('R37', '400 with -32700', refusing(-32700, 400), REFUSED),
  row('R37', '401 with a JSON-RPC error', refusing(-32602, 401), { ...REFUSED, read: '200 -32602' }),
  row('R37', 'an error without an id', (ask) => say(ask, error('null', -32602)), {
    ...passes('200 -32602'),
    call: '200 json: as sent',
  }),
  row('R37', 'an error code that is no integer', refusing(1.5), UNREAD),
  row('R37', 'an error code that is a string', refusing('-32602'), UNREAD),
  row('R32 R37', 'an error in an event stream', (ask) => stream(ask, [event(error(ask.id, -32602))]), {
    ...passes('200 -32602'),
    call: '200 stream: error -32602',
  }),
];
