/** What is remembered of one upstream. *Bounded by* the configuration: one for each of its names. */
import type { Ledger } from './ledger.ts';
import type { Names } from './names.ts';

export interface Upstream {
  readonly name: string;
  readonly names: Names;
  readonly ledger: Ledger;
  /** The epoch of the connection in which it was last synchronised. */
  syncedIn: number;
  /** Bumps under way. */
  writingCount: number;
  /** Bumps that could not be written, or not surely, since everything was last bumped. */
  unwrittenCount: number;
}
