/**
 * One upstream, whichever era its server speaks: asked as one of this era, and as an older one where it answers so.
 *
 * The verdict comes of `server/discover`, and is taken anew when the server says otherwise: when one that was of an
 * older era answers with an error that only this era knows, or the other way round. *Spec:* protocol digest, "Eras".
 */
import type { UpstreamConfig } from '../config/types.ts';
import { CURRENT_VERSION, GATEWAY_META } from '../protocol/meta.ts';
import { Abort, type Signal } from '../protocol/signal.ts';
import { eraOf, isDoubtful, isModern, OTHER_ERA } from './era.ts';
import { createHttp, type UpstreamDeps } from './http.ts';
import { callTranslated, discoverLegacy, type LegacyDeps, readLegacy } from './legacy.ts';
import { type LegacyListenDeps, openLegacyListening, type SessionEvents } from './legacy-listen.ts';
import { ParkedDialogues } from './legacy-parked.ts';
import type { Address, SessionWire } from './legacy-session.ts';
import { LegacySessions } from './legacy-sessions.ts';
import { LISTEN_TIMES } from './listen-times.ts';
import { MovingListening } from './moving.ts';
import { createStdio } from './stdio-upstream.ts';
import type { Listening, ReadOutcome, ReadRequest, Upstream } from './types.ts';

export type { UpstreamDeps } from './http.ts';

type Era = 'unknown' | 'modern' | 'legacy';

/** Opens an upstream; nothing is connected before the first call. */
export function createUpstream(config: UpstreamConfig, deps: UpstreamDeps): Upstream {
  const base =
    config.process === undefined ? createHttp(config, deps) : createStdio(config, config.process, deps);
  return config.protocol === 'modern' ? base : new EitherEra(config, base, deps);
}

/** An upstream of this era, and what sessions of an older one need of it. */
export interface BaseUpstream extends Upstream {
  readonly sessions: SessionWire;
  /** Opens the event stream of a session, or hears what a process says to nobody in particular. *Never* rejects. */
  events(address: Address, signal: Signal): Promise<SessionEvents>;
}

/** Between two times that the verdict is doubted: some servers of this era refuse in the manner of an older one. */
const DOUBT_MS = 10_000;
/** As long as a discover of the gateway's own may take. */
const JUDGE_MS = 2_000;
const MAX_DISCOVER_BYTES = 1024 * 1024;

class EitherEra implements Upstream {
  readonly name: string;
  readonly #base: BaseUpstream;
  readonly #deps: UpstreamDeps;
  readonly #sessions: LegacySessions;
  readonly #listenings = new Set<MovingListening>();
  readonly #parked: ParkedDialogues;
  readonly #fixed: boolean;
  readonly #over: 'http' | 'process';
  #era: Era;
  /** A discover that is under way while the era is not known. */
  #verdict: Promise<unknown> | undefined;
  #doubtedAt = Number.NEGATIVE_INFINITY;

  constructor(config: UpstreamConfig, base: BaseUpstream, deps: UpstreamDeps) {
    this.name = config.name;
    this.#base = base;
    this.#deps = deps;
    this.#sessions = new LegacySessions(base.sessions, deps.now, {
      telling: config.forwardHeaders,
      idleMs: deps.sessionIdleMs,
    });
    this.#parked = new ParkedDialogues(config.connections);
    this.#fixed = config.protocol === 'legacy';
    this.#over = config.process === undefined ? 'http' : 'process';
    this.#era = this.#fixed ? 'legacy' : 'unknown';
  }

  async read(request: ReadRequest): Promise<ReadOutcome> {
    if (request.method === 'server/discover') return this.#discover(request);
    if (this.#era === 'unknown') await this.#verdict;
    if (this.#era === 'legacy') return this.#readLegacy(request);
    const outcome = await this.#base.read(request);
    if (!isDoubtful(outcome)) return outcome;
    await this.#doubt(request.headers);
    // Nothing that was refused so was done.
    return this.#isLegacy && request.idempotent ? this.#readLegacy(request) : outcome;
  }

  async stream(request: Parameters<Upstream['stream']>[0]): ReturnType<Upstream['stream']> {
    if (this.#era === 'unknown') await this.#verdict;
    if (!this.#isLegacy) {
      const outcome = await this.#base.stream(request);
      if (outcome.kind === 'response' && OTHER_ERA.has(outcome.status)) void this.#doubt(request.headers);
      return outcome;
    }
    return callTranslated(
      this.#legacy(request.headers, (asked) => this.#readLegacy(asked)),
      request,
    );
  }

  listen(...[request, on]: Parameters<Upstream['listen']>): Listening {
    const { random = Math.random, listenTimes = LISTEN_TIMES, now } = this.#deps;
    const legacy: LegacyListenDeps = {
      ...{ random, now, times: listenTimes },
      session: () => this.#sessions.of(request.headers),
      events: (address, signal) => this.#base.events(address, signal),
    };
    const listening: MovingListening = new MovingListening(
      (filter) =>
        this.#isLegacy
          ? openLegacyListening(legacy, filter, on, () => undefined)
          : this.#base.listen({ ...request, filter }, on),
      request.filter,
      on,
      () => this.#listenings.delete(listening),
    );
    this.#listenings.add(listening);
    return listening;
  }

  stats(): ReturnType<Upstream['stats']> {
    return this.#base.stats();
  }

  available(): boolean {
    return this.#base.available();
  }

  async close(): Promise<void> {
    for (const listening of [...this.#listenings]) listening.close();
    this.#parked.close();
    await this.#sessions.close();
    await this.#base.close();
  }

  /** As a question of its own: the compiler takes what was asked once for what is, also behind an `await`. */
  get #isLegacy(): boolean {
    return this.#era === 'legacy';
  }

  /** Asks, and judges by what comes of it. */
  async #discover(request: ReadRequest): Promise<ReadOutcome> {
    if (this.#era === 'legacy') return this.#readLegacy(request);
    const asked = this.#judge(request);
    const verdict = asked.finally(() => {
      if (this.#verdict === verdict) this.#verdict = undefined;
    });
    this.#verdict ??= verdict;
    return verdict;
  }

  async #judge(request: ReadRequest): Promise<ReadOutcome> {
    const outcome = await this.#base.read(request);
    const era = eraOf(outcome, this.#over);
    if (era === 'modern') this.#become('modern');
    if (era !== 'legacy') return outcome;
    const older = await this.#askLegacy(request);
    if (older.kind !== 'answer' || older.answer.kind !== 'result') return outcome;
    this.#become('legacy');
    return older;
  }

  /** An answer was like one of another era: finds out, at most now and then. */
  async #doubt(headers: ReadRequest['headers']): Promise<void> {
    const now = this.#deps.now();
    if (this.#verdict !== undefined) return void (await this.#verdict);
    if (now - this.#doubtedAt < DOUBT_MS) return;
    this.#doubtedAt = now;
    await this.#discover({
      ...{
        method: 'server/discover',
        name: undefined,
        params: `{"_meta":${GATEWAY_META}}`,
        version: CURRENT_VERSION,
      },
      ...{ headers, idempotent: true, signal: new Abort() },
      ...{ deadlineMs: JUDGE_MS, maxBytes: MAX_DISCOVER_BYTES },
    });
  }

  async #readLegacy(request: ReadRequest): Promise<ReadOutcome> {
    const outcome = await this.#askLegacy(request);
    if (this.#fixed || !this.#isLegacy || !isModern(outcome)) return outcome;
    // A server that knows this era's errors is not the one it was.
    this.#become('unknown');
    return this.#base.read(request);
  }

  #askLegacy(request: ReadRequest): Promise<ReadOutcome> {
    return request.method === 'server/discover'
      ? discoverLegacy(this.#sessions.of(request.headers), request, this.#deps.now)
      : readLegacy(this.#legacy(request.headers), request);
  }

  /** @param read asks otherwise than in the session itself. */
  #legacy(headers: ReadRequest['headers'], read?: Upstream['read']): LegacyDeps {
    return {
      parked: this.#parked,
      session: (capabilities) => {
        const session = this.#sessions.of(headers, capabilities);
        return read === undefined ? session : { read, tell: (...told) => session.tell(...told) };
      },
    };
  }

  #become(era: Era): void {
    const before = this.#era;
    if (before === era) return;
    this.#era = era;
    if (era === 'legacy')
      this.#deps.log?.('info', 'the upstream speaks an older revision: it is translated', {
        upstream: this.name,
      });
    if (before === 'legacy')
      this.#deps.log?.('info', 'the upstream does not speak an older revision any more', {
        upstream: this.name,
      });
    if (era === 'legacy' || before === 'legacy')
      for (const listening of [...this.#listenings]) listening.move();
  }
}
