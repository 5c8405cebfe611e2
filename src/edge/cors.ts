/**
 * Cross-origin answers: which headers a page may send, and which of an answer it may see (R12). Pure.
 *
 * *Never* `Access-Control-Allow-Origin: *`: `Authorization` is a credential, and the wildcard does not cover it.
 * *Spec:* Fetch, "HTTP extensions"; basic/transports/streamable-http, "Request headers".
 */

import type { Admission } from '../auth/admission.ts';
import type { HeadgateConfig } from '../config/types.ts';
import {
  METHOD_HEADER,
  NAME_HEADER,
  PARAM_HEADER_PREFIX,
  PROTOCOL_VERSION_HEADER,
} from '../protocol/headers.ts';
import { SESSION_HEADER } from '../protocol/legacy.ts';

/** What the protocol and its clients send beside what every page may send anyway. */
const ALLOWED = [
  'authorization',
  'content-type',
  'accept',
  PROTOCOL_VERSION_HEADER,
  METHOD_HEADER,
  NAME_HEADER,
  SESSION_HEADER,
  'last-event-id',
  'traceparent',
  'tracestate',
  'baggage',
  'x-api-key',
];
const EXPOSED = 'Cache-Status, Age, WWW-Authenticate, Retry-After, Proxy-Status, Mcp-Session-Id';
/** As long as browsers keep a preflight at most (Chromium: two hours). */
const MAX_AGE_SECONDS = '7200';
const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
/** A request for more names than this is no client's: it only costs us the sorting. */
const MAX_NAMES = 256;

/** Response headers, `name, value, name, value, …`. */
export type FlatHeaders = readonly string[];

const NONE: FlatHeaders = [];

export interface Cors {
  /** What every answer to that origin carries; nothing for no origin and for one that is not allowed. */
  answer(origin: string | undefined): FlatHeaders;
  /** What answers a preflight from an allowed origin; `requested` is its `Access-Control-Request-Headers`. */
  preflight(origin: string, requested: string | undefined): FlatHeaders;
}

/** Makes the cross-origin answers of one listener. */
export function createCors(config: Pick<HeadgateConfig, 'upstreams' | 'cache'>, admission: Admission): Cors {
  const forwarded = [...config.upstreams.values()].flatMap((upstream) => upstream.forwardHeaders);
  const allowed = new Set([...ALLOWED, ...forwarded, ...config.cache.partitionHeaders]);
  const allows = (name: string): boolean =>
    allowed.has(name) ||
    (name.startsWith(PARAM_HEADER_PREFIX) && name.length > PARAM_HEADER_PREFIX.length && TOKEN.test(name));

  return {
    answer(origin) {
      if (origin === undefined || !admission.origin(origin)) return NONE;
      return [
        'Access-Control-Allow-Origin',
        origin,
        'Vary',
        'Origin',
        'Access-Control-Expose-Headers',
        EXPOSED,
      ];
    },
    preflight(origin, requested) {
      const names = (requested ?? '')
        .split(',', MAX_NAMES)
        .map((name) => name.trim().toLowerCase())
        .filter(allows);
      return [
        ...['Access-Control-Allow-Origin', origin],
        ...['Vary', 'Origin, Access-Control-Request-Headers'],
        ...['Access-Control-Allow-Methods', 'POST, GET, DELETE'],
        ...(names.length > 0 ? ['Access-Control-Allow-Headers', names.join(', ')] : []),
        ...['Access-Control-Max-Age', MAX_AGE_SECONDS],
      ];
    },
  };
}
