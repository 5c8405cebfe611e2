/**
 * What servers ask of clients in mid-call, in every revision the same: what is asked, and what a client must have said
 * to be asked it. *Spec:* client/elicitation, client/sampling, client/roots; basic/patterns/mrtr.
 */
import { kindAt, type Member, memberOf, objectMembers, stringValue, textOf } from './json.ts';

/** One question. */
export interface Question {
  readonly method: string;
  /** JSON text. */
  readonly params: string | undefined;
}

/** What can be asked, by the capability that says so. */
const CAPABILITY_OF: ReadonlyMap<string, string> = new Map([
  ['elicitation/create', 'elicitation'],
  ['sampling/createMessage', 'sampling'],
  ['roots/list', 'roots'],
]);
/** More of one capability than this is not passed on. */
const MAX_CAPABILITY_BYTES = 512;

/** JSON text of the capabilities of one who can be asked nothing. */
export const NO_CAPABILITIES = '{}';

/** Reads the method and params of a question. @param at where the object begins. */
export function readQuestion(bytes: Uint8Array, at: number): Question | undefined {
  const members = objectMembers(bytes, at) ?? [];
  const name = memberOf(members, 'method');
  const params = memberOf(members, 'params');
  const method = name && stringValue(bytes, name);
  return method === undefined ? undefined : { method, params: params && textOf(bytes, params) };
}

/** Whether a client with these capabilities can be asked this. @param capabilities JSON text. */
export function offers(capabilities: string, { method, params }: Question): boolean {
  const offered = JSON.parse(capabilities) as Readonly<
    Record<string, { readonly url?: unknown } | undefined>
  >;
  const capability = offered[CAPABILITY_OF.get(method) ?? ''];
  if (capability === undefined || method !== 'elicitation/create') return capability !== undefined;
  const { mode } = JSON.parse(params ?? '{}') as { readonly mode?: unknown };
  return mode !== 'url' || capability.url !== undefined;
}

/**
 * JSON text of the capabilities by which a client can be asked: what else it can is of no consequence to a server.
 * @param all the client's capabilities.
 */
export function askable(bytes: Uint8Array, all: Member | undefined): string {
  const members = (all && objectMembers(bytes, all.start)) ?? [];
  const told = [...CAPABILITY_OF.values()].flatMap((key) => {
    const member = memberOf(members, key);
    if (member === undefined || kindAt(bytes, member.start) !== 'object') return [];
    // That roots may change is told to nobody here.
    const isBare = key === 'roots' || member.end - member.start > MAX_CAPABILITY_BYTES;
    return [`"${key}":${isBare ? '{}' : textOf(bytes, member)}`];
  });
  return `{${told.join(',')}}`;
}
