/** Addresses of listeners: `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, `:8080`. Port 0 is a free one. */
import { BlockList, isIP, isIPv6 } from 'node:net';
import type { Address } from './types.ts';

/** What a problem says about a malformed address. */
export const ADDRESS_HINT =
  'write an address such as 127.0.0.1:8080, "[::1]:8080", or :8080 for all interfaces';

const HOST_NAME = /^(?!.*\.\.)[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/;
const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** Splits an address; undefined when it is none. Without a host: all IPv4 interfaces. */
export function parseAddress(text: string): Address | undefined {
  const match = /^(\[[0-9A-Fa-f:.]+\]|[^:[\]]*):([0-9]{1,5})$/.exec(text);
  if (match === null) return undefined;
  const [, written = '', digits = ''] = match;
  const port = Number(digits);
  if (port > 65_535) return undefined;
  if (written === '') return { host: '0.0.0.0', port };
  if (written.startsWith('[')) {
    if (!isIPv6(written.slice(1, -1))) return undefined;
    // One spelling for each address, so that `[0:0:0:0:0:0:0:1]` is known as loopback.
    return { host: new URL(`http://${written}`).hostname.slice(1, -1), port };
  }
  // 300.1.2.3 would pass for a host name and fail at the first look-up.
  if (/^[0-9.]+$/.test(written) ? isIP(written) !== 4 : !HOST_NAME.test(written)) return undefined;
  return { host: written.toLowerCase(), port };
}

/** What a problem says about a malformed address of a server. */
export const REMOTE_HINT = 'write host:port, such as redis-0:6379 or "[::1]:6379"';

/** Splits the address of a server that something connects to: it has a host and a port. */
export function parseRemote(text: string): Address | undefined {
  const address = text.startsWith(':') ? undefined : parseAddress(text);
  return address?.port === 0 ? undefined : address;
}

/** `127.0.0.1:8080`, `[::1]:8080`. */
export function formatAddress(address: Address): string {
  return `${isIPv6(address.host) ? `[${address.host}]` : address.host}:${address.port}`;
}

/** True when only this machine can reach a listener on that host. */
export function isLoopback(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return host === 'localhost' || host.endsWith('.localhost');
  return LOOPBACK.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

/** True when two listeners cannot both have their address. */
export function collide(a: Address, b: Address): boolean {
  if (a.port === 0 || a.port !== b.port) return false;
  if (a.host === b.host || isWildcard(a.host) || isWildcard(b.host)) return true;
  return (a.host === 'localhost' && isLoopback(b.host)) || (b.host === 'localhost' && isLoopback(a.host));
}

function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}
