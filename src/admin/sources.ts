/** What the admin page is told of the gateway: functions, asked at each use, since all of it may change meanwhile. */
import type { HeadgateConfig } from '../config/types.ts';
import type { Logger } from '../observability/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { RouteRuntime } from '../pipeline.ts';
import type { Handle } from '../protocol/exchange.ts';
import type { Subscriptions } from '../subscriptions/subscriptions.ts';
import type { Upstream } from '../upstream/types.ts';
import type { Happenings } from './happenings.ts';
import type { RedisState, State } from './page/contract.ts';

export interface Sources {
  readonly version: string;
  readonly config: () => HeadgateConfig;
  readonly routes: () => ReadonlyMap<string, RouteRuntime>;
  readonly upstreams: () => ReadonlyMap<string, Upstream>;
  /** The memory tier. */
  readonly store: { readonly entryCount: number; readonly sizeBytes: number };
  /** Undefined where there is none. */
  readonly redis: () => RedisState['state'] | undefined;
  readonly subscriptions: Pick<Subscriptions, 'stateOf'>;
  /** What must hold for the gateway to take work. */
  readonly checks: () => State['checks'];
  readonly metrics: Metrics;
  readonly happenings: Happenings;
  /** The request path: what the page asks of upstreams goes the way of clients. */
  readonly handle: Handle;
  readonly log: Pick<Logger, 'info' | 'error'>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
}
