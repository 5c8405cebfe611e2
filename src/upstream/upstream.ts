/**
 * One upstream, whichever era its server speaks: asked as one of this era, and as an older one where it answers so.
 *
 * The verdict comes of `server/discover`, and is taken anew when the server says otherwise: when one that was of an
 * older era answers with an error that only this era knows. *Spec:* protocol digest, "Eras".
 */
import type { UpstreamConfig } from '../config/types.ts';
import { HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION } from '../protocol/errors.ts';
import type { Signal } from '../protocol/signal.ts';
import { createHttp, type UpstreamDeps } from './http.ts';
import { callTranslated, LegacySessions, readLegacy } from './legacy.ts';
import { openLegacyListening, type SessionEvents } from './legacy-listen.ts';
import type { LegacySession, SessionWire } from './legacy-session.ts';
import { LISTEN_TIMES } from './listen-times.ts';
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
  readonly sessions: SessionWire & {
    /** Opens the event stream of a session. *Never* rejects. */
    events(address: ReturnType<LegacySession['addressOf']>, signal: Signal): Promise<SessionEvents>;
  };
}

class EitherEra implements Upstream {
  readonly name: string;
  readonly #base: BaseUpstream;
  readonly #deps: UpstreamDeps;
  readonly #sessions: LegacySessions;
  readonly #listenings = new Set<Listening>();
  readonly #fixed: boolean;
  #era: Era;

  constructor(config: UpstreamConfig, base: BaseUpstream, deps: UpstreamDeps) {
    this.name = config.name;
    this.#base = base;
    this.#deps = deps;
    this.#sessions = new LegacySessions(base.sessions);
    this.#fixed = config.protocol === 'legacy';
    this.#era = this.#fixed ? 'legacy' : 'unknown';
  }

  async read(request: ReadRequest): Promise<ReadOutcome> {
    if (this.#era === 'legacy') return this.#readLegacy(request);
    const outcome = await this.#base.read(request);
    if (request.method !== 'server/discover') return outcome;
    if (!refusesEra(outcome)) {
      if (outcome.kind === 'answer') this.#become('modern');
      return outcome;
    }
    const older = await this.#readLegacy(request);
    if (!isResult(older)) return outcome;
    this.#become('legacy');
    return older;
  }

  async stream(request: Parameters<Upstream['stream']>[0]): ReturnType<Upstream['stream']> {
    if (this.#era !== 'legacy') return this.#base.stream(request);
    return callTranslated(this.#sessions.of(request.headers), request);
  }

  listen(...[request, on]: Parameters<Upstream['listen']>): Listening {
    if (this.#era !== 'legacy') return this.#base.listen(request, on);
    const { random = Math.random, listenTimes = LISTEN_TIMES } = this.#deps;
    const session = this.#sessions.of(request.headers);
    const listening: Listening = openLegacyListening(
      {
        ...{ session, random, times: listenTimes },
        events: (opened, signal) => this.#base.sessions.events(session.addressOf(opened), signal),
      },
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
    for (const listening of this.#listenings) listening.close();
    await this.#sessions.close();
    await this.#base.close();
  }

  async #readLegacy(request: ReadRequest): Promise<ReadOutcome> {
    const outcome = await readLegacy(this.#sessions.of(request.headers), request, this.#deps.now);
    if (this.#fixed || this.#era !== 'legacy' || !isModern(outcome)) return outcome;
    // A server that knows this era's errors is not the one it was.
    this.#become('unknown');
    return this.#base.read(request);
  }

  #become(era: Era): void {
    if (this.#era === era) return;
    this.#era = era;
    if (era === 'legacy')
      this.#deps.log?.('info', 'the upstream speaks an older revision: it is translated', {
        upstream: this.name,
      });
  }
}

/** Codes that only servers of this era know. */
const MODERN: ReadonlySet<number> = new Set([
  HEADER_MISMATCH,
  MISSING_CLIENT_CAPABILITY,
  UNSUPPORTED_VERSION,
]);
/** Statuses by which a server of another era answers. */
const OTHER_ERA: ReadonlySet<number> = new Set([400, 404, 405, 406, 415]);

/** Whether an answer to what every server of an era knows says that this is none of that era. */
function refusesEra(outcome: ReadOutcome): boolean {
  switch (outcome.kind) {
    case 'refused':
      return OTHER_ERA.has(outcome.status);
    case 'answer':
      return outcome.answer.kind === 'error' && !MODERN.has(outcome.answer.code);
    case 'large':
    case 'failure':
      return false;
  }
}

function isModern(outcome: ReadOutcome): boolean {
  return outcome.kind === 'answer' && outcome.answer.kind === 'error' && MODERN.has(outcome.answer.code);
}

function isResult(outcome: ReadOutcome): boolean {
  return outcome.kind === 'answer' && outcome.answer.kind === 'result';
}
