/**
 * What a server of this revision asks in its answer (`input_required`), asked of an older client in mid-call, on the
 * stream of its call, and answered by its next `POST`.
 *
 * *Bounded by* {@link ANSWER_MS} and what a session expects. *Spec:* basic/patterns/mrtr; 2025-11-25, client/elicitation,
 * client/sampling, client/roots.
 */
import { INTERNAL_ERROR } from '../protocol/errors.ts';
import { kindAt, memberOf, objectMembers, stringValue, textOf } from '../protocol/json.ts';
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

/** Asks the client, and waits for all of its answers. *Never* rejects. */
export async function answersTo({ questions, state }: Questions, asked: Respondent): Promise<Answers> {
  const answers = await Promise.all(questions.map((question) => put(question, asked)));
  const failed = answers.find((answer) => answer.kind === 'failed');
  if (failed !== undefined) return failed;
  const responses = answers.map((answer) => (answer as Extract<Answers, { kind: 'params' }>).params);
  const parts = [
    ...(questions.length > 0 ? [`"inputResponses":{${responses.join(',')}}`] : []),
    ...(state === undefined ? [] : [`"requestState":${state}`]),
  ];
  return { kind: 'params', params: parts.join(',') };
}

function failed(message: string): Answers {
  return { kind: 'failed', code: INTERNAL_ERROR, message };
}

function put(question: Keyed, asked: Respondent): Promise<Answers> | Answers {
  const { key, method, params } = question;
  const { capabilities, signal, send, nextId } = asked;
  const session = offers(capabilities, question) ? asked.session() : undefined;
  if (session === undefined) return failed(`The server asks for ${method}, which this client does not offer`);
  return new Promise((resolve) => {
    const id = nextId();
    const finish = (answers: Answers): void => {
      clearTimeout(timer);
      forget?.();
      signal.removeEventListener('abort', leave);
      resolve(answers);
    };
    const leave = (): void => finish(failed('The client has left'));
    const timer = setTimeout(() => finish(failed(`The client did not answer ${method} in time`)), ANSWER_MS);
    const forget = session.expect(id, (message) => finish(read(key, method, message)));
    if (forget === undefined) return finish(failed('Too many questions to this client are open'));
    if (signal.aborted) return leave();
    signal.addEventListener('abort', leave, { once: true });
    const more = params === undefined ? '' : `,"params":${params}`;
    send(Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)}${more}}`));
  });
}

function read(key: string, method: string, message: Uint8Array): Answers {
  const members = objectMembers(message, 0) ?? [];
  const result = memberOf(members, 'result');
  if (result !== undefined && kindAt(message, result.start) === 'object')
    return { kind: 'params', params: `${JSON.stringify(key)}:${textOf(message, result)}` };
  const error = memberOf(members, 'error');
  const words = error && memberOf(objectMembers(message, error.start) ?? [], 'message');
  const said = words && stringValue(message, words);
  return failed(`The client did not answer ${method}${said ? `: ${said.slice(0, 200)}` : ''}`);
}
