/**
 * What a server of this revision asks in its answer (`input_required`), asked of an older client in mid-call, on the
 * stream of its call, and answered by its next `POST`.
 *
 * *Bounded by* {@link ANSWER_MS} and what a session expects. *Spec:* basic/patterns/mrtr; 2025-11-25, client/elicitation,
 * client/sampling, client/roots.
 */
import { INTERNAL_ERROR } from '../protocol/errors.ts';
import { kindAt, memberOf, objectMembers, stringValue, textOf } from '../protocol/json.ts';
import { CANCELLED } from '../protocol/notice.ts';
import { offers, type Question, readQuestion } from '../protocol/questions.ts';
import type { Signal } from '../protocol/signal.ts';
import type { Session } from './session.ts';

/** People are asked: they take their time. */
const ANSWER_MS = 10 * 60_000;

/** One question, as the server names it. */
interface Keyed extends Question {
  readonly key: string;
}

/** What an `input_required` result asks. */
export interface Questions {
  readonly questions: readonly Keyed[];
  /** JSON text of `requestState`. */
  readonly state: string | undefined;
}

/** The JSON members that answer them all, or why they cannot be answered. */
export type Answers =
  | { readonly kind: 'params'; readonly params: string }
  | { readonly kind: 'failed'; readonly code: number; readonly message: string };

/** Whom questions are put to. */
export interface Respondent {
  /** Undefined for a client without a session: it cannot be asked. */
  readonly session: () => Session | undefined;
  /** JSON text. */
  readonly capabilities: string;
  readonly signal: Signal;
  readonly send: (message: Uint8Array) => void;
  /** An id that no other question has: JSON text. */
  readonly nextId: () => string;
}

/** Reads an `input_required` result. @param result the JSON text of an object. */
export function readQuestions(result: Uint8Array): Questions | undefined {
  const members = objectMembers(result, 0) ?? [];
  const requests = memberOf(members, 'inputRequests');
  const state = memberOf(members, 'requestState');
  const entries = requests === undefined ? [] : objectMembers(result, requests.start);
  const questions = entries?.map(({ key, start }) => {
    const question = readQuestion(result, start);
    return question && { ...question, key };
  });
  if (questions === undefined || questions.includes(undefined)) return undefined;
  if (questions.length === 0 && state === undefined) return undefined;
  return { questions: questions as readonly Keyed[], state: state && textOf(result, state) };
}

/** Asks the client, and waits for all of its answers, or for the first that does not come. *Never* rejects. */
export async function answersTo({ questions, state }: Questions, asked: Respondent): Promise<Answers> {
  const withState = (params: readonly string[]): Answers => ({
    kind: 'params',
    params: [...params, ...(state === undefined ? [] : [`"requestState":${state}`])].join(','),
  });
  if (questions.length === 0) return withState([]);
  // What cannot be answered as a whole is not asked in parts: people are asked.
  const impossible = questions.find((question) => !offers(asked.capabilities, question));
  const session = impossible === undefined ? asked.session() : undefined;
  if (impossible !== undefined)
    return failed(`The server asks for ${impossible.method}, which this client does not offer`);
  if (session === undefined || session.room < questions.length)
    return failed('There is no room for more questions to this client');
  const all = questions.map((question) => new Asked(question, session, asked));
  const answers: Answers[] = [];
  try {
    for (const one of all) {
      const answer = await Promise.race([one.answer, anyFailed(all)]);
      if (answer.kind === 'failed') return answer;
      answers.push(answer);
    }
  } finally {
    for (const one of all) one.withdraw();
  }
  const responses = answers.map((answer) => (answer as Extract<Answers, { kind: 'params' }>).params);
  return withState([`"inputResponses":{${responses.join(',')}}`]);
}

/** The first failure, if there is one. */
function anyFailed(all: readonly Asked[]): Promise<Answers> {
  return new Promise((resolve) => {
    for (const { answer } of all)
      void answer.then((answered) => {
        if (answered.kind === 'failed') resolve(answered);
      });
  });
}

function failed(message: string): Answers {
  return { kind: 'failed', code: INTERNAL_ERROR, message };
}

/** One question that was put. */
class Asked {
  readonly answer: Promise<Answers>;
  readonly #id: string;
  readonly #asked: Respondent;
  #isOpen = true;
  #finish: (answers: Answers) => void = () => {};

  constructor({ key, method, params }: Keyed, session: Session, asked: Respondent) {
    const { signal, send, nextId } = asked;
    this.#asked = asked;
    this.#id = nextId();
    this.answer = new Promise((resolve) => {
      const timer = setTimeout(
        () => this.#finish(failed(`The client did not answer ${method} in time`)),
        ANSWER_MS,
      );
      const forget = session.expect(this.#id, (message) => {
        this.#isOpen = false;
        this.#finish(message === undefined ? failed('The session ends') : read(key, method, message));
      });
      const leave = (): void => this.#finish(failed('The client has left'));
      this.#finish = (answers) => {
        clearTimeout(timer);
        forget?.();
        signal.removeEventListener('abort', leave);
        resolve(answers);
      };
      if (signal.aborted) return leave();
      signal.addEventListener('abort', leave, { once: true });
      const more = params === undefined ? '' : `,"params":${params}`;
      send(Buffer.from(`{"jsonrpc":"2.0","id":${this.#id},"method":${JSON.stringify(method)}${more}}`));
    });
  }

  /** Its answer is of no use any more: says so, where it is still to come. */
  withdraw(): void {
    const { send, signal } = this.#asked;
    if (this.#isOpen && !signal.aborted)
      send(Buffer.from(`{"jsonrpc":"2.0","method":"${CANCELLED}","params":{"requestId":${this.#id}}}`));
    this.#finish(failed('withdrawn'));
  }
}

function read(key: string, method: string, message: Uint8Array): Answers {
  const members = objectMembers(message, 0) ?? [];
  const result = memberOf(members, 'result');
  if (result !== undefined && kindAt(message, result.start) === 'object')
    return { kind: 'params', params: `${JSON.stringify(key)}:${textOf(message, result)}` };
  // A form that is not shown is one that its user has dismissed.
  if (method === 'elicitation/create')
    return { kind: 'params', params: `${JSON.stringify(key)}:{"action":"cancel"}` };
  const error = memberOf(members, 'error');
  const words = error && memberOf(objectMembers(message, error.start) ?? [], 'message');
  const said = words && stringValue(message, words);
  return failed(`The client did not answer ${method}${said ? `: ${said.slice(0, 200)}` : ''}`);
}
