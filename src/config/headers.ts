/** Which header names a configuration may mention, and why not the others (R9). */
import { HOP_BY_HOP } from '../protocol/headers.ts';

/** A field name. *Spec:* RFC 9110, section 5.1. */
export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;

/** Headers whose value the gateway works out for every request it sends. */
const COMPUTED: ReadonlySet<string> = new Set(['host', 'accept', 'accept-encoding', 'expect', 'date', 'via']);

/**
 * What to do instead of naming `header` in a static header or in `forwardHeaders`; undefined when it is fine.
 * A configured value in place of a computed one could contradict the body that travels with it.
 */
export function refusedHeader(header: string): string | undefined {
  const name = header.toLowerCase();
  if (name.startsWith('mcp-') || name.startsWith('content-') || COMPUTED.has(name)) {
    return `remove it: the gateway computes ${name} for every request`;
  }
  if (HOP_BY_HOP.has(name)) return `remove it: ${name} belongs to one connection and never crosses a gateway`;
  return undefined;
}

/** Visible ASCII and inner spaces: what every HTTP stack takes as a header value. */
export function isHeaderValue(value: string): boolean {
  return /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value);
}
