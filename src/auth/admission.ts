/**
 * Who may talk to this port at all: the Host and Origin allow-lists.
 *
 * A page on the Internet can make a browser send requests to a loopback port (DNS rebinding): the browser then
 * names the page's own host, and a page's origin never is one of ours.
 * *Spec:* basic/transports/streamable-http, "Security"; R4, R5.
 */
import { formatAddress, isLoopback } from '../config/address.ts';
import type { ListenConfig } from '../config/types.ts';

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'];
const LOOPBACK_ORIGIN = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?$/;
const HOST = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(:[0-9]{0,5})?$/;

/** The allow-lists of one listener. */
export interface Admission {
  /** True when the `Host` of a request is one of ours; a request without one passes only where any does. */
  host(value: string | undefined): boolean;
  /** True when pages of that origin may call. A request without `Origin` comes from no page: it always passes. */
  origin(value: string | undefined): boolean;
}

/** Makes the allow-lists; empty ones mean what design section 2 says. */
export function createAdmission({
  address,
  hosts,
  origins,
}: Pick<ListenConfig, 'address' | 'hosts' | 'origins'>): Admission {
  const loopback = isLoopback(address.host);
  const anyHost = hosts.length === 0 && !loopback;
  const bound = formatAddress({ host: address.host, port: 0 }).slice(0, -':0'.length);
  const allowedHosts = new Set(hosts.length > 0 ? hosts : [...LOOPBACK_NAMES, bound]);
  /** The one that passed last: most clients of a listener name it alike. */
  let known: string | undefined;
  const allowedOrigins = new Set(origins);
  const loopbackOrigins = origins.length === 0 && loopback;

  return {
    host(value) {
      if (anyHost || (value !== undefined && value === known)) return true;
      const [whole, name] = HOST.exec(value?.toLowerCase() ?? '') ?? [];
      const allowed =
        whole !== undefined && name !== undefined && (allowedHosts.has(name) || allowedHosts.has(whole));
      if (allowed) known = value;
      return allowed;
    },
    origin(value) {
      if (value === undefined) return true;
      return allowedOrigins.has(value) || (loopbackOrigins && LOOPBACK_ORIGIN.test(value));
    },
  };
}
