/** What things are called in Redis. *Never* holds a URI, a credential, or an upstream's name in the clear. Pure. */
import { hash } from 'node:crypto';

/** Version of the layout: another one has other keys, so that replicas of both run side by side. */
const LAYOUT = '1';

export interface Names {
  /** The hash that holds an upstream's order. */
  readonly hash: string;
  /** The channel on which replicas tell each other of bumps, those of all upstreams. */
  readonly channel: string;
  entry(slotKey: string): string;
}

/** All keys of an upstream have one tag, so that a Cluster keeps them together. */
export function namesOf(keyPrefix: string, upstream: string): Names {
  const front = `${keyPrefix}${LAYOUT}:{${hash('sha256', upstream, 'hex').slice(0, 16)}}:`;
  return {
    hash: `${front}g`,
    channel: channelOf(keyPrefix),
    entry: (slotKey) => `${front}e:${slotKey}`,
  };
}

export function channelOf(keyPrefix: string): string {
  return `${keyPrefix}${LAYOUT}:bus`;
}
