/**
 * A request to a server of an older era that asks in mid-call: the exchange with the server stands, while the client is
 * told `input_required` and comes back with its answers, under another request.
 *
 * What the client did not say it can is declined at once; what it was asked and leaves is declined with the end of the
 * exchange: the server is never left waiting. *Never* rejects. *Spec:* basic/patterns/mrtr; 2025-11-25,
 * client/elicitation, client/sampling, client/roots.
 */
import { INTERNAL_ERROR } from '../protocol/errors.ts';
import { kindAt, memberOf, objectMembers, stringValue, textOf } from '../protocol/json.ts';
import { CANCELLED } from '../protocol/notice.ts';
import { offers } from '../protocol/questions.ts';
import { Abort, type Signal } from '../protocol/signal.ts';
import { failure, CANCELLED as GIVEN_UP } from './failure.ts';
import type { LegacySession } from './legacy-session.ts';
import { readRequest, type ServerRequest } from './questions.ts';
import { progressTokenOf, withProgressToken } from './stdio-words.ts';
import type { Failure, ReadOutcome, ReadRequest } from './types.ts';

/** Questions that one call may have open. */
const MAX_OPEN = 16;
/** What is asked side by side comes within it, and goes to the client together. */
const GATHER_MS = 20;

/** What comes next of a dialogue. */
export type Turn =
  | { readonly kind: 'outcome'; readonly outcome: ReadOutcome }
  /** `requests`: the JSON text of `inputRequests`. */
  | { readonly kind: 'asked'; readonly requests: string };

/** Who hears what is said before the next turn. */
export interface Audience {
  readonly signal: Signal;
  readonly onNotification: ((message: Uint8Array) => void) | undefined;
  /** JSON text of its own progress token. */
  readonly progressToken: string | undefined;
}

type Reply = (message: string) => Promise<boolean>;
interface Open extends ServerRequest {
  readonly reply: Reply;
}

/** For a question whose answer its server could not take: it would wait for it as long as it lives. */
const DEAF = failure(
  'broken',
  'http_protocol_error',
  'it asks, and keeps no session in which it could be answered',
);
const UNHEARD = failure('reset', 'connection_terminated', 'it did not take the answer to its question');

export class Dialogue {
  /** What it keeps in memory, more or less. */
  readonly sizeBytes: number;
  readonly #gone = new Abort();
  readonly #session: Pick<LegacySession, 'read' | 'tell'>;
  readonly #open = new Map<string, Open>();
  readonly #capabilities: string;
  readonly #progressToken: string | undefined;
  #lastKey = 0;
  #gathering: NodeJS.Timeout | undefined;
  #sentId: string | undefined;
  #outcome: ReadOutcome | undefined;
  #audience: Audience | undefined;
  #turned: ((turn: Turn) => void) | undefined;

  /** @param capabilities JSON text of what the client can be asked. */
  constructor(session: Pick<LegacySession, 'read' | 'tell'>, request: ReadRequest, capabilities: string) {
    this.#session = session;
    this.#capabilities = capabilities;
    this.#progressToken = progressTokenOf(request.params);
    this.sizeBytes = request.params.length;
    session
      .read({
        ...request,
        signal: this.#gone,
        onSent: (id) => {
          this.#sentId = id;
        },
        onNotification: (message) => this.#heard(message),
        onQuestion: (message, reply) => this.#asked(message, reply),
      })
      .catch((error: unknown): ReadOutcome => {
        const detail = error instanceof Error ? error.message : '';
        return { kind: 'failure', failure: failure('broken', 'proxy_internal_error', detail) };
      })
      .then((outcome) => {
        // It may still be at it: nobody waits for that.
        if (outcome.kind === 'failure' && outcome.failure.kind === 'timeout') this.#takeBack();
        this.#conclude(outcome);
      });
  }

  /** Waits for what comes next. A client that leaves ends the dialogue. */
  next(audience: Audience): Promise<Turn> {
    const { signal } = audience;
    if (this.#outcome !== undefined) return Promise.resolve({ kind: 'outcome', outcome: this.#outcome });
    if (this.#open.size > 0 && this.#gathering === undefined) return Promise.resolve(this.#questions());
    return new Promise((resolve) => {
      const leave = (): void => this.end();
      this.#audience = audience;
      this.#turned = (turn) => {
        this.#audience = undefined;
        signal.removeEventListener('abort', leave);
        resolve(turn);
      };
      if (signal.aborted) leave();
      else signal.addEventListener('abort', leave, { once: true });
    });
  }

  /**
   * Passes the client's answers on, one behind the other. What is left out, or is no answer, is asked again; a server
   * that does not take one waits for it in vain, and is not waited for. @param at where the answers begin.
   */
  answer(bytes: Uint8Array, at: number): void {
    const told: (readonly [Reply, string])[] = [];
    for (const member of objectMembers(bytes, at) ?? []) {
      const open = this.#open.get(member.key);
      if (open === undefined || kindAt(bytes, member.start) !== 'object') continue;
      this.#open.delete(member.key);
      told.push([open.reply, `{"jsonrpc":"2.0","id":${open.id},"result":${textOf(bytes, member)}}`]);
    }
    void this.#tellAll(told);
  }

  /** Nobody waits any more: what is open is declined, and the request taken back. Idempotent. */
  end(): void {
    this.#give(GIVEN_UP);
  }

  async #tellAll(told: readonly (readonly [Reply, string])[]): Promise<void> {
    for (const [reply, message] of told) if (!(await reply(message))) return this.#give(UNHEARD);
  }

  #give(reason: Failure): void {
    if (this.#outcome !== undefined) return;
    this.#takeBack();
    this.#conclude({ kind: 'failure', failure: reason });
    this.#gone.abort(new Error(reason.detail));
  }

  /** It is over: whatever is still asked is answered by nobody. */
  #conclude(outcome: ReadOutcome): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = outcome;
    clearTimeout(this.#gathering);
    for (const { id, reply } of this.#open.values())
      void reply(
        `{"jsonrpc":"2.0","id":${id},"error":{"code":${INTERNAL_ERROR},"message":"Nobody answers"}}`,
      );
    this.#open.clear();
    this.#turn({ kind: 'outcome', outcome });
  }

  /** @returns whether the client will be asked. */
  #asked(message: Uint8Array, reply: Reply | undefined): boolean {
    const question = readRequest(message);
    if (this.#outcome !== undefined || question === undefined) return false;
    if (!offers(this.#capabilities, question) || this.#open.size >= MAX_OPEN) return false;
    if (reply === undefined) {
      this.#give(DEAF);
      return true;
    }
    this.#open.set(`q${++this.#lastKey}`, { ...question, reply });
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      if (this.#open.size > 0) this.#turn(this.#questions());
    }, GATHER_MS);
    return true;
  }

  /** Progress is told by the token of whoever hears it. */
  #heard(message: Uint8Array): void {
    const audience = this.#audience;
    if (audience?.onNotification === undefined) return;
    const { progressToken, onNotification } = audience;
    if (progressToken === this.#progressToken) return onNotification(message);
    const told = withProgressToken(message, progressToken);
    if (told !== undefined) onNotification(told);
  }

  #questions(): Turn {
    const requests = [...this.#open].map(
      ([key, { method, params }]) =>
        `"${key}":{"method":${JSON.stringify(method)}${params === undefined ? '' : `,"params":${params}`}}`,
    );
    return { kind: 'asked', requests: `{${requests.join(',')}}` };
  }

  #turn(turn: Turn): void {
    const turned = this.#turned;
    this.#turned = undefined;
    turned?.(turn);
  }

  /** *Spec:* 2025-11-25, basic/utilities/cancellation: a closed connection says nothing. */
  #takeBack(): void {
    if (this.#sentId === undefined) return;
    const params = `{"requestId":${this.#sentId},"reason":"nobody waits for it any more"}`;
    void this.#session.tell(CANCELLED, `{"jsonrpc":"2.0","method":"${CANCELLED}","params":${params}}`);
  }
}

/** What of a request says that it goes on with a dialogue. */
export interface Resumption {
  /** Undefined for a state that is no string. */
  readonly state: string | undefined;
  /** Where the answers stand in the params, if there are any. */
  readonly responsesAt: number | undefined;
}

/**
 * Reads it; undefined for a request that begins, which answers without a state do: what they lack is asked again.
 * @param params the bytes of an object.
 */
export function resumptionOf(params: Uint8Array): Resumption | undefined {
  const members = objectMembers(params, 0) ?? [];
  const state = memberOf(members, 'requestState');
  const responses = memberOf(members, 'inputResponses');
  return state && { state: stringValue(params, state), responsesAt: responses?.start };
}
