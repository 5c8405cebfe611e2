/**
 * Which address a request came from, for the access log alone: nothing is permitted by it. Pure.
 *
 * `X-Forwarded-For` is believed where the peer is a trusted proxy, and read from its end: what a client wrote
 * itself stands in front of what the proxies added.
 */
import { BlockList, isIP } from 'node:net';

/** Who asked. */
export interface Asked {
  readonly method?: string | undefined;
  readonly rawHeaders: readonly string[];
  readonly socket: { readonly remoteAddress?: string | undefined };
}

/** @param peer the other end of the connection. @returns undefined when the connection is gone already. */
export type ClientAddress = (
  peer: string | undefined,
  forwardedFor: string | undefined,
) => string | undefined;

/** @param trustedProxies addresses and networks, as the configuration has checked them. */
export function createClientAddress(trustedProxies: readonly string[]): ClientAddress {
  const trusted = new BlockList();
  for (const network of trustedProxies) {
    const [address = '', prefix] = network.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (prefix === undefined) trusted.addAddress(address, family);
    else trusted.addSubnet(address, Number(prefix), family);
  }
  const isTrusted = (address: string): boolean => {
    const family = isIP(address);
    return family !== 0 && trusted.check(address, family === 6 ? 'ipv6' : 'ipv4');
  };

  return (peer, forwardedFor) => {
    const direct = peer && plain(peer);
    if (direct === undefined || forwardedFor === undefined || !isTrusted(direct)) return direct;
    let client = direct;
    for (const hop of forwardedFor.split(',').reverse()) {
      const address = plain(hop.trim());
      // Text that is no address was not written by a proxy that is worth its trust.
      if (isIP(address) === 0) break;
      client = address;
      if (!isTrusted(address)) break;
    }
    return client;
  };
}

/** An IPv4 address that came over an IPv6 socket is an IPv4 address. */
function plain(address: string): string {
  return address.startsWith('::ffff:') && isIP(address.slice(7)) === 4 ? address.slice(7) : address;
}
