/**
 * The sessions of one upstream of an older era: one for the gateway and all callers whom the server cannot tell apart,
 * one for each of the others. *Bounded by* {@link MAX_SESSIONS} and {@link IDLE_MS}: what is in use is never ended.
 */
import { BoundedMap } from '../protocol/bounded-map.ts';
import { PARAM_HEADER_PREFIX } from '../protocol/headers.ts';
import { NO_CAPABILITIES } from '../protocol/questions.ts';
import { LegacySession, type SessionWire } from './legacy-session.ts';

/** Sessions at once. Beyond it the one asked for longest ago is ended. */
const MAX_SESSIONS = 1_000;
/** A session that is used this seldom is ended: what a server keeps for it may be dear. */
export const IDLE_MS = 30 * 60_000;
/** What a process may ask: whose call it asks for is known while there is one. Roots it asks for without a call. */
const OF_A_PROCESS = '{"elicitation":{},"sampling":{}}';
/** Headers of a request that say nothing of who asks. */
const OF_ONE_REQUEST: ReadonlySet<string> = new Set(['traceparent', 'tracestate', 'baggage']);

/** True for a header that says nothing of who asks. */
export function isOfOneRequest(name: string): boolean {
  return OF_ONE_REQUEST.has(name) || name.startsWith(PARAM_HEADER_PREFIX);
}

/** The sessions of an upstream. */
export class LegacySessions {
  readonly #wire: SessionWire;
  readonly #now: () => number;
  readonly #idleMs: number;
  readonly #telling: ReadonlySet<string>;
  /** In the order of their use. */
  readonly #sessions = new BoundedMap<string, Used>(MAX_SESSIONS, ({ session }) => session.retire());
  #sweeper: NodeJS.Timeout | undefined;
  #closed = false;

  /**
   * @param now monotonic milliseconds.
   * @param telling headers that the operator lets this server see: whatever they are, they may say who asks.
   */
  constructor(
    wire: SessionWire,
    now: () => number,
    {
      telling,
      idleMs = IDLE_MS,
    }: { readonly telling: readonly string[]; readonly idleMs?: number | undefined },
  ) {
    this.#telling = new Set(telling);
    this.#wire = wire;
    this.#now = now;
    this.#idleMs = idleMs;
  }

  /**
   * The session of whoever sends these headers and can be asked this. To be asked for anew each time: it may have been
   * ended since. @param capabilities JSON text; with a process there is one session for all.
   */
  of(headers: Readonly<Record<string, string>>, capabilities = NO_CAPABILITIES): LegacySession {
    const told = this.#wire.life === undefined ? capabilities : OF_A_PROCESS;
    const own = Object.entries(headers)
      .filter(([name]) => this.#telling.has(name) || !isOfOneRequest(name))
      .sort();
    const key = JSON.stringify([own, told]);
    const known = this.#sessions.touch(key);
    if (known !== undefined) {
      known.at = this.#now();
      return known.session;
    }
    const session = new LegacySession(this.#wire, Object.fromEntries(own), this.#now, told);
    this.#sessions.set(key, { session, at: this.#now() });
    // With a process there is one session, and it ends with the process.
    if (this.#wire.life === undefined && !this.#closed)
      this.#sweeper ??= setInterval(() => this.#sweep(), this.#idleMs / 10).unref();
    return session;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweeper);
    const ends: Promise<void>[] = [];
    for (let oldest = this.#sessions.oldest(); oldest !== undefined; oldest = this.#sessions.oldest()) {
      this.#sessions.delete(oldest[0]);
      ends.push(oldest[1].session.close());
    }
    await Promise.all(ends);
  }

  /** Ends what is idle. */
  #sweep(): void {
    const now = this.#now();
    for (let left = this.#sessions.size; left > 0; left--) {
      const oldest = this.#sessions.oldest();
      if (oldest === undefined || now - oldest[1].at < this.#idleMs) break;
      const [key, used] = oldest;
      if (used.session.isHeld) {
        this.#sessions.touch(key);
        used.at = now;
      } else {
        this.#sessions.delete(key);
        used.session.retire();
      }
    }
    if (this.#sessions.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

interface Used {
  readonly session: LegacySession;
  at: number;
}
