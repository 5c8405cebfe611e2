/**
 * How replicas hear of each other's bumps: a channel, and signs of life on it.
 *
 * A channel may lose messages. Three things tell: a gap in another replica's sequence numbers, an own sign of life
 * that does not come back, and a subscription that had to be made anew.
 */
import { BoundedMap } from '../../protocol/bounded-map.ts';
import type { RemoteObserver } from '../remote-types.ts';
import type { Connection } from './connect.ts';
import { type Bumped, beat, beginning, parseMessage } from './messages.ts';

/** Replicas remembered; beyond them gaps of the one heard longest ago are not noticed. */
const ORIGINS_MAX = 1_000;
/** A replica that was silent for so long has gone, and another may have its place. */
const SILENT_MS = 10_000;
/** Own signs of life that did not come back for so long: the channel is broken. */
const ECHO_MS = 3_000;

export interface BusOptions {
  readonly connection: Connection;
  readonly channel: string;
  /** This replica's name, like no other's. */
  readonly origin: string;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly onBumped: (bumped: Bumped) => void;
  /** An own message came back: the bump is written, whatever else was heard of it. */
  readonly onEcho: (bumped: Bumped) => void;
  /** A message of another replica was missed. */
  readonly onGap: () => void;
  /** Listening begins, or begins again. */
  readonly onListening: () => void;
  readonly observer: Pick<RemoteObserver, 'busMessage'>;
}

export interface Bus {
  /** To be called when the connection is ready. */
  listen(): void;
  /** The beginning of the message of a bump that is sent now. */
  announce(upstream: string, fields: readonly string[]): string;
  /** The next sign of life, to be published now. */
  beat(): string;
  /** Looks whether the channel works, and mends it where it does not. Signs of life must have been sent. */
  check(): 'works' | 'broken';
  /** Signs of life could not be sent until now. */
  forgive(): void;
}

export function createBus(options: BusOptions): Bus {
  const { connection, channel, origin, now, observer } = options;
  const heard = new BoundedMap<string, { sequence: number; at: number }>(ORIGINS_MAX);
  let sequence = 0;
  let echoAt = now();

  connection.client.on('message', (from: string, text: string) => {
    if (from === channel) receive(text);
  });

  function receive(text: string): void {
    const message = parseMessage(text);
    if (message === undefined) return;
    if (message.origin === origin) {
      echoAt = now();
      if (message.bumped !== undefined) options.onEcho(message.bumped);
      return;
    }
    observer.busMessage('in');
    const before = heard.get(message.origin);
    const isLate = before !== undefined && message.sequence <= before.sequence;
    heard.set(message.origin, { sequence: isLate ? before.sequence : message.sequence, at: now() });
    // What it says counts whenever it comes.
    if (message.bumped !== undefined) options.onBumped(message.bumped);
    if (before !== undefined && message.sequence > before.sequence + 1) options.onGap();
  }

  function forgetSilent(): void {
    for (let oldest = heard.oldest(); oldest !== undefined; oldest = heard.oldest()) {
      if (now() - oldest[1].at < SILENT_MS) return;
      heard.delete(oldest[0]);
    }
  }

  return {
    listen() {
      connection.client.subscribe(channel).then(
        () => {
          echoAt = now();
          options.onListening();
        },
        // Lost again: there will be another call.
        () => undefined,
      );
    },
    announce(upstream, fields) {
      observer.busMessage('out');
      return beginning(origin, ++sequence, upstream, fields);
    },
    beat() {
      observer.busMessage('out');
      return beat(origin, ++sequence);
    },
    check() {
      forgetSilent();
      if (now() - echoAt < ECHO_MS) return 'works';
      if (connection.ready) connection.reconnect();
      return 'broken';
    },
    forgive() {
      echoAt = now();
    },
  };
}
